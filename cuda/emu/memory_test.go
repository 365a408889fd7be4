package emu

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

func TestAllocationsHaveTheirRangesAndBounds(t *testing.T) {
	r := newRand(t)
	e := newEmu(t, 3)
	type block struct {
		p   cuapi.DevicePtr
		n   uint64
		dev int
	}
	var live []block
	for range 300 {
		d := r.IntN(3)
		retain(t, e, d)
		n := 1 + r.Uint64N(5000)
		p := must(e.MemAlloc(n))(t)
		assert.Zero(t, p%256, "alignment")
		for _, b := range live {
			assert.False(t, p < b.p+cuapi.DevicePtr(b.n) && b.p < p+cuapi.DevicePtr(n), "overlap")
		}
		live = append(live, block{p, n, d})
		if len(live) > 40 {
			k := r.IntN(len(live))
			ok(t, e.MemFree(live[k].p))
			live = append(live[:k], live[k+1:]...)
		}
	}
	for _, b := range live {
		for _, off := range []uint64{0, b.n / 2, b.n - 1} {
			base, size, r := e.MemGetAddressRange(b.p + cuapi.DevicePtr(off))
			ok(t, r)
			assert.Equal(t, b.p, base)
			assert.Equal(t, b.n, size)
		}
		i := must(e.PointerGetInfo(b.p))(t)
		assert.Equal(t, cuapi.MemoryTypeDevice, i.MemoryType)
		assert.Equal(t, b.dev, i.Ordinal)
		_, _, r := e.MemGetAddressRange(b.p + cuapi.DevicePtr(b.n))
		assert.Equal(t, cuapi.ErrorNotFound, r)
	}
}

func TestOutOfMemoryFollowsTheConfiguredSize(t *testing.T) {
	const size = 1 << 20
	e := one(t, WithMemory(size))
	_, r := e.MemAlloc(size + 1)
	assert.Equal(t, cuapi.ErrorOutOfMemory, r)
	_, r = e.MemAlloc(1 << 62)
	assert.Equal(t, cuapi.ErrorOutOfMemory, r)
	_, r = e.MemAlloc(0)
	assert.Equal(t, cuapi.ErrorInvalidValue, r)
	a := must(e.MemAlloc(size / 2))(t)
	b := must(e.MemAlloc(size / 2))(t)
	_, r = e.MemAlloc(1)
	assert.Equal(t, cuapi.ErrorOutOfMemory, r)
	_, r = e.MemAllocAsync(1, 0)
	assert.Equal(t, cuapi.ErrorOutOfMemory, r)
	ok(t, e.MemFree(a))
	free, total, r := e.MemGetInfo()
	ok(t, r)
	assert.EqualValues(t, size, total)
	assert.EqualValues(t, size/2, free)
	must(e.MemAllocAsync(size/2, 0))(t)
	ok(t, e.MemFree(b))
}

func TestAddressesAreNotReusedAtOnce(t *testing.T) {
	e := one(t)
	p := must(e.MemAlloc(64))(t)
	ok(t, e.MemFree(p))
	assert.NotEqual(t, p, must(e.MemAlloc(64))(t))
}

func TestArenaGoesRoundWhenItsEndIsReached(t *testing.T) {
	a := newArena("test", 1<<20)
	a.end = a.base + 16*allocAlign
	fits := func(n uint64) *allocation { return a.alloc(nil, n, vm.MapOptions{}) }
	first, second := fits(4*allocAlign), fits(4*allocAlign)
	third := fits(5 * allocAlign)
	assert.NotNil(t, third)
	assert.Nil(t, fits(2*allocAlign))
	a.free(second)
	again := fits(3 * allocAlign)
	assert.Equal(t, second.addr, again.addr)
	assert.Nil(t, fits(4*allocAlign))
	a.free(first)
	assert.Equal(t, a.base, fits(3*allocAlign).addr)
	assert.Equal(t, third, a.find(third.addr+5*allocAlign-1))
	assert.Nil(t, a.find(third.addr+5*allocAlign))
}

func TestFreeingTheWrongPointer(t *testing.T) {
	e := newEmu(t, 2)
	retain(t, e, 0)
	p := must(e.MemAlloc(64))(t)
	host := must(e.MemHostAlloc(64, 0))(t)
	for name, q := range map[string]cuapi.DevicePtr{
		"zero": 0, "inside": p + 8, "behind": p + 64, "unknown": 1<<47 + 1<<39,
		"host": cuapi.DevicePtr(uintptr(unsafe.Pointer(&host[0]))),
	} {
		assert.Equal(t, cuapi.ErrorInvalidValue, e.MemFree(q), name)
		assert.Equal(t, cuapi.ErrorInvalidValue, e.MemFreeAsync(q, 0), name)
	}
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemFreeAsync(p, 0), "plain memory")
	ok(t, e.MemFree(p))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemFree(p), "twice")
	assert.Zero(t, must(e.PointerGetInfo(p))(t).MemoryType)
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemFreeHost(host[8:]))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemFreeHost(nil))
	ok(t, e.MemFreeHost(host))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemFreeHost(host))
}

