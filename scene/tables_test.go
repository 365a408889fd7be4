package scene_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
)

func (r *rig) edges() *scene.EdgeRecords {
	r.Helper()
	e, err := r.EdgeRecords(background)
	require.NoError(r, err)
	return e
}

func (r *rig) geometry() *scene.Geometry {
	r.Helper()
	g, err := r.GlobalGeometry(background)
	require.NoError(r, err)
	return g
}

func TestA10EdgeIdsSkipMeshesWithoutEdges(t *testing.T) {
	m := meshT()
	m.NoEdges = true
	r := build(t, m, meshQ())
	assert.Equal(t, 5, r.NumEdges())
	// The records of A2, three vertices and one face further.
	assert.Equal(t, &scene.EdgeRecords{
		V0: []int32{3, 3, 3, 4, 5}, V1: []int32{4, 5, 6, 5, 6},
		Face0: []int32{1, 1, 2, 1, 2}, Face1: []int32{-1, 2, -1, -1, -1},
		Opposite0: []int32{5, 4, 5, 3, 3}, Opposite1: []int32{-1, 6, -1, -1, -1},
		ShapeID: []int32{1, 1, 1, 1, 1}, EdgeID: []int32{0, 1, 2, 3, 4},
		A: []float32{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0},
		B: []float32{1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0},
	}, r.edges())
}

func TestA11EdgeIdsPerShape(t *testing.T) {
	e := build(t, meshT(), meshT()).edges()
	assert.Equal(t, []int32{0, 1, 2, 0, 1, 2}, e.EdgeID) // the row is the GlobalEdgeID
	assert.Equal(t, []int32{0, 0, 0, 1, 1, 1}, e.ShapeID)
}

func TestA12PrimitiveIds(t *testing.T) {
	r := build(t, meshT(), moved(meshS(), vec{3, 0, 0}), moved(meshT(), vec{6, 0, 0}))
	var b batch
	b.add(vec{.25, .25, -1}, vec{0, 0, 1})
	b.add(vec{3.25, .25, -1}, vec{0, 0, 1})
	b.add(vec{3.25, .25, 1}, vec{0, 0, -1})
	b.add(vec{6.25, .25, -1}, vec{0, 0, 1})
	got := r.intersect(b, scene.All)
	assert.Equal(t, []int32{0, 1, 1, 2}, got.shape)
	assert.Equal(t, []int32{0, 0, 1, 0}, got.local)
	assert.Equal(t, []int32{0, 1, 2, 3}, got.global)
	assert.Equal(t, []int32{0, 1, 2, 3}, got.prim)

	g := r.geometry()
	assert.Equal(t, []int32{0, 1, 1, 2}, g.ShapeIDs)
	assert.Equal(t, []int32{0, 0, 1, 0}, g.LocalPrimIDs)
	assert.Equal(t, []int32{0, 1, 2, 3}, g.GlobalPrimIDs)
	assert.Equal(t, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, g.Faces)
	assert.Equal(t, 3, r.NumShapes())
	assert.Equal(t, 3, r.NumMeshes())
	lo, hi := r.Bounds()
	assert.Equal(t, vec{0, 0, 0}, lo)
	assert.Equal(t, vec{7, 1, .5}, hi)
}

func TestA13Normals(t *testing.T) {
	collinear := triangles(vec{0, 0, 0}, vec{1, 0, 0}, vec{2, 0, 0})
	repeated := scene.Mesh{Vertices: meshT().Vertices, Faces: []int32{0, 0, 1}}
	n := build(t, scaled(meshT(), 1e-7), collinear, repeated, meshW()).geometry().FaceNormals
	assert.InDeltaSlice(t, []float32{0, 0, 1}, n[0:3], 1e-6)
	assert.Equal(t, bits([]float32{0, 0, 0, 0, 0, 0}), bits(n[3:9]))
	assert.InDeltaSlice(t, []float32{6. / 7, 3. / 7, 2. / 7}, n[9:12], 1e-6)
}

// Unit length at any scale, the direction of the float64 cross product, and the
// bits that a hit reports.
func TestNormalsOfRandomTriangles(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	var corners []vec
	for range 500 {
		scale := float32(math.Pow(10, 30*rng.Float64()-15))
		for range 3 {
			corners = append(corners, vec{scale * rng.Float32(), scale * rng.Float32(), scale * rng.Float32()})
		}
	}
	n := build(t, triangles(corners...)).geometry().FaceNormals
	for f := range 500 {
		var e [2][3]float64
		for k := range 3 {
			v0 := float64(corners[3*f][k])
			e[0][k], e[1][k] = float64(corners[3*f+1][k])-v0, float64(corners[3*f+2][k])-v0
		}
		want := [3]float64{
			e[0][1]*e[1][2] - e[0][2]*e[1][1], e[0][2]*e[1][0] - e[0][0]*e[1][2], e[0][0]*e[1][1] - e[0][1]*e[1][0]}
		l := math.Sqrt(want[0]*want[0] + want[1]*want[1] + want[2]*want[2])
		sum := 0.0
		for k := range 3 {
			x := float64(n[3*f+k])
			sum += x * x
			// Thin triangles amplify the rounding of their sides.
			assert.InDelta(t, want[k]/l, x, 1e-4, "face %d", f)
		}
		assert.InDelta(t, 1, sum, 1e-6, "face %d", f)
	}
}

func TestReadBacksAreCopies(t *testing.T) {
	r := build(t, meshQ())
	g, e := r.geometry(), r.edges()
	mask, err := r.EdgeMask()
	require.NoError(t, err)
	g.Vertices[0], e.V0[0], mask[0] = 7, 7, false
	assert.Zero(t, r.geometry().Vertices[0])
	assert.Zero(t, r.edges().V0[0])
	mask, err = r.EdgeMask()
	require.NoError(t, err)
	assert.Equal(t, []bool{true, true, true, true, true}, mask)
}
