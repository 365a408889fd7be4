package scene

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/optixabi"
)

// optixDriver is what all scenes of one driver share of OptiX: the library and one
// device context per device, which take tenths of a second to make. It lives until
// the driver is closed.
type optixDriver struct {
	open    func() (*optixabi.Library, error)
	library once[*optixabi.Library]
	table   once[*optixabi.Table]

	mu      sync.Mutex
	devices map[*cuda.Device]*once[*optixDevice]
}

type optixDriverKey struct{}

// UseOptiX makes the scenes of a driver use a library that the caller has opened,
// from another path than the usual ones or a stand-in, also on emulated devices. It
// must come before anything else asks for OptiX; afterwards it is an *ArgumentError.
// No driver call.
func UseOptiX(drv *cuda.Driver, lib *optixabi.Library) error {
	o, err := optixOf(drv)
	if err != nil {
		return err
	}
	have, err := o.library.get(func() (*optixabi.Library, error) { return lib, nil })
	if err == nil && have != lib {
		err = badArg("UseOptiX", "lib", "comes too late: OptiX is in use from %s", have.Path())
	}
	return err
}

// optixOf is the OptiX state of a driver.
func optixOf(drv *cuda.Driver) (*optixDriver, error) {
	v, err := drv.Attachment(optixDriverKey{}, func() io.Closer {
		return &optixDriver{
			open: func() (*optixabi.Library, error) {
				if drv.Emulated() {
					return nil, errEmulated
				}
				return optixabi.Open(optixabi.Options{})
			},
			devices: map[*cuda.Device]*once[*optixDevice]{},
		}
	})
	if err != nil {
		return nil, err
	}
	return v.(*optixDriver), nil
}

var errEmulated = errors.New("the devices are emulated, and OptiX needs a GPU")

// device starts OptiX on a device, or returns what an earlier call has started. The
// log of the call that starts it receives what OptiX says.
func (o *optixDriver) device(d *cuda.Device, log *slog.Logger) (*optixDevice, error) {
	lib, err := o.library.get(o.open)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	entry := o.devices[d]
	if entry == nil {
		entry = &once[*optixDevice]{}
		o.devices[d] = entry
	}
	o.mu.Unlock()
	return entry.get(func() (*optixDevice, error) {
		c, err := d.Retain()
		if err != nil {
			return nil, err
		}
		x, err := o.start(c, lib, log)
		if err != nil {
			return nil, firstError(err, c.Close())
		}
		return x, nil
	})
}

// start makes the device context on c, which x then owns.
func (o *optixDriver) start(c *cuda.Context, lib *optixabi.Library, log *slog.Logger) (*optixDevice, error) {
	table, err := o.table.get(func() (t *optixabi.Table, err error) {
		err = c.Do(func() error {
			t, err = lib.Negotiate(optixabi.NegotiateOptions{})
			return err
		})
		return t, err
	})
	if err != nil {
		return nil, err
	}
	return newOptixDevice(c, table, log)
}

// Close ends OptiX on every device. Devices that scenes still use are left alone;
// the driver reports their contexts as leaked.
func (o *optixDriver) Close() error {
	o.mu.Lock()
	devices := o.devices
	o.devices = map[*cuda.Device]*once[*optixDevice]{}
	o.mu.Unlock()
	var errs []error
	for _, entry := range devices {
		if x, made := entry.take(); made {
			errs = append(errs, x.close())
		}
	}
	return firstError(errs...)
}

// OptiXInfo is what InspectOptiX finds out.
type OptiXInfo struct {
	Library string       // path of the library
	Driver  string       // driver version, empty if the path does not tell
	ABI     optixabi.ABI // number of the agreed binary interface
	// RTCores is the version of the ray-tracing cores, 10*major + minor; 0: none.
	RTCores uint32
	// CachePath is where OptiX keeps compiled programs; empty: nowhere.
	CachePath string
	// First are the times of the first use in this process.
	First OptiXTimes
}

// InspectOptiX starts OptiX on a device, compiles the programs of Intersect if no
// scene has done so, and reports on both. It returns an error that matches
// ErrBackendUnavailable where OptiX cannot run. Cost: a second or more the first
// time.
func InspectOptiX(d *cuda.Device, log *slog.Logger) (OptiXInfo, error) {
	if log == nil {
		log = d.Driver().Logger()
	}
	x, err := openOptix(d, log)
	if err != nil {
		return OptiXInfo{}, err
	}
	if _, err := x.programsFor(closestPrograms, 1); err != nil {
		return OptiXInfo{}, err
	}
	cache, err := x.cache()
	if err != nil {
		return OptiXInfo{}, err
	}
	lib := x.table.Library()
	return OptiXInfo{
		Library: lib.Path(), Driver: lib.DriverVersion(), ABI: x.table.ABI(),
		RTCores: x.rtCores, CachePath: cache, First: x.firstTimes(),
	}, nil
}

// openOptix starts OptiX on a device. That it cannot run here matches
// ErrBackendUnavailable; any other failure does not.
func openOptix(d *cuda.Device, log *slog.Logger) (*optixDevice, error) {
	if optixDisabled() {
		return nil, fmt.Errorf("%w: OptiX is switched off by %s", ErrBackendUnavailable, noOptixVariable)
	}
	o, err := optixOf(d.Driver())
	if err != nil {
		return nil, err
	}
	x, err := o.device(d, log)
	if errors.Is(err, errEmulated) || optixabi.Unavailable(err) {
		return nil, fmt.Errorf("%w: OptiX: %w", ErrBackendUnavailable, err)
	}
	return x, err
}
