package utdcheck_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
	"github.com/raymux/raymux/tests/utdcheck"
)

func norm(e oracle.Field) float64 { return math.Sqrt(e.Power()) }

// ray is the field of a wave that travels from a point without meeting anything.
func ray(from, to, polarization vec, lambda float64) (oracle.Field, vec) {
	d := sub(to, from)
	length := math.Sqrt(dot(d, d))
	k := scaled(d, 1/length)
	u := oracle.Transverse(polarization, k)
	a := complex(lambda/(4*math.Pi*length), 0) * cmplx.Exp(complex(0, -2*math.Pi*length/lambda))
	return oracle.Field{a * complex(u[0], 0), a * complex(u[1], 0), a * complex(u[2], 0)}, k
}

// geometric is the field that geometrical optics gives over the wedge of a row, which
// stands in the standard place: the direct ray, and the reflection at either face.
func geometric(r utdcheck.Row, from, phi float64) (sum oracle.Field) {
	plus := func(e oracle.Field) {
		for c := range sum {
			sum[c] += e[c]
		}
	}
	if math.Abs(phi-from) <= math.Pi {
		e, _ := ray(r.Source, r.Target, r.Polarization, r.Wavelength)
		plus(e)
	}
	reflect := func(n vec, m *oracle.Medium) {
		if m == nil {
			return
		}
		// The incident wave, at the distance of the whole path.
		mirrored := sub(r.Target, scaled(n, 2*dot(r.Target, n)))
		e, k := ray(r.Source, mirrored, r.Polarization, r.Wavelength)
		plus(e.Reflect(k, n, *m, r.Wavelength))
	}
	if phi+from <= math.Pi {
		reflect(r.Wedge.N0, medium(r.Medium0, r.Reflects0))
	}
	if phi+from >= 2*r.Wedge.Theta-math.Pi {
		reflect(r.Wedge.N1, medium(r.MediumN, r.ReflectsN))
	}
	return sum
}

func TestFieldsAreTheOracles(t *testing.T) {
	rng := rand.New(rand.NewPCG(621, 1))
	var rows []utdcheck.Row
	for i := range 2000 {
		r := randomRow(rng)
		if i%4 == 0 {
			r.Medium0, r.MediumN = conductor, conductor
		}
		if i%3 == 0 { // an end of the edge is near
			r.EdgeMode = utdcheck.Fresnel
			p, _, _ := expected(r)
			r.Wedge.TMin, r.Wedge.TMax = p.T-rng.Float64(), p.T+rng.Float64()
		}
		if i%5 == 0 { // almost along the first leg: closer than 1e-6 an axis takes the place of the polarization
			p, _, _ := expected(r)
			along := unit(sub(p.Q, r.Source))
			across := unit(cross(along, r.Polarization))
			r.Polarization = add(along, scaled(across, math.Pow(10, -float64(4+rng.IntN(2)*3))))
		}
		rows = append(rows, randomMotion(rng, 10).row(r))
	}
	for i, got := range utdcheck.Field(t, stream(t), rows) {
		p, status, f := expected(rows[i])
		require.Equal(t, oracle.WedgeValid, status)
		require.EqualValues(t, status, got.Status)
		assert.InDelta(t, p.T, got.Path.T, 1e-12)
		assert.InDelta(t, p.Source, got.Path.SourceLength, 1e-12)
		assert.InDelta(t, p.Target, got.Path.TargetLength, 1e-12)
		assert.InDelta(t, p.Source+p.Target, got.Path.Length, 1e-12)
		// The phase loses digits of the shift, and the fit is relative to the largest term.
		largest := rows[i].Wavelength / (4 * math.Pi * got.Path.Length)
		assert.LessOrEqual(t, distance(f.E, value(got.Field)), fit*largest+1e-11*largest/rows[i].Wavelength, "row %d", i)
	}
}

