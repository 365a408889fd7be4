package scene_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
)

// manyPaths are rows in several tiles, about half of which have a path.
func manyPaths(rng *rand.Rand) pathBatch {
	b := pathBatch{tx: []vec{{-1.2, .8, -.1}}, active: all(1), polarization: []vec{{0, 0, 1}}}
	for i := range 5000 {
		rx := vec{1 + rng.Float32(), 1.1 + rng.Float32(), rng.Float32() - .5}
		if i%3 == 0 || i > 4200 {
			rx[rng.IntN(3)] = nan
		}
		if i%7 == 0 {
			rx[1] = -1
		}
		b.rx = append(b.rx, rx)
	}
	return b
}

// part is rows [begin, end).
func (p pathRows) part(begin, end int) (out pathRows) {
	for i := begin; i < end; i++ {
		out.add(p, i)
	}
	return out
}

// A search of filled rows stores the status of all, and of those with a path what else it finds.
func TestDfrPathsOfFilledRows(t *testing.T) {
	d := wedgeBox(t)
	b := manyPaths(rand.New(rand.NewPCG(91, 92)))
	n := len(b.rx)
	const cut, end = 701, 4802
	rows := d.paths(b)
	require.Greater(t, rows.part(cut, end).valid(), 1000)
	for _, b.layout = range []scene.DfrPathLayout{scene.SourceLane, scene.Compact} {
		want := d.paths(b)
		p, call, err := d.PrepareDfrPaths(background, toDevice(d.rig, flat(b.tx)), toDevice(d.rig, flat(b.rx)), d.states, d.options(b))
		require.NoError(t, err)
		d.poisonPaths(p)
		poison := d.downloadPaths(p)
		in, out := call.Columns()
		search := func(filled bool, begin, end int64) {
			call.Filled = filled
			require.NoError(t, call.Search(d.Scene, call.Stream, in, out, begin, end-begin))
			require.NoError(t, call.Finalize(begin, end-begin))
		}
		require.NoError(t, call.Fill(cut, end-cut))
		filled := poison.part(0, n)
		for i := cut; i < end; i++ {
			filled.delay[i] = inf
			clear(filled.field[6*i : 6*i+6])
			clear(filled.p0[3*i : 3*i+3])
		}
		require.Equal(t, filled.bits(), d.downloadPaths(p).part(0, n).bits(), "what Fill stores")

		d.poisonPaths(p)
		search(true, cut, end)
		stored, got := poison.part(0, n), d.downloadPaths(p)
		copy(stored.status[cut:end], rows.status[cut:end])
		for i := cut; i < end; i++ {
			if rows.status[i] == uint8(scene.DfrValid) {
				stored.delay[i] = rows.delay[i]
				copy(stored.field[6*i:6*i+6], rows.field[6*i:])
				copy(stored.p0[3*i:3*i+3], rows.p0[3*i:])
			}
		}
		stored.tx, stored.rx, stored.edge = got.tx, got.rx, got.edge // by Finalize
		require.Equal(t, stored.bits(), got.part(0, n).bits(), "what the search stores")

		d.poisonPaths(p)
		require.NoError(t, call.Fill(cut, end-cut))
		search(true, cut, end)
		search(false, 0, cut)
		search(false, end, int64(n))
		require.NoError(t, call.Finish())
		require.Equal(t, want.bits(), d.downloadPaths(p).bits())
		require.NoError(t, call.Abandon())
	}
}

// Columns that hold a part alone are not filled, whatever the call says.
func TestDfrPathsOfFilledRowsInAPart(t *testing.T) {
	d := wedgeBox(t)
	b := manyPaths(rand.New(rand.NewPCG(93, 94)))
	want := d.paths(b)
	p, call, err := d.PrepareDfrPaths(background, toDevice(d.rig, flat(b.tx)), toDevice(d.rig, flat(b.rx)), d.states, d.options(b))
	require.NoError(t, err)
	d.poisonPaths(p)
	const cut = 3000
	in, all := call.Columns()
	out := make([]scene.RowColumn, len(all))
	for i, c := range all {
		out[i] = c
		out[i].Data, err = c.Data.Sub(cut*c.Width, c.Data.Len())
		require.NoError(t, err)
	}
	call.Filled = true
	require.NoError(t, call.SearchPart(d.Scene, call.Stream, in, out, cut, call.Rows-cut))
	call.Filled = false
	require.NoError(t, call.Search(d.Scene, call.Stream, in, all, 0, cut))
	require.NoError(t, call.Finalize(0, call.Rows))
	require.NoError(t, call.Finish())
	require.Equal(t, want.bits(), d.downloadPaths(p).bits())
	require.NoError(t, call.Abandon())
}

// valid is how many rows have a path.
func (p pathRows) valid() (n int) {
	for _, status := range p.status {
		if status == uint8(scene.DfrValid) {
			n++
		}
	}
	return n
}
