package scene_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// smallDevice is an empty scene on a virtual device with one multiprocessor.
func smallDevice(t testing.TB) *rig {
	t.Helper()
	driver, err := cuda.OpenEmulator(1, emu.WithSMs(1))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, driver.Close()) })
	return sceneOn(t, driver.Devices()[0], scene.CUDA)
}

// A virtual device with one multiprocessor gives its blocks many rounds of lanes. Its
// results are those of a large one, of a GPU where the tests run on one, and of both
// backends.
func TestDfrLanesAreTheSameOnAllDevices(t *testing.T) {
	side := 3
	if gputest.Native() {
		side = 12
	}
	var rows, compact pathRows
	var grids coherentGrids
	devices, _ := optixDevices(t, 1)
	for i, r := range []*rig{smallDevice(t), sceneOn(t, devices[0], scene.CUDA), sceneOn(t, devices[0], scene.OptiX)} {
		rng := rand.New(rand.NewPCG(95, 96))
		d := randomBoxesOn(r, rng, 4)
		b := randomPathBatch(rng, d, side, 3*side)
		grid := randomGrid(rng, int32(side), int32(3*side))
		o := scene.DfrCoherentOptions{Wavelength: d.lambda, Materials: d.materials, TxPolarization: randomVec(rng, 1), KeepWords: true}
		haveRows := d.paths(b)
		b.layout = scene.Compact
		haveCompact, haveGrids := d.paths(b), d.coherent(grid, o)
		if i == 0 {
			rows, compact, grids = haveRows, haveCompact, haveGrids
			require.Greater(t, rows.count, int64(50))
			continue
		}
		require.Equal(t, rows.bits(), haveRows.bits())
		require.Equal(t, compact.bits(), haveCompact.bits())
		require.Equal(t, grids.bits(), haveGrids.bits())
	}
}

// TestDfrLanesTime prints the times of calls on a GPU, from a synchronised device to a
// synchronised device.
func TestDfrLanesTime(t *testing.T) {
	if !gputest.Native() {
		t.Skip("times of an emulator mean nothing")
	}
	rng := rand.New(rand.NewPCG(97, 98))
	boxes := randomBoxes(t, rng, 8)
	city := workload.City(workload.SceneSeed, 12)
	r := build(t, scene.Mesh{Vertices: city.Vertices, Faces: city.Faces})
	lo, hi := r.Bounds()
	source := vec{(lo[0] + hi[0]) / 2, (lo[1] + hi[1]) / 2, 1.2 * hi[2]}
	states, report := r.dfrStates(scene.DfrStateOptions{Src: source, SrcPower: 1})
	t.Logf("city: %d faces, %+v", len(city.Faces)/3, report)
	town := r.dfrScene(*states, scene.Materials{}, .1)
	for _, c := range []struct {
		name string
		d    *dfrScene
		res  int32
	}{{"boxes", boxes, 16}, {"boxes", boxes, 128}, {"boxes", boxes, 512}, {"city", town, 16}, {"city", town, 64}} {
		lo, hi := c.d.Bounds()
		grid := scene.Grid{Position: lo[2] + .3*(hi[2]-lo[2]), Min0: lo[0], Max0: hi[0], Min1: lo[1], Max1: hi[1], Res0: c.res, Res1: c.res}
		lanes := float64(grid.Cells()) * float64(c.d.states.Count())
		if lanes > 1<<29 {
			continue
		}
		for _, open := range []bool{false, true} {
			o := scene.DfrCoherentOptions{Wavelength: c.d.lambda, Materials: c.d.materials, SkipVisibility: open}
			var a *scene.DfrCoherentAccum
			took := c.d.times(10, func() (err error) {
				a, err = c.d.AccumDfrCoherentDirect(background, c.d.states, grid, o, scene.Into(a))
				return err
			})
			counts, err := a.ReadCounters(background)
			require.NoError(t, err)
			require.NoError(t, a.Close())
			t.Logf("coherent %-6s %4d^2 x %6d, open %-5v %9.3f ms, %7.3f ns per lane  %+v",
				c.name, c.res, c.d.states.Count(), open, took.Seconds()*1e3, took.Seconds()*1e9/lanes, counts)
		}
		if lanes > 1<<27 {
			continue
		}
		tx, rx := toDevice(c.d.rig, source[:]), toDevice(c.d.rig, flat(centres(grid)))
		for _, layout := range []scene.DfrPathLayout{scene.SourceLane, scene.Compact} {
			o := c.d.options(pathBatch{active: all(c.d.states.Count()), layout: layout})
			var p *scene.DfrPaths
			took := c.d.times(10, func() (err error) {
				p, err = c.d.TraceDfrPaths(background, tx, rx, c.d.states, o, scene.Into(p))
				return err
			})
			n, err := p.ReadCount(background)
			require.NoError(t, err)
			require.NoError(t, p.Close())
			t.Logf("paths    %-6s %4d^2 x %6d, %-11s %9.3f ms, %7.3f ns per row   %d valid",
				c.name, c.res, c.d.states.Count(), layout, took.Seconds()*1e3, took.Seconds()*1e9/lanes, n)
		}
	}
}

// times is the shortest of so many calls.
func (r *rig) times(calls int, call func() error) time.Duration {
	r.Helper()
	var all []time.Duration
	for range calls {
		require.NoError(r, r.Stream().Synchronize(background))
		start := time.Now()
		require.NoError(r, call())
		require.NoError(r, r.Stream().Synchronize(background))
		all = append(all, time.Since(start))
	}
	return slices.Min(all)
}
