package scene

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/gputest"
)

// columnBytes are the columns of a result, without the gaps between them.
func columnBytes(t *testing.T, s *Scene, h *Hits) (out []byte) {
	memory, widths := download(t, s, h.memory().memory), hitLayout(h.Flags)
	starts, _ := columnStarts(h.rows, widths)
	for i, w := range widths {
		out = append(out, memory[starts[i]:starts[i]+h.rows*int64(w)]...)
	}
	return out
}

// A marked call says of every row how far it is. The search on the caller's device
// finalizes what is ready, whoever has searched it, and nothing else.
func TestSearchFinalizesWhatIsReady(t *testing.T) {
	const rows, own = 3000, 1400
	c := gputest.Open(t, 1, nil).Context(t, 0)
	ctx := context.Background()
	v, f := soup(61, 400, 0.2)
	s, x := treeOf(t, c, v, f)
	other, y := treeOf(t, c, v, f)
	x.residency.blocks[s.kernels.traverseMarked] = 2
	y.residency.blocks[other.kernels.traverseMarked] = 2 // has a tail, too, but must not fill it
	x.plan.cost, y.plan.cost = manyVisits, manyVisits/2
	rng := rand.New(rand.NewPCG(62, 1))
	o, d := make([]float32, 3*rows), make([]float32, 3*rows)
	for i := range o {
		o[i], d[i] = rng.Float32(), rng.Float32()-0.5
	}
	var rays Rays
	var err error
	rays.O, err = cuda.Upload(ctx, s.stream, o)
	require.NoError(t, err)
	rays.D, err = cuda.Upload(ctx, s.stream, d)
	require.NoError(t, err)
	defer func() { require.NoError(t, firstError(cuda.Free(rays.O), cuda.Free(rays.D))) }()
	for _, flags := range []Flags{All, None} {
		plain, err := other.Intersect(ctx, rays, flags, OnStream(s.stream)) // which takes vertices from the tables
		require.NoError(t, err)
		want := columnBytes(t, s, plain)
		ids, err := s.Intersect(ctx, rays, Geometric)
		require.NoError(t, err)
		winners := download(t, s, ids.GlobalPrimID)

		h, call, err := s.PrepareIntersect(ctx, rays, flags)
		require.NoError(t, err)
		words := func() []int32 {
			w, err := cuda.Reinterpret[int32](h.winners)
			require.NoError(t, err)
			return download(t, s, w)
		}
		require.NoError(t, call.Mark())
		for _, w := range words() {
			require.Equal(t, int32(-2), w)
		}
		require.True(t, call.Marked())
		require.NoError(t, call.Finalize(0, rows), "of what is not there yet")
		in, out := call.Columns()
		require.NoError(t, call.Search(other, s.stream, in, out, own, rows-own))
		for i, w := range words() {
			if i < own {
				require.Equal(t, int32(-2), w, "row %d", i)
				continue
			}
			require.Equal(t, uint32(winners[i]+1)|1<<31, uint32(w), "row %d: the winner of another scene waits", i)
		}
		require.NoError(t, call.Search(s, s.stream, in, out, 0, own))
		theirs := 0
		finished, reference := download(t, s, h.T), download(t, s, plain.T)
		for i, w := range words() {
			switch {
			case w < -2:
				require.Equal(t, uint32(winners[i]+1)|1<<31, uint32(w), "row %d", i)
			case i >= own:
				theirs++
			}
			if w >= -1 {
				require.Equal(t, reference[i], finished[i], "row %d", i)
			}
		}
		if !gputest.Native() { // where warps may end too close to each other
			require.Positive(t, theirs, "rows of others are finalized by the search")
		}
		require.NoError(t, call.Finalize(0, rows))
		require.NoError(t, call.Finalize(own, rows-own))
		require.Equal(t, want, columnBytes(t, s, h))
		for _, h := range []*Hits{plain, ids, h} {
			require.NoError(t, h.Close())
		}
	}
}

// A search with a thread for every row has no tail to fill.
func TestSmallMarkedSearches(t *testing.T) {
	const rows = 100
	c := gputest.Open(t, 1, nil).Context(t, 0)
	v, f := soup(61, 400, 0.2)
	s, x := treeOf(t, c, v, f)
	x.plan.cost = manyVisits
	rng := rand.New(rand.NewPCG(63, 1))
	d := make([]float32, 3*rows)
	for i := range d {
		d[i] = rng.Float32()
	}
	var rays Rays
	var err error
	rays.O, err = cuda.Upload(context.Background(), s.stream, make([]float32, 3*rows))
	require.NoError(t, err)
	rays.D, err = cuda.Upload(context.Background(), s.stream, d)
	require.NoError(t, err)
	defer func() { require.NoError(t, firstError(cuda.Free(rays.O), cuda.Free(rays.D))) }()
	plain, err := s.Intersect(context.Background(), rays, All)
	require.NoError(t, err)
	h, call, err := s.PrepareIntersect(context.Background(), rays, All)
	require.NoError(t, err)
	require.NoError(t, call.Mark())
	in, out := call.Columns()
	require.NoError(t, call.Search(s, s.stream, in, out, 0, rows))
	require.NoError(t, call.Finalize(0, rows))
	require.Equal(t, columnBytes(t, s, plain), columnBytes(t, s, h))
	require.NoError(t, firstError(plain.Close(), h.Close()))
}

// Where rays visit few nodes a call is not marked, and neither is one of more rows than a
// launch has.
func TestSearchesThatDoNotSweep(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	v, f := soup(61, 400, 0.2)
	s, x := treeOf(t, c, v, f)
	rays := Rays{}
	var err error
	rays.O, err = cuda.Upload(context.Background(), s.stream, make([]float32, 60))
	require.NoError(t, err)
	rays.D = rays.O
	defer func() { require.NoError(t, cuda.Free(rays.O)) }()
	for _, change := range []func(){
		func() { x.plan.cost = manyVisits / 2 },
		func() { x.plan.cost, s.rowsPerLaunch = manyVisits, 10 },
	} {
		change()
		h, call, err := s.PrepareIntersect(context.Background(), rays, All)
		require.NoError(t, err)
		require.NoError(t, cuda.Fill32(s.stream, h.GlobalPrimID, 7))
		require.NoError(t, call.Mark())
		require.False(t, call.Marked())
		for _, id := range download(t, s, h.GlobalPrimID) {
			require.Equal(t, int32(7), id)
		}
		require.NoError(t, h.Close())
	}
}
