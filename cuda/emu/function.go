package emu

import (
	"strconv"
	"sync/atomic"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

// function is an entry of a module.
type function struct {
	mod    *module
	kernel *vm.Kernel

	// Attributes that FuncSetAttribute changes.
	maxDynamic atomic.Int64
	carveout   atomic.Int64
}

// function makes a handle for the kernel. Asking again for the same entry
// gives another handle to a function with attributes of its own.
func (m *module) function(k *vm.Kernel) cuapi.Function {
	f := &function{mod: m, kernel: k}
	f.maxDynamic.Store(max(0, sharedPerBlock-int64(k.SharedBytes)))
	f.carveout.Store(-1)
	return m.ctx.e.functions.add(f, nil)
}

// enterFunction is the start of calls that name a function.
func (e *Emulator) enterFunction(h cuapi.Function) (*context, *function, cuapi.Result) {
	c, r := e.enter()
	if r != cuapi.Success {
		return nil, nil, r
	}
	f := e.functions.get(h)
	if f == nil {
		return nil, nil, cuapi.ErrorInvalidHandle
	}
	return c, f, f.mod.ctx.status()
}

// registers is the register count of a thread, as the compiler would round it.
func (f *function) registers() int {
	return min(maxRegistersPerThread, int(alignUp(uint64(max(f.kernel.Regs, 1)), 8)))
}

// maxThreads is the largest block that the registers and .maxntid allow.
func (f *function) maxThreads() int {
	n := maxThreadsPerBlock
	if f.kernel.MaxThreads != 0 {
		n = min(n, int(f.kernel.MaxThreads))
	}
	warps := registersPerSM / registersPerWarp(f.registers())
	return min(n, warps*warpSize)
}

// registersPerWarp is what a warp takes of the register file: registers are
// given out in units of 256.
func registersPerWarp(perThread int) int {
	return int(alignUp(uint64(perThread*warpSize), 256))
}

// target is the number of the module's virtual architecture, 75 for sm_75.
func (m *module) target() int {
	n := 0
	if t := targetNumber.FindStringSubmatch(m.program.Target()); t != nil {
		n, _ = strconv.Atoi(t[1])
	}
	return n
}

// constBytes is the size of the module's constant variables.
func (m *module) constBytes() uint64 {
	var n uint64
	for _, g := range m.program.Globals() {
		if g.Space == vm.SpaceConst {
			n += g.Size
		}
	}
	return n
}

// FuncGetAttribute reports the kernel's own numbers; the register count is an
// estimate from the PTX text.
func (e *Emulator) FuncGetAttribute(a cuapi.FunctionAttribute, h cuapi.Function) (int, cuapi.Result) {
	_, f, r := e.enterFunction(h)
	if r != cuapi.Success {
		return 0, r
	}
	switch a {
	case cuapi.FuncMaxThreadsPerBlock:
		return f.maxThreads(), cuapi.Success
	case cuapi.FuncSharedSizeBytes:
		return int(f.kernel.SharedBytes), cuapi.Success
	case cuapi.FuncConstSizeBytes:
		return int(f.mod.constBytes()), cuapi.Success
	case cuapi.FuncLocalSizeBytes:
		return int(f.kernel.LocalBytes), cuapi.Success
	case cuapi.FuncNumRegs:
		return f.registers(), cuapi.Success
	case cuapi.FuncPTXVersion:
		return f.mod.target(), cuapi.Success
	case cuapi.FuncBinaryVersion:
		return f.mod.ctx.dev.major*10 + f.mod.ctx.dev.minor, cuapi.Success
	case cuapi.FuncMaxDynamicSharedSizeBytes:
		return int(f.maxDynamic.Load()), cuapi.Success
	case cuapi.FuncPreferredSharedMemoryCarveout:
		return int(f.carveout.Load()), cuapi.Success
	}
	if a < 0 || a > cuapi.FuncClusterSchedulingPolicyPreference {
		return 0, cuapi.ErrorInvalidValue
	}
	return 0, cuapi.Success
}

// FuncSetAttribute sets the limit of dynamic shared memory (static and dynamic
// together at most 64 KiB) and the carve-out (-1 to 100); nothing else.
func (e *Emulator) FuncSetAttribute(h cuapi.Function, a cuapi.FunctionAttribute, v int) cuapi.Result {
	_, f, r := e.enterFunction(h)
	if r != cuapi.Success {
		return r
	}
	switch {
	case a == cuapi.FuncMaxDynamicSharedSizeBytes && v >= 0 && v <= sharedPerBlockOptin-int(f.kernel.SharedBytes):
		f.maxDynamic.Store(int64(v))
	case a == cuapi.FuncPreferredSharedMemoryCarveout && v >= -1 && v <= 100:
		f.carveout.Store(int64(v))
	default:
		return cuapi.ErrorInvalidValue
	}
	return cuapi.Success
}

// blocksPerSM is the number of blocks that fit a multiprocessor: the least of
// what the block slots, threads, registers and shared memory allow.
func (f *function) blocksPerSM(block int, dynamicShared uint64) int {
	if block > f.maxThreads() || dynamicShared > sharedPerSM {
		return 0
	}
	warps := (block + warpSize - 1) / warpSize
	n := min(maxBlocksPerSM, maxThreadsPerSM/warpSize/warps)
	n = min(n, registersPerSM/(registersPerWarp(f.registers())*warps))
	if shared := alignUp(uint64(f.kernel.SharedBytes)+dynamicShared, 256); shared > 0 {
		n = min(n, int(sharedPerSM/shared))
	}
	return n
}

// OccupancyMaxActiveBlocks is the number of blocks of that size (at least 1
// thread) that run on one multiprocessor at once.
func (e *Emulator) OccupancyMaxActiveBlocks(h cuapi.Function, blockSize int, dynamicShared uint64) (int, cuapi.Result) {
	_, f, r := e.enterFunction(h)
	if r != cuapi.Success {
		return 0, r
	}
	if blockSize <= 0 {
		return 0, cuapi.ErrorInvalidValue
	}
	return f.blocksPerSM(blockSize, dynamicShared), cuapi.Success
}

// OccupancyMaxPotentialBlockSize is the block size with the most threads per
// multiprocessor, the largest of several, and the grid that fills the device.
// limit bounds the block size unless it is 0.
func (e *Emulator) OccupancyMaxPotentialBlockSize(h cuapi.Function, dynamicShared uint64, limit int) (minGrid, block int, r cuapi.Result) {
	_, f, r := e.enterFunction(h)
	if r != cuapi.Success {
		return 0, 0, r
	}
	if limit < 0 {
		return 0, 0, cuapi.ErrorInvalidValue
	}
	top := f.maxThreads()
	if limit > 0 {
		top = min(top, limit)
	}
	best := 0
	for size := top; size > 0; size = (size - 1) / warpSize * warpSize {
		if n := f.blocksPerSM(size, dynamicShared); n*size > best {
			best, block, minGrid = n*size, size, n*e.cfg.sms
		}
	}
	return minGrid, block, cuapi.Success
}
