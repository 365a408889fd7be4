package scene_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// tubeCase is rays of which float64 is sure, and what it says of each.
type tubeCase struct {
	exactCase
	pol    []float32
	left   [][]oracle.Deposit
	met    [][]oracle.TubeEvent
	drawn  int // rays, those that float64 is not sure of among them
	oracle oracle.Tubes
}

func randomTubes(rng *rand.Rand, n int, axis scene.Axis, weight scene.FieldWeight) *tubeCase {
	c := &tubeCase{}
	c.mesh = join(moved(scaled(unitCube(), 1.5), vec{-.25, -.25, -.25}), randomSoup(rng, 12, .5))
	c.media = randomMedia(rng, len(c.mesh.Faces)/3)
	c.grid = scene.Grid{Axis: axis, Position: .3 + .4*rng.Float32(), Min0: -.3, Max0: 1.3, Min1: -.2, Max1: 1, Res0: 5, Res1: 4}
	c.opt = scene.ReflGridOptions{
		Wavelength: 1.5, SolidAnglePerRay: 4 * math.Pi / float64(n), MaxBounces: 4, IncludeLOS: rng.IntN(2) == 0, FieldWeight: weight,
		CollectWedges: true, CollectWedgePrefixes: true, WedgeCapacity: 4 * n,
	}
	c.oracle = oracle.Tubes{
		Oracle: oracle.New(c.mesh.Vertices, c.mesh.Faces), Media: c.medium,
		Wavelength: c.opt.Wavelength, SolidAngle: c.opt.SolidAnglePerRay, Bounces: c.opt.MaxBounces,
		Direct: c.opt.IncludeLOS, ByArea: weight == scene.WeightArea,
		Axis: axis.Number(), Position: float64(c.grid.Position),
		Min: [2]float64{float64(c.grid.Min0), float64(c.grid.Min1)}, Max: [2]float64{float64(c.grid.Max0), float64(c.grid.Max1)},
		Res: [2]int{int(c.grid.Res0), int(c.grid.Res1)},
	}
	for range n {
		c.draw(rng)
	}
	return c
}

func (c *tubeCase) medium(prim int) oracle.Medium {
	i := c.media.Index[prim]
	return oracle.Medium{
		EtaR: float64(c.media.EtaR[i]), Sigma: float64(c.media.Sigma[i]), MuR: float64(c.media.MuR[i]),
		Gain: float64(c.media.Gain[i]), Absorbs: !c.media.Valid[i],
	}
}

// draw adds a ray, unless float64 is not sure of it.
func (c *tubeCase) draw(rng *rand.Rand) {
	point := func() vec { return vec{rng.Float32(), rng.Float32(), rng.Float32()} }
	r := oracle.Tube{O: point(), D: randomDirection(rng), TMax: inf, Polarization: randomDirection(rng)}
	r.Tx = r.O
	if rng.IntN(3) == 0 {
		r.Tx = point() // not where the ray starts
	}
	if rng.IntN(4) == 0 {
		r.TMax = .8 * rng.Float32()
	}
	c.drawn++
	left, met, doubtful := c.oracle.Follow(r)
	if doubtful {
		return
	}
	c.add(r.O, r.D)
	c.tmax, c.active = append(c.tmax, r.TMax), append(c.active, 1)
	c.tx, c.pol = append(c.tx, r.Tx[:]...), append(c.pol, r.Polarization[:]...)
	c.left, c.met = append(c.left, left), append(c.met, met)
}

func (c *tubeCase) run(r *rig) grids {
	r.Helper()
	opt := c.opt
	opt.Materials, opt.TxPosition, opt.TxPolarization = r.materials(c.media), toDevice(r, c.tx), toDevice(r, c.pol)
	return r.accumulateTubes(c.batch, c.grid, opt)
}

// requireDeposits compares grids with float64: counts of cells are equal, floats within
// 1e-5 of the largest of their kind and what single precision may do to the terms, whose
// errors are independent of each other: they add up by their squares.
func (c *tubeCase) requireDeposits(t *testing.T, got grids) {
	t.Helper()
	cells := c.grid.Cells()
	counts, power := make([]uint32, cells), make([]float64, cells)
	field := make([][6]float64, cells)
	powerTol, fieldTol := make([]float64, cells), make([]float64, cells) // squared
	base, total := c.oracle.Base(), int64(0)
	depths := map[int]bool{}
	for _, left := range c.left {
		for _, d := range left {
			depths[d.Depth] = true
			counts[d.Cell]++
			total++
			power[d.Cell] += base * base * d.Power
			powerTol[d.Cell] += math.Pow(base*base*d.Power*d.PowerTol, 2)
			fieldTol[d.Cell] += base * base * d.Field.Power() * d.FieldTol * d.FieldTol
			for k, f := range d.Field {
				field[d.Cell][2*k] += base * real(f)
				field[d.Cell][2*k+1] += base * imag(f)
			}
		}
	}
	require.Equal(t, counts, got.cellCount)
	require.Equal(t, total, got.count)
	require.Greater(t, total, int64(c.rows())/4, "too few contributions to mean anything")
	require.GreaterOrEqual(t, len(depths), c.opt.MaxBounces, "no contributions of some depth")
	mostPower, mostField := 0.0, 0.0
	for i := range power {
		mostPower = max(mostPower, power[i])
		for _, f := range field[i] {
			mostField = max(mostField, math.Abs(f))
		}
	}
	for i := range power {
		require.InDelta(t, power[i], got.power[i], 1e-5*mostPower+math.Sqrt(powerTol[i]), "power of cell %d", i)
		for k, f := range field[i] {
			require.InDelta(t, f, got.field[k][i], 1e-5*mostField+math.Sqrt(fieldTol[i]), "component %d of cell %d", k, i)
		}
	}
}

