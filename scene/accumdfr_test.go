package scene_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/oracle"
)

// wedge is one state of a test.
type wedge struct {
	pos, dir, n0, n1, src vec
	tMin, tMax            float32
	theta, power          float32
	prim0, prim1          int32
}

// wedgeStates are states for a table.
func wedgeStates(all ...wedge) scene.DfrStates {
	var d scene.DfrStates
	for i, w := range all {
		d.EdgeIndex = append(d.EdgeIndex, int32(i))
		d.EdgePos, d.EdgeDir = append(d.EdgePos, w.pos[:]...), append(d.EdgeDir, w.dir[:]...)
		d.TMin, d.TMax = append(d.TMin, w.tMin), append(d.TMax, w.tMax)
		d.N0, d.N1 = append(d.N0, w.n0[:]...), append(d.N1, w.n1[:]...)
		d.Prim0, d.Prim1 = append(d.Prim0, w.prim0), append(d.Prim1, w.prim1)
		d.ExteriorAngle = append(d.ExteriorAngle, w.theta)
		d.Src, d.SrcPower = append(d.Src, w.src[:]...), append(d.SrcPower, w.power)
	}
	return d
}

func (r *rig) states(all ...wedge) *scene.StateTable {
	r.Helper()
	t, err := r.UploadStates(background, wedgeStates(all...))
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, t.Close()) })
	return t
}

// accumulated is a result on the host.
type accumulated struct {
	power  []float32
	words  []int64
	counts scene.DfrCounts
}

// accumulateDfr runs a call with KeepWords and fetches its result.
func (r *rig) accumulateDfr(states *scene.StateTable, g scene.Grid, o scene.DfrDirectOptions, opts ...scene.CallOption) accumulated {
	r.Helper()
	o.KeepWords = true
	a, err := r.AccumDfrDirect(background, states, g, o, opts...)
	require.NoError(r, err)
	defer func() { require.NoError(r, a.Close()) }()
	return r.fetch(a)
}

func (r *rig) fetch(a *scene.DfrAccum) accumulated {
	r.Helper()
	counts, err := a.ReadCounters(background)
	require.NoError(r, err)
	return accumulated{toHost(r, a.Power), toHost(r, a.Words), counts}
}

// The wedges, grids and scenes of the published values.
var (
	farTriangle = triangles(vec{0, 0, 10}, vec{1, 0, 10}, vec{0, 1, 10})
	stateA      = wedge{
		dir: vec{1, 0, 0}, n0: vec{0, 1, 0}, n1: vec{0, 0, 1}, src: vec{0, 0, 1},
		tMin: -.5, tMax: .5, theta: 1.5 * math.Pi, power: 2, prim0: -1, prim1: -1,
	}
	gridOne = scene.Grid{Position: -1, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 1, Res1: 1}
)

func rectangle(z, x0, x1, y0, y1 float32) scene.Mesh {
	return scene.Mesh{
		Vertices: []float32{x0, y0, z, x1, y0, z, x1, y1, z, x0, y1, z},
		Faces:    []int32{0, 1, 2, 0, 2, 3},
	}
}

const perSample = 2e-6

func TestAccumDfrDirectOneCell(t *testing.T) {
	r := build(t, farTriangle)
	states := r.states(stateA)
	for seed, want := range map[uint32]float64{17: 5.194485128e-04, 0: 5.106423930e-04, 1: 5.189265440e-04, 18: 4.971151090e-04} {
		a := r.accumulateDfr(states, gridOne, scene.DfrDirectOptions{Wavelength: .125, DirectSamples: 64, Seed: seed})
		require.InEpsilon(t, want, a.power[0], perSample, "seed %d", seed)
		require.Equal(t, scene.DfrCounts{Direct: 64, EdgeUses: 64}, a.counts)
	}
	for lane, want := range []float64{7.1172173e-06, 6.3580292e-06, 6.7446439e-06, 8.6992524e-06} {
		a := r.accumulateDfr(states, gridOne, scene.DfrDirectOptions{
			Wavelength: .125, DirectSamples: 64, Seed: 17, Window: &scene.Window{Offset: int64(lane), Count: 1},
		})
		require.InEpsilon(t, want, a.power[0], perSample, "lane %d", lane)
	}
}

var twoWedges = []wedge{
	{dir: vec{1, 0, 0}, n0: vec{0, 0, 1}, n1: vec{0, 0, -1}, src: vec{0, -1, .25}, tMin: -1, tMax: 1, theta: math.Pi, power: 1, prim0: -1, prim1: -1},
	{pos: vec{.2, 0, 0}, dir: vec{1, 0, 0}, n0: vec{0, 0, 1}, n1: vec{0, 0, -1}, src: vec{0, -1, .25}, tMin: -1, tMax: 1, theta: math.Pi, power: 1, prim0: -1, prim1: -1},
}

