package scene

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/tests/gputest"
)

func TestPlanarSurfaces(t *testing.T) {
	// A fan of two triangles along the x axis, the second one raised at its far corner.
	hinge := func(z float32) Mesh {
		return Mesh{Vertices: []float32{0, 0, 0, 1, 0, 0, .5, 1, 0, .5, -1, z}, Faces: []int32{0, 1, 2, 1, 0, 3}}
	}
	strip := Mesh{Faces: []int32{}}
	for i := range 6 { // a strip of four faces in one plane, the third without area
		strip.Vertices = append(strip.Vertices, float32(i/2), float32(i%2), 0)
	}
	strip.Faces = append(strip.Faces, 0, 2, 1, 1, 2, 3, 2, 2, 4, 2, 4, 3, 3, 4, 5)
	cube := Mesh{}
	for i := range 8 {
		cube.Vertices = append(cube.Vertices, float32(i&1), float32(i>>1&1), float32(i>>2&1))
	}
	var cubeWant []int32
	for i, q := range [6][4]int32{{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}} {
		cube.Faces = append(cube.Faces, q[0], q[1], q[2], q[0], q[2], q[3])
		cubeWant = append(cubeWant, int32(2*i), int32(2*i))
	}
	bare := hinge(0)
	bare.NoEdges = true
	large := hinge(0)
	for i := range large.Vertices {
		large.Vertices[i] *= 1000
	}
	large.Vertices[11] = 8e-4 // 0.8 mm off at 1 km
	steep := hinge(float32(math.Tan(2e-3)))
	for name, c := range map[string]struct {
		mesh Mesh
		want []int32
	}{
		"flat":                  {hinge(0), []int32{0, 0}},
		"bent by 2 mm per m":    {steep, []int32{0, 1}},
		"bent by 10 um per m":   {hinge(1e-5), []int32{0, 0}},
		"bent by 100 um per m":  {hinge(1e-4), []int32{0, 1}}, // the cosine would do
		"0.8 mm in a kilometre": {large, []int32{0, 0}},
		"folded":                {hinge(2), []int32{0, 1}},
		"without edges":         {bare, []int32{0, 1}},
		"cube":                  {cube, cubeWant},
		"strip":                 {strip, []int32{0, 0, 2, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			s, err := New(gputest.Open(t, 1, nil).Context(t, 0), Options{Backend: CUDA})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			_, err = s.PlanarSurfaces(ctx)
			require.ErrorIs(t, err, ErrNotReady)
			// The second mesh is the first one at the same place: it shares nothing.
			for range 2 {
				_, err = s.AddMesh(c.mesh)
				require.NoError(t, err)
			}
			require.NoError(t, s.Build(ctx))
			got, err := s.PlanarSurfaces(ctx)
			require.NoError(t, err)
			n := len(c.want)
			require.Equal(t, c.want, got[:n])
			for i := range c.want {
				require.Equal(t, c.want[i]+int32(n), got[n+i])
			}
		})
	}
}
