package emu

import (
	"sync"
	"sync/atomic"

	"github.com/raymux/raymux/cuda/cuapi"
)

// context is a primary context. It lives from the first retain to the last
// release; a later retain makes a new one with a new handle.
type context struct {
	e         *Emulator
	dev       *device
	handle    cuapi.Context
	destroyed atomic.Bool

	// submit orders enqueues of all streams, which the legacy stream needs:
	// it runs after everything enqueued before and ahead of everything after.
	submit  sync.Mutex
	legacy  *stream
	streams map[*stream]struct{} // without legacy

	mu     sync.Mutex        // guards the following
	peers  map[*context]bool // whose plain memory kernels may reach
	limits map[cuapi.Limit]uint64
}

func newContext(d *device) *context {
	c := &context{
		e: d.e, dev: d,
		streams: map[*stream]struct{}{},
		peers:   map[*context]bool{},
		limits: map[cuapi.Limit]uint64{
			cuapi.LimitStackSize:             1 << 10,
			cuapi.LimitPrintfFifoSize:        1 << 20,
			cuapi.LimitMallocHeapSize:        8 << 20,
			cuapi.LimitShmemSize:             0,
			cuapi.LimitCigEnabled:            0,
			cuapi.LimitMaxL2FetchGranularity: 64,
		},
	}
	c.legacy = newStream(c, cuapi.StreamDefault, 0)
	d.e.contexts.add(c, func(h cuapi.Context) { c.handle = h })
	return c
}

// status is the sticky code of the context's device, or success.
func (c *context) status() cuapi.Result { return c.dev.status() }

// DevicePrimaryCtxRetain answers the sticky code on a lost device.
func (e *Emulator) DevicePrimaryCtxRetain(d cuapi.Device) (cuapi.Context, cuapi.Result) {
	dev, r := e.device(d)
	if r != cuapi.Success {
		return 0, r
	}
	if r := dev.status(); r != cuapi.Success {
		return 0, r
	}
	dev.primary.Lock()
	defer dev.primary.Unlock()
	if dev.ctx == nil {
		dev.ctx = newContext(dev)
	}
	dev.refs++
	return dev.ctx.handle, cuapi.Success
}

// DevicePrimaryCtxRelease destroys the context with the last reference: it
// waits for its streams, then frees everything that belongs to it. It works on
// a lost device.
func (e *Emulator) DevicePrimaryCtxRelease(d cuapi.Device) cuapi.Result {
	dev, r := e.device(d)
	if r != cuapi.Success {
		return r
	}
	dev.primary.Lock()
	defer dev.primary.Unlock()
	if dev.refs == 0 {
		return cuapi.ErrorInvalidContext
	}
	if dev.refs--; dev.refs == 0 {
		dev.ctx.destroy()
		dev.ctx = nil
	}
	return cuapi.Success
}

// destroy frees everything of the context and makes its handles unknown.
func (c *context) destroy() {
	c.destroyed.Store(true)
	c.drain()
	e := c.e
	e.contexts.remove(c.handle)
	e.streams.removeIf(func(s *stream) bool { return s.ctx == c })
	e.events.removeIf(func(v *event) bool { return v.ctx == c })
	e.functions.removeIf(func(f *function) bool { return f.mod.ctx == c })
	e.modules.removeIf(func(m *module) bool { return m.ctx == c })
	e.host.removeContext(c)
	c.dev.mem.reset()
}

// DevicePrimaryCtxGetState reports whether somebody retains the context.
func (e *Emulator) DevicePrimaryCtxGetState(d cuapi.Device) (flags uint32, active bool, r cuapi.Result) {
	dev, r := e.device(d)
	if r != cuapi.Success {
		return 0, false, r
	}
	dev.primary.Lock()
	defer dev.primary.Unlock()
	return 0, dev.refs > 0, cuapi.Success
}

// CtxGetCurrent is the calling thread's context, 0 when there is none.
func (e *Emulator) CtxGetCurrent() (cuapi.Context, cuapi.Result) {
	if r := e.ready(); r != cuapi.Success {
		return 0, r
	}
	if c := e.currentContext(); c != nil {
		return c.handle, cuapi.Success
	}
	return 0, cuapi.Success
}

