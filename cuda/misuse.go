package cuda

import (
	"fmt"
)

// WrongDeviceError says that an argument belongs to another device than the
// call needs. It matches ErrWrongDevice, and nothing was enqueued.
type WrongDeviceError struct {
	Arg  string // the argument, as the called function names it
	Want int    // ordinal of the device that the call works on
	Have int    // ordinal of the device that the argument belongs to
}

func (e *WrongDeviceError) Error() string {
	return fmt.Sprintf("cuda: %s belongs to device %d, but the call works on device %d; "+
		"copy it there first, or use a stream of device %d", e.Arg, e.Have, e.Want, e.Have)
}

// Is reports whether target is ErrWrongDevice.
func (e *WrongDeviceError) Is(target error) bool { return target == ErrWrongDevice }

// wrongDevice refuses an argument of one device in a call that works on another one.
func wrongDevice(op, arg string, want, have *Device) error {
	if have.drv != want.drv { // ordinals would say nothing
		return badArg(op, arg, "belongs to another driver")
	}
	return &WrongDeviceError{Arg: arg, Want: want.ordinal, Have: have.ordinal}
}

// ArgumentError says which argument of a call is unusable and why. The driver
// was not called.
type ArgumentError struct {
	Op     string // the function that was called
	Arg    string // the argument, as that function names it
	Detail string // what was given and what is accepted
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("cuda: %s: %s: %s", e.Op, e.Arg, e.Detail)
}

func badArg(op, arg, format string, args ...any) error {
	return &ArgumentError{Op: op, Arg: arg, Detail: fmt.Sprintf(format, args...)}
}

// closedError says what a call came too late for. It matches ErrClosed.
type closedError struct{ text string }

func (e *closedError) Error() string { return e.text }

func (e *closedError) Is(target error) bool { return target == ErrClosed }

func errClosed(what string) error { return &closedError{"cuda: the " + what + " is closed"} }

func errFreed(arg string) error { return &closedError{"cuda: the memory of " + arg + " was freed"} }
