package emu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

// pair is two devices with a word of memory each.
type pair struct {
	e      *Emulator
	ctx    [2]cuapi.Context
	cell   [2]cuapi.DevicePtr
	stream [2]cuapi.Stream
}

func newPair(t *testing.T, opts ...Option) *pair {
	p := &pair{e: newEmu(t, 2, opts...)}
	for d := range 2 {
		p.ctx[d] = retain(t, p.e, d)
		p.cell[d] = must(p.e.MemAlloc(64))(t)
		p.stream[d] = newTestStream(t, p.e)
		ok(t, p.e.MemsetD32(p.cell[d], uint32(d), 16))
		ok(t, p.e.CtxSynchronize())
	}
	ok(t, p.e.CtxSetCurrent(p.ctx[0]))
	return p
}

func TestPeerAccessCodes(t *testing.T) {
	p := newPair(t, WithPeerAccess(func(a, b int) bool { return a == 0 }))
	e := p.e
	assert.Equal(t, cuapi.ErrorPeerAccessNotEnabled, e.CtxDisablePeerAccess(p.ctx[1]))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.CtxEnablePeerAccess(p.ctx[1], 1))
	ok(t, e.CtxEnablePeerAccess(p.ctx[1], 0))
	assert.Equal(t, cuapi.ErrorPeerAccessAlreadyEnabled, e.CtxEnablePeerAccess(p.ctx[1], 0))
	ok(t, e.CtxDisablePeerAccess(p.ctx[1]))
	assert.Equal(t, cuapi.ErrorPeerAccessNotEnabled, e.CtxDisablePeerAccess(p.ctx[1]))
	assert.Equal(t, cuapi.ErrorInvalidContext, e.CtxEnablePeerAccess(p.ctx[0], 0), "itself")
	assert.Equal(t, cuapi.ErrorInvalidContext, e.CtxEnablePeerAccess(99, 0))
	ok(t, e.CtxSetCurrent(p.ctx[1]))
	assert.Equal(t, cuapi.ErrorPeerAccessUnsupported, e.CtxEnablePeerAccess(p.ctx[0], 0))
	pool := must(e.DeviceGetDefaultMemPool(0))(t)
	assert.Equal(t, cuapi.ErrorInvalidDevice, e.MemPoolSetAccess(pool, 1, cuapi.MemAccessProtReadwrite))
}

func TestPeerAccessEndsWithThePeersContext(t *testing.T) {
	p := newPair(t)
	e := p.e
	ok(t, e.CtxEnablePeerAccess(p.ctx[1], 0))
	ok(t, e.DevicePrimaryCtxRelease(1))
	again := retain(t, e, 1)
	cell := must(e.MemAlloc(4))(t)
	ok(t, e.CtxSetCurrent(p.ctx[0]))
	assert.Equal(t, cuapi.ErrorInvalidContext, e.CtxDisablePeerAccess(p.ctx[1]))
	ok(t, e.CtxEnablePeerAccess(again, 0))
	ok(t, e.MemsetD8(cell, 0, 4))
	ok(t, e.CtxSynchronize())
	ok(t, e.CtxDisablePeerAccess(again))
	ok(t, e.MemsetD8(cell, 0, 4))
	assert.Equal(t, cuapi.ErrorIllegalAddress, e.CtxSynchronize())
}

func TestPeerCopyNeedsNoAccess(t *testing.T) {
	p := newPair(t, WithPeerAccess(func(a, b int) bool { return false }))
	e := p.e
	ok(t, e.MemcpyPeer(p.cell[0], p.ctx[0], p.cell[1], p.ctx[1], 4))
	assert.EqualValues(t, 1, word(t, e, p.cell[0]))
	ok(t, e.MemsetD32(p.cell[0], 77, 1))
	ok(t, e.CtxSynchronize())
	ok(t, e.MemcpyPeerAsync(p.cell[1], p.ctx[1], p.cell[0], p.ctx[0], 4, p.stream[1]))
	ok(t, e.StreamSynchronize(p.stream[1]))
	assert.EqualValues(t, 77, word(t, e, p.cell[1]))

	for name, r := range map[string]cuapi.Result{
		"contexts swapped": e.MemcpyPeer(p.cell[0], p.ctx[1], p.cell[1], p.ctx[0], 4),
		"past the end":     e.MemcpyPeerAsync(p.cell[0], p.ctx[0], p.cell[1], p.ctx[1], 65, p.stream[0]),
	} {
		assert.Equal(t, cuapi.ErrorInvalidValue, r, name)
	}
	assert.Equal(t, cuapi.ErrorInvalidContext, e.MemcpyPeer(p.cell[0], p.ctx[0], p.cell[1], 1, 4))
	ok(t, e.MemcpyPeer(0, p.ctx[0], 0, p.ctx[1], 0))
}

func TestPeerCopyFollowsItsStream(t *testing.T) {
	p := newPair(t)
	e := p.e
	v := must(e.EventCreate(cuapi.EventDisableTiming))(t)
	open := hold(t, e, p.stream[0])
	ok(t, e.MemsetD32Async(p.cell[0], 50, 1, p.stream[0]))
	ok(t, e.EventRecord(v, p.stream[0]))
	ok(t, e.StreamWaitEvent(p.stream[1], v, 0))
	ok(t, e.MemcpyPeerAsync(p.cell[1], p.ctx[1], p.cell[0], p.ctx[0], 4, p.stream[1]))
	time.Sleep(5 * time.Millisecond)
	assert.Equal(t, cuapi.ErrorNotReady, e.StreamQuery(p.stream[1]))
	open()
	ok(t, e.StreamSynchronize(p.stream[1]))
	assert.EqualValues(t, 50, word(t, e, p.cell[1]))
}

