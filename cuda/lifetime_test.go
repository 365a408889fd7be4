package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

func TestClosingAContextNamesItsChildren(t *testing.T) {
	v := newEnv(t)
	closed, err := cuda.AllocPinned[int32](v.c[0], 100)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	err = v.c[0].Close()
	var leak *cuda.LeakError
	require.ErrorAs(t, err, &leak)
	assert.Equal(t, []cuda.Leak{
		{Kind: "stream", Count: 1}, {Kind: "event", Count: 1}, {Kind: "module", Count: 1},
		{Kind: "pinned buffer", Count: 1, Bytes: 32}, {Kind: "device buffer", Count: 1, Bytes: 512},
	}, leak.Leaks)
	assert.ErrorContains(t, err, "the context of device 0 was closed before 1 stream, 1 event, 1 module, "+
		"1 pinned buffer (32 bytes), 1 device buffer (512 bytes); close these first; a driver opened with cuda.WithLeakSites names where they were made")
	assert.Equal(t, err, v.c[0].Close())

	// The children keep the context alive.
	require.NoError(t, v.f[0].Launch(v.s[0], cuapi.D1(1), cuapi.D1(1), 0, nil))
	require.NoError(t, cuda.Fill32(v.s[0], v.a[0], 1))
	require.NoError(t, cuda.CopyOutPinned(v.s[0], v.pin, 0, v.a[0]))
	require.NoError(t, v.s[0].Record(v.e[0]))
	require.NoError(t, v.s[0].Wait(v.e[0]))
	require.NoError(t, v.s[0].Synchronize(bg))
	assert.ErrorIs(t, cuda.CopyIn(bg, v.s[0], v.a[0], make([]int32, 8)), cuda.ErrClosed)
	assert.ErrorIs(t, second(cuda.Download(bg, v.s[0], v.a[0])), cuda.ErrClosed)
	assert.ErrorIs(t, second(v.c[0].NewStream(cuda.StreamOptions{})), cuda.ErrClosed)
	assert.ErrorIs(t, v.c[0].Do(func() error { return nil }), cuda.ErrClosed)
	require.NoError(t, cuda.PoolFree(v.c[0].Pool(), v.s[0], v.a[0]), "memory goes straight back")
	assert.Equal(t, uint64(0), v.c[0].Pool().Stats().BytesCached)
	for _, c := range []func() error{v.pin.Close, v.e[0].Close, v.m[0].Close} {
		require.NoError(t, c())
	}
	assert.Equal(t, 2, v.api.live()["context"])
	require.NoError(t, v.s[0].Close())
	assert.Equal(t, 1, v.api.live()["context"], "the last child releases the context")
}

func TestLeakSites(t *testing.T) {
	v := newEnv(t, cuda.WithLeakSites())
	s, err := v.c[1].NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, v.s[1].Close())
	var leak *cuda.LeakError
	require.ErrorAs(t, v.c[1].Close(), &leak)
	assert.Len(t, leak.Leaks[0].Sites, 1, "closed streams are not listed")
	assert.Regexp(t, `^lifetime_test\.go:\d+$`, leak.Leaks[0].Sites[0])
	assert.ErrorContains(t, leak, "1 stream made at lifetime_test.go:")
	assert.NotContains(t, leak.Error(), "WithLeakSites")
	require.NoError(t, s.Close())
}

func TestTheEmulatorNamesLeakSites(t *testing.T) {
	drv, err := cuda.OpenEmulator(1)
	require.NoError(t, err)
	c, err := drv.Devices()[0].Retain()
	require.NoError(t, err)
	s, err := c.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	assert.ErrorContains(t, c.Close(), "1 stream made at lifetime_test.go:")
	require.NoError(t, s.Close())
	require.NoError(t, drv.Close())
}

