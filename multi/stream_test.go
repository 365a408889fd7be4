package multi

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// streaming is a set with 33 rays and what one call answers.
type streaming struct {
	*Scene
	rays scene.Rays
	want words
}

func newStreaming(t testing.TB, devices int, chunk int64) *streaming {
	t.Helper()
	drv, _, _ := emulator(t, devices)
	return streamingOn(t, drv, devices, chunk)
}

func streamingOn(t testing.TB, drv *cuda.Driver, devices int, chunk int64) *streaming {
	t.Helper()
	rng := rand.New(rand.NewPCG(81, 1))
	ids := []int{}
	for k := range devices {
		ids = append(ids, k)
	}
	s, err := create(drv, ids, anyFloor(), 64)
	require.NoError(t, err)
	x := &streaming{Scene: s}
	t.Cleanup(func() { require.NoError(t, x.Close()) }) // or what has taken its place
	build(t, s, soup(rng, 30))
	b := randomBatch(rng, 33)
	b.tmax, b.active = nil, nil
	x.want = answer(t, s, b, scene.All)
	rays, free := b.rays(t, s.Stream())
	x.rays = rays
	t.Cleanup(free)
	s.opts.ChunkRays = chunk
	return x
}

// stream is one call whose consumer is f.
func (s *streaming) stream(ctx context.Context, f func(start int64, c offload.Chunk[*scene.Hits]) error, opts ...scene.CallOption) error {
	hits, err := s.Intersect(ctx, s.rays, scene.All, append(opts, Offload(func(_ context.Context, start int64, c offload.Chunk[*scene.Hits]) error {
		return f(start, c)
	}))...)
	if hits != nil {
		return errors.New("a streamed call has returned a result")
	}
	return err
}

// requireHealthy requires that the set answers, and that nothing is in use.
func (s *streaming) requireHealthy(t testing.TB, what string) {
	t.Helper()
	s.opts.ChunkRays, s.opts.MemoryBudget = 0, 0
	h, err := s.Intersect(bg, s.rays, scene.All)
	require.NoError(t, err, what)
	require.Equal(t, s.want, download(t, s.Stream(), h), what)
	require.NoError(t, h.Close())
}

// The order of chunks is that of the tables.
func TestMultiSceneStreamingOrder(t *testing.T) {
	for _, c := range []struct {
		devices int
		chunk   int64
		starts  []int64
	}{
		{1, 7, []int64{0, 7, 14, 21, 28}},
		{2, 7, []int64{0, 16, 7, 23, 14, 30}},
		{3, 5, []int64{0, 11, 22, 5, 16, 27, 10, 21, 32}},
		{2, 0, []int64{0, 16}},
	} {
		s := newStreaming(t, c.devices, c.chunk)
		for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
			var starts, rows []int64
			require.NoError(t, s.stream(bg, func(start int64, chunk offload.Chunk[*scene.Hits]) error {
				require.Equal(t, start, chunk.Start)
				require.Equal(t, int(chunk.Rows), chunk.Result.Rows())
				require.Equal(t, scene.All, chunk.Result.Flags)
				starts, rows = append(starts, start), append(rows, chunk.Rows)
				return nil
			}))
			require.Equal(t, c.starts, starts)
			if c.devices == 1 {
				require.Equal(t, []int64{7, 7, 7, 7, 5}, rows)
			}
		}
	}
}

// A consumer that fails, panics or ends the context stops the call where it is. What was
// delivered is told, nothing is left, and the set works on.
func TestMultiSceneStreamingFailures(t *testing.T) {
	s := newStreaming(t, 2, 7)
	why := errors.New("enough")
	for name, fail := range map[string]func(cancel func()) error{
		"error":  func(func()) error { return why },
		"panic":  func(func()) error { panic(why) },
		"cancel": func(cancel func()) error { cancel(); return nil },
	} {
		for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
			s.opts.ChunkRays = 7
			before := poolUse(s.Scene)
			ctx, cancel := context.WithCancelCause(bg)
			calls := 0
			err := s.stream(ctx, func(int64, offload.Chunk[*scene.Hits]) error {
				if calls++; calls == 3 {
					return fail(func() { cancel(why) })
				}
				return nil
			})
			what := fmt.Sprint(name, " ", s.transport)
			require.Equal(t, 3, calls, what)
			require.ErrorIs(t, err, why, what)
			var told *offload.StreamError
			require.ErrorAs(t, err, &told, what)
			require.Equal(t, "intersect_full", told.Op)
			if name == "cancel" { // which is noticed before the next chunk
				require.Equal(t, int64(23), told.FailedStart, what)
				require.Equal(t, []chunked.Range{{Begin: 0, End: 7}, {Begin: 16, End: 23}, {Begin: 7, End: 14}}, told.Delivered, what)
			} else {
				require.Equal(t, int64(7), told.FailedStart, what)
				require.Equal(t, []chunked.Range{{Begin: 0, End: 7}, {Begin: 16, End: 23}}, told.Delivered, what)
			}
			var p *offload.PanicError
			require.Equal(t, name == "panic", errors.As(err, &p), what)
			require.Equal(t, before, poolUse(s.Scene), what)
			s.requireHealthy(t, what)
			require.True(t, s.IsReady())
		}
	}
}

