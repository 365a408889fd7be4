package vm

import "sync/atomic"

// Stats counts what a launch executed.
type Stats struct {
	WarpInstructions uint64 // instructions issued, once per warp
	LaneInstructions uint64 // the same, times the lanes that were active
}

// Launch describes one kernel launch. Memories and the globals' addresses belong to the caller.
type Launch struct {
	Kernel    *Kernel
	Grid      [3]uint32
	Block     [3]uint32 // at most 1024 threads
	DynShared uint32    // bytes of dynamic shared memory
	Params    []byte    // Kernel.ParamSize bytes

	// Spaces are the memories the kernel may access: its own device first, then peers and host.
	Spaces []*Memory
	// AllSpaces adds memories that exist but are not accessible; only the text of faults uses them.
	AllSpaces []*Memory
	// Globals maps module-scope variables to their addresses.
	Globals map[string]uint64

	// OnPeer, if set, is called for plain accesses to all but the first of Spaces: with a copy of the
	// bytes that a load is about to return, or with the memory that a store has just written. It may change them.
	OnPeer func(mem *Memory, data []byte, store bool)

	Workers   int          // goroutines that run blocks; 0 stands for runtime.GOMAXPROCS(0)
	SMs       int          // multiprocessors to report in %nsmid; 0 stands for 1
	RaceCheck bool         // report conflicting shared accesses that no barrier separates
	Cancel    *atomic.Bool // when set to true the launch ends soon with a fault of kind Cancelled
}

// Run executes the launch and returns when it is over. The fault is nil if the kernel ended well.
func (l *Launch) Run() (Stats, *Fault) { return run(l) }
