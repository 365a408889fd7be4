package dl

import (
	"fmt"
	"path/filepath"
)

// Options refine Open. The zero value tries the bare names only.
type Options struct {
	// Dirs are absolute folders tried after the bare names, in order.
	Dirs []string
	// Override is an absolute path chosen by the user. Nothing else is tried
	// when it is set, so that a wrong setting is seen and not papered over.
	Override string
	// Symbol must be exported by the library; a candidate without it is
	// passed over. It is also how the file behind a bare name is found.
	Symbol string
}

// Library is an opened shared library, or a table that stands for one.
type Library struct {
	path   string
	lookup func(name string) uintptr
}

// New makes a library of a look-up function, which returns 0 for a name that
// it does not know. Tests use it to put functions made by NewCallback in the
// place of a real library.
func New(path string, lookup func(name string) uintptr) *Library {
	return &Library{path: path, lookup: lookup}
}

// Path is the file that was loaded, or the name that was asked for where the
// file behind it cannot be told.
func (l *Library) Path() string { return l.path }

// Lookup returns the address of an exported symbol.
func (l *Library) Lookup(name string) (uintptr, bool) {
	fn := l.lookup(name)
	return fn, fn != 0
}

// Open loads the first usable library: each of names as a bare name, which the
// system loader searches, then each name in each of opts.Dirs. The error is
// ErrUnsupportedPlatform or an *OpenError.
func Open(names []string, opts Options) (*Library, error) {
	if !supported {
		return nil, ErrUnsupportedPlatform
	}
	failed := &OpenError{Names: names}
	for _, path := range candidates(names, opts) {
		lib, err := openOne(path, opts)
		if err == nil {
			return lib, nil
		}
		failed.Attempts = append(failed.Attempts, Attempt{Path: path, Cause: err})
	}
	return nil, failed
}

// candidates lists what Open tries, in order.
func candidates(names []string, opts Options) []string {
	if opts.Override != "" {
		return []string{opts.Override}
	}
	list := append([]string(nil), names...)
	for _, dir := range opts.Dirs {
		for _, name := range names {
			list = append(list, filepath.Join(dir, name))
		}
	}
	return list
}

func openOne(path string, opts Options) (*Library, error) {
	// A name with a separator that is not absolute would be taken relative to
	// the working folder, which is where planted libraries lie.
	full := filepath.IsAbs(path)
	if !full && (opts.Override != "" || filepath.Base(path) != path) {
		return nil, fmt.Errorf("%w: give the full path of the library", ErrRelativePath)
	}
	if full {
		if err := checkFile(path); err != nil {
			return nil, err
		}
	}
	lib, unload, err := load(path, full)
	if err != nil {
		return nil, err
	}
	if opts.Symbol == "" {
		return lib, nil
	}
	fn, ok := lib.Lookup(opts.Symbol)
	if !ok {
		unload()
		return nil, fmt.Errorf("%w %s", ErrNoSymbol, opts.Symbol)
	}
	if file := fileOf(fn); file != "" {
		lib.path = file
	}
	if isStub(lib.path) {
		// Unloaded, because the stub carries the driver's own name: a later
		// open by that name would be given the stub again.
		unload()
		return nil, fmt.Errorf("%w (%s)", ErrLinkStub, lib.path)
	}
	return lib, nil
}

// isStub reports whether a file lies in a folder named stubs.
func isStub(path string) bool {
	return filepath.Base(filepath.Dir(path)) == "stubs"
}
