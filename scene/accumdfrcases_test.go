package scene_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// TestAccumDfrDirectLimits compares many lanes with the integrals that they estimate.
func TestAccumDfrDirectLimits(t *testing.T) {
	r := build(t, farTriangle)
	one := r.accumulateDfr(r.states(stateA), gridOne, scene.DfrDirectOptions{Wavelength: .125, DirectSamples: 1 << 14, Seed: 3})
	require.InEpsilon(t, 5.127292851e-04, one.power[0], 4e-3)

	g := scene.Grid{Position: .5, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 2, Res1: 2}
	two := r.accumulateDfr(r.states(twoWedges...), g, scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 1 << 15, Seed: 3})
	for cell, want := range []float64{1.152293025e-02, 1.213440066e-02, 1.152293025e-02, 1.213440066e-02} {
		require.InEpsilon(t, want, two.power[cell], 2e-2, "cell %d", cell)
	}

	keller := r.accumulateDfr(r.states(stateA), gridOne, scene.DfrDirectOptions{Wavelength: .125, KellerSamples: 1 << 16, Seed: 17})
	require.InEpsilon(t, 4.083102386e-04, keller.power[0], 1e-2)
}

// What makes no edge, or no power, is counted lane by lane.
func TestAccumDfrDirectRejects(t *testing.T) {
	r := build(t, farTriangle)
	big := float32(3e38)
	for name, spoil := range map[string]func(*wedge){
		"no direction":             func(w *wedge) { w.dir = vec{} },
		"infinite direction":       func(w *wedge) { w.dir[1] = inf },
		"no length":                func(w *wedge) { w.tMax = w.tMin },
		"ends exchanged":           func(w *wedge) { w.tMin, w.tMax = w.tMax, w.tMin },
		"no power":                 func(w *wedge) { w.power = 0 },
		"negative power":           func(w *wedge) { w.power = -1 },
		"infinite power":           func(w *wedge) { w.power = inf },
		"position not a number":    func(w *wedge) { w.pos[2] = nan },
		"source not a number":      func(w *wedge) { w.src[0] = nan },
		"infinite source":          func(w *wedge) { w.src[0] = -inf },
		"normal not a number":      func(w *wedge) { w.n0[0] = nan },
		"angle not a number":       func(w *wedge) { w.theta = nan },
		"end not a number":         func(w *wedge) { w.tMax = nan },
		"length out of range":      func(w *wedge) { w.tMin, w.tMax = -big, big },
		"too far for any power":    func(w *wedge) { w.src, w.power = vec{1e18, 1e18, 1e18}, 1e-20 },
		"edge at the end of range": func(w *wedge) { w.pos, w.tMin, w.tMax = vec{big, 0, 0}, big, big },
	} {
		w := stateA
		spoil(&w)
		a := r.accumulateDfr(r.states(w, stateA), gridOne, scene.DfrDirectOptions{Wavelength: .125, DirectSamples: 20, Seed: 1})
		require.Equal(t, scene.DfrCounts{Direct: 10, UTDRejects: 10, EdgeUses: 10}, a.counts, name)
		require.Positive(t, a.power[0], name)
	}
	// On the edge the distance is floored, and the result is finite.
	w := stateA
	w.src, w.tMin, w.tMax = vec{.25, 0, 0}, .25, .25+1e-7
	a := r.accumulateDfr(r.states(w), gridOne, scene.DfrDirectOptions{Wavelength: .125, DirectSamples: 10, Seed: 1})
	require.EqualValues(t, 10, a.counts.Direct)
	require.Less(t, a.power[0], inf)
}

func TestAccumDfrDirectActive(t *testing.T) {
	r := build(t, farTriangle)
	states := r.states(stateA, stateA)
	for _, c := range []struct {
		active []uint8
		want   scene.DfrCounts
	}{
		{[]uint8{1, 0}, scene.DfrCounts{Direct: 16, EdgeUses: 16, InactiveLanes: 16}},
		{[]uint8{0, 0}, scene.DfrCounts{InactiveLanes: 32}},
		{[]uint8{0}, scene.DfrCounts{InactiveLanes: 32}},
		{[]uint8{1}, scene.DfrCounts{Direct: 32, EdgeUses: 32}},
	} {
		o := scene.DfrDirectOptions{Wavelength: .125, DirectSamples: 32, Active: toDevice(r, c.active)}
		require.Equal(t, c.want, r.accumulateDfr(states, gridOne, o).counts, "%v", c.active)
	}
}

