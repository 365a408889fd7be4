package scene_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// The accumulation of the benchmark: two states over one triangle, whose plane holds all
// targets.
var (
	benchTriangle = triangles(vec{-1, -1, 0}, vec{1, -1, 0}, vec{-1, 1, 0})
	benchStates   = []wedge{benchWedge(vec{}), benchWedge(vec{.25, 0, 0})}
)

func benchWedge(pos vec) wedge {
	return wedge{
		pos: pos, dir: vec{1, 0, 0}, n0: vec{0, 0, 1}, n1: vec{0, 0, -1}, src: vec{0, -1, .25},
		tMin: -1, tMax: 1, theta: math.Pi, power: 1,
	}
}

func benchGrid(res int32) scene.Grid {
	return scene.Grid{Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: res, Res1: res}
}

// TestAccumDfrDirectTime prints the time of one call on a GPU, from a synchronised device
// to a synchronised device.
func TestAccumDfrDirectTime(t *testing.T) {
	if !gputest.Native() {
		t.Skip("times of an emulator mean nothing")
	}
	city := workload.City(workload.SceneSeed, workload.CityLots)
	bench, town := build(t, benchTriangle), build(t, scene.Mesh{Vertices: city.Vertices, Faces: city.Faces, NoEdges: true})
	lo, hi := town.Bounds()
	street := scene.Grid{
		Position: lo[2] + .02*(hi[2]-lo[2]), Res0: 64, Res1: 64,
		Min0: lo[0], Max0: hi[0], Min1: lo[1], Max1: hi[1],
	}
	roof := benchWedge(vec{(lo[0] + hi[0]) / 2, (lo[1] + hi[1]) / 2, hi[2] + 1e-3*(hi[2]-lo[2])})
	roof.src = vec{lo[0], lo[1], 2 * hi[2]}
	for _, c := range []struct {
		name           string
		r              *rig
		states         []wedge
		grid           scene.Grid
		direct, keller int64
	}{
		{"bench 8192", bench, benchStates, benchGrid(4), 8192, 0},
		{"bench 1M", bench, benchStates, benchGrid(4), 1 << 20, 0},
		{"bench 2M", bench, benchStates, benchGrid(4), 1 << 21, 0},
		{"bench 67M", bench, benchStates, benchGrid(4), 1 << 26, 0},
		{"bench 67M, 512x512", bench, benchStates, benchGrid(512), 1 << 26, 0},
		{"bench 67M Keller", bench, benchStates, scene.Grid{Position: -1, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 4, Res1: 4}, 0, 1 << 26},
		{"city 1M, 64x64", town, []wedge{roof}, street, 1 << 20, 0},
		{"city 67M, 64x64", town, []wedge{roof}, street, 1 << 26, 0},
	} {
		states := c.r.states(c.states...)
		o := scene.DfrDirectOptions{Wavelength: 1, DirectSamples: c.direct, KellerSamples: c.keller, Seed: 17}
		var a *scene.DfrAccum
		var times []time.Duration
		for range 30 {
			require.NoError(t, c.r.Stream().Synchronize(background))
			start := time.Now()
			var err error
			a, err = c.r.AccumDfrDirect(background, states, c.grid, o, scene.Into(a))
			require.NoError(t, err)
			require.NoError(t, c.r.Stream().Synchronize(background))
			times = append(times, time.Since(start))
		}
		counts, err := a.ReadCounters(background)
		require.NoError(t, err)
		require.NoError(t, a.Close())
		slices.Sort(times)
		t.Logf("%-20s %8.4f ms, median %8.4f   %+v", c.name, times[0].Seconds()*1e3, times[len(times)/2].Seconds()*1e3, counts)
	}
}
