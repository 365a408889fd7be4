package scene_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// TestReflGridTime prints the time of one call on a GPU, from a synchronised device to a
// synchronised device, for lanes that wait for each other, copies of the sums, hot cells and
// scattered ones.
func TestReflGridTime(t *testing.T) {
	if !gputest.Native() {
		t.Skip("times of an emulator mean nothing")
	}
	const n = 1 << 22
	city := workload.City(workload.SceneSeed, workload.CityLots)
	r := build(t, scene.Mesh{Vertices: city.Vertices, Faces: city.Faces, NoEdges: true})
	lo, hi := r.Bounds()
	rng := rand.New(rand.NewPCG(68, 1))
	tx := vec{(lo[0] + hi[0]) / 2, (lo[1] + hi[1]) / 2, lo[2] + .3*(hi[2]-lo[2])}
	var round, down batch
	for range n {
		round.add(tx, randomDirection(rng))
		d := randomDirection(rng)
		down.add(tx, vec{.01 * d[0], .01 * d[1], -1})
	}
	sphere, cell := r.upload(round), r.upload(down)
	opt := scene.ReflGridOptions{Wavelength: .1, SolidAnglePerRay: 4 * math.Pi / n, IncludeLOS: true, TxPosition: toDevice(r, tx[:])}
	opt.Materials = r.materials(oneMedium(scene.Mesh{Faces: city.Faces}, 5, true))
	run := func(what string, rays scene.Rays, res int32, opt scene.ReflGridOptions) {
		r.timeReflGrid(fmt.Sprintf("%s, %d^2 cells, B %d", what, res, opt.MaxBounces), rays, scene.Grid{
			Position: lo[2] + .02*(hi[2]-lo[2]), Res0: res, Res1: res,
			Min0: lo[0] - .01, Max0: hi[0], Min1: lo[1] - .01, Max1: hi[1],
		}, opt)
	}
	own := r.TubeLanes()
	for _, lanes := range [][2]uint32{{22, 6}, {20, 12}, {16, 16}, {12, 20}, {8, 24}} {
		r.ForceTubeLanes(lanes[0], lanes[1])
		for _, opt.MaxBounces = range []int{0, 1, 4} {
			run(fmt.Sprintf("busy %d, idle %d", lanes[0], lanes[1]), sphere, 256, opt)
		}
	}
	r.ForceTubeLanes(own[0], own[1])
	opt.MaxBounces = 1
	for _, copies := range []int64{1, 0} {
		r.ForceCopies(copies)
		for _, res := range []int32{64, 1024} {
			run(fmt.Sprintf("copies %d", copies), sphere, res, opt)
		}
		run(fmt.Sprintf("one cell, copies %d", copies), cell, 64, opt)
	}
	opt.CollectWedges, opt.CollectWedgePrefixes, opt.WedgeCapacity = true, true, n/16
	for _, opt.MaxBounces = range []int{1, 4} {
		run("events", sphere, 256, opt)
	}
	// Search alone, for comparison.
	for _, bounces := range []int{1, 2, 5} {
		r.timed(fmt.Sprintf("TraceReflections, B %d", bounces), func() {
			c, err := r.TraceReflections(background, sphere, bounces, scene.ChainCore)
			require.NoError(t, err)
			require.NoError(t, c.Close())
		})
	}
}

func (r *rig) timeReflGrid(what string, rays scene.Rays, grid scene.Grid, opt scene.ReflGridOptions) {
	r.Helper()
	var g *scene.ReflGrids
	r.timed(what, func() {
		var err error
		g, err = r.AccumulateReflections(background, rays, grid, opt, scene.Into(g))
		require.NoError(r, err)
	})
	_, err := g.ReadCounters(background)
	require.NoError(r, err)
	require.NoError(r, g.Close())
}

func (r *rig) timed(what string, f func()) {
	r.Helper()
	var times []time.Duration
	for range 8 {
		require.NoError(r, r.Stream().Synchronize(background))
		start := time.Now()
		f()
		require.NoError(r, r.Stream().Synchronize(background))
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	r.Logf("%-44s %8.4f ms, median %8.4f", what, times[0].Seconds()*1e3, times[len(times)/2].Seconds()*1e3)
}