// Wedges that are nearly a plane, and nearly a sheet.
func TestFieldsOfExtremeAngles(t *testing.T) {
	rng := rand.New(rand.NewPCG(641, 1))
	var rows []utdcheck.Row
	for i := range 2000 {
		theta := math.Pi * (1 + math.Pow(10, -1-7*rng.Float64()))
		switch i % 4 {
		case 1:
			theta = math.Pi * (2 - math.Pow(10, -1-7*rng.Float64()))
		case 2:
			theta = 2 * math.Pi
		case 3:
			theta = float64(float32(2 * math.Pi)) // as states store it, above 2 pi by rounding
		}
		r := randomRow(rng)
		r.Wedge = standard(theta)
		r.Source = at(0.2+3*rng.Float64(), theta*rng.Float64(), 4*rng.Float64()-2)
		r.Target = at(0.2+3*rng.Float64(), theta*rng.Float64(), 4*rng.Float64()-2)
		rows = append(rows, r)
	}
	for i, got := range utdcheck.Field(t, stream(t), rows) {
		_, status, f := expected(rows[i])
		require.Equal(t, oracle.WedgeValid, status)
		require.EqualValues(t, status, got.Status)
		largest := rows[i].Wavelength / (4 * math.Pi * got.Path.Length)
		assert.LessOrEqual(t, distance(f.E, value(got.Field)), fit*largest+1e-11*largest/rows[i].Wavelength, "row %d, theta %g", i, rows[i].Wedge.Theta)
	}
}

func TestExchangeOfFaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(622, 1))
	rows, _ := blocks()
	for range 200 {
		rows = append(rows, randomRow(rng))
	}
	count := len(rows)
	for _, r := range rows[:count] {
		rows = append(rows, exchanged(r))
	}
	got := utdcheck.Field(t, stream(t), rows)
	for i := range count {
		a, b := value(got[i].Field), value(got[count+i].Field)
		margin := 1e-14
		if i >= 8 { // at any angle, which is rounded differently from either face
			margin = 1e-12
		}
		assert.LessOrEqual(t, distance(a, b), margin*norm(a), "row %d", i)
		assert.InDelta(t, rows[i].Wedge.Theta, got[i].SourceAngle+got[count+i].SourceAngle, 1e-14)
	}
}

func TestRigidMotion(t *testing.T) {
	rng := rand.New(rand.NewPCG(623, 1))
	var rows []utdcheck.Row
	var motions []motion
	plain, _ := blocks()
	for range 20 {
		m := randomMotion(rng, 1)
		for _, r := range plain {
			motions = append(motions, m)
			rows = append(rows, m.row(r))
		}
	}
	st := stream(t)
	rest := utdcheck.Field(t, st, plain)
	for i, got := range utdcheck.Field(t, st, rows) {
		want := value(rest[i%len(plain)].Field)
		assert.LessOrEqual(t, distance(motions[i].field(want), value(got.Field)), 1e-12*norm(want), "V%d", i%len(plain)+1)
	}
}

// With conducting faces the field is that of the coefficients of the books.
func TestConductor(t *testing.T) {
	source := at(1.5, 0.8, 3)
	var rows []utdcheck.Row
	phis := []float64{0.3, 1.2, 2, 3, 4, 4.6}
	for _, phi := range phis {
		r := corner(source, at(2, phi, 0.4), vec{0.3, 0.2, 1})
		r.Medium0, r.MediumN = conductor, conductor
		rows = append(rows, r)
	}
	for i, got := range utdcheck.Field(t, stream(t), rows) {
		p, _, f := expected(rows[i])
		r := rows[i]
		ki, ko := unit(sub(p.Q, r.Source)), unit(sub(r.Target, p.Q))
		e := r.Wedge.Direction
		phiIn := scaled(unit(cross(e, ki)), -1)
		phiOut := unit(cross(e, ko))
		betaIn, betaOut := cross(ki, phiIn), cross(ko, phiOut)
		u := oracle.Transverse(r.Polarization, ki)
		scale := complex(wavelength/(4*math.Pi*p.Source)*math.Sqrt(p.Source/(p.Target*(p.Source+p.Target))), 0) *
			cmplx.Exp(complex(0, -2*math.Pi*(p.Source+p.Target)/wavelength))
		soft, hard := f.Incident-f.D0-f.DN, f.Incident+f.D0+f.DN
		a, b := -hard*complex(dot(u, phiIn), 0)*scale, -soft*complex(dot(u, betaIn), 0)*scale
		var want oracle.Field
		for c := range want {
			want[c] = a*complex(phiOut[c], 0) + b*complex(betaOut[c], 0)
		}
		assert.LessOrEqual(t, distance(want, value(got.Field)), 5e-6*norm(want), "phi = %g", phis[i])
		for _, m := range []utdcheck.Operator{got.Operator0, got.OperatorN} {
			near(t, -1, m.Phi.Value(), 1e-5)
			near(t, 1, m.Beta.Value(), 1e-5)
			near(t, 0, m.Cross.Value(), 1e-5)
		}
	}
}

