package utdcheck_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
	"github.com/raymux/raymux/tests/utdcheck"
)

// fit is how far values may be off because the auxiliary functions are fitted, relatively.
const fit = 2e-8

type vec = [3]float64

func stream(t *testing.T) *cuda.Stream {
	t.Helper()
	st, err := gputest.Open(t, 1, nil).Context(t, 0).NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return st
}

// near compares numbers to an absolute margin.
func near(t *testing.T, want, have complex128, margin float64, about ...any) {
	t.Helper()
	assert.LessOrEqual(t, cmplx.Abs(want-have), margin, append([]any{"want %v, have %v: %v", want, have}, about)...)
}

// both compares the oracle's number with a printed one to the digits printed, and the
// kernel's with it to the error of the fit besides.
func both(t *testing.T, want, oracle, kernel complex128, digits float64, about ...any) {
	t.Helper()
	near(t, want, oracle, digits, append([]any{"oracle"}, about...)...)
	near(t, want, kernel, digits+fit*cmplx.Abs(want), append([]any{"kernel"}, about...)...)
}

const frequency = 3.5e9

var wavelength = 299792458 / frequency

// corner is a path over the edge of a 90-degree block, which is the z axis: face 0 lies at
// y = 0, face n at x = 0.
func corner(source, target, polarization vec) utdcheck.Row {
	return utdcheck.Row{
		Wedge: utdcheck.Wedge{
			Direction: vec{0, 0, 1}, N0: vec{0, 1, 0}, N1: vec{-1, 0, 0}, TMin: -100, TMax: 100, Theta: 1.5 * math.Pi,
		},
		Source: source, Target: target, Polarization: polarization,
		Wavelength: wavelength, LossPerSigma: oracle.LossPerSigma(wavelength),
		Medium0: utdcheck.Medium{EtaR: 4, Sigma: 0.01, MuR: 1, Gain: 1}, Reflects0: 1,
		MediumN: utdcheck.Medium{EtaR: 3, Sigma: 0.02, MuR: 1, Gain: 0.9}, ReflectsN: 1,
	}
}

// conductor is a medium that reflects everything.
var conductor = utdcheck.Medium{EtaR: 1, Sigma: 1e12, MuR: 1, Gain: 1}

// exchanged names the faces the other way round.
func exchanged(r utdcheck.Row) utdcheck.Row {
	w := &r.Wedge
	w.Direction = scaled(w.Direction, -1)
	w.N0, w.N1 = w.N1, w.N0
	w.TMin, w.TMax = -w.TMax, -w.TMin
	r.Medium0, r.MediumN = r.MediumN, r.Medium0
	r.Reflects0, r.ReflectsN = r.ReflectsN, r.Reflects0
	return r
}

// motion is a rotation with a shift behind it.
type motion struct {
	axes  [3]vec
	shift vec
}

func randomMotion(rng *rand.Rand, size float64) motion {
	a := unit(randomVector(rng))
	b := unit(cross(a, randomVector(rng)))
	return motion{[3]vec{a, b, cross(a, b)}, scaled(randomVector(rng), size)}
}

func (m motion) turn(v vec) vec {
	return add(add(scaled(m.axes[0], v[0]), scaled(m.axes[1], v[1])), scaled(m.axes[2], v[2]))
}

func (m motion) point(v vec) vec { return add(m.turn(v), m.shift) }

func (m motion) row(r utdcheck.Row) utdcheck.Row {
	w := &r.Wedge
	w.Point = m.point(w.Point)
	w.Direction, w.N0, w.N1 = m.turn(w.Direction), m.turn(w.N0), m.turn(w.N1)
	r.Source, r.Target, r.Polarization = m.point(r.Source), m.point(r.Target), m.turn(r.Polarization)
	return r
}

func (m motion) field(e oracle.Field) (out oracle.Field) {
	for c := range out {
		for i := range e {
			out[c] += complex(m.axes[i][c], 0) * e[i]
		}
	}
	return out
}

