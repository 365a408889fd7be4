package wrap

import (
	"strconv"

	"github.com/raymux/raymux/cuda/cuapi"
)

// CallID is one call of the driver interface. Its String is the method's name.
type CallID uint8

// NoDevice is the Call.Device of a call that names no device.
const NoDevice cuapi.Device = -1

// Call is what a hook learns of a call.
type Call struct {
	ID     CallID
	Device cuapi.Device // the first device among the arguments, or NoDevice
	Handle uint64       // the first handle among the arguments; in After, the one that the call made
	Size   uint64       // bytes of host memory, or the argument n: bytes, elements for MemsetD32
	Host   []byte       // host memory given or made; valid during the hook only
}

// Hook is told of every call. Both methods run on the calling thread and may
// run concurrently.
type Hook interface {
	// Before may stop the call: then its results are zero and its code is the
	// one given, and After is not called.
	Before(c Call) (cuapi.Result, bool)
	// After is told the code.
	After(c Call, r cuapi.Result)
}

// Hooked forwards to an implementation of the interface and tells a hook.
type Hooked struct {
	api  cuapi.API
	hook Hook
}

var _ cuapi.API = (*Hooked)(nil)

// NewHooked puts hook around api.
func NewHooked(api cuapi.API, hook Hook) *Hooked { return &Hooked{api: api, hook: hook} }

// Name is the name of the wrapped implementation.
func (h *Hooked) Name() string { return h.api.Name() }

// killer is a driver that can lose a device, as the emulator does.
type killer interface{ KillDevice(ordinal int) }

// KillDevice has the wrapped implementation lose a device, if it can.
func (h *Hooked) KillDevice(ordinal int) {
	if k, ok := h.api.(killer); ok {
		k.KillDevice(ordinal)
	}
}

// String is the name of the method.
func (id CallID) String() string {
	if int(id) < len(callNames) {
		return callNames[id]
	}
	return "Call(" + strconv.Itoa(int(id)) + ")"
}

// callByName is the inverse of String.
func callByName(name string) (CallID, bool) {
	for id, n := range callNames {
		if n == name {
			return CallID(id), true
		}
	}
	return 0, false
}
