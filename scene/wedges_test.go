package scene_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// unusedWedges are slots that no event has filled.
func unusedWedges(n int) []any {
	w := wedges{
		point: make([]float32, 3*n), normal: make([]float32, 3*n), direction: make([]float32, 3*n),
		source: make([]float32, 3*n), dir: make([]float32, 3*n), power: make([]float32, n),
	}
	for range n {
		w.ray, w.prim, w.depth = append(w.ray, -1), append(w.prim, -1), append(w.depth, -1)
	}
	return w.exact()
}

// part is slots [i, j).
func (w wedges) part(i, j int) wedges {
	return wedges{
		ray: w.ray[i:j], point: w.point[3*i : 3*j], normal: w.normal[3*i : 3*j], direction: w.direction[3*i : 3*j],
		source: w.source[3*i : 3*j], dir: w.dir[3*i : 3*j], power: w.power[i:j], prim: w.prim[i:j], depth: w.depth[i:j],
	}
}

func requireVec(t testing.TB, want vec, got []float32) {
	t.Helper()
	for k := range want {
		require.InDelta(t, want[k], got[k], 1e-6)
	}
}

func TestWedgesW1OneEvent(t *testing.T) {
	c := caseA3()
	c.opt.CollectWedges, c.opt.WedgeCapacity = true, 4
	w := c.run(t).wedges
	require.EqualValues(t, 1, w.count)
	d := vec{.707106781, 0, -.707106781}
	requireVec(t, vec{2, 0, 0}, w.point)
	requireVec(t, vec{0, 0, 1}, w.normal)
	requireVec(t, d, w.direction)
	requireVec(t, vec{0, 0, 2}, w.source)
	requireVec(t, d, w.dir)
	require.Equal(t, [3]any{int64(0), int32(0), int32(0)}, [3]any{w.ray[0], w.prim[0], w.depth[0]})
	require.InEpsilon(t, 1e-4, w.power[0], 1e-6)
	require.Equal(t, unusedWedges(3), w.part(1, 4).exact())
}

func TestWedgesW2EventsBehindTheFirst(t *testing.T) {
	c := caseA7()
	c.opt.CollectWedges, c.opt.WedgeCapacity = true, 8
	first := c.run(t).wedges
	require.EqualValues(t, 1, first.count)
	require.Equal(t, unusedWedges(7), first.part(1, 8).exact())
	c.opt.CollectWedgePrefixes = true
	w := c.run(t).wedges
	require.EqualValues(t, 3, w.count)
	require.Equal(t, first.part(0, 1).exact(), w.part(0, 1).exact())
	require.Equal(t, []int32{0, 1, 2, -1}, w.depth[:4])
	require.Equal(t, []int32{0, 2, 0, -1}, w.prim[:4])
	require.Equal(t, []int64{0, 0, 0, -1}, w.ray[:4])
	for i, z := range []float32{.5, -.5, 4.5} {
		requireVec(t, vec{.3, -.2, z}, w.source[3*i:])
		require.InEpsilon(t, []float32{.01, 1.04403222e-3, 1.09000328e-4}[i], w.power[i], 1e-5)
		requireVec(t, vec(w.direction[:]), w.dir[3*i:])
	}
	require.Equal(t, unusedWedges(5), w.part(3, 8).exact())
	// Fewer slots than events of one ray.
	c.opt.WedgeCapacity = 2
	two := c.run(t).wedges
	require.EqualValues(t, 3, two.count)
	two.count = 0
	require.Equal(t, w.part(0, 2).exact(), two.exact())
}

// eightRows are eight rows of case A3.
func eightRows() gridCase {
	c := caseA3()
	c.ray = batch{}
	for range 8 {
		c.ray.add(vec{0, 0, 2}, vec{1, 0, -1})
	}
	c.opt.CollectWedges = true
	return c
}

func TestWedgesW3FirstEventsAreKept(t *testing.T) {
	c := eightRows()
	c.opt.WedgeCapacity = 4
	w := c.run(t).wedges
	require.EqualValues(t, 8, w.count)
	require.Equal(t, []int64{0, 1, 2, 3}, w.ray)
	// W6: none is kept.
	c.opt.WedgeCapacity = 0
	w = c.run(t).wedges
	require.EqualValues(t, 8, w.count)
	require.Empty(t, w.ray)
}

func TestWedgesW4Stride(t *testing.T) {
	c := eightRows()
	c.opt.WedgeCapacity, c.opt.CollectWedgePrefixes, c.opt.WedgeSampleStride = 4, true, 2
	w := c.run(t).wedges
	require.EqualValues(t, 4, w.count)
	require.Equal(t, []int64{0, 2, 4, 6}, w.ray)
	for _, p := range w.power {
		require.InEpsilon(t, 2e-4, p, 1e-6)
	}
	// Without prefixes there is no stride.
	c.opt.CollectWedgePrefixes, c.opt.WedgeCapacity = false, 9
	w = c.run(t).wedges
	require.EqualValues(t, 8, w.count)
	require.InEpsilon(t, 1e-4, w.power[7], 1e-6)
}

func TestWedgesW5PartsOfAFan(t *testing.T) {
	for _, stride := range []int{0, 2} {
		c := eightRows()
		c.opt.WedgeCapacity, c.opt.WedgeSampleStride, c.opt.CollectWedgePrefixes = 4, stride, stride > 0
		whole := c.run(t).wedges
		var joined wedges
		for _, rows := range [][2]int{{0, 5}, {5, 8}} {
			p := c
			p.ray, p.opt.RowBase = c.ray.part(rows[0], rows[1]), int64(rows[0])
			w := p.run(t).wedges
			joined.count += w.count
			w = w.part(0, min(int(w.count), 4-len(joined.ray)))
			joined.ray, joined.prim, joined.depth = append(joined.ray, w.ray...), append(joined.prim, w.prim...), append(joined.depth, w.depth...)
			joined.point, joined.normal = append(joined.point, w.point...), append(joined.normal, w.normal...)
			joined.direction, joined.source = append(joined.direction, w.direction...), append(joined.source, w.source...)
			joined.dir, joined.power = append(joined.dir, w.dir...), append(joined.power, w.power...)
		}
		require.Equal(t, whole.exact(), joined.exact(), "stride %d", stride)
	}
}

func TestWedgesW7NothingReflects(t *testing.T) {
	c := eightRows()
	c.opt.WedgeCapacity, c.opt.MaxBounces = 2, 0
	w := c.run(t).wedges
	require.Equal(t, unusedWedges(2), w.exact())
	c.opt.MaxBounces, c.eta = 1, 1
	w = c.run(t).wedges
	require.Equal(t, unusedWedges(2), w.exact())
	// Nor is anything collected that is not asked for.
	c.eta, c.opt.CollectWedges = 4, false
	w = c.run(t).wedges
	require.Zero(t, w.count)
	require.Empty(t, w.ray)
}
