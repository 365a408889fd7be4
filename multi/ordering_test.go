package multi

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// Inputs that the caller's stream writes late, after heavy work, are seen by every device,
// and may be overwritten by what is enqueued right after the call. No transport races.
func TestMultiSceneOrderOnTheCallersStream(t *testing.T) {
	const rows = 200
	drv, _, _ := emulator(t, 3)
	s := quick(t, drv, []int{0, 1, 2}, anyFloor())
	build(t, s, soup(rngOf(21), 30))
	b := randomBatch(rngOf(22), rows)
	b.tmax, b.active = nil, nil
	want := answer(t, s.Master(), b, scene.All)
	st, err := s.Context().NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	var frees []func() error
	defer func() {
		for _, free := range frees {
			require.NoError(t, free())
		}
		require.NoError(t, st.Close())
	}()
	up := uploads{t, st, &frees}
	poison := make([]float32, 3*rows)
	for i := range poison {
		poison[i] = float32(math.NaN())
	}
	o, d, bad := column(up, b.o), column(up, b.d), column(up, poison)
	rays := scene.Rays{O: column(up, poison), D: column(up, poison)}
	heavy, other := column(up, make([]float32, 1<<20)), column(up, make([]float32, 1<<20))
	copyTo := func(dst, src cuda.Slice[float32]) { require.NoError(t, cuda.CopyAsync(st, dst, src)) }
	for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
		for _, s.opts.ChunkRays = range []int64{0, 30} {
			what := fmt.Sprint(s.transport, " ", s.opts.ChunkRays)
			begin := func() {
				for range 20 {
					copyTo(heavy, other)
				}
				copyTo(rays.O, o)
				copyTo(rays.D, d)
			}
			spoil := func() { copyTo(rays.O, bad); copyTo(rays.D, bad) }
			begin()
			h, err := s.Intersect(bg, rays, scene.All, scene.OnStream(st))
			require.NoError(t, err)
			spoil()
			require.Equal(t, want, download(t, st, h), what)
			require.NoError(t, h.Close())

			// The same of a stream whose consumer only enqueues copies of the chunks.
			begin()
			var kept []offload.Chunk[*scene.Hits]
			_, err = s.Intersect(bg, rays, scene.All, scene.OnStream(st), Offload(func(_ context.Context, _ int64, c offload.Chunk[*scene.Hits]) error {
				copied, err := c.Detach()
				c.Result = copied
				kept = append(kept, c)
				return err
			}))
			require.NoError(t, err)
			spoil()
			for _, c := range kept {
				part := download(t, st, c.Result)
				for i, values := range part {
					width := len(values) / c.Result.Rows()
					require.Equal(t, want[i][int(c.Start)*width:][:len(values)], values, "%s, rows from %d", what, c.Start)
				}
				require.NoError(t, c.Result.Close())
			}
		}
	}
}

// A call that is cancelled half way returns at once. What it gives back is not used before
// the remotes, which still work on it, are done.
func TestMultiResilienceExitEdges(t *testing.T) {
	s := newStreaming(t, 2, 0)
	_, call, err := s.Master().PrepareIntersect(bg, s.rays, scene.All, scene.Unallocated())
	require.NoError(t, err)
	remote, pool := s.replicas[1], s.Context().Pool()
	var frees []func() error
	up := uploads{t, remote.stream, &frees}
	heavy, other := column(up, make([]float32, 1<<20)), column(up, make([]float32, 1<<20))
	cancelled := 0
	for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
		for k := 1; ; k++ {
			s.opts.ChunkRays = 6
			for range 4 {
				require.NoError(t, cuda.CopyAsync(remote.stream, heavy, other))
			}
			ctx := newEndsAt(k)
			h, err := s.Intersect(ctx, s.rays, scene.All)
			require.NoError(t, h.Close())
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				cancelled++
			}
			m, err := cuda.PoolAlloc[uint8](pool, s.Stream(), int(call.PartBytes(33)))
			require.NoError(t, err)
			require.NoError(t, cuda.Fill8(s.Stream(), m, 0xEE))
			require.NoError(t, remote.stream.Synchronize(bg))
			got, err := cuda.Download(bg, s.Stream(), m)
			require.NoError(t, err)
			for i, v := range got {
				require.Equal(t, uint8(0xEE), v, "%v, call %d, byte %d", s.transport, k, i)
			}
			require.NoError(t, cuda.PoolFree(pool, s.Stream(), m))
			s.requireHealthy(t, fmt.Sprint(s.transport, k))
			if ctx.left > 0 {
				break
			}
		}
	}
	require.Greater(t, cancelled, 15)
	for _, free := range frees {
		require.NoError(t, free())
	}
}
