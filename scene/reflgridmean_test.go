package scene_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// sphere is n directions from one point that cover the sphere evenly.
func sphere(n int, from vec) batch {
	var b batch
	golden := math.Pi * (3 - math.Sqrt(5))
	for i := range n {
		z := 1 - (2*float64(i)+1)/float64(n)
		sin, cos := math.Sincos(golden * float64(i))
		r := math.Sqrt(1 - z*z)
		b.add(from, vec{float32(r * cos), float32(r * sin), float32(z)})
	}
	return b
}

// sphereRows is the rays of means that are known.
func sphereRows() int {
	if gputest.Native() {
		return 200000
	}
	return 10000
}

// caseA9 is a fan over one cell below the transmitter.
func caseA9(n int) gridCase {
	return gridCase{
		mesh: moved(meshFloor(), vec{0, 0, -3}), ray: sphere(n, vec{0, 0, 1}), tx: vec{0, 0, 1}, pol: vec{1, 0, 0}, eta: 4,
		grid: square(scene.AxisZ, 0, -.5, .5, 1),
		opt:  scene.ReflGridOptions{Wavelength: 1, SolidAnglePerRay: 4 * math.Pi / float64(n), IncludeLOS: true},
	}
}

func TestReflGridA9MeanOfTheGain(t *testing.T) {
	got := caseA9(sphereRows()).run(t)
	require.InEpsilon(t, .00547127156, got.power[0], .04)
	require.InEpsilon(t, .863988574/(16*math.Pi*math.Pi), got.power[0], .04)
}

func TestReflGridA10BrewsterAngle(t *testing.T) {
	c := caseA3()
	c.ray = ray(vec{0, 0, 2}, vec{2, 0, -1})
	c.grid = square(scene.AxisZ, 1, -16, 16, 32)
	got := c.run(t)
	direct, reflected := 16*32+18, 16*32+22 // the plane is met at x = 2 and 6
	require.Greater(t, got.power[direct], float32(0))
	require.Less(t, float64(got.power[reflected]), 1e-12*float64(got.power[direct]))
}

func TestReflGridA11BordersOfCells(t *testing.T) {
	c := gridCase{
		mesh: moved(meshFloor(), vec{0, 0, -3}), ray: ray(vec{0, 0, 1}, vec{0, 0, -1}), tx: vec{0, 0, 1}, pol: vec{1, 0, 0}, eta: 4,
		grid: square(scene.AxisZ, 0, 0, 1, 1),
		opt:  scene.ReflGridOptions{Wavelength: 4 * math.Pi, SolidAnglePerRay: 1, IncludeLOS: true},
	}
	require.EqualValues(t, 1, c.run(t).count, "the lower border belongs to the grid")
	c.grid = square(scene.AxisZ, 0, -1, 0, 1)
	require.Zero(t, c.run(t).count, "the upper border does not")
	c.grid = square(scene.AxisZ, 0, -1, 1, 2)
	require.Equal(t, []uint32{0, 0, 0, 1}, c.run(t).cellCount, "between cells")
}

func TestReflGridA12NoRays(t *testing.T) {
	c := caseA3()
	c.opt.CollectWedges, c.opt.WedgeCapacity = true, 3
	c.ray.active = []uint8{0}
	inactive := c.run(t)
	requireCells(t, inactive)
	require.Equal(t, unusedWedges(3), inactive.wedges.exact())
	c.ray = batch{}
	none := c.run(t)
	requireCells(t, none)
	requireSameGrids(t, inactive, none, "")
}

