package main

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// library is a scene with the box of dfrBench on one emulated device, its materials and the states of its edges.
type library struct {
	*scene.Scene
	t         *testing.T
	materials *scene.MaterialTable
	states    *scene.StateTable
	count     int
}

// must is a value without an error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

func openLibrary(t *testing.T, source [3]float32) *library {
	t.Helper()
	drv := must(cuda.OpenEmulator(1))(t)
	t.Cleanup(func() { assert.NoError(t, drv.Close()) })
	c := must(must(drv.Device(0))(t).Retain())(t)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	l := &library{Scene: must(scene.New(c, scene.Options{}))(t), t: t}
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	must(l.AddMesh(scene.Mesh{
		Vertices: []float32{0, -4, -2, 4, -4, -2, 4, 0, -2, 0, 0, -2, 0, -4, 2, 4, -4, 2, 4, 0, 2, 0, 0, 2},
		Faces: []int32{
			3, 7, 6, 3, 6, 2, 0, 4, 7, 0, 7, 3, 0, 3, 2, 0, 2, 1,
			4, 5, 6, 4, 6, 7, 0, 1, 5, 0, 5, 4, 1, 2, 6, 1, 6, 5,
		},
	}))(t)
	require.NoError(t, l.Build(t.Context()))
	l.materials = must(l.UploadMaterials(t.Context(), scene.Materials{
		EtaR: []float32{4, 3}, Sigma: []float32{.01, .02}, MuR: []float32{1, 1}, Gain: []float32{1, .9},
		Index: []int32{0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0},
	}))(t)
	t.Cleanup(func() { assert.NoError(t, l.materials.Close()) })
	states, _, err := l.DfrStates(t.Context(), scene.DfrStateOptions{Src: source, SrcPower: 1})
	require.NoError(t, err)
	l.states, l.count = must(l.UploadStates(t.Context(), *states))(t), states.Count
	t.Cleanup(func() { assert.NoError(t, l.states.Close()) })
	return l
}

func (l *library) upload(data []float32) cuda.Slice[float32] {
	s := must(cuda.Upload(l.t.Context(), l.Stream(), data))(l.t)
	l.t.Cleanup(func() { assert.NoError(l.t, cuda.Free(s)) })
	return s
}

// same compares a column of the program's result with one of the library's, bit by bit.
func same[T cuda.Scalar](l *library, b *bench, column string, data cuda.Slice[T]) {
	l.t.Helper()
	want := []float64{}
	for _, v := range must(cuda.Download(l.t.Context(), l.Stream(), data))(l.t) {
		want = append(want, float64(v))
	}
	assert.Equal(l.t, want, b.values(l.t, "out.npz", column), column)
}

