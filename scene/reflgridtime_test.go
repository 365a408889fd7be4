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
// synchronised device: cells and copies of the sums, hot cells and scattered ones.
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
	opt := scene.ReflGridOptions{Wavelength: .1, SolidAnglePerRay: 4 * math.Pi / n, TxPosition: toDevice(r, tx[:])}
	opt.Materials = r.media(oneMedium(scene.Mesh{Faces: city.Faces}, 5, true))
	for _, fan := range []struct {
		name string
		rays scene.Rays
		res  []int32
	}{{"sphere", r.upload(round), []int32{64, 256, 1024}}, {"one cell", r.upload(down), []int32{64}}} {
		for _, res := range fan.res {
			grid := scene.Grid{
				Position: lo[2] + .02*(hi[2]-lo[2]), Res0: res, Res1: res,
				Min0: lo[0] - .01, Max0: hi[0], Min1: lo[1] - .01, Max1: hi[1],
			}
			for _, bounces := range []int{0, 1, 4} {
				opt.MaxBounces, opt.IncludeLOS = bounces, true
				for _, copies := range []int64{0, 1, 2, 4, 8} {
					r.ForceCopies(copies)
					opt.CollectWedges = false
					r.timeReflGrid(fmt.Sprintf("%s, %d^2 cells, B %d, %d copies", fan.name, res, bounces, copies), fan.rays, grid, opt)
				}
				r.ForceCopies(0)
				if bounces > 0 {
					opt.CollectWedges, opt.WedgeCapacity = true, n/16
					r.timeReflGrid(fmt.Sprintf("%s, %d^2 cells, B %d, events", fan.name, res, bounces), fan.rays, grid, opt)
				}
			}
		}
	}
	// Search alone, for comparison.
	rays := r.upload(round)
	for _, bounces := range []int{1, 5} {
		r.timed(fmt.Sprintf("TraceReflections, B %d", bounces), func() {
			c, err := r.TraceReflections(background, rays, bounces, scene.ChainCore)
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
	c, err := g.ReadCounters(background)
	require.NoError(r, err)
	r.Logf("    %+v", c)
	require.NoError(r, g.Close())
}

func (r *rig) timed(what string, f func()) {
	r.Helper()
	var times []time.Duration
	for range 12 {
		require.NoError(r, r.Stream().Synchronize(background))
		start := time.Now()
		f()
		require.NoError(r, r.Stream().Synchronize(background))
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	r.Logf("%-44s %8.4f ms, median %8.4f", what, times[0].Seconds()*1e3, times[len(times)/2].Seconds()*1e3)
}
