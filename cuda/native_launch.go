package cuda

import (
	"unsafe"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Keys of the launch options that hand the parameters over as one buffer.
const (
	launchParamBufferPointer = 1
	launchParamBufferSize    = 2
)

// LaunchKernel hands the parameters over as one packed buffer. The driver
// copies it before it returns, so the block is free again at once.
func (n *native) LaunchKernel(f cuapi.Function, grid, size cuapi.Dim3, sharedBytes uint32, s cuapi.Stream, params []byte) cuapi.Result {
	b := n.get()
	r := n.call(symLaunchKernel, b, uintptr(f),
		uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z),
		uintptr(size.X), uintptr(size.Y), uintptr(size.Z),
		uintptr(sharedBytes), uintptr(s), 0, b.launchOptions(params))
	n.put(b)
	return r
}

// launchOptions copies the parameters into the block and returns the address
// of the option list, or null for a kernel without parameters.
func (b *block) launchOptions(params []byte) uintptr {
	if len(params) == 0 {
		return 0
	}
	if len(params) > len(b.params) {
		b.params = make([]byte, len(params))
	}
	copy(b.params, params)
	b.size = uint64(len(params))
	b.extra = [5]uintptr{
		launchParamBufferPointer, uintptr(unsafe.Pointer(unsafe.SliceData(b.params))),
		launchParamBufferSize, uintptr(unsafe.Pointer(&b.size)),
		0, // end of the list
	}
	return uintptr(unsafe.Pointer(&b.extra))
}

func (n *native) FuncGetAttribute(a cuapi.FunctionAttribute, f cuapi.Function) (int, cuapi.Result) {
	return n.intOf(symFuncGetAttribute, int32Word(int(a)), uintptr(f))
}

func (n *native) FuncSetAttribute(f cuapi.Function, a cuapi.FunctionAttribute, v int) cuapi.Result {
	return n.do(symFuncSetAttribute, uintptr(f), int32Word(int(a)), int32Word(v))
}

func (n *native) OccupancyMaxActiveBlocks(f cuapi.Function, blockSize int, dynamicShared uint64) (int, cuapi.Result) {
	return n.intOf(symOccupancyMaxActiveBlocks, uintptr(f), int32Word(blockSize), uintptr(dynamicShared))
}

// OccupancyMaxPotentialBlockSize asks for a fixed amount of dynamic shared
// memory: the callback that would make it depend on the block size is null.
func (n *native) OccupancyMaxPotentialBlockSize(f cuapi.Function, dynamicShared uint64, limit int) (minGrid, size int, r cuapi.Result) {
	b := n.get()
	defer n.put(b)
	r = n.call(symOccupancyMaxPotentialBlockSize, b, b.ref(0), b.ref(1), uintptr(f), 0, uintptr(dynamicShared), int32Word(limit))
	return b.i32(0), b.i32(1), r
}
