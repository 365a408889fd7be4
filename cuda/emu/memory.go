package emu

import (
	"fmt"
	"sort"
	"sync"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

// Layout of the address space: device i owns deviceSpan addresses from
// devicesBase + i*deviceSpan, the lower half for plain memory, the upper half
// for its pool. Go's heap, which may begin anywhere, lies below devicesBase on
// all systems with virtual addresses of 47 or 48 bits.
const (
	devicesBase = 1 << 47
	deviceShift = 40
	deviceSpan  = 1 << deviceShift
	arenaSize   = deviceSpan / 2

	// Allocations start at multiples of allocAlign and have at least
	// allocGuard unmapped bytes between them.
	allocAlign = 512
	allocGuard = 256
)

func alignUp(v, to uint64) uint64 { return (v + to - 1) &^ (to - 1) }

// allocation is a live range of an arena.
type allocation struct {
	addr, size uint64
	ctx        *context
	freeing    bool // MemFreeAsync is under way
}

// charged is what the allocation takes of the device's memory.
func (a *allocation) charged() uint64 { return alignUp(a.size, allocAlign) }

// arena hands out addresses of one vm.Memory. A freed range is used again only
// when the arena has gone round once, so that late accesses are noticed. Its
// deviceMemory's lock guards it.
type arena struct {
	mem       *vm.Memory
	base, end uint64
	cursor    uint64
	live      []*allocation // by address
}

func newArena(name string, base uint64) *arena {
	return &arena{mem: vm.NewMemory(name, base, arenaSize), base: base, end: base + arenaSize, cursor: base}
}

// after is the index of the first allocation that ends beyond addr.
func (a *arena) after(addr uint64) int {
	return sort.Search(len(a.live), func(i int) bool { return a.live[i].addr+a.live[i].size > addr })
}

// place finds room for size bytes at or after from.
func (a *arena) place(from, size uint64) (addr uint64, index int, ok bool) {
	addr, index = from, a.after(from)
	for ; index < len(a.live); index++ {
		next := a.live[index]
		if next.addr >= addr+size+allocGuard {
			return addr, index, true
		}
		addr = alignUp(next.addr+next.size+allocGuard, allocAlign)
	}
	return addr, index, addr+size <= a.end
}

// alloc maps size bytes, or is nil when the address range is exhausted.
func (a *arena) alloc(c *context, size uint64, o vm.MapOptions) *allocation {
	addr, i, ok := a.place(a.cursor, size)
	if !ok {
		if addr, i, ok = a.place(a.base, size); !ok {
			return nil
		}
	}
	if _, err := a.mem.Map(addr, size, o); err != nil {
		return nil
	}
	n := &allocation{addr: addr, size: size, ctx: c}
	a.live = append(a.live, nil)
	copy(a.live[i+1:], a.live[i:])
	a.live[i] = n
	a.cursor = alignUp(addr+size+allocGuard, allocAlign)
	return n
}

// find is the allocation that contains addr, or nil.
func (a *arena) find(addr uint64) *allocation {
	if i := a.after(addr); i < len(a.live) && a.live[i].addr <= addr {
		return a.live[i]
	}
	return nil
}

// free unmaps n, which must be live.
func (a *arena) free(n *allocation) {
	i := a.after(n.addr)
	a.live = append(a.live[:i], a.live[i+1:]...)
	// A range of live is mapped, so this cannot fail.
	_ = a.mem.Unmap(n.addr)
}

// deviceMemory is the memory of a device: plain allocations and a pool share
// its size.
type deviceMemory struct {
	dev   *device
	total uint64

	mu    sync.Mutex
	plain *arena
	used  uint64 // by plain allocations
	pool  *memPool
}

func newDeviceMemory(d *device, total uint64) *deviceMemory {
	base := devicesBase + uint64(d.ordinal)*deviceSpan
	name := fmt.Sprintf("device %d", d.ordinal)
	m := &deviceMemory{dev: d, total: total, plain: newArena(name, base)}
	m.pool = newMemPool(m, newArena(name+" pool", base+arenaSize))
	return m
}

// free is what no allocation and no pool holds; mu is held.
func (m *deviceMemory) free() uint64 { return m.total - m.used - m.pool.reserved }

// alloc is an allocation of plain memory, or nil when there is no room.
func (m *deviceMemory) alloc(c *context, size uint64, o vm.MapOptions) *allocation {
	m.mu.Lock()
	defer m.mu.Unlock()
	if size > m.total || alignUp(size, allocAlign) > m.free() {
		return nil
	}
	a := m.plain.alloc(c, size, o)
	if a != nil {
		m.used += a.charged()
	}
	return a
}

// release frees plain memory that begins at addr, if it does still.
func (m *deviceMemory) release(addr uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.plain.find(addr)
	if a == nil || a.addr != addr {
		return false
	}
	m.plain.free(a)
	m.used -= a.charged()
	return true
}

// reset frees everything: the context is gone.
func (m *deviceMemory) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.plain.live) > 0 {
		m.plain.free(m.plain.live[0])
	}
	m.used = 0
	m.pool.reset()
}

