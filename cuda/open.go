package cuda

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/dl"
)

// config collects the options of Open, OpenAPI and OpenEmulator.
type config struct {
	libraryPath string
	logger      *slog.Logger
	wrap        func(cuapi.API) cuapi.API // nil: none
	leakSites   bool
}

// Option changes how a driver is opened.
type Option func(*config)

// WithLibraryPath takes the driver library from an absolute path and nowhere
// else. It wins over the environment variable RAYMUX_LIBCUDA, which does the
// same and is ignored in programs that run with raised privileges.
func WithLibraryPath(path string) Option { return func(c *config) { c.libraryPath = path } }

// WithLogger receives what the package has to tell beside errors, and what
// scenes of the driver have that are given no logger. The default is silence.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l != nil {
			c.logger = l
		}
	}
}

// WithAPI wraps whichever driver is opened: a ledger, a tracer, a source of
// faults. Given several times, the last one is outermost.
func WithAPI(wrapper func(cuapi.API) cuapi.API) Option {
	return func(c *config) {
		if wrapper == nil {
			return
		}
		inner := c.wrap
		if inner == nil {
			c.wrap = wrapper
			return
		}
		c.wrap = func(api cuapi.API) cuapi.API { return wrapper(inner(api)) }
	}
}

// newConfig applies options to the defaults.
func newConfig(opts []Option) config {
	c := config{logger: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// MinDriverVersion is the oldest driver that Open accepts: CUDA 12.0, branch
// 525. The committed programs are PTX of ISA 8.0, which older drivers refuse
// to compile, so refusing at open says it earlier and with the cure.
const MinDriverVersion = 12000

// EnvLibrary names the environment variable with the absolute path of the
// driver library.
const EnvLibrary = "RAYMUX_LIBCUDA"

// Open loads the NVIDIA driver. It never falls back to the emulator: whoever
// wants that calls OpenEmulator. The error is an *OpenError, whose Reason is
// ErrUnsupportedPlatform, ErrDriverMissing, ErrStubLibrary, ErrDriverTooOld,
// ErrNoDevice or ErrDriverFailed.
func Open(opts ...Option) (*Driver, error) {
	cfg := newConfig(opts)
	lib, err := openLibrary(cfg, thisMachine())
	if err != nil {
		return nil, err
	}
	api, version, err := start(lib)
	if err != nil {
		return nil, err
	}
	if _, err := countDevices(api, lib.Path(), version); err != nil {
		return nil, err
	}
	cfg.logger.Debug("driver opened", "library", lib.Path())
	return OpenAPI(api, opts...)
}

// openLibrary loads the driver library without calling it.
func openLibrary(cfg config, m machine) (*dl.Library, error) {
	override := cfg.libraryPath
	if override == "" {
		override = m.getenv(EnvLibrary)
	}
	lib, err := dl.Open(libraryNames(runtime.GOOS), dl.Options{
		Dirs:     libraryDirs(runtime.GOOS, runtime.GOARCH),
		Override: override,
		Symbol:   entries[symInit].name,
	})
	if err == nil {
		return lib, nil
	}
	failed := &OpenError{Reason: ErrDriverMissing, Cause: err, Hint: m.missingHint(err, override)}
	switch {
	case errors.Is(err, dl.ErrUnsupportedPlatform):
		failed.Reason, failed.Cause = ErrUnsupportedPlatform, nil
	case errors.Is(err, dl.ErrLinkStub):
		failed.Reason = ErrStubLibrary
	}
	return nil, failed
}

// start checks the driver and initialises it. The version is returned beside
// an error too, when it is known.
func start(lib *dl.Library) (*native, int, error) {
	api := newNative(lib)
	failed := &OpenError{Path: lib.Path()}
	// The version comes first, since an old driver is the usual reason for
	// whatever else is missing.
	version, r := api.DriverGetVersion()
	if r != cuapi.Success {
		return nil, version, failed.answer(r)
	}
	failed.Version = version
	if version < MinDriverVersion {
		return nil, version, failed.tooOld(nil)
	}
	if missing := api.require(); missing != nil {
		return nil, version, failed.tooOld(missing)
	}
	if r := api.Init(0); r != cuapi.Success {
		return nil, version, failed.answer(r)
	}
	return api, version, nil
}

// countDevices asks how many GPUs the driver sees; none is an error.
func countDevices(api *native, path string, version int) (int, error) {
	n, r := api.DeviceGetCount()
	if r == cuapi.Success && n == 0 {
		r = cuapi.ErrorNoDevice
	}
	if r != cuapi.Success {
		return 0, (&OpenError{Path: path, Version: version}).answer(r)
	}
	return n, nil
}

// tooOld completes the error for a driver that cannot serve us.
func (e *OpenError) tooOld(missing *SymbolError) *OpenError {
	e.Reason = ErrDriverTooOld
	if missing != nil {
		e.Cause = missing
	}
	e.Hint = fmt.Sprintf("Raymux needs a driver for CUDA %s or newer (branch 525 or newer): update the NVIDIA driver; on Windows Subsystem for Linux the one of Windows", versionText(MinDriverVersion))
	return e
}

// answer completes the error for a driver that answered with a code.
func (e *OpenError) answer(r cuapi.Result) *OpenError {
	e.Code, e.Hint = r, hint(r)
	switch r {
	case cuapi.ErrorStubLibrary:
		e.Reason = ErrStubLibrary
	case cuapi.ErrorNoDevice:
		e.Reason = ErrNoDevice
	case cuapi.ErrorCallRequiresNewerDriver:
		// Only an absent cuDriverGetVersion gives this before the version
		// is known.
		return e.tooOld(entries[symDriverGetVersion].missing())
	default:
		e.Reason = ErrDriverFailed
	}
	return e
}
