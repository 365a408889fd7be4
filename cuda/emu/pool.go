package emu

import (
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

// memPool is the default pool of a device. Freed memory stays reserved up to
// the release threshold. The lock of its deviceMemory guards it.
type memPool struct {
	of     *deviceMemory
	handle cuapi.MemPool
	arena  *arena

	reserved, reservedHigh uint64
	used, usedHigh         uint64
	threshold              uint64
	reuse                  map[cuapi.MemPoolAttribute]uint64
	access                 map[*device]cuapi.MemAccessFlags // of other devices
}

func newMemPool(m *deviceMemory, a *arena) *memPool {
	p := &memPool{
		of: m, arena: a,
		reuse: map[cuapi.MemPoolAttribute]uint64{
			cuapi.MemPoolReuseFollowEventDependencies:   1,
			cuapi.MemPoolReuseAllowOpportunistic:        1,
			cuapi.MemPoolReuseAllowInternalDependencies: 1,
		},
		access: map[*device]cuapi.MemAccessFlags{},
	}
	m.dev.e.pools.add(p, func(h cuapi.MemPool) { p.handle = h })
	return p
}

// alloc takes reserved memory first; nil when the device is full.
func (p *memPool) alloc(c *context, size uint64) *allocation {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if size > p.of.total {
		return nil
	}
	charge := alignUp(size, allocAlign)
	idle := p.reserved - p.used
	grow := charge - min(charge, idle)
	if grow > p.of.free() {
		return nil
	}
	a := p.arena.alloc(c, size, vm.MapOptions{})
	if a == nil {
		return nil
	}
	p.reserved += grow
	p.used += charge
	p.reservedHigh = max(p.reservedHigh, p.reserved)
	p.usedHigh = max(p.usedHigh, p.used)
	return a
}

// claim marks the allocation as being freed; only the first claim succeeds.
func (p *memPool) claim(a *allocation) bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if a.freeing || p.arena.find(a.addr) != a {
		return false
	}
	a.freeing = true
	return true
}

// release frees a claimed allocation.
func (p *memPool) release(a *allocation) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.arena.find(a.addr) != a {
		return // the context was destroyed meanwhile
	}
	p.arena.free(a)
	p.used -= a.charged()
	p.trim(p.threshold)
}

// trim gives idle memory back until at most keep bytes are reserved; mu is held.
func (p *memPool) trim(keep uint64) { p.reserved = max(p.used, min(p.reserved, keep)) }

// reset frees everything; mu is held.
func (p *memPool) reset() {
	for len(p.arena.live) > 0 {
		p.arena.free(p.arena.live[0])
	}
	p.used, p.reserved = 0, 0
}

// grants reports whether d may access the pool's memory.
func (p *memPool) grants(d *device) bool {
	if d == p.of.dev {
		return true
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.access[d] != cuapi.MemAccessProtNone
}

// empty reports whether the pool has no live memory.
func (p *memPool) empty() bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return len(p.arena.live) == 0
}

// freeing is the stream's part of MemFreeAsync.
type freeing struct {
	pool *memPool
	a    *allocation
}

func (f *freeing) run(*context) { f.pool.release(f.a) }

// MemAllocAsync allocates from the default pool of the stream's device. The
// address is known at once; the memory is to be used in stream order.
func (e *Emulator) MemAllocAsync(n uint64, sh cuapi.Stream) (cuapi.DevicePtr, cuapi.Result) {
	_, s, r := e.enterStream(sh)
	if r != cuapi.Success {
		return 0, r
	}
	if n == 0 {
		return 0, cuapi.ErrorInvalidValue
	}
	a := s.ctx.dev.mem.pool.alloc(s.ctx, n)
	if a == nil {
		return 0, cuapi.ErrorOutOfMemory
	}
	return cuapi.DevicePtr(a.addr), cuapi.Success
}

// MemFreeAsync frees stream-ordered memory when the stream gets there. From
// this call on the address is invalid for other calls; 1 for anything but the
// start of live stream-ordered memory.
func (e *Emulator) MemFreeAsync(p cuapi.DevicePtr, sh cuapi.Stream) cuapi.Result {
	_, s, r := e.enterStream(sh)
	if r != cuapi.Success {
		return r
	}
	d := e.owner(uint64(p))
	if d == nil {
		return cuapi.ErrorInvalidValue
	}
	a, in := d.mem.find(uint64(p))
	pool := d.mem.pool
	if a == nil || in != pool.arena || a.addr != uint64(p) || !pool.claim(a) {
		return cuapi.ErrorInvalidValue
	}
	s.ctx.enqueue(s, &freeing{pool, a})
	return cuapi.Success
}

