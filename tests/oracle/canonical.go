package oracle

import "math"

// Canonical answers by brute force with the canonical single-precision
// triangle test: every triangle, no tree. Where the float64 oracle calls a
// row ambiguous, this one still knows the answer, because the winner is
// defined by this very test: smallest t, then smallest id.
//
// It is written from the definition (Woop, Benthin, Wald 2013, with edge
// functions by a compensated difference of products) and rounds every
// operation once, as the kernels must.
type Canonical struct {
	v      [][3][3]float32
	noArea []bool // faces that are never hit
}

// NewCanonical makes a brute-force searcher over a mesh.
func NewCanonical(vertices []float32, faces []int32) *Canonical {
	c := &Canonical{v: make([][3][3]float32, len(faces)/3), noArea: make([]bool, len(faces)/3)}
	for f := range c.v {
		for k := range 3 {
			i := 3 * int(faces[3*f+k])
			c.v[f][k] = [3]float32{vertices[i], vertices[i+1], vertices[i+2]}
		}
		c.noArea[f] = noArea(&c.v[f])
	}
	return c
}

// Winner is the id of the closest triangle on TMin <= t <= tmax and its t, or
// -1 and +Inf.
func (c *Canonical) Winner(o, d [3]float32, tmax float32) (prim int, t float32) {
	if !(tmax >= TMin) {
		return -1, inf32
	}
	return c.search(o, d, TMin, tmax, nil)
}

// search is the closest triangle on tmin <= t <= tmax that skip does not name.
func (c *Canonical) search(o, d [3]float32, tmin, tmax float32, skip func(prim int) bool) (prim int, t float32) {
	prim, t = -1, inf32
	if !finite(wide(o)) || !finite(wide(d)) || d == [3]float32{} {
		return prim, t
	}
	r := shear(o, d)
	for f := range c.v {
		if c.noArea[f] || skip != nil && skip(f) {
			continue
		}
		// Ids ascend, so an equal t later never wins.
		if x, ok := r.crossing(&c.v[f]); ok && x >= tmin && x <= tmax && x < t {
			prim, t = f, x
		}
	}
	return prim, t
}

// Closest is the winner of one ray and its t, which the library must return
// bit by bit.
type Closest struct {
	Prim int
	T    float32
}

// Winners answers rays 0..n-1 on all cores.
func (c *Canonical) Winners(n int, ray func(i int) (o, d [3]float32, tmax float32)) []Closest {
	out := make([]Closest, n)
	Each(n, func(i int) { out[i].Prim, out[i].T = c.Winner(ray(i)) })
	return out
}

// sheared is a ray in the frame of its dominant axis.
type sheared struct {
	o          [3]float32
	kx, ky, kz int
	dz, sx, sy float32
}

func shear(o, d [3]float32) sheared {
	abs := func(k int) float32 { return float32(math.Abs(float64(d[k]))) }
	r := sheared{o: o}
	for k := 1; k < 3; k++ {
		if abs(k) > abs(r.kz) {
			r.kz = k
		}
	}
	r.kx, r.ky = (r.kz+1)%3, (r.kz+2)%3
	r.dz = d[r.kz]
	if r.dz < 0 {
		r.kx, r.ky = r.ky, r.kx // keeps the winding
	}
	r.sx, r.sy = d[r.kx]/r.dz, d[r.ky]/r.dz
	return r
}

// seen is a triangle as a ray sees it.
type seen struct {
	e   [3]float32 // edge functions opposite to vertex 0, 1, 2: barycentrics times det
	det float32
	t   float32 // of the crossing; meaningless where det is zero
}

func (r *sheared) see(v *[3][3]float32) (s seen) {
	var x, y, z [3]float32
	for k := range 3 {
		z[k] = v[k][r.kz] - r.o[r.kz]
		x[k] = (v[k][r.kx] - r.o[r.kx]) - float32(r.sx*z[k])
		y[k] = (v[k][r.ky] - r.o[r.ky]) - float32(r.sy*z[k])
	}
	s.e = [3]float32{
		edge(x[2], y[1], y[2], x[1]),
		edge(x[0], y[2], y[0], x[2]),
		edge(x[1], y[0], y[1], x[0]),
	}
	s.det = (s.e[0] + s.e[1]) + s.e[2]
	sum := float32(float32(s.e[0]*z[0])+float32(s.e[1]*z[1])) + float32(s.e[2]*z[2])
	s.t = sum / s.det / r.dz
	return s
}

// crossing is the parameter at which the ray crosses a triangle.
func (r *sheared) crossing(v *[3][3]float32) (float32, bool) {
	s := r.see(v)
	e := s.e
	if (e[0] < 0 || e[1] < 0 || e[2] < 0) && (e[0] > 0 || e[1] > 0 || e[2] > 0) || s.det == 0 {
		return 0, false
	}
	return s.t, true
}

// edge is a*b - c*d, compensated; an exact zero is evaluated again in
// float64, where it can only be an underflow.
func edge(a, b, c, d float32) float32 {
	if e := dop(a, b, c, d); e != 0 {
		return e
	}
	return float32(float64(a)*float64(b) - float64(float64(c)*float64(d)))
}

// noArea holds when the face normal, by compensated cross product, is zero.
func noArea(v *[3][3]float32) bool {
	return cross32(sub32(v[1], v[0]), sub32(v[2], v[0])) == [3]float32{}
}
