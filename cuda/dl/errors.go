package dl

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

var (
	// ErrUnsupportedPlatform is returned by Open in a build that cannot load
	// libraries: built with the tag nocuda, or for a platform without drivers.
	ErrUnsupportedPlatform = errors.New("this build cannot load shared libraries (tag nocuda, or no driver exists for the platform)")
	// ErrRelativePath refuses an override that is not an absolute path.
	ErrRelativePath = errors.New("the path is not absolute")
	// ErrEmptyFile is the cause for a file of zero bytes.
	ErrEmptyFile = errors.New("the file has 0 bytes")
	// ErrWrongMachine is the cause for a library of another architecture.
	ErrWrongMachine = errors.New("the library is built for another machine")
	// ErrNotLibrary is the cause for a file that is no shared library at all.
	ErrNotLibrary = errors.New("the file is not a shared library")
	// ErrLinkStub is the cause for a library in a folder named stubs, which
	// exists for linking only.
	ErrLinkStub = errors.New("the file is a link-time stub of the toolkit, not a driver")
	// ErrNoSymbol is the cause for a library without Options.Symbol.
	ErrNoSymbol = errors.New("the library lacks the expected symbol")
)

// Attempt is one path that Open tried.
type Attempt struct {
	Path  string // a bare name (searched by the system loader) or a full path
	Cause error  // why it was not used
}

// String is the path and the cause, which in the loader's own words begins with
// the path too.
func (a Attempt) String() string {
	return a.Path + ": " + strings.TrimPrefix(a.Cause.Error(), a.Path+": ")
}

// existing reports whether something was found at the path. What the loader
// says about a bare name does not tell.
func (a Attempt) existing() bool {
	if filepath.IsAbs(a.Path) {
		return !errors.Is(a.Cause, fs.ErrNotExist)
	}
	return errors.Is(a.Cause, ErrLinkStub) || errors.Is(a.Cause, ErrNoSymbol)
}

// OpenError says that no candidate could be loaded.
type OpenError struct {
	Names    []string
	Attempts []Attempt // in the order they were made
}

// Error lists every attempt with its cause. It grows with their number; see
// Summary.
func (e *OpenError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cannot load %s; tried", strings.Join(e.Names, " or "))
	for i, a := range e.Attempts {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, " %v", a)
	}
	return b.String()
}

// Summary is Error in few words: the number of attempts, and of these only the
// first that found a file.
func (e *OpenError) Summary() string {
	if len(e.Attempts) == 1 {
		return e.Attempts[0].String()
	}
	text := fmt.Sprintf("tried %s in %d places", strings.Join(e.Names, " and "), len(e.Attempts))
	if i := slices.IndexFunc(e.Attempts, Attempt.existing); i >= 0 {
		text += ", found " + e.Attempts[i].String()
	}
	return text
}

// Unwrap gives the causes, so that errors.Is(err, ErrEmptyFile) and the like
// answer whether any attempt failed that way.
func (e *OpenError) Unwrap() []error {
	causes := make([]error, len(e.Attempts))
	for i, a := range e.Attempts {
		causes[i] = a.Cause
	}
	return causes
}
