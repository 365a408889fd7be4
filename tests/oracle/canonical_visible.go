package oracle

import "slices"

// Visible says whether the segment from s to e is free of triangles other than the
// ignored ones, by the segment rule in single precision: the bits of which decide
// every row, ambiguous or not.
func (c *Canonical) Visible(s, e [3]float32, ignore ...int32) bool {
	visible, _ := c.block(s, e, skipping(ignore))
	return visible
}

// Blocker is the closest triangle that blocks the segment, or -1.
func (c *Canonical) Blocker(s, e [3]float32, ignore ...int32) int {
	_, prim := c.block(s, e, skipping(ignore))
	return prim
}

// block is the segment rule without the triangles that skip names.
func (c *Canonical) block(s, e [3]float32, skip func(prim int) bool) (visible bool, prim int) {
	if !finite(wide(s)) || !finite(wide(e)) {
		return false, -1
	}
	w := sub32(e, s)
	length := sqrt32(dot32(w, w))
	eps := eps32(max(inf32of(s), inf32of(e)))
	switch {
	case !(length < inf32):
		return false, -1
	case length <= 2*eps:
		return true, -1
	}
	r := 1 / length
	for k := range w {
		w[k] *= r
	}
	prim, _ = c.search(s, w, eps, length-eps, skip)
	return prim < 0, prim
}

// skipping is a test for membership in an ignore list.
func skipping(ignore []int32) func(int) bool {
	if len(ignore) == 0 {
		return nil
	}
	return func(prim int) bool { return slices.Contains(ignore, int32(prim)) }
}

// EdgeRow is a source and a piece of an edge: the points position + u*direction
// for u from TMin to TMax.
type EdgeRow struct {
	Source, Position, Direction [3]float32
	TMin, TMax                  float32
}

// VisibleEdge says whether the source sees any of the samples at the fractions of
// the piece.
func (c *Canonical) VisibleEdge(r EdgeRow, fractions []float32) bool {
	if !r.valid() {
		return false
	}
	return slices.ContainsFunc(r.samples(fractions), func(q [3]float32) bool { return c.Visible(r.Source, q) })
}

// valid reports whether the row is searched at all. A parameter that is not finite
// spoils only the samples that depend on it.
func (r EdgeRow) valid() bool {
	return finite(wide(r.Source)) && finite(wide(r.Position)) && finite(wide(r.Direction))
}

// samples are the points in single precision; those of other oracles too, because
// they are rounded inputs of the segments.
func (r EdgeRow) samples(fractions []float32) [][3]float32 {
	span := r.TMax - r.TMin
	if span < 0 {
		span = 0
	}
	points := make([][3]float32, len(fractions))
	for i, f := range fractions {
		points[i] = shifted(r.Position, r.TMin+float32(f*span), r.Direction)
	}
	return points
}

// Polyline is the answer for one polyline: whether all of its segments are free,
// or else the first that is not and its closest blocker.
type Polyline struct {
	AllVisible bool
	Segment    int
	Prim       int
}

// VisibleChain tests the first length segments between consecutive points;
// ignore[i], if present, belongs to segment i.
func (c *Canonical) VisibleChain(points [][3]float32, length int, ignore [][]int32) Polyline {
	m, ok := segmentsOf(points, length)
	if !ok {
		return Polyline{Segment: -1, Prim: -1}
	}
	for i := range m {
		if visible, prim := c.block(points[i], points[i+1], skipping(listOf(ignore, i))); !visible {
			return Polyline{Segment: i, Prim: prim}
		}
	}
	return Polyline{AllVisible: true, Segment: -1, Prim: -1}
}

// segmentsOf is the number of segments to test; false for a row that counts as
// blocked.
func segmentsOf(points [][3]float32, length int) (int, bool) {
	if length < 0 {
		return 0, false
	}
	m := min(length, len(points)-1)
	return m, !slices.ContainsFunc(points[:m+1], func(p [3]float32) bool { return !finite(wide(p)) })
}

func listOf(ignore [][]int32, i int) []int32 {
	if i < len(ignore) {
		return ignore[i]
	}
	return nil
}
