package cuda

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/raymux/raymux/cuda/cuapi"
)

// OptLevel is how hard the JIT compiler optimises.
type OptLevel int

// Values of OptLevel. The zero value leaves the choice to the driver, which
// takes the highest level.
const (
	OptDefault OptLevel = iota
	Opt0
	Opt1
	Opt2
	Opt3
	Opt4
)

// JITOptions are the options of Context.LoadModule.
type JITOptions struct {
	MaxRegisters int      // per thread; 0: the compiler's choice
	OptLevel     OptLevel // 0: the driver's choice
	LineInfo     bool     // keep source lines for profilers
	Verbose      bool     // more text in Module.Log
}

// ModuleError says why a module could not be loaded.
type ModuleError struct {
	Err error  // the failed call: *Error, or *LostError
	Log string // what the JIT compiler wrote; names line and instruction
}

func (e *ModuleError) Error() string {
	if e.Log == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v: %s", e.Err, e.Log)
}

// Unwrap returns the failed call.
func (e *ModuleError) Unwrap() error { return e.Err }

// Module is loaded device code.
type Module struct {
	c       *Context
	h       cuapi.Module
	log     string
	took    time.Duration
	gate    gate
	child   child
	cleanup runtime.Cleanup
}

// maxJITLog bounds what is kept of the compiler's texts, in bytes.
const maxJITLog = 16 << 10

// LoadModule compiles PTX text, or loads a cubin, for the device. A failure is
// a *ModuleError with the compiler's log. Cost: one driver call, which compiles
// (milliseconds to seconds) unless the driver's cache has the result. When
// memory runs out, the pool is trimmed and the load tried once more.
func (c *Context) LoadModule(image []byte, o JITOptions) (*Module, error) {
	if len(image) == 0 {
		return nil, badArg("Context.LoadModule", "image", "is empty")
	}
	if o.OptLevel < OptDefault || o.OptLevel > Opt4 {
		return nil, badArg("Context.LoadModule", "OptLevel", "%d given, 0 (OptDefault) to %d (Opt4) accepted", int(o.OptLevel), int(Opt4))
	}
	m := &Module{c: c}
	m.gate.init()
	var opts *cuapi.JITOptions
	load := func() cuapi.Result {
		opts = &cuapi.JITOptions{
			MaxRegisters: o.MaxRegisters,
			OptLevel:     int(o.OptLevel) - 1, // negative: the driver's default
			LineInfo:     o.LineInfo,
			Verbose:      o.Verbose,
			InfoLog:      make([]byte, maxJITLog),
			ErrorLog:     make([]byte, maxJITLog),
		}
		var r cuapi.Result
		m.h, r = c.api().ModuleLoadDataEx(image, opts)
		return r
	}
	err := c.create(func() error {
		if err := c.check("cuModuleLoadDataEx", c.retryTrimmed(load)); err != nil {
			return &ModuleError{Err: err, Log: logText(opts.ErrorLog)}
		}
		return nil
	}, m.destroy)
	if err != nil {
		return nil, err
	}
	m.log = logText(opts.InfoLog)
	m.took = time.Duration(float64(opts.WallTimeMs) * float64(time.Millisecond))
	m.child = c.adopt(kindModule, 0)
	m.cleanup = runtime.AddCleanup(m, abandoned.report, abandoned{c.dev.drv, "module", c.dev.ordinal})
	return m, nil
}

// logText is a compiler log as text, without the end mark of C strings.
func logText(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return strings.TrimSpace(string(b))
}

func (m *Module) destroy() error {
	return m.c.dev.checkDestroy("cuModuleUnload", m.c.api().ModuleUnload(m.h), "")
}

// Context is the context of the module.
func (m *Module) Context() *Context { return m.c }

// Log is what the JIT compiler reported: register counts and warnings with
// JITOptions.Verbose, else mostly nothing.
func (m *Module) Log() string { return m.log }

// CompileTime is how long the JIT compiler worked; about zero when its cache
// had the result.
func (m *Module) CompileTime() time.Duration { return m.took }

// Function returns the kernel with the given entry name. It stays valid until
// the module is closed. Cost: three driver calls.
func (m *Module) Function(name string) (*Function, error) {
	f := &Function{m: m, name: name}
	err := m.call(func() error {
		var r cuapi.Result
		if f.h, r = m.c.api().ModuleGetFunction(m.h, name); r != cuapi.Success {
			return m.c.dev.failure("cuModuleGetFunction", r, fmt.Sprintf("kernel %q", name))
		}
		limit, r := m.c.api().FuncGetAttribute(cuapi.FuncMaxThreadsPerBlock, f.h)
		f.maxThreads = uint64(max(limit, 0))
		return m.c.dev.check("cuFuncGetAttribute", r, fmt.Sprintf("kernel %q", name))
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Global returns address and size in bytes of a variable of the module. Cost:
// one driver call.
func (m *Module) Global(name string) (addr, size uint64, err error) {
	err = m.call(func() error {
		p, n, r := m.c.api().ModuleGetGlobal(m.h, name)
		addr, size = uint64(p), n
		return m.c.dev.check("cuModuleGetGlobal_v2", r, fmt.Sprintf("variable %q", name))
	})
	return addr, size, err
}

// Close unloads the module once calls in progress have returned. Its kernels
// must have finished. Later calls return what the first returned. Cost: one
// driver call.
func (m *Module) Close() error {
	if m == nil {
		return nil
	}
	return m.gate.close(func() error {
		m.cleanup.Stop()
		return firstError(m.c.destroy(m.destroy), m.c.release(m.child))
	})
}

// call runs f with the module open and its context current.
func (m *Module) call(f func() error) error {
	if !m.gate.enter() {
		return errClosed("module")
	}
	defer m.gate.exit()
	return m.c.with(f)
}
