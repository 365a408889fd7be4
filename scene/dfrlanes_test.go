package scene_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/oracle"
)

const lightSpeed = 299792458.0

// dfrScene is a scene with wedges, and what is known about it on the host.
type dfrScene struct {
	*rig
	host      scene.DfrStates
	states    *scene.StateTable
	media     scene.Materials
	materials *scene.MaterialTable // nil: none
	mesh      *oracle.Oracle
	faces     int
	lambda    float64
}

func (r *rig) dfrScene(host scene.DfrStates, media scene.Materials, lambda float64) *dfrScene {
	r.Helper()
	g, err := r.GlobalGeometry(background)
	require.NoError(r, err)
	d := &dfrScene{rig: r, host: host, media: media, mesh: oracle.New(g.Vertices, g.Faces), faces: len(g.Faces) / 3, lambda: lambda}
	d.states, err = r.UploadStates(background, host)
	require.NoError(r, err)
	states := d.states
	r.Cleanup(func() { require.NoError(r, states.Close()) })
	if media.EtaR != nil {
		d.materials, err = r.UploadMaterials(background, media)
		require.NoError(r, err)
		materials := d.materials
		r.Cleanup(func() { require.NoError(r, materials.Close()) })
	}
	return d
}

// wedgeMedia are the two media of the wedge with published values: face n has the second.
func wedgeMedia(faces int, far int32) scene.Materials {
	m := scene.Materials{
		EtaR: []float32{4, 3}, Sigma: []float32{.01, .02}, MuR: []float32{1, 1}, Gain: []float32{1, .9},
		Index: make([]int32, faces),
	}
	if far >= 0 {
		m.Index[far] = 1
	}
	return m
}

const wedgeFrequency = 3.5e9

// wedgeBox is the closed box x in [0,4], y in [-4,0], z in [-2,2], and its edge on the z
// axis as the only state.
func wedgeBox(t testing.TB) *dfrScene {
	t.Helper()
	return build(t, wedgeBoxMesh()).wedgeBox()
}

func wedgeBoxMesh() scene.Mesh {
	return boxMesh(vec64{2, 2, 2}, motion{axes: still.axes, to: vec64{2, -2, 0}}, inOrder(12))
}

// wedgeBox is that of a scene of wedgeBoxMesh.
func (r *rig) wedgeBox() *dfrScene {
	r.Helper()
	return r.dfrScene(scene.DfrStates{
		EdgeIndex: []int32{11}, EdgePos: []float32{0, 0, -2}, EdgeDir: []float32{0, 0, 1}, TMin: []float32{0}, TMax: []float32{4},
		N0: []float32{0, 1, 0}, N1: []float32{-1, 0, 0}, Prim0: []int32{6}, Prim1: []int32{8},
		ExteriorAngle: []float32{1.5 * math.Pi}, Src: []float32{0, 0, 0}, SrcPower: []float32{1},
	}, wedgeMedia(12, 8), lightSpeed/wedgeFrequency)
}

// randomBoxes is some boxes and a sheet with media of all kinds, and all of their wedges
// with a source outside.
func randomBoxes(t testing.TB, rng *rand.Rand, boxes int) *dfrScene {
	t.Helper()
	return randomBoxesOn(open(t), rng, boxes)
}

// randomBoxesOn is randomBoxes on an empty scene.
func randomBoxesOn(r *rig, rng *rand.Rand, boxes int) *dfrScene {
	r.Helper()
	var meshes []scene.Mesh
	for range boxes {
		m := randomMotion(rng)
		m.to = along(m.to, 3)
		meshes = append(meshes, boxMesh(vec64{.3 + rng.Float64(), .3 + rng.Float64(), .3 + rng.Float64()}, m, rng.Perm(12)))
	}
	meshes = append(meshes, moved(scaled(meshQ(), 3), randomVec(rng, 4)))
	r.add(meshes...)
	require.NoError(r, r.Build(background))
	states, _ := r.dfrStates(scene.DfrStateOptions{Src: randomVec(rng, 6), SrcPower: rng.Float32() * 3})
	g, err := r.GlobalGeometry(background)
	require.NoError(r, err)
	m := scene.Materials{
		EtaR: []float32{4, 2.5, 1, 6}, Sigma: []float32{.01, 0, float32(math.Inf(1)), 3}, MuR: []float32{1, 2, 1, 1},
		Gain: []float32{1, .5, 1, .8}, Valid: []bool{true, true, true, false},
	}
	for range len(g.Faces) / 3 {
		m.Index = append(m.Index, int32(rng.IntN(4)))
	}
	return r.dfrScene(*states, m, .05+rng.Float64()*.2)
}

func randomVec(rng *rand.Rand, by float64) vec {
	return vec{float32(by * rng.NormFloat64()), float32(by * rng.NormFloat64()), float32(by * rng.NormFloat64())}
}

// lane is what the oracle says about a source, a state and a target.
type dfrLane struct {
	status scene.DfrPathStatus
	// ambiguous: rounding decides about the status.
	ambiguous bool
	q         vec64
	delay     float64
	field     [3]complex128
	terms     float64 // magnitudes of what the field is the sum of
	// margin is how far the kernels may be off, which is much of the field where terms
	// cancel. Their fit of the Fresnel integrals is good to 2e-8 of each; normals are units
	// but for rounding, by which the cosine of incidence is off and at most as much the
	// coefficients of reflection; and the field is rounded.
	margin float64
}

