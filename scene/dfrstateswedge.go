package scene

import (
	"cmp"
	"math"
	"slices"
)

const (
	// leastEdge is the shortest edge that diffracts, in metres.
	leastEdge = 1e-6
	// leastFace is the least area of a face, relative to its squared longest side.
	leastFace = 1e-12
)

// halfPlane is a face as it is seen from one of its sides: all that matters is its
// direction around the side.
type halfPlane struct {
	face   int32
	third  [3]float64 // the corner that is not on the side
	normal [3]float64 // unit, by winding
	runs   bool       // the face runs along the side from its smaller to its larger vertex
	angle  float64    // from the first face, in [0, 2 pi)
}

// wedge is a state without its source: the edge runs from a along e.
type wedge struct {
	edge         int32
	a, e         [3]float64
	length       float64
	n0, n1       [3]float64
	prim0, prim1 int32
	angle        float64
}

// add notes a face of the side at hand.
func (b *wedgeBuilder) add(face int32) {
	if !slices.Contains(b.ids, face) {
		b.ids = append(b.ids, face)
	}
}

// side appends the state of the side between two vertices, if it has one, and counts it.
func (b *wedgeBuilder) side(edge, v0, v1 int32) {
	slices.Sort(b.ids)
	p0, p1 := b.vertex(v0), b.vertex(v1)
	var fans []halfPlane
	for _, id := range b.ids {
		if h, ok := b.halfPlane(id, v0, v1); ok {
			fans = append(fans, h)
		}
	}
	length := norm(difference(p1, p0))
	if length < leastEdge || len(fans) == 0 {
		b.report.Degenerate++
		return
	}
	first := fans[0]
	a, e := p0, scaledBy(1/length, difference(p1, p0))
	if !first.runs {
		a, e = p1, scaledBy(-1, e)
	}
	measureAngles(fans, a, e)
	w := wedge{edge: edge, a: a, e: e, length: length}
	w.n0, w.prim0 = first.normal, first.face
	w.n1, w.prim1, w.angle = scaledBy(-1, first.normal), first.face, 2*math.Pi
	switch len(fans) {
	case 1:
		b.report.Boundary++
		b.coincide(p0, p1)
	case 2:
		other := fans[1]
		w.prim1, w.angle = other.face, other.angle
		switch {
		case other.runs == first.runs:
			b.report.Inconsistent++
			return
		case w.angle > math.Pi+b.delta:
		case w.angle >= math.Pi-b.delta:
			b.report.Flat++
			return
		default:
			b.report.Concave++
			return
		}
		w.n1 = farNormal(w)
	default:
		opens, closes, angle := widestGap(fans)
		// A face whose normal points into the gap that it opens runs as the first one does.
		if !(angle > math.Pi+b.delta) || opens.runs != first.runs {
			b.report.Closed++
			return
		}
		w.n0, w.prim0, w.prim1, w.angle = opens.normal, opens.face, closes.face, angle
		w.n1 = farNormal(w)
		b.report.NonManifold++
	}
	b.report.States++
	b.append(w)
}

// coincide counts half planes with the same ends. They are one edge to the eye.
func (b *wedgeBuilder) coincide(p0, p1 [3]float64) {
	if slices.Compare(p0[:], p1[:]) > 0 {
		p0, p1 = p1, p0
	}
	ends := [2][3]float64{p0, p1}
	b.boundary[ends]++
	switch b.boundary[ends] {
	case 1:
	case 2:
		b.report.Coincident += 2
	default:
		b.report.Coincident++
	}
}

// measureAngles sets the angle of every half plane from the first one, which runs along e
// from a, counted through the space in front of it.
func measureAngles(fans []halfPlane, a, e [3]float64) {
	n0 := fans[0].normal
	t0 := outer(n0, e)
	for i := range fans[1:] {
		h := &fans[1+i]
		q := difference(h.third, a)
		q = difference(q, scaledBy(inner(&q, &e), e))
		h.angle = math.Atan2(inner(&q, &n0), inner(&q, &t0))
		if h.angle < 0 {
			h.angle += 2 * math.Pi
		}
	}
}

