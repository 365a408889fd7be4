package scene_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// Keller rays of states that are no edges, or that lead nowhere, are counted lane by lane as
// direct samples are.
func TestAccumDfrDirectKellerRejects(t *testing.T) {
	r := build(t, farTriangle)
	big := float32(3e38)
	for name, c := range map[string]struct {
		spoil func(*wedge, *scene.Grid)
		good  bool // the other state still meets the grid
	}{
		"no direction":              {func(w *wedge, _ *scene.Grid) { w.dir = vec{} }, true},
		"no length":                 {func(w *wedge, _ *scene.Grid) { w.tMax = w.tMin }, true},
		"no power":                  {func(w *wedge, _ *scene.Grid) { w.power = 0 }, true},
		"source not a number":       {func(w *wedge, _ *scene.Grid) { w.src[2] = nan }, true},
		"position out of range":     {func(w *wedge, _ *scene.Grid) { w.pos[0] = inf }, true},
		"angle not a number":        {func(w *wedge, _ *scene.Grid) { w.theta = nan }, true},
		"length out of range":       {func(w *wedge, _ *scene.Grid) { w.tMin, w.tMax = -big, big }, true},
		"source on the edge's line": {func(w *wedge, _ *scene.Grid) { w.src = vec{-3, 0, 0} }, true},
		"source on the edge":        {func(w *wedge, _ *scene.Grid) { w.src = vec{.1, 0, 0} }, true},
		// All rays run within the plane across the edge.
		"grid along the rays": {func(w *wedge, g *scene.Grid) {
			w.src, w.tMin, w.tMax = vec{0, 0, 1}, -1e-9, 1e-9
			g.Axis, g.Position = scene.AxisX, 2
		}, false},
		"grid through the edge": {func(_ *wedge, g *scene.Grid) { g.Position = 0 }, false},
		"grid elsewhere":        {func(_ *wedge, g *scene.Grid) { g.Min0, g.Max0 = 1e6, 1e6+2 }, false},
	} {
		w, g := stateA, gridOne
		c.spoil(&w, &g)
		table := r.states(w, stateA)
		if !c.good {
			table = r.states(w)
		}
		a := r.accumulateDfr(table, g, scene.DfrDirectOptions{Wavelength: .125, KellerSamples: 400, Seed: 1})
		if !c.good {
			require.Equal(t, scene.DfrCounts{UTDRejects: 400}, a.counts, name)
			require.Equal(t, []float32{0}, a.power, name)
			continue
		}
		// What is left are the lanes of the second state.
		alone := r.accumulateDfr(table, g, scene.DfrDirectOptions{
			Wavelength: .125, KellerSamples: 400, Seed: 1, Active: toDevice(r, []uint8{0, 1}),
		})
		require.Equal(t, alone.words, a.words, name)
		want := alone.counts
		want.UTDRejects, want.InactiveLanes = want.UTDRejects+want.InactiveLanes, 0
		require.Equal(t, want, a.counts, name)
		require.Positive(t, a.counts.Keller, name)
	}
}

// A contribution that exact sums have no place for is rejected, and the next smaller one is not.
func TestAccumDfrDirectTooLarge(t *testing.T) {
	r := build(t, farTriangle)
	const limit = 1 << 55
	o := scene.DfrDirectOptions{Wavelength: .125, DirectSamples: 64, Seed: 17}
	unit := r.accumulateDfr(r.states(stateA), gridOne, scene.DfrDirectOptions{
		Wavelength: .125, DirectSamples: 64, Seed: 17, Window: &scene.Window{Count: 1},
	}).power[0]
	o.Window = &scene.Window{Count: 1}
	for _, c := range []struct {
		share    float32 // of the limit
		accepted int64
	}{{.99, 1}, {1.01, 0}} {
		w := stateA
		w.power = stateA.power * (c.share * limit / unit)
		a := r.accumulateDfr(r.states(w), gridOne, o)
		require.Equal(t, scene.DfrCounts{Direct: c.accepted, EdgeUses: c.accepted, UTDRejects: 1 - c.accepted}, a.counts, "%g", c.share)
		require.InDelta(t, float64(c.accepted)*float64(c.share)*limit, a.power[0], 1e-5*limit)
	}
}