func TestAccumDfrDirectTwoStates(t *testing.T) {
	r := build(t, farTriangle)
	states := r.states(twoWedges...)
	g := scene.Grid{Position: .5, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 2, Res1: 2}
	o := scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 16, Seed: 17}
	all := r.accumulateDfr(states, g, o)
	for cell, want := range []float64{8.626471620e-03, 1.303280898e-02, 1.156443682e-02, 1.369815896e-02} {
		require.InEpsilon(t, want, all.power[cell], perSample, "cell %d", cell)
	}
	require.Equal(t, scene.DfrCounts{Direct: 16, EdgeUses: 16}, all.counts)
	for _, cut := range []int64{7, 1, 16, 0} {
		parts := []scene.Window{{Offset: 0, Count: cut}, {Offset: cut, Count: -1}}
		require.Equal(t, all, r.merged(states, g, o, parts...))
	}
	// Every lane is where the map says.
	for lane, cell := range []int{0, 0, 1, 1, 2, 2, 3, 3, 0} {
		one := o
		one.Window = &scene.Window{Offset: int64(lane), Count: 1}
		for c, p := range r.accumulateDfr(states, g, one).power {
			require.Equal(t, c == cell, p != 0, "lane %d, cell %d", lane, c)
		}
	}
}

// merged is the sum of windows of a call.
func (r *rig) merged(states *scene.StateTable, g scene.Grid, o scene.DfrDirectOptions, parts ...scene.Window) accumulated {
	r.Helper()
	o.KeepWords = true
	var sum *scene.DfrAccum
	for _, w := range parts {
		o.Window = &w
		a, err := r.AccumDfrDirect(background, states, g, o)
		require.NoError(r, err)
		if sum == nil {
			sum = a
			continue
		}
		require.NoError(r, sum.Merge(a))
		require.NoError(r, a.Close())
	}
	require.NoError(r, sum.Read())
	defer func() { require.NoError(r, sum.Close()) }()
	return r.fetch(sum)
}

func TestAccumDfrDirectKeller(t *testing.T) {
	r := build(t, farTriangle)
	states := r.states(stateA)
	a := r.accumulateDfr(states, gridOne, scene.DfrDirectOptions{Wavelength: .125, KellerSamples: 64, Seed: 17})
	require.InEpsilon(t, 3.664826508e-04, a.power[0], perSample)
	require.Equal(t, scene.DfrCounts{Keller: 14, UTDRejects: 50, EdgeUses: 14}, a.counts)

	a = r.accumulateDfr(states, gridOne, scene.DfrDirectOptions{Wavelength: .125, KellerSamples: 65536, Seed: 17})
	require.InEpsilon(t, 4.109025e-04, a.power[0], 2e-4)
	require.InDelta(t, 15582, a.counts.Keller, 3)
	require.Equal(t, a.counts.Keller, a.counts.EdgeUses)
	require.EqualValues(t, 65536, a.counts.Keller+a.counts.UTDRejects)
}

func TestAccumDfrDirectBlocked(t *testing.T) {
	for _, c := range []struct {
		name            string
		blocker         scene.Mesh
		accepted, hides int64
		power           float64
	}{
		{"half of the targets", rectangle(-.5, 0, 2, -2, 2), 38, 26, 3.117706064e-04},
		{"the source", rectangle(.5, -2, 2, -2, 2), 0, 64, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := build(t, farTriangle, c.blocker)
			a := r.accumulateDfr(r.states(stateA), gridOne, scene.DfrDirectOptions{Wavelength: .125, DirectSamples: 64, Seed: 17})
			require.Equal(t, scene.DfrCounts{Direct: c.accepted, EdgeUses: c.accepted, VisRejects: c.hides}, a.counts)
			require.InDelta(t, c.power, a.power[0], perSample*c.power)
		})
	}
}

// dfrOracle is the oracle's form of a call.
func dfrOracle(all []wedge, g scene.Grid, o scene.DfrDirectOptions) oracle.DfrCall {
	c := oracle.DfrCall{
		Grid: oracle.DfrGrid{
			Axis: g.Axis.Number(), Position: g.Position, Min0: g.Min0, Max0: g.Max0, Min1: g.Min1, Max1: g.Max1,
			Res0: int(g.Res0), Res1: int(g.Res1),
		},
		Wavelength: o.Wavelength, Direct: o.DirectSamples, Keller: o.KellerSamples, Seed: o.Seed,
	}
	for _, w := range all {
		c.States = append(c.States, oracle.DfrWedge{
			Pos: w.pos, Dir: w.dir, N0: w.n0, Src: w.src, TMin: w.tMin, TMax: w.tMax, Theta: w.theta, Power: w.power, Gain: 1,
		})
	}
	return c
}

// requireSums compares a result with the oracle's, bit by bit.
func requireSums(t testing.TB, keller bool, want oracle.DfrSums, have accumulated) {
	t.Helper()
	counts := scene.DfrCounts{
		VisRejects: want.VisRejects, UTDRejects: want.UTDRejects, EdgeUses: want.Accepted, InactiveLanes: want.Unused,
	}
	if keller {
		counts.Keller = want.Accepted
	} else {
		counts.Direct = want.Accepted
	}
	require.Equal(t, counts, have.counts)
	var words []int64
	var power []uint32
	for _, w := range want.Words {
		words = append(words, w[:]...)
		power = append(power, math.Float32bits(oracle.ReadWords(w)))
	}
	require.Equal(t, words, have.words)
	require.Equal(t, power, bits(have.power))
}
