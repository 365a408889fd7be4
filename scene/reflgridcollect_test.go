package scene_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

const tubeCell = 64 // bytes of the words of a cell, behind which are those of the counts

// spoil fills the words of cells without contributions, and returns how many there are.
func (r *rig) spoil(acc cuda.Slice[uint8], cells int64) (n int) {
	r.Helper()
	memory := toHost(r, acc)
	counts := memory[tubeCell*cells:]
	for cell := range cells {
		if binary.LittleEndian.Uint32(counts[4*cell:]) == 0 {
			copy(memory[tubeCell*cell:], bytes.Repeat([]byte{0xA5}, tubeCell))
			n++
		}
	}
	require.NoError(r, cuda.CopyIn(background, r.Stream(), acc, memory))
	return n
}

// Rays that are divided over any number of accumulators, the call's among them or not, give all
// columns of one launch, and what is kept of the sum is all that is written beside them. The
// launch that reads the result asks for no words of cells without contributions.
func TestReflGridCollect(t *testing.T) {
	rng := rand.New(rand.NewPCG(66, 1))
	const rays = 400
	c := newExactCase(rng, rays)
	c.grid = square(scene.AxisZ, .4, -.4, 1.4, 23)
	c.tx[3*rays-1], c.active[rays-1] = nan, 1 // which the last accumulator says
	r := c.open(t)
	table := r.materials(c.media)
	spoiled := 0
	for _, c.opt.FieldWeight = range []scene.FieldWeight{scene.WeightSqrtArea, scene.WeightArea} {
		all := c.run(r, table)
		require.Equal(t, scene.StatusNotFinite, all.status)
		for _, n := range []int{1, 2, 5, 16, 17} {
			for keeps := range 3 { // nothing, counts, words
				for _, own := range []bool{false, true} {
					opt, want := c.opt, all
					opt.Materials, opt.TxPosition = table, toDevice(r, c.tx)
					opt.CellCount, opt.KeepWords = keeps > 0, keeps > 1
					if !opt.CellCount {
						want.cellCount = nil
					}
					if !opt.KeepWords {
						want.words, want.wordCounts, want.wordMaxima = nil, nil, nil
					}
					g, call, err := r.PrepareAccumulateReflections(background, r.upload(c.batch), c.grid, opt)
					require.NoError(t, err)
					poison(r, call.Accumulator())
					accs := r.accumulators(call, n)
					if own {
						accs[0] = call.Accumulator()
					}
					sc := r.inside()
					in, out := call.Columns()
					for i, part := range cuts(rng, rays, n) {
						require.NoError(t, call.Zero(r.Scene, call.Stream, accs[i]))
						cut := [2]int{int(part[0]), int(part[1])}
						require.NoError(t, call.Accumulate(sc, r.Scene, call.Stream, rowsOf(t, in, cut), rowsOf(t, out, cut), accs[i], part[0], part[1]))
						if n <= 16 && !(own && n == 1) {
							spoiled += r.spoil(accs[i], c.grid.Cells())
						}
					}
					before := toHost(r, call.Accumulator())
					require.NoError(t, call.Collect(sc, accs))
					requireSameGrids(t, want, r.readGrids(g), "%d accumulators, %d kept, own %v", n, keeps, own)
					if keeps == 0 && n <= 16 {
						require.Equal(t, before, toHost(r, call.Accumulator()), "nobody asked for the sum")
					}
					require.NoError(t, sc.Exit())
					require.NoError(t, g.Close())
				}
			}
		}
	}
	require.Positive(t, spoiled)
}

// Words that a caller has changed count in cells without contributions, too.
func TestReflGridReadsWordsWithoutContributions(t *testing.T) {
	c := caseA3()
	r := build(t, c.mesh)
	c.opt.Materials, c.opt.TxPosition, c.opt.KeepWords = r.materials(oneMedium(c.mesh, c.eta, true)), toDevice(r, c.tx[:]), true
	g, err := r.AccumulateReflections(background, r.upload(c.ray), c.grid, c.opt)
	require.NoError(t, err)
	const cell = 5
	require.Zero(t, toHost(r, g.WordCounts)[cell])
	words := toHost(r, g.Words)
	words[8*cell+6] = 3 << 16 // a power of 3
	require.NoError(t, cuda.CopyIn(background, r.Stream(), g.Words, words))
	require.NoError(t, g.Read())
	base := r.accumulateTubes(c.ray, c.grid, c.opt).base
	require.Equal(t, float32(3*base*base), toHost(r, g.Power)[cell])
	require.NoError(t, g.Close())
}