// The gain of a state is that of its first valid material.
func TestAccumDfrDirectGain(t *testing.T) {
	r := build(t, farTriangle, rectangle(11, 0, 1, 0, 1))
	materials, err := r.UploadMaterials(background, scene.Materials{
		EtaR: []float32{1, 1, 1}, Sigma: []float32{0, 0, 0}, MuR: []float32{1, 1, 1}, Gain: []float32{.5, 3, .25},
		Valid: []bool{true, false, true},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, materials.Close()) }()
	o := scene.DfrDirectOptions{Wavelength: .125, DirectSamples: 16, Seed: 2}
	free := r.accumulateDfr(r.states(stateA), gridOne, o).power[0]
	o.Materials = materials
	for _, c := range []struct {
		prim0, prim1 int32
		gain         float32
	}{{0, 2, .5}, {1, 2, .25}, {2, 1, .25}, {1, 1, 1}, {-1, 0, .5}, {3, -7, 1}, {math.MaxInt32, 2, .25}} {
		w := stateA
		w.prim0, w.prim1 = c.prim0, c.prim1
		require.Equal(t, c.gain*free, r.accumulateDfr(r.states(w), gridOne, o).power[0], "%+v", c)
	}
}

func TestAccumDfrDirectNothing(t *testing.T) {
	r := build(t, farTriangle)
	some, none := r.states(stateA), r.states()
	for name, c := range map[string]struct {
		states *scene.StateTable
		o      scene.DfrDirectOptions
	}{
		"no states":         {none, scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 7}},
		"no states, window": {none, scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 7, Window: &scene.Window{Offset: 2, Count: 5}}},
		"no samples":        {some, scene.DfrDirectOptions{Wavelength: 1}},
		"empty window":      {some, scene.DfrDirectOptions{Wavelength: 1, KellerSamples: 7, Window: &scene.Window{Offset: 3}}},
		"window at the end": {some, scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 7, Window: &scene.Window{Offset: 7, Count: -1}}},
	} {
		a := r.accumulateDfr(c.states, gridOne, c.o)
		require.Equal(t, accumulated{power: []float32{0}, words: make([]int64, 6)}, a, name)
	}
}

// TestAccumDfrDirectLarge fills a grid that is read by a launch of its own, lane by lane as
// in the oracle, also by launches of few lanes, into the memory of an earlier result and
// on another stream.
func TestAccumDfrDirectLarge(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 4))
	mesh := randomSoup(rng, 20, .2)
	r := build(t, mesh)
	g := scene.Grid{Axis: scene.AxisY, Position: .4, Min0: -1, Max0: 2, Min1: -1, Max1: 2, Res0: 90, Res1: 50}
	all := []wedge{randomWedge(rng, 1)}
	states := r.states(all...)
	o := scene.DfrDirectOptions{Wavelength: .2, DirectSamples: 4500, Seed: 9}
	want := oracle.NewCanonical(mesh.Vertices, mesh.Faces).AccumDfr(dfrOracle(all, g, o), 0, 4500)
	have := r.accumulateDfr(states, g, o)
	requireSums(t, false, want, have)

	st, err := r.Context().NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	r.ForceRowsPerLaunch(1000)
	o.KeepWords = true
	var a *scene.DfrAccum
	for _, res := range []int32{60, 90, 90} {
		g.Res0 = res
		a, err = r.AccumDfrDirect(background, states, g, o, scene.Into(a), scene.OnStream(st))
		require.NoError(t, err)
	}
	require.Equal(t, have, r.fetch(a))
	require.Equal(t, 4500, a.Rows())
	require.NoError(t, a.Close())

	// Few samples, for some of the cells only.
	o.DirectSamples, o.AllowPartialCoverage = 123, true
	part := oracle.NewCanonical(mesh.Vertices, mesh.Faces).AccumDfr(dfrOracle(all, g, o), 0, 123)
	requireSums(t, false, part, r.accumulateDfr(states, g, o))
}

// TestAccumDfrDirectBackends gives the same bits with both backends, also when a mesh has
// moved.
func TestAccumDfrDirectBackends(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	mesh := dynamic(randomSoup(rng, 60, .3))
	other := moved(mesh, vec{.3, -.2, .1})
	all := []wedge{randomWedge(rng, 1), randomWedge(rng, 1)}
	g := scene.Grid{Position: .5, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 2, Res1: 2}
	o := scene.DfrDirectOptions{Wavelength: .2, DirectSamples: 600, Seed: 9}
	call := dfrOracle(all, g, o)
	before := oracle.NewCanonical(mesh.Vertices, mesh.Faces).AccumDfr(call, 0, 600)
	after := oracle.NewCanonical(other.Vertices, mesh.Faces).AccumDfr(call, 0, 600)
	require.NotEqual(t, before, after)
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(mesh)
		states := r.states(all...)
		requireSums(t, false, before, r.accumulateDfr(states, g, o))
		for _, c := range []struct {
			vertices []float32
			want     oracle.DfrSums
		}{{other.Vertices, after}, {mesh.Vertices, before}} {
			require.NoError(t, r.UpdateMeshVertices(0, c.vertices))
			require.NoError(t, r.Sync(background))
			requireSums(t, false, c.want, r.accumulateDfr(states, g, o))
		}
	})
}

