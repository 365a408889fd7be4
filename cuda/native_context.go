package cuda

import "github.com/raymux/raymux/cuda/cuapi"

func (n *native) DevicePrimaryCtxRetain(d cuapi.Device) (cuapi.Context, cuapi.Result) {
	v, r := n.wordOf(symDevicePrimaryCtxRetain, device(d))
	return cuapi.Context(v), r
}

func (n *native) DevicePrimaryCtxRelease(d cuapi.Device) cuapi.Result {
	return n.do(symDevicePrimaryCtxRelease, device(d))
}

func (n *native) DevicePrimaryCtxGetState(d cuapi.Device) (flags uint32, active bool, r cuapi.Result) {
	b := n.get()
	defer n.put(b)
	r = n.call(symDevicePrimaryCtxGetState, b, device(d), b.ref(0), b.ref(1))
	return uint32(b.out[0]), b.i32(1) != 0, r
}

func (n *native) CtxGetCurrent() (cuapi.Context, cuapi.Result) {
	v, r := n.wordOf(symCtxGetCurrent)
	return cuapi.Context(v), r
}

func (n *native) CtxSetCurrent(c cuapi.Context) cuapi.Result {
	return n.do(symCtxSetCurrent, uintptr(c))
}

func (n *native) CtxGetDevice() (cuapi.Device, cuapi.Result) {
	v, r := n.intOf(symCtxGetDevice)
	return cuapi.Device(v), r
}

func (n *native) CtxSynchronize() cuapi.Result { return n.do(symCtxSynchronize) }

func (n *native) CtxGetStreamPriorityRange() (least, greatest int, r cuapi.Result) {
	b := n.get()
	defer n.put(b)
	r = n.call(symCtxGetStreamPriorityRange, b, b.ref(0), b.ref(1))
	return b.i32(0), b.i32(1), r
}

func (n *native) CtxGetLimit(l cuapi.Limit) (uint64, cuapi.Result) {
	return n.wordOf(symCtxGetLimit, int32Word(int(l)))
}

func (n *native) CtxSetLimit(l cuapi.Limit, v uint64) cuapi.Result {
	return n.do(symCtxSetLimit, int32Word(int(l)), uintptr(v))
}

func (n *native) CtxEnablePeerAccess(peer cuapi.Context, flags uint32) cuapi.Result {
	return n.do(symCtxEnablePeerAccess, uintptr(peer), uintptr(flags))
}

func (n *native) CtxDisablePeerAccess(peer cuapi.Context) cuapi.Result {
	return n.do(symCtxDisablePeerAccess, uintptr(peer))
}
