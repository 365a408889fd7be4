package emu

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

// DriverVersion is what DriverGetVersion reports: CUDA 12.8.
const DriverVersion = 12080

// Emulator is a driver with virtual devices. It is safe for use from any
// number of goroutines; like the native driver it ties the current context to
// the calling OS thread.
type Emulator struct {
	cfg     config
	devices []*device
	host    *hostMemory
	spaces  []*vm.Memory // all memories

	initialised atomic.Bool
	lanes       atomic.Uint64
	lastFault   atomic.Pointer[Fault]
	launches    sync.Pool // spent *launch values

	threads   sync.Mutex
	current   map[int]*context // by OS thread; absent: none
	contexts  *registry[cuapi.Context, context]
	modules   *registry[cuapi.Module, module]
	functions *registry[cuapi.Function, function]
	streams   *registry[cuapi.Stream, stream]
	events    *registry[cuapi.Event, event]
	pools     *registry[cuapi.MemPool, memPool]
}

var _ cuapi.API = (*Emulator)(nil)

// New makes a driver with n virtual devices, 1 to MaxDevices; a number or an
// option that is out of range is an *ArgumentError. Like the native
// driver it must be initialised with Init before use; it holds no resources
// but memory, so it needs no Close.
func New(n int, opts ...Option) (*Emulator, error) {
	cfg := defaults()
	for _, o := range opts {
		o(&cfg)
	}
	if err := cfg.validate(n); err != nil {
		return nil, err
	}
	nonce := rand.Uint64()
	e := &Emulator{
		cfg:       cfg,
		current:   map[int]*context{},
		contexts:  newRegistry[cuapi.Context, context](kindContext, nonce),
		modules:   newRegistry[cuapi.Module, module](kindModule, nonce),
		functions: newRegistry[cuapi.Function, function](kindFunction, nonce),
		streams:   newRegistry[cuapi.Stream, stream](kindStream, nonce),
		events:    newRegistry[cuapi.Event, event](kindEvent, nonce),
		pools:     newRegistry[cuapi.MemPool, memPool](kindPool, nonce),
	}
	e.host = newHostMemory()
	e.launches.New = func() any { return new(launch) }
	for i := range n {
		d := newDevice(e, i)
		e.devices = append(e.devices, d)
		e.spaces = append(e.spaces, d.mem.plain.mem, d.mem.pool.arena.mem)
	}
	e.spaces = append(e.spaces, e.host.mem)
	return e, nil
}

// Stats are totals since New.
type Stats struct {
	// LaneInstructions counts executed instructions times the lanes that took
	// part, over all devices.
	LaneInstructions uint64
}

// Stats returns totals over all launches that have ended.
func (e *Emulator) Stats() Stats { return Stats{LaneInstructions: e.lanes.Load()} }

// LastFault is the most recent fault of any device, or nil.
func (e *Emulator) LastFault() *Fault { return e.lastFault.Load() }

// KillDevice makes device i fail as if it had fallen off the bus: when it
// returns, running kernels have stopped and whatever else was enqueued is
// dropped, and every call on it answers 719 from now on. Of a device that is
// lost already the first code stays; ordinals out of range are left alone.
func (e *Emulator) KillDevice(i int) {
	if i < 0 || i >= len(e.devices) {
		return
	}
	d := e.devices[i]
	d.fail(cuapi.ErrorLaunchFailed)
	d.primary.Lock()
	defer d.primary.Unlock()
	if d.ctx != nil {
		d.ctx.drain()
	}
}

// Name is "emulator".
func (e *Emulator) Name() string { return "emulator" }

// Init makes the driver usable; flags must be 0. Repeating it is harmless.
func (e *Emulator) Init(flags uint32) cuapi.Result {
	if flags != 0 {
		return cuapi.ErrorInvalidValue
	}
	e.initialised.Store(true)
	return cuapi.Success
}

// DriverGetVersion works before Init, as in the native driver.
func (e *Emulator) DriverGetVersion() (int, cuapi.Result) { return DriverVersion, cuapi.Success }

// GetErrorText is the code's name in words; it works before Init.
func (e *Emulator) GetErrorText(r cuapi.Result) (string, cuapi.Result) {
	if r == cuapi.Success {
		return "no error", cuapi.Success
	}
	name, ok := strings.CutPrefix(r.Name(), "CUDA_ERROR_")
	if !ok || strings.Trim(name, "-0123456789") == "" {
		return "", cuapi.ErrorInvalidValue
	}
	return strings.ToLower(strings.ReplaceAll(name, "_", " ")), cuapi.Success
}

// ready is the check that every call but Init starts with.
func (e *Emulator) ready() cuapi.Result {
	if !e.initialised.Load() {
		return cuapi.ErrorNotInitialized
	}
	return cuapi.Success
}

// currentContext is the calling thread's context, which may be destroyed; nil
// when there is none.
func (e *Emulator) currentContext() *context {
	t := threadID()
	e.threads.Lock()
	defer e.threads.Unlock()
	return e.current[t]
}

// enter is the start of every call that needs a usable current context.
func (e *Emulator) enter() (*context, cuapi.Result) {
	if r := e.ready(); r != cuapi.Success {
		return nil, r
	}
	c := e.currentContext()
	switch {
	case c == nil:
		return nil, cuapi.ErrorInvalidContext
	case c.destroyed.Load():
		return nil, cuapi.ErrorContextIsDestroyed
	}
	return c, c.status()
}