// wedge is a state in double precision.
func (d *dfrScene) wedge(i int) oracle.Wedge {
	e := wide(d.host.EdgeDir, i)
	return oracle.Wedge{
		P: wide(d.host.EdgePos, i), E: along(e, 1/length(e)), N0: wide(d.host.N0, i), N1: wide(d.host.N1, i),
		TMin: float64(d.host.TMin[i]), TMax: float64(d.host.TMax[i]), Theta: float64(d.host.ExteriorAngle[i]),
	}
}

func (d *dfrScene) medium(prim int32) *oracle.Medium {
	if d.materials == nil || prim < 0 || int(prim) >= d.faces {
		return nil
	}
	i := d.media.Index[prim]
	if d.media.Valid != nil && !d.media.Valid[i] {
		return nil
	}
	return &oracle.Medium{
		EtaR: float64(d.media.EtaR[i]), Sigma: float64(d.media.Sigma[i]), MuR: float64(d.media.MuR[i]), Gain: float64(d.media.Gain[i]),
	}
}

func (d *dfrScene) lane(i int, source, target, polarization vec, power float32, mode scene.EdgeMode, blind bool) dfrLane {
	w := d.wedge(i)
	from, to := wide(source[:], 0), wide(target[:], 0)
	p, status := w.Path(from, to, d.lambda, mode == scene.EdgeFresnel)
	out := dfrLane{status: scene.DfrPathStatus(status)}
	out.ambiguous = status != oracle.WedgeNotFinite && onTheLimit(w, p, from, mode)
	if status != oracle.WedgeValid {
		return out
	}
	out.q, out.delay = p.Q, (p.Source+p.Target)/lightSpeed
	if !blind {
		sin, cos := math.Sincos(w.Theta / 2)
		b := plus(along(vectorProduct(w.N0, w.E), cos), along(w.N0, sin))
		far := max(math.Abs(p.Q[0]), math.Abs(p.Q[1]), math.Abs(p.Q[2]))
		beside := narrow(plus(p.Q, along(b, max(1e-4, 5e-6*far))))
		for k, leg := range [2]oracle.Segment{d.mesh.Segment(source, beside), d.mesh.Segment(beside, target)} {
			out.ambiguous = out.ambiguous || leg.Ambiguous
			if !leg.Visible {
				out.status = scene.DfrSourceOccluded + scene.DfrPathStatus(k)
				return out
			}
		}
	}
	f := w.Field(p, from, to, wide(polarization[:], 0), d.lambda, d.medium(d.host.Prim0[i]), d.medium(d.host.Prim1[i]))
	amplitude, tails := complex(math.Sqrt(max(float64(power), 0)), 0), 0.
	if mode == scene.EdgeFresnel {
		tails = real(amplitude) * f.Tails
		amplitude *= f.Truncation
	}
	for k := range out.field {
		out.field[k] = f.E[k] * amplitude
	}
	const fit, rounding = 2e-8, 1. / (1 << 24)
	out.terms = f.Terms*cmplx.Abs(amplitude) + largest(f.E)*tails
	out.margin = fit*out.terms + rounding*(f.Faces*cmplx.Abs(amplitude)+largest(out.field))
	if power <= 0 {
		out.status = scene.DfrNoField
	}
	return out
}

// onTheLimit tells whether rounding may decide where the path goes.
func onTheLimit(w oracle.Wedge, p oracle.WedgePath, from vec64, mode scene.EdgeMode) bool {
	const small = 1e-9
	if mode == scene.EdgeFresnel && (math.Abs(p.V1-3) < small || math.Abs(p.V2+3) < small) {
		return true
	}
	if mode == scene.EdgeInterior && (math.Abs(p.T-w.TMin) < small || math.Abs(p.T-w.TMax) < small) {
		return true
	}
	q := minus(from, p.Q)
	return math.Abs(product(q, w.N0)+1e-6) < small || math.Abs(product(q, w.N1)+1e-6) < small
}

func largest(field [3]complex128) (l float64) {
	for _, z := range field {
		l = max(l, cmplx.Abs(z))
	}
	return l
}

// off is the largest difference of components.
func off(want [3]complex128, have []float32) float64 {
	var d [3]complex128
	for k, z := range want {
		d[k] = complex(float64(have[2*k]), float64(have[2*k+1])) - z
	}
	return largest(d)
}

// requireField compares a complex vector within a tolerance of its largest component.
func requireField(t testing.TB, want [3]complex128, have []float32, tolerance float64, about ...any) {
	t.Helper()
	require.LessOrEqual(t, off(want, have), tolerance*largest(want), "want %v, have %v; %v", want, have[:6], about)
}

// poisoned fills all of the memory of a result, which has to be written then.
func poisoned[T cuda.Scalar](r *rig, columns ...cuda.Slice[T]) {
	r.Helper()
	for _, c := range columns {
		poison(r, c)
	}
}
