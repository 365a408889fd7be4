package utdcheck_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/tests/oracle"
	"github.com/raymux/raymux/tests/utdcheck"
)

// ulp is the rounding unit of double precision.
const ulp = 1.0 / (1 << 53)

// relative compares with a relative margin.
func relative(t *testing.T, want, have, margin float64, about ...any) {
	t.Helper()
	assert.LessOrEqual(t, math.Abs(want-have), margin*math.Abs(want), append([]any{"want %g, have %g: %v", want, have}, about)...)
}

func TestElementaryFunctions(t *testing.T) {
	rng := rand.New(rand.NewPCG(631, 1))
	var in []utdcheck.Values
	// The eighths of a turn, and zeros of either sign.
	eighths := []float64{0, math.Pi / 4, math.Pi / 2, 3 * math.Pi / 4, math.Pi, 5 * math.Pi / 4, 3 * math.Pi / 2, 7 * math.Pi / 4}
	for i, v := range [][2]float64{{1, 0}, {1, 1}, {0, 1}, {-1, 1}, {-1, 0}, {-1, -1}, {0, -1}, {1, -1}} {
		in = append(in, utdcheck.Values{Turns: float64(i) / 8, Radians: eighths[i], X: v[0], Y: v[1]})
	}
	zero := math.Copysign(0, -1)
	for _, v := range [][2]float64{{1, 0}, {1, zero}, {-1, 0}, {-1, zero}, {0, 1}, {0, -1}, {zero, 1}, {0, 0}, {zero, zero}} {
		in = append(in, utdcheck.Values{X: v[0], Y: v[1]})
	}
	sized := func() float64 { return math.Exp(40*rng.Float64()-30) * float64(2*rng.IntN(2)-1) }
	for i := range 4000 {
		v := utdcheck.Values{Turns: 1e7 * (rng.Float64() - 0.5), Radians: 20 * (rng.Float64() - 0.5), X: rng.NormFloat64(), Y: rng.NormFloat64()}
		if i%2 == 0 {
			v = utdcheck.Values{Turns: math.Exp(-40 * rng.Float64()), Radians: math.Exp(3 - 40*rng.Float64()), X: sized(), Y: sized()}
		}
		in = append(in, v)
	}
	for i, got := range utdcheck.Functions(t, stream(t), in) {
		v := in[i]
		// The remainder is exact; only its product with 2 pi is rounded.
		sin, cos := math.Sincos(2 * math.Pi * (v.Turns - math.RoundToEven(v.Turns)))
		assert.InDelta(t, sin, got.Turns.Sin, 5*ulp, "sin of %g turns", v.Turns)
		assert.InDelta(t, cos, got.Turns.Cos, 5*ulp, "cos of %g turns", v.Turns)
		if v.Turns < 0.125 && v.Turns > 0 {
			relative(t, sin, got.Turns.Sin, 6*ulp, v.Turns)
		}
		sin, cos = math.Sincos(v.Radians)
		assert.InDelta(t, sin, got.Radians.Sin, 3*ulp, "sin of %g", v.Radians)
		assert.InDelta(t, cos, got.Radians.Cos, 3*ulp, "cos of %g", v.Radians)
		if math.Abs(v.Radians) < 3 {
			relative(t, sin, got.Radians.Sin, 6*ulp, v.Radians)
		}
		angle := math.Atan2(v.Y, v.X)
		switch {
		case v.X == 0 && v.Y == 0:
			angle = 0
		case angle < 0:
			angle += 2 * math.Pi
			assert.InDelta(t, angle, got.Angle, 12*ulp, "angle of (%g, %g)", v.X, v.Y)
		default:
			relative(t, angle, got.Angle, 5*ulp, v.X, v.Y)
		}
		if i < len(eighths) {
			assert.Equal(t, eighths[i], got.Angle)
		}
		assert.True(t, got.Angle >= 0 && got.Angle <= 2*math.Pi)
	}
}

// Whole turns change nothing, not even the last bit.
func TestTurnsAreTakenOffExactly(t *testing.T) {
	rng := rand.New(rand.NewPCG(632, 1))
	var in []utdcheck.Values
	for range 500 {
		part := float64(rng.IntN(1<<20))/(1<<20) - 0.5
		in = append(in, utdcheck.Values{Turns: part}, utdcheck.Values{Turns: part + float64(rng.IntN(1<<30)-1<<29)})
	}
	got := utdcheck.Functions(t, stream(t), in)
	for i := 0; i < len(got); i += 2 {
		if math.Abs(in[i].Turns) != 0.5 { // rounds to either side
			assert.Equal(t, got[i].Turns, got[i+1].Turns, "%g", in[i].Turns)
		}
	}
}

