//go:build windows && amd64 && !nocuda

package dl

import (
	"os"

	"golang.org/x/sys/windows"
)

const supported = true

// load opens one library. A bare name is looked for in System32 alone, never
// in the working folder or on the PATH; a full path may also find its
// neighbours in its own folder.
func load(path string, full bool) (lib *Library, unload func(), err error) {
	var flags uintptr = windows.LOAD_LIBRARY_SEARCH_SYSTEM32
	if full {
		flags |= windows.LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR
	}
	h, err := windows.LoadLibraryEx(path, 0, flags)
	if err != nil {
		return nil, nil, err
	}
	lookup := func(name string) uintptr {
		fn, err := windows.GetProcAddress(h, name)
		if err != nil {
			return 0
		}
		return fn
	}
	return New(path, lookup), func() { _ = windows.FreeLibrary(h) }, nil
}

// checkFile reports an empty file, which Windows calls a bad format.
func checkFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return ErrNotLibrary
	}
	if info.Size() == 0 {
		return ErrEmptyFile
	}
	return nil
}

// fileOf is not needed: a bare name can only come from System32.
func fileOf(uintptr) string { return "" }

// Getenv reads an environment variable that names a library.
func Getenv(name string) string { return os.Getenv(name) }