// requireEvents compares wedge events with float64.
func (c *tubeCase) requireEvents(t *testing.T, w wedges) {
	t.Helper()
	at := 0
	near := func(want [3]float64, got []float32, ray int) {
		t.Helper()
		for k := range want {
			require.InDelta(t, want[k], got[k], 2e-4, "ray %d", ray)
		}
	}
	for ray, met := range c.met {
		d := c.d[3*ray : 3*ray+3]
		length := math.Sqrt(float64(d[0])*float64(d[0]) + float64(d[1])*float64(d[1]) + float64(d[2])*float64(d[2]))
		for _, e := range met {
			require.Equal(t, [3]int64{int64(ray), int64(e.Prim), int64(e.Depth)}, [3]int64{w.ray[at], int64(w.prim[at]), int64(w.depth[at])})
			near(e.P, w.point[3*at:], ray)
			near(e.N, w.normal[3*at:], ray)
			near(e.K, w.direction[3*at:], ray)
			near(e.Source, w.source[3*at:], ray)
			near([3]float64{float64(d[0]) / length, float64(d[1]) / length, float64(d[2]) / length}, w.dir[3*at:], ray)
			require.InDelta(t, e.Power, w.power[at], 1e-4*c.opt.SolidAnglePerRay, "ray %d", ray)
			at++
		}
	}
	require.EqualValues(t, at, w.count)
	require.Greater(t, at, c.rows())
	rest := len(w.ray) - at
	require.True(t, reflect.DeepEqual(unusedWedges(rest), w.part(at, at+rest).exact()), "slots without an event")
}

// Random rays in random scenes of random media, on both backends, against float64 and
// brute force; on a GPU also against the emulator, bit for bit.
func TestReflGridRandomScenes(t *testing.T) {
	rng := rand.New(rand.NewPCG(66, 1))
	n := 200
	if gputest.Native() {
		n = 20000
	}
	var cases []*tubeCase
	for _, axis := range []scene.Axis{scene.AxisX, scene.AxisY, scene.AxisZ} {
		for _, w := range []scene.FieldWeight{scene.WeightSqrtArea, scene.WeightArea} {
			c := randomTubes(rng, n, axis, w)
			require.Greater(t, c.rows(), c.drawn/2, "float64 is not sure of most rays")
			cases = append(cases, c)
		}
	}
	answers := map[*tubeCase]grids{}
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		for _, c := range cases {
			got := c.run(open(c.mesh))
			c.requireDeposits(t, got)
			c.requireEvents(t, got.wedges)
			if first, ok := answers[c]; ok {
				requireSameGrids(t, first, got, "both backends")
			}
			answers[c] = got
		}
	})
	if gputest.Native() && !t.Failed() {
		for _, c := range cases {
			requireSameGrids(t, emulated(t, c), answers[c], "emulator and GPU")
		}
	}
}

// emulated runs a case on the emulator.
func emulated(t *testing.T, c *tubeCase) grids {
	t.Helper()
	api, err := emu.New(1)
	require.NoError(t, err)
	driver, err := cuda.OpenAPI(api)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, driver.Close()) })
	r := sceneOn(t, driver.Devices()[0], scene.CUDA)
	r.add(c.mesh)
	require.NoError(t, r.Build(background))
	return c.run(r)
}

// Grids follow the vertices of the scene.
func TestReflGridFollowsChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(67, 1))
	c := randomTubes(rng, 100, scene.AxisZ, scene.WeightSqrtArea)
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(dynamic(moved(c.mesh, vec{.3, .2, .1})))
		before := c.run(r)
		r.update(0, c.mesh)
		r.sync()
		got := c.run(r)
		c.requireDeposits(t, got)
		require.NotEqual(t, before.words, got.words)
	})
}

// A failing call of the driver fails the query, leaves nothing behind, and the next one is
// right.
func TestReflGridFailures(t *testing.T) {
	c := caseA3()
	requireFailingCallsToBeNoticed(t, c.mesh, func(r *rig) func(scene.CallOption) (scene.Reusable, error) {
		rays := r.upload(c.ray)
		c.opt.Materials, c.opt.TxPosition = r.materials(oneMedium(c.mesh, c.eta, true)), toDevice(r, c.tx[:])
		c.opt.CollectWedges, c.opt.WedgeCapacity = true, 4
		r.ForceCopies(2)
		return func(opt scene.CallOption) (scene.Reusable, error) {
			g, err := r.AccumulateReflections(background, rays, c.grid, c.opt, opt)
			if err != nil {
				return nil, err // a nil *ReflGrids is not a nil Reusable
			}
			return g, nil
		}
	})
}