// DeviceGetDefaultMemPool is the device's only pool.
func (e *Emulator) DeviceGetDefaultMemPool(d cuapi.Device) (cuapi.MemPool, cuapi.Result) {
	dev, r := e.device(d)
	if r != cuapi.Success {
		return 0, r
	}
	return dev.mem.pool.handle, cuapi.Success
}

// pool resolves a pool handle; its deviceMemory's lock is not held.
func (e *Emulator) pool(h cuapi.MemPool) (*memPool, cuapi.Result) {
	if r := e.ready(); r != cuapi.Success {
		return nil, r
	}
	p := e.pools.get(h)
	if p == nil {
		return nil, cuapi.ErrorInvalidValue
	}
	return p, p.of.dev.status()
}

// MemPoolTrimTo gives idle memory back until at most keep bytes stay reserved.
func (e *Emulator) MemPoolTrimTo(h cuapi.MemPool, keep uint64) cuapi.Result {
	p, r := e.pool(h)
	if r != cuapi.Success {
		return r
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.trim(keep)
	return cuapi.Success
}

// MemPoolGetAttribute knows the release threshold, the reuse switches, and the
// current and highest numbers of reserved and used bytes.
func (e *Emulator) MemPoolGetAttribute(h cuapi.MemPool, a cuapi.MemPoolAttribute) (uint64, cuapi.Result) {
	p, r := e.pool(h)
	if r != cuapi.Success {
		return 0, r
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	switch a {
	case cuapi.MemPoolReleaseThreshold:
		return p.threshold, cuapi.Success
	case cuapi.MemPoolReservedMemCurrent:
		return p.reserved, cuapi.Success
	case cuapi.MemPoolReservedMemHigh:
		return p.reservedHigh, cuapi.Success
	case cuapi.MemPoolUsedMemCurrent:
		return p.used, cuapi.Success
	case cuapi.MemPoolUsedMemHigh:
		return p.usedHigh, cuapi.Success
	}
	if v, ok := p.reuse[a]; ok {
		return v, cuapi.Success
	}
	return 0, cuapi.ErrorInvalidValue
}

// MemPoolSetAttribute sets the threshold and the reuse switches; the highest
// numbers can only be reset to 0, which makes them the current ones.
func (e *Emulator) MemPoolSetAttribute(h cuapi.MemPool, a cuapi.MemPoolAttribute, v uint64) cuapi.Result {
	p, r := e.pool(h)
	if r != cuapi.Success {
		return r
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	_, isReuse := p.reuse[a]
	switch {
	case a == cuapi.MemPoolReleaseThreshold:
		p.threshold = v
	case a == cuapi.MemPoolReservedMemHigh && v == 0:
		p.reservedHigh = p.reserved
	case a == cuapi.MemPoolUsedMemHigh && v == 0:
		p.usedHigh = p.used
	case isReuse && v <= 1:
		p.reuse[a] = v
	default:
		return cuapi.ErrorInvalidValue
	}
	return cuapi.Success
}

// MemPoolSetAccess opens the pool to device d, which CtxEnablePeerAccess does
// not. The pool's own device cannot lose access (1); a pair without a link is
// refused (101).
func (e *Emulator) MemPoolSetAccess(h cuapi.MemPool, d cuapi.Device, access cuapi.MemAccessFlags) cuapi.Result {
	p, r := e.pool(h)
	if r != cuapi.Success {
		return r
	}
	dev, r := e.device(d)
	if r != cuapi.Success {
		return r
	}
	switch access {
	case cuapi.MemAccessProtNone, cuapi.MemAccessProtReadwrite:
	default:
		return cuapi.ErrorInvalidValue
	}
	if dev == p.of.dev {
		if access == cuapi.MemAccessProtNone {
			return cuapi.ErrorInvalidValue
		}
		return cuapi.Success
	}
	if access != cuapi.MemAccessProtNone && !e.canAccess(dev, p.of.dev) {
		return cuapi.ErrorInvalidDevice
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.access[dev] = access
	return cuapi.Success
}
