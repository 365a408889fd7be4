package multi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// ErrOperation: WarmUp was asked for an operation that does not exist.
var ErrOperation = errors.New("multi: unknown operation")

// WarmUp makes on each device what a first call of the operations would have
// to make: it starts the device, compiles kernels and, where scene.Auto
// chooses OptiX, its programs. All devices work at the same time, where first
// calls would do it one after the other. Without ops it warms up all operations
// (OpIntersect and its siblings), each of which has a name. It returns what each device
// took, and waits for all of them, also when one fails.
//
// Devices stay warm until drv is closed as far as OptiX goes; of compiled
// kernels the driver keeps a cache on disk.
//
// Errors: ErrDeviceList, ErrOperation for a name that is unknown or listed twice, before
// anything is done; the *DeviceError of the first device in the list that failed. No
// devices are no work. Cost: two throwaway scenes per device, of one triangle and of two,
// and a call of each operation on each.
func WarmUp(ctx context.Context, drv *cuda.Driver, devices []int, ops ...string) ([]time.Duration, error) {
	if len(devices) == 0 {
		return []time.Duration{}, nil
	}
	if drv == nil {
		return nil, fmt.Errorf("%w: no driver: open one with cuda.Open or cuda.OpenEmulator", ErrDeviceList)
	}
	if err := checkDevices(drv, devices); err != nil {
		return nil, err
	}
	for i, op := range ops {
		if warmOps[op] == nil {
			return nil, fmt.Errorf("%w %q: there are %q", ErrOperation, op, slices.Sorted(maps.Keys(warmOps)))
		}
		if slices.Index(ops, op) < i {
			return nil, fmt.Errorf("%w: %q is listed twice", ErrOperation, op)
		}
	}
	if len(ops) == 0 {
		ops = slices.Sorted(maps.Keys(warmOps))
	}
	all := make([]*cuda.Device, len(devices))
	for i, ordinal := range devices {
		var err error
		if all[i], err = drv.Device(ordinal); err != nil {
			return nil, err
		}
	}
	return warmUp(devices, func(p int) (err error) {
		c, err := all[p].Retain()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		opts := scene.Options{Replicas: all}
		return errors.Join(warmOne(ctx, c, opts, 1, ops), warmOne(ctx, c, opts, 2, ops))
	})
}

// warmUp runs f for every position at once.
func warmUp(devices []int, f func(p int) error) ([]time.Duration, error) {
	took, errs := make([]time.Duration, len(devices)), make([]error, len(devices))
	var wg sync.WaitGroup
	for p := range devices {
		wg.Go(func() {
			start := time.Now()
			errs[p] = f(p)
			took[p] = time.Since(start)
		})
	}
	wg.Wait()
	for p, err := range errs {
		if err != nil {
			return took, newDeviceError(p, devices[p], "warming up", chunked.Range{}, err)
		}
	}
	return took, nil
}

// warmOne builds a scene of so many meshes of one triangle, runs the operations on one
// row and drops all of it. OptiX has programs of their own for a mesh alone; those for two serve
// any number.
func warmOne(ctx context.Context, c *cuda.Context, opts scene.Options, meshes int, ops []string) (err error) {
	s, err := scene.New(c, opts)
	if err != nil {
		return err
	}
	w := &warming{Scene: s}
	defer func() { err = errors.Join(err, w.close()) }()
	for range meshes {
		_, err = s.AddMesh(scene.Mesh{Vertices: []float32{-1, -1, 0, 1, -1, 0, 0, 1, 0}, Faces: []int32{0, 1, 2}})
		if err != nil {
			return err
		}
	}
	if err := s.Build(ctx); err != nil {
		return err
	}
	if err := w.fill(ctx, meshes); err != nil {
		return err
	}
	for _, op := range ops {
		result, err := warmOps[op](ctx, w)
		if err != nil {
			return err
		}
		if err := result.Close(); err != nil {
			return err
		}
	}
	return s.Stream().Synchronize(ctx)
}

// warm prepares the devices for the backend that the coming Build will choose.
// What our own tracer needs was loaded by New; OptiX programs take tenths of a
// second per device, which are spent at once here and one after the other in
// replicate.
func (s *Scene) warm(ctx context.Context) error {
	meshes := min(s.master().scene.NumShapes(), 2) // instances count as meshes here
	if s.opts.NoWarmUp || meshes == 0 || s.warmed[meshes-1] || len(s.replicas) == 1 || s.opts.Backend == scene.CUDA {
		return nil
	}
	backend, _, err := s.master().scene.ResolveBackend()
	if err != nil {
		return s.master().fail("choosing the backend", err)
	}
	if backend != scene.OptiX {
		return nil
	}
	_, err = warmUp(s.devices, func(p int) error {
		return warmOne(ctx, s.ctxs[p], scene.Options{Backend: backend, Logger: s.opts.Logger}, meshes, []string{OpIntersect})
	})
	s.warmed[meshes-1] = err == nil
	return err
}

// Origins says for each device where the search structures came from at the
// last Build: "built" on the master, and "copied", "relocated" or "rebuilt" on
// the others.
func (s *Scene) Origins() []string {
	out := make([]string, len(s.replicas))
	for p, r := range s.replicas {
		out[p] = r.scene.Origin()
	}
	return out
}
