package oracle

import (
	"fmt"
	"math"
	"slices"
)

// Segment is the answer for one segment in float64.
type Segment struct {
	Visible bool
	// Ambiguous rows may be answered otherwise in single precision; Why says which
	// margin is small.
	Ambiguous bool
	Why       string
	// Blocker is the closest triangle on the inner part of the segment, with an
	// ambiguity of its own: that a segment is blocked can be certain where the
	// closest of several blockers is not.
	Blocker Hit
}

// Segment tests the segment from s to e without the ignored triangles.
//
// The answer is certain when some triangle crosses by more than every margin, and
// when no triangle comes closer than a margin to doing so.
func (o *Oracle) Segment(s, e [3]float32, ignore ...int32) Segment {
	return o.segment(wide(s), wide(e), drift{}, skipping(ignore))
}

// segment is Segment between points that single precision may see elsewhere, by off at
// each end, without the triangles that skip names.
func (o *Oracle) segment(so, eo [3]float64, off drift, skip func(prim int) bool) Segment {
	free := Segment{Visible: true, Blocker: Hit{Prim: -1, T: math.Inf(1)}}
	blocked := free
	blocked.Visible = false
	if !finite(so) || !finite(eo) {
		return blocked
	}
	w := sub(eo, so)
	length := math.Sqrt(dot(w, w))
	eps := epsilon(math.Max(inf(so), inf(eo)))
	switch {
	case length*length >= math.MaxFloat32*(1+relMargin): // overflows in single precision
		return blocked
	case length <= 2*eps:
		if length > 2*eps*(1-relMargin) {
			free.doubt("length is twice the margin at the ends")
		}
		return free
	}
	for k := range w {
		w[k] /= length
	}
	near := o.crossings(so, w, off, skip)
	scale := math.Max(1, inf(so)+o.vmax)
	answer := free
	answer.Blocker = o.decide(near, w, 1, scale, eps, length-eps)
	answer.Visible = answer.Blocker.Prim < 0
	if length*length > math.MaxFloat32*(1-relMargin) {
		answer.doubt("length overflows or not")
	}
	if length < 2*eps*(1+relMargin) {
		answer.doubt("length is twice the margin at the ends")
	}
	// Where a segment passes a plane at a small angle, rounding of the corners moves the
	// crossing far along it.
	margin := func(c crossing) float64 {
		return answer.Blocker.H + lengthMargin*(inf(so)+o.tri[c.prim].size)/o.incidence(c.prim, w)
	}
	certain := slices.ContainsFunc(near, func(c crossing) bool {
		h := margin(c)
		return !c.onEdge && c.t > eps+h && c.t < length-eps-h && o.incidence(c.prim, w) >= grazeMargin
	})
	if certain {
		return answer
	}
	for _, c := range near {
		if h := margin(c); c.t >= eps-h && c.t <= length-eps+h {
			answer.doubt(fmt.Sprintf("triangle %d crosses within a margin", c.prim))
		}
	}
	return answer
}

func (s *Segment) doubt(why string) {
	if !s.Ambiguous {
		s.Ambiguous, s.Why = true, why
	}
}

// incidence is the cosine between a unit direction and a triangle's normal.
func (o *Oracle) incidence(prim int, unit [3]float64) float64 {
	n := o.tri[prim].n
	return math.Abs(dot(n, unit)) / math.Sqrt(dot(n, n))
}

// epsilon is the offset rule.
func epsilon(m float64) float64 { return math.Max(2e-5, 1e-6*m) }

// Edge says whether the source of a row sees any of its samples, and whether single
// precision may say otherwise.
func (o *Oracle) Edge(r EdgeRow, fractions []float32) (visible, ambiguous bool) {
	if !r.valid() {
		return false, false
	}
	for _, q := range r.samples(fractions) {
		switch s := o.Segment(r.Source, q); {
		case s.Ambiguous:
			visible, ambiguous = visible || s.Visible, true
		case s.Visible:
			return true, false
		}
	}
	return visible, ambiguous
}

// Chain answers a polyline like Canonical.VisibleChain. It is ambiguous when the
// flag or the segment is; the blocker has an ambiguity of its own.
func (o *Oracle) Chain(points [][3]float32, length int, ignore [][]int32) (answer Polyline, ambiguous, blockerAmbiguous bool) {
	m, ok := segmentsOf(points, length)
	if !ok {
		return Polyline{Segment: -1, Prim: -1}, false, false
	}
	for i := range m {
		s := o.Segment(points[i], points[i+1], listOf(ignore, i)...)
		ambiguous = ambiguous || s.Ambiguous
		if !s.Visible {
			return Polyline{Segment: i, Prim: s.Blocker.Prim}, ambiguous, ambiguous || s.Blocker.Ambiguous
		}
	}
	return Polyline{AllVisible: true, Segment: -1, Prim: -1}, ambiguous, ambiguous
}
