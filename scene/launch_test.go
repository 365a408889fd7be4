package scene

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/gputest"
)

// Batches beyond the largest launch are split; here the largest launch is tiny.
func TestLargeBatchesAreSplit(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(30, 1))
	v, f := soup(31, 100, 0.3)
	o, d := make([]float32, 3*501), make([]float32, 3*501)
	for i := range o {
		o[i], d[i] = rng.Float32(), rng.Float32()-0.5
	}
	var results [2][]float32
	for i, rows := range []int64{maxLaunchRows, 64} {
		s, err := New(c, Options{})
		require.NoError(t, err)
		s.rowsPerLaunch = rows
		_, err = s.AddMesh(Mesh{Vertices: v, Faces: f})
		require.NoError(t, err)
		_, err = s.AddInstance(0, [16]float32{.5, .2, 0, .3, 0, .5, 0, .1, .1, 0, .7, 0, 15: 1}, false)
		require.NoError(t, err)
		require.NoError(t, s.Build(ctx))
		rays := Rays{}
		rays.O, err = cuda.Upload(ctx, s.Stream(), o)
		require.NoError(t, err)
		rays.D, err = cuda.Upload(ctx, s.Stream(), d)
		require.NoError(t, err)
		h, err := s.Intersect(ctx, rays, All)
		require.NoError(t, err)
		results[i], err = cuda.Download(ctx, s.Stream(), h.P)
		require.NoError(t, err)
		require.NoError(t, h.Close())
		require.NoError(t, cuda.Free(rays.O))
		require.NoError(t, cuda.Free(rays.D))
		require.NoError(t, s.Close())
	}
	require.Equal(t, results[0], results[1])
}
