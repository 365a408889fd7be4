package main

import (
	"math"
	"testing"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/oracle"
	"github.com/stretchr/testify/require"
)

// joined makes one mesh of a scene, with the global face numbers.
func joined(meshes []workload.Mesh) workload.Mesh {
	var all workload.Mesh
	for _, m := range meshes {
		first := int32(all.NumVertices())
		all.Vertices = append(all.Vertices, m.Vertices...)
		for _, v := range m.Faces {
			all.Faces = append(all.Faces, first+v)
		}
	}
	return all
}

// TestMiniAgainstOracle compares every row of mini with brute force in float64, so the pinned digests stand on more than
// the first rows.
func TestMiniAgainstOracle(t *testing.T) {
	h, err := openHost(options{devices: deviceList{emulated: 1}})
	require.NoError(t, err)
	defer func() { require.NoError(t, h.close()) }()
	config, err := workload.Find(workload.Mini)
	require.NoError(t, err)
	s := &trial{run: &run{host: h}, config: config}
	defer func() { require.NoError(t, s.close()) }()
	s.generate()
	require.NoError(t, s.open())
	hits, err := s.single.Intersect(background, s.batch, scene.All)
	require.NoError(t, err)
	defer func() { require.NoError(t, hits.Close()) }()
	distance, normal, uv := download(t, s, hits.T), download(t, s, hits.GeoN), download(t, s, hits.UV)
	prim := download(t, s, hits.GlobalPrimID)

	mesh := joined(s.meshes)
	truth := oracle.New(mesh.Vertices, mesh.Faces)
	ambiguous := 0
	for i := range s.rays.Len() {
		want := truth.Intersect([3]float32(s.rays.Origins[3*i:]), [3]float32(s.rays.Directions[3*i:]), float32(math.Inf(1)))
		if want.Ambiguous {
			ambiguous++
		}
		require.NoError(t, want.Check(oracle.Answer{Prim: int(prim[i]), T: distance[i], B1: uv[2*i], B2: uv[2*i+1], N: [3]float32(normal[3*i:])}), "row %d", i)
	}
	require.Less(t, ambiguous, s.rays.Len()/100, "the comparison must bite")
}

func download[T cuda.Scalar](t *testing.T, s *trial, column cuda.Slice[T]) []T {
	t.Helper()
	data, err := cuda.Download(background, s.single.Stream(), column)
	require.NoError(t, err)
	return data
}
