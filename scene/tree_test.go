package scene

import (
	"context"
	"math"
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

// checkTree walks the shapes and requires every triangle in exactly one place,
// every slot in use exactly once, and every node in the level that it was counted
// in.
func checkTree(t *testing.T, tree *hostTree, faces int) {
	t.Helper()
	require.Len(t, tree.slots, faces)
	require.LessOrEqual(t, len(tree.levels)-1, treeStack)
	require.Equal(t, tree.nodeCount(), tree.levels[len(tree.levels)-1])
	const free, node, triangle = 0, 1, 2
	expected := make([]int, tree.size) // what the parent says about a slot
	expected[rootSlot] = node
	parents := make([]int, tree.nodeCount())
	for k := range len(tree.levels) - 1 {
		for n := tree.levels[k]; n < tree.levels[k+1]; n++ {
			slot, next, inner, masks := shapeOf(tree, n)
			require.Equal(t, node, expected[slot], "slot %d of node %d", slot, n)
			require.Zero(t, masks&0xff&(masks>>8), "node %d has two children in one place", n)
			require.NotZero(t, masks, "node %d is empty", n)
			for place := range treeWidth {
				switch {
				case masks>>place&1 != 0:
					require.Equal(t, free, expected[next])
					expected[next] = node
					require.GreaterOrEqual(t, inner, tree.levels[k+1], "child of node %d is not a level down", n)
					require.Less(t, inner, tree.levels[k+2], "child of node %d is more than a level down", n)
					childSlot, _, _, _ := shapeOf(tree, inner)
					require.Equal(t, next, childSlot)
					parents[inner]++
					inner++
					next++
				case masks>>(8+place)&1 != 0:
					require.Equal(t, free, expected[next])
					expected[next] = triangle
					next++
				}
			}
		}
	}
	for _, slot := range tree.slots {
		require.Equal(t, triangle, expected[slot], "slot %d", slot)
		expected[slot] = free
	}
	triangles := 0
	for _, what := range expected {
		if what == triangle {
			triangles++
		}
	}
	require.Zero(t, triangles, "places without a triangle")
	require.Equal(t, 1+tree.nodeCount()+faces, tree.size)
	for i, n := range parents[1:] {
		require.Equal(t, 1, n, "parents of node %d", i+1)
	}
}

func shapeOf(tree *hostTree, n int) (slot, base, firstInner, masks int) {
	s := tree.shapes[n*shapeWords:]
	return int(s[0]), int(s[1]), int(s[2]), int(s[3])
}

func TestTreeHoldsEveryTriangleOnce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8, 9, 17, 100, 20000} {
		for _, size := range []float32{0, 0.01, 10} {
			v, f := soup(uint64(n), n, size)
			tree, err := buildTree(context.Background(), v, f)
			require.NoError(t, err)
			checkTree(t, tree, n)
		}
	}
}

// The wide tree has the least sum of node areas that its binary tree allows: here
// every way to take in splits is tried.
func TestWideNodesAreTheCheapest(t *testing.T) {
	for seed := range uint64(30) {
		n := 2 + int(seed)%13
		v, f := soup(seed, n, 0.5)
		b, err := newBuilder(context.Background(), v, f)
		require.NoError(t, err)
		c := newCollapser(b)
		least := math.Inf(1)
		for _, x := range everyTree(c, c.root()) {
			least = min(least, x)
		}
		got := 0.0
		var visit func(b branch)
		visit = func(b branch) {
			if b.isTriangle() {
				return
			}
			got += areaOf(c, b)
			all := c.children(b)
			for place, child := range all.at {
				if all.used>>place&1 != 0 {
					visit(child)
				}
			}
		}
		visit(c.root())
		assert.InEpsilon(t, least, got, 1e-5, "%d triangles, seed %d", n, seed)
	}
}

func areaOf(c *collapser, b branch) float64 {
	box := c.boxOf(b)
	return box.halfArea()
}

// everyTree lists the costs of all wide trees of a subtree.
func everyTree(c *collapser, b branch) []float64 {
	if b.isTriangle() {
		return []float64{0}
	}
	var costs []float64
	l, r := c.halves(b)
	for _, list := range everyList(c, l, r) {
		if len(list) > treeWidth {
			continue
		}
		sums := []float64{areaOf(c, b)}
		for _, child := range list {
			var more []float64
			// Only the best tree of a child can be in the best tree.
			best := math.Inf(1)
			for _, x := range everyTree(c, child) {
				best = min(best, x)
			}
			for _, s := range sums {
				more = append(more, s+best)
			}
			sums = more
		}
		costs = append(costs, sums...)
	}
	return costs
}

// everyList lists the lists of children that two halves may become.
func everyList(c *collapser, halves ...branch) [][]branch {
	lists := [][]branch{nil}
	for _, h := range halves {
		options := [][]branch{{h}}
		if !h.isTriangle() {
			l, r := c.halves(h)
			options = append(options, everyList(c, l, r)...)
		}
		var longer [][]branch
		for _, a := range lists {
			for _, o := range options {
				longer = append(longer, append(append([]branch{}, a...), o...))
			}
		}
		lists = longer
	}
	return lists
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
