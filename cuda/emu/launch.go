package emu

import (
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

// launch is a kernel launch in a stream. Spent ones are kept with their
// parameter buffers, so that a caller that launches often allocates nothing.
type launch struct {
	f           *function
	grid, block [3]uint32
	shared      uint32
	params      []byte
}

func (l *launch) run(c *context) {
	m := l.f.mod
	v := vm.Launch{
		Kernel:    l.f.kernel,
		Grid:      l.grid,
		Block:     l.block,
		DynShared: l.shared,
		Params:    l.params,
		Spaces:    c.reachable(),
		AllSpaces: c.e.spaces,
		Globals:   m.addrs,
		Workers:   c.e.cfg.workers,
		SMs:       c.e.cfg.sms,
		RaceCheck: c.e.cfg.raceCheck,
		Cancel:    &c.dev.cancel,
	}
	if hook := c.e.cfg.corrupt; hook != nil {
		v.OnPeer = func(mem *vm.Memory, data []byte, store bool) { c.corruptAccess(hook, mem, data, store) }
	}
	stats, fault := v.Run()
	c.e.lanes.Add(stats.LaneInstructions)
	if fault != nil {
		c.kernelFault(m, fault)
	}
	*l = launch{params: l.params[:0]}
	c.e.launches.Put(l)
}

// corruptAccess passes what a kernel loads from or stores to a peer through
// the hook of WithPeerCorruption. Host memory and the device's own pool are not
// behind a link.
func (c *context) corruptAccess(hook func(src, dst int, data []byte), mem *vm.Memory, data []byte, store bool) {
	for _, d := range c.e.devices {
		if d == c.dev || (mem != d.mem.plain.mem && mem != d.mem.pool.arena.mem) {
			continue
		}
		if store {
			hook(c.dev.ordinal, d.ordinal, data)
		} else {
			hook(d.ordinal, c.dev.ordinal, data)
		}
	}
}

// reachable are the memories that kernels of the context may access, its own
// first.
func (c *context) reachable() []*vm.Memory {
	peers := c.enabledPeers()
	spaces := []*vm.Memory{c.dev.mem.plain.mem}
	for _, d := range c.e.devices {
		if peers[d] {
			spaces = append(spaces, d.mem.plain.mem)
		}
		// Most programs use no pools: memories without allocations would only
		// slow the search for an address down.
		if p := d.mem.pool; p.grants(c.dev) && !p.empty() {
			spaces = append(spaces, p.arena.mem)
		}
	}
	return append(spaces, c.e.host.mem)
}

// LaunchKernel answers 1 for sizes that no device takes, a parameter block of
// another size than the kernel's, and more shared memory than the function may
// use; 701 for a block that is too large for this kernel; 400 for a stream or
// function of another context.
func (e *Emulator) LaunchKernel(h cuapi.Function, grid, block cuapi.Dim3, sharedBytes uint32, sh cuapi.Stream, params []byte) cuapi.Result {
	c, f, r := e.enterFunction(h)
	if r != cuapi.Success {
		return r
	}
	_, s, r := e.enterStream(sh)
	if r != cuapi.Success {
		return r
	}
	if f.mod.ctx != c || s.ctx != c {
		return cuapi.ErrorInvalidHandle
	}
	if r := f.checkLaunch(grid, block, sharedBytes, len(params)); r != cuapi.Success {
		return r
	}
	l := e.launches.Get().(*launch)
	*l = launch{
		f:      f,
		grid:   [3]uint32{grid.X, grid.Y, grid.Z},
		block:  [3]uint32{block.X, block.Y, block.Z},
		shared: sharedBytes,
		params: append(l.params[:0], params...),
	}
	c.enqueue(s, l)
	return cuapi.Success
}

func (f *function) checkLaunch(grid, block cuapi.Dim3, shared uint32, params int) cuapi.Result {
	threads := uint64(block.X) * uint64(block.Y) * uint64(block.Z)
	switch {
	case grid.X == 0 || grid.Y == 0 || grid.Z == 0 || block.X == 0 || block.Y == 0 || block.Z == 0,
		grid.X > maxGridX || grid.Y > maxGridYZ || grid.Z > maxGridYZ,
		block.X > maxBlockXY || block.Y > maxBlockXY || block.Z > maxBlockZ || threads > maxThreadsPerBlock,
		int64(shared) > f.maxDynamic.Load(),
		params != int(f.kernel.ParamSize):
		return cuapi.ErrorInvalidValue
	case threads > uint64(f.maxThreads()):
		return cuapi.ErrorLaunchOutOfResources
	}
	return cuapi.Success
}
