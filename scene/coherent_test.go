package scene_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/oracle"
)

// coherentGrids is DfrCoherentAccum on the host.
type coherentGrids struct {
	field  [6][]float32
	counts [3][]int32
	words  []int64
}

func (g coherentGrids) bits() [3]any {
	var fields [6][]uint32
	for k, f := range g.field {
		fields[k] = bits(f)
	}
	return [3]any{fields, g.counts, g.words}
}

func (r *rig) downloadCoherent(a *scene.DfrCoherentAccum) (g coherentGrids) {
	r.Helper()
	for k, f := range coherentFields(a) {
		g.field[k] = toHost(r, f)
	}
	for k, n := range [...]cuda.Slice[int32]{a.Count, a.VisRejects, a.UTDRejects} {
		g.counts[k] = toHost(r, n)
	}
	g.words = toHost(r, a.Words)
	sums, err := a.ReadCounters(background)
	require.NoError(r, err)
	want := [3]int64{}
	for k, counts := range g.counts {
		for _, n := range counts {
			want[k] += int64(n)
		}
	}
	require.Equal(r, scene.DfrCoherentCounts{Count: want[0], VisRejects: want[1], UTDRejects: want[2]}, sums)
	return g
}

func coherentFields(a *scene.DfrCoherentAccum) []cuda.Slice[float32] {
	return []cuda.Slice[float32]{a.FieldXRe, a.FieldXIm, a.FieldYRe, a.FieldYIm, a.FieldZRe, a.FieldZIm}
}

// coherent answers a call, into memory full of other values.
func (d *dfrScene) coherent(g scene.Grid, o scene.DfrCoherentOptions) coherentGrids {
	d.Helper()
	a, err := d.AccumDfrCoherentDirect(background, d.states, g, o)
	require.NoError(d, err)
	poisoned(d.rig, coherentFields(a)...)
	poisoned(d.rig, a.Count, a.VisRejects, a.UTDRejects)
	poisoned(d.rig, a.Words)
	a, err = d.AccumDfrCoherentDirect(background, d.states, g, o, scene.Into(a))
	require.NoError(d, err)
	defer func() { require.NoError(d, a.Close()) }()
	require.Equal(d, int(g.Cells()), a.Rows())
	return d.downloadCoherent(a)
}

// withSources gives the states a few sources in turn and some states no power.
func (d *dfrScene) withSources(rng *rand.Rand, sources int) (tx []vec, power []float32) {
	d.Helper()
	for range sources {
		tx, power = append(tx, randomVec(rng, 5)), append(power, rng.Float32()*3)
	}
	power[0] = 0
	for s := range d.host.EdgeIndex {
		copy(d.host.Src[3*s:], tx[s%sources][:])
		d.host.SrcPower[s] = power[s%sources]
	}
	states, err := d.UploadStates(background, d.host)
	require.NoError(d, err)
	d.Cleanup(func() { require.NoError(d, states.Close()) })
	d.states = states
	return tx, power
}

func centres(g scene.Grid) (out []vec) {
	middle := func(lo, hi float32, res, i int32) float32 {
		step := float32(float32(hi-lo) / float32(res))
		return lo + float32((float32(i)+.5)*step)
	}
	for j := range g.Res1 {
		for i := range g.Res0 {
			a, b := middle(g.Min0, g.Max0, g.Res0, i), middle(g.Min1, g.Max1, g.Res1, j)
			switch g.Axis {
			case scene.AxisX:
				out = append(out, vec{g.Position, a, b})
			case scene.AxisY:
				out = append(out, vec{a, g.Position, b})
			default:
				out = append(out, vec{a, b, g.Position})
			}
		}
	}
	return out
}

func randomGrid(rng *rand.Rand, res0, res1 int32) scene.Grid {
	lo0, lo1 := -2-3*rng.Float32(), -2-3*rng.Float32()
	return scene.Grid{
		Axis: scene.Axis(rng.IntN(3)), Position: 2 * rng.Float32(), Min0: lo0, Max0: lo0 + 6, Min1: lo1, Max1: lo1 + 7, Res0: res0, Res1: res1,
	}
}