// Source and occluders are asked in the order of the counters: a lane counts for the first reason.
func TestAccumDfrDirectOrderOfReasons(t *testing.T) {
	blocked := build(t, farTriangle, rectangle(.5, -2, 2, -2, 2)) // between source and edge
	noPower := stateA
	noPower.power = 0
	for name, c := range map[string]struct {
		w      wedge
		active uint8
		want   scene.DfrCounts
	}{
		"inactive before hidden":             {stateA, 0, scene.DfrCounts{InactiveLanes: 64}},
		"hidden before without contribution": {noPower, 1, scene.DfrCounts{VisRejects: 64}},
	} {
		for _, o := range []scene.DfrDirectOptions{{DirectSamples: 64}, {KellerSamples: 64}} {
			o.Wavelength, o.Active = .125, toDevice(blocked, []uint8{c.active})
			require.Equal(t, c.want, blocked.accumulateDfr(blocked.states(c.w), gridOne, o).counts, name)
		}
	}
	// Of Keller rays whose target would be hidden, those that miss the grid have no target.
	under := build(t, farTriangle, rectangle(-.5, -90, 90, -90, 90)) // between edge and grid
	a := under.accumulateDfr(under.states(stateA), gridOne, scene.DfrDirectOptions{Wavelength: .125, KellerSamples: 64, Seed: 17})
	require.Equal(t, scene.DfrCounts{VisRejects: 14, UTDRejects: 50}, a.counts)
}

// Arrays and tables of another device are refused by all operations on grids and paths, with the
// name of the argument.
func TestRadioWrongDevice(t *testing.T) {
	gputest.Need(t, 2)
	both := gputest.Open(t, 2, nil)
	var rigs [2]*rig
	for i := range rigs {
		rigs[i] = openOn(t, both.Context(t, i))
		rigs[i].add(wedgeBoxMesh())
		require.NoError(t, rigs[i].Build(background))
	}
	here, there := rigs[0], rigs[1]
	d := here.wedgeBox()
	foreign := there.wedgeBox()
	one, three := toDevice(there, []uint8{1}), toDevice(there, []float32{1, 2, 3})
	point, rays := toDevice(here, []float32{-1, 1, 0}), here.upload(ray(vec{-1, 1, 0}, vec{0, 0, -1}))
	grid := scene.Grid{Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 1, Res1: 1}
	direct := func(o scene.DfrDirectOptions) error {
		o.Wavelength, o.DirectSamples = 1, 1
		a, err := here.AccumDfrDirect(background, d.states, grid, o)
		return errors.Join(err, a.Close())
	}
	coherent := func(o scene.DfrCoherentOptions) error {
		o.Wavelength = 1
		_, err := here.AccumDfrCoherentDirect(background, d.states, grid, o)
		return err
	}
	paths := func(tx, rx cuda.Slice[float32], o scene.DfrPathOptions) error {
		o.Wavelength = 1
		if o.Active.IsNil() {
			o.Active = toDevice(here, []uint8{1})
		}
		_, err := here.TraceDfrPaths(background, tx, rx, d.states, o)
		return err
	}
	reflections := func(o scene.ReflGridOptions) error {
		o.Wavelength, o.SolidAnglePerRay, o.Materials, o.TxPosition = 1, 1, d.materials, point
		_, err := here.AccumulateReflections(background, rays, grid, o)
		return err
	}
	for _, c := range []struct {
		arg string
		err error
	}{
		{"Active", direct(scene.DfrDirectOptions{Active: one})},
		{"Active", coherent(scene.DfrCoherentOptions{Active: one})},
		{"tx", paths(three, point, scene.DfrPathOptions{})},
		{"rx", paths(point, three, scene.DfrPathOptions{})},
		{"Active", paths(point, point, scene.DfrPathOptions{Active: one})},
		{"TxPower", paths(point, point, scene.DfrPathOptions{TxPower: mustSub(t, three, 0, 1)})},
		{"TxPolarization", paths(point, point, scene.DfrPathOptions{TxPolarization: three})},
		{"TxPolarization", reflections(scene.ReflGridOptions{TxPolarization: three})},
	} {
		var wrong *cuda.WrongDeviceError
		require.ErrorAs(t, c.err, &wrong, c.arg)
		require.Equal(t, cuda.WrongDeviceError{
			Arg: c.arg, Want: here.Context().Device().Ordinal(), Have: there.Context().Device().Ordinal(),
		}, *wrong)
	}
	requireArgument(t, direct(scene.DfrDirectOptions{Materials: foreign.materials}), "AccumDfrDirect", "Materials")
	requireArgument(t, coherent(scene.DfrCoherentOptions{Materials: foreign.materials}), "AccumDfrCoherentDirect", "Materials")
	requireArgument(t, paths(point, point, scene.DfrPathOptions{Materials: foreign.materials}), "TraceDfrPaths", "Materials")
	_, err := here.AccumDfrDirect(background, foreign.states, grid, scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 1})
	requireArgument(t, err, "AccumDfrDirect", "States")
	require.NoError(t, direct(scene.DfrDirectOptions{}), "the scene stays usable")
}

