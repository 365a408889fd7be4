package cuda

import "github.com/raymux/raymux/cuda/cuapi"

func (n *native) Init(flags uint32) cuapi.Result { return n.do(symInit, uintptr(flags)) }

func (n *native) DriverGetVersion() (int, cuapi.Result) { return n.intOf(symDriverGetVersion) }

func (n *native) GetErrorText(code cuapi.Result) (string, cuapi.Result) {
	b := n.get()
	defer n.put(b)
	r := n.call(symGetErrorText, b, int32Word(int(code)), b.ref(0))
	if r != cuapi.Success {
		return "", r
	}
	return foreignText(b.handle(0)), r
}

func (n *native) DeviceGetCount() (int, cuapi.Result) { return n.intOf(symDeviceGetCount) }

func (n *native) DeviceGet(ordinal int) (cuapi.Device, cuapi.Result) {
	v, r := n.intOf(symDeviceGet, int32Word(ordinal))
	return cuapi.Device(v), r
}

func (n *native) DeviceGetName(d cuapi.Device) (string, cuapi.Result) {
	return n.textOf(symDeviceGetName, d)
}

func (n *native) DeviceGetUUID(d cuapi.Device) (id [16]byte, r cuapi.Result) {
	b := n.get()
	defer n.put(b)
	r = n.call(symDeviceGetUUID, b, b.host(b.text[:]), device(d))
	if r == cuapi.Success {
		copy(id[:], b.text[:])
	}
	return id, r
}

func (n *native) DeviceTotalMem(d cuapi.Device) (uint64, cuapi.Result) {
	return n.wordOf(symDeviceTotalMem, device(d))
}

func (n *native) DeviceGetAttribute(a cuapi.DeviceAttribute, d cuapi.Device) (int, cuapi.Result) {
	return n.intOf(symDeviceGetAttribute, int32Word(int(a)), device(d))
}

func (n *native) DeviceGetPCIBusID(d cuapi.Device) (string, cuapi.Result) {
	return n.textOf(symDeviceGetPCIBusID, d)
}

func (n *native) DeviceCanAccessPeer(d, peer cuapi.Device) (bool, cuapi.Result) {
	v, r := n.intOf(symDeviceCanAccessPeer, device(d), device(peer))
	return v != 0, r
}

func (n *native) DeviceGetP2PAttribute(a cuapi.P2PAttribute, src, dst cuapi.Device) (int, cuapi.Result) {
	return n.intOf(symDeviceGetP2PAttribute, int32Word(int(a)), device(src), device(dst))
}

// device widens a device handle to an argument word.
func device(d cuapi.Device) uintptr { return int32Word(int(d)) }

// intOf calls an entry point whose first parameter receives a C int.
func (n *native) intOf(s symbol, rest ...uintptr) (int, cuapi.Result) {
	v, r := n.wordOf(s, rest...)
	return int(int32(v)), r
}

// wordOf calls an entry point whose first parameter receives up to 8 bytes.
func (n *native) wordOf(s symbol, rest ...uintptr) (uint64, cuapi.Result) {
	b := n.get()
	var args [maxArgs]uintptr
	args[0] = b.ref(0)
	k := 1 + copy(args[1:], rest)
	r := n.call(s, b, args[:k]...)
	v := b.out[0]
	n.put(b)
	return v, r
}

// textOf calls an entry point of the form (char*, int length, device).
func (n *native) textOf(s symbol, d cuapi.Device) (string, cuapi.Result) {
	b := n.get()
	defer n.put(b)
	b.text[0] = 0
	r := n.call(s, b, b.host(b.text[:]), textBytes, device(d))
	if r != cuapi.Success {
		return "", r
	}
	return cText(b.text[:]), r
}
