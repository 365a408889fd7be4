package emu

import (
	"fmt"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

// Fault says what made a device lost: the access or instruction of a kernel,
// or a copy.
type Fault struct {
	Device int          // ordinal
	Code   cuapi.Result // what every call on the device answers from now on
	Kind   vm.FaultKind
	Kernel string       // entry name; "copy", "upload", "download" or "memset" for those
	Module cuapi.Module // 0 for copies

	PTXLine int    // 1-based line in the module's text; 0 for copies
	Text    string // that line
	Access  string // what was attempted, for instance "read of 4 bytes"
	Address uint64
	Lane    int // within the warp
	Block   [3]uint32
	Thread  [3]uint32 // within the block
	Nearest string    // the allocation nearest to Address, in words
	Detail  string    // further facts, in words
}

// Error is all of it in one line.
func (f *Fault) Error() string {
	k := vm.Fault{
		Kind: f.Kind, Kernel: f.Kernel, Line: f.PTXLine, Text: f.Text, Access: f.Access, Address: f.Address,
		Lane: f.Lane, Block: f.Block, Thread: f.Thread, Nearest: f.Nearest, Detail: f.Detail,
	}
	return fmt.Sprintf("emu: device %d: %v: %v", f.Device, f.Code, &k)
}

// faultCode is the driver's code for a kind of fault. What hardware would not
// notice (uninitialised reads, races) counts as an illegal address.
func faultCode(k vm.FaultKind) cuapi.Result {
	switch k {
	case vm.Misaligned:
		return cuapi.ErrorMisalignedAddress
	case vm.Trap, vm.BadLaunch:
		return cuapi.ErrorLaunchFailed
	case vm.Deadlock:
		return cuapi.ErrorLaunchTimeout
	case vm.StackOverflow:
		return cuapi.ErrorHardwareStackError
	case vm.BadCall:
		return cuapi.ErrorInvalidPc
	}
	return cuapi.ErrorIllegalAddress
}

// report makes the context's device lost. Of several faults the first counts.
func (c *context) report(f *Fault) {
	f.Device = c.dev.ordinal
	// Before the device is seen as lost its fault must be there to be read.
	before := c.e.lastFault.Swap(f)
	if !c.dev.fail(f.Code) {
		c.e.lastFault.CompareAndSwap(f, before)
	}
}

// copyFault reports a copy that could not be done.
func (c *context) copyFault(what string, kind vm.FaultKind, addr uint64, detail string) {
	c.report(&Fault{Code: faultCode(kind), Kind: kind, Kernel: what, Access: what, Address: addr, Detail: detail})
}

// kernelFault reports what a launch ended with.
func (c *context) kernelFault(m *module, f *vm.Fault) {
	if f.Kind == vm.Cancelled {
		return // the device is lost already
	}
	if f.Kind == vm.Uninitialized && c.e.lostBeside(c.dev) {
		// What a lost device was to write stays as it was, and streams that waited for it
		// go on. Hardware reads whatever is there and lives, so the launch just ends.
		return
	}
	c.report(&Fault{
		Code: faultCode(f.Kind), Kind: f.Kind, Kernel: f.Kernel, Module: m.handle,
		PTXLine: f.Line, Text: f.Text, Access: f.Access, Address: f.Address,
		Lane: f.Lane, Block: f.Block, Thread: f.Thread, Nearest: f.Nearest, Detail: f.Detail,
	})
}