// laneRows are the rows of a path export that are the lanes of a coherent call: that of
// state s and cell c is at c*S + s.
func (d *dfrScene) laneRows(g scene.Grid, tx []vec, power []float32, active []uint8, polarization vec, mode scene.EdgeMode) pathRows {
	d.Helper()
	b := pathBatch{tx: tx, rx: centres(g), power: power, polarization: []vec{polarization}, mode: mode, active: active}
	if len(active) != d.states.Count() {
		b.active = all(d.states.Count())
	}
	rows := d.paths(b)
	var lanes pathRows
	for c := range b.rx {
		for s := range b.active {
			lanes.add(rows, ((s%len(tx))*len(b.rx)+c)*len(b.active)+s)
		}
	}
	return lanes
}

// gridsOf is the result for lanes [begin, begin+count) by exact sums of their rows.
func gridsOf(lanes pathRows, states, cells int, begin, count int64) (g coherentGrids) {
	for k := range g.counts {
		g.counts[k] = make([]int32, cells)
	}
	g.words = make([]int64, 36*cells)
	sums := make([][6][6]int64, cells)
	for l := begin; l < begin+count; l++ {
		c := int(l) / states
		switch scene.DfrPathStatus(lanes.status[l]) {
		case scene.DfrInactive:
		case scene.DfrValid:
			g.counts[0][c]++
			for k := range 6 {
				oracle.AddWords(&sums[c][k], lanes.field[6*int(l)+k])
			}
		case scene.DfrSourceOccluded, scene.DfrTargetOccluded:
			g.counts[1][c]++
		default:
			g.counts[2][c]++
		}
	}
	for c := range cells {
		for k := range 6 {
			g.field[k] = append(g.field[k], oracle.ReadWords(sums[c][k]))
			copy(g.words[36*c+6*k:], sums[c][k][:])
		}
	}
	return g
}

// Fields and counters are the exact sums of the rows of a path export, in whole calls,
// windows and calls that are divided anywhere.
func TestCoherentSumsPathRows(t *testing.T) {
	counted := [3]int32{}
	for seed := range uint64(7) {
		rng := rand.New(rand.NewPCG(seed, 83))
		d := randomBoxes(t, rng, 1+int(seed%3))
		grid := randomGrid(rng, 2+rng.Int32N(2), 1+rng.Int32N(2))
		windows := 5
		switch seed {
		case 4: // more states than threads of a block
			d.host = repeated(d.host, 5)
		case 5: // as many that also those with a path and those with a field are more
			d.host = repeated(d.host, 40)
			grid.Res0, grid.Res1, windows = 1, 1, 2
		case 6: // so many that blocks share each of the cells
			d.host = repeated(d.host, 1+4096/len(d.host.EdgeIndex))
			windows = 3
		}
		tx, power := d.withSources(rng, 3)
		states := d.states.Count()
		polarization := randomVec(rng, 1)
		o := scene.DfrCoherentOptions{
			Wavelength: d.lambda, Materials: d.materials, TxPolarization: polarization, EdgeMode: scene.EdgeMode(seed & 1),
		}
		var active []uint8
		if seed < 2 || seed == 6 {
			for range states {
				active = append(active, uint8(rng.IntN(4)))
			}
			o.Active = toDevice(d.rig, active)
		}
		if seed == 2 {
			o.Active = toDevice(d.rig, all(1))
		}
		lanes := d.laneRows(grid, tx, power, active, polarization, o.EdgeMode)
		cells := int(grid.Cells())
		total := int64(states * cells)
		given := []*scene.Window{nil, {Offset: total / 3, Count: -1}}
		for range 3 {
			begin := rng.Int64N(total)
			given = append(given, &scene.Window{Offset: begin, Count: rng.Int64N(total - begin + 1)})
		}
		for _, w := range given[:windows] {
			begin, count := int64(0), total
			if w != nil {
				begin, count = w.Offset, w.Count
				if count < 0 {
					count = total - begin
				}
			}
			want := gridsOf(lanes, states, cells, begin, count)
			if seed == 5 && w == nil {
				require.Greater(t, want.counts[0][0], int32(128))
				require.Greater(t, want.counts[1][0], int32(0))
			}
			if w == nil {
				for k := range counted {
					for _, n := range want.counts[k] {
						counted[k] += n
					}
				}
			}
			o.Window, o.KeepWords = w, true
			require.Equal(t, want.bits(), d.coherent(grid, o).bits(), "seed %d, window %v", seed, w)
			want.words, o.KeepWords = nil, false
			require.Equal(t, want.bits(), d.coherent(grid, o).bits(), "seed %d, window %v", seed, w)
			require.Equal(t, want.bits(), d.coherentInPieces(rng, grid, o).bits(), "seed %d, window %v", seed, w)
		}
	}
	for k, n := range counted {
		assert.Greater(t, n, int32(20), "counter %d", k)
	}
}

