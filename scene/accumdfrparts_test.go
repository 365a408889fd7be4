package scene_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// Launches of a call over many pairs have whole pairs each, all of them together every pair
// once, wherever the call is cut: the sums and counters are those of one launch. What one has
// is spread over the grid.
func TestAccumDfrDirectPartsOfPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 17))
	r := build(t, randomSoup(rng, 20, .3))
	states := r.states(randomWedge(rng, 1), randomWedge(rng, 1))
	g := scene.Grid{Position: .1, Min0: -1, Max0: 1, Min1: -1, Max1: 1}
	sc := r.inside()
	for _, res := range [][2]int32{{33, 32}, {37, 30}, {50, 41}} { // more than 2048 pairs, in groups and not
		g.Res0, g.Res1 = res[0], res[1]
		cells := g.Cells()
		n := 2*2*cells + 77
		o := scene.DfrDirectOptions{Wavelength: 1, DirectSamples: n + 50, Seed: 5, KeepWords: true, Window: &scene.Window{Offset: 19, Count: n}}
		want := r.accumulateDfr(states, g, o)
		require.Positive(t, want.counts.EdgeUses)
		for round := range 5 {
			a, c, err := r.PrepareAccumDfrDirect(background, states, g, o)
			require.NoError(t, err)
			at := []int64{19, 19 + n/2}
			if round > 0 {
				for range rng.IntN(9) {
					at = append(at, 19+rng.Int64N(n+1))
				}
				slices.Sort(at)
			}
			require.NoError(t, c.Cut(at))
			require.NoError(t, c.Allocate())
			in, out := c.Columns()
			poison(r, c.Accumulator())
			require.NoError(t, c.Zero(r.Scene, r.Stream(), c.Accumulator()))
			order := rng.Perm(len(at))
			if round == 0 {
				order = []int{0, 1}
			}
			for i, k := range order {
				end := 19 + n
				if k+1 < len(at) {
					end = at[k+1]
				}
				r.ForceResident(t, 1+rng.Int64N(3))
				require.NoError(t, c.Accumulate(sc, r.Scene, r.Stream(), in, out, c.Accumulator(), at[k], end-at[k]))
				if round == 0 && i == 0 {
					requireHalf(t, cells, res[0], toHost(r, c.Accumulator()))
				}
			}
			require.NoError(t, c.Collect(sc, []cuda.Slice[uint8]{c.Accumulator()}))
			require.Equal(t, want, r.fetch(a), "%v cells, cut at %v, in the order %v", res, at, order)
			require.NoError(t, a.Close())
		}
	}
	require.NoError(t, sc.Exit())
}

// requireHalf requires that about half of the cells have sums, in each quarter of the grid.
func requireHalf(t *testing.T, cells int64, res0 int32, acc []uint8) {
	t.Helper()
	var summed, all [4]int
	for cell := range cells {
		quarter := 4 * cell / cells
		all[quarter]++
		if slices.ContainsFunc(acc[48*cell:48*cell+48], func(b uint8) bool { return b != 0 }) {
			summed[quarter]++
		}
	}
	for q := range all {
		require.InDelta(t, .5, float64(summed[q])/float64(all[q]), .25, "%d of %d cells of a quarter, in rows of %d", summed[q], all[q], res0)
	}
}

// A launch of few of very many lanes has few pairs, whose lanes are as far apart as numbers of
// lanes go. It does each of them once, however many threads it has.
func TestAccumDfrDirectFewOfManyPairs(t *testing.T) {
	r := build(t, farTriangle)
	states := r.states(stateA)
	g := gridOne
	g.Res0, g.Res1 = 1024, 1024
	const lanes, perPair = 1<<31 - 1, 2047 // and one more of all pairs but one
	a, c, err := r.PrepareAccumDfrDirect(background, states, g, scene.DfrDirectOptions{Wavelength: 1, DirectSamples: lanes, KeepWords: true})
	require.NoError(t, err)
	sc := r.inside()
	in, out := c.Columns()
	for _, part := range []struct{ begin, count, pairs int64 }{
		{0, 3 * perPair, 2}, {0, 2100, 1}, {1 << 30, 4095, 1}, {lanes - 5000, 5000, 3}, {12345, 8000, 3}, {0, 1, 0},
	} {
		require.NoError(t, c.Cut([]int64{0, part.begin, part.begin + part.count}))
		require.NoError(t, c.Allocate())
		var want []uint8
		for _, blocks := range []int64{1, 1000} {
			r.ForceResident(t, blocks)
			require.NoError(t, c.Zero(r.Scene, r.Stream(), c.Accumulator()))
			require.NoError(t, c.Accumulate(sc, r.Scene, r.Stream(), in, out, c.Accumulator(), part.begin, part.count))
			got := toHost(r, c.Accumulator())
			if want == nil {
				want = got
			}
			require.Equal(t, part.pairs*(perPair+1), int64(binary.LittleEndian.Uint64(want[48*g.Cells():])), "%+v", part)
			require.True(t, slices.Equal(want, got), "%+v: %d blocks", part, blocks)
		}
	}
	require.NoError(t, sc.Exit())
	require.NoError(t, a.Close())
}
