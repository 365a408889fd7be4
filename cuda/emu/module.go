package emu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

// The newest PTX ISA that the driver accepts: that of CUDA 12.8.
const (
	maxISAMajor = 8
	maxISAMinor = 7
)

// module is PTX text loaded into a context, with memory for its variables.
type module struct {
	ctx     *context
	handle  cuapi.Module
	program *vm.Program
	globals map[string]variable
	addrs   map[string]uint64 // of globals, in the form that launches take
}

type variable struct{ addr, size uint64 }

var (
	versionDirective = regexp.MustCompile(`(?m)^[ \t]*\.version[ \t]+(\d+)\.(\d+)`)
	targetNumber     = regexp.MustCompile(`^sm_(\d+)`)
)

// loadFailure is why an image is refused, with the text for the error log.
type loadFailure struct {
	code cuapi.Result
	text string
}

// ModuleLoadDataEx loads PTX text. It refuses binaries (209), no data (200), a
// newer ISA than the driver's (222), and text that cannot be parsed, uses an
// unknown instruction or asks for a newer device (218); the error log then
// names line and instruction.
func (e *Emulator) ModuleLoadDataEx(image []byte, opts *cuapi.JITOptions) (cuapi.Module, cuapi.Result) {
	c, r := e.enter()
	if r != cuapi.Success {
		return 0, r
	}
	start := time.Now()
	m, failure := c.load(image)
	if opts != nil {
		opts.WallTimeMs = float32(time.Since(start).Seconds() * 1e3)
		opts.InfoLog = opts.InfoLog[:0]
		opts.ErrorLog = opts.ErrorLog[:copy(opts.ErrorLog, failure.text)]
	}
	if failure.code != cuapi.Success {
		return 0, failure.code
	}
	return e.modules.add(m, func(h cuapi.Module) { m.handle = h }), cuapi.Success
}

func (c *context) load(image []byte) (*module, loadFailure) {
	image = bytes.TrimRight(image, "\x00")
	switch {
	case len(image) == 0:
		return nil, loadFailure{cuapi.ErrorInvalidImage, "the image is empty"}
	case bytes.HasPrefix(image, []byte("\x7fELF")):
		return nil, loadFailure{cuapi.ErrorNoBinaryForGPU, "the image is a binary; the emulator runs PTX text"}
	}
	if v := versionDirective.FindSubmatch(image); v != nil {
		major, _ := strconv.Atoi(string(v[1]))
		minor, _ := strconv.Atoi(string(v[2]))
		if major > maxISAMajor || major == maxISAMajor && minor > maxISAMinor {
			return nil, loadFailure{cuapi.ErrorUnsupportedPTXVersion,
				fmt.Sprintf("PTX ISA %d.%d is newer than the driver's %d.%d", major, minor, maxISAMajor, maxISAMinor)}
		}
	}
	p, err := vm.Load(image)
	if err != nil {
		return nil, loadFailure{cuapi.ErrorInvalidPTX, err.Error()}
	}
	if t := targetNumber.FindStringSubmatch(p.Target()); t != nil {
		if sm, _ := strconv.Atoi(t[1]); sm > c.dev.major*10+c.dev.minor {
			return nil, loadFailure{cuapi.ErrorInvalidPTX,
				fmt.Sprintf("target %s is newer than the device's sm_%d%d", p.Target(), c.dev.major, c.dev.minor)}
		}
	}
	m := &module{ctx: c, program: p, globals: map[string]variable{}, addrs: map[string]uint64{}}
	if err := m.place(); err != nil {
		m.unplace()
		if errors.Is(err, cuapi.ErrorOutOfMemory) {
			return nil, loadFailure{cuapi.ErrorOutOfMemory, err.Error()}
		}
		return nil, loadFailure{cuapi.ErrorInvalidPTX, err.Error()}
	}
	return m, loadFailure{}
}

// place gives every variable memory with its initial value. Addresses come
// first: initialisers may name each other.
func (m *module) place() error {
	globals := m.program.Globals()
	for _, g := range globals {
		size := max(g.Size, 1)
		a := m.ctx.dev.mem.alloc(m.ctx, size, vm.MapOptions{Written: true, ReadOnly: g.Space == vm.SpaceConst})
		if a == nil {
			return fmt.Errorf("%w: variable %s of %d bytes", cuapi.ErrorOutOfMemory, g.Name, g.Size)
		}
		m.globals[g.Name] = variable{a.addr, g.Size}
		m.addrs[g.Name] = a.addr
	}
	for _, g := range globals {
		value := make([]byte, max(g.Size, 1))
		copy(value, g.Init)
		for _, r := range g.Relocs {
			addr, ok := m.addrs[r.Symbol]
			if !ok {
				if addr, ok = m.program.FunctionAddress(r.Symbol); !ok {
					return fmt.Errorf("line %d: the initialiser of %s names %s, which is not defined", g.Line, g.Name, r.Symbol)
				}
			}
			binary.LittleEndian.PutUint64(value[r.Offset:], addr+uint64(r.Addend))
		}
		if err := m.ctx.dev.mem.plain.mem.Write(m.addrs[g.Name], value); err != nil {
			return err
		}
	}
	return nil
}

// unplace frees the variables.
func (m *module) unplace() {
	for _, addr := range m.addrs {
		m.ctx.dev.mem.release(addr)
	}
}

// enterModule is the start of calls that name a module.
func (e *Emulator) enterModule(h cuapi.Module) (*module, cuapi.Result) {
	if _, r := e.enter(); r != cuapi.Success {
		return nil, r
	}
	m := e.modules.get(h)
	if m == nil {
		return nil, cuapi.ErrorInvalidHandle
	}
	return m, m.ctx.status()
}

// ModuleUnload waits for the context, then frees the module's variables and
// makes its functions unknown.
func (e *Emulator) ModuleUnload(h cuapi.Module) cuapi.Result {
	m, r := e.enterModule(h)
	if r != cuapi.Success {
		return r
	}
	if r := m.ctx.synchronize(); r != cuapi.Success {
		return r
	}
	if e.modules.remove(h) == nil {
		return cuapi.ErrorInvalidHandle
	}
	e.functions.removeIf(func(f *function) bool { return f.mod == m })
	m.unplace()
	return cuapi.Success
}

// ModuleGetFunction finds an entry of the module; 500 when it has none of that
// name.
func (e *Emulator) ModuleGetFunction(h cuapi.Module, name string) (cuapi.Function, cuapi.Result) {
	m, r := e.enterModule(h)
	if r != cuapi.Success {
		return 0, r
	}
	k, ok := m.program.Kernel(name)
	if !ok {
		return 0, cuapi.ErrorNotFound
	}
	return m.function(k), cuapi.Success
}

// ModuleGetGlobal finds a variable of the module; 500 when it has none of that
// name.
func (e *Emulator) ModuleGetGlobal(h cuapi.Module, name string) (cuapi.DevicePtr, uint64, cuapi.Result) {
	m, r := e.enterModule(h)
	if r != cuapi.Success {
		return 0, 0, r
	}
	v, ok := m.globals[name]
	if !ok {
		return 0, 0, cuapi.ErrorNotFound
	}
	return cuapi.DevicePtr(v.addr), v.size, cuapi.Success
}
