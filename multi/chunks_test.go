package multi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
)

// One to 64 rows per chunk on 33 rows: the bits are those of one launch, and there are as
// many chunks as the shards of 33 or of 16 and 17 rows need.
func TestMultiSceneChunkSizes(t *testing.T) {
	rng := rngOf(11)
	rig, sets, faces := fleet(t, rng)
	st, err := rig.Context(t, 0).NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	ceil := func(n, c int64) int64 { return (n + c - 1) / c }
	for _, q := range questions(t, rng, st, 33, faces) {
		want := q.answerOf(t, sets[0])
		for _, c := range []int64{1, 7, 11, 64} {
			for i, s := range sets[:2] {
				s.opts.ChunkRays = c
				s.transport = chunked.Transport(1 + rng.IntN(3))
				what := fmt.Sprintf("%s, %d rows per chunk, %d devices, %v", q.name, c, i+1, s.transport)
				var info CallInfo
				require.Equal(t, want, q.answerOf(t, s, Info(&info)), what)
				count := ceil(33, c)
				if i == 1 {
					count = ceil(16, c) + ceil(17, c)
				}
				require.Len(t, info.Plan.Chunks, int(count), what)
				got, starts := q.gathered(t, s)
				require.Equal(t, want, got, what)
				require.Len(t, starts, int(count), what)
				s.opts.ChunkRays = 0
			}
		}
	}
}

// An empty batch is answered without a chunk, and a consumer is not called.
func TestMultiSceneChunksOfNothing(t *testing.T) {
	s := newStreaming(t, 2, 7)
	var info CallInfo
	h, err := s.Intersect(bg, scene.Rays{}, scene.All, Info(&info))
	require.NoError(t, err)
	require.Zero(t, h.Rows())
	require.Empty(t, info.Plan.Chunks)
	require.NoError(t, h.Close())
	h, err = s.Intersect(bg, scene.Rays{}, scene.All, Offload(func(context.Context, int64, offload.Chunk[*scene.Hits]) error {
		t.Error("called")
		return nil
	}))
	require.NoError(t, err)
	require.Nil(t, h)
}

// A result that is larger than the budget is streamed within it: 250000 rows of 76 bytes
// in 16 MiB.
func TestMultiSceneStreamsMoreThanTheBudget(t *testing.T) {
	rows := 250_000
	if testing.Short() {
		rows = 25_000
	}
	budget := int64(rows) * 67 // 16 MiB for 250000
	drv, _, _ := emulator(t, 1)
	opts := anyFloor()
	opts.MemoryBudget = budget
	s := quick(t, drv, []int{0}, opts)
	build(t, s, soup(rngOf(2), 2))
	b := batch{o: make([]float32, 3*rows), d: make([]float32, 3*rows)}
	for i := range rows {
		b.o[3*i], b.d[3*i+2] = 9, 1
	}
	rays, free := b.rays(t, s.Stream())
	defer free()
	_, err := s.Intersect(bg, rays, scene.All)
	var refused *chunked.BudgetError
	require.ErrorAs(t, err, &refused)
	before := poolUse(s)
	seen := int64(0)
	for c, err := range s.IntersectSeq(bg, rays, scene.All) {
		require.NoError(t, err)
		seen += c.Rows
	}
	require.Equal(t, int64(rows), seen)
	used := int64(s.Context().Pool().Stats().HighWater - before[0])
	require.LessOrEqual(t, used, budget+budget/2)
	require.InEpsilon(t, budget, used, .02, "the largest chunks that fit")
}

// Wherever its context ends, a query is complete or fails, and the set works on.
func TestMultiResilienceQueriesCancelledAnywhere(t *testing.T) {
	s := newStreaming(t, 2, 4)
	for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
		for _, stream := range []bool{false, true} {
			failed := 0
			for k := 1; ; k++ {
				s.opts.ChunkRays = 4
				before := poolUse(s.Scene)
				ctx := newEndsAt(k)
				var opts []scene.CallOption
				if stream {
					opts = append(opts, Offload(func(context.Context, int64, offload.Chunk[*scene.Hits]) error { return nil }))
				}
				h, err := s.Intersect(ctx, s.rays, scene.All, opts...)
				require.NoError(t, h.Close())
				if err != nil {
					require.ErrorIs(t, err, context.Canceled)
					failed++
				}
				require.Equal(t, before, poolUse(s.Scene))
				s.requireHealthy(t, fmt.Sprint(s.transport, stream, k))
				if ctx.left > 0 {
					break
				}
			}
			require.Greater(t, failed, 8)
		}
	}
}

// The OptiX backend runs the same plans.
func TestMultiSceneChunksWithOptix(t *testing.T) {
	drv, devices, _ := optixDriver(t, fakeoptix.Config{})
	rng := rand.New(rand.NewPCG(53, 2))
	m := room(rng)
	opts := Options{Options: chunked.Options{MinRaysPerDevice: 1}, Backend: scene.OptiX}
	one, two := newScene(t, drv, devices[:1], opts), newScene(t, drv, devices, opts)
	build(t, one, m)
	build(t, two, m)
	for _, q := range questions(t, rng, one.Stream(), 40, len(m.Faces)/3) {
		want := q.answerOf(t, one)
		for range 4 {
			shuffle(rng, two)
			two.opts.MemoryBudget = 0
			what := fmt.Sprintf("%s, %v, %+v", q.name, two.transport, two.opts.Options)
			require.Equal(t, want, q.answerOf(t, two), what)
			got, _ := q.gathered(t, two)
			require.Equal(t, want, got, what)
		}
	}
}
