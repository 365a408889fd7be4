package scene_test

import (
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

// randomWedge is any edge near the points of a scene.
func randomWedge(rng *rand.Rand, size float32) wedge {
	unit := func() vec {
		v := randomPoint(rng, 1)
		n := float32(math.Sqrt(float64(v[0]*v[0] + v[1]*v[1] + v[2]*v[2])))
		return vec{v[0] / n, v[1] / n, v[2] / n}
	}
	from := size * (rng.Float32() - .5)
	return wedge{
		pos: randomPoint(rng, size), dir: randomPoint(rng, 2), n0: unit(), n1: unit(), src: randomPoint(rng, size),
		tMin: from, tMax: from + size*rng.Float32(), theta: 7 * rng.Float32(), power: rng.Float32() * 10,
		prim0: -1, prim1: -1,
	}
}

// lanesOfTests is the lanes of calls that are compared with the oracle.
func lanesOfTests() int64 {
	if gputest.Native() {
		return 20000
	}
	return 1500
}

// TestAccumDfrDirectExact compares words and counters with the oracle, which tests every
// lane against every triangle: with few blocks, whose warps collect the triangles near
// their pair, with many, whose threads walk the tree, and by azimuth.
func TestAccumDfrDirectExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 3))
	for name, c := range map[string]struct {
		mesh  scene.Mesh
		size  float32
		cells int32
	}{
		"soup":       {randomSoup(rng, 60, .3), 1, 2},
		"dense soup": {randomSoup(rng, 400, .2), 1, 1},
		"far away":   {moved(randomSoup(rng, 30, .5), vec{300, -200, 100}), 1, 2},
		"lattice":    {lattice(rng, 5, .2), 1, 3},
		"one":        {benchTriangle, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := build(t, c.mesh)
			o := oracle.NewCanonical(c.mesh.Vertices, c.mesh.Faces)
			centre := vec(c.mesh.Vertices[:3])
			for range 4 {
				all := []wedge{randomWedge(rng, c.size), randomWedge(rng, c.size), randomWedge(rng, c.size)}
				for i := range all {
					for k := range 3 {
						all[i].pos[k] += centre[k]
						all[i].src[k] += centre[k]
					}
					if i == 0 { // in the plane of a triangle
						all[i].pos = vec(c.mesh.Vertices[3*rng.IntN(len(c.mesh.Vertices)/3):])
					}
				}
				axis := scene.Axis(rng.IntN(3))
				k := axis.Number()
				a, b := (k+1)%3, (k+2)%3
				if a > b {
					a, b = b, a
				}
				g := scene.Grid{
					Axis: axis, Position: centre[k] + c.size*(rng.Float32()-.5), Res0: c.cells, Res1: 2,
					Min0: centre[a] - c.size, Max0: centre[a] + c.size/3, Min1: centre[b] - c.size/2, Max1: centre[b] + c.size,
				}
				states := r.states(all...)
				options := scene.DfrDirectOptions{Wavelength: .3, DirectSamples: lanesOfTests(), Seed: rng.Uint32()}
				want := o.AccumDfr(dfrOracle(all, g, options), 0, options.DirectSamples)
				require.Positive(t, want.Accepted+want.VisRejects)
				keller := options
				keller.DirectSamples, keller.KellerSamples = 0, options.DirectSamples
				wantKeller := o.AccumDfr(dfrOracle(all, g, keller), 0, keller.KellerSamples)
				pairs := int64(len(all)) * g.Cells()
				// Two warps for every pair, one, and a thread for few lanes.
				for _, blocks := range []int64{pairs/2 + 1, pairs/4 + 1, 1 << 20, 1} {
					r.ForceResident(t, blocks)
					requireSums(t, false, want, r.accumulateDfr(states, g, options))
					requireSums(t, true, wantKeller, r.accumulateDfr(states, g, keller))
				}
				r.ForceResident(t, 1)
				r.ForceMoreWarps(t, 1)
				requireSums(t, false, want, r.accumulateDfr(states, g, options))
			}
		})
	}
}

// TestAccumDfrDirectChunks adds the lanes of a call to one accumulator in several launches,
// whose warps take chunks in turn. The counters of chunks are zero again after each.
func TestAccumDfrDirectChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 17))
	r := build(t, randomSoup(rng, 20, .3))
	states := r.states(randomWedge(rng, 1), randomWedge(rng, 1))
	g := scene.Grid{Position: .1, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 2, Res1: 1}
	n := 4 * lanesOfTests()
	for pairs, o := range map[int]scene.DfrDirectOptions{
		4: {Wavelength: 1, DirectSamples: n, Seed: 5}, 2: {Wavelength: 1, KellerSamples: n, Seed: 5},
	} {
		r.ForceResident(t, 1)
		want := r.accumulateDfr(states, g, o) // a warp for every pair, or two
		require.Positive(t, want.counts.EdgeUses)
		o.KeepWords = true
		sc := r.inside()
		for _, blocks := range []int64{2, 3, 7} {
			r.ForceResident(t, blocks)
			a, c, err := r.PrepareAccumDfrDirect(background, states, g, o)
			require.NoError(t, err)
			in, out := c.Columns()
			poison(r, c.Accumulator())
			require.NoError(t, c.Zero(r.Scene, r.Stream(), c.Accumulator()))
			for _, part := range cuts(rng, n, 4) {
				require.NoError(t, c.Accumulate(sc, r.Scene, r.Stream(), in, out, c.Accumulator(), part[0], part[1]))
				taken := toHost(r, c.Accumulator())[8*(6*g.Cells()+5):]
				require.Equal(t, make([]uint8, 4*pairs), taken, "of %d pairs", pairs)
			}
			require.NoError(t, c.Collect(sc, []cuda.Slice[uint8]{c.Accumulator()}))
			require.Equal(t, want, r.fetch(a))
			require.NoError(t, a.Close())
		}
		require.NoError(t, sc.Exit())
	}
}

// TestAccumDfrDirectCuts divides calls at random lanes, in any order, and merges the
// parts: always the same bits.
func TestAccumDfrDirectCuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 17))
	mesh := randomSoup(rng, 20, .3)
	r := build(t, mesh)
	states := r.states(randomWedge(rng, 1), randomWedge(rng, 1))
	g := scene.Grid{Position: .1, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 3, Res1: 1}
	cuts := 1000
	for _, o := range []scene.DfrDirectOptions{
		{Wavelength: 1, DirectSamples: 101, Seed: 5}, {Wavelength: 1, KellerSamples: 97, Seed: 5},
	} {
		n := o.DirectSamples + o.KellerSamples
		want := r.accumulateDfr(states, g, o)
		for done := 0; done < cuts/2; {
			at := []int64{0, n}
			for range 1 + rng.IntN(40) {
				at = append(at, rng.Int64N(n+1))
				done++
			}
			slices.Sort(at)
			var parts []scene.Window
			for i := range at[1:] {
				parts = append(parts, scene.Window{Offset: at[i], Count: at[i+1] - at[i]})
			}
			rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			r.ForceResident(t, 1+rng.Int64N(3))
			require.Equal(t, want, r.merged(states, g, o, parts...))
		}
	}
}
