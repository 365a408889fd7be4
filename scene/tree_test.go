package scene

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func soup(seed uint64, n int, size float32) (vertices []float32, faces []int32) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		c := [3]float32{rng.Float32(), rng.Float32(), rng.Float32()}
		for corner := range 3 {
			for k := range 3 {
				vertices = append(vertices, c[k]+size*(rng.Float32()-0.5))
			}
			faces = append(faces, int32(3*i+corner))
		}
	}
	return vertices, faces
}

// checkTree walks the links and requires every triangle in exactly one leaf and
// every node in the level that it was counted in.
func checkTree(t *testing.T, tree *hostTree, faces int) {
	t.Helper()
	require.Len(t, tree.order, faces)
	ids := make([]bool, faces)
	for _, id := range tree.order {
		require.False(t, ids[id], "triangle %d is in two slots", id)
		ids[id] = true
	}
	require.LessOrEqual(t, len(tree.levels)-1, treeStack)
	require.Equal(t, tree.nodeCount(), tree.levels[len(tree.levels)-1])
	slots, parents := make([]int, faces), make([]int, tree.nodeCount())
	for k := range len(tree.levels) - 1 {
		for n := tree.levels[k]; n < tree.levels[k+1]; n++ {
			for side := range 2 {
				link := tree.nodes[n*nodeWords+linkWord+side]
				if link < 0 {
					first, count := int(^link>>2), int(^link&3)+1
					for i := range count {
						slots[first+i]++
					}
					continue
				}
				parents[link]++
				require.GreaterOrEqual(t, int(link), tree.levels[k+1], "child of node %d is not a level down", n)
				require.Less(t, int(link), tree.levels[k+2], "child of node %d is more than a level down", n)
			}
		}
	}
	want := 1
	if faces <= leafMax && tree.nodeCount() == 1 && tree.nodes[linkWord] == tree.nodes[linkWord+1] {
		want = 2 // the whole scene is one leaf, linked twice
	}
	for i, n := range slots {
		require.Equal(t, want, n, "slot %d", i)
	}
	for i, n := range parents[1:] {
		require.Equal(t, 1, n, "parents of node %d", i+1)
	}
}

func TestTreeHoldsEveryTriangleOnce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8, 17, 100, 20000} {
		for _, size := range []float32{0, 0.01, 10} {
			v, f := soup(uint64(n), n, size)
			tree, err := buildTree(context.Background(), v, f)
			require.NoError(t, err)
			checkTree(t, tree, n)
		}
	}
}

// Sizes that grow geometrically make every plane cut off a few triangles, so that
// the heuristic alone would go as deep as there are scales.
func TestTreeDepthIsBounded(t *testing.T) {
	const n = 3000
	var v []float32
	var f []int32
	x := float32(1)
	for i := range n {
		if i%15 == 14 {
			x *= 2
			if x > 1e37 {
				x = 1e-37
			}
		}
		v = append(v, x, 0, 0, 1.5*x, 0, 0, x, 0.5*x, 0)
		f = append(f, int32(3*i), int32(3*i+1), int32(3*i+2))
	}
	tree, err := buildTree(context.Background(), v, f)
	require.NoError(t, err)
	checkTree(t, tree, n)
	assert.Greater(t, len(tree.levels), levelsFor(n), "the input does not press against the bound")
}

func TestTreeOfCoincidentTriangles(t *testing.T) {
	const n = 1000
	v := []float32{0, 0, 0, 1, 0, 0, 0, 1, 0}
	var f []int32
	for range n {
		f = append(f, 0, 1, 2)
	}
	tree, err := buildTree(context.Background(), v, f)
	require.NoError(t, err)
	checkTree(t, tree, n)
}

func TestTreeOfHugeCoordinates(t *testing.T) {
	v, f := soup(5, 500, 1)
	for i := range v {
		v[i] = (v[i] - 0.5) * 3e38
	}
	tree, err := buildTree(context.Background(), v, f)
	require.NoError(t, err)
	checkTree(t, tree, 500)
}

func TestTreeBuildStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	v, f := soup(6, 2*parallelMin, 0.1)
	_, err := buildTree(ctx, v, f)
	require.ErrorIs(t, err, context.Canceled)
}

func BenchmarkBuildTree(b *testing.B) {
	v, f := soup(7, 1<<21, 0.01)
	for b.Loop() {
		tree, err := buildTree(context.Background(), v, f)
		require.NoError(b, err)
		b.ReportMetric(float64(len(tree.levels)-1), "levels")
	}
}
