package emu

import (
	"sync"
	"unsafe"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

// hostPage is the alignment of page-locked memory.
const hostPage = 4096

// hostMemory is page-locked host memory. Kernels of every device reach it, at
// its Go address.
type hostMemory struct {
	mem *vm.Memory

	mu   sync.Mutex
	live map[uint64]*hostRange // by address
}

// hostRange is one allocation or registration.
type hostRange struct {
	ctx        *context
	registered bool
	bytes      []byte // keeps the memory alive
}

func newHostMemory() *hostMemory {
	return &hostMemory{
		mem:  vm.NewMemory("host", hostPage, devicesBase-hostPage),
		live: map[uint64]*hostRange{},
	}
}

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// add maps b; false when part of it is mapped already.
func (h *hostMemory) add(c *context, b []byte, registered bool) bool {
	// The vm wants 8-byte aligned backing. Registration locks whole pages, so
	// the bytes in front are reachable on hardware too; they belong to the
	// same Go object, whose start is aligned.
	skew := addressOf(b) % 8
	start := (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), -int(skew)))
	backing := unsafe.Slice(start, len(b)+int(skew))
	addr := addressOf(backing)
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.mem.Map(addr, uint64(len(backing)), vm.MapOptions{Written: true, Backing: backing}); err != nil {
		return false
	}
	h.live[addressOf(b)] = &hostRange{ctx: c, registered: registered, bytes: b}
	return true
}

// remove unmaps the range that begins at b and is of the given kind.
func (h *hostMemory) remove(b []byte, registered bool) bool {
	addr := addressOf(b)
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.live[addr]
	if r == nil || r.registered != registered {
		return false
	}
	h.drop(addr)
	return true
}

// drop unmaps a live range; mu is held.
func (h *hostMemory) drop(addr uint64) {
	delete(h.live, addr)
	// A live range is mapped, so this cannot fail.
	_ = h.mem.Unmap(addr &^ 7)
}

// removeContext unmaps everything that c allocated or registered.
func (h *hostMemory) removeContext(c *context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for addr, r := range h.live {
		if r.ctx == c {
			h.drop(addr)
		}
	}
}

// holds reports whether all of b is page-locked.
func (h *hostMemory) holds(b []byte) bool {
	addr := addressOf(b)
	a := h.mem.Find(addr)
	return a != nil && uint64(len(b)) <= a.Size()-(addr-a.Addr())
}

func (h *hostMemory) pointerInfo(addr uint64) cuapi.PointerInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.mem.Find(addr)
	if a == nil {
		return cuapi.PointerInfo{}
	}
	for start, r := range h.live {
		if n := uint64(len(r.bytes)); addr-start < n {
			return cuapi.PointerInfo{
				MemoryType: cuapi.MemoryTypeHost,
				Context:    r.ctx.handle,
				Ordinal:    r.ctx.dev.ordinal,
				RangeStart: cuapi.DevicePtr(start),
				RangeSize:  n,
			}
		}
	}
	return cuapi.PointerInfo{}
}

// MemHostAlloc returns zeroed page-aligned memory that every device's kernels
// reach at its Go address, whatever the flags; 1 for no bytes.
func (e *Emulator) MemHostAlloc(n uint64, flags cuapi.MemHostAllocFlags) ([]byte, cuapi.Result) {
	c, r := e.enter()
	if r != cuapi.Success {
		return nil, r
	}
	const known = cuapi.MemHostAllocPortable | cuapi.MemHostAllocDeviceMap | cuapi.MemHostAllocWriteCombined
	if n == 0 || flags&^known != 0 {
		return nil, cuapi.ErrorInvalidValue
	}
	if n > deviceSpan {
		return nil, cuapi.ErrorOutOfMemory
	}
	raw := make([]byte, n+hostPage-1)
	skip := alignUp(addressOf(raw), hostPage) - addressOf(raw)
	b := raw[skip : skip+n : skip+n]
	if !e.host.add(c, b, false) {
		return nil, cuapi.ErrorOutOfMemory
	}
	return b, cuapi.Success
}

// MemFreeHost waits for the current context; 1 for anything but the slice that
// MemHostAlloc returned.
func (e *Emulator) MemFreeHost(b []byte) cuapi.Result {
	c, r := e.enter()
	if r != cuapi.Success {
		return r
	}
	if r := c.synchronize(); r != cuapi.Success {
		return r
	}
	if len(b) == 0 || !e.host.remove(b, false) {
		return cuapi.ErrorInvalidValue
	}
	return cuapi.Success
}

// MemHostRegister page-locks b, which the caller keeps in place until
// MemHostUnregister; 712 when part of it is page-locked already.
func (e *Emulator) MemHostRegister(b []byte, flags uint32) cuapi.Result {
	c, r := e.enter()
	if r != cuapi.Success {
		return r
	}
	const known = 1 | 2 | 8 // portable, device map, read only
	if len(b) == 0 || flags&^known != 0 {
		return cuapi.ErrorInvalidValue
	}
	if !e.host.add(c, b, true) {
		return cuapi.ErrorHostMemoryAlreadyRegistered
	}
	return cuapi.Success
}

// MemHostUnregister waits for the current context; 713 for anything but the
// start of registered memory.
func (e *Emulator) MemHostUnregister(b []byte) cuapi.Result {
	c, r := e.enter()
	if r != cuapi.Success {
		return r
	}
	if len(b) == 0 {
		return cuapi.ErrorInvalidValue
	}
	if r := c.synchronize(); r != cuapi.Success {
		return r
	}
	if !e.host.remove(b, true) {
		return cuapi.ErrorHostMemoryNotRegistered
	}
	return cuapi.Success
}
