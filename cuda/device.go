package cuda

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Device is one GPU, or one virtual device of the emulator. Its properties are
// read when the driver is opened.
type Device struct {
	drv     *Driver
	ordinal int
	h       cuapi.Device
	lost    atomic.Pointer[LostError]

	name         string
	uuid         [16]byte
	totalMem     uint64
	pciBusID     string
	major, minor int
	sms          int
	maxThreads   uint64 // per block
}

func newDevice(drv *Driver, i int) (*Device, error) {
	d := &Device{drv: drv, ordinal: i}
	var r cuapi.Result
	if d.h, r = drv.api.DeviceGet(i); r != cuapi.Success {
		return nil, newError("cuDeviceGet", r, i, "")
	}
	if d.name, r = drv.api.DeviceGetName(d.h); r != cuapi.Success {
		return nil, newError("cuDeviceGetName", r, i, "")
	}
	if d.uuid, r = drv.api.DeviceGetUUID(d.h); r != cuapi.Success {
		return nil, newError("cuDeviceGetUuid_v2", r, i, "")
	}
	if d.totalMem, r = drv.api.DeviceTotalMem(d.h); r != cuapi.Success {
		return nil, newError("cuDeviceTotalMem_v2", r, i, "")
	}
	if d.pciBusID, r = drv.api.DeviceGetPCIBusID(d.h); r != cuapi.Success {
		return nil, newError("cuDeviceGetPCIBusId", r, i, "")
	}
	var maxThreads int
	for _, a := range []struct {
		attr cuapi.DeviceAttribute
		to   *int
	}{
		{cuapi.AttrComputeCapabilityMajor, &d.major},
		{cuapi.AttrComputeCapabilityMinor, &d.minor},
		{cuapi.AttrMultiprocessorCount, &d.sms},
		{cuapi.AttrMaxThreadsPerBlock, &maxThreads},
	} {
		v, err := d.Attribute(a.attr)
		if err != nil {
			return nil, err
		}
		*a.to = v
	}
	d.maxThreads = uint64(maxThreads)
	return d, nil
}

// String is the ordinal, the name and the compute capability.
func (d *Device) String() string {
	return fmt.Sprintf("device %d: %s, compute capability %d.%d", d.ordinal, d.name, d.major, d.minor)
}

// Driver is the driver that the device belongs to.
func (d *Device) Driver() *Driver { return d.drv }

// Ordinal is the device's number in its driver, from 0.
func (d *Device) Ordinal() int { return d.ordinal }

// Name is the product name.
func (d *Device) Name() string { return d.name }

// UUID identifies the device across processes and hosts.
func (d *Device) UUID() [16]byte { return d.uuid }

// TotalMem is the size of the device's memory in bytes.
func (d *Device) TotalMem() uint64 { return d.totalMem }

// PCIBusID is the device's place on the bus, "domain:bus:device.function".
func (d *Device) PCIBusID() string { return d.pciBusID }

// Capability is the compute capability: 9, 0 for compute_90.
func (d *Device) Capability() (major, minor int) { return d.major, d.minor }

// Multiprocessors is the number of streaming multiprocessors.
func (d *Device) Multiprocessors() int { return d.sms }

// Attribute returns any attribute of the device. Cost: one driver call.
func (d *Device) Attribute(a cuapi.DeviceAttribute) (int, error) {
	v, r := d.drv.api.DeviceGetAttribute(a, d.h)
	if r != cuapi.Success {
		return 0, newError("cuDeviceGetAttribute", r, d.ordinal, "attribute "+strconv.Itoa(int(a)))
	}
	return v, nil
}

// CanAccessPeer reports whether the driver says that kernels of d can access
// the memory of peer. The answer is no evidence that the link copies correctly.
// Cost: one driver call, none when both are the same device.
func (d *Device) CanAccessPeer(peer *Device) (bool, error) {
	if peer == nil || peer.drv != d.drv {
		return false, badArg("Device.CanAccessPeer", "peer", "is not a device of the same driver")
	}
	if peer == d {
		return true, nil
	}
	ok, r := d.drv.api.DeviceCanAccessPeer(d.h, peer.h)
	if r != cuapi.Success {
		return false, newError("cuDeviceCanAccessPeer", r, d.ordinal, "peer device "+strconv.Itoa(peer.ordinal))
	}
	return ok, nil
}

// PeerAtomics reports whether the driver says that atomic operations of kernels of d on the
// memory of peer are those of one device, for all widths. Cost: one driver call, none when
// both are the same device.
func (d *Device) PeerAtomics(peer *Device) (bool, error) {
	if peer == nil || peer.drv != d.drv {
		return false, badArg("Device.PeerAtomics", "peer", "is not a device of the same driver")
	}
	if peer == d {
		return true, nil
	}
	v, r := d.drv.api.DeviceGetP2PAttribute(cuapi.P2PNativeAtomicSupported, d.h, peer.h)
	if r != cuapi.Success {
		return false, newError("cuDeviceGetP2PAttribute", r, d.ordinal, "peer device "+strconv.Itoa(peer.ordinal))
	}
	return v != 0, nil
}
