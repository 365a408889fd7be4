package cuda

import (
	"unsafe"

	"github.com/raymux/raymux/cuda/cuapi"
)

func (n *native) DeviceGetDefaultMemPool(d cuapi.Device) (cuapi.MemPool, cuapi.Result) {
	v, r := n.wordOf(symDeviceGetDefaultMemPool, device(d))
	return cuapi.MemPool(v), r
}

func (n *native) MemPoolTrimTo(p cuapi.MemPool, keep uint64) cuapi.Result {
	return n.do(symMemPoolTrimTo, uintptr(p), uintptr(keep))
}

// MemPoolGetAttribute serves the 4-byte attributes too: the rest of the result
// word is zero.
func (n *native) MemPoolGetAttribute(p cuapi.MemPool, a cuapi.MemPoolAttribute) (uint64, cuapi.Result) {
	b := n.get()
	defer n.put(b)
	r := n.call(symMemPoolGetAttribute, b, uintptr(p), int32Word(int(a)), b.ref(0))
	return b.out[0], r
}

// MemPoolSetAttribute serves the 4-byte attributes too: the driver reads the
// lower half of the word.
func (n *native) MemPoolSetAttribute(p cuapi.MemPool, a cuapi.MemPoolAttribute, v uint64) cuapi.Result {
	b := n.get()
	defer n.put(b)
	b.out[0] = v
	return n.call(symMemPoolSetAttribute, b, uintptr(p), int32Word(int(a)), b.ref(0))
}

func (n *native) MemPoolSetAccess(p cuapi.MemPool, d cuapi.Device, access cuapi.MemAccessFlags) cuapi.Result {
	b := n.get()
	defer n.put(b)
	desc := &cuapi.MemAccessDesc{
		Location: cuapi.MemLocation{Type: int32(cuapi.MemLocationDevice), Id: int32(d)},
		Flags:    int32(access),
	}
	b.hold = unsafe.Pointer(desc)
	return n.call(symMemPoolSetAccess, b, uintptr(p), uintptr(b.hold), 1)
}
