package multi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/raymux/raymux/cuda"
)

// Reasons for which New refuses a set of devices, or a call is refused. Use
// errors.Is.
var (
	ErrDeviceList = errors.New("multi: unusable device list")
	ErrMixed      = errors.New("multi: devices differ")
	ErrNoPeer     = errors.New("multi: no working peer access")
	ErrDiverged   = errors.New("multi: replicas diverged")
	// ErrClosed also is cuda.ErrClosed.
	ErrClosed = fmt.Errorf("multi: the scene is closed (%w)", cuda.ErrClosed)
)

// DeviceError says on which device of the set an operation failed.
type DeviceError struct {
	Position int    // in the device list
	Device   int    // ordinal
	Op       string // what was being done
	Err      error
}

func (e *DeviceError) Error() string {
	return fmt.Sprintf("multi: %s on device %d (position %d): %v", e.Op, e.Device, e.Position, e.Err)
}

// Unwrap is the cause.
func (e *DeviceError) Unwrap() error { return e.Err }

// DivergedError is the answer of a set of which a mutation failed half way:
// some replicas may hold the new geometry and some the old. Build recovers.
type DivergedError struct {
	Op  string // the mutation that failed
	Err error
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("multi: replicas diverged when %s failed (%v): call Build", e.Op, e.Err)
}

// Unwrap is the cause; the error also is ErrDiverged.
func (e *DivergedError) Unwrap() []error { return []error{ErrDiverged, e.Err} }

// PeerError lists the directed pairs without working peer access.
type PeerError struct{ Links []Link }

func (e *PeerError) Error() string {
	var b strings.Builder
	b.WriteString("multi: no working peer access")
	for _, l := range e.Links {
		fmt.Fprintf(&b, "; device %d -> %d: %s", l.From, l.To, l.Trouble())
	}
	b.WriteString(". Set AllowNoPeerAccess to stage rows through the host, or use one process per device")
	return b.String()
}

// Is reports that a PeerError is ErrNoPeer.
func (e *PeerError) Is(target error) bool { return target == ErrNoPeer }

// Unwrap is what went wrong during the tests, if anything did.
func (e *PeerError) Unwrap() []error {
	var errs []error
	for _, l := range e.Links {
		if l.Err != nil {
			errs = append(errs, l.Err)
		}
	}
	return errs
}