// After a hook has failed, geometry may change at once.
func TestMultiSceneStreamingThenUpdate(t *testing.T) {
	s := newStreaming(t, 2, 5)
	require.Error(t, s.stream(bg, func(int64, offload.Chunk[*scene.Hits]) error { return errors.New("no") }))
	g, err := s.GlobalGeometry(bg)
	require.NoError(t, err)
	require.NoError(t, s.UpdateMeshVertices(0, g.Vertices)) // the same ones
	require.NoError(t, s.Sync(bg))
	s.requireHealthy(t, "after Sync")
}

// A loop may be left at every chunk, and its body may panic.
func TestMultiSceneStreamingLoop(t *testing.T) {
	s := newStreaming(t, 2, 7)
	for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
		for stop := range 7 {
			s.opts.ChunkRays = 7
			before, goroutines := poolUse(s.Scene), runtime.NumGoroutine()
			n := 0
			for chunk, err := range s.IntersectSeq(bg, s.rays, scene.All) {
				require.NoError(t, err)
				require.Equal(t, []int64{0, 16, 7, 23, 14, 30}[n], chunk.Start)
				if n++; n > stop {
					break
				}
			}
			require.Equal(t, min(stop+1, 6), n)
			require.Equal(t, before, poolUse(s.Scene), "slots in use")
			require.NoError(t, s.Stream().Synchronize(bg))
			requireGoroutines(t, goroutines)
			s.requireHealthy(t, fmt.Sprint("left at ", stop))
		}
		s.opts.ChunkRays = 7
		require.PanicsWithValue(t, "oh", func() {
			for range s.IntersectSeq(bg, s.rays, scene.All) {
				panic("oh")
			}
		})
		s.requireHealthy(t, "after a panic")
	}
	// An iterator that is pulled runs the call on a goroutine of its own.
	s.opts.ChunkRays = 7
	next, stop := iter.Pull2(s.IntersectSeq(bg, s.rays, scene.All))
	c, err, ok := next()
	require.NoError(t, err)
	require.True(t, ok)
	require.Zero(t, c.Start)
	stop()
	s.requireHealthy(t, "after iter.Pull")
	// An error is the last of the sequence.
	ctx, cancel := context.WithCancel(bg)
	cancel()
	var last error
	for _, last = range s.IntersectSeq(ctx, s.rays, scene.All) {
		continue
	}
	require.ErrorIs(t, last, context.Canceled)
}

// requireGoroutines waits until there are no more than so many.
func requireGoroutines(t testing.TB, most int) {
	t.Helper()
	until := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > most {
		require.True(t, time.Now().Before(until), "%d goroutines, there were %d", runtime.NumGoroutine(), most)
		time.Sleep(time.Millisecond)
	}
}

// The scene that streams is busy, and says so to its own consumer.
func TestMultiSceneStreamingReentrance(t *testing.T) {
	s := newStreaming(t, 2, 7)
	other := newStreaming(t, 1, 0)
	require.NoError(t, s.stream(bg, func(int64, offload.Chunk[*scene.Hits]) error {
		_, err := s.Intersect(bg, s.rays, scene.All)
		require.ErrorIs(t, err, ErrReentrant)
		require.ErrorIs(t, s.Sync(bg), ErrReentrant)
		require.ErrorIs(t, s.Build(bg), ErrReentrant)
		require.ErrorIs(t, s.Close(), ErrReentrant)
		other.requireHealthy(t, "another scene in a consumer")
		return nil
	}))
	_, err := s.Intersect(bg, s.rays, scene.All, Offload(func(ctx context.Context, _ int64, _ offload.Chunk[*scene.Hits]) error {
		failed := make(chan error)
		go func() { // with the context of the consumer
			_, err := s.Intersect(ctx, s.rays, scene.All)
			failed <- err
		}()
		return <-failed
	}))
	require.ErrorIs(t, err, ErrReentrant)
	s.requireHealthy(t, "after all")
}

