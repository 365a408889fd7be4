package cuda

import (
	"unsafe"

	"github.com/raymux/raymux/cuda/cuapi"
)

func (n *native) MemAlloc(bytes uint64) (cuapi.DevicePtr, cuapi.Result) {
	v, r := n.wordOf(symMemAlloc, uintptr(bytes))
	return cuapi.DevicePtr(v), r
}

func (n *native) MemFree(p cuapi.DevicePtr) cuapi.Result { return n.do(symMemFree, uintptr(p)) }

func (n *native) MemAllocAsync(bytes uint64, s cuapi.Stream) (cuapi.DevicePtr, cuapi.Result) {
	v, r := n.wordOf(symMemAllocAsync, uintptr(bytes), uintptr(s))
	return cuapi.DevicePtr(v), r
}

func (n *native) MemFreeAsync(p cuapi.DevicePtr, s cuapi.Stream) cuapi.Result {
	return n.do(symMemFreeAsync, uintptr(p), uintptr(s))
}

func (n *native) MemGetInfo() (free, total uint64, r cuapi.Result) {
	b := n.get()
	defer n.put(b)
	r = n.call(symMemGetInfo, b, b.ref(0), b.ref(1))
	return b.out[0], b.out[1], r
}

func (n *native) MemGetAddressRange(p cuapi.DevicePtr) (base cuapi.DevicePtr, size uint64, r cuapi.Result) {
	b := n.get()
	defer n.put(b)
	r = n.call(symMemGetAddressRange, b, b.ref(0), b.ref(1), uintptr(p))
	return cuapi.DevicePtr(b.out[0]), b.out[1], r
}

func (n *native) MemHostAlloc(bytes uint64, flags cuapi.MemHostAllocFlags) ([]byte, cuapi.Result) {
	v, r := n.wordOf(symMemHostAlloc, uintptr(bytes), uintptr(flags))
	if r != cuapi.Success || v == 0 {
		return nil, r
	}
	return foreign(uintptr(v), bytes), r
}

func (n *native) MemFreeHost(p []byte) cuapi.Result { return n.withHost(symMemFreeHost, p) }

func (n *native) MemHostRegister(p []byte, flags uint32) cuapi.Result {
	return n.withHost(symMemHostRegister, p, uintptr(len(p)), uintptr(flags))
}

func (n *native) MemHostUnregister(p []byte) cuapi.Result {
	return n.withHost(symMemHostUnregister, p)
}

// withHost calls an entry point whose first parameter is host memory.
func (n *native) withHost(s symbol, p []byte, rest ...uintptr) cuapi.Result {
	b := n.get()
	var args [maxArgs]uintptr
	args[0] = b.host(p)
	k := 1 + copy(args[1:], rest)
	r := n.call(s, b, args[:k]...)
	n.put(b)
	return r
}

// pointerQuery is the list of attributes that PointerGetInfo asks for, in the
// order of the result words.
var pointerQuery = [maxOut]cuapi.PointerAttribute{
	cuapi.PointerMemoryType,
	cuapi.PointerContext,
	cuapi.PointerDeviceOrdinal,
	cuapi.PointerRangeStartAddr,
	cuapi.PointerRangeSize,
}

func (n *native) PointerGetInfo(p cuapi.DevicePtr) (cuapi.PointerInfo, cuapi.Result) {
	b := n.get()
	defer n.put(b)
	// The driver reads an array of attributes and an array of addresses.
	arrays := &struct {
		query [maxOut]cuapi.PointerAttribute
		where [maxOut]uintptr
	}{query: pointerQuery}
	for i := range arrays.where {
		arrays.where[i] = b.ref(i)
	}
	b.hold = unsafe.Pointer(arrays)
	r := n.call(symPointerGetInfo, b, maxOut,
		uintptr(unsafe.Pointer(&arrays.query)), uintptr(unsafe.Pointer(&arrays.where)), uintptr(p))
	if r != cuapi.Success {
		return cuapi.PointerInfo{}, r
	}
	return cuapi.PointerInfo{
		MemoryType: cuapi.MemoryType(b.i32(0)),
		Context:    cuapi.Context(b.handle(1)),
		Ordinal:    b.i32(2),
		RangeStart: cuapi.DevicePtr(b.out[3]),
		RangeSize:  b.out[4],
	}, r
}
