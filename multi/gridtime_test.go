package multi

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// timedGrid is an accumulation of so many lanes by a set, or by its master alone.
type timedGrid func(s *Scene, alone bool) (scene.Reusable, error)

// TestMultiGridTimes prints what accumulations of little work take on one device and on
// two, from idle devices to idle devices, and how many lanes the remote has: what the
// defaults of MinLanesPerDevice rest on.
func TestMultiGridTimes(t *testing.T) {
	if !gputest.Native() || gputest.UpTo(2) < 2 {
		t.Skip("times need two GPUs")
	}
	rig := gputest.Open(t, 2, nil)
	set := func(mesh scene.Mesh, states scene.DfrStates) (*Scene, *scene.StateTable, *scene.MaterialTable) {
		s := quick(t, rig.Driver, ordinals(rig, 2), Options{Options: chunked.Options{MinLanesPerDevice: 1}, Backend: scene.CUDA})
		build(t, s, mesh)
		table, err := s.UploadStates(bg, states)
		require.NoError(t, err)
		media, err := s.UploadMaterials(bg, glass(len(mesh.Faces)/3))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, table.Close()); require.NoError(t, media.Close()) })
		return s, table, media
	}

	// Over a triangle nearly every sample counts.
	square := func(res int32, height float32) scene.Grid {
		return scene.Grid{Axis: scene.AxisZ, Position: height, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: res, Res1: res}
	}
	edge := scene.DfrStates{
		EdgeIndex: []int32{0, 1}, EdgePos: []float32{0, 0, 0, .25, 0, 0}, EdgeDir: slices.Repeat([]float32{1, 0, 0}, 2),
		TMin: []float32{-1, -1}, TMax: []float32{1, 1}, N0: slices.Repeat([]float32{0, 0, 1}, 2), N1: slices.Repeat([]float32{0, 0, -1}, 2),
		Prim0: []int32{0, 0}, Prim1: []int32{0, 0}, ExteriorAngle: []float32{math.Pi, math.Pi},
		Src: slices.Repeat([]float32{0, -1, .25}, 2), SrcPower: []float32{1, 1}, Count: 2,
	}
	s, states, media := set(scene.Mesh{Vertices: []float32{-1, -1, 0, 1, -1, 0, -1, 1, 0}, Faces: []int32{0, 1, 2}}, edge)
	for _, res := range []int32{4, 64, 512} {
		for _, lanes := range []int64{1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 26} {
			s.timeGrid(t, "AccumDfrDirect", res, lanes, func(s *Scene, alone bool) (scene.Reusable, error) {
				o := scene.DfrDirectOptions{Wavelength: 1, DirectSamples: lanes, Seed: 17, Materials: media}
				if alone {
					return result(s.Master().AccumDfrDirect(bg, states, square(res, 0), o))
				}
				return result(s.AccumDfrDirect(bg, states, square(res, 0), o))
			})
		}
	}
	for _, res := range []int32{4, 512} {
		for _, lanes := range []int64{1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 23} {
			s.timeGrid(t, "AccumDfrDirect, azimuths", res, lanes, func(s *Scene, alone bool) (scene.Reusable, error) {
				o := scene.DfrDirectOptions{Wavelength: 1, KellerSamples: lanes, Seed: 17, Materials: media}
				if alone {
					return result(s.Master().AccumDfrDirect(bg, states, square(res, -1), o))
				}
				return result(s.AccumDfrDirect(bg, states, square(res, -1), o))
			})
		}
	}

	// In a city nearly every lane ends early.
	city := workload.City(workload.SceneSeed, 4)
	mesh := scene.Mesh{Vertices: city.Vertices, Faces: city.Faces}
	town, _, media := set(mesh, edge)
	lo, hi := town.Bounds()
	over := func(res int32) scene.Grid {
		return scene.Grid{Axis: scene.AxisZ, Position: lo[2] + .3*(hi[2]-lo[2]), Min0: lo[0], Max0: hi[0], Min1: lo[1], Max1: hi[1], Res0: res, Res1: res}
	}
	wedges, _, err := town.DfrStates(bg, scene.DfrStateOptions{Src: [3]float32{lo[0], lo[1], hi[2]}, SrcPower: 1})
	require.NoError(t, err)
	table, err := town.UploadStates(bg, *wedges)
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	for _, res := range []int32{4, 8, 16, 32, 64} {
		lanes := int64(wedges.Count) * int64(res) * int64(res)
		town.timeGrid(t, "AccumDfrCoherentDirect", res, lanes, func(s *Scene, alone bool) (scene.Reusable, error) {
			o := scene.DfrCoherentOptions{Wavelength: .1, Materials: media, TxPolarization: [3]float32{0, 0, 1}}
			if alone {
				return result(s.Master().AccumDfrCoherentDirect(bg, table, over(res), o))
			}
			return result(s.AccumDfrCoherentDirect(bg, table, over(res), o))
		})
	}

	// Rays that are reflected once, or only meet the grid.
	const most = 1 << 22
	var frees []func() error
	up := uploads{t, town.Stream(), &frees}
	rng := rngOf(161)
	o, d := make([]float32, 3*most), make([]float32, 3*most)
	for i := range most {
		o[3*i], o[3*i+1], o[3*i+2] = (lo[0]+hi[0])/2, (lo[1]+hi[1])/2, hi[2]*1.01
		d[3*i], d[3*i+1], d[3*i+2] = rng.Float32()*2-1, rng.Float32()*2-1, -rng.Float32()
	}
	origins, directions, tx := column(up, o), column(up, d), column(up, o[:3])
	for _, bounces := range []int{0, 1} {
		for _, res := range []int32{64, 1024} {
			for _, lanes := range []int64{1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22} {
				rays := scene.Rays{}
				rays.O, err = origins.Sub(0, int(3*lanes))
				require.NoError(t, err)
				rays.D, err = directions.Sub(0, int(3*lanes))
				require.NoError(t, err)
				town.timeGrid(t, []string{"AccumulateReflections, no bounce", "AccumulateReflections, 1 bounce"}[bounces], res, lanes,
					func(s *Scene, alone bool) (scene.Reusable, error) {
						o := scene.ReflGridOptions{Wavelength: .1, SolidAnglePerRay: 1e-6, MaxBounces: bounces, Materials: media, TxPosition: tx, IncludeLOS: true}
						if alone {
							return result(s.Master().AccumulateReflections(bg, rays, over(res), o))
						}
						return result(s.AccumulateReflections(bg, rays, over(res), o))
					})
			}
		}
	}
	for _, free := range frees {
		require.NoError(t, free())
	}
}