// A call of nothing is a few fills, without a launch.
func TestRadioOfNothingLaunchesNothing(t *testing.T) {
	r, calls := traced(t, wedgeBoxMesh())
	d := r.wedgeBox()
	none := r.dfrScene(scene.DfrStates{}, d.media, d.lambda)
	grid := scene.Grid{Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 3, Res1: 2}
	tx := toDevice(r, []float32{-1, 1, 0})
	end := &scene.Window{Offset: 6, Count: -1}
	for name, ask := range map[string]func(words bool, into scene.Reusable) (scene.Reusable, error){
		"direct, no states": func(words bool, into scene.Reusable) (scene.Reusable, error) {
			o := scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 9, KeepWords: words}
			return r.AccumDfrDirect(background, none.states, grid, o, scene.Into(into))
		},
		"direct, no samples": func(words bool, into scene.Reusable) (scene.Reusable, error) {
			return r.AccumDfrDirect(background, d.states, grid, scene.DfrDirectOptions{Wavelength: 1, KeepWords: words}, scene.Into(into))
		},
		"keller, empty window": func(words bool, into scene.Reusable) (scene.Reusable, error) {
			o := scene.DfrDirectOptions{Wavelength: 1, KellerSamples: 9, KeepWords: words, Window: &scene.Window{Offset: 3}}
			return r.AccumDfrDirect(background, d.states, grid, o, scene.Into(into))
		},
		"coherent, no states": func(words bool, into scene.Reusable) (scene.Reusable, error) {
			return r.AccumDfrCoherentDirect(background, none.states, grid, scene.DfrCoherentOptions{Wavelength: 1, KeepWords: words}, scene.Into(into))
		},
		"coherent, window at the end": func(words bool, into scene.Reusable) (scene.Reusable, error) {
			o := scene.DfrCoherentOptions{Wavelength: 1, KeepWords: words, Window: end}
			return r.AccumDfrCoherentDirect(background, d.states, grid, o, scene.Into(into))
		},
		"reflections, no rays": func(words bool, into scene.Reusable) (scene.Reusable, error) {
			o := scene.ReflGridOptions{
				Wavelength: 1, SolidAnglePerRay: 1, MaxBounces: 2, Materials: d.materials, TxPosition: tx, KeepWords: words,
				CollectWedges: true, WedgeCapacity: 3,
			}
			return r.AccumulateReflections(background, scene.Rays{}, grid, o, scene.Into(into))
		},
	} {
		for _, words := range []bool{false, true} {
			first, err := ask(words, nil)
			require.NoError(t, err, name)
			calls.Reset()
			_, err = ask(words, first)
			require.NoError(t, err, name)
			require.Zero(t, calls.Count("LaunchKernel"), "%s, words: %v", name, words)
			require.NoError(t, first.Close())
		}
	}
}