func repeated(s scene.DfrStates, times int) (out scene.DfrStates) {
	for range times {
		out.EdgeIndex, out.EdgePos, out.EdgeDir = append(out.EdgeIndex, s.EdgeIndex...), append(out.EdgePos, s.EdgePos...), append(out.EdgeDir, s.EdgeDir...)
		out.TMin, out.TMax = append(out.TMin, s.TMin...), append(out.TMax, s.TMax...)
		out.N0, out.N1 = append(out.N0, s.N0...), append(out.N1, s.N1...)
		out.Prim0, out.Prim1 = append(out.Prim0, s.Prim0...), append(out.Prim1, s.Prim1...)
		out.ExteriorAngle = append(out.ExteriorAngle, s.ExteriorAngle...)
		out.Src, out.SrcPower = append(out.Src, s.Src...), append(out.SrcPower, s.SrcPower...)
	}
	return out
}

// coherentInPieces is a call that is cut anywhere, also several times in one cell, whose
// pieces run in any order into several accumulators.
func (d *dfrScene) coherentInPieces(rng *rand.Rand, g scene.Grid, o scene.DfrCoherentOptions) coherentGrids {
	d.Helper()
	a, c, err := d.PrepareAccumDfrCoherentDirect(background, d.states, g, o, scene.Unallocated())
	require.NoError(d, err)
	parts := cuts(rng, c.Lanes, 6)
	at := []int64{}
	for i := range parts {
		parts[i][0] += c.Begin
		at = append(at, parts[i][0])
	}
	require.NoError(d, c.Cut(at))
	require.NoError(d, c.Allocate())
	defer func() { require.NoError(d, a.Close()) }()
	sc := d.rig.inside()
	defer func() { require.NoError(d, sc.Exit()) }()
	accs := d.rig.accumulators(c, 1+rng.IntN(4))
	for _, acc := range accs {
		poison(d.rig, acc)
		require.NoError(d, c.Zero(d.Scene, d.Stream(), acc))
	}
	in, out := c.Columns()
	for _, i := range rng.Perm(len(parts)) {
		require.NoError(d, c.Accumulate(sc, d.Scene, d.Stream(), in, out, accs[rng.IntN(len(accs))], parts[i][0], parts[i][1]))
	}
	require.NoError(d, c.Collect(sc, accs))
	return d.downloadCoherent(a)
}

