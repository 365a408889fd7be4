package scene_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// spoil makes a number one of another size, zero or no number, most of the time.
func spoil(rng *rand.Rand, v *float32) {
	switch size := float32(math.Pow(10, 14*rng.Float64()-10)); rng.IntN(6) {
	case 0:
		*v = size
	case 1:
		*v = -size
	case 2:
		*v = 0
	case 3:
		*v = []float32{nan, inf, -inf}[rng.IntN(3)]
	}
}

// States of any numbers give the sums and counters of the oracle, for numbers of lanes around
// those of warps.
func TestAccumDfrDirectOddStates(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 7))
	mesh := randomSoup(rng, 20, .3)
	r := build(t, mesh)
	model := oracle.NewCanonical(mesh.Vertices, mesh.Faces)
	var met oracle.DfrSums
	for i := range 200 {
		w := randomWedge(rng, 1)
		numbers := []*float32{&w.tMin, &w.tMax, &w.theta, &w.power}
		for _, v := range []*vec{&w.pos, &w.dir, &w.src, &w.n0} {
			numbers = append(numbers, &v[0], &v[1], &v[2])
		}
		for range 1 + rng.IntN(3) {
			spoil(rng, numbers[rng.IntN(len(numbers))])
		}
		g := scene.Grid{
			Axis: scene.Axis(rng.IntN(3)), Position: rng.Float32(), Min0: -rng.Float32(), Max0: 1, Min1: -1, Max1: rng.Float32(),
			Res0: 1 + rng.Int32N(3), Res1: 1 + rng.Int32N(2),
		}
		n := []int64{1, 31, 32, 33, 100}[rng.IntN(5)]
		o := scene.DfrDirectOptions{Wavelength: .3, DirectSamples: n, Seed: rng.Uint32(), AllowPartialCoverage: true}
		if i%2 == 0 {
			o.DirectSamples, o.KellerSamples = 0, n
		}
		want := model.AccumDfr(dfrOracle([]wedge{w}, g, o), 0, n)
		requireSums(t, o.KellerSamples > 0, want, r.accumulateDfr(r.states(w), g, o))
		met.Accepted, met.VisRejects, met.UTDRejects = met.Accepted+want.Accepted, met.VisRejects+want.VisRejects, met.UTDRejects+want.UTDRejects
	}
	require.Greater(t, min(met.Accepted, met.VisRejects, met.UTDRejects), int64(500), "%+v", met)
}

// Of states, positions and polarizations of any numbers, paths tell the reason of the oracle.
func TestDfrPathsOddStates(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 8))
	met := map[scene.DfrPathStatus]int{}
	for seed := range uint64(4) {
		d := randomBoxes(t, rng, 2)
		host := d.host
		for _, column := range []*[]float32{&host.EdgePos, &host.EdgeDir, &host.N0, &host.TMin, &host.TMax, &host.ExteriorAngle} {
			*column = slices.Clone(*column)
			for range 3 {
				spoil(rng, &(*column)[rng.IntN(len(*column))])
			}
		}
		d = d.rig.dfrScene(host, d.media, d.lambda)
		b := randomPathBatch(rng, d, 4, 4)
		b.mode = scene.EdgeMode(seed & 1)
		for _, list := range [][]vec{b.tx, b.rx, b.polarization} {
			spoil(rng, &list[0][rng.IntN(3)])
		}
		edge := rng.IntN(d.states.Count()) // a transmitter on its line
		b.tx[3] = narrow(plus(wide(host.EdgePos, edge), along(wide(host.EdgeDir, edge), rng.Float64())))
		rows := d.paths(b)
		for i, have := range rows.status {
			status := scene.DfrPathStatus(have)
			s, tx, rx := i%len(b.active), i/len(b.active)/len(b.rx), i/len(b.active)%len(b.rx)
			met[status]++
			if status != scene.DfrValid {
				requireInert(t, rows, i)
			}
			if u := b.polarization[tx]; b.active[s] == 0 {
				require.Equal(t, scene.DfrInactive, status)
			} else if !(math.Abs(float64(u[0])+float64(u[1])+float64(u[2])) < math.Inf(1)) { // which the oracle does not ask
				require.Equal(t, scene.DfrNotFinite, status)
			} else if want := d.lane(s, b.tx[tx], b.rx[rx], b.polarization[tx], b.power[tx], b.mode, false); !want.ambiguous {
				require.Equal(t, want.status, status, "seed %d, row %d", seed, i)
			}
		}
	}
	require.Greater(t, min(met[scene.DfrValid], met[scene.DfrNotFinite], met[scene.DfrDegenerate]), 50, "%v", met)
}

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

