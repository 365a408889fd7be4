package multi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/scene"
)

// Reasons for which New refuses a set of devices, or a call is refused. Use
// errors.Is.
var (
	ErrDeviceList = errors.New("multi: unusable device list")
	ErrMixed      = errors.New("multi: devices differ")
	ErrNoPeer     = errors.New("multi: no working peer access")
	ErrDiverged   = errors.New("multi: replicas diverged")
	// ErrOneDevice: a calibration compares devices.
	ErrOneDevice = errors.New("multi: CalibrateDevices needs several devices")
	// ErrCalibrating: another calibration of the scene is running.
	ErrCalibrating = errors.New("multi: the scene is being calibrated")
	// ErrCalibration: a record contradicts itself, or is of other devices.
	ErrCalibration = errors.New("multi: unusable calibration")
	// ErrNotStreamed: no call has streamed a result to the sink that is asked for it.
	ErrNotStreamed = errors.New("multi: the sink has no result: no call with its Offload has come to stream one")
	// ErrClosed and ErrSinkClosed also are cuda.ErrClosed.
	ErrClosed     = fmt.Errorf("multi: the scene is closed (%w)", cuda.ErrClosed)
	ErrSinkClosed = fmt.Errorf("multi: the sink is closed (%w)", cuda.ErrClosed)
)

// badArg is the error of an argument, as package scene has it.
func badArg(op, arg, format string, args ...any) error {
	return &scene.ArgumentError{Op: op, Arg: arg, Detail: fmt.Sprintf(format, args...)}
}

// DeviceError says on which device of the set an operation failed, and for which rows.
type DeviceError struct {
	Position int           // in the device list
	Device   int           // ordinal
	Op       string        // what was being done
	Chunk    chunked.Range // the rows of a query; empty when the failure is of no chunk
	Code     cuapi.Result  // of the driver; Success when it was not the driver that failed
	Err      error         // the cause
}

func (e *DeviceError) Error() string {
	rows := ""
	if e.Chunk.Len() > 0 {
		rows = fmt.Sprintf(", rows %d to %d", e.Chunk.Begin, e.Chunk.End)
	}
	return fmt.Sprintf("multi: %s on device %d (position %d%s): %v", e.Op, e.Device, e.Position, rows, e.Err)
}

// newDeviceError finds the driver's code in err.
func newDeviceError(position, ordinal int, op string, rows chunked.Range, err error) error {
	e := &DeviceError{Position: position, Device: ordinal, Op: op, Chunk: rows, Err: err}
	errors.As(err, &e.Code)
	return e
}

// Unwrap is the cause.
func (e *DeviceError) Unwrap() error { return e.Err }

// DivergedError is the answer of a set of which a mutation failed half way:
// some replicas may hold the new geometry and some the old. Build recovers.
type DivergedError struct {
	Op  string // the mutation that failed
	Err error  // the cause
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
		fmt.Fprintf(&b, "; %s: %s", pair(l.From, l.To), l.Trouble())
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
