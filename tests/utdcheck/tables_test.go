package utdcheck_test

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/utdcheck"
)

func stream(t *testing.T) *cuda.Stream {
	t.Helper()
	st, err := gputest.Open(t, 1, nil).Context(t, 0).NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return st
}

// The speed of light and the permittivity of vacuum.
const (
	c0   = 299792458
	eps0 = 8.8541878128e-12
)

// corner is the wedge of a 90-degree block whose edge is the z axis: face 0 lies at
// y = 0, face n at x = 0. At 3.5 GHz.
func corner(source, target, polarization [3]float64) utdcheck.Row {
	return utdcheck.Row{
		Wedge: utdcheck.Wedge{
			Direction: [3]float64{0, 0, 1}, N0: [3]float64{0, 1, 0}, N1: [3]float64{-1, 0, 0},
			TMin: -100, TMax: 100, Theta: 1.5 * math.Pi,
		},
		Source: source, Target: target, Polarization: polarization,
		Wavelength: c0 / 3.5e9, LossPerSigma: 1 / (2 * math.Pi * 3.5e9 * eps0),
		Medium0: utdcheck.Medium{EtaR: 4, Sigma: 0.01, MuR: 1, Gain: 1}, Reflects0: 1,
		MediumN: utdcheck.Medium{EtaR: 3, Sigma: 0.02, MuR: 1, Gain: 0.9}, ReflectsN: 1,
	}
}

// published are paths over that wedge with the fields that the specification prints.
func published() (rows []utdcheck.Row, fields [][3]complex128) {
	a, b := [3]float64{-1.2, 0.8, -0.1}, [3]float64{1, 1.1, -0.1}
	up := [3]float64{0, 0, 1}
	high := [3]float64{-1.2, 0.8, 3}
	rows = []utdcheck.Row{
		corner(a, b, up),
		corner(a, b, [3]float64{0.3, 1, 0.2}),
		corner([3]float64{-1.2, 0.8, 0.2}, b, up),
		corner(high, b, up),
		corner(high, b, [3]float64{1, 0, 0}),
		corner([3]float64{0.9, 0.7, -0.1}, [3]float64{-1, -1.5, -0.1}, up),
		corner(a, b, up),
		corner([3]float64{0.9, 0.7, 1.4}, [3]float64{-1, -1.5, -0.6}, up),
	}
	rows[6].Reflects0, rows[6].ReflectsN = 0, 0
	rows[7].ReflectsN = 0
	return rows, [][3]complex128{
		{0, 0, 8.095962e-05 + 2.792063e-04i},
		{-5.007042e-06 + 2.352202e-05i, 4.551857e-06 - 2.138366e-05i, 1.590103e-05 + 5.483804e-05i},
		{2.725997e-05 + 5.147749e-06i, 1.452582e-05 + 1.859444e-06i, 2.839525e-04 + 4.723835e-05i},
		{-1.190837e-04 - 1.108107e-04i, -4.387457e-05 - 2.963959e-05i, -1.063532e-04 - 9.114404e-05i},
		{-1.141998e-04 - 1.193997e-04i, -4.721144e-05 - 2.874413e-05i, -1.055821e-04 - 9.597657e-05i},
		{0, 0, -3.294721e-04 - 9.345844e-05i},
		{0, 0, 3.259360e-05 + 7.334269e-05i},
		{7.286586e-05 - 8.860244e-05i, 9.842481e-05 - 1.146002e-04i, -1.799807e-04 + 2.126296e-04i},
	}
}

func value(field [3]utdcheck.Complex) [3]complex128 {
	return [3]complex128{field[0].Value(), field[1].Value(), field[2].Value()}
}

// distance is the largest difference of components.
func distance(a, b [3]complex128) float64 {
	return math.Max(cmplx.Abs(a[0]-b[0]), math.Max(cmplx.Abs(a[1]-b[1]), cmplx.Abs(a[2]-b[2])))
}

func TestPublishedFields(t *testing.T) {
	rows, want := published()
	for i, got := range utdcheck.Field(t, stream(t), rows) {
		require.Zero(t, got.Status, "V%d", i+1)
		// The digits printed.
		assert.LessOrEqual(t, distance(want[i], value(got.Field)), 1e-9*0.6, "V%d: %v, want %v", i+1, value(got.Field), want[i])
	}
}