// Somebody with the context of a consumer that has returned is not the one of another call: he waits
// for his turn.
func TestMultiSceneStreamingOldContext(t *testing.T) {
	s := newStreaming(t, 2, 0)
	ask := func(ctx context.Context, f func(inside context.Context)) error {
		_, err := s.Intersect(ctx, s.rays, scene.All, Offload(func(inside context.Context, start int64, _ offload.Chunk[*scene.Hits]) error {
			if start == 0 {
				f(inside)
			}
			return nil
		}))
		return err
	}
	var old context.Context
	require.NoError(t, ask(bg, func(inside context.Context) { old = inside }))
	later := make(chan error, 1)
	require.NoError(t, ask(bg, func(context.Context) {
		go func() { later <- ask(old, func(context.Context) {}) }()
		for waits := false; !waits; time.Sleep(time.Millisecond) {
			require.Empty(t, later, "it has been refused")
			s.turn.mu.Lock()
			waits = len(s.turn.queue) > 0
			s.turn.mu.Unlock()
		}
	}))
	require.NoError(t, <-later)
}

// A detached chunk outlives its slot.
func TestMultiSceneStreamingDetach(t *testing.T) {
	s := newStreaming(t, 2, 7)
	for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
		s.opts.ChunkRays = 7
		kept := map[int64]*scene.Hits{}
		var late offload.Chunk[*scene.Hits]
		require.NoError(t, s.stream(bg, func(start int64, c offload.Chunk[*scene.Hits]) (err error) {
			kept[start], err = c.Detach()
			late = c
			return err
		}))
		_, err := late.Detach()
		require.ErrorIs(t, err, ErrExpired)
		require.Len(t, kept, 6)
		for start, h := range kept {
			part := download(t, s.Stream(), h)
			for i, column := range part {
				width := len(column) / h.Rows()
				require.Equal(t, s.want[i][int(start)*width:][:len(column)], column, "rows from %d", start)
			}
			require.NoError(t, h.Close())
		}
	}
}

// The memory of a chunk is lent: closing its result does nothing, so that Detach still copies it, and
// no call fills it, neither while the chunk is valid nor when it is somebody else's memory.
func TestMultiSceneStreamingLent(t *testing.T) {
	s := newStreaming(t, 2, 7)
	s.opts.ChunkRays = 7
	plain, err := s.Master().Intersect(bg, s.rays, scene.All)
	require.NoError(t, err)
	want := download(t, s.Stream(), plain)
	refused := func(r *scene.Hits) {
		var wrong *scene.ArgumentError
		_, err := s.Master().Intersect(bg, s.rays, scene.None, scene.Into(r))
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "Into", wrong.Arg)
	}
	var lent []*scene.Hits
	require.NoError(t, s.stream(bg, func(start int64, c offload.Chunk[*scene.Hits]) error {
		lent = append(lent, c.Result)
		require.NoError(t, c.Result.Close())
		refused(c.Result)
		h, err := c.Detach()
		require.NoError(t, err)
		for i, column := range download(t, s.Stream(), h) {
			width := len(column) / h.Rows()
			require.Equal(t, s.want[i][int(start)*width:][:len(column)], column, "rows from %d", start)
		}
		_, err = s.Master().Intersect(bg, s.rays, scene.All, scene.Into(h)) // which is the caller's
		require.NoError(t, err)
		return h.Close()
	}))
	require.Len(t, lent, 6)
	for _, r := range lent {
		require.NoError(t, r.Close())
		refused(r)
	}
	require.Equal(t, want, download(t, s.Stream(), plain))
	require.NoError(t, plain.Close())
}

