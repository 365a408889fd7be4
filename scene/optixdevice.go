package scene

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/optixabi"
)

// optixDevice is OptiX on one device.
type optixDevice struct {
	ctx       *cuda.Context // own hold
	table     *optixabi.Table
	handle    optixabi.DeviceContext
	log       *slog.Logger
	rtCores   uint32
	cachePath string

	support   *cuda.Module
	faceBoxes *cuda.Function
	searches  atomic.Int64 // that are not freed yet
	mu        sync.Mutex
	programs  map[programKey]*once[*optixPrograms]
	first     OptiXTimes
}

// OptiXTimes are the times of creations that happen once per process and device.
// Zero: not yet.
type OptiXTimes struct {
	Context, Module, Pipeline time.Duration
}

// newOptixDevice starts OptiX on c, which it owns when it succeeds.
func newOptixDevice(c *cuda.Context, table *optixabi.Table, log *slog.Logger) (_ *optixDevice, err error) {
	x := &optixDevice{ctx: c, table: table, log: log, programs: map[programKey]*once[*optixPrograms]{}}
	defer func() {
		if err != nil {
			err = firstError(err, x.destroy())
		}
	}()
	start := time.Now()
	err = c.Do(func() (err error) {
		x.handle, err = table.DeviceContextCreate(uintptr(c.Handle()), optixabi.DeviceContextOptions{
			Log: log, LogLevel: optixabi.LogWarning,
		})
		if err != nil {
			return err
		}
		x.first.Context = time.Since(start)
		x.cachePath = openCache(table, x.handle, log)
		x.rtCores, err = table.DeviceProperty(x.handle, optixabi.PropertyRTCoreVersion)
		return err
	})
	if err != nil {
		return nil, err
	}
	if x.support, err = loadModule(c, "optix_support"); err != nil {
		return nil, err
	}
	x.faceBoxes, err = x.support.Function(faceBoxesKernel.Name)
	return x, err
}

// do runs f with the device's context current.
func (x *optixDevice) do(f func() error) error { return x.ctx.Do(f) }

// cache is the folder of the disk cache; empty when the cache is off, also when a
// creation that it made fail has switched it off.
func (x *optixDevice) cache() (string, error) {
	on := false
	err := x.do(func() (err error) {
		on, err = x.table.CacheEnabled(x.handle)
		return err
	})
	if err != nil || !on {
		return "", err
	}
	return x.cachePath, nil
}

// create runs a creation that may use the disk cache.
func (x *optixDevice) create(f func() error) error {
	return x.do(func() error { return withoutCache(x.table, x.handle, x.log, f) })
}

// programsFor returns the programs of a kind for structures of so many levels,
// which the first call compiles.
func (x *optixDevice) programsFor(kind *programKind, levels int) (*optixPrograms, error) {
	key := programKey{kind, levels}
	x.mu.Lock()
	entry := x.programs[key]
	if entry == nil {
		entry = &once[*optixPrograms]{}
		x.programs[key] = entry
	}
	x.mu.Unlock()
	return entry.get(func() (*optixPrograms, error) { return x.newPrograms(key) })
}

// took notes the time of a creation, if it is the first of its kind.
func (x *optixDevice) took(first *time.Duration, start time.Time) {
	d := time.Since(start)
	x.mu.Lock()
	if *first == 0 {
		*first = d
	}
	x.mu.Unlock()
}

func (x *optixDevice) firstTimes() OptiXTimes {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.first
}

// close ends OptiX on the device, unless scenes use it.
func (x *optixDevice) close() error {
	if n := x.searches.Load(); n > 0 {
		scenes := "1 scene that uses"
		if n > 1 {
			scenes = fmt.Sprintf("%d scenes that use", n)
		}
		return fmt.Errorf("scene: the driver was closed before %s OptiX on device %d; close scenes first",
			scenes, x.ctx.Device().Ordinal())
	}
	return firstError(x.destroy(), x.ctx.Close())
}

// destroy undoes newOptixDevice, also one that has failed half-way.
func (x *optixDevice) destroy() error {
	var errs []error
	for _, entry := range x.programs {
		if p, made := entry.take(); made {
			errs = append(errs, p.destroy())
		}
	}
	if x.support != nil {
		errs = append(errs, x.support.Close())
	}
	if x.handle != 0 && x.ctx.Lost() == nil {
		errs = append(errs, x.do(func() error { return x.table.DeviceContextDestroy(x.handle) }))
	}
	return firstError(errs...)
}