func TestComplexFunctions(t *testing.T) {
	rng := rand.New(rand.NewPCG(633, 1))
	in := []utdcheck.Values{{X: 0, Y: 0}, {X: 4}, {X: -4}, {Y: -2}, {X: 1, Y: -1e30}, {X: -1e-20, Y: -1e30}}
	for range 1000 {
		in = append(in, utdcheck.Values{X: rng.NormFloat64() * math.Exp(40*rng.Float64()-20), Y: -math.Exp(60*rng.Float64() - 30)})
	}
	for i, got := range utdcheck.Functions(t, stream(t), in) {
		z := complex(in[i].X, in[i].Y)
		root := cmplx.Sqrt(z)
		if imag(root) > 0 {
			root = -root
		}
		near(t, root, got.Root.Value(), 4*ulp*cmplx.Abs(root), z)
		assert.True(t, got.Root[0] >= 0 && got.Root[1] <= 0, "%v", z)
		if z != 0 {
			near(t, 1/z, got.Inverse.Value(), 4*ulp/cmplx.Abs(z), z)
		}
	}
}

func TestReflectionOfMedia(t *testing.T) {
	rng := rand.New(rand.NewPCG(634, 1))
	in := []utdcheck.Values{
		{EtaR: 1, MuR: 1, Gain: 1, C: 0.3},                      // vacuum
		{EtaR: 4, MuR: 1, Gain: 0.7, C: 0},                      // grazing
		{EtaR: 4, MuR: 1, Gain: 0.7, C: 1.5},                    // rounded up
		{EtaR: 4, Loss: math.Inf(1), MuR: 1, Gain: 0.7, C: 0.2}, // conductors
		{EtaR: 4, Loss: 1.1e30, MuR: 1, Gain: 0.7, C: 0.2},      //
		{EtaR: 4, Loss: 0.9e30, MuR: 3e38, Gain: 0.7, C: 0.2},   // nothing overflows
		{EtaR: 3e38, Loss: 0.9e30, MuR: 3e38, Gain: 3e38, C: 1}, //
		{EtaR: 1e-38, Loss: 0, MuR: 1e-38, Gain: 1, C: 0.5}, {EtaR: 4, MuR: 1, C: 0.5},
	}
	for range 1000 {
		in = append(in, utdcheck.Values{EtaR: 1 + 20*rng.Float64(), Loss: math.Exp(50*rng.Float64() - 20), MuR: 1 + 3*rng.Float64(), Gain: rng.Float64(), C: rng.Float64()})
	}
	for i, got := range utdcheck.Functions(t, stream(t), in) {
		v := in[i]
		const lambda = 0.1
		te, tm := oracle.Medium{EtaR: v.EtaR, Sigma: v.Loss / oracle.LossPerSigma(lambda), MuR: v.MuR, Gain: v.Gain}.Reflectance(lambda, v.C)
		near(t, te, got.TE.Value(), 1e-13*v.Gain, v)
		near(t, tm, got.TM.Value(), 1e-13*v.Gain, v)
		if i == 0 {
			assert.Zero(t, got.TE)
			assert.Zero(t, got.TM)
		}
	}
}

