package fakeoptix

import (
	"fmt"
	"maps"
	"sync"

	"github.com/raymux/raymux/cuda/dl"
	"github.com/raymux/raymux/optixabi"
)

// Answer is what the library says to a query for one ABI.
type Answer struct {
	Result optixabi.Result
	Null   string // function whose entry is left null, such as "optixLaunch"
}

// Config shapes a Fake. Hooks run inside the call that they are about, on its
// thread and without a lock; they may block.
type Config struct {
	// ABIs are the answers to queries; an ABI that is not in the map is
	// unknown (7801). Nil accepts 87, 93 and 105.
	ABIs map[optixabi.ABI]Answer
	// RTCores is the version of the ray-tracing cores; 0 is a device without.
	RTCores uint32
	// Create is what optixDeviceContextCreate answers, such as
	// ErrorNotSupported.
	Create optixabi.Result
	// Cache, if not 0, is what happens when the disk cache is used: setting
	// its folder and compiling modules fail with it until it is disabled.
	Cache optixabi.Result
	// Incompatible refuses to take structures from another context.
	Incompatible bool
	// Path is the file that the library claims to be.
	Path string

	OnCall   func(function string)        // before every call of the table
	OnBuild  func(Build)                  // after a build was accepted
	OnLaunch func(Launch) optixabi.Result // what a launch does; nil: nothing
	// WriteDevice stores emitted properties in device memory; nil: they are
	// dropped.
	WriteDevice func(addr uint64, data []byte)
}

// Fake is one library.
type Fake struct {
	cfg  Config
	slot *slot

	mu         sync.Mutex // guards the rest
	abi        optixabi.ABI
	objects    map[uintptr]*object
	structures map[optixabi.Traversable]*structure
	last       uintptr
	calls      map[string]int
	total      int
	faults     []*fault
	violations []string
}

// fault makes one call fail: the one after which left is 0.
type fault struct {
	function string // empty: any
	left     int
	result   optixabi.Result
}

// New makes a library. It fails in builds that cannot call C functions and
// when too many are in use at once. Close it when done: its function pointers
// are used again.
func New(cfg Config) (*Fake, error) {
	if cfg.ABIs == nil {
		cfg.ABIs = map[optixabi.ABI]Answer{optixabi.ABI87: {}, optixabi.ABI93: {}, optixabi.ABI105: {}}
	}
	if cfg.Path == "" {
		cfg.Path = "/fake/libnvoptix.so.1"
	}
	f := &Fake{
		cfg: cfg, objects: map[uintptr]*object{}, structures: map[optixabi.Traversable]*structure{}, calls: map[string]int{},
	}
	var err error
	f.slot, err = takeSlot(f)
	return f, err
}

// Close gives the function pointers back. Nothing may call the library any
// more.
func (f *Fake) Close() { f.slot.release() }

// Library is the fake as a loaded library.
func (f *Fake) Library() *optixabi.Library {
	lib, err := optixabi.New(dl.New(f.cfg.Path, func(name string) uintptr {
		if name == query {
			return f.slot.pointers[query]
		}
		return 0
	}))
	if err != nil {
		panic(err) // the fake exports what New looks up
	}
	return lib
}

// FailAt makes the k-th call from now on fail, whichever it is; k counts from
// 1. A destroy that is made to fail still destroys.
func (f *Fake) FailAt(k int, r optixabi.Result) { f.arm(&fault{left: k, result: r}) }

// FailCall makes the k-th call of a function from now on fail, such as
// "optixModuleCreate".
func (f *Fake) FailCall(function string, k int, r optixabi.Result) {
	f.arm(&fault{function: function, left: k, result: r})
}

func (f *Fake) arm(x *fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, x)
}

// ClearFaults disarms what has not happened yet.
func (f *Fake) ClearFaults() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// Calls is how often a function was called; the empty name stands for all.
func (f *Fake) Calls(function string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if function == "" {
		return f.total
	}
	return f.calls[function]
}

// Counters is how often each function was called.
func (f *Fake) Counters() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.calls)
}

// Violations lists what the caller did wrong, in order.
func (f *Fake) Violations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.violations...)
}

// Live counts the objects that exist.
type Live struct{ Contexts, Modules, ProgramGroups, Pipelines int }

// Live counts what was created and not destroyed.
func (f *Fake) Live() Live {
	f.mu.Lock()
	defer f.mu.Unlock()
	var n Live
	for _, o := range f.objects {
		switch o.kind {
		case kindContext:
			n.Contexts++
		case kindModule:
			n.Modules++
		case kindGroup:
			n.ProgramGroups++
		case kindPipeline:
			n.Pipelines++
		}
	}
	return n
}

// serve runs one call of the table.
func (f *Fake) serve(function string, args []uintptr) uintptr {
	if f.cfg.OnCall != nil {
		f.cfg.OnCall(function)
	}
	f.mu.Lock()
	f.total++
	f.calls[function]++
	injected := f.injected(function)
	f.mu.Unlock()
	c := &call{Fake: f, name: function, args: args}
	r := optixabi.Success
	if injected == optixabi.Success || isDestroy(function) {
		r = handlers[function](c)
	}
	if injected != optixabi.Success {
		r = injected
	}
	// Like C code, leave rubbish in the upper half of an int result.
	return 0xdead<<32 | uintptr(uint32(r))
}

// injected counts a call and says whether it has to fail.
func (f *Fake) injected(function string) optixabi.Result {
	result := optixabi.Success
	kept := f.faults[:0]
	for _, x := range f.faults {
		if x.function == "" || x.function == function {
			if x.left--; x.left == 0 {
				result = x.result
				continue
			}
		}
		kept = append(kept, x)
	}
	f.faults = kept
	return result
}

// violate remembers a mistake of the caller and gives the code for it. The
// lock is held.
func (f *Fake) violate(format string, args ...any) optixabi.Result {
	f.violations = append(f.violations, fmt.Sprintf(format, args...))
	return optixabi.ErrorInvalidValue
}
