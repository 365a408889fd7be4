package emu

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
)

// ok fails the test unless the call succeeded.
func ok(t testing.TB, r cuapi.Result) {
	t.Helper()
	require.Equal(t, cuapi.Success, r, "got %v", r)
}

// must is ok for calls with a result.
func must[T any](v T, r cuapi.Result) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, r)
		return v
	}
}

// newEmu makes an initialised emulator and pins the test to its thread.
func newEmu(t testing.TB, n int, opts ...Option) *Emulator {
	t.Helper()
	e, err := New(n, opts...)
	require.NoError(t, err)
	ok(t, e.Init(0))
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	return e
}

// retain retains the primary context of a device and makes it current.
func retain(t testing.TB, e *Emulator, dev int) cuapi.Context {
	t.Helper()
	c := must(e.DevicePrimaryCtxRetain(cuapi.Device(dev)))(t)
	ok(t, e.CtxSetCurrent(c))
	return c
}

// one is an emulator with one device whose context is current.
func one(t testing.TB, opts ...Option) *Emulator {
	t.Helper()
	e := newEmu(t, 1, opts...)
	retain(t, e, 0)
	return e
}

// newTestStream makes a stream that does not synchronise with the legacy one.
func newTestStream(t testing.TB, e *Emulator) cuapi.Stream {
	t.Helper()
	return must(e.StreamCreateWithPriority(cuapi.StreamNonBlocking, 0))(t)
}

func newTestEvent(t testing.TB, e *Emulator) cuapi.Event {
	t.Helper()
	return must(e.EventCreate(cuapi.EventDefault))(t)
}

// gate holds a stream until it is opened.
type gate chan struct{}

func (g gate) run(*context) { <-g }

// hold enqueues a gate on the stream; opening twice is fine.
func hold(t testing.TB, e *Emulator, h cuapi.Stream) (open func()) {
	t.Helper()
	_, s, r := e.enterStream(h)
	ok(t, r)
	g := make(gate)
	s.ctx.enqueue(s, g)
	opened := false
	open = func() {
		if !opened {
			opened = true
			close(g)
		}
	}
	t.Cleanup(open)
	return open
}

// settled is the number of goroutines once those that are ending have ended.
func settled(limit int) int {
	n := runtime.NumGoroutine()
	for range 200 {
		if n <= limit {
			break
		}
		time.Sleep(time.Millisecond)
		n = runtime.NumGoroutine()
	}
	return n
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// lockForever ties the goroutine to its thread, which ends with it.
func lockForever() { runtime.LockOSThread() }
