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
				r.ForceResident(t, 1<<20)
				r.ForceFanNodes(t, 0) // and none for a lane or two of each thread
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

// The lists of triangles of the halves of a warp lie behind each other: a leg with as many as fit,
// or more, leaves those of the other leg alone.
func TestAccumDfrDirectFansThatAreFull(t *testing.T) {
	rng := rand.New(rand.NewPCG(83, 84))
	w := randomWedge(rng, 1)
	w.pos, w.dir, w.src, w.tMin, w.tMax = vec{0, 0, 0}, vec{1, 0, 0}, vec{0, -2, 0}, -1, 1
	g := scene.Grid{Axis: scene.AxisZ, Min0: -1, Max0: 1, Min1: 1.5, Max1: 2.5, Res0: 4, Res1: 1}
	o := scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 4 * 128, Seed: 5}
	for _, side := range []float32{-1, 1} {
		for n := 6; n <= 12; n++ {
			var m scene.Mesh
			stand := func(x, y, width float32) { // a triangle across the plane of both fans
				m.Vertices = append(m.Vertices, x-width, y, -.1, x+width, y, -.1, x, y, .1)
				m.Faces = append(m.Faces, int32(len(m.Vertices)/3-3), int32(len(m.Vertices)/3-2), int32(len(m.Vertices)/3-1))
			}
			for i := range n {
				stand(.02*float32(i-n/2), side*(.5+.05*float32(i)), .01)
			}
			stand(.1, -side*.7, .6)
			r := build(t, m)
			states := r.states(w)
			r.ForceResident(t, 1<<20)
			r.ForceFanNodes(t, 0)
			want := r.accumulateDfr(states, g, o)
			require.Greater(t, want.counts.VisRejects, int64(50))
			r.ForceResident(t, 4)
			r.ForceFanNodes(t, 1<<10)
			require.Equal(t, want, r.accumulateDfr(states, g, o), "%d triangles on side %v", n, side)
		}
	}
}
