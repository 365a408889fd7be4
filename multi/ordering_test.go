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