// widestGap finds the widest angle between neighbours, and the two half planes at its
// ends. At most one angle is wider than pi.
func widestGap(fans []halfPlane) (opens, closes halfPlane, angle float64) {
	slices.SortStableFunc(fans, func(a, b halfPlane) int { return cmp.Compare(a.angle, b.angle) })
	for i, h := range fans {
		next := fans[(i+1)%len(fans)]
		gap := next.angle - h.angle
		if i == len(fans)-1 {
			gap += 2 * math.Pi
		}
		if gap > angle {
			opens, closes, angle = h, next, gap
		}
	}
	return opens, closes, angle
}

// halfPlane is a face as seen from the side between v0 and v1; false when it has no area.
func (b *wedgeBuilder) halfPlane(id, v0, v1 int32) (halfPlane, bool) {
	corners := b.faces[3*id : 3*id+3]
	p := [3][3]float64{b.vertex(corners[0]), b.vertex(corners[1]), b.vertex(corners[2])}
	longest := 0.0
	h := halfPlane{face: id}
	for i, v := range corners {
		next := corners[(i+1)%3]
		side := difference(p[(i+1)%3], p[i])
		longest = max(longest, inner(&side, &side))
		switch {
		case v == v0 && next == v1:
			h.runs, h.third = true, p[(i+2)%3]
		case v == v1 && next == v0:
			h.third = p[(i+2)%3]
		}
	}
	n := outer(difference(p[1], p[0]), difference(p[2], p[0]))
	twice := norm(n)
	if !(twice/2 > leastFace*longest) {
		return h, false
	}
	h.normal = scaledBy(1/twice, n)
	return h, true
}

func (b *wedgeBuilder) vertex(v int32) [3]float64 {
	p := b.vertices[3*v : 3*v+3]
	return [3]float64{float64(p[0]), float64(p[1]), float64(p[2])}
}

// append adds a state to the columns.
func (b *wedgeBuilder) append(w wedge) {
	s := b.states
	s.EdgeIndex = append(s.EdgeIndex, w.edge)
	s.EdgePos = appendVector(s.EdgePos, w.a)
	s.EdgeDir = appendVector(s.EdgeDir, w.e)
	s.TMin = append(s.TMin, 0)
	s.TMax = append(s.TMax, float32(w.length))
	s.N0 = appendVector(s.N0, w.n0)
	s.N1 = appendVector(s.N1, w.n1)
	s.Prim0 = append(s.Prim0, w.prim0)
	s.Prim1 = append(s.Prim1, w.prim1)
	s.ExteriorAngle = append(s.ExteriorAngle, float32(w.angle))
	s.Src = append(s.Src, b.opts.Src[:]...)
	s.SrcPower = append(s.SrcPower, b.opts.SrcPower)
}

// farNormal is the normal of the face that is the wedge's angle away from face 0. It agrees
// with that angle even where the face itself shows its back.
func farNormal(w wedge) (n1 [3]float64) {
	t0 := outer(w.n0, w.e)
	sin, cos := math.Sincos(w.angle)
	for k := range n1 {
		n1[k] = sin*t0[k] - cos*w.n0[k]
	}
	return n1
}

func appendVector(to []float32, v [3]float64) []float32 {
	return append(to, float32(v[0]), float32(v[1]), float32(v[2]))
}

func difference(a, b [3]float64) [3]float64 { return [3]float64{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

func scaledBy(f float64, a [3]float64) [3]float64 { return [3]float64{f * a[0], f * a[1], f * a[2]} }

func outer(a, b [3]float64) [3]float64 {
	return [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

func norm(a [3]float64) float64 { return math.Sqrt(inner(&a, &a)) }
