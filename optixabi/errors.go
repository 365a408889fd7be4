package optixabi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/raymux/raymux/cuda/dl"
)

// Reasons of an OpenError.
var (
	// ErrUnsupportedPlatform: this build cannot load libraries.
	ErrUnsupportedPlatform = dl.ErrUnsupportedPlatform
	// ErrLibraryMissing: there is no OptiX library on this machine.
	ErrLibraryMissing = errors.New("the OptiX library was not found")
	// ErrLibraryMasked: this is a container that was given the driver without
	// its OptiX library.
	ErrLibraryMasked = errors.New("the OptiX library is not part of what this container got of the driver")
	// ErrLibraryEmpty: the library is a file of 0 bytes.
	ErrLibraryEmpty = errors.New("the OptiX library is an empty file")
	// ErrLibraryUnusable: there is a file, but it is no usable library.
	ErrLibraryUnusable = errors.New("the OptiX library cannot be loaded")
	// ErrDriverTooOld: the library knows none of our ABIs.
	ErrDriverTooOld = errors.New("the driver is too old for OptiX")
	// ErrDriverIncomplete: the library misses another library of the driver.
	ErrDriverIncomplete = errors.New("the OptiX library lacks another part of the driver")
	// ErrDriverFailed: the library answered with a code that is none of these.
	ErrDriverFailed = errors.New("the OptiX library refused to start")
	// ErrTableSize: the library wants a table of another size. A bug of ours.
	ErrTableSize = errors.New("the OptiX library wants a function table of another size")
	// ErrQueryOptions: the library rejects how it was asked. A bug of ours.
	ErrQueryOptions = errors.New("the OptiX library rejects the options of the query")
	// ErrNullEntry: the table lacks a function that its ABI has.
	ErrNullEntry = errors.New("the OptiX library left a function out of its table")
)

// OpenError says why OptiX cannot be used. It unwraps to its reason, its code
// and its cause.
type OpenError struct {
	Reason error  // one of the reasons above
	Path   string // library file, if one was loaded
	Driver string // driver version, if known
	ABI    ABI    // the ABI in question; 0 when it is not about one
	Code   Result // what the library answered
	Detail string // such as the name of the missing function
	Cause  error  // such as every path tried
	Hint   string
}

// Error says what happened, where, and what to do.
func (e *OpenError) Error() string {
	var b strings.Builder
	b.WriteString(e.Reason.Error())
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	var about []string
	if e.Path != "" {
		about = append(about, e.Path)
	}
	if e.Driver != "" {
		about = append(about, "driver "+e.Driver)
	}
	if e.ABI != 0 {
		about = append(about, fmt.Sprintf("ABI %v", e.ABI))
	}
	if e.Code != Success {
		about = append(about, e.Code.Error())
	}
	if len(about) > 0 {
		b.WriteString(" (" + strings.Join(about, ", ") + ")")
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap gives reason, code and cause.
func (e *OpenError) Unwrap() []error {
	all := []error{e.Reason}
	if e.Code != Success {
		all = append(all, e.Code)
	}
	if e.Cause != nil {
		all = append(all, e.Cause)
	}
	return all
}

// Unavailable reports whether an error of Open, Negotiate or
// DeviceContextCreate means that this machine has no OptiX, as opposed to a
// failure of one that is there: the library is absent or unusable, it knows
// none of our ABIs, or the device is not fit for it.
func Unavailable(err error) bool {
	for _, reason := range []error{
		ErrUnsupportedPlatform, ErrLibraryMissing, ErrLibraryMasked, ErrLibraryEmpty, ErrLibraryUnusable,
		ErrDriverTooOld, ErrDriverIncomplete, ErrorNotSupported, ErrorNotCompatible,
	} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}
