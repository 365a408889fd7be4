package fieldcheck_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/fieldcheck"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

const lambda = 0.1

var inf = float32(math.Inf(1))

func evaluate(t *testing.T, in []fieldcheck.Input) []fieldcheck.Output {
	t.Helper()
	c := gputest.Open(t, 1, nil).Context(t, 0)
	st, err := c.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	return fieldcheck.Evaluate(t, st, in)
}

func number(v [2]float32) complex128 { return complex(float64(v[0]), float64(v[1])) }

func wide(v [3]float32) [3]float64 { return [3]float64{float64(v[0]), float64(v[1]), float64(v[2])} }

func narrow(v [3]float64) [3]float32 { return [3]float32{float32(v[0]), float32(v[1]), float32(v[2])} }

// assertNear compares with 1e-5 relative and absolute.
func assertNear(t *testing.T, want, have complex128, about ...any) {
	t.Helper()
	assert.LessOrEqual(t, cmplx.Abs(want-have), 1e-5*(1+cmplx.Abs(want)), append([]any{"want %v, have %v: ", want, have}, about...)...)
}

// The table of coefficients.
func TestReflectance(t *testing.T) {
	total := complex(-1.0/3, 0.942809042)
	tests := []struct {
		id                           string
		eta, sigma, mu, gain, cosine float64
		te, tm                       complex128
		exact                        bool
	}{
		{"F1", 4, 0, 1, 1, 1, -1.0 / 3, 1.0 / 3, false},
		{"F2", 4, 0, 1, 1, 1 / math.Sqrt(5), -0.6, 0, false},
		{"F3", 4, 0, 1, 1, 0.5, -0.565741454, 0.0518632654, false},
		{"F4", 4, 0, 1, 1, math.Sqrt(0.5), -0.451416230, 0.203776612, false},
		{"F5", 4, 0, 1, 1, 1e-3, -0.998845966, -0.995391841, false},
		{"F6", 1, 1e7, 1, 1, 0.5, complex(-0.999908681, 9.13103e-5), complex(0.999634725, -3.65141e-4), false},
		{"F7", 1, math.Inf(1), 1, 1, 0.3, -1, 1, true},
		{"F7 grazing", 1, math.Inf(1), 1, 1, 1e-5, -1, 1, true},
		{"F7 large", 1, 3e38, 1, 1, 0.3, -1, 1, true},
		{"F9", 3, 0, 3, 1, 1, 0, 0, false},
		{"F10", 1, 0, 1, 1, 0.7, 0, 0, true},
		{"F10 grazing", 1, 0, 1, 1, 1e-3, 0, 0, true},
		{"F12", 0.25, 0, 1, 1, 0.5, total, complex(-0.939393939, 0.342839651), false},
		{"F13", 4, 0, 1, 0.5, math.Sqrt(0.5), -0.225708115, 0.101888306, false},
	}
	in := make([]fieldcheck.Input, len(tests))
	for i, c := range tests {
		in[i] = fieldcheck.Input{
			EtaR: float32(c.eta), Sigma: float32(c.sigma), MuR: float32(c.mu), Gain: float32(c.gain),
			LossPerSigma: oracle.LossPerSigma(lambda), Wavelength: lambda, Cosine: float32(c.cosine),
		}
	}
	for i, out := range evaluate(t, in) {
		c := tests[i]
		te, tm := number(out.TE), number(out.TM)
		if c.exact {
			assert.Equal(t, [2]complex128{c.te, c.tm}, [2]complex128{te, tm}, c.id)
		} else {
			assertNear(t, c.te, te, c.id)
			assertNear(t, c.tm, tm, c.id)
		}
		if c.id == "F2" {
			assert.Less(t, cmplx.Abs(tm), 1e-6, "at the Brewster angle")
		}
		if c.id == "F12" {
			assert.InDelta(t, 1, cmplx.Abs(te), 1e-6)
			assert.InDelta(t, 1, cmplx.Abs(tm), 1e-6)
		}
	}
}

// Every medium that is not a perfect conductor is evaluated without overflow.
func TestReflectanceOfRandomMedia(t *testing.T) {
	rng := rand.New(rand.NewPCG(64, 1))
	in := make([]fieldcheck.Input, 4096)
	for i := range in {
		in[i] = fieldcheck.Input{
			EtaR: float32(math.Exp(rng.Float64()*8 - 2)), MuR: float32(math.Exp(rng.Float64()*4 - 1)), Gain: rng.Float32(),
			LossPerSigma: oracle.LossPerSigma(lambda), Wavelength: lambda, Cosine: rng.Float32(),
		}
		switch i % 3 {
		case 0:
			in[i].Sigma = float32(math.Pow(10, rng.Float64()*34-6))
		case 1:
			in[i].Cosine = float32(math.Pow(10, -8*rng.Float64()))
		}
	}
	for i, out := range evaluate(t, in) {
		v := in[i]
		m := oracle.Medium{EtaR: float64(v.EtaR), Sigma: float64(v.Sigma), MuR: float64(v.MuR), Gain: float64(v.Gain)}
		te, tm := m.Reflectance(lambda, float64(v.Cosine))
		assertNear(t, te, number(out.TE), "%+v", v)
		assertNear(t, tm, number(out.TM), "%+v", v)
	}
}

