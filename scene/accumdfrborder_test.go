package scene_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/oracle"
)

// levelWedge has its edge on the x axis, over which rays are lifted along z: what is between
// a source at y = 0, the edge, and the middle of gridOne has y = 0, too.
func levelWedge(src vec) wedge {
	w := stateA
	w.n0, w.theta, w.src = vec{0, -1, 0}, 0, src // the only angle without a rounding
	return w
}

// bothWays are lanes by warps that collect the triangles near their pair, and by threads,
// too few for that, that walk the tree.
func bothWays(t testing.TB, r *rig, w wedge, o scene.DfrDirectOptions) (fans, tree accumulated) {
	const few = 30
	states := r.states(w)
	r.ForceResident(t, 1)
	var parts []scene.Window
	for at := int64(0); at < o.DirectSamples; at += few {
		parts = append(parts, scene.Window{Offset: at, Count: min(few, o.DirectSamples-at)})
	}
	return r.accumulateDfr(states, gridOne, o), r.merged(states, gridOne, o, parts...)
}

// A crossing blocks a leg from eps behind its start to eps before its end. Lanes are slanted
// by up to half, so that they cross a plane just before that distance and just behind it.
func TestAccumDfrDirectAtTheEnds(t *testing.T) {
	const eps, lift = 2e-5, 1e-4
	for name, z := range map[string]float32{
		"source": 1 - .97*eps, "edge, to the source": lift + .97*eps,
		"edge, to the target": lift - .97*eps, "target": -1 + .97*eps,
	} {
		t.Run(name, func(t *testing.T) {
			mesh, w := rectangle(z, -2, 2, -2, 2), levelWedge(vec{0, 0, 1})
			o := scene.DfrDirectOptions{Wavelength: .3, DirectSamples: 300, Seed: 21}
			want := oracle.NewCanonical(mesh.Vertices, mesh.Faces).AccumDfr(dfrOracle([]wedge{w}, gridOne, o), 0, o.DirectSamples)
			// Of legs longer than 1 / .97 the crossing counts: |x| > .2506.
			require.InDelta(t, 1-.2506/.5, float64(want.VisRejects)/float64(o.DirectSamples), .1)
			fans, tree := bothWays(t, build(t, mesh), w, o)
			requireSums(t, false, want, fans)
			requireSums(t, false, want, tree)
		})
	}
}

// Triangles so thin that their edge functions are a few of the smallest floats, or zero by
// underflow: whether they block a leg depends on every rounding. They lie 1 below the source,
// where depths are exact, just above the edge, and reach beyond all legs.
func TestAccumDfrDirectUnderflow(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 18))
	var blocked, open int64
	for range 24 {
		src := vec{2*rng.Float32() - 1, 0, 1 + float32(rng.IntN(8))/256}
		var mesh scene.Mesh
		for i, x := range []float32{-3, 3, 6*rng.Float32() - 3, -2, 2, 4*rng.Float32() - 2} { // corners
			mesh.Vertices = append(mesh.Vertices, x, float32(rng.IntN(7)-3)*math.SmallestNonzeroFloat32, src[2]-1)
			mesh.Faces = append(mesh.Faces, int32(i))
		}
		w := levelWedge(src)
		w.pos[2] = -.02
		o := scene.DfrDirectOptions{Wavelength: .3, DirectSamples: 300, Seed: 21}
		want := oracle.NewCanonical(mesh.Vertices, mesh.Faces).AccumDfr(dfrOracle([]wedge{w}, gridOne, o), 0, o.DirectSamples)
		fans, tree := bothWays(t, build(t, mesh), w, o)
		requireSums(t, false, want, fans)
		requireSums(t, false, want, tree)
		blocked += want.VisRejects
		open += want.Accepted
	}
	require.Positive(t, blocked)
	require.Positive(t, open)
}
