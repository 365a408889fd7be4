package emu

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/raymux/raymux/cuda/cuapi"
)

// device is one virtual GPU.
type device struct {
	e       *Emulator
	ordinal int
	name    string
	major   int
	minor   int

	lost   atomic.Int32 // the sticky code, or 0
	cancel atomic.Bool  // stops running kernels

	mem *deviceMemory

	primary sync.Mutex // guards the following
	ctx     *context   // nil when nobody retains it
	refs    int
}

func newDevice(e *Emulator, i int) *device {
	d := &device{e: e, ordinal: i, name: e.cfg.name(i)}
	d.major, d.minor = e.cfg.capability(i)
	d.mem = newDeviceMemory(d, e.cfg.memory)
	return d
}

// fail makes the device lost; the first code stays. It reports whether this
// call was the first.
func (d *device) fail(r cuapi.Result) bool {
	if !d.lost.CompareAndSwap(0, int32(r)) {
		return false
	}
	d.cancel.Store(true)
	return true
}

func (d *device) status() cuapi.Result { return cuapi.Result(d.lost.Load()) }

// lostBeside reports that a device other than d is lost.
func (e *Emulator) lostBeside(d *device) bool {
	return slices.ContainsFunc(e.devices, func(o *device) bool { return o != d && o.status() != cuapi.Success })
}

// device resolves a device handle.
func (e *Emulator) device(d cuapi.Device) (*device, cuapi.Result) {
	if r := e.ready(); r != cuapi.Success {
		return nil, r
	}
	if d < 0 || int(d) >= len(e.devices) {
		return nil, cuapi.ErrorInvalidDevice
	}
	return e.devices[d], cuapi.Success
}

// DeviceGetCount is the number of virtual devices.
func (e *Emulator) DeviceGetCount() (int, cuapi.Result) {
	if r := e.ready(); r != cuapi.Success {
		return 0, r
	}
	return len(e.devices), cuapi.Success
}

// DeviceGet turns an ordinal into a handle; 101 when there is no such device.
func (e *Emulator) DeviceGet(ordinal int) (cuapi.Device, cuapi.Result) {
	if r := e.ready(); r != cuapi.Success {
		return 0, r
	}
	if ordinal < 0 || ordinal >= len(e.devices) {
		return 0, cuapi.ErrorInvalidDevice
	}
	return cuapi.Device(ordinal), cuapi.Success
}

// DeviceGetName is the name set by WithName.
func (e *Emulator) DeviceGetName(d cuapi.Device) (string, cuapi.Result) {
	dev, r := e.device(d)
	if r != cuapi.Success {
		return "", r
	}
	return dev.name, cuapi.Success
}

// DeviceGetUUID is distinct per ordinal and the same in every Emulator.
func (e *Emulator) DeviceGetUUID(d cuapi.Device) (u [16]byte, r cuapi.Result) {
	dev, r := e.device(d)
	if r != cuapi.Success {
		return u, r
	}
	copy(u[:], "raymux-emulator")
	u[15] = byte(dev.ordinal)
	return u, cuapi.Success
}

// DeviceTotalMem is the size set by WithMemory.
func (e *Emulator) DeviceTotalMem(d cuapi.Device) (uint64, cuapi.Result) {
	dev, r := e.device(d)
	if r != cuapi.Success {
		return 0, r
	}
	return dev.mem.total, cuapi.Success
}

// DeviceGetPCIBusID gives each device a bus of its own.
func (e *Emulator) DeviceGetPCIBusID(d cuapi.Device) (string, cuapi.Result) {
	dev, r := e.device(d)
	if r != cuapi.Success {
		return "", r
	}
	return fmt.Sprintf("0000:%02X:00.0", dev.ordinal+1), cuapi.Success
}

// DeviceCanAccessPeer follows WithPeerAccess; a device is not its own peer.
func (e *Emulator) DeviceCanAccessPeer(d, peer cuapi.Device) (bool, cuapi.Result) {
	a, r := e.device(d)
	if r != cuapi.Success {
		return false, r
	}
	b, r := e.device(peer)
	if r != cuapi.Success {
		return false, r
	}
	return e.canAccess(a, b), cuapi.Success
}

func (e *Emulator) canAccess(a, b *device) bool {
	return a != b && e.cfg.peer(a.ordinal, b.ordinal)
}

// DeviceGetP2PAttribute knows access, native atomics, array access and the
// performance rank, which is 0 for every pair.
func (e *Emulator) DeviceGetP2PAttribute(a cuapi.P2PAttribute, src, dst cuapi.Device) (int, cuapi.Result) {
	s, r := e.device(src)
	if r != cuapi.Success {
		return 0, r
	}
	t, r := e.device(dst)
	if r != cuapi.Success {
		return 0, r
	}
	if s == t {
		return 0, cuapi.ErrorInvalidDevice
	}
	switch a {
	case cuapi.P2PPerformanceRank, cuapi.P2POnlyPartialNativeAtomicSupported:
		return 0, cuapi.Success
	case cuapi.P2PAccessSupported, cuapi.P2PNativeAtomicSupported, cuapi.P2PCudaArrayAccessSupported:
		return boolInt(e.canAccess(s, t)), cuapi.Success
	}
	return 0, cuapi.ErrorInvalidValue
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