// Nor have sums of fields a place for one so large, which a path has.
func TestCoherentTooLarge(t *testing.T) {
	d := wedgeBox(t)
	tx, rx := vec{-1.2, .8, -.1}, vec{1, 1.1, -.1}
	copy(d.host.Src, tx[:])
	grid := scene.Grid{Position: rx[2], Min0: .5, Max0: 1.5, Min1: .6, Max1: 1.6, Res0: 1, Res1: 1}
	for lambda, want := range map[float64][3]int32{1e4: {0, 0, 1}, 1e-3: {1, 0, 0}} {
		d.host.SrcPower[0] = 3e38
		d = d.rig.dfrScene(d.host, d.media, lambda)
		rows := d.paths(pathBatch{tx: []vec{tx}, rx: []vec{rx}, power: d.host.SrcPower, active: all(1)})
		require.Equal(t, []uint8{0}, rows.status)
		got := d.coherent(grid, scene.DfrCoherentOptions{Wavelength: lambda, Materials: d.materials})
		require.Equal(t, want, [3]int32{got.counts[0][0], got.counts[1][0], got.counts[2][0]}, "%g", lambda)
		for k, f := range got.field {
			require.Equal(t, want[0] > 0 && rows.field[k] != 0, f[0] != 0, "%g", lambda)
		}
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
	requireArgument(t, err, "AccumDfrDirect", "states")
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

// Words that a caller adds up, as processes with a window each do, are read like those of Merge.
func TestWordsAddedByTheCaller(t *testing.T) {
	d := wedgeBox(t)
	copy(d.host.Src, []float32{-1.2, .8, -.1})
	d.host = repeated(d.host, 3)
	d = d.rig.dfrScene(d.host, d.media, d.lambda)
	grid := scene.Grid{Position: -.1, Min0: .5, Max0: 1.5, Min1: .6, Max1: 1.6, Res0: 2, Res1: 1}
	o := scene.DfrDirectOptions{Wavelength: d.lambda, DirectSamples: 64, KeepWords: true}
	co := scene.DfrCoherentOptions{Wavelength: d.lambda, KeepWords: true}
	want, wantFields := d.accumulateDfr(d.states, grid, o), d.coherent(grid, co)
	require.Positive(t, want.power[0])
	require.NotZero(t, wantFields.counts[0][0])

	var sum *scene.DfrAccum
	var fields *scene.DfrCoherentAccum
	var words, fieldWords []int64
	add := func(to *[]int64, words []int64) {
		if *to == nil {
			*to = make([]int64, len(words))
		}
		for i, w := range words {
			(*to)[i] += w
		}
	}
	for _, w := range [][2]scene.Window{{{Count: 33}, {Count: 4}}, {{Offset: 33, Count: -1}, {Offset: 4, Count: -1}}} {
		require.NoError(t, errors.Join(sum.Close(), fields.Close()))
		o.Window, co.Window = &w[0], &w[1]
		var err error
		sum, err = d.AccumDfrDirect(background, d.states, grid, o)
		require.NoError(t, err)
		fields, err = d.AccumDfrCoherentDirect(background, d.states, grid, co)
		require.NoError(t, err)
		add(&words, toHost(d.rig, sum.Words))
		add(&fieldWords, toHost(d.rig, fields.Words))
	}
	require.NoError(t, cuda.CopyIn(background, d.Stream(), sum.Words, words))
	require.NoError(t, cuda.CopyIn(background, d.Stream(), fields.Words, fieldWords))
	require.NoError(t, errors.Join(sum.Read(), fields.Read()))
	require.Equal(t, bits(want.power), bits(toHost(d.rig, sum.Power)))
	for k, f := range coherentFields(fields) {
		require.Equal(t, bits(wantFields.field[k]), bits(toHost(d.rig, f)))
	}
	require.NoError(t, errors.Join(sum.Close(), fields.Close()))
}

// The memory of a closed result belongs to others: nothing is read from it or put into it.
func TestWordsOfClosedResults(t *testing.T) {
	d := wedgeBox(t)
	grid := scene.Grid{Max0: 1, Max1: 1, Res0: 1, Res1: 1}
	tx := toDevice(d.rig, []float32{1, 1, 0})
	rays := d.upload(ray(vec{1, 1, 0}, vec{0, 0, -1}))
	for name, ask := range map[string]func() (read func() error, merge func(other any) error, result any, end func() error){
		"DfrAccum": func() (func() error, func(any) error, any, func() error) {
			a, err := d.AccumDfrDirect(background, d.states, grid, scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 4, KeepWords: true})
			require.NoError(t, err)
			return a.Read, func(other any) error { return a.Merge(other.(*scene.DfrAccum)) }, a, a.Close
		},
		"DfrCoherentAccum": func() (func() error, func(any) error, any, func() error) {
			a, err := d.AccumDfrCoherentDirect(background, d.states, grid, scene.DfrCoherentOptions{Wavelength: 1, KeepWords: true})
			require.NoError(t, err)
			return a.Read, func(other any) error { return a.Merge(other.(*scene.DfrCoherentAccum)) }, a, a.Close
		},
		"ReflGrids": func() (func() error, func(any) error, any, func() error) {
			a, err := d.AccumulateReflections(background, rays, grid, scene.ReflGridOptions{
				Wavelength: 1, SolidAnglePerRay: 1, Materials: d.materials, TxPosition: tx, IncludeLOS: true, KeepWords: true,
			})
			require.NoError(t, err)
			return a.Read, func(other any) error { return a.Merge(other.(*scene.ReflGrids)) }, a, a.Close
		},
	} {
		read, merge, open, end := ask()
		readClosed, mergeClosed, closed, endClosed := ask()
		require.NoError(t, endClosed())
		requireArgument(t, readClosed(), "Read", name)
		requireArgument(t, mergeClosed(open), "Merge", name)
		requireArgument(t, merge(closed), "Merge", "other")
		require.NoError(t, read())
		require.NoError(t, end())
	}
}

// Lanes of the largest numbers draw what the definition says, in windows of any size.
func TestAccumDfrDirectFarLanes(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 9))
	mesh := randomSoup(rng, 20, .3)
	r := build(t, mesh)
	model := oracle.NewCanonical(mesh.Vertices, mesh.Faces)
	const most = math.MaxInt32
	g := scene.Grid{Position: .4, Min0: -1, Max0: 2, Min1: -1, Max1: 2, Res0: 3, Res1: 2}
	accepted := int64(0)
	for _, w := range [][2]int64{{1<<26 - 4, 8}, {most - 33, 33}, {most - 1, 1}, {1<<31 - 700, 650}, {1 << 24, 64}} {
		all := []wedge{randomWedge(rng, 1), randomWedge(rng, 1), randomWedge(rng, 1)}
		for _, o := range []scene.DfrDirectOptions{{DirectSamples: most}, {KellerSamples: most}} {
			o.Wavelength, o.Seed, o.Window = .3, rng.Uint32(), &scene.Window{Offset: w[0], Count: w[1]}
			want := model.AccumDfr(dfrOracle(all, g, o), w[0], w[1])
			requireSums(t, o.KellerSamples > 0, want, r.accumulateDfr(r.states(all...), g, o))
			accepted += want.Accepted
		}
	}
	require.Greater(t, accepted, int64(100))
}
