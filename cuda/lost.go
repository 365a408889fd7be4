package cuda

import (
	"fmt"

	"github.com/raymux/raymux/cuda/cuapi"
)

// LostError says that a device can no longer be used by this process: a kernel
// faulted or the hardware failed, and every later driver call would fail with
// the same code. It matches ErrDeviceLost and unwraps to the first cause.
// Restart the process to get the device back.
type LostError struct {
	Device int   // ordinal
	Cause  error // the call that reported the fault first
}

func (e *LostError) Error() string {
	return fmt.Sprintf("cuda: device %d is lost to this process (restart it to use the device again): %v", e.Device, e.Cause)
}

// Unwrap returns ErrDeviceLost and the first cause.
func (e *LostError) Unwrap() []error { return []error{ErrDeviceLost, e.Cause} }

// lost is nil as long as the device is usable.
func (d *Device) lostError() error {
	if e := d.lost.Load(); e != nil {
		return e
	}
	return nil
}

// check turns the result of a driver call in a context of d into an error, and
// remembers a code that means the device is lost.
func (d *Device) check(op string, r cuapi.Result, detail string) error {
	if r == cuapi.Success {
		return nil
	}
	return d.failure(op, r, detail)
}

func (d *Device) failure(op string, r cuapi.Result, detail string) error {
	err := newError(op, r, d.ordinal, detail)
	if !r.Sticky() {
		return err
	}
	lost := &LostError{Device: d.ordinal, Cause: err}
	if d.lost.CompareAndSwap(nil, lost) {
		d.drv.log.Error("device lost", "device", d.ordinal, "cause", err)
		return lost
	}
	return d.lostError()
}

// checkDestroy is check for calls that release something: the driver answers
// "deinitialized" while the process exits, when everything is released anyway.
func (d *Device) checkDestroy(op string, r cuapi.Result, detail string) error {
	if r == cuapi.ErrorDeinitialized {
		return nil
	}
	return d.check(op, r, detail)
}