// find is the live allocation that contains addr, and the arena it is in.
func (m *deviceMemory) find(addr uint64) (*allocation, *arena) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range []*arena{m.plain, m.pool.arena} {
		if n := a.find(addr); n != nil && !n.freeing {
			return n, a
		}
	}
	return nil, nil
}

// owner is the device whose range holds addr, or nil for host addresses.
func (e *Emulator) owner(addr uint64) *device {
	i := (addr - devicesBase) >> deviceShift // host addresses wrap round to large numbers
	if i >= uint64(len(e.devices)) {
		return nil
	}
	return e.devices[i]
}

// MemAlloc answers 1 for no bytes and 2 when the device is full. The memory
// counts as never written.
func (e *Emulator) MemAlloc(n uint64) (cuapi.DevicePtr, cuapi.Result) {
	c, r := e.enter()
	if r != cuapi.Success {
		return 0, r
	}
	if n == 0 {
		return 0, cuapi.ErrorInvalidValue
	}
	a := c.dev.mem.alloc(c, n, vm.MapOptions{})
	if a == nil {
		return 0, cuapi.ErrorOutOfMemory
	}
	return cuapi.DevicePtr(a.addr), cuapi.Success
}

// MemFree waits for the context that owns the memory, then frees it. p must be
// the start of a live allocation (1); stream-ordered memory is accepted too.
func (e *Emulator) MemFree(p cuapi.DevicePtr) cuapi.Result {
	if _, r := e.enter(); r != cuapi.Success {
		return r
	}
	d := e.owner(uint64(p))
	if d == nil {
		return cuapi.ErrorInvalidValue
	}
	a, in := d.mem.find(uint64(p))
	if a == nil || a.addr != uint64(p) {
		return cuapi.ErrorInvalidValue
	}
	if r := a.ctx.synchronize(); r != cuapi.Success {
		return r
	}
	freed := false
	if in == d.mem.plain {
		freed = d.mem.release(a.addr)
	} else if freed = d.mem.pool.claim(a); freed {
		d.mem.pool.release(a)
	}
	if !freed {
		return cuapi.ErrorInvalidValue
	}
	return cuapi.Success
}

// MemGetInfo is the state of the current context's device. Memory that its
// pool keeps reserved is not free.
func (e *Emulator) MemGetInfo() (free, total uint64, r cuapi.Result) {
	c, r := e.enter()
	if r != cuapi.Success {
		return 0, 0, r
	}
	m := c.dev.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.free(), m.total, cuapi.Success
}

// MemGetAddressRange finds the allocation around p; 500 when there is none.
func (e *Emulator) MemGetAddressRange(p cuapi.DevicePtr) (base cuapi.DevicePtr, size uint64, r cuapi.Result) {
	if _, r := e.enter(); r != cuapi.Success {
		return 0, 0, r
	}
	if i := e.pointerInfo(uint64(p)); i.MemoryType != 0 {
		return i.RangeStart, i.RangeSize, cuapi.Success
	}
	return 0, 0, cuapi.ErrorNotFound
}

// PointerGetInfo succeeds with a zero MemoryType for addresses that the driver
// did not hand out.
func (e *Emulator) PointerGetInfo(p cuapi.DevicePtr) (cuapi.PointerInfo, cuapi.Result) {
	if _, r := e.enter(); r != cuapi.Success {
		return cuapi.PointerInfo{}, r
	}
	return e.pointerInfo(uint64(p)), cuapi.Success
}

func (e *Emulator) pointerInfo(addr uint64) cuapi.PointerInfo {
	d := e.owner(addr)
	if d == nil {
		return e.host.pointerInfo(addr)
	}
	a, _ := d.mem.find(addr)
	if a == nil {
		return cuapi.PointerInfo{}
	}
	return cuapi.PointerInfo{
		MemoryType: cuapi.MemoryTypeDevice,
		Context:    a.ctx.handle,
		Ordinal:    d.ordinal,
		RangeStart: cuapi.DevicePtr(a.addr),
		RangeSize:  a.size,
	}
}