// What Offload cannot do is refused, and a scene on one device refuses Offload.
func TestMultiSceneStreamingRefusals(t *testing.T) {
	s := newStreaming(t, 1, 0)
	never := func(context.Context, int64, offload.Chunk[*scene.Chains]) error { return errors.New("called") }
	_, err := s.Intersect(bg, s.rays, scene.All, Offload(never))
	require.ErrorContains(t, err, "*scene.Chains")
	h, err := s.Intersect(bg, s.rays, scene.All)
	require.NoError(t, err)
	ok := func(context.Context, int64, offload.Chunk[*scene.Hits]) error { return nil }
	_, err = s.Intersect(bg, s.rays, scene.All, scene.Into(h), Offload(ok))
	require.ErrorContains(t, err, "Into")
	_, err = s.Intersect(bg, s.rays, scene.All, Offload(ok), Offload(ok))
	require.ErrorContains(t, err, "twice")
	_, err = s.Intersect(bg, s.rays, scene.All, scene.Carry(1))
	require.ErrorContains(t, err, "int")
	var wrong *scene.ArgumentError
	_, err = s.Master().Intersect(bg, s.rays, scene.All, Offload(ok))
	require.ErrorAs(t, err, &wrong)
	require.NoError(t, h.Close())
	s.requireHealthy(t, "after refusals")
}

// A device that is lost in the middle of a stream ends it at once, named with its rows.
// Without it a new set goes on.
func TestMultiResilienceLostInTheMiddle(t *testing.T) {
	for _, tr := range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
		e, err := emu.New(3)
		require.NoError(t, err)
		drv, err := cuda.OpenAPI(e)
		require.NoError(t, err)
		s := streamingOn(t, drv, 3, 2)
		s.transport = tr
		// The device may die before it has stored winners. What was in the slots is then
		// finalized, which the emulator takes ill of memory that was never written.
		require.NoError(t, s.stream(bg, func(int64, offload.Chunk[*scene.Hits]) error { return nil }))
		require.NoError(t, s.Stream().Synchronize(bg))
		begin, calls := time.Now(), 0
		err = s.stream(bg, func(start int64, _ offload.Chunk[*scene.Hits]) error {
			if calls++; calls == 4 {
				e.KillDevice(1)
			}
			return nil
		})
		require.Less(t, time.Since(begin), 2*time.Second)
		require.ErrorIs(t, err, cuda.ErrDeviceLost)
		var at *DeviceError
		require.ErrorAs(t, err, &at)
		require.Equal(t, []int{1, 1}, []int{at.Position, at.Device}, "%v", err)
		require.True(t, at.Chunk.Begin >= 11 && at.Chunk.End <= 22 && at.Chunk.Len() > 0, "%v", err)
		require.Equal(t, cuapi.ErrorLaunchFailed, at.Code)
		var told *offload.StreamError
		require.ErrorAs(t, err, &told)
		require.GreaterOrEqual(t, len(told.Delivered), 4)
		_, err = s.Intersect(bg, s.rays, scene.All)
		require.ErrorIs(t, err, cuda.ErrDeviceLost)
		require.NotErrorIs(t, err, ErrDiverged)

		_, err = s.RebuildWithout(bg, 0)
		require.ErrorIs(t, err, ErrDeviceList)
		rest, err := s.RebuildWithout(bg, 1)
		require.NoError(t, err)
		require.Equal(t, []int{0, 2}, rest.Devices())
		require.Len(t, rest.Links(), 2)
		_, err = s.Intersect(bg, s.rays, scene.All)
		require.ErrorIs(t, err, ErrClosed)
		require.NoError(t, s.Close())
		s.Scene = rest
		s.requireHealthy(t, "without the lost device")
		g, err := rest.GlobalGeometry(bg)
		require.NoError(t, err)
		require.NoError(t, rest.UpdateMeshVertices(0, g.Vertices))
		require.NoError(t, rest.Sync(bg))
		s.requireHealthy(t, "after Sync without the lost device")
	}
}

// Weights follow their devices; a split that would leave nothing is dropped.
func TestMultiPolicyWeightsWithout(t *testing.T) {
	o := chunked.Options{Weights: []float64{1, 2, 3}, OperationWeights: map[string][]float64{"intersect": {0, 5, 0}, "visible": {4, 5, 6}}}
	got := optionsWithout(o, 1)
	require.Equal(t, []float64{1, 3}, got.Weights)
	require.Equal(t, map[string][]float64{"visible": {4, 6}}, got.OperationWeights)
	require.Len(t, o.OperationWeights, 2, "the options of the old set have changed")
	require.Nil(t, optionsWithout(chunked.Options{Weights: []float64{0, 1}}, 1).Weights)
}