// TestAccumDfrDirectFullSize adds windows cut at odd lanes of a call of 67 million samples
// on a GPU, with every shape of a launch.
func TestAccumDfrDirectFullSize(t *testing.T) {
	n := int64(1 << 26)
	if !gputest.Native() {
		n = 1 << 13
	}
	r := build(t, benchTriangle)
	states := r.states(benchStates...)
	for _, res := range []int32{4, 16} {
		for _, o := range []scene.DfrDirectOptions{{Wavelength: 1, DirectSamples: n, Seed: 17}, {Wavelength: 1, KellerSamples: n, Seed: 17}} {
			g := benchGrid(res)
			if o.KellerSamples > 0 {
				g.Position = -1
			}
			all := r.accumulateDfr(states, g, o)
			require.Equal(t, n, all.counts.Direct+all.counts.Keller+all.counts.VisRejects+all.counts.UTDRejects)
			if o.DirectSamples > 0 {
				require.Equal(t, scene.DfrCounts{Direct: n, EdgeUses: n}, all.counts)
			}
			a, b := n/3+1, n/3*2-5
			parts := []scene.Window{{Offset: b, Count: -1}, {Count: 1}, {Offset: a, Count: b - a}, {Offset: 1, Count: a - 1}}
			require.Equal(t, all, r.merged(states, g, o, parts...))
		}
	}
}

// What is refused, before any driver call, and which argument the error names.
func TestAccumDfrDirectArguments(t *testing.T) {
	r, calls := traced(t, farTriangle)
	states, closed := r.states(stateA, stateA), r.states(stateA)
	require.NoError(t, closed.Close())
	three := toDevice(r, []uint8{1, 1, 1})
	for name, c := range map[string]struct {
		arg   string
		spoil func(*scene.Grid, *scene.DfrDirectOptions) *scene.StateTable
	}{
		"no table":         {"states", func(*scene.Grid, *scene.DfrDirectOptions) *scene.StateTable { return nil }},
		"closed table":     {"states", func(*scene.Grid, *scene.DfrDirectOptions) *scene.StateTable { return closed }},
		"axis":             {"Grid.Axis", with(states, func(g *scene.Grid, _ *scene.DfrDirectOptions) { g.Axis = 3 })},
		"position":         {"Grid.Position", with(states, func(g *scene.Grid, _ *scene.DfrDirectOptions) { g.Position = nan })},
		"extent":           {"Grid.Min0, Max0", with(states, func(g *scene.Grid, _ *scene.DfrDirectOptions) { g.Max0 = g.Min0 })},
		"infinite extent":  {"Grid.Min1, Max1", with(states, func(g *scene.Grid, _ *scene.DfrDirectOptions) { g.Max1 = inf })},
		"extent overflows": {"Grid.Min1, Max1", with(states, func(g *scene.Grid, _ *scene.DfrDirectOptions) { g.Min1, g.Max1 = -3e38, 3e38 })},
		"no cells":         {"Grid.Res0, Res1", with(states, func(g *scene.Grid, _ *scene.DfrDirectOptions) { g.Res1 = 0 })},
		"too many cells":   {"Grid.Res0, Res1", with(states, func(g *scene.Grid, _ *scene.DfrDirectOptions) { g.Res0, g.Res1 = 1<<16, 1<<15 })},
		"wavelength":       {"Wavelength", with(states, func(_ *scene.Grid, o *scene.DfrDirectOptions) { o.Wavelength = math.NaN() })},
		"no wavelength":    {"Wavelength", with(states, func(_ *scene.Grid, o *scene.DfrDirectOptions) { o.Wavelength = 0 })},
		"negative samples": {"DirectSamples", with(states, func(_ *scene.Grid, o *scene.DfrDirectOptions) { o.DirectSamples = -1 })},
		"too many samples": {"KellerSamples", with(states, func(_ *scene.Grid, o *scene.DfrDirectOptions) { o.DirectSamples, o.KellerSamples = 0, 1<<31 })},
		"both":             {"DirectSamples, KellerSamples", with(states, func(_ *scene.Grid, o *scene.DfrDirectOptions) { o.KellerSamples = 4 })},
		"coverage":         {"DirectSamples", with(states, func(_ *scene.Grid, o *scene.DfrDirectOptions) { o.DirectSamples = 1 })},
		"active":           {"Active", with(states, func(_ *scene.Grid, o *scene.DfrDirectOptions) { o.Active = three })},
		"window": {"Window.Offset", with(states, func(_ *scene.Grid, o *scene.DfrDirectOptions) {
			o.Window = &scene.Window{Offset: 33, Count: -1}
		})},
	} {
		g, o := gridOne, scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 32}
		table := c.spoil(&g, &o)
		calls.Reset()
		_, err := r.AccumDfrDirect(background, table, g, o)
		var arg *scene.ArgumentError
		require.ErrorAs(t, err, &arg, name)
		require.Equal(t, [2]string{"AccumDfrDirect", c.arg}, [2]string{arg.Op, arg.Arg}, name)
		require.Empty(t, calls.Counts(), name)
	}
}