// What the commands write is what the library returns for the same arguments: each flag reaches its option.
func TestRadioIsTheLibrary(t *testing.T) {
	const lambda = 0.085654988
	b := dfrBench(t)
	b.boxStates(t, "-1.2,.8,-.1")
	l := openLibrary(t, [3]float32{-1.2, .8, -.1})
	// A plane in front of the side y = 0, four cells by three.
	grid := scene.Grid{Axis: scene.AxisY, Position: .5, Min0: -1, Max0: 5, Min1: -3, Max1: 2.5, Res0: 4, Res1: 3}
	onGrid := func(c call) call {
		return c.with("-mesh", "box.obj").with("-material", "box.npz").with("-wavelength", wavelength).with("-grid-axis", "1").
			with("-grid-position", ".5").with("-grid-min", "-1,-3").with("-grid-max", "5,2.5").with("-grid-res", "4,3").
			with("-devices", "emu:2").with("-min-lanes", "1").with("-min-rows", "1")
	}
	t.Run("dfr-direct", func(t *testing.T) {
		b.succeed(t, onGrid(directCall()).with("-states", "states.npz").with("-direct-samples").with("-keller-samples", "500").
			with("-seed", "5").with("-window", "20,400").args(b)...)
		r := must(l.AccumDfrDirect(t.Context(), l.states, grid, scene.DfrDirectOptions{
			Wavelength: lambda, KellerSamples: 500, Seed: 5, Materials: l.materials, Window: &scene.Window{Offset: 20, Count: 400},
		}))(t)
		same(l, b, "power", r.Power)
		c := must(r.ReadCounters(t.Context()))(t)
		assert.Positive(t, c.Keller)
		b.counters(t, float64(c.Direct), float64(c.Keller), float64(c.VisRejects), float64(c.UTDRejects), float64(c.EdgeUses), float64(c.InactiveLanes))
		assert.NoError(t, r.Close())
	})
	t.Run("dfr-coherent", func(t *testing.T) {
		b.succeed(t, onGrid(coherentCall()).with("-polarization", ".3,1,.2").args(b)...)
		r := must(l.AccumDfrCoherentDirect(t.Context(), l.states, grid, scene.DfrCoherentOptions{
			Wavelength: lambda, Materials: l.materials, TxPolarization: [3]float32{.3, 1, .2},
		}))(t)
		for i, part := range []cuda.Slice[float32]{r.FieldXRe, r.FieldXIm, r.FieldYRe, r.FieldYIm, r.FieldZRe, r.FieldZIm} {
			same(l, b, fieldNames[i], part)
		}
		same(l, b, "count", r.Count)
		same(l, b, "vis_rejects", r.VisRejects)
		same(l, b, "utd_rejects", r.UTDRejects)
		assert.NoError(t, r.Close())
	})
	t.Run("dfr-paths", func(t *testing.T) {
		tx, rx := []float32{-1.2, .8, -.1, 5, 1, .5}, []float32{1, 1.1, -.1, -1, -1.5, -.1, 2, 3, 3}
		b.array(t, "tx.npy", npy.Floats("", tx, 2, 3))
		b.array(t, "rx.npy", npy.Floats("", rx, 3, 3))
		b.succeed(t, pathsCall().with("-polarization", ".3,1,.2").with("-min-rows", "1").args(b)...)
		active := make([]uint8, l.count)
		for i := range active {
			active[i] = 1
		}
		mask := must(cuda.Upload(t.Context(), l.Stream(), active))(t)
		r := must(l.TraceDfrPaths(t.Context(), l.upload(tx), l.upload(rx), l.states, scene.DfrPathOptions{
			Wavelength: lambda, Materials: l.materials, Active: mask, TxPolarization: l.upload([]float32{.3, 1, .2}),
		}))(t)
		same(l, b, "status", r.Status)
		same(l, b, "tx_id", r.TxID)
		same(l, b, "rx_id", r.RxID)
		same(l, b, "edge_id", r.EdgeID)
		same(l, b, "delay", r.Delay)
		same(l, b, "field", r.Field)
		same(l, b, "p0", r.P0)
		assert.Positive(t, b.values(t, "out.npz", "count")[0])
		assert.NoError(t, r.Close())
		assert.NoError(t, cuda.Free(mask))
	})
	t.Run("accumulate", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		const rays = 300
		var origins, directions []float32
		for range rays {
			origins = append(origins, 2+rng.Float32(), 2+rng.Float32(), rng.Float32())
			directions = append(directions, rng.Float32()-.5, -rng.Float32(), rng.Float32()-.5)
		}
		b.array(t, "o.npy", npy.Floats("", origins, rays, 3))
		b.array(t, "d.npy", npy.Floats("", directions, rays, 3))
		b.succeed(t, onGrid(accumulateCall()).with("-origins", "o.npy").with("-directions", "d.npy").with("-solid-angle", ".01").with("-tx", "2.5,2.5,.5").
			with("-polarization", "0,1,1").with("-bounces", "2").with("-include-los", "true").args(b)...)
		r := must(l.AccumulateReflections(t.Context(), scene.Rays{O: l.upload(origins), D: l.upload(directions)}, grid, scene.ReflGridOptions{
			Wavelength: lambda, SolidAnglePerRay: .01, MaxBounces: 2, Materials: l.materials, IncludeLOS: true, CellCount: true,
			TxPosition: l.upload([]float32{2.5, 2.5, .5}), TxPolarization: l.upload([]float32{0, 1, 1}),
		}))(t)
		same(l, b, "power", r.Power)
		for i, part := range []cuda.Slice[float32]{r.FieldXRe, r.FieldXIm, r.FieldYRe, r.FieldYIm, r.FieldZRe, r.FieldZIm} {
			same(l, b, fieldNames[i], part)
		}
		same(l, b, "cell_count", r.CellCount)
		assert.Greater(t, must(r.ReadCounters(t.Context()))(t).Count, int64(rays), "direct and reflected waves")
		assert.NoError(t, r.Close())
	})
}