// A13: weighted by area the field is that of the wave, whatever the number of rays.
func TestReflGridA13MeanOfTheField(t *testing.T) {
	field := func(n int, w scene.FieldWeight) (complex128, float64) {
		c := caseA9(n)
		c.opt.Wavelength, c.opt.FieldWeight = 10, w
		got := c.run(t)
		require.Zero(t, got.status)
		f, power := got.cell(0)
		if w == scene.WeightArea {
			require.InDelta(t, 0, cmplx.Abs(f[1]), .02)
			require.InDelta(t, 0, cmplx.Abs(f[2]), .02)
		}
		return f[0], power
	}
	n := sphereRows()
	want := complex(.556476541, -.446342577)
	once, power := field(n, scene.WeightArea)
	require.InDelta(t, real(want), real(once), .02)
	require.InDelta(t, imag(want), imag(once), .02)
	require.InEpsilon(t, .547128, power, .02)
	require.InEpsilon(t, .508888, math.Pow(cmplx.Abs(once), 2), .04)
	twice, _ := field(2*n, scene.WeightArea)
	require.InDelta(t, 0, cmplx.Abs(twice-once), .02)
	sqrtOnce, sqrtPower := field(n, scene.WeightSqrtArea)
	sqrtTwice, _ := field(2*n, scene.WeightSqrtArea)
	require.InEpsilon(t, math.Sqrt2, cmplx.Abs(sqrtTwice)/cmplx.Abs(sqrtOnce), .02)
	require.Equal(t, power, sqrtPower, "the power has no such weight")
}

// Rows that are no rays count nothing and do not disturb others; transmitters that are not
// finite are told.
func TestReflGridOddRows(t *testing.T) {
	want := caseA3().run(t)
	rng := rand.New(rand.NewPCG(61, 1))
	c := caseA3()
	r := build(t, c.mesh)
	c.opt.Materials = r.materials(oneMedium(c.mesh, c.eta, true))
	b, tx, pol := batch{}, []float32{}, []float32{}
	add := func(o, d, at, p vec, tmax float32, active uint8) {
		b.add(o, d)
		b.tmax, b.active = append(b.tmax, tmax), append(b.active, active)
		tx, pol = append(tx, at[:]...), append(pol, p[:]...)
	}
	o, d, at, p := vec{0, 0, 2}, vec{1, 0, -1}, vec{0, 0, 2}, vec{0, 0, 1}
	bad := func(v vec) vec {
		v[rng.IntN(3)] = [2]float32{nan, inf}[rng.IntN(2)]
		return v
	}
	add(bad(o), d, at, p, inf, 1)
	add(o, bad(d), at, p, inf, 1)
	add(o, vec{}, at, p, inf, 1)
	add(o, d, at, p, nan, 1)
	add(o, d, at, p, inf, 0)
	add(bad(o), d, bad(at), p, inf, 1) // the ray is judged first
	add(o, d, bad(at), p, inf, 0)
	add(o, d, at, p, inf, 1)
	run := func() grids {
		c.opt.TxPosition, c.opt.TxPolarization = toDevice(r, tx), toDevice(r, pol)
		return r.accumulateTubes(b, c.grid, c.opt)
	}
	requireSameGrids(t, want, run(), "")
	add(o, d, bad(at), p, inf, 1)
	got := run()
	require.Equal(t, scene.StatusNotFinite, got.status)
	require.Equal(t, want.words, got.words)
	// Also where no leg counts.
	none := c.opt
	c.opt.MaxBounces, c.opt.IncludeLOS = 0, false
	got = run()
	require.Equal(t, scene.StatusNotFinite, got.status)
	require.Zero(t, got.count)
	c.opt = none
	b, tx, pol = b.part(0, b.rows()-1), tx[:len(tx)-3], pol[:len(pol)-3]
	add(o, d, at, bad(p), inf, 1)
	got = run()
	require.Equal(t, scene.StatusNotFinite, got.status)
	require.Equal(t, want.words, got.words)
}

// Polarization along the ray, or none, is any that is across; absent it is x.
func TestReflGridPolarization(t *testing.T) {
	c := caseA3()
	c.pol = vec{0, 1, 0} // perp(k) of a ray that is not steep is the part of z across it
	across := c.run(t)
	c.pol = vec{0, 1e3, 0}
	requireSameGrids(t, across, c.run(t), "its length does not matter")
	c.pol = vec{0, 0, 1}
	fixed := c.run(t)
	for _, p := range []vec{{}, {1, 0, -1}} {
		c.pol = p
		requireSameGrids(t, fixed, c.run(t), "")
	}
	c.pol = vec{1, 0, 0}
	x := c.run(t)
	r := build(t, c.mesh)
	c.opt.TxPosition, c.opt.Materials = toDevice(r, c.tx[:]), r.materials(oneMedium(c.mesh, c.eta, true))
	c.opt.TxPolarization = cuda.Slice[float32]{}
	requireSameGrids(t, x, r.accumulateTubes(c.ray, c.grid, c.opt), "")
}
