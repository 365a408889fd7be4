package cuda

import (
	"log/slog"

	"github.com/raymux/raymux/cuda/cuapi"
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

// WithLogger receives what the package has to tell beside errors. The default
// is silence.
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
