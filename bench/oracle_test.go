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

// compareChains compares chains of rows, evenly spread over the batch, with brute force: in float64 as far as they are
// certain, and bit by bit with the single-precision arithmetic that defines them.
func compareChains(t *testing.T, s *trial, rows int) {
	t.Helper()
	bounces := s.config.MaxBounces
	chains, err := s.single.TraceReflections(background, s.batch, bounces, scene.ChainAll)
	require.NoError(t, err)
	defer func() { require.NoError(t, chains.Close()) }()
	valid, ts, prims := download(t, s, chains.Valid), download(t, s, chains.T), download(t, s, chains.PrimIDs)
	points, normals := download(t, s, chains.HitPoints), download(t, s, chains.Normals)
	images, uv := download(t, s, chains.ImageSources), download(t, s, chains.Barycentric)

	mesh := joined(s.meshes)
	wide, single := oracle.New(mesh.Vertices, mesh.Faces), oracle.NewCanonical(mesh.Vertices, mesh.Faces)
	type answer struct {
		wide   []oracle.Bounce
		single []oracle.Reflection
	}
	want := make([]answer, rows)
	at := func(k int) int { return k * s.rays.Len() / rows }
	oracle.Each(rows, func(k int) {
		o, d := [3]float32(s.rays.Origins[3*at(k):]), [3]float32(s.rays.Directions[3*at(k):])
		want[k] = answer{wide.Reflect(o, d, miss, bounces), single.Reflect(o, d, miss, bounces)}
	})
	compared, found := 0, 0
	for k, w := range want {
		row := at(k)
		var got []oracle.Reflection
		for i := row * bounces; i < (row+1)*bounces && valid[i] != 0; i++ {
			got = append(got, oracle.Reflection{
				Prim: int(prims[i]), T: ts[i], B1: uv[2*i], B2: uv[2*i+1],
				P: [3]float32(points[3*i:]), N: [3]float32(normals[3*i:]), Image: [3]float32(images[3*i:]),
			})
		}
		require.Equal(t, w.single, got, "row %d", row)
		n, err := oracle.CheckChain(w.wide, got)
		require.NoError(t, err, "row %d", row)
		compared, found = compared+n, found+len(w.wide)
	}
	require.Greater(t, compared, found*4/5, "the comparison must bite")
}

func download[T cuda.Scalar](t *testing.T, s *trial, column cuda.Slice[T]) []T {
	t.Helper()
	data, err := cuda.Download(background, s.single.Stream(), column)
	require.NoError(t, err)
	return data
}
