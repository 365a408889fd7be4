package scene_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/scene"
)

// BenchmarkEmulatedIntersect reports how many lane-instructions a second the
// emulator runs on the closest-hit kernels: incoherent rays in a cloud of
// triangles, full records.
func BenchmarkEmulatedIntersect(b *testing.B) {
	const triangles, rays = 1 << 14, 1 << 14
	e, err := emu.New(1)
	require.NoError(b, err)
	drv, err := cuda.OpenAPI(e)
	require.NoError(b, err)
	dev, err := drv.Device(0)
	require.NoError(b, err)
	c, err := dev.Retain()
	require.NoError(b, err)
	s, err := scene.New(c, scene.Options{})
	require.NoError(b, err)
	rng := rand.New(rand.NewPCG(1, 2))
	m := scene.Mesh{}
	for i := range int32(triangles) {
		x, y, z := rng.Float32(), rng.Float32(), rng.Float32()
		for range 3 {
			m.Vertices = append(m.Vertices, x+.05*rng.Float32(), y+.05*rng.Float32(), z+.05*rng.Float32())
		}
		m.Faces = append(m.Faces, 3*i, 3*i+1, 3*i+2)
	}
	_, err = s.AddMesh(m)
	require.NoError(b, err)
	ctx := context.Background()
	require.NoError(b, s.Build(ctx))
	random := func(lo, hi float32) cuda.Slice[float32] {
		v := make([]float32, 3*rays)
		for i := range v {
			v[i] = lo + (hi-lo)*rng.Float32()
		}
		col, err := cuda.Upload(ctx, s.Stream(), v)
		require.NoError(b, err)
		return col
	}
	batch := scene.Rays{O: random(0, 1), D: random(-1, 1)}
	before := e.Stats().LaneInstructions
	for b.Loop() {
		h, err := s.Intersect(ctx, batch, scene.All)
		require.NoError(b, err)
		require.NoError(b, s.Stream().Synchronize(ctx))
		require.NoError(b, h.Close())
	}
	done := e.Stats().LaneInstructions - before
	b.ReportMetric(float64(done)/b.Elapsed().Seconds()/1e6, "Mlane-instr/s")
	require.NoError(b, cuda.Free(batch.O))
	require.NoError(b, cuda.Free(batch.D))
	require.NoError(b, s.Close())
	require.NoError(b, c.Close())
	require.NoError(b, drv.Close())
}
