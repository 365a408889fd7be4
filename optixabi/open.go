package optixabi

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/raymux/raymux/cuda/dl"
)

// EnvLibrary names the environment variable with the absolute path of the
// OptiX library. It is ignored in programs that run with raised privileges.
const EnvLibrary = "RAYMUX_LIBOPTIX"

// entryPoint is the one function that the library exports for us.
const entryPoint = "optixQueryFunctionTable"

// Options refine Open. The zero value looks in the usual places.
type Options struct {
	// Path is an absolute path of the library; nothing else is tried. It wins
	// over EnvLibrary.
	Path string
	// DriverDir is the folder of the CUDA driver library that is in use, by
	// default that of the one in this process. It is looked at first, because
	// OptiX needs siblings of its own version.
	DriverDir string
}

// Library is the OptiX library, loaded and not yet asked for a table. It stays
// loaded: it owns threads.
type Library struct {
	query  uintptr
	path   string
	driver string
}

// New wraps a library that is loaded already, or a stand-in for one. The error
// is an *OpenError for one that lacks the entry point.
func New(lib *dl.Library) (*Library, error) {
	fn, ok := lib.Lookup(entryPoint)
	if !ok {
		return nil, &OpenError{Reason: ErrLibraryUnusable, Path: lib.Path(), Detail: "it does not export " + entryPoint, Hint: "reinstall the NVIDIA driver"}
	}
	return &Library{query: fn, path: lib.Path(), driver: driverVersion(lib.Path())}, nil
}

// Path is the file of the library, as far as it can be told.
func (l *Library) Path() string { return l.path }

// DriverVersion is the driver version that the name of the library file tells,
// such as "580.159.03"; empty when it tells none.
func (l *Library) DriverVersion() string { return l.driver }

var versioned = regexp.MustCompile(`\.so\.([0-9]{3,}(?:\.[0-9]+)+)$`)

// driverVersion reads the version off the file behind a library path.
func driverVersion(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if m := versioned.FindStringSubmatch(path); m != nil {
		return m[1]
	}
	return ""
}

// Open loads the OptiX library. The error is an *OpenError whose reason is
// ErrUnsupportedPlatform, ErrLibraryMissing, ErrLibraryMasked, ErrLibraryEmpty
// or ErrLibraryUnusable.
func Open(o Options) (*Library, error) { return open(o, thisMachine()) }

func open(o Options, m machine) (*Library, error) {
	override := o.Path
	if override == "" {
		override = m.getenv(EnvLibrary)
	}
	lib, err := load(o, override, m)
	if err == nil {
		return New(lib)
	}
	reason := m.reason(err)
	failed := &OpenError{Reason: reason, Cause: err, Hint: m.hint(reason, override != "")}
	if reason == ErrUnsupportedPlatform {
		failed.Cause = nil
	}
	return nil, failed
}

// load tries the driver's own folder, then the names and the usual folders.
func load(o Options, override string, m machine) (*dl.Library, error) {
	name := libraryName(m.goos)
	opts := dl.Options{Symbol: entryPoint, Override: override}
	var first *dl.OpenError
	dir := o.DriverDir
	if dir == "" {
		dir = m.driverDir()
	}
	if override == "" && dir != "" {
		opts.Override = filepath.Join(dir, name)
		lib, err := dl.Open([]string{name}, opts)
		if err == nil || !errors.As(err, &first) {
			return lib, err
		}
		opts.Override = ""
	}
	if override == "" {
		opts.Dirs = m.dirs
	}
	lib, err := dl.Open([]string{name}, opts)
	var all *dl.OpenError
	if first != nil && errors.As(err, &all) {
		all.Attempts = append(first.Attempts, all.Attempts...)
	}
	return lib, err
}

func libraryName(goos string) string {
	if goos == "windows" {
		return "nvoptix.dll"
	}
	return "libnvoptix.so.1"
}

// reason sorts the failure of a load.
func (m machine) reason(err error) error {
	var failed *dl.OpenError
	if !errors.As(err, &failed) {
		return ErrUnsupportedPlatform
	}
	var unusable, empty bool
	for _, a := range failed.Attempts {
		switch {
		case m.device(a.Path):
			// Container runtimes hide a library by putting a device node,
			// usually the null device, in its place.
			return ErrLibraryMasked
		case errors.Is(a.Cause, dl.ErrEmptyFile), strings.Contains(a.Cause.Error(), "file too short"):
			empty = true
		case errors.Is(a.Cause, fs.ErrNotExist):
		case filepath.IsAbs(a.Path), errors.Is(a.Cause, dl.ErrNoSymbol), errors.Is(a.Cause, dl.ErrRelativePath):
			unusable = true
		case !strings.Contains(a.Cause.Error(), "No such file"):
			// A bare name that the system loader found and could not load.
			// Windows words its texts in its own language, so there only
			// full paths tell.
			unusable = unusable || m.goos == "linux"
		}
	}
	switch {
	case empty:
		return ErrLibraryEmpty
	case unusable:
		return ErrLibraryUnusable
	case m.container() && m.hasDriver():
		return ErrLibraryMasked
	}
	return ErrLibraryMissing
}

// hint says what to do about a reason.
func (m machine) hint(reason error, override bool) string {
	const container = "set NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics for the container and start it through the NVIDIA container toolkit"
	switch {
	case reason == ErrUnsupportedPlatform:
		return "build for linux/amd64, linux/arm64 or windows/amd64 without the tag nocuda"
	case override:
		return "only the path given by Options.Path or " + EnvLibrary + " is tried: correct or unset it"
	case reason == ErrLibraryMasked:
		return container
	case reason == ErrLibraryEmpty && m.container():
		return "the container runtime left an empty file in its place: " + container
	case reason == ErrLibraryEmpty, reason == ErrLibraryUnusable:
		return "reinstall the NVIDIA driver"
	case m.wsl():
		return "the driver of the Windows Subsystem for Linux comes without OptiX: use native Linux or Windows, or the CUDA backend"
	case m.container():
		return container
	}
	return "install the full NVIDIA driver, compute-only packages leave OptiX out (on Debian and Ubuntu it is in libnvidia-gl); or use the CUDA backend"
}

// goos is the operating system of this build.
const goos = runtime.GOOS