// Reflected fields are those of double precision, for surfaces of either orientation and
// at any incidence.
func TestReflectedField(t *testing.T) {
	rng := rand.New(rand.NewPCG(64, 2))
	unit := func() [3]float64 {
		v := [3]float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		s := math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2])
		return [3]float64{v[0] / s, v[1] / s, v[2] / s}
	}
	in := make([]fieldcheck.Input, 2048)
	for i := range in {
		k := unit()
		a, b := oracle.Transverse(unit(), k), oracle.Transverse(unit(), k)
		in[i] = fieldcheck.Input{
			EtaR: 1 + 5*rng.Float32(), Sigma: rng.Float32() * 0.1, MuR: 1, Gain: 1,
			LossPerSigma: oracle.LossPerSigma(lambda), Wavelength: lambda,
			K: narrow(k), N: narrow(unit()), A: narrow(unit()),
		}
		for c := range 3 {
			in[i].Field[c] = [2]float32{float32(a[c]), float32(b[c])}
		}
		switch i % 8 {
		case 0: // a conductor
			in[i].Sigma = inf
		case 1: // along the normal, where the plane of incidence says nothing
			in[i].N = in[i].K
		case 2: // a start vector without a part across k
			in[i].A = in[i].K
		case 3:
			in[i].A = [3]float32{}
		}
	}
	for i, out := range evaluate(t, in) {
		v := in[i]
		k, n := wide(v.K), wide(v.N)
		m := oracle.Medium{EtaR: float64(v.EtaR), Sigma: float64(v.Sigma), MuR: 1, Gain: 1}
		f := oracle.Field{number(v.Field[0]), number(v.Field[1]), number(v.Field[2])}
		want := f.Reflect(k, n, m, lambda)
		across := oracle.Transverse(wide(v.A), k)
		h := k[0]*n[0] + k[1]*n[1] + k[2]*n[2]
		for c := range 3 {
			assertNear(t, want[c], number(out.Field[c]), "%+v", v)
			assert.InDelta(t, across[c], out.Transverse[c], 1e-5, "%+v", v)
			assert.InDelta(t, k[c]-2*h*n[c], out.Next[c], 1e-6, "%+v", v)
		}
		if v.Sigma == inf { // -f + 2 (n f) n
			along := f[0]*complex(n[0], 0) + f[1]*complex(n[1], 0) + f[2]*complex(n[2], 0)
			for c := range 3 {
				assertNear(t, -f[c]+2*along*complex(n[c], 0), number(out.Field[c]), "%+v", v)
			}
		}
	}
}

// At normal incidence the reflected vector is te times the incident one.
func TestReflectedFieldAtNormalIncidence(t *testing.T) {
	in := fieldcheck.Input{
		EtaR: 4, MuR: 1, Gain: 1, LossPerSigma: oracle.LossPerSigma(lambda), Wavelength: lambda,
		K: [3]float32{0, 0, -1}, N: [3]float32{0, 0, 1}, Field: [3][2]float32{{1, 0}},
	}
	out := evaluate(t, []fieldcheck.Input{in})[0]
	for c, want := range []complex128{-1.0 / 3, 0, 0} {
		assertNear(t, want, number(out.Field[c]), c)
	}
	assert.Equal(t, [3]float32{0, 0, 1}, out.Next)
}

// Phases are those of double precision to about a unit in the last place of f32, at any
// length.
func TestTravelledPhase(t *testing.T) {
	rng := rand.New(rand.NewPCG(64, 3))
	in := make([]fieldcheck.Input, 1<<14)
	for i := range in {
		in[i] = fieldcheck.Input{Wavelength: 1, Length: 2 * rng.Float32()}
		switch i % 4 {
		case 1:
			in[i].Wavelength, in[i].Length = 1e-3+rng.Float64(), float32(math.Pow(10, rng.Float64()*8-2))
		case 2: // next to eighths of a turn, where the series end
			in[i].Length = math.Float32frombits(math.Float32bits(float32(1+rng.IntN(16))/8) + uint32(rng.IntN(9)) - 4)
		}
	}
	in[0].Length = 0
	worst := 0.0
	for i, out := range evaluate(t, in) {
		v := in[i]
		x := float64(v.Length) / v.Wavelength
		s, c := math.Sincos(2 * math.Pi * (x - math.RoundToEven(x)))
		worst = max(worst, math.Abs(float64(out.Phase[0])-c), math.Abs(float64(out.Phase[1])+s))
	}
	assert.Less(t, worst, 1.0e-7)
	t.Logf("largest error %.3g", worst)
}
