package oracle

import (
	"fmt"
	"math"
)

// TMin is the lower end of the ray interval, in units of the direction.
const TMin = 1e-6

// Tolerances of the ambiguity rule.
const (
	baryMargin  = 1e-5 // barycentric distance from an edge
	grazeMargin = 1e-5 // |cos| of the angle between ray and triangle plane
	relMargin   = 1e-5 // of h, the margin in t

	// lengthMargin, times the coordinates involved, is how far beside an edge
	// single precision may see a ray. It is a length: of a thin triangle, or
	// one seen edge-on, 1e-5 in barycentrics can be less than one rounding of
	// the coordinates.
	lengthMargin = 1.0 / (1 << 20)
)

// Oracle holds one triangle mesh in float64.
type Oracle struct {
	tri   []triangle
	balls []ball
	vmax  float64 // largest absolute coordinate
}

// ball holds a triangle, around its first vertex. Most lines pass far from most balls.
type ball struct {
	centre [3]float64
	radius float64
}

type triangle struct {
	v0, e1, e2 [3]float64
	n          [3]float64 // e1 x e2, not normalised
	size       float64    // largest absolute coordinate
	degenerate bool
}

// Hit is the answer for one ray.
type Hit struct {
	Prim   int // winning triangle, -1 for a miss
	T      float64
	B1, B2 float64    // barycentric weights of vertices 1 and 2
	N      [3]float64 // unit normal by the winding
	// Ambiguous rows may legitimately be answered otherwise in single
	// precision; Why says which margin is small.
	Ambiguous bool
	Why       string
	// H is the margin in t of this row: results within H of T agree.
	H float64
	// BTol is how far single-precision barycentrics may be off: 1e-4, or what
	// the rounding of the coordinates does to a thin or edge-on triangle.
	BTol float64
	// Near lists the triangles that an answer may name on an ambiguous row:
	// those up to the first that is hit for certain.
	Near []int
}

// New makes an oracle over vertices (3 per point) and faces (3 per triangle).
func New(vertices []float32, faces []int32) *Oracle {
	o := &Oracle{tri: make([]triangle, len(faces)/3), balls: make([]ball, len(faces)/3)}
	at := func(i int32) (p [3]float64) {
		for k := range p {
			p[k] = float64(vertices[3*int(i)+k])
		}
		return p
	}
	for f := range o.tri {
		a, b, c := at(faces[3*f]), at(faces[3*f+1]), at(faces[3*f+2])
		t := triangle{v0: a, e1: sub(b, a), e2: sub(c, a)}
		t.n = cross(t.e1, t.e2)
		t.degenerate = t.n == [3]float64{}
		o.tri[f] = t
		t.size = math.Max(inf(a), math.Max(inf(b), inf(c)))
		o.tri[f].size = t.size
		o.balls[f] = ball{a, math.Sqrt(math.Max(dot(t.e1, t.e1), dot(t.e2, t.e2)))}
		o.vmax = math.Max(o.vmax, t.size)
	}
	return o
}

// crossing is a triangle that the ray's line meets, or just misses.
type crossing struct {
	prim   int
	t      float64
	b1, b2 float64
	inside float64 // smallest barycentric; negative outside
	onEdge bool    // within a margin of an edge
	bTol   float64 // what rounding of the coordinates does to b1 and b2
	tTol   float64 // what the drift of the ray does to t
}

// Intersect finds the closest triangle on o + t d with TMin <= t <= tmax.
// A tmax of +Inf is unbounded.
func (o *Oracle) Intersect(orig, dir [3]float32, tmax float32) Hit {
	ro, rd := wide(orig), wide(dir)
	tm := float64(tmax)
	if !finite(ro) || !finite(rd) || rd == [3]float64{} || math.IsNaN(tm) || tm < TMin {
		return Hit{Prim: -1, T: math.Inf(1)}
	}
	dlen := math.Sqrt(dot(rd, rd))
	scale := math.Max(1, (inf(ro)+o.vmax)/dlen)

	return o.decide(o.crossings(ro, rd, drift{}, nil), rd, dlen, scale, TMin, tm)
}

// drift bounds how far the single-precision ray may be from this one: the origin
// by at most a length, the direction by at most an angle. Zero for a ray that is
// given.
type drift struct {
	origin, angle float64
}

// at is the distance of the two rays after a length.
func (d drift) at(length float64) float64 { return d.origin + length*d.angle }

// reach is at least the distance of every point in the ball from one that lies at s from
// its centre.
func (b *ball) reach(s [3]float64) float64 { return math.Sqrt(dot(s, s)) + b.radius }