// CtxSetCurrent makes c current for the calling OS thread; 0 leaves it without
// a context. It works on a lost device.
func (e *Emulator) CtxSetCurrent(c cuapi.Context) cuapi.Result {
	if r := e.ready(); r != cuapi.Success {
		return r
	}
	t := threadID()
	if c == 0 {
		e.threads.Lock()
		delete(e.current, t)
		e.threads.Unlock()
		return cuapi.Success
	}
	ctx := e.contexts.get(c)
	if ctx == nil {
		return cuapi.ErrorInvalidContext
	}
	e.threads.Lock()
	e.current[t] = ctx
	e.threads.Unlock()
	return cuapi.Success
}

// CtxGetDevice is the device of the current context.
func (e *Emulator) CtxGetDevice() (cuapi.Device, cuapi.Result) {
	c, r := e.enter()
	if r != cuapi.Success {
		return 0, r
	}
	return cuapi.Device(c.dev.ordinal), cuapi.Success
}

// CtxSynchronize waits until all streams of the current context are idle.
func (e *Emulator) CtxSynchronize() cuapi.Result {
	c, r := e.enter()
	if r != cuapi.Success {
		return r
	}
	return c.synchronize()
}

// CtxGetStreamPriorityRange is 0 to -5: lower numbers are more urgent. The
// emulator keeps priorities but gives all streams the same share.
func (e *Emulator) CtxGetStreamPriorityRange() (least, greatest int, r cuapi.Result) {
	if _, r := e.enter(); r != cuapi.Success {
		return 0, 0, r
	}
	return leastPriority, greatestPriority, cuapi.Success
}

// CtxGetLimit answers 215 for limits that the device does not have.
func (e *Emulator) CtxGetLimit(l cuapi.Limit) (uint64, cuapi.Result) {
	c, r := e.enter()
	if r != cuapi.Success {
		return 0, r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.limits[l]
	if !ok {
		return 0, cuapi.ErrorUnsupportedLimit
	}
	return v, cuapi.Success
}

// CtxSetLimit keeps the value; no limit changes how the emulator runs kernels.
func (e *Emulator) CtxSetLimit(l cuapi.Limit, v uint64) cuapi.Result {
	c, r := e.enter()
	if r != cuapi.Success {
		return r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.limits[l]; !ok {
		return cuapi.ErrorUnsupportedLimit
	}
	c.limits[l] = v
	return cuapi.Success
}

// peerArguments resolves what both peer calls share.
func (e *Emulator) peerArguments(peer cuapi.Context) (c, p *context, r cuapi.Result) {
	c, r = e.enter()
	if r != cuapi.Success {
		return nil, nil, r
	}
	p = e.contexts.get(peer)
	if p == nil || p == c {
		return nil, nil, cuapi.ErrorInvalidContext
	}
	return c, p, cuapi.Success
}

// CtxEnablePeerAccess lets kernels of the current context reach plain memory
// of peer; 217 when the pair has no link, 704 when it is enabled already.
func (e *Emulator) CtxEnablePeerAccess(peer cuapi.Context, flags uint32) cuapi.Result {
	c, p, r := e.peerArguments(peer)
	if r != cuapi.Success {
		return r
	}
	if flags != 0 {
		return cuapi.ErrorInvalidValue
	}
	if !e.canAccess(c.dev, p.dev) {
		return cuapi.ErrorPeerAccessUnsupported
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peers[p] {
		return cuapi.ErrorPeerAccessAlreadyEnabled
	}
	c.peers[p] = true
	return cuapi.Success
}

// CtxDisablePeerAccess undoes CtxEnablePeerAccess; 705 when it is not enabled.
func (e *Emulator) CtxDisablePeerAccess(peer cuapi.Context) cuapi.Result {
	c, p, r := e.peerArguments(peer)
	if r != cuapi.Success {
		return r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.peers[p] {
		return cuapi.ErrorPeerAccessNotEnabled
	}
	delete(c.peers, p)
	return cuapi.Success
}

// enabledPeers is the set of devices whose plain memory is reachable. Access
// to a context ends with that context.
func (c *context) enabledPeers() map[*device]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	devices := map[*device]bool{}
	for p := range c.peers {
		if !p.destroyed.Load() {
			devices[p.dev] = true
		}
	}
	return devices
}
