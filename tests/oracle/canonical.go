package oracle

import (
	"math"
	"runtime"
	"sync"
)

// Canonical answers by brute force with the canonical single-precision
// triangle test: every triangle, no tree. Where the float64 oracle calls a
// row ambiguous, this one still knows the answer, because the winner is
// defined by this very test: smallest t, then smallest id.
//
// It is written from the definition (Woop, Benthin, Wald 2013, with edge
// functions by a compensated difference of products) and rounds every
// operation once, as the kernels must.
type Canonical struct {
	v [][3][3]float32
}

// NewCanonical makes a brute-force searcher over a mesh.
func NewCanonical(vertices []float32, faces []int32) *Canonical {
	c := &Canonical{v: make([][3][3]float32, len(faces)/3)}
	for f := range c.v {
		for k := range 3 {
			i := 3 * int(faces[3*f+k])
			c.v[f][k] = [3]float32{vertices[i], vertices[i+1], vertices[i+2]}
		}
	}
	return c
}

// Winner is the id of the closest triangle on TMin <= t <= tmax and its t, or
// -1 and +Inf.
func (c *Canonical) Winner(o, d [3]float32, tmax float32) (prim int, t float32) {
	prim, t = -1, float32(math.Inf(1))
	if !finite(wide(o)) || !finite(wide(d)) || d == [3]float32{} || !(tmax >= TMin) {
		return prim, t
	}
	r := shear(o, d)
	for f := range c.v {
		if noArea(&c.v[f]) {
			continue
		}
		// Ids ascend, so an equal t later never wins.
		if x, ok := r.crossing(&c.v[f]); ok && x >= TMin && x <= tmax && x < t {
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
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := w; i < n; i += workers {
				out[i].Prim, out[i].T = c.Winner(ray(i))
			}
		}()
	}
	wg.Wait()
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

// crossing is the parameter at which the ray crosses a triangle.
func (r *sheared) crossing(v *[3][3]float32) (float32, bool) {
	var x, y, z [3]float32
	for k := range 3 {
		z[k] = v[k][r.kz] - r.o[r.kz]
		x[k] = (v[k][r.kx] - r.o[r.kx]) - float32(r.sx*z[k])
		y[k] = (v[k][r.ky] - r.o[r.ky]) - float32(r.sy*z[k])
	}
	e := [3]float32{ // opposite vertex 0, 1, 2
		edge(x[2], y[1], y[2], x[1]),
		edge(x[0], y[2], y[0], x[2]),
		edge(x[1], y[0], y[1], x[0]),
	}
	if (e[0] < 0 || e[1] < 0 || e[2] < 0) && (e[0] > 0 || e[1] > 0 || e[2] > 0) {
		return 0, false
	}
	det := (e[0] + e[1]) + e[2]
	if det == 0 {
		return 0, false
	}
	sum := float32(float32(e[0]*z[0])+float32(e[1]*z[1])) + float32(e[2]*z[2])
	return sum / det / r.dz, true
}

// edge is a*b - c*d, compensated; an exact zero is evaluated again in
// float64, where it can only be an underflow.
func edge(a, b, c, d float32) float32 {
	if e := dop(a, b, c, d); e != 0 {
		return e
	}
	return float32(float64(a)*float64(b) - float64(float64(c)*float64(d)))
}

func dop(a, b, c, d float32) float32 {
	w := float32(c * d)
	return fma32(a, b, -w) + fma32(-c, d, w)
}

// noArea holds when the face normal, by compensated cross product, is zero.
func noArea(v *[3][3]float32) bool {
	var e1, e2 [3]float32
	for k := range 3 {
		e1[k], e2[k] = v[1][k]-v[0][k], v[2][k]-v[0][k]
	}
	return dop(e1[1], e2[2], e1[2], e2[1]) == 0 && dop(e1[2], e2[0], e1[0], e2[2]) == 0 && dop(e1[0], e2[1], e1[1], e2[0]) == 0
}

// fma32 is a*b + c rounded once. The product is exact in float64; the sum is
// rounded to odd there, so that the final rounding cannot round twice.
func fma32(a, b, c float32) float32 {
	p, q := float64(a)*float64(b), float64(c)
	s := p + q
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return float32(s)
	}
	// The error of the sum (Knuth).
	t := s - p
	err := (p - (s - t)) + (q - t)
	if err != 0 && math.Float64bits(s)&1 == 0 {
		toward := math.Inf(1)
		if err < 0 {
			toward = math.Inf(-1)
		}
		s = math.Nextafter(s, toward)
	}
	return float32(s)
}