func TestCopiesCheckTheirRanges(t *testing.T) {
	e := one(t)
	p, q := must(e.MemAlloc(64))(t), must(e.MemAlloc(64))(t)
	b := make([]byte, 65)
	for name, r := range map[string]cuapi.Result{
		"upload past the end":   e.MemcpyHtoD(p, b),
		"upload behind":         e.MemcpyHtoD(p+64, b[:1]),
		"upload before":         e.MemcpyHtoD(p-1, b[:1]),
		"upload to nowhere":     e.MemcpyHtoDAsync(0, b, 0),
		"download past the end": e.MemcpyDtoH(b[:33], p+32),
		"download from nowhere": e.MemcpyDtoHAsync(b, 5, 0),
		"copy past the end":     e.MemcpyDtoD(q, p, 65),
		"copy to past the end":  e.MemcpyDtoDAsync(q+1, p, 64, 0),
		"huge copy":             e.MemcpyDtoD(q, p, 1<<63),
		"fill past the end":     e.MemsetD8(p, 0, 65),
		"fill 32 past the end":  e.MemsetD32(p+4, 0, 16),
		"fill 32 misaligned":    e.MemsetD32(p+2, 0, 1),
		"huge fill":             e.MemsetD32(p, 0, 1<<62+1),
	} {
		assert.Equal(t, cuapi.ErrorInvalidValue, r, name)
	}
	ok(t, e.MemcpyHtoD(0, nil))
	ok(t, e.MemcpyDtoH(nil, 0))
	ok(t, e.MemcpyDtoD(0, 0, 0))
	ok(t, e.MemsetD8(0, 1, 0))
	ok(t, e.CtxSynchronize())
}

func TestCopiesMoveBytes(t *testing.T) {
	r := newRand(t)
	e := one(t)
	const n = 4096
	p, q := must(e.MemAlloc(n))(t), must(e.MemAlloc(n))(t)
	model := [2][]byte{make([]byte, n), make([]byte, n)}
	at := [2]cuapi.DevicePtr{p, q}
	ok(t, e.MemsetD8(p, 0, n))
	ok(t, e.MemsetD8(q, 0, n))
	for range 500 {
		k, size := r.IntN(2), r.IntN(n/2)
		off, from := r.IntN(n-size), r.IntN(n-size)
		switch dst := at[k] + cuapi.DevicePtr(off); r.IntN(4) {
		case 0:
			b := randomBytes(r, size)
			copy(model[k][off:], b)
			ok(t, e.MemcpyHtoD(dst, b))
		case 1:
			src := r.IntN(2)
			copy(model[k][off:off+size], model[src][from:])
			ok(t, e.MemcpyDtoD(dst, at[src]+cuapi.DevicePtr(from), uint64(size)))
		case 2:
			v := byte(r.Uint32())
			for i := range size {
				model[k][off+i] = v
			}
			ok(t, e.MemsetD8(dst, v, uint64(size)))
		case 3:
			off &^= 3
			v := r.Uint32()
			for i := range size / 4 {
				copy(model[k][off+4*i:], words(v))
			}
			ok(t, e.MemsetD32(at[k]+cuapi.DevicePtr(off), v, uint64(size/4)))
		}
	}
	for k := range at {
		got := make([]byte, n)
		ok(t, e.MemcpyDtoH(got, at[k]))
		assert.Equal(t, model[k], got)
	}
}

func TestCopiesCarryTheUnwrittenState(t *testing.T) {
	e := newEmu(t, 2)
	c1 := retain(t, e, 1)
	q := must(e.MemAlloc(64))(t)
	ok(t, e.MemsetD8(q, 1, 64))
	c0 := retain(t, e, 0)
	p := must(e.MemAlloc(64))(t)
	ok(t, e.MemcpyHtoD(p+8, words(1, 2)))
	written := func(dev int, at cuapi.DevicePtr) uint64 {
		return e.devices[dev].mem.plain.mem.Find(uint64(at)).WrittenBytes()
	}
	assert.EqualValues(t, 8, written(0, p))
	ok(t, e.CtxSynchronize())
	ok(t, e.MemcpyPeer(q, c1, p, c0, 16))
	assert.EqualValues(t, 64-16+8, written(1, q))
}

