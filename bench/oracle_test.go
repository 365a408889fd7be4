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

// compareWithOracle compares rows, evenly spread over the batch, with brute force in float64, and their winners with the
// single-precision test that defines them: so the pinned digests stand on more than the rows that the specification lists.
func compareWithOracle(t *testing.T, s *trial, rows int) {
	t.Helper()
	hits, err := s.single.Intersect(background, s.batch, scene.All)
	require.NoError(t, err)
	defer func() { require.NoError(t, hits.Close()) }()
	distance, normal, uv := download(t, s, hits.T), download(t, s, hits.GeoN), download(t, s, hits.UV)
	prim := download(t, s, hits.GlobalPrimID)

	mesh := joined(s.meshes)
	at := func(k int) int { return k * s.rays.Len() / rows }
	ray := func(k int) (_, _ [3]float32, _ float32) {
		i := 3 * at(k)
		return [3]float32(s.rays.Origins[i:]), [3]float32(s.rays.Directions[i:]), float32(math.Inf(1))
	}
	ambiguous, hit := 0, 0
	for k, want := range oracle.New(mesh.Vertices, mesh.Faces).IntersectAll(rows, ray) {
		i := at(k)
		if want.Ambiguous {
			ambiguous++
		} else if want.Prim >= 0 {
			hit++
		}
		require.NoError(t, want.Check(oracle.Answer{Prim: int(prim[i]), T: distance[i], B1: uv[2*i], B2: uv[2*i+1], N: [3]float32(normal[3*i:])}), "row %d", i)
	}
	require.Less(t, ambiguous, rows/20+2, "the comparison must bite")
	require.Greater(t, hit, rows/5)
	for k, want := range oracle.NewCanonical(mesh.Vertices, mesh.Faces).Winners(rows, ray) {
		require.Equal(t, want.Prim, int(prim[at(k)]), "row %d", at(k))
		require.Equal(t, math.Float32bits(want.T), math.Float32bits(distance[at(k)]), "row %d: t", at(k))
	}
}

func download[T cuda.Scalar](t *testing.T, s *trial, column cuda.Slice[T]) []T {
	t.Helper()
	data, err := cuda.Download(background, s.single.Stream(), column)
	require.NoError(t, err)
	return data
}
