package scene

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/tests/gputest"
)

func edgesOf(t *testing.T, faces []int32, vertices int) []edge {
	t.Helper()
	top, err := extractEdges(faces, vertices)
	require.NoError(t, err)
	return top.edges
}

func boundaries(edges []edge) int {
	n := 0
	for _, e := range edges {
		if e.face1 < 0 {
			n++
		}
	}
	return n
}

// record is (v0, v1, face0, face1, opposite0, opposite1).
func record(v0, v1, f0, f1, o0, o1 int32) edge {
	return edge{v0: v0, v1: v1, face0: f0, face1: f1, opposite0: o0, opposite1: o1}
}

func TestEdgeRecordsOfSmallMeshes(t *testing.T) {
	cases := []struct {
		id       string
		faces    []int32
		vertices int
		want     []edge
	}{
		{"A1", []int32{0, 1, 2}, 3, []edge{
			record(0, 1, 0, -1, 2, -1), record(0, 2, 0, -1, 1, -1), record(1, 2, 0, -1, 0, -1),
		}},
		{"A2", []int32{0, 1, 2, 0, 2, 3}, 4, []edge{
			record(0, 1, 0, -1, 2, -1), record(0, 2, 0, 1, 1, 3), record(0, 3, 1, -1, 2, -1),
			record(1, 2, 0, -1, 0, -1), record(2, 3, 1, -1, 0, -1),
		}},
		{"A3", []int32{0, 1, 2, 0, 3, 1, 0, 2, 3, 1, 3, 2}, 4, []edge{
			record(0, 1, 0, 1, 2, 3), record(0, 2, 0, 2, 1, 3), record(0, 3, 1, 2, 1, 2),
			record(1, 2, 0, 3, 0, 3), record(1, 3, 1, 3, 0, 2), record(2, 3, 2, 3, 0, 1),
		}},
		{"A5", []int32{0, 1, 2, 1, 0, 3, 0, 1, 4}, 5, []edge{
			record(0, 1, 0, 1, 2, 3), record(0, 1, 0, 2, 2, 4), record(0, 1, 1, 2, 3, 4),
			record(0, 2, 0, -1, 1, -1), record(0, 3, 1, -1, 1, -1), record(0, 4, 2, -1, 1, -1),
			record(1, 2, 0, -1, 0, -1), record(1, 3, 1, -1, 0, -1), record(1, 4, 2, -1, 0, -1),
		}},
		{"A8", []int32{0, 1, 2, 0, 1, 2}, 3, []edge{
			record(0, 1, 0, 1, 2, 2), record(0, 2, 0, 1, 1, 1), record(1, 2, 0, 1, 0, 0),
		}},
		{"A9", []int32{0, 0, 1, 0, 1, 2}, 3, []edge{
			record(0, 1, 1, -1, 2, -1), record(0, 2, 1, -1, 1, -1), record(1, 2, 1, -1, 0, -1),
		}},
	}
	for _, c := range cases {
		t.Run(c.id, func(t *testing.T) {
			assert.Equal(t, c.want, edgesOf(t, c.faces, c.vertices))
		})
	}
}

// A4: V - E + F = 2 for a closed cube.
func TestEdgeRecordsOfACube(t *testing.T) {
	_, faces := cube()
	edges := edgesOf(t, faces, 8)
	assert.Len(t, edges, 18)
	assert.Zero(t, boundaries(edges))
}

// A6
func TestEdgeRecordsOfAFan(t *testing.T) {
	for m := 1; m <= 40; m++ {
		var faces []int32
		for i := range m {
			faces = append(faces, 0, 1, int32(2+i))
		}
		edges := edgesOf(t, faces, 2+m)
		assert.Len(t, edges, max(1, m*(m-1)/2)+2*m, "m = %d", m)
	}
	assert.Len(t, edgesOf(t, []int32{0, 1, 2, 0, 1, 3, 0, 1, 4, 0, 1, 5}, 6), 14)
}

// A7
func TestEdgeRecordsOfAGrid(t *testing.T) {
	grid := func(n, m int) (faces []int32, vertices int) {
		at := func(i, j int) int32 { return int32(i*(m+1) + j) }
		for i := range n {
			for j := range m {
				faces = append(faces, at(i, j), at(i+1, j), at(i+1, j+1), at(i, j), at(i+1, j+1), at(i, j+1))
			}
		}
		return faces, (n + 1) * (m + 1)
	}
	for _, c := range []struct{ n, m, edges, boundary int }{{3, 2, 23, 10}, {8, 8, 208, 32}} {
		faces, vertices := grid(c.n, c.m)
		edges := edgesOf(t, faces, vertices)
		assert.Len(t, edges, c.edges)
		assert.Equal(t, c.boundary, boundaries(edges))
	}
}