// A conductor without loss of digits, at any angle; and across the edge.
func TestOperators(t *testing.T) {
	rng := rand.New(rand.NewPCG(624, 1))
	var rows []utdcheck.Row
	for i := range 300 {
		r := randomRow(rng)
		r.Reflects0, r.ReflectsN = 1, 1
		if i%2 == 0 {
			r.Medium0.Sigma, r.MediumN.Sigma = float32(math.Inf(1)), float32(math.Inf(1))
			r.Medium0.Gain, r.MediumN.Gain = 1, 1
		} else {
			r.Target[2] = r.Source[2]
		}
		rows = append(rows, r)
	}
	for i, got := range utdcheck.Field(t, stream(t), rows) {
		if i%2 == 0 {
			for _, m := range []utdcheck.Operator{got.Operator0, got.OperatorN} {
				near(t, -1, m.Phi.Value(), 1e-14)
				near(t, 1, m.Beta.Value(), 1e-14)
				near(t, 0, m.Cross.Value(), 1e-14)
			}
			continue
		}
		r := rows[i]
		p, _, _ := expected(r)
		c0, cn := math.Abs(math.Sin(p.SourceAngle)), math.Abs(math.Sin(r.Wedge.Theta-p.TargetAngle))
		if p.SourceAngle > r.Wedge.Theta/2 {
			c0, cn = math.Abs(math.Sin(p.TargetAngle)), math.Abs(math.Sin(r.Wedge.Theta-p.SourceAngle))
		}
		for _, face := range []struct {
			m utdcheck.Operator
			f *oracle.Medium
			c float64
		}{{got.Operator0, medium(r.Medium0, 1), c0}, {got.OperatorN, medium(r.MediumN, 1), cn}} {
			te, tm := face.f.Reflectance(r.Wavelength, face.c)
			near(t, -tm, face.m.Phi.Value(), 1e-12)
			near(t, -te, face.m.Beta.Value(), 1e-12)
			near(t, 0, face.m.Cross.Value(), 1e-14)
		}
	}
}

func TestPublishedContinuity(t *testing.T) {
	table := []struct {
		z, phi, jump, step float64
		total              oracle.Field
	}{
		{0, 130, 2.1e-7, 0.3187, oracle.Field{5.278580e-04 - 1.362151e-04i, 5.697667e-04 - 1.940984e-04i, 2.402546e-03 - 5.090745e-04i}},
		{0, 230, 1.3e-8, 2.0373, oracle.Field{9.913092e-05 - 1.055439e-04i, 1.619649e-05 - 1.005871e-05i, 6.661144e-04 - 6.610429e-04i}},
		{3, 130, 1.1e-7, 0.2528, oracle.Field{1.033234e-03 + 8.249463e-04i, -9.417562e-04 - 7.626451e-04i, -1.097067e-03 - 8.543802e-04i}},
		{3, 230, 1.2e-8, 2.0344, oracle.Field{-1.616684e-04 - 1.121612e-04i, -3.416002e-04 - 2.536163e-04i, 4.921531e-04 + 3.585846e-04i}},
	}
	var rows []utdcheck.Row
	var phis []float64
	for _, row := range table {
		for _, shift := range []float64{-1e-9, 1e-9} {
			phi := degrees(row.phi) + shift
			rows = append(rows, corner(at(1.5, degrees(50), row.z), at(2, phi, 0.4), vec{0.3, 0.2, 1}))
			phis = append(phis, phi)
		}
	}
	got := utdcheck.Field(t, stream(t), rows)
	for i, row := range table {
		var total, part [2]oracle.Field
		for k := range 2 {
			part[k] = value(got[2*i+k].Field)
			total[k] = geometric(rows[2*i+k], degrees(50), phis[2*i+k])
			for c := range total[k] {
				total[k][c] += part[k][c]
			}
			assert.LessOrEqual(t, distance(row.total, total[k]), 4e-7*norm(row.total), "%g, %g", row.z, row.phi)
		}
		difference := func(a, b oracle.Field) float64 {
			return norm(oracle.Field{a[0] - b[0], a[1] - b[1], a[2] - b[2]})
		}
		assert.InDelta(t, row.step, difference(part[0], part[1])/norm(total[0]), 1e-4, "%g, %g", row.z, row.phi)
		assert.LessOrEqual(t, difference(total[0], total[1])/norm(total[0]), 1.1*row.jump+2*fit, "%g, %g", row.z, row.phi)
	}
}

