package optixabi

import (
	"slices"
	"strconv"
)

// ABI is the number of a binary interface. The constants are the ones that
// this package speaks.
type ABI int

// String is the number.
func (a ABI) String() string { return strconv.Itoa(int(a)) }

// OptiX is the OptiX release that introduced the ABI, such as "9.0.0"; empty
// for a number that the package does not speak.
func (a ABI) OptiX() string {
	if f := a.facts(); f != nil {
		return f.optix
	}
	return ""
}

// DriverBranch is the first driver branch that usually knows the ABI, such as
// 570; 0 for a number that the package does not speak.
func (a ABI) DriverBranch() int {
	if f := a.facts(); f != nil {
		return f.branch
	}
	return 0
}

// Tested reports whether a driver that knows the ABI has run our programs
// through it.
func (a ABI) Tested() bool { return slices.Contains(negotiated, a) }

// negotiated are the ABIs that Negotiate asks for by itself, newest first.
var negotiated = []ABI{ABI105, ABI93, ABI87}

func (a ABI) facts() *tableFacts {
	for i := range tables {
		if tables[i].abi == a {
			return &tables[i]
		}
	}
	return nil
}

// tableFacts describes the function table of one ABI.
type tableFacts struct {
	abi    ABI
	optix  string
	branch int
	size   int            // bytes
	slots  [functions]int // where each function lies
}

// Slot is the index of a function in the table of an ABI, for example 41 for
// optixLaunch in ABI 105. It is false for a function that the package does not
// call. Stand-ins for the library need it.
func (a ABI) Slot(function string) (int, bool) {
	f := a.facts()
	i := slices.Index(functionNames[:], function)
	if f == nil || i < 0 {
		return 0, false
	}
	return f.slots[i], true
}

// TableSize is the size of the function table in bytes; 0 for a number that
// the package does not speak.
func (a ABI) TableSize() int {
	if f := a.facts(); f != nil {
		return f.size
	}
	return 0
}

// Functions maps the names of the functions that the package calls to their
// numbers of parameters.
func Functions() map[string]int {
	m := make(map[string]int, functions)
	for i, n := range functionNames {
		m[n] = functionParams[i]
	}
	return m
}

// Handles of objects. Zero is none.
type (
	// DeviceContext is OptiX on one CUDA context.
	DeviceContext uintptr
	// Module is a compiled program text.
	Module uintptr
	// ProgramGroup is one or more entry points of modules.
	ProgramGroup uintptr
	// Pipeline is a linked set of program groups. Its launches must not
	// overlap, on whatever streams.
	Pipeline uintptr
	// Traversable names an acceleration structure in device memory; it stays
	// valid as long as that memory is not moved or freed.
	Traversable uint64
)

// Buffer is a range of device memory.
type Buffer struct{ Addr, Size uint64 }
