package wrap

import (
	"fmt"
	"sync"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Fault makes chosen calls fail without reaching the driver. A sticky code
// (cuapi.Result.Sticky) also makes every later call on that device fail, as a
// lost device does, and has an emulator below drop what the device was to do.
type Fault struct {
	*Hooked
	inner cuapi.API

	mu    sync.Mutex
	calls int
	fired int
	rules []*faultRule
	dead  map[cuapi.Device]cuapi.Result
}

// faultRule counts matching calls down to the one that fails.
type faultRule struct {
	left   int // the rule fires when it reaches 0
	code   cuapi.Result
	id     CallID
	byID   bool
	device cuapi.Device // NoDevice: any
}

// NewFault lets every call pass to api until a failure is asked for.
func NewFault(api cuapi.API) *Fault {
	f := &Fault{inner: api, dead: map[cuapi.Device]cuapi.Result{}}
	f.Hooked = NewHooked(api, faultHook{f})
	return f
}

// FailAt makes the k-th call from now fail with r; k counts from 1.
func (f *Fault) FailAt(k int, r cuapi.Result) {
	f.add(&faultRule{left: k, code: r, device: NoDevice})
}

// FailCall makes the k-th call of the named method from now fail with r. The
// error says that no method has the name.
func (f *Fault) FailCall(name string, k int, r cuapi.Result) error {
	id, ok := callByName(name)
	if !ok {
		return fmt.Errorf("wrap: cuapi.API has no method %q", name)
	}
	f.add(&faultRule{left: k, code: r, id: id, byID: true, device: NoDevice})
	return nil
}

// FailDevice makes the k-th call from now that works on device d fail with r:
// a call that names d, or one made while a context of d is current.
func (f *Fault) FailDevice(d cuapi.Device, k int, r cuapi.Result) {
	f.add(&faultRule{left: k, code: r, device: d})
}

func (f *Fault) add(r *faultRule) {
	f.mu.Lock()
	f.rules = append(f.rules, r)
	f.mu.Unlock()
}

// Calls is the number of calls seen, including those that failed on purpose.
func (f *Fault) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Fired is the number of calls that failed on purpose, without those that
// failed because their device was lost.
func (f *Fault) Fired() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// Reset forgets all rules, lost devices and counts. A device that an emulator
// below has lost stays lost.
func (f *Fault) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.fired, f.rules = 0, 0, nil
	clear(f.dead)
}

// faultHook keeps the methods of a hook out of the wrapper's own.
type faultHook struct{ *Fault }

func (f faultHook) Before(c Call) (cuapi.Result, bool) {
	device := f.deviceOf(c)
	code, fails, lost := f.judge(c.ID, device)
	if lost {
		f.KillDevice(int(device)) // under no lock: it waits
	}
	return code, fails
}

// judge counts a call and decides whether it fails and whether its device is lost by that.
func (f *Fault) judge(id CallID, device cuapi.Device) (code cuapi.Result, fails, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	// Every rule counts every call that it matches; the first to fire wins.
	for _, r := range f.rules {
		if r.byID && r.id != id || r.device != NoDevice && r.device != device {
			continue
		}
		r.left--
		if r.left == 0 && !fails {
			code, fails = r.code, true
		}
	}
	if dead, ok := f.dead[device]; ok && needsContext(id) {
		return dead, true, false
	}
	if !fails {
		return cuapi.Success, false, false
	}
	f.fired++
	if lost = code.Sticky() && device != NoDevice; lost {
		f.dead[device] = code
	}
	return code, true, lost
}

func (f faultHook) After(Call, cuapi.Result) {}

// deviceOf asks the driver for the device of the current context when the call
// names none.
func (f *Fault) deviceOf(c Call) cuapi.Device {
	if c.Device != NoDevice || !needsContext(c.ID) {
		return c.Device
	}
	d, r := f.inner.CtxGetDevice()
	if r != cuapi.Success {
		return NoDevice
	}
	return d
}

// needsContext reports whether a call works inside a context. Queries of the
// driver and of devices, and the release of a primary context, still answer
// when the device is lost.
func needsContext(id CallID) bool {
	switch {
	case id <= CallDeviceGetP2PAttribute:
		return false
	case id == CallDevicePrimaryCtxRelease, id == CallDevicePrimaryCtxGetState,
		id == CallCtxGetCurrent, id == CallCtxSetCurrent, id == CallCtxGetDevice:
		return false
	}
	return true
}