// Published windows: three states, two cells.
func TestCoherentWindowsMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(89, 90))
	d := randomBoxes(t, rng, 1)
	d.host.Count = 3
	d = d.rig.dfrScene(d.host, d.media, d.lambda)
	grid := randomGrid(rng, 2, 1)
	o := scene.DfrCoherentOptions{Wavelength: d.lambda, Materials: d.materials, SkipVisibility: true, EdgeMode: scene.EdgeFresnel, KeepWords: true}
	call := func(offset, count int64) *scene.DfrCoherentAccum {
		o.Window = &scene.Window{Offset: offset, Count: count}
		a, err := d.AccumDfrCoherentDirect(background, d.states, grid, o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, a.Close()) })
		return a
	}
	want := d.downloadCoherent(call(0, 6))
	require.NotZero(t, want.counts[0][0]+want.counts[0][1])
	for _, windows := range [][][2]int64{{{0, 2}, {2, 4}}, {{0, 1}, {1, 4}, {5, 1}}, {{3, 3}, {0, 3}}} {
		sum := call(windows[0][0], windows[0][1])
		for _, w := range windows[1:] {
			require.NoError(t, sum.Merge(call(w[0], w[1])))
		}
		poisoned(d.rig, coherentFields(sum)...)
		require.NoError(t, sum.Read())
		assert.Equal(t, want.bits(), d.downloadCoherent(sum).bits(), "%v", windows)
	}

	a := call(0, 1)
	require.ErrorContains(t, a.Merge(a), "itself")
	require.ErrorContains(t, a.Merge(nil), "KeepWords")
	o.Wavelength *= 2
	require.ErrorContains(t, a.Merge(call(1, 5)), "same call")
	o.KeepWords = false
	require.ErrorContains(t, a.Merge(call(1, 5)), "KeepWords")
	require.ErrorContains(t, call(0, 6).Read(), "KeepWords")
	require.ErrorContains(t, call(0, 6).Merge(a), "KeepWords")
}

// Without visibility it is as if the scene were empty.
func TestCoherentSkipsVisibility(t *testing.T) {
	rng := rand.New(rand.NewPCG(91, 92))
	d := randomBoxes(t, rng, 4)
	d.materials = nil
	grid := randomGrid(rng, 4, 4)
	o := scene.DfrCoherentOptions{Wavelength: d.lambda}
	seen := d.coherent(grid, o)
	o.SkipVisibility = true
	through := d.coherent(grid, o)
	empty := build(t, moved(meshT(), vec{1e3, 1e3, 1e3})).dfrScene(d.host, scene.Materials{}, d.lambda)
	o.SkipVisibility = false
	require.Equal(t, empty.coherent(grid, o).bits(), through.bits())
	require.NotEqual(t, seen.counts, through.counts)
	require.Equal(t, make([]int32, grid.Cells()), through.counts[1])
}

func TestCoherentWithoutLanes(t *testing.T) {
	d := wedgeBox(t)
	g := scene.Grid{Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 2, Res1: 2}
	zero := gridsOf(pathRows{}, 1, 4, 0, 0)
	zero.words = nil
	o := scene.DfrCoherentOptions{Wavelength: d.lambda, Window: &scene.Window{Offset: 4}}
	for _, w := range []scene.Window{{Offset: 4, Count: -1}, {}, {Count: 0, Offset: 2}} {
		o.Window = &w
		assert.Equal(t, zero.bits(), d.coherent(g, o).bits(), "%v", w)
	}
	o.Window = nil
	none := d.rig.dfrScene(scene.DfrStates{}, scene.Materials{}, d.lambda)
	assert.Equal(t, zero.bits(), none.coherent(g, o).bits())
	o.Active = toDevice(d.rig, []uint8{0})
	assert.Equal(t, zero.bits(), d.coherent(g, o).bits())
}

