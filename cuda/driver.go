package cuda

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Driver is one opened CUDA driver: the installed one or an emulator. It is
// safe for use by several goroutines.
type Driver struct {
	api      cuapi.API
	native   *native // api, when it is the driver library without a wrapper
	log      *slog.Logger
	emulated bool
	version  int
	devices  []*Device

	leakSites bool
	contexts  atomic.Int64 // primary contexts held
	abandoned atomic.Int64 // handles collected without Close
	streams   atomic.Uint64

	attachMu sync.Mutex
	attached []attachment

	closeOnce sync.Once
	closed    atomic.Bool
	closeErr  error
}

// OpenAPI opens a driver over any implementation of the driver interface. It
// returns an error that matches ErrNoDevice when there is no device. Cost:
// three driver calls and nine per device; it creates no context.
func OpenAPI(api cuapi.API, opts ...Option) (*Driver, error) {
	if api == nil {
		return nil, badArg("OpenAPI", "api", "is nil")
	}
	cfg := newConfig(opts)
	d := &Driver{api: api, log: cfg.logger, emulated: api.Name() == "emulator", leakSites: cfg.leakSites}
	if cfg.wrap != nil {
		d.api = cfg.wrap(api)
	}
	d.native, _ = d.api.(*native)
	if err := d.start(); err != nil {
		return nil, err
	}
	return d, nil
}

// start initialises the driver and reads what never changes.
func (d *Driver) start() error {
	if r := d.api.Init(0); r != cuapi.Success {
		return newError("cuInit", r, -1, "")
	}
	version, r := d.api.DriverGetVersion()
	if r != cuapi.Success {
		return newError("cuDriverGetVersion", r, -1, "")
	}
	d.version = version
	n, r := d.api.DeviceGetCount()
	if r != cuapi.Success {
		return newError("cuDeviceGetCount", r, -1, "")
	}
	if n == 0 {
		return newError("cuDeviceGetCount", cuapi.ErrorNoDevice, -1, "the driver lists no device")
	}
	for i := range n {
		dev, err := newDevice(d, i)
		if err != nil {
			return err
		}
		d.devices = append(d.devices, dev)
	}
	return nil
}

// API is the driver interface below, with the wrappers of WithAPI. Calls made
// through it bypass every check of this package.
func (d *Driver) API() cuapi.API { return d.api }

// Version is the CUDA version of the driver as 1000*major + 10*minor: 12080 is
// 12.8. No driver call.
func (d *Driver) Version() int { return d.version }

// Logger is the logger of WithLogger, or a silent one. No driver call.
func (d *Driver) Logger() *slog.Logger { return d.log }

// Emulated reports whether the devices are emulated. No driver call.
func (d *Driver) Emulated() bool { return d.emulated }

// DeviceCount is the number of devices, at least 1. No driver call.
func (d *Driver) DeviceCount() int { return len(d.devices) }

// Device returns the device with the given ordinal. No driver call.
func (d *Driver) Device(i int) (*Device, error) {
	if i < 0 || i >= len(d.devices) {
		return nil, badArg("Driver.Device", "i", "%d given, the driver has devices 0 to %d", i, len(d.devices)-1)
	}
	return d.devices[i], nil
}

// Devices returns all devices in the order of their ordinals. No driver call.
func (d *Driver) Devices() []*Device { return append([]*Device(nil), d.devices...) }

// AbandonedHandles is the number of handles that were garbage collected without
// Close. Their driver resources stay allocated until the process ends.
func (d *Driver) AbandonedHandles() int64 { return d.abandoned.Load() }

// Close refuses new contexts and closes the attachments. It returns a *LeakError
// when contexts are still held, which then stay usable. The library stays loaded,
// because the driver owns threads. Later calls return what the first returned. No
// driver call but those of attachments.
func (d *Driver) Close() error {
	if d == nil {
		return nil
	}
	d.closeOnce.Do(func() {
		d.closed.Store(true)
		d.closeErr = d.detach()
		if n := d.contexts.Load(); n > 0 {
			d.closeErr = firstError(d.closeErr,
				&LeakError{Parent: "the driver", Leaks: []Leak{{Kind: leakedContext, Count: int(n)}}})
		}
	})
	return d.closeErr
}

// firstError is the first error that is not nil; the others are attached.
func firstError(errs ...error) error {
	var found []error
	for _, e := range errs {
		if e != nil {
			found = append(found, e)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return errors.Join(found...)
}
