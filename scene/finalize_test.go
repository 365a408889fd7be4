package scene_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// Finalize judges a winner of another tracer, whose arithmetic differs, by the
// canonical test: the columns never leave the interval that Intersect promises.
func TestFinalizeKeepsTheInterval(t *testing.T) {
	below := func(z float32) vec { return vec{.25, .25, -z} }
	up := vec{0, 0, 1}
	rows := []struct {
		name string
		o, d vec
		tmax float32
		want float32 // inf: a miss
	}{
		{"inside", below(1), up, inf, 1},
		{"at the bound", below(1), up, 1, 1},
		{"beyond the bound", below(1), up, .99999994, inf},
		{"just above the lower end", below(0x1p-19), up, inf, 0x1p-19},
		{"just below the lower end", below(0x1p-20), up, inf, inf},
		{"at the origin", below(0), up, inf, inf},
		{"behind the origin", below(-.5), up, inf, inf},
		{"edge-on", vec{-1, .25, 0}, vec{1, 0, 0}, inf, inf},
	}
	r := build(t, meshT())
	b := batch{tmax: []float32{}}
	for _, row := range rows {
		b.add(row.o, row.d)
		b.tmax = append(b.tmax, row.tmax)
	}
	rays := r.upload(b)
	hits, call, err := r.PrepareIntersect(background, rays, scene.All)
	require.NoError(t, err)
	// The other tracer says that every ray hits triangle 0.
	_, out := call.Columns()
	require.NoError(t, cuda.CopyIn(background, call.Stream, out[0].Data, make([]uint8, 4*len(rows))))
	require.NoError(t, call.Finalize(0, int64(len(rows))))
	got := r.download(hits)
	for i, row := range rows {
		assert.Equal(t, row.want, got.t[i], row.name)
		prim := int32(0)
		if row.want == inf {
			prim = -1
		}
		assert.Equal(t, prim, got.global[i], row.name)
	}
	require.NoError(t, call.Abandon())
}

// What a lost device has left where winners should be must not be used as one.
func TestFinalizeOfWhatIsNoWinner(t *testing.T) {
	r := build(t, meshT())
	b := batch{}
	for range 3 {
		b.add(vec{.25, .25, -1}, vec{0, 0, 1})
	}
	words := []int32{1, math.MaxInt32, math.MinInt32}
	hits, call, err := r.PrepareIntersect(background, r.upload(b), scene.All)
	require.NoError(t, err)
	store := func(call *scene.Call) {
		_, out := call.Columns()
		winners, err := cuda.Reinterpret[int32](out[0].Data)
		require.NoError(t, err)
		require.NoError(t, cuda.CopyIn(background, call.Stream, winners, words))
		require.NoError(t, call.Finalize(0, 3))
	}
	store(call)
	got := r.download(hits)
	require.NoError(t, call.Abandon())
	assert.Equal(t, []float32{inf, inf, inf}, got.t)
	assert.Equal(t, []int32{-1, -1, -1}, got.global)

	chains, call, err := r.PrepareReflections(background, r.upload(b), 1, scene.ChainAll)
	require.NoError(t, err)
	store(call)
	prims, err := cuda.Download(background, call.Stream, chains.PrimIDs)
	require.NoError(t, err)
	assert.Equal(t, []int32{-1, -1, -1}, prims)
	require.NoError(t, call.Abandon())
}
