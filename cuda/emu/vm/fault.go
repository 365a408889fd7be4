package vm

import (
	"fmt"
	"strings"
)

// FaultKind classifies what a kernel did wrong.
type FaultKind uint8

// Kinds of faults.
const (
	OutOfBounds       FaultKind = iota + 1 // no allocation covers the access
	Misaligned                             // address not a multiple of the access size
	UseAfterFree                           // the address lies in memory that was freed
	Uninitialized                          // bytes that nobody ever wrote were read
	NoPeerAccess                           // memory of a device whose access is not enabled
	ReadOnly                               // store to constant or parameter memory
	SharedOutOfBounds                      // shared address outside of the block's shared memory
	LocalOutOfBounds                       // local address outside of the thread's local memory
	ParamOutOfBounds                       // parameter address outside of the parameter block
	SharedRace                             // conflicting shared accesses without a barrier between
	Trap                                   // trap or brkpt
	Deadlock                               // every live thread waits: barrier or warp-wide operation
	StackOverflow                          // calls nested too deeply
	BadCall                                // indirect call of something that is no function
	Cancelled                              // the launch was cancelled
	BadLaunch                              // the launch itself is impossible
)

var faultNames = [...]string{"", "out of bounds", "misaligned", "use after free", "uninitialized read",
	"no peer access", "read only", "shared memory out of bounds", "local memory out of bounds",
	"parameter out of bounds", "shared memory race", "trap", "deadlock", "stack overflow", "bad call",
	"cancelled", "bad launch"}

// String returns the kind in words.
func (k FaultKind) String() string {
	if int(k) < len(faultNames) {
		return faultNames[k]
	}
	return fmt.Sprintf("fault %d", uint8(k))
}

// Fault is the first fault of a launch. Launches that end with one have done an unknown part of
// their work, as on hardware.
type Fault struct {
	Kind    FaultKind
	Kernel  string
	Line    int    // 1-based PTX line of the instruction
	Text    string // that line
	Access  string // what was attempted, for instance "read of 4 bytes"; empty if no access
	Address uint64 // address of the access as the kernel gave it
	Size    uint64 // bytes of the access
	Lane    int    // lane within the warp
	Block   [3]uint32
	Thread  [3]uint32
	Nearest string // the nearest allocation, in words
	Detail  string // further facts, in words
}

// Error returns all that is known, in one line.
func (f *Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in kernel %s", f.Kind, f.Kernel)
	if f.Line > 0 {
		fmt.Fprintf(&b, " at ptx line %d (%s), block (%d,%d,%d), thread (%d,%d,%d), lane %d", f.Line, f.Text,
			f.Block[0], f.Block[1], f.Block[2], f.Thread[0], f.Thread[1], f.Thread[2], f.Lane)
	}
	if f.Access != "" {
		fmt.Fprintf(&b, ": %s at %#x", f.Access, f.Address)
	}
	for _, s := range []string{f.Detail, f.Nearest} {
		if s != "" {
			b.WriteString("; " + s)
		}
	}
	return b.String()
}