// Random faces, many of them sharing sides, against the definition of the records
// written down with maps.
func TestEdgeRecordsOfRandomMeshes(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 13))
	for range 200 {
		vertices := 1 + rng.IntN(12)
		faces := make([]int32, 3*(1+rng.IntN(60)))
		for i := range faces {
			faces[i] = int32(rng.IntN(vertices))
		}
		type side struct{ face, opposite int32 }
		sides := map[[2]int32][]side{}
		for f := range len(faces) / 3 {
			v := faces[3*f : 3*f+3]
			if v[0] == v[1] || v[1] == v[2] || v[0] == v[2] {
				continue
			}
			for c := range 3 {
				a, b := v[c], v[(c+1)%3]
				key := [2]int32{min(a, b), max(a, b)}
				sides[key] = append(sides[key], side{int32(f), v[(c+2)%3]})
			}
		}
		want := []edge{}
		for a := range int32(vertices) {
			for b := range int32(vertices) {
				group := sides[[2]int32{a, b}]
				if len(group) == 1 {
					want = append(want, record(a, b, group[0].face, -1, group[0].opposite, -1))
				}
				for i := range group {
					for j := i + 1; j < len(group); j++ {
						want = append(want, record(a, b, group[i].face, group[j].face, group[i].opposite, group[j].opposite))
					}
				}
			}
		}
		require.Equal(t, want, edgesOf(t, faces, vertices), "faces %v", faces)
	}
}

// Of m equal faces every side has m(m-1)/2 edges. The first number that is too many is refused
// before there are any, and the mesh is built without edges.
func TestEdgeLimit(t *testing.T) {
	faces := slices.Repeat([]int32{0, 1, 2}, 1673)
	edges := edgesOf(t, faces[:3*1672], 3)
	assert.Len(t, edges, 3*1672*1671/2)
	assert.Equal(t, uintptr(edgeBytes), unsafe.Sizeof(edges[0]))

	s, err := New(gputest.Open(t, 1, nil).Context(t, 0), Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	m := Mesh{Vertices: []float32{0, 0, 0, 1, 0, 0, 0, 1, 0}, Faces: faces}
	_, err = s.AddMesh(m)
	require.NoError(t, err)
	var limit *LimitError
	require.ErrorAs(t, s.Build(context.Background()), &limit)
	limit.Advice = ""
	assert.Equal(t, &LimitError{What: "edges of a mesh", Have: 3 * 1673 * 1672 / 2, Limit: 1 << 22}, limit)
	bare, err := New(s.Context(), Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, bare.Close()) }()
	m.NoEdges = true
	_, err = bare.AddMesh(m)
	require.NoError(t, err)
	require.NoError(t, bare.Build(context.Background()))
	assert.Zero(t, bare.NumEdges())

	// A large mesh may have more: 24 for each face.
	const n = 1 << 20
	assert.NoError(t, checkEdges(edgesPerFace*n, n, 17))
	assert.EqualError(t, checkEdges(edgesPerFace*n+1, n, 18), "scene: 25165825 edges of a mesh exceed the limit of 25165824; "+
		"18 of its faces share a side, of which every two are an edge, 0.6 GB in all: remove faces that are there several times, or set NoEdges")
	assert.EqualError(t, checkEdges(maxEdges+1, n<<6, 2), "scene: 1073741825 edges exceed the limit of 1073741824; split the geometry over several scenes")
}

func BenchmarkExtractEdges(b *testing.B) {
	const n = 1024
	faces := make([]int32, 0, 6*n*n)
	at := func(i, j int) int32 { return int32(i*(n+1) + j) }
	for i := range n {
		for j := range n {
			faces = append(faces, at(i, j), at(i+1, j), at(i+1, j+1), at(i, j), at(i+1, j+1), at(i, j+1))
		}
	}
	for b.Loop() {
		_, err := extractEdges(faces, (n+1)*(n+1))
		require.NoError(b, err)
	}
}

// cube is a closed unit cube with outward faces.
func cube() (vertices []float32, faces []int32) {
	for i := range 8 {
		vertices = append(vertices, float32(i&1), float32(i>>1&1), float32(i>>2&1))
	}
	for _, q := range [6][4]int32{{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}} {
		faces = append(faces, q[0], q[1], q[2], q[0], q[2], q[3])
	}
	return vertices, faces
}