// The sum of all fields has no step at any boundary, for any wedge, polarization,
// obliquity and medium.
func TestContinuity(t *testing.T) {
	rng := rand.New(rand.NewPCG(625, 1))
	const shift = 1e-9
	var rows []utdcheck.Row
	var angles [][2]float64
	kinds := map[string]int{}
	for range 400 {
		r := randomRow(rng)
		theta := r.Wedge.Theta
		from, _, _ := expected(r)
		source := from.SourceAngle
		for name, phi := range map[string]float64{"behind face n": source + math.Pi, "behind face 0": source - math.Pi,
			"face 0": math.Pi - source, "face n": 2*theta - math.Pi - source} {
			if phi < 0.01 || phi > theta-0.01 {
				continue
			}
			kinds[name]++
			rho, z := 0.2+3*rng.Float64(), 4*rng.Float64()-2
			for _, s := range []float64{-shift, shift} {
				side := r
				side.Target = at(rho, phi+s, z)
				rows, angles = append(rows, side), append(angles, [2]float64{source, phi + s})
			}
		}
	}
	require.Len(t, kinds, 4)
	got := utdcheck.Field(t, stream(t), rows)
	for i := 0; i < len(rows); i += 2 {
		var total, parts [2]oracle.Field
		for k := range 2 {
			require.Zero(t, got[i+k].Status)
			parts[k] = value(got[i+k].Field)
			total[k] = geometric(rows[i+k], angles[i+k][0], angles[i+k][1])
			for c := range total[k] {
				total[k][c] += parts[k][c]
			}
		}
		r := rows[i]
		// What the motion of the target changes: two nanometres per metre, in wavelengths.
		length := got[i].Path.Length
		motion := 2 * shift * 4 * 2 * math.Pi / r.Wavelength
		largest := r.Wavelength / (4 * math.Pi * length)
		assert.LessOrEqual(t, distance(total[0], total[1]), (4*motion+4*fit)*largest, "row %d: %v", i, angles[i])
	}
}

// A row is the same bits on every device, and in any place of a batch.
func TestSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(626, 1))
	count := 400
	if gputest.Native() {
		count = 1 << 13
	}
	var rows, shuffled []utdcheck.Row
	for range count {
		r := randomMotion(rng, 10).row(randomRow(rng))
		r.EdgeMode = rng.Uint32N(2)
		rows = append(rows, r)
	}
	order := rng.Perm(count)
	for _, i := range order {
		shuffled = append(shuffled, rows[i])
	}
	api, err := emu.New(1)
	require.NoError(t, err)
	driver, err := cuda.OpenAPI(api)
	require.NoError(t, err)
	defer func() { require.NoError(t, driver.Close()) }()
	c, err := driver.Devices()[0].Retain()
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	st, err := c.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()

	got := utdcheck.Field(t, stream(t), rows)
	for k, want := range utdcheck.Field(t, st, shuffled) {
		require.Equal(t, want, got[order[k]], "row %d", order[k])
	}
}