func TestClosingTheDriverNamesItsContexts(t *testing.T) {
	v := newEnv(t)
	err := v.drv.Close()
	assert.EqualError(t, err, "cuda: the driver was closed before 2 contexts; close these first")
	assert.Equal(t, err, v.drv.Close())
	assert.ErrorIs(t, second(v.c[0].Device().Retain()), cuda.ErrClosed)
	require.NoError(t, v.s[0].Synchronize(bg), "contexts stay usable")
}

// What a failed constructor returns may be closed by a defer that does not look.
func TestCloseOfNil(t *testing.T) {
	for name, h := range map[string]interface{ Close() error }{
		"driver": (*cuda.Driver)(nil), "context": (*cuda.Context)(nil), "stream": (*cuda.Stream)(nil),
		"event": (*cuda.Event)(nil), "module": (*cuda.Module)(nil), "pinned buffer": (*cuda.Pinned[float32])(nil),
	} {
		assert.NoError(t, h.Close(), name)
	}
}

func TestCloseReturnsTheFirstOutcomeToEverybody(t *testing.T) {
	v := newEnv(t)
	for name, close := range map[string]func() error{
		"StreamDestroy": v.s[0].Close, "EventDestroy": v.e[0].Close, "ModuleUnload": v.m[0].Close, "MemFreeHost": v.pin.Close,
	} {
		v.api.takeCalls()
		v.api.failNth(1, name, cuapi.ErrorInvalidValue)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var errs []error
		for range 16 {
			wg.Go(func() {
				err := close()
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			})
		}
		wg.Wait()
		require.ErrorIs(t, errs[0], cuapi.ErrorInvalidValue, name)
		for _, err := range errs {
			assert.Equal(t, errs[0], err, name)
		}
		assert.Equal(t, 1, countCalls(v.api.takeCalls(), name))
	}
}

// The fake panics when a launch uses a destroyed stream or module.
func TestCloseWaitsForCallsInProgress(t *testing.T) {
	v := newEnv(t)
	for round := range 50 {
		s, err := v.c[0].NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		m, err := v.c[0].LoadModule([]byte("x"), cuda.JITOptions{})
		require.NoError(t, err)
		f, err := m.Function("k")
		require.NoError(t, err)
		var wg sync.WaitGroup
		var launched atomic.Int64
		for range 4 {
			wg.Go(func() {
				for {
					if err := f.Launch(s, cuapi.D1(1), cuapi.D1(1), 0, nil); err != nil {
						assert.ErrorIs(t, err, cuda.ErrClosed)
						return
					}
					launched.Add(1)
				}
			})
		}
		for launched.Load() < 10 {
			runtime.Gosched()
		}
		if round%2 == 0 {
			require.NoError(t, s.Close())
			require.NoError(t, m.Close())
		} else {
			require.NoError(t, m.Close())
			require.NoError(t, s.Close())
		}
		wg.Wait()
	}
	require.NoError(t, v.close())
	assert.Empty(t, v.api.live())
}

func TestAbandonedHandlesAreReportedWithoutDriverCalls(t *testing.T) {
	var log syncBuffer
	v := newEnv(t, cuda.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	func() {
		_, err := v.c[0].NewEvent(cuda.EventOptions{})
		require.NoError(t, err)
		s, err := v.c[0].NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		require.NoError(t, s.Close(), "a closed handle is not abandoned")
	}()
	v.api.takeCalls()
	require.Eventually(t, func() bool {
		runtime.GC()
		return v.drv.AbandonedHandles() == 1
	}, 5*time.Second, time.Millisecond)
	assert.Empty(t, v.api.takeCalls())
	assert.Contains(t, log.String(), "handle=event device=0")
	var leak *cuda.LeakError
	assert.ErrorAs(t, v.close(), &leak, "the context still knows of it")
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestSynchronizeHonoursItsContext(t *testing.T) {
	v := newEnv(t)
	v.api.hold(v.s[0])
	require.NoError(t, v.s[0].Record(v.e[0]))
	for name, wait := range map[string]func(context.Context) error{"stream": v.s[0].Synchronize, "event": v.e[0].Synchronize} {
		ctx, cancel := context.WithCancelCause(bg)
		time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("enough")) })
		start := time.Now()
		assert.ErrorIs(t, wait(ctx), context.Canceled, name)
		assert.Less(t, time.Since(start), time.Second, name)
		assert.ErrorIs(t, wait(ctx), context.Canceled, "%s: already cancelled", name)
	}
	time.AfterFunc(10*time.Millisecond, func() { v.api.letGo(v.s[0]) })
	require.NoError(t, v.s[0].Synchronize(bg))
	require.NoError(t, v.e[0].Synchronize(bg))
	require.NoError(t, v.close())
}