func TestRecords(t *testing.T) {
	rng := rand.New(rand.NewPCG(635, 1))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	good := utdcheck.Record{Point: [3]float32{1, 2, 3}, Direction: [3]float32{0, 0, 2}, N0: [3]float32{0, 1, 0}, N1: [3]float32{-1, 0, 0}, TMin: -1, TMax: 1, Theta: 4.7}
	cases := []struct {
		change func(r *utdcheck.Record)
		status oracle.WedgeStatus
	}{
		{func(r *utdcheck.Record) {}, oracle.WedgeValid},
		{func(r *utdcheck.Record) { r.Theta = float32(2 * math.Pi) }, oracle.WedgeValid}, // above 2 pi by rounding
		{func(r *utdcheck.Record) { r.Theta = 6.2832 }, oracle.WedgeDegenerate},
		{func(r *utdcheck.Record) { r.Theta = 3.1415925 }, oracle.WedgeDegenerate},
		{func(r *utdcheck.Record) { r.Theta = 3.142 }, oracle.WedgeValid},
		{func(r *utdcheck.Record) { r.Theta = nan }, oracle.WedgeNotFinite},
		{func(r *utdcheck.Record) { r.Point[rng.IntN(3)] = nan }, oracle.WedgeNotFinite},
		{func(r *utdcheck.Record) { r.N0[rng.IntN(3)] = inf }, oracle.WedgeNotFinite},
		{func(r *utdcheck.Record) { r.N1[rng.IntN(3)] = nan }, oracle.WedgeNotFinite},
		{func(r *utdcheck.Record) { r.TMin = -inf }, oracle.WedgeNotFinite},
		{func(r *utdcheck.Record) { r.TMax = inf }, oracle.WedgeNotFinite},
		{func(r *utdcheck.Record) { r.Direction = [3]float32{} }, oracle.WedgeDegenerate},
		{func(r *utdcheck.Record) { r.Direction[rng.IntN(3)] = nan }, oracle.WedgeDegenerate},
		{func(r *utdcheck.Record) { r.Direction[rng.IntN(3)] = -inf }, oracle.WedgeDegenerate},
		{func(r *utdcheck.Record) { r.Direction, r.Theta = [3]float32{}, nan }, oracle.WedgeNotFinite},
		{func(r *utdcheck.Record) { r.Direction = [3]float32{0, 0, 1e-40} }, oracle.WedgeValid},
		{func(r *utdcheck.Record) { r.Direction = [3]float32{0, 0, -3e38} }, oracle.WedgeValid},
		{func(r *utdcheck.Record) { r.N0 = [3]float32{0, 1.0009, 0} }, oracle.WedgeValid},
		{func(r *utdcheck.Record) { r.N0 = [3]float32{0, 1.0011, 0} }, oracle.WedgeDegenerate},
		{func(r *utdcheck.Record) { r.N0 = [3]float32{0, 0.9989, 0} }, oracle.WedgeDegenerate},
		{func(r *utdcheck.Record) { r.N0 = [3]float32{0, 1, 0.0009} }, oracle.WedgeValid},
		{func(r *utdcheck.Record) { r.N0 = [3]float32{0, 1, -0.0011} }, oracle.WedgeDegenerate},
		{func(r *utdcheck.Record) { r.TMin, r.TMax = 0, 0.9e-6 }, oracle.WedgeDegenerate},
		{func(r *utdcheck.Record) { r.TMin, r.TMax = 0, 1.1e-6 }, oracle.WedgeValid},
		{func(r *utdcheck.Record) { r.TMin, r.TMax = 1, -1 }, oracle.WedgeDegenerate},
	}
	var in []utdcheck.Record
	for _, c := range cases {
		r := good
		c.change(&r)
		in = append(in, r)
	}
	for i, got := range utdcheck.Records(t, stream(t), in) {
		require.EqualValues(t, cases[i].status, got.Status, "%+v", in[i])
		if cases[i].status == oracle.WedgeValid {
			d := in[i].Direction
			want := unit(vec{float64(d[0]), float64(d[1]), float64(d[2])})
			assert.InDelta(t, want[2], got.Wedge.Direction[2], 2*ulp)
			assert.Equal(t, vec{1, 2, 3}, got.Wedge.Point)
			assert.Equal(t, float64(in[i].N0[1]), got.Wedge.N0[1])
			assert.Equal(t, vec{-1, 0, 0}, got.Wedge.N1)
			assert.Equal(t, [3]float64{float64(in[i].TMin), float64(in[i].TMax), float64(in[i].Theta)}, [3]float64{got.Wedge.TMin, got.Wedge.TMax, got.Wedge.Theta})
		}
	}
}

func TestStatuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(-1)
	a, b, up := vec{-1.2, 0.8, -0.1}, vec{1, 1.1, -0.1}, vec{0, 0, 1}
	edge := func(min, max float64, mode uint32) func(r *utdcheck.Row) {
		return func(r *utdcheck.Row) { r.Wedge.TMin, r.Wedge.TMax, r.EdgeMode = min, max, mode }
	}
	scale := 1 / math.Sqrt(wavelength/2/(1/1.4422205+1/1.4866069)) // Fresnel parameters per metre at the point -0.1
	cases := []struct {
		source, target vec
		change         func(r *utdcheck.Row)
		status         oracle.WedgeStatus
	}{
		{a, b, nil, oracle.WedgeValid},
		{vec{nan, 0.8, 0}, b, nil, oracle.WedgeNotFinite},
		{a, vec{1, inf, 0}, nil, oracle.WedgeNotFinite},
		{a, b, func(r *utdcheck.Row) { r.Polarization[1] = nan }, oracle.WedgeNotFinite},
		{vec{0, 0, 1}, vec{0, 0, -1}, nil, oracle.WedgeDegenerate},
		{vec{0, 0, 1}, b, nil, oracle.WedgeDegenerate},
		{a, vec{0, 0, 1}, nil, oracle.WedgeDegenerate},
		{a, a, nil, oracle.WedgeValid},
		{at(1e-8, 1, -1), at(1e-8, 2, 1), nil, oracle.WedgeDegenerate}, // along the edge
		{at(0.9e-4, 1, 0), b, edge(-2, 2, utdcheck.Fresnel), oracle.WedgeDegenerate},
		{a, at(0.9e-4, 1, 0), nil, oracle.WedgeDegenerate},
		{at(1.5e-4, 1, -0.1), b, nil, oracle.WedgeValid},
		{a, b, edge(-0.1+1e-9, 1, utdcheck.Interior), oracle.WedgeOffEdge},
		{a, b, edge(-1, -0.1-1e-9, utdcheck.Interior), oracle.WedgeOffEdge},
		{a, b, edge(-0.1-1e-9, 1, utdcheck.Interior), oracle.WedgeValid},
		{vec{-1.2, 0.8, 0}, vec{1, 1.1, 0}, edge(0, 1, utdcheck.Interior), oracle.WedgeOffEdge}, // at the very end
		{a, b, edge(-0.1+1e-9, 1, utdcheck.Fresnel), oracle.WedgeValid},
		{a, b, edge(-0.1+2.999/scale, 1, utdcheck.Fresnel), oracle.WedgeValid},
		{a, b, edge(-0.1+3.001/scale, 1, utdcheck.Fresnel), oracle.WedgeOffEdge},
		{a, b, edge(-1, -0.1-2.999/scale, utdcheck.Fresnel), oracle.WedgeValid},
		{a, b, edge(-1, -0.1-3.001/scale, utdcheck.Fresnel), oracle.WedgeOffEdge},
		{vec{1, -1, 0}, vec{-1, 1, 0}, nil, oracle.WedgeInside},
		{vec{1, -1, 0}, vec{-1, 1, 0}, edge(1, 2, utdcheck.Interior), oracle.WedgeOffEdge},
		{vec{1, -0.9e-6, 0}, vec{-1, 1, 0}, nil, oracle.WedgeValid},
		{vec{1, -1.1e-6, 0}, vec{-1, 1, 0}, nil, oracle.WedgeInside},
		{vec{0.9e-6, -1, 0}, vec{-1, 1, 0}, nil, oracle.WedgeValid},
		{vec{-1, 1, 0}, vec{1, -1, 0}, nil, oracle.WedgeValid}, // the target is not asked
	}
	var rows []utdcheck.Row
	for _, c := range cases {
		r := corner(c.source, c.target, up)
		if c.change != nil {
			c.change(&r)
		}
		rows = append(rows, r)
	}
	for i, got := range utdcheck.Field(t, stream(t), rows) {
		require.EqualValues(t, cases[i].status, got.Status, "case %d", i)
		if got.Status != 0 {
			continue
		}
		_, status, f := expected(rows[i])
		require.Equal(t, cases[i].status, status, "case %d", i)
		if i != 11 { // with the source next to the edge, the oracle's angles have few digits
			largest := wavelength / (4 * math.Pi * got.Path.Length)
			assert.LessOrEqual(t, distance(f.E, value(got.Field)), fit*largest, "case %d", i)
		}
	}
}

// The loss of a medium that does not conduct is zero at any wavelength.
func TestMediaWithoutLoss(t *testing.T) {
	rows, _ := blocks()
	for i := range rows {
		rows[i].Medium0.Sigma, rows[i].MediumN.Sigma = 0, 0
	}
	rows = append(rows, rows...)
	for i := range rows[8:] {
		rows[8+i].LossPerSigma = math.Inf(1)
	}
	got := utdcheck.Field(t, stream(t), rows)
	for i := range 8 {
		_, _, f := expected(rows[i])
		assert.LessOrEqual(t, distance(f.E, value(got[i].Field)), fit*norm(f.E)+1e-16)
		assert.Equal(t, got[i], got[8+i])
	}
}

// Exactly on a boundary is on its lit side, although angles are rounded.
func TestBoundariesAreLit(t *testing.T) {
	rng := rand.New(rand.NewPCG(636, 1))
	up := vec{0, 0, 1}
	var rows []utdcheck.Row
	for i := range 400 {
		angle := math.Pi / 2 * rng.Float64()
		source, rho := at(1, angle, 0), 1+rng.Float64()
		on, lit := scaled(source, -rho), at(rho, angle+math.Pi-1e-9, 0) // straight on
		if i%2 == 0 {
			on, lit = vec{-rho * source[0], rho * source[1], 0}, at(rho, math.Pi-angle-1e-9, 0) // mirrored at face 0
		}
		rows = append(rows, corner(source, on, up), corner(source, lit, up))
	}
	got := utdcheck.Field(t, stream(t), rows)
	for i := 0; i < len(got); i += 2 {
		require.Zero(t, got[i].Status)
		a, b := value(got[i].Field), value(got[i+1].Field)
		// Across the boundary the field changes by a whole ray: its sign turns, mostly.
		assert.LessOrEqual(t, distance(a, b), 1e-5*wavelength/(4*math.Pi*got[i].Path.Length), "row %d", i)
	}
}
