package scene_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
)

// crowd is triangles around the origin: scattered, of all magnitudes so that their tree is deep,
// or thin in one plane.
func crowd(rng *rand.Rand, kind string, n int) (m scene.Mesh) {
	for i := range n {
		scale, size := float32(1), float32(.1)
		if kind == "deep" {
			scale = float32(math.Exp2(-60 * float64(i) / float64(n)))
			size = scale / 2
		}
		for corner := range 3 {
			if corner == 0 {
				m.Vertices = append(m.Vertices, scale*(2*rng.Float32()-1), scale*(2*rng.Float32()-1), scale*(2*rng.Float32()-1))
			} else {
				first := m.Vertices[9*i : 9*i+3]
				m.Vertices = append(m.Vertices, first[0]+size*(2*rng.Float32()-1), first[1]+size*(2*rng.Float32()-1), first[2]+size*(2*rng.Float32()-1))
			}
			if kind == "flat" {
				m.Vertices[len(m.Vertices)-1] = 0
			}
			m.Faces = append(m.Faces, int32(3*i+corner))
		}
	}
	return m
}

// However many nodes warps look at, one list for each half of them, they find
// what may block their lanes, or leave it to the tree: the bits are those without looking.
func TestAccumDfrDirectFansOfCrowds(t *testing.T) {
	rng := rand.New(rand.NewPCG(81, 82))
	for _, kind := range []string{"scattered", "deep", "flat"} {
		for _, n := range []int{12, 300, 1500} {
			r := build(t, crowd(rng, kind, n))
			states := r.states(randomWedge(rng, 1), randomWedge(rng, .1))
			g := scene.Grid{Axis: scene.AxisY, Position: .2, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 3, Res1: 2}
			const lanes = 12 * 64
			for _, o := range []scene.DfrDirectOptions{
				{Wavelength: 1, DirectSamples: lanes, Seed: 5}, {Wavelength: 1, KellerSamples: lanes, Seed: 5},
			} {
				r.ForceResident(t, 1<<20) // a few lanes for each thread, which look at nothing
				want := r.accumulateDfr(states, g, o)
				for _, nodes := range []int64{0, 3, 20, 1 << 20} {
					r.ForceResident(t, 6)
					r.ForceFanNodes(t, nodes)
					require.Equal(t, want, r.accumulateDfr(states, g, o), "%s, %d triangles, %d nodes", kind, n, nodes)
				}
			}
		}
	}
}