func TestCopyWithoutAccessIsAStickyFaultOfOneDevice(t *testing.T) {
	for name, work := range map[string]func(p *pair) cuapi.Result{
		"copy from": func(p *pair) cuapi.Result {
			return p.e.MemcpyDtoDAsync(p.cell[0], p.cell[1], 4, p.stream[0])
		},
		"copy to": func(p *pair) cuapi.Result {
			return p.e.MemcpyDtoDAsync(p.cell[1], p.cell[0], 4, p.stream[0])
		},
		"fill": func(p *pair) cuapi.Result { return p.e.MemsetD8Async(p.cell[1], 0, 4, p.stream[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			e := p.e
			// With access it works.
			ok(t, e.CtxEnablePeerAccess(p.ctx[1], 0))
			ok(t, work(p))
			ok(t, e.StreamSynchronize(p.stream[0]))
			assert.Nil(t, e.LastFault())

			ok(t, e.CtxDisablePeerAccess(p.ctx[1]))
			ok(t, work(p))
			assert.Equal(t, cuapi.ErrorIllegalAddress, e.StreamSynchronize(p.stream[0]))
			assert.Equal(t, cuapi.ErrorIllegalAddress, e.CtxSynchronize())
			_, r := e.MemAlloc(4)
			assert.Equal(t, cuapi.ErrorIllegalAddress, r)
			f := e.LastFault()
			require.NotNil(t, f)
			assert.Equal(t, vm.NoPeerAccess, f.Kind)
			assert.Equal(t, uint64(p.cell[1]), f.Address)
			assert.Equal(t, 0, f.Device)
			assert.ErrorContains(t, f, "device 0")

			ok(t, e.CtxSetCurrent(p.ctx[1]))
			ok(t, e.CtxSynchronize())
			ok(t, e.MemsetD8(p.cell[1], 1, 4))
			assert.EqualValues(t, 0x01010101, word(t, e, p.cell[1]))
		})
	}
}

func TestPoolMemoryFollowsPoolAccessNotPeerAccess(t *testing.T) {
	p := newPair(t)
	e := p.e
	ok(t, e.CtxSetCurrent(p.ctx[1]))
	m := must(e.MemAllocAsync(4, p.stream[1]))(t)
	ok(t, e.MemsetD32Async(m, 9, 1, p.stream[1]))
	ok(t, e.StreamSynchronize(p.stream[1]))
	pool := must(e.DeviceGetDefaultMemPool(1))(t)
	ok(t, e.MemPoolSetAccess(pool, 0, cuapi.MemAccessProtReadwrite))
	ok(t, e.CtxSetCurrent(p.ctx[0]))
	ok(t, e.MemcpyDtoD(p.cell[0], m, 4)) // pool access alone is enough
	assert.EqualValues(t, 9, word(t, e, p.cell[0]))
	ok(t, e.CtxEnablePeerAccess(p.ctx[1], 0))
	ok(t, e.MemPoolSetAccess(pool, 0, cuapi.MemAccessProtNone))
	ok(t, e.MemcpyDtoD(p.cell[0], m, 4)) // peer access alone is not
	assert.Equal(t, cuapi.ErrorIllegalAddress, e.CtxSynchronize())
}

func TestCorruptedLinkChangesPeerCopiesOnly(t *testing.T) {
	p := newPair(t, WithPeerCorruption(func(src, dst int, data []byte) {
		if src == 1 && dst == 0 {
			data[len(data)-1] ^= 0x80
		}
	}))
	e := p.e
	ok(t, e.MemcpyPeer(p.cell[0], p.ctx[0], p.cell[1], p.ctx[1], 8))
	assert.EqualValues(t, 1, word(t, e, p.cell[0]))
	assert.EqualValues(t, 0x80000001, word(t, e, p.cell[0]+4))
	ok(t, e.MemcpyDtoD(p.cell[0]+8, p.cell[0]+4, 4))
	assert.EqualValues(t, 0x80000001, word(t, e, p.cell[0]+8))
	ok(t, e.MemcpyPeer(p.cell[1], p.ctx[1], p.cell[0], p.ctx[0], 4))
	assert.EqualValues(t, 1, word(t, e, p.cell[1]))
}

func TestSixtyFourDevices(t *testing.T) {
	const n = 64
	e := newEmu(t, n)
	var ctx [n]cuapi.Context
	var cell [n]cuapi.DevicePtr
	for d := range n {
		ctx[d] = retain(t, e, d)
		cell[d] = must(e.MemAlloc(4))(t)
		assert.Equal(t, d, must(e.PointerGetInfo(cell[d]))(t).Ordinal)
		ok(t, e.MemsetD32(cell[d], uint32(d), 1))
		ok(t, e.CtxSynchronize())
		for k := range d {
			ok(t, e.CtxEnablePeerAccess(ctx[k], 0))
		}
	}
	// A value goes round the ring.
	for d := range n {
		next := (d + 1) % n
		ok(t, e.MemcpyPeer(cell[next], ctx[next], cell[d], ctx[d], 4))
	}
	for d := range n {
		assert.EqualValues(t, 0, word(t, e, cell[d]))
	}
}

func TestEmulatorsShareNothing(t *testing.T) {
	a, b := newEmu(t, 1), newEmu(t, 1)
	retain(t, a, 0)
	assert.Zero(t, must(b.CtxGetCurrent())(t))
	retain(t, b, 0)
	p := must(a.MemAlloc(4))(t)
	assert.Equal(t, cuapi.ErrorInvalidValue, b.MemFree(p))
	a.KillDevice(0)
	ok(t, b.CtxSynchronize())
	assert.Equal(t, cuapi.ErrorLaunchFailed, a.CtxSynchronize())
	assert.Nil(t, b.LastFault())
}