// What is refused, before any driver call.
func TestCoherentRefuses(t *testing.T) {
	r, calls := traced(t, wedgeBoxMesh())
	d := r.wedgeBox()
	grid := scene.Grid{Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 4, Res1: 8}
	for _, c := range []struct {
		arg   string
		spoil func(g *scene.Grid, o *scene.DfrCoherentOptions)
	}{
		{"Wavelength", func(_ *scene.Grid, o *scene.DfrCoherentOptions) { o.Wavelength = 0 }},
		{"Wavelength", func(_ *scene.Grid, o *scene.DfrCoherentOptions) { o.Wavelength = math.Inf(1) }},
		{"EdgeMode", func(_ *scene.Grid, o *scene.DfrCoherentOptions) { o.EdgeMode = 7 }},
		{"TxPolarization", func(_ *scene.Grid, o *scene.DfrCoherentOptions) { o.TxPolarization[1] = nan }},
		{"Active", func(_ *scene.Grid, o *scene.DfrCoherentOptions) { o.Active = toDevice(d.rig, make([]uint8, 2)) }},
		{"Grid.Res0, Res1", func(g *scene.Grid, _ *scene.DfrCoherentOptions) { g.Res1 = 0 }},
		{"Window.Offset", func(_ *scene.Grid, o *scene.DfrCoherentOptions) { o.Window = &scene.Window{Offset: 33, Count: -1} }},
		{"Window.Offset", func(_ *scene.Grid, o *scene.DfrCoherentOptions) { o.Window = &scene.Window{Offset: -1, Count: 8} }},
		{"Window.Count", func(_ *scene.Grid, o *scene.DfrCoherentOptions) { o.Window = &scene.Window{Offset: 16, Count: 24} }},
	} {
		g, o := grid, scene.DfrCoherentOptions{Wavelength: d.lambda}
		c.spoil(&g, &o)
		calls.Reset()
		_, err := d.AccumDfrCoherentDirect(background, d.states, g, o)
		requireArgument(t, err, "AccumDfrCoherentDirect", c.arg)
		require.Empty(t, calls.Counts(), c.arg)
	}
	_, err := d.AccumDfrCoherentDirect(background, nil, grid, scene.DfrCoherentOptions{Wavelength: d.lambda})
	require.ErrorContains(t, err, "UploadStates")

	// A piece may not divide the lanes of a cell where the call was not cut.
	d.host = repeated(d.host, 4)
	d = d.rig.dfrScene(d.host, d.media, d.lambda)
	a, c, err := d.PrepareAccumDfrCoherentDirect(background, d.states, grid, scene.DfrCoherentOptions{Wavelength: d.lambda})
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	sc := d.rig.inside()
	defer func() { require.NoError(t, sc.Exit()) }()
	in, out := c.Columns()
	require.NoError(t, c.Zero(d.Scene, d.Stream(), c.Accumulator()))
	require.NoError(t, c.Accumulate(sc, d.Scene, d.Stream(), in, out, c.Accumulator(), 4, 8))
	require.ErrorContains(t, c.Accumulate(sc, d.Scene, d.Stream(), in, out, c.Accumulator(), 13, 3), "Cut")
	require.ErrorContains(t, c.Accumulate(sc, d.Scene, d.Stream(), in, out, c.Accumulator(), 12, 3), "Cut")
}

// The states of a cell are summed in rounds of a block, whose number of cells depends on
// that of the states.
func TestCoherentOfAnyNumberOfStates(t *testing.T) {
	rng := rand.New(rand.NewPCG(93, 94))
	d := randomBoxes(t, rng, 1)
	host := repeated(d.host, 9)
	grid := randomGrid(rng, 5, 5)
	o := scene.DfrCoherentOptions{Wavelength: d.lambda, Materials: d.materials, SkipVisibility: true}
	for _, n := range []int{1, 2, 5, 31, 65, 129} {
		if n > 60 {
			grid.Res0, grid.Res1 = 2, 1
		}
		host.Count = n
		d = d.rig.dfrScene(host, d.media, d.lambda)
		o.Materials = d.materials
		whole := d.coherent(grid, o)
		// Cell by cell in windows of one lane block each, in order.
		cells := int(grid.Cells())
		for _, c := range []int{0, rng.IntN(cells), cells - 1} {
			o.Window = &scene.Window{Offset: int64(c * n), Count: int64(n)}
			one := d.coherent(grid, o)
			for k := range one.field {
				require.Equal(t, math.Float32bits(whole.field[k][c]), math.Float32bits(one.field[k][c]), "%d states, cell %d", n, c)
				others := slices.Delete(slices.Clone(one.field[k]), c, c+1)
				require.Equal(t, make([]uint32, cells-1), append([]uint32{}, bits(others)...))
			}
			for k := range one.counts {
				require.Equal(t, whole.counts[k][c], one.counts[k][c], "%d states, cell %d", n, c)
			}
		}
		o.Window = nil
		sum := int32(0)
		for k := range whole.counts {
			for _, v := range whole.counts[k] {
				sum += v
			}
		}
		require.EqualValues(t, n*cells, sum)
	}
}