// crossings lists the triangles that the line o + t d meets or misses by less than
// a margin, without those that skip names.
func (o *Oracle) crossings(ro, rd [3]float64, off drift, skip func(prim int) bool) []crossing {
	dlen := math.Sqrt(dot(rd, rd))
	perLength := 1 / dlen
	slack := 4 * lengthMargin * (inf(ro) + o.vmax)
	var near []crossing
	for f := range o.tri {
		b := &o.balls[f]
		s := sub(ro, b.centre)
		// Where single precision sees the corners is within a margin of where they are,
		// and so is all that it may hit.
		limit := b.radius*(1+10*baryMargin) + slack
		if off != (drift{}) {
			limit += 4 * off.at(b.reach(s))
		}
		along := dot(s, rd) * perLength
		if dot(s, s)-along*along > limit*limit {
			continue
		}
		t := &o.tri[f]
		if t.degenerate || skip != nil && skip(f) {
			continue
		}
		p := cross(rd, t.e2)
		det := dot(t.e1, p)
		if det == 0 {
			continue
		}
		n1 := dot(s, p)
		q := cross(s, t.e1)
		at := dot(t.e2, q) / det
		apart := 0.0
		if off != (drift{}) {
			// A plane that is nearly parallel is crossed far off, but what counts is
			// how far the rays are apart where the triangle is.
			apart = off.at(math.Min(math.Abs(at)*dlen, b.reach(s)))
		}
		delta := lengthMargin*(inf(ro)+t.size) + apart
		at1 := beyond(n1, det, p, delta)
		if at1 == outside {
			continue
		}
		m2 := cross(rd, t.e1)
		n2 := dot(rd, q)
		at2 := beyond(n2, det, m2, delta)
		if at2 == outside {
			continue
		}
		n0, m0 := det-n1-n2, cross(rd, sub(t.e2, t.e1))
		at0 := beyond(n0, det, m0, delta)
		if at0 == outside {
			continue
		}
		b1, b2 := n1/det, n2/det
		// A length over the altitude that is seen is a barycentric.
		seen := math.Sqrt(math.Max(dot(p, p), math.Max(dot(m2, m2), dot(m0, m0)))) / math.Abs(det)
		near = append(near, crossing{
			prim: f, t: at, b1: b1, b2: b2, inside: math.Min(b1, math.Min(b2, n0/det)),
			onEdge: at1 == border || at2 == border || at0 == border, bTol: delta * seen,
			// A shift of the ray moves the crossing by the shift over the cosine.
			tTol: apart * math.Sqrt(dot(t.n, t.n)) / math.Abs(det),
		})
	}
	return near
}

// Where a ray passes with respect to one edge.
const (
	within = iota
	border
	outside
)

// beyond compares one barycentric n/det with both margins. m is the direction
// times the edge opposite to the vertex: n divided by the length of m is the
// distance of ray and edge.
func beyond(n, det float64, m [3]float64, delta float64) int {
	b := n / det
	near := math.Abs(b) < baryMargin || n*n <= delta*delta*dot(m, m)
	switch {
	case near:
		return border
	case b < 0:
		return outside
	}
	return within
}

// decide picks the winner among the crossings on tmin <= t <= tmax and applies the
// margins.
func (o *Oracle) decide(near []crossing, rd [3]float64, dlen, scale, tmin, tmax float64) Hit {
	best, tol := Hit{Prim: -1, T: math.Inf(1)}, 0.0
	for _, c := range near {
		if c.inside >= 0 && c.t >= tmin && c.t <= tmax && (c.t < best.T || c.t == best.T && c.prim < best.Prim) {
			best.Prim, best.T, best.B1, best.B2 = c.prim, c.t, c.b1, c.b2
			best.BTol = math.Max(1e-4, c.bTol)
			tol = c.tTol
		}
	}
	h := relMargin * scale
	if best.Prim >= 0 {
		h = relMargin*math.Max(scale, math.Abs(best.T)) + tol
		t := &o.tri[best.Prim]
		nl := math.Sqrt(dot(t.n, t.n))
		for k := range best.N {
			best.N[k] = t.n[k] / nl
		}
		if math.Abs(dot(best.N, rd))/dlen < grazeMargin {
			best.doubt("grazing hit")
		}
	}
	best.H = h
	// Where the winner may be missed, whatever comes next may be answered.
	reach := math.Inf(1)
	for _, c := range near {
		if hc := h + c.tTol; !c.onEdge && c.t > tmin+hc && c.t < tmax-hc {
			reach = math.Min(reach, c.t+c.tTol)
		}
	}
	for _, c := range near {
		hc := h + c.tTol
		switch {
		case c.t > reach+hc:
			continue // behind a certain hit: cannot matter
		case c.t > best.T+hc:
			// Behind the winner: matters only if that is missed.
		case math.Abs(c.t-tmin) <= hc || math.Abs(c.t-tmax) <= hc:
			best.doubt(fmt.Sprintf("triangle %d at an end of the interval", c.prim))
		case c.t < tmin || c.t > tmax:
			continue
		case c.prim == best.Prim && c.onEdge:
			best.doubt("hit within a margin of an edge")
		case c.prim != best.Prim && c.inside < 0:
			best.doubt(fmt.Sprintf("triangle %d missed by less than a margin", c.prim))
		case c.prim != best.Prim && c.t <= best.T+hc:
			best.doubt(fmt.Sprintf("triangle %d within the margin in t", c.prim))
		}
		best.Near = append(best.Near, c.prim)
	}
	return best
}

func (h *Hit) doubt(why string) {
	if !h.Ambiguous {
		h.Ambiguous, h.Why = true, why
	}
}

// IntersectAll answers rays 0..n-1 on all cores; ray yields ray i.
func (o *Oracle) IntersectAll(n int, ray func(i int) (orig, dir [3]float32, tmax float32)) []Hit {
	hits := make([]Hit, n)
	Each(n, func(i int) { hits[i] = o.Intersect(ray(i)) })
	return hits
}

func wide(v [3]float32) [3]float64 { return [3]float64{float64(v[0]), float64(v[1]), float64(v[2])} }

func sub(a, b [3]float64) [3]float64 { return [3]float64{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

func dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func cross(a, b [3]float64) [3]float64 {
	return [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

func inf(v [3]float64) float64 {
	return math.Max(math.Abs(v[0]), math.Max(math.Abs(v[1]), math.Abs(v[2])))
}

func finite(v [3]float64) bool {
	return !math.IsNaN(v[0]+v[1]+v[2]) && !math.IsInf(v[0], 0) && !math.IsInf(v[1], 0) && !math.IsInf(v[2], 0)
}
