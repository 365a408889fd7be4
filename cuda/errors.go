package cuda

import (
	"errors"
	"fmt"
	"strings"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/dl"
)

// Errors to compare with by errors.Is. Most come inside a typed error that
// carries the details; docs/errors.md lists each with its cause and its cure.
var (
	// ErrDriverMissing says that no driver library could be loaded.
	ErrDriverMissing = errors.New("cuda: no NVIDIA driver found")
	// ErrDriverTooOld says that the driver is older than MinDriverVersion or
	// lacks an entry point that is needed.
	ErrDriverTooOld = errors.New("cuda: the NVIDIA driver is too old")
	// ErrDriverFailed says that a driver was found and did not start.
	ErrDriverFailed = errors.New("cuda: the NVIDIA driver did not start")
	// ErrStubLibrary says that the toolkit's link-time stub was found in place
	// of the driver.
	ErrStubLibrary = errors.New("cuda: the library found is the toolkit's link-time stub, not a driver")
	// ErrNoDevice says that the driver works and sees no GPU.
	ErrNoDevice = errors.New("cuda: the driver sees no GPU")
	// ErrSymbolMissing says that the driver lacks an entry point; it comes as
	// a *SymbolError.
	ErrSymbolMissing = errors.New("cuda: the driver lacks an entry point")
	// ErrDeviceLost says that an earlier error made the device unusable for
	// this process. No driver call is made any more; restart the process.
	ErrDeviceLost = errors.New("cuda: the device is lost to this process")
	// ErrClosed says that the object, or one that it belongs to, is closed, or
	// that memory was freed.
	ErrClosed = errors.New("cuda: closed")
	// ErrWrongDevice says that an argument belongs to another device than the
	// call.
	ErrWrongDevice = errors.New("cuda: argument of another device")
	// ErrUnsupportedPlatform says that this build cannot load a driver.
	ErrUnsupportedPlatform = dl.ErrUnsupportedPlatform
	// ErrOutOfMemory is the driver's code 2.
	ErrOutOfMemory error = cuapi.ErrorOutOfMemory
)

// NoDevice is the Error.Device of a failure that no device is known for.
const NoDevice = -1

// Error is a failed driver call. It unwraps to its code, and matches the
// sentinel that the code stands for: errors.Is(err, cuda.ErrNoDevice).
type Error struct {
	Op     string       // what was called, as the driver's entry point or as our operation
	Code   cuapi.Result // never Success
	Device int          // ordinal, or NoDevice
	Detail string       // what the call was given or reported; may be empty
	Hint   string       // what to do; may be empty
}

// newError describes a failed call; the hint follows from the code.
func newError(op string, code cuapi.Result, device int, detail string) *Error {
	return &Error{Op: op, Code: code, Device: device, Detail: detail, Hint: hint(code)}
}

// Error is one line: operation, device, code, detail, hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("cuda: ")
	b.WriteString(e.Op)
	if e.Device != NoDevice {
		fmt.Fprintf(&b, " on device %d", e.Device)
	}
	b.WriteString(": ")
	b.WriteString(e.Code.Error())
	if e.Detail != "" {
		b.WriteString(": ")
		b.WriteString(e.Detail)
	}
	if e.Hint != "" {
		b.WriteString(" (hint: ")
		b.WriteString(e.Hint)
		b.WriteByte(')')
	}
	return b.String()
}

// Unwrap is the code.
func (e *Error) Unwrap() error { return e.Code }

// Is matches the sentinels that the code stands for.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrStubLibrary:
		return e.Code == cuapi.ErrorStubLibrary
	case ErrNoDevice:
		return e.Code == cuapi.ErrorNoDevice
	case ErrDriverTooOld:
		return e.Code == cuapi.ErrorCallRequiresNewerDriver || e.Code == cuapi.ErrorUnsupportedPTXVersion
	case ErrSymbolMissing:
		return e.Code == cuapi.ErrorCallRequiresNewerDriver
	case ErrDeviceLost:
		return e.Code.Sticky()
	}
	return false
}

// As gives the *SymbolError of a call whose entry point the driver lacks.
func (e *Error) As(target any) bool {
	out, ok := target.(**SymbolError)
	if !ok || e.Code != cuapi.ErrorCallRequiresNewerDriver {
		return false
	}
	entry, ok := entryFor(e.Op)
	if ok {
		*out = entry.missing()
	}
	return ok
}

// SymbolError is a driver without an entry point that is needed. It matches
// ErrSymbolMissing and ErrDriverTooOld.
type SymbolError struct {
	Name  string // exported name
	Since string // first CUDA version whose driver has it
}

// Error names the entry point and the version that brought it.
func (e *SymbolError) Error() string {
	return fmt.Sprintf("cuda: the driver lacks %s, which drivers have since CUDA %s", e.Name, e.Since)
}

// Is matches the two sentinels of the type.
func (e *SymbolError) Is(target error) bool {
	return target == ErrSymbolMissing || target == ErrDriverTooOld
}

// OpenError says why Open gave no driver. It unwraps to Reason and to Cause.
type OpenError struct {
	Reason  error        // one of the sentinels
	Path    string       // library that was loaded; empty when none was
	Version int          // driver's CUDA version as 1000*major + 10*minor; 0 when unknown
	Code    cuapi.Result // what the driver answered; Success when it was not asked
	Cause   error        // *dl.OpenError, *SymbolError or *Error; may be nil
	Hint    string       // what to do
}

// Error is one line: reason, library, version, cause, hint. Of the paths that were
// tried it gives the number; Probe and the *dl.OpenError in Cause list them.
func (e *OpenError) Error() string {
	var b strings.Builder
	b.WriteString(e.Reason.Error())
	if e.Path != "" {
		fmt.Fprintf(&b, ": %s", e.Path)
		if e.Version != 0 {
			fmt.Fprintf(&b, " (CUDA %s)", versionText(e.Version))
		}
	}
	var load *dl.OpenError
	switch {
	case errors.As(e.Cause, &load):
		fmt.Fprintf(&b, ": %s", load.Summary())
	case e.Cause != nil:
		fmt.Fprintf(&b, ": %v", e.Cause)
	case e.Code != cuapi.Success:
		fmt.Fprintf(&b, ": %v", e.Code)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, " (hint: %s)", e.Hint)
	}
	return b.String()
}

// Unwrap gives the reason, the cause and the driver's code.
func (e *OpenError) Unwrap() []error {
	list := []error{e.Reason}
	if e.Cause != nil {
		list = append(list, e.Cause)
	}
	if e.Code != cuapi.Success {
		list = append(list, e.Code)
	}
	return list
}

// versionText writes 12080 as 12.8.
func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
