package cuda

import "github.com/raymux/raymux/cuda/cuapi"

func (n *native) MemcpyHtoD(dst cuapi.DevicePtr, src []byte) cuapi.Result {
	b := n.get()
	r := n.call(symMemcpyHtoD, b, uintptr(dst), b.host(src), uintptr(len(src)))
	n.put(b)
	return r
}

func (n *native) MemcpyDtoH(dst []byte, src cuapi.DevicePtr) cuapi.Result {
	b := n.get()
	r := n.call(symMemcpyDtoH, b, b.host(dst), uintptr(src), uintptr(len(dst)))
	n.put(b)
	return r
}

func (n *native) MemcpyDtoD(dst, src cuapi.DevicePtr, bytes uint64) cuapi.Result {
	return n.do(symMemcpyDtoD, uintptr(dst), uintptr(src), uintptr(bytes))
}

func (n *native) MemcpyHtoDAsync(dst cuapi.DevicePtr, src []byte, s cuapi.Stream) cuapi.Result {
	b := n.get()
	r := n.call(symMemcpyHtoDAsync, b, uintptr(dst), b.host(src), uintptr(len(src)), uintptr(s))
	n.put(b)
	return r
}

func (n *native) MemcpyDtoHAsync(dst []byte, src cuapi.DevicePtr, s cuapi.Stream) cuapi.Result {
	b := n.get()
	r := n.call(symMemcpyDtoHAsync, b, b.host(dst), uintptr(src), uintptr(len(dst)), uintptr(s))
	n.put(b)
	return r
}

func (n *native) MemcpyDtoDAsync(dst, src cuapi.DevicePtr, bytes uint64, s cuapi.Stream) cuapi.Result {
	return n.do(symMemcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(bytes), uintptr(s))
}

func (n *native) MemcpyPeer(dst cuapi.DevicePtr, dstCtx cuapi.Context, src cuapi.DevicePtr, srcCtx cuapi.Context, bytes uint64) cuapi.Result {
	return n.do(symMemcpyPeer, uintptr(dst), uintptr(dstCtx), uintptr(src), uintptr(srcCtx), uintptr(bytes))
}

func (n *native) MemcpyPeerAsync(dst cuapi.DevicePtr, dstCtx cuapi.Context, src cuapi.DevicePtr, srcCtx cuapi.Context, bytes uint64, s cuapi.Stream) cuapi.Result {
	return n.do(symMemcpyPeerAsync, uintptr(dst), uintptr(dstCtx), uintptr(src), uintptr(srcCtx), uintptr(bytes), uintptr(s))
}

func (n *native) MemsetD8(p cuapi.DevicePtr, v uint8, count uint64) cuapi.Result {
	return n.do(symMemsetD8, uintptr(p), uintptr(v), uintptr(count))
}

func (n *native) MemsetD8Async(p cuapi.DevicePtr, v uint8, count uint64, s cuapi.Stream) cuapi.Result {
	return n.do(symMemsetD8Async, uintptr(p), uintptr(v), uintptr(count), uintptr(s))
}

func (n *native) MemsetD32(p cuapi.DevicePtr, v uint32, count uint64) cuapi.Result {
	return n.do(symMemsetD32, uintptr(p), uintptr(v), uintptr(count))
}

func (n *native) MemsetD32Async(p cuapi.DevicePtr, v uint32, count uint64, s cuapi.Stream) cuapi.Result {
	return n.do(symMemsetD32Async, uintptr(p), uintptr(v), uintptr(count), uintptr(s))
}
