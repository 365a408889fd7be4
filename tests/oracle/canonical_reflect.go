package oracle

import "math"

// Reflection is one bounce of a chain in single precision.
type Reflection struct {
	Prim   int
	T      float32    // from the previous surface point, in units of the direction
	B1, B2 float32    // barycentric weights of vertices 1 and 2
	P      [3]float32 // the point on the surface
	N      [3]float32 // unit normal towards the incoming ray
	Image  [3]float32 // of the ray's origin, after this bounce
}

// Reflect follows a ray over at most the given number of specular reflections, bit
// by bit as the library must: the search starts off the surface, everything else is
// computed from the point on it.
//
// Order of the operations, each rounded once (dot and cross as in the search):
//
//	n    = unit(cross(v1-v0, v2-v0)), negated if dot(d, n) > 0
//	p    = fma(b2, e2, fma(b1, e1, v0)) per component, b1 and b2 by division of the
//	       edge functions by their sum, t as in the search but from o, 0 if negative
//	I'   = I - (2*dot(I-v0, n))*n      product and difference rounded separately
//	d'   = d - (2*dot(d, n))*n         likewise
//	q    = p + e*n                     likewise, e = max(2e-5, 1e-6*M), M over p, v0, v1, v2
func (c *Canonical) Reflect(o, d [3]float32, tmax float32, bounces int) []Reflection {
	if !(tmax >= TMin) {
		return nil
	}
	var chain []Reflection
	image, q, tmin := o, o, float32(TMin)
	for len(chain) < bounces {
		prim, _ := c.search(q, d, tmin, tmax, nil)
		if prim < 0 {
			break
		}
		v := &c.v[prim]
		r, ok := finalize(o, d, v)
		if !ok {
			break
		}
		r.Prim = prim
		image = mirrored(image, dot32(sub32(image, v[0]), r.N), r.N)
		r.Image = positive(image)
		m := max(inf32of(r.P), inf32of(v[0]), inf32of(v[1]), inf32of(v[2]))
		q = shifted(r.P, eps32(m), r.N)
		o = r.P
		d = mirrored(d, dot32(d, r.N), r.N)
		tmin, tmax = 0, math.MaxFloat32
		r.P, r.N = positive(r.P), positive(r.N)
		chain = append(chain, r)
	}
	return chain
}

// finalize computes the columns of a hit from the ray and the triangle alone. A ray
// that starts on the surface may see the triangle from slightly behind.
func finalize(o, d [3]float32, v *[3][3]float32) (r Reflection, ok bool) {
	if !finite(wide(o)) || !finite(wide(d)) || d == [3]float32{} {
		return r, false
	}
	f := shear(o, d)
	s := f.see(v)
	b0 := s.e[0] / s.det
	r.T, r.B1, r.B2 = s.t, s.e[1]/s.det, s.e[2]/s.det
	if s.det == 0 || !finite(wide([3]float32{b0, r.B1, r.B2})) || !finite(wide([3]float32{s.t})) {
		return r, false
	}
	if r.T < 0 {
		r.T = 0
	}
	e1, e2 := sub32(v[1], v[0]), sub32(v[2], v[0])
	for k := range r.P {
		r.P[k] = fma32(r.B2, e2[k], fma32(r.B1, e1[k], v[0][k]))
	}
	r.N = unit32(cross32(e1, e2))
	if dot32(d, r.N) > 0 {
		for k := range r.N {
			r.N[k] = -r.N[k]
		}
	}
	zeros := positive([3]float32{r.T, r.B1, r.B2})
	r.T, r.B1, r.B2 = zeros[0], zeros[1], zeros[2]
	return r, r.N != [3]float32{}
}

// positive makes zeros +0, as every output is.
func positive(a [3]float32) [3]float32 {
	for k := range a {
		if a[k] == 0 {
			a[k] = 0
		}
	}
	return a
}
