package vm

import (
	"fmt"
	"slices"
	"strings"
)

// Space is a PTX state space.
type Space uint8

// State spaces of variables and accesses. SpaceGeneric stands for an access that names none.
const (
	SpaceGeneric Space = iota
	SpaceGlobal
	SpaceConst
	SpaceShared
	SpaceLocal
	SpaceParam
)

// String returns the PTX spelling without the dot.
func (s Space) String() string {
	return [...]string{"generic", "global", "const", "shared", "local", "param"}[s]
}

// Windows of the generic address space that hold what is private to a launch. Device and host
// memory must be mapped below WindowBase; each window is WindowSize bytes long.
const (
	WindowBase     uint64 = 1 << 48
	WindowSize     uint64 = 1 << 32
	sharedWindow          = WindowBase
	localWindow           = WindowBase + WindowSize
	paramWindow           = WindowBase + 2*WindowSize
	functionWindow        = WindowBase + 3*WindowSize
)

// LoadError reports PTX text that cannot be loaded: what was met, and where.
type LoadError struct {
	Line   int    // 1-based line of the text
	Opcode string // instruction or directive as written, if the fault lies in one
	Msg    string // what was found and what was expected
}

// Error returns line, opcode and message in one line. Of words without end, which only damaged
// text has, it shows the beginning.
func (e *LoadError) Error() string {
	if e.Opcode == "" {
		return fmt.Sprintf("ptx line %d: %s", e.Line, clip(e.Msg))
	}
	return fmt.Sprintf("ptx line %d: %s: %s", e.Line, clip(e.Opcode), clip(e.Msg))
}

func clip(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// Program is a loaded PTX module. It is immutable and safe for use from several goroutines.
type Program struct {
	major, minor int
	target       string
	kernels      []*Kernel
	globals      []Variable
	funcs        []*function
	byName       map[string]*function
	lines        []string
	sites        int // memory instructions
}

// Version returns the ISA version of the module's .version directive.
func (p *Program) Version() (major, minor int) { return p.major, p.minor }

// Target returns the first name of the .target directive, for instance "sm_75".
func (p *Program) Target() string { return p.target }

// Kernels returns the entries in the order of the text.
func (p *Program) Kernels() []*Kernel { return slices.Clone(p.kernels) }

// Kernel returns the entry of that name.
func (p *Program) Kernel(name string) (*Kernel, bool) {
	for _, k := range p.kernels {
		if k.Name == name {
			return k, true
		}
	}
	return nil, false
}

// Globals returns the module-scope variables of the .global and .const spaces in the order of the
// text. Whoever launches gives each an address (Launch.Globals), memory of Size bytes that holds
// Init followed by zeros, and the addresses that Relocs ask for.
func (p *Program) Globals() []Variable { return slices.Clone(p.globals) }

// FunctionAddress returns the value that the address of a device function has in this program,
// for relocations that name functions.
func (p *Program) FunctionAddress(name string) (uint64, bool) {
	f := p.byName[name]
	if f == nil {
		return 0, false
	}
	return functionAddress(f.index), true
}

// functionAddress never yields zero for a real function: code may compare pointers with null.
func functionAddress(i int) uint64 { return functionWindow + 16*uint64(i+1) }

// Line returns the text of a 1-based line, without surrounding blanks.
func (p *Program) Line(n int) string {
	if n < 1 || n > len(p.lines) {
		return ""
	}
	return p.lines[n-1]
}

// Variable is a module-scope variable.
type Variable struct {
	Name   string
	Space  Space // SpaceGlobal or SpaceConst
	Size   uint64
	Align  uint64
	Init   []byte // at most Size bytes; the rest is zero
	Relocs []Reloc
	Line   int
}

// Reloc asks for the address of a symbol (a variable or a function) inside an initialiser.
type Reloc struct {
	Offset uint64 // within the variable; 8 bytes
	Symbol string
	Addend int64
}

// Param is a kernel parameter within the parameter block.
type Param struct {
	Name                string
	Offset, Size, Align uint32
}

// Kernel is an entry of a program.
type Kernel struct {
	Name        string
	Params      []Param
	ParamSize   uint32 // bytes of the parameter block
	SharedBytes uint32 // static shared memory of a block
	LocalBytes  uint32 // local memory of a thread, callees not included
	MaxThreads  uint32 // product of .maxntid; 0 where the kernel sets none
	Regs        int    // 32-bit registers a thread needs: the most that are live at once
	Line        int

	program *Program
	code    *function
	calls   bool // some function calls another
}

// Program returns the program that the kernel belongs to.
func (k *Kernel) Program() *Program { return k.program }