func TestPageLockedMemory(t *testing.T) {
	e := newEmu(t, 2)
	c := retain(t, e, 1)
	b := must(e.MemHostAlloc(10000, cuapi.MemHostAllocPortable))(t)
	assert.Len(t, b, 10000)
	addr := cuapi.DevicePtr(uintptr(unsafe.Pointer(&b[0])))
	assert.Zero(t, addr%hostPage)
	assert.Equal(t, cuapi.PointerInfo{MemoryType: cuapi.MemoryTypeHost, Context: c, Ordinal: 1, RangeStart: addr, RangeSize: 10000},
		must(e.PointerGetInfo(addr+9999))(t))
	_, r := e.MemHostAlloc(0, 0)
	assert.Equal(t, cuapi.ErrorInvalidValue, r)
	_, r = e.MemHostAlloc(1, 64)
	assert.Equal(t, cuapi.ErrorInvalidValue, r)

	own := make([]byte, 64)[3:] // registration takes any alignment
	ok(t, e.MemHostRegister(own, 0))
	assert.Equal(t, cuapi.ErrorHostMemoryAlreadyRegistered, e.MemHostRegister(own, 0))
	assert.Equal(t, cuapi.ErrorHostMemoryAlreadyRegistered, e.MemHostRegister(own[10:20], 0))
	assert.Equal(t, cuapi.ErrorHostMemoryNotRegistered, e.MemHostUnregister(own[1:]))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemFreeHost(own), "registered, not allocated")
	assert.Equal(t, cuapi.ErrorHostMemoryNotRegistered, e.MemHostUnregister(b), "allocated, not registered")
	ok(t, e.MemHostUnregister(own))
	assert.Equal(t, cuapi.ErrorHostMemoryNotRegistered, e.MemHostUnregister(own))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemHostRegister(nil, 0))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemHostRegister(own, 1<<20))

	// Device addresses and host addresses mix in copies.
	p := must(e.MemAlloc(8))(t)
	copy(b, words(1, 2))
	ok(t, e.MemcpyDtoD(p, addr, 8))
	assert.EqualValues(t, 2, word(t, e, p+4))

	// The end of the context frees its host memory.
	ok(t, e.DevicePrimaryCtxRelease(1))
	retain(t, e, 1)
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemFreeHost(b))
}

func TestPool(t *testing.T) {
	const size = 1 << 20
	e := newEmu(t, 2, WithMemory(size))
	retain(t, e, 0)
	s := newTestStream(t, e)
	pool := must(e.DeviceGetDefaultMemPool(0))(t)
	attr := func(a cuapi.MemPoolAttribute) uint64 { return must(e.MemPoolGetAttribute(pool, a))(t) }
	free := func() uint64 { f, _, r := e.MemGetInfo(); ok(t, r); return f }

	open := hold(t, e, s)
	p := must(e.MemAllocAsync(1024, s))(t)
	assert.EqualValues(t, 1024, attr(cuapi.MemPoolUsedMemCurrent))
	ok(t, e.MemFreeAsync(p, s))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemFreeAsync(p, s), "twice")
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemcpyHtoD(p, words(1)), "freed in program order")
	assert.EqualValues(t, 1024, attr(cuapi.MemPoolUsedMemCurrent), "the stream has not freed it yet")
	open()
	ok(t, e.StreamSynchronize(s))
	assert.Zero(t, attr(cuapi.MemPoolUsedMemCurrent))
	assert.EqualValues(t, size, free())

	// A release threshold keeps memory in the pool.
	ok(t, e.MemPoolSetAttribute(pool, cuapi.MemPoolReleaseThreshold, size))
	p = must(e.MemAllocAsync(2048, s))(t)
	ok(t, e.MemFree(p)) // the synchronous form is allowed
	assert.EqualValues(t, 2048, attr(cuapi.MemPoolReservedMemCurrent))
	assert.EqualValues(t, size-2048, free())
	_, r := e.MemAlloc(size - 1024)
	assert.Equal(t, cuapi.ErrorOutOfMemory, r)
	must(e.MemAllocAsync(512, s))(t)
	assert.EqualValues(t, 2048, attr(cuapi.MemPoolReservedMemCurrent), "reused")
	ok(t, e.MemPoolTrimTo(pool, 0))
	assert.EqualValues(t, 512, attr(cuapi.MemPoolReservedMemCurrent), "memory in use stays")
	assert.EqualValues(t, 2048, attr(cuapi.MemPoolReservedMemHigh))
	assert.EqualValues(t, 2048, attr(cuapi.MemPoolUsedMemHigh))
	ok(t, e.MemPoolSetAttribute(pool, cuapi.MemPoolUsedMemHigh, 0))
	assert.EqualValues(t, 512, attr(cuapi.MemPoolUsedMemHigh))

	for name, r := range map[string]cuapi.Result{
		"high set":       e.MemPoolSetAttribute(pool, cuapi.MemPoolUsedMemHigh, 1),
		"current set":    e.MemPoolSetAttribute(pool, cuapi.MemPoolUsedMemCurrent, 0),
		"switch":         e.MemPoolSetAttribute(pool, cuapi.MemPoolReuseAllowOpportunistic, 2),
		"no pool":        e.MemPoolTrimTo(12345, 0),
		"own access":     e.MemPoolSetAccess(pool, 0, cuapi.MemAccessProtNone),
		"unknown access": e.MemPoolSetAccess(pool, 1, 2),
	} {
		assert.Equal(t, cuapi.ErrorInvalidValue, r, name)
	}
	assert.Equal(t, cuapi.ErrorInvalidDevice, e.MemPoolSetAccess(pool, 9, cuapi.MemAccessProtReadwrite))
	ok(t, e.MemPoolSetAccess(pool, 0, cuapi.MemAccessProtReadwrite))
}
