package emu

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
)

// word reads 4 bytes of device memory.
func word(t testing.TB, e *Emulator, p cuapi.DevicePtr) uint32 {
	t.Helper()
	var b [4]byte
	ok(t, e.MemcpyDtoH(b[:], p))
	return binary.LittleEndian.Uint32(b[:])
}

func words(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func TestStreamIsAsynchronousAndInOrder(t *testing.T) {
	e := one(t)
	p, q := must(e.MemAlloc(4))(t), must(e.MemAlloc(4))(t)
	ok(t, e.MemcpyHtoD(q, words(0)))
	s := newTestStream(t, e)
	open := hold(t, e, s)
	// Every fill is followed by a copy, so a swapped pair would leave another value.
	for i := range uint32(100) {
		ok(t, e.MemsetD32Async(p, i, 1, s))
		ok(t, e.MemcpyDtoDAsync(q, p, 4, s))
	}
	ok(t, e.MemsetD32Async(p, 1000, 1, s))
	assert.Equal(t, cuapi.ErrorNotReady, e.StreamQuery(s))
	assert.EqualValues(t, 0, word(t, e, q), "nothing ran yet")
	open()
	ok(t, e.StreamSynchronize(s))
	ok(t, e.StreamQuery(s))
	assert.EqualValues(t, 99, word(t, e, q))
	assert.EqualValues(t, 1000, word(t, e, p))
}

func TestStreamsAreIndependent(t *testing.T) {
	e := one(t)
	p := must(e.MemAlloc(4))(t)
	a, b := newTestStream(t, e), newTestStream(t, e)
	hold(t, e, a)
	ok(t, e.MemsetD32Async(p, 7, 1, b))
	ok(t, e.StreamSynchronize(b))
	assert.EqualValues(t, 7, word(t, e, p))
	assert.Equal(t, cuapi.ErrorNotReady, e.StreamQuery(a))
}

func TestEventsOrderStreams(t *testing.T) {
	e := one(t)
	p, q := must(e.MemAlloc(4))(t), must(e.MemAlloc(4))(t)
	a, b := newTestStream(t, e), newTestStream(t, e)
	v := newTestEvent(t, e)
	ok(t, e.EventQuery(v)) // never recorded: complete
	ok(t, e.EventSynchronize(v))
	open := hold(t, e, a)

	// Waiting for an event that was never recorded orders nothing.
	ok(t, e.StreamWaitEvent(b, v, 0))
	ok(t, e.MemsetD32Async(p, 1, 1, b))
	ok(t, e.StreamSynchronize(b))

	ok(t, e.MemsetD32Async(p, 2, 1, a))
	ok(t, e.EventRecord(v, a))
	assert.Equal(t, cuapi.ErrorNotReady, e.EventQuery(v))
	ok(t, e.StreamWaitEvent(b, v, 0))
	ok(t, e.MemcpyDtoDAsync(q, p, 4, b))
	time.Sleep(5 * time.Millisecond)
	assert.Equal(t, cuapi.ErrorNotReady, e.StreamQuery(b))
	// Destroying both does not release the waiting stream early.
	ok(t, e.EventDestroy(v))
	ok(t, e.StreamDestroy(a))
	open()
	ok(t, e.StreamSynchronize(b))
	assert.EqualValues(t, 2, word(t, e, q))
}

func TestRecordingAgainMovesTheEventButNotThoseWhoWait(t *testing.T) {
	e := one(t)
	p := must(e.MemAlloc(4))(t)
	a, b, c := newTestStream(t, e), newTestStream(t, e), newTestStream(t, e)
	v := newTestEvent(t, e)
	ok(t, e.EventRecord(v, a))
	openB := hold(t, e, b)
	ok(t, e.StreamWaitEvent(c, v, 0))
	ok(t, e.EventRecord(v, b)) // c still waits for the point in a only
	ok(t, e.MemsetD32Async(p, 3, 1, c))
	ok(t, e.StreamSynchronize(c))
	assert.EqualValues(t, 3, word(t, e, p))

	assert.Equal(t, cuapi.ErrorNotReady, e.EventQuery(v))
	ok(t, e.StreamWaitEvent(c, v, 0))
	assert.Equal(t, cuapi.ErrorNotReady, e.StreamQuery(c))
	openB()
	ok(t, e.EventSynchronize(v))
	ok(t, e.EventQuery(v))
	ok(t, e.StreamSynchronize(c))
}

func TestElapsedTime(t *testing.T) {
	e := one(t)
	s := newTestStream(t, e)
	a, b := newTestEvent(t, e), newTestEvent(t, e)
	untimed := must(e.EventCreate(cuapi.EventDisableTiming))(t)
	_, r := e.EventElapsedTime(a, b)
	assert.Equal(t, cuapi.ErrorInvalidHandle, r, "never recorded")
	ok(t, e.EventRecord(a, s))
	open := hold(t, e, s)
	ok(t, e.EventRecord(b, s))
	ok(t, e.EventRecord(untimed, s))
	_, r = e.EventElapsedTime(a, b)
	assert.Equal(t, cuapi.ErrorNotReady, r)
	before := time.Now()
	ok(t, e.EventSynchronize(a))
	time.Sleep(20 * time.Millisecond)
	open()
	ok(t, e.EventSynchronize(b))
	ms := must(e.EventElapsedTime(a, b))(t)
	assert.GreaterOrEqual(t, ms, float32(19.9))
	assert.Less(t, ms, float32(time.Since(before).Seconds()*1e3+1000))
	assert.Equal(t, -ms, must(e.EventElapsedTime(b, a))(t))
	_, r = e.EventElapsedTime(a, untimed)
	assert.Equal(t, cuapi.ErrorInvalidHandle, r)
}

func TestLegacyStreamOrdersBlockingStreams(t *testing.T) {
	e := one(t)
	p, q := must(e.MemAlloc(4))(t), must(e.MemAlloc(4))(t)
	blocking := must(e.StreamCreateWithPriority(cuapi.StreamDefault, 0))(t)
	free := newTestStream(t, e)

	open := hold(t, e, blocking)
	ok(t, e.MemsetD32Async(p, 5, 1, blocking))
	ok(t, e.MemcpyDtoDAsync(q, p, 4, 0)) // waits for the blocking stream
	assert.Equal(t, cuapi.ErrorNotReady, e.StreamQuery(0))
	ok(t, e.MemsetD32Async(p, 6, 1, blocking)) // waits for the legacy stream
	ok(t, e.StreamSynchronize(free))
	open()
	ok(t, e.StreamSynchronize(0))
	ok(t, e.StreamQuery(0))
	assert.EqualValues(t, 5, word(t, e, q))
	assert.EqualValues(t, 6, word(t, e, p))

	// A non-blocking stream does not hold the legacy stream.
	openFree := hold(t, e, free)
	ok(t, e.MemsetD32(p, 8, 1))
	ok(t, e.StreamSynchronize(0))
	assert.EqualValues(t, 8, word(t, e, p))
	// CtxSynchronize waits for all of them.
	done := make(chan cuapi.Result)
	ctx := must(e.CtxGetCurrent())(t)
	go func() {
		lockForever()
		e.CtxSetCurrent(ctx)
		done <- e.CtxSynchronize()
	}()
	select {
	case <-done:
		t.Fatal("CtxSynchronize returned while a stream had work")
	case <-time.After(20 * time.Millisecond):
	}
	openFree()
	ok(t, <-done)
}

func TestPageableHostMemoryIsStaged(t *testing.T) {
	e := one(t)
	p := must(e.MemAlloc(8))(t)
	s := newTestStream(t, e)
	open := hold(t, e, s)
	src := words(1, 2)
	ok(t, e.MemcpyHtoDAsync(p, src, s))
	copy(src, words(9, 9)) // the call has consumed it
	dst := make([]byte, 8)
	go func() {
		time.Sleep(10 * time.Millisecond)
		open()
	}()
	ok(t, e.MemcpyDtoHAsync(dst, p, s)) // waits
	assert.Equal(t, words(1, 2), dst)
	ok(t, e.StreamSynchronize(s))
}

func TestPageLockedHostMemoryIsUsedByReference(t *testing.T) {
	e := one(t)
	p := must(e.MemAlloc(8))(t)
	s := newTestStream(t, e)
	src := must(e.MemHostAlloc(8, 0))(t)
	dst := make([]byte, 8)
	ok(t, e.MemHostRegister(dst, 0))
	open := hold(t, e, s)
	ok(t, e.MemcpyHtoDAsync(p, src, s))
	ok(t, e.MemcpyDtoHAsync(dst, p, s)) // does not wait
	copy(src, words(3, 4))              // seen by the copy, which has not run
	assert.Equal(t, words(0, 0), dst)
	open()
	ok(t, e.StreamSynchronize(s))
	assert.Equal(t, words(3, 4), dst)
	ok(t, e.MemHostUnregister(dst))
	ok(t, e.MemFreeHost(src))
}

func TestMemFreeWaitsForTheContext(t *testing.T) {
	e := one(t)
	p, q := must(e.MemAlloc(4))(t), must(e.MemAlloc(4))(t)
	s := newTestStream(t, e)
	open := hold(t, e, s)
	ok(t, e.MemsetD32Async(p, 1, 1, s))
	ok(t, e.MemcpyDtoDAsync(q, p, 4, s))
	go func() {
		time.Sleep(10 * time.Millisecond)
		open()
	}()
	ok(t, e.MemFree(p))
	ok(t, e.StreamQuery(s))
	ok(t, e.CtxSynchronize())
	assert.EqualValues(t, 1, word(t, e, q))
}

func TestDestroyedStreamFinishesItsWork(t *testing.T) {
	e := one(t)
	p := must(e.MemAlloc(4))(t)
	s := newTestStream(t, e)
	open := hold(t, e, s)
	ok(t, e.MemsetD32Async(p, 11, 1, s))
	ok(t, e.StreamDestroy(s))
	open()
	ok(t, e.CtxSynchronize())
	assert.EqualValues(t, 11, word(t, e, p))
	c := e.currentContext()
	c.submit.Lock()
	defer c.submit.Unlock()
	assert.Empty(t, c.streams)
}

func TestKillingADeviceReleasesThoseWhoWaitForIt(t *testing.T) {
	e := newEmu(t, 2)
	retain(t, e, 0)
	s0, v0 := newTestStream(t, e), newTestEvent(t, e)
	open := hold(t, e, s0)
	ok(t, e.EventRecord(v0, s0))
	retain(t, e, 1)
	p := must(e.MemAlloc(4))(t)
	s1 := newTestStream(t, e)
	ok(t, e.StreamWaitEvent(s1, v0, 0))
	ok(t, e.MemsetD32Async(p, 4, 1, s1))
	var killing sync.WaitGroup
	killing.Go(func() { e.KillDevice(0) }) // which waits for what runs
	for e.devices[0].status() == cuapi.Success {
		runtime.Gosched()
	}
	open()
	killing.Wait()
	ok(t, e.StreamSynchronize(s1))
	assert.EqualValues(t, 4, word(t, e, p))
	assert.Equal(t, cuapi.ErrorLaunchFailed, e.StreamSynchronize(s0))
}

func TestNoGoroutineOutlivesItsWork(t *testing.T) {
	before := runtime.NumGoroutine()
	e := newEmu(t, 8)
	for d := range 8 {
		retain(t, e, d)
		p := must(e.MemAlloc(64))(t)
		for i := range cuapi.DevicePtr(8) {
			s, v := newTestStream(t, e), newTestEvent(t, e)
			ok(t, e.MemsetD8Async(p+8*i, 1, 8, s))
			ok(t, e.EventRecord(v, s))
			ok(t, e.StreamDestroy(s))
		}
		ok(t, e.CtxSynchronize())
		ok(t, e.DevicePrimaryCtxRelease(cuapi.Device(d)))
	}
	assert.LessOrEqual(t, settled(before), before)
}

// TestRandomGraphsRunInOrder builds random work on several streams and devices,
// joined by events, and compares with a sequential model: a value may be read
// by another stream only after an event edge, and then it must be there.
func TestRandomGraphsRunInOrder(t *testing.T) {
	const devices, streams, steps = 4, 3, 300
	r := newRand(t)
	e := newEmu(t, devices)
	type lane struct {
		ctx  cuapi.Context
		s    cuapi.Stream
		cell cuapi.DevicePtr
		v    cuapi.Event
		want uint32
	}
	var lanes []*lane
	for d := range devices {
		c := retain(t, e, d)
		for range streams {
			l := &lane{ctx: c, s: newTestStream(t, e), cell: must(e.MemAlloc(4))(t), v: newTestEvent(t, e)}
			ok(t, e.MemsetD32Async(l.cell, 0, 1, l.s))
			lanes = append(lanes, l)
		}
	}
	for step := range uint32(steps) {
		l := lanes[r.IntN(len(lanes))]
		ok(t, e.CtxSetCurrent(l.ctx))
		switch from := lanes[r.IntN(len(lanes))]; {
		case from == l || r.IntN(3) == 0:
			ok(t, e.MemsetD32Async(l.cell, step, 1, l.s))
			l.want = step
		default:
			// l takes the value of from as it is now, and from may go on only
			// when it was taken.
			ok(t, e.CtxSetCurrent(from.ctx))
			ok(t, e.EventRecord(from.v, from.s))
			ok(t, e.CtxSetCurrent(l.ctx))
			ok(t, e.StreamWaitEvent(l.s, from.v, 0))
			ok(t, e.MemcpyPeerAsync(l.cell, l.ctx, from.cell, from.ctx, 4, l.s))
			ok(t, e.EventRecord(l.v, l.s))
			ok(t, e.StreamWaitEvent(from.s, l.v, 0))
			l.want = from.want
		}
	}
	for i, l := range lanes {
		ok(t, e.CtxSetCurrent(l.ctx))
		ok(t, e.StreamSynchronize(l.s))
		assert.Equal(t, l.want, word(t, e, l.cell), "lane %d", i)
	}
}

func TestManyGoroutines(t *testing.T) {
	const goroutines, rounds, devices = 32, 20, 4
	e := newEmu(t, devices)
	var wg sync.WaitGroup
	fail := make(chan string, goroutines)
	for g := range goroutines {
		wg.Go(func() {
			done := make(chan struct{})
			go func() { // a locked goroutine ends its thread
				defer close(done)
				lockForever()
				if msg := hammer(e, g, rounds, g%devices); msg != "" {
					fail <- msg
				}
			}()
			<-done
		})
	}
	wg.Wait()
	close(fail)
	require.Empty(t, slices.Collect(func(yield func(string) bool) {
		for m := range fail {
			if !yield(m) {
				return
			}
		}
	}))
	for d := range devices {
		_, active, r := e.DevicePrimaryCtxGetState(cuapi.Device(d))
		ok(t, r)
		assert.False(t, active)
	}
}

// hammer is one goroutine of TestManyGoroutines; it returns what went wrong.
func hammer(e *Emulator, g, rounds, dev int) string {
	for i := range rounds {
		c, r1 := e.DevicePrimaryCtxRetain(cuapi.Device(dev))
		r2 := e.CtxSetCurrent(c)
		p, r3 := e.MemAlloc(64)
		s, r4 := e.StreamCreateWithPriority(cuapi.StreamNonBlocking, 0)
		v, r5 := e.EventCreate(cuapi.EventDefault)
		r6 := e.MemsetD32Async(p, uint32(g*rounds+i), 16, s)
		r7 := e.EventRecord(v, s)
		r8 := e.EventSynchronize(v)
		var b [64]byte
		r9 := e.MemcpyDtoH(b[:], p)
		r10 := e.MemFree(p)
		r11 := e.EventDestroy(v)
		r12 := e.StreamDestroy(s)
		r13 := e.CtxSetCurrent(0)
		r14 := e.DevicePrimaryCtxRelease(cuapi.Device(dev))
		for k, r := range []cuapi.Result{r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14} {
			if r != cuapi.Success {
				return "call " + string(rune('a'+k)) + ": " + r.Error()
			}
		}
		if binary.LittleEndian.Uint32(b[60:]) != uint32(g*rounds+i) {
			return "wrong value"
		}
	}
	return ""
}
