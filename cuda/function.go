package cuda

import (
	"strconv"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Function is one kernel of a Module.
type Function struct {
	m          *Module
	h          cuapi.Function
	name       string
	maxThreads uint64 // per block, as the kernel was compiled
}

// Name is the entry name of the kernel.
func (f *Function) Name() string { return f.name }

// Module is the module of the kernel.
func (f *Function) Module() *Module { return f.m }

// Launch enqueues the kernel on s, which must be of the module's device. shared
// is the dynamic shared memory per block in bytes; params is the kernel's
// parameter block, usually from ParamBytes, and may be reused when Launch
// returns. A fault of the kernel shows in a later call. Cost: one driver call; no
// allocation.
func (f *Function) Launch(s *Stream, grid, block cuapi.Dim3, shared uint32, params []byte) error {
	if err := f.checkLaunch(s, grid, block); err != nil {
		return err
	}
	if !s.gate.enter() {
		return errClosed("stream")
	}
	sc, err := s.c.enter()
	if err != nil {
		s.gate.exit()
		return err
	}
	return s.end(sc, f.launch(s, grid, block, shared, params))
}

// Launch is Function.Launch inside a scope of the stream's device. Cost: one
// driver call; no allocation.
func (sc Scope) Launch(f *Function, s *Stream, grid, block cuapi.Dim3, shared uint32, params []byte) error {
	if err := sc.checkStream("Scope.Launch", s); err != nil {
		return err
	}
	if err := f.checkLaunch(s, grid, block); err != nil {
		return err
	}
	if !s.gate.enter() {
		return errClosed("stream")
	}
	defer s.gate.exit()
	return f.launch(s, grid, block, shared, params)
}

// launch needs the context current and the stream's gate entered.
func (f *Function) launch(s *Stream, grid, block cuapi.Dim3, shared uint32, params []byte) error {
	if !f.m.gate.enter() {
		return errClosed("module of kernel " + f.name)
	}
	defer f.m.gate.exit()
	if r := s.c.dev.drv.launchKernel(f.h, grid, block, shared, s.h, params); r != cuapi.Success {
		return s.c.dev.failure("cuLaunchKernel", r, "kernel "+f.name)
	}
	return nil
}

// launchKernel keeps params out of the heap: what a call through an interface
// is given may live on, for all the compiler knows, so that params would move
// there with the caller's struct. The native driver is called directly;
// everybody else gets a copy.
func (d *Driver) launchKernel(f cuapi.Function, grid, block cuapi.Dim3, shared uint32, s cuapi.Stream, params []byte) cuapi.Result {
	if d.native != nil {
		return d.native.LaunchKernel(f, grid, block, shared, s, params)
	}
	pb := paramBlocks.Get().(*paramBlock)
	defer paramBlocks.Put(pb)
	var args []byte
	if len(params) <= len(pb) {
		args = pb[:copy(pb[:], params)]
	} else {
		args = append([]byte(nil), params...)
	}
	return d.api.LaunchKernel(f, grid, block, shared, s, args)
}

// checkLaunch refuses what no launch can do, before the driver is called.
func (f *Function) checkLaunch(s *Stream, grid, block cuapi.Dim3) error {
	const op = "Function.Launch"
	switch {
	case f == nil:
		return badArg(op, "f", "is a nil function")
	case s == nil:
		return badArg(op, "s", "is a nil stream")
	case s.c.dev != f.m.c.dev:
		return wrongDevice(op, "s", f.m.c.dev, s.c.dev)
	case grid.X == 0 || grid.Y == 0 || grid.Z == 0:
		return badArg(op, "grid", "%d x %d x %d given, no size may be 0; skip the launch when there is nothing to do", grid.X, grid.Y, grid.Z)
	case block.X == 0 || block.Y == 0 || block.Z == 0:
		return badArg(op, "block", "%d x %d x %d given, no size may be 0", block.X, block.Y, block.Z)
	}
	// In steps, so that three large factors cannot wrap around.
	if n := uint64(block.X) * uint64(block.Y); n > f.maxThreads || n*uint64(block.Z) > f.maxThreads {
		return badArg(op, "block", "%d x %d x %d given, kernel %s allows %d threads per block", block.X, block.Y, block.Z, f.name, f.maxThreads)
	}
	return nil
}

// Attribute returns a property of the compiled kernel. Cost: one driver call.
func (f *Function) Attribute(a cuapi.FunctionAttribute) (v int, err error) {
	err = f.m.call(func() error {
		var r cuapi.Result
		v, r = f.m.c.api().FuncGetAttribute(a, f.h)
		return f.m.c.dev.check("cuFuncGetAttribute", r, f.attribute(a))
	})
	return v, err
}

// SetAttribute changes a property of the kernel, such as the largest dynamic
// shared memory. Cost: one driver call.
func (f *Function) SetAttribute(a cuapi.FunctionAttribute, v int) error {
	return f.m.call(func() error {
		return f.m.c.dev.check("cuFuncSetAttribute", f.m.c.api().FuncSetAttribute(f.h, a, v), f.attribute(a))
	})
}

func (f *Function) attribute(a cuapi.FunctionAttribute) string {
	return "kernel " + f.name + ", attribute " + strconv.Itoa(int(a))
}

// Occupancy is how many blocks of the given number of threads, each with
// dynShared bytes of dynamic shared memory, fit on one multiprocessor. Cost: one
// driver call.
func (f *Function) Occupancy(block int, dynShared uint64) (n int, err error) {
	if block <= 0 {
		return 0, badArg("Function.Occupancy", "block", "%d threads given, at least 1 needed", block)
	}
	err = f.m.call(func() error {
		var r cuapi.Result
		n, r = f.m.c.api().OccupancyMaxActiveBlocks(f.h, block, dynShared)
		return f.m.c.dev.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", r, "kernel "+f.name)
	})
	return n, err
}

// BlockSize is the number of threads per block that fills the device best, and
// the number of such blocks that fill it, with dynShared bytes of dynamic shared
// memory per block. limit bounds the block; 0 is no bound. Cost: one driver call.
func (f *Function) BlockSize(dynShared uint64, limit int) (minGrid, block int, err error) {
	err = f.m.call(func() error {
		var r cuapi.Result
		minGrid, block, r = f.m.c.api().OccupancyMaxPotentialBlockSize(f.h, dynShared, limit)
		return f.m.c.dev.check("cuOccupancyMaxPotentialBlockSize", r, "kernel "+f.name)
	})
	return minGrid, block, err
}
