package cuda_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/tests/gputest"
)

func TestHardwareStreams(t *testing.T) {
	api, us := units(t, 1)
	u := us[0]
	u.in(func() {
		least, greatest, r := api.CtxGetStreamPriorityRange()
		require.Equal(t, cuapi.Success, r)
		for _, c := range []struct{ asked, want int }{
			{least, least}, {greatest, greatest}, {greatest - 10, greatest}, {least + 10, least},
		} {
			for _, flags := range []cuapi.StreamFlags{cuapi.StreamDefault, cuapi.StreamNonBlocking} {
				s, r := api.StreamCreateWithPriority(flags, c.asked)
				require.Equal(t, cuapi.Success, r)
				got, r := api.StreamGetPriority(s)
				assert.Equal(t, cuapi.Success, r)
				assert.Equal(t, c.want, got)
				assert.Equal(t, cuapi.Success, api.StreamQuery(s), "nothing is enqueued")
				assert.Equal(t, cuapi.Success, api.StreamSynchronize(s))
				assert.Equal(t, cuapi.Success, api.StreamDestroy(s))
			}
		}
		_, r = api.StreamCreateWithPriority(1<<20, 0)
		assert.Equal(t, cuapi.ErrorInvalidValue, r)
	})
	for _, o := range []cuda.StreamOptions{{}, {Blocking: true}, {Priority: -1}, {Priority: -100}} {
		s, err := u.c.NewStream(o)
		require.NoError(t, err)
		x := newSlice[uint32](u, 100)
		require.NoError(t, u.fillWords(s, x, 9, 1, 32))
		require.NoError(t, s.Synchronize(bg))
		done, err := s.Query()
		require.NoError(t, err)
		assert.True(t, done)
		assert.Equal(t, patterns(100, 9), download(u, x))
		require.NoError(t, s.Close())
		assert.ErrorIs(t, second(s.Query()), cuda.ErrClosed)
		assert.ErrorIs(t, u.fillWords(s, x, 9, 1, 32), cuda.ErrClosed)
	}
}

// TestHardwareEventsOrderStreams has one stream read what another writes
// slowly, on the same device and on the other one.
func TestHardwareEventsOrderStreams(t *testing.T) {
	_, us := units(t, 2)
	a := us[0]
	n := slowWords()
	for seed, b := range us {
		s, err := b.c.NewStream(cuda.StreamOptions{Priority: -1})
		require.NoError(t, err)
		e, err := a.c.NewEvent(cuda.EventOptions{})
		require.NoError(t, err)
		x, y := newSlice[uint32](a, n), newSlice[uint32](b, n)
		require.NoError(t, cuda.Fill8(a.s, x, 0))
		a.slow(a.s, x, uint32(seed))
		require.NoError(t, a.s.Record(e))
		require.NoError(t, s.Wait(e))
		require.NoError(t, cuda.CopyAsync(s, y, x))
		require.NoError(t, s.Synchronize(bg))
		assert.Zero(t, b.wrongWords(y, uint32(seed)), "to device %d", b.dev.Ordinal())
		done, err := e.Query()
		require.NoError(t, err)
		assert.True(t, done)
		require.NoError(t, e.Close())
		require.NoError(t, s.Close())
	}
}

func TestHardwareEventTimes(t *testing.T) {
	api, us := units(t, 1)
	u := us[0]
	var e [3]*cuda.Event
	for i := range e {
		var err error
		e[i], err = u.c.NewEvent(cuda.EventOptions{Timing: true, BlockingSync: i == 1})
		require.NoError(t, err)
		defer func() { assert.NoError(t, e[i].Close()) }()
		require.NoError(t, e[i].Synchronize(bg), "never recorded is no wait")
	}
	_, err := e[1].Since(e[0])
	assert.ErrorIs(t, err, cuapi.ErrorInvalidHandle, "never recorded has no time")
	x := newSlice[uint32](u, slowWords())
	start := time.Now()
	for i := range e {
		require.NoError(t, u.s.Record(e[i]))
		u.slow(u.s, x, uint32(i))
	}
	require.NoError(t, e[2].Synchronize(bg))
	wall := time.Since(start)
	first, err := e[1].Since(e[0])
	require.NoError(t, err)
	both, err := e[2].Since(e[0])
	require.NoError(t, err)
	assert.Greater(t, first, 10*time.Microsecond, "a launch of one thread over %d words", x.Len())
	assert.Greater(t, both, first)
	assert.Less(t, both, wall+wall/10+time.Millisecond)
	u.wait()

	plain, err := u.c.NewEvent(cuda.EventOptions{})
	require.NoError(t, err)
	require.NoError(t, u.s.Record(plain))
	var bad *cuda.ArgumentError
	assert.ErrorAs(t, second(plain.Since(e[0])), &bad)
	u.in(func() {
		assert.Equal(t, cuapi.Success, api.EventSynchronize(plain.Handle()))
		assert.Equal(t, cuapi.Success, api.EventQuery(plain.Handle()))
		_, r := api.EventElapsedTime(e[0].Handle(), plain.Handle())
		assert.Equal(t, cuapi.ErrorInvalidHandle, r, "an event without timing")
	})
	require.NoError(t, plain.Close())
}

// TestHardwareBusy looks at a stream while it works: queries say so, a wait
// with a cancelled context returns at once, and the work goes on.
func TestHardwareBusy(t *testing.T) {
	api, us := units(t, 1)
	u := us[0]
	x := newSlice[uint32](u, slowWords())
	e, err := u.c.NewEvent(cuda.EventOptions{Timing: true})
	require.NoError(t, err)
	defer func() { assert.NoError(t, e.Close()) }()
	old, err := u.c.NewEvent(cuda.EventOptions{Timing: true})
	require.NoError(t, err)
	defer func() { assert.NoError(t, old.Close()) }()
	require.NoError(t, u.s.Record(old))
	launches := 60 // some tenths of a second
	if gputest.Native() {
		launches = 5
	}
	for range launches {
		u.slow(u.s, x, 5)
	}
	require.NoError(t, u.s.Record(e))
	cancelled, cancel := context.WithCancel(bg)
	cancel()
	begin := time.Now()
	assert.ErrorIs(t, u.s.Synchronize(cancelled), context.Canceled)
	assert.ErrorIs(t, e.Synchronize(cancelled), context.Canceled)
	assert.Less(t, time.Since(begin), time.Second)
	u.in(func() {
		assert.Equal(t, cuapi.ErrorNotReady, api.StreamQuery(u.s.Handle()))
		assert.Equal(t, cuapi.ErrorNotReady, api.EventQuery(e.Handle()))
		_, r := api.EventElapsedTime(old.Handle(), e.Handle())
		assert.Equal(t, cuapi.ErrorNotReady, r)
	})
	done, err := u.s.Query()
	require.NoError(t, err)
	assert.False(t, done)
	u.wait()
	assert.Zero(t, u.wrongWords(x, 5))
}