// standard is a wedge along the z axis with face 0 on the positive x axis.
func standard(theta float64) utdcheck.Wedge {
	sin, cos := math.Sincos(theta)
	return utdcheck.Wedge{Direction: vec{0, 0, 1}, N0: vec{0, 1, 0}, N1: vec{sin, -cos, 0}, TMin: -100, TMax: 100, Theta: theta}
}

// at is a point by its cylinder coordinates.
func at(rho, phi, z float64) vec {
	sin, cos := math.Sincos(phi)
	return vec{rho * cos, rho * sin, z}
}

func randomMedium(rng *rand.Rand) utdcheck.Medium {
	return utdcheck.Medium{
		EtaR: 1 + 9*rng.Float32(), Sigma: float32(math.Exp(12*rng.Float64() - 9)), MuR: 1 + rng.Float32(), Gain: 0.5 + rng.Float32()/2,
	}
}

// randomRow is a path over the standard wedge of a random angle.
func randomRow(rng *rand.Rand) utdcheck.Row {
	theta := math.Pi * (1.02 + 0.98*rng.Float64())
	lambda := math.Exp(-4 * rng.Float64())
	return utdcheck.Row{
		Wedge:        standard(theta),
		Source:       at(0.2+3*rng.Float64(), theta*rng.Float64(), 4*rng.Float64()-2),
		Target:       at(0.2+3*rng.Float64(), theta*rng.Float64(), 4*rng.Float64()-2),
		Polarization: randomVector(rng),
		Wavelength:   lambda, LossPerSigma: oracle.LossPerSigma(lambda),
		Medium0: randomMedium(rng), Reflects0: uint32(rng.IntN(4)),
		MediumN: randomMedium(rng), ReflectsN: uint32(rng.IntN(4)),
	}
}

func medium(m utdcheck.Medium, reflects uint32) *oracle.Medium {
	if reflects == 0 {
		return nil
	}
	return &oracle.Medium{EtaR: float64(m.EtaR), Sigma: float64(m.Sigma), MuR: float64(m.MuR), Gain: float64(m.Gain)}
}

// expected is the oracle's answer.
func expected(r utdcheck.Row) (oracle.WedgePath, oracle.WedgeStatus, oracle.WedgeField) {
	w := oracle.Wedge{P: r.Wedge.Point, E: r.Wedge.Direction, N0: r.Wedge.N0, N1: r.Wedge.N1,
		TMin: r.Wedge.TMin, TMax: r.Wedge.TMax, Theta: r.Wedge.Theta}
	p, status := w.Path(r.Source, r.Target, r.Wavelength, r.EdgeMode == utdcheck.Fresnel)
	var f oracle.WedgeField
	if status == oracle.WedgeValid {
		f = w.Field(p, r.Source, r.Target, r.Polarization, r.Wavelength, medium(r.Medium0, r.Reflects0), medium(r.MediumN, r.ReflectsN))
		if r.EdgeMode == utdcheck.Fresnel {
			for i := range f.E {
				f.E[i] *= f.Truncation
			}
		}
	}
	return p, status, f
}

func value(field [3]utdcheck.Complex) oracle.Field {
	return oracle.Field{field[0].Value(), field[1].Value(), field[2].Value()}
}

// distance is the largest difference of components.
func distance(a, b oracle.Field) float64 {
	return math.Max(cmplx.Abs(a[0]-b[0]), math.Max(cmplx.Abs(a[1]-b[1]), cmplx.Abs(a[2]-b[2])))
}

func randomVector(rng *rand.Rand) vec {
	return vec{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
}

func add(a, b vec) vec { return vec{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }

func sub(a, b vec) vec { return vec{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

func scaled(a vec, s float64) vec { return vec{a[0] * s, a[1] * s, a[2] * s} }

func dot(a, b vec) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func cross(a, b vec) vec {
	return vec{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

func unit(a vec) vec { return scaled(a, 1/math.Sqrt(dot(a, a))) }