func with(states *scene.StateTable, spoil func(*scene.Grid, *scene.DfrDirectOptions)) func(*scene.Grid, *scene.DfrDirectOptions) *scene.StateTable {
	return func(g *scene.Grid, o *scene.DfrDirectOptions) *scene.StateTable {
		spoil(g, o)
		return states
	}
}

func TestUploadStatesArguments(t *testing.T) {
	r := build(t, farTriangle)
	for name, spoil := range map[string]func(*scene.DfrStates){
		"states.Src": func(d *scene.DfrStates) { d.Src = d.Src[:2] },
		"states.N1":  func(d *scene.DfrStates) { d.N1 = nil },
		"states.TMin": func(d *scene.DfrStates) {
			d.Count = 2
			d.EdgeIndex = make([]int32, 5)
			d.EdgePos = make([]float32, 6)
			d.EdgeDir = make([]float32, 6)
		},
		"states.Count":    func(d *scene.DfrStates) { d.Count = -1 },
		"states.SrcPower": func(d *scene.DfrStates) { d.SrcPower = nil },
	} {
		d := wedgeStates(stateA)
		spoil(&d)
		_, err := r.UploadStates(background, d)
		var arg *scene.ArgumentError
		require.ErrorAs(t, err, &arg, name)
		require.Equal(t, name, arg.Arg)
	}
	// Columns may be longer than Count.
	d := wedgeStates(stateA, stateA)
	d.Count = 1
	table, err := r.UploadStates(background, d)
	require.NoError(t, err)
	require.Equal(t, 1, table.Count())
	require.NoError(t, table.Close())
	require.NoError(t, table.Close())
}

func TestDfrAccumMerge(t *testing.T) {
	r := build(t, farTriangle)
	states := r.states(stateA)
	o := scene.DfrDirectOptions{Wavelength: .125, DirectSamples: 64, KeepWords: true}
	call := func(o scene.DfrDirectOptions) *scene.DfrAccum {
		a, err := r.AccumDfrDirect(background, states, gridOne, o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, a.Close()) })
		return a
	}
	a := call(o)
	seed, lanes, wave, bare := o, o, o, o
	seed.Seed, lanes.DirectSamples, wave.Wavelength, bare.KeepWords = 1, 65, .25, false
	without := call(bare)
	elsewhere := gridOne
	elsewhere.Position = -2
	other, err := r.AccumDfrDirect(background, states, elsewhere, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	require.True(t, without.Words.IsNil())
	for name, other := range map[string]*scene.DfrAccum{
		"nothing": nil, "itself": a, "another seed": call(seed), "other totals": call(lanes), "without words": without,
		"another wavelength": call(wave), "another grid": other,
	} {
		var arg *scene.ArgumentError
		require.ErrorAs(t, a.Merge(other), &arg, name)
		require.Equal(t, "other", arg.Arg, name)
	}
	require.Error(t, without.Merge(a))
	require.Error(t, without.Read())
}

// TestAccumDfrDirectFailures fails every driver call of a call that uses copies of the
// grid.
func TestAccumDfrDirectFailures(t *testing.T) {
	requireFailingCallsToBeNoticed(t, farTriangle, func(r *rig) func(scene.CallOption) (scene.Reusable, error) {
		states, off := r.states(stateA), toDevice(r, []uint8{0}) // the time of lanes is not the point
		return func(o scene.CallOption) (scene.Reusable, error) {
			return r.AccumDfrDirect(background, states, gridOne, scene.DfrDirectOptions{Wavelength: 1, KellerSamples: 2048, Active: off}, o)
		}
	})
}