func TestClosingAStreamEndsAWaitOnIt(t *testing.T) {
	v := newEnv(t)
	s, err := v.c[0].NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	v.api.hold(s)
	done := make(chan error)
	go func() { done <- s.Synchronize(bg) }()
	time.Sleep(5 * time.Millisecond)
	require.NoError(t, s.Close())
	assert.ErrorIs(t, <-done, cuda.ErrClosed)
	require.NoError(t, v.close())
}

func TestShortWaitsEndAtOnce(t *testing.T) {
	v := newEnv(t)
	v.api.quiet = true
	best, calls := time.Hour, int64(0)
	for range 100 {
		v.api.hold(v.s[0])
		before := v.api.count.Load()
		var ended time.Time
		var wg sync.WaitGroup
		wg.Go(func() {
			for start := time.Now(); time.Since(start) < 500*time.Microsecond; {
			}
			ended = time.Now()
			v.api.letGo(v.s[0])
		})
		require.NoError(t, v.s[0].Synchronize(bg))
		returned := time.Now()
		wg.Wait()
		best = min(best, returned.Sub(ended))
		calls = max(calls, v.api.count.Load()-before)
	}
	assert.Less(t, best, 20*time.Microsecond)
	assert.Greater(t, calls, int64(300), "a short wait polls without sleeping")
	require.NoError(t, v.close())
}

func TestOpenAPI(t *testing.T) {
	api := newFake(2)
	drv, err := cuda.OpenAPI(api)
	require.NoError(t, err)
	assert.Equal(t, 2, drv.DeviceCount())
	assert.Equal(t, 12080, drv.Version())
	assert.False(t, drv.Emulated())
	d := drv.Devices()[1]
	assert.Equal(t, 1, d.Ordinal())
	assert.Equal(t, "Fake", d.Name())
	assert.Equal(t, [16]byte{15: 1}, d.UUID())
	assert.Equal(t, uint64(1<<30), d.TotalMem())
	assert.Equal(t, 4, d.Multiprocessors())
	major, minor := d.Capability()
	assert.Equal(t, [2]int{9, 0}, [2]int{major, minor})
	ok, err := d.CanAccessPeer(drv.Devices()[0])
	assert.NoError(t, err)
	assert.True(t, ok)

	_, err = cuda.OpenAPI(newFake(0))
	assert.ErrorIs(t, err, cuda.ErrNoDevice)
	_, err = cuda.OpenAPI(nil)
	assert.Error(t, err)
	for k := int64(1); ; k++ {
		api := newFake(2)
		api.failNth(k, "", cuapi.ErrorUnknown)
		drv, err := cuda.OpenAPI(api)
		if api.failed == "" {
			require.NoError(t, err)
			break
		}
		assert.Nil(t, drv)
		assert.ErrorIs(t, err, cuapi.ErrorUnknown, api.failed)
	}
}

func TestWithAPIWraps(t *testing.T) {
	other := newFake(1)
	drv, err := cuda.OpenAPI(newFake(2), cuda.WithAPI(func(cuapi.API) cuapi.API { return other }))
	require.NoError(t, err)
	assert.Equal(t, cuapi.API(other), drv.API())
	assert.Equal(t, 1, drv.DeviceCount())
}