// timeGrid prints the minima and medians of interleaved calls.
func (s *Scene) timeGrid(t *testing.T, name string, res int32, lanes int64, call timedGrid) {
	t.Helper()
	c := s.compare(t, func(alone bool) (scene.Reusable, error) { return call(s, alone) })
	t.Logf("%-32s %4d^2 cells %9d lanes, %8d of the remote: %s; %.3f ns per lane", name, res, lanes, lanes/2, c, c.one[0]*1e3/float64(lanes))
}

// comparison is the microseconds that calls took on one device and on two, ascending.
type comparison struct{ one, two []float64 }

func (c comparison) String() string {
	if len(c.one) == 0 {
		return "the same bits"
	}
	m := len(c.one) / 2
	return fmt.Sprintf("%8.1f us, two devices %8.1f, gain %.2f (medians %8.1f, %8.1f, %.2f)",
		c.one[0], c.two[0], c.one[0]/c.two[0], c.one[m], c.two[m], c.one[m]/c.two[m])
}

// compare requires the same bits of the master alone and of the set, and on GPUs times their
// calls, interleaved, from idle devices to idle devices.
func (s *Scene) compare(t *testing.T, call func(alone bool) (scene.Reusable, error)) comparison {
	t.Helper()
	var bits [2]map[string][]byte
	for k := range bits {
		r, err := call(k == 0)
		require.NoError(t, err)
		bits[k] = contents(t, s.Stream(), r)
		require.NoError(t, r.Close())
	}
	require.NotEmpty(t, bits[0])
	for name, want := range bits[0] {
		require.True(t, bytes.Equal(want, bits[1][name]), "%s differs", name)
	}
	if !gputest.Native() {
		return comparison{}
	}
	const rounds, warm = 25, 3
	var times [2][]float64
	idle := func() {
		for _, c := range s.ctxs {
			require.NoError(t, c.Synchronize())
		}
	}
	for round := range rounds + warm {
		for i := range times {
			k := (i + round) % len(times)
			idle()
			begin := time.Now()
			r, err := call(k == 0)
			require.NoError(t, err)
			idle()
			took := time.Since(begin)
			require.NoError(t, r.Close())
			if round >= warm {
				times[k] = append(times[k], float64(took)/1e3)
			}
		}
	}
	for k := range times {
		slices.Sort(times[k])
	}
	return comparison{times[0], times[1]}
}
