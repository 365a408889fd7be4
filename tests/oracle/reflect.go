package oracle

import (
	"fmt"
	"math"
)

// Bounce is one reflection of a chain in float64: a hit whose normal points towards
// the incoming ray.
type Bounce struct {
	Hit
	P, Image [3]float64
	// How far the point, the components of the normal and the image of a
	// single-precision chain may be off.
	PTol, NTol, ImageTol float64
}

// ulp is the rounding unit of single precision.
const ulp = 1.0 / (1 << 24)

// Reflect follows a ray over at most the given number of specular reflections. The
// last element is the miss that ended the chain, if one did.
//
// Every bounce has an ambiguity of its own. Rounding errors grow from bounce to
// bounce, the faster the thinner the triangles and the flatter the incidence; the
// margins grow with their bound. What follows an ambiguous bounce is ambiguous.
func (o *Oracle) Reflect(orig, dir [3]float32, tmax float32, bounces int) []Bounce {
	first := o.Intersect(orig, dir, tmax)
	ro, rd := wide(orig), wide(dir)
	image, imageTol := ro, 0.0
	var off drift
	var chain []Bounce
	for hit := first; ; {
		if hit.Prim >= 0 && len(chain) > 0 {
			hit.T = math.Max(hit.T, 0)
		}
		b := Bounce{Hit: hit}
		if hit.Prim < 0 {
			return append(chain, b)
		}
		t := &o.tri[hit.Prim]
		dlen := math.Sqrt(dot(rd, rd))
		facing := dot(b.N, rd)
		if facing > 0 {
			b.N, facing = scaled(b.N, -1), -facing
		}
		facing /= -dlen
		// Edges are differences rounded once; the cross product magnifies that in
		// thin triangles.
		thin := math.Sqrt(dot(t.e1, t.e1)*dot(t.e2, t.e2)) / math.Sqrt(dot(t.n, t.n))
		b.NTol = 8 * ulp * (1 + thin)
		length := b.T * dlen
		b.PTol = (off.at(length) + lengthMargin*(inf(ro)+t.size)) / facing
		for k := range b.P {
			b.P[k] = t.v0[k] + b.B1*t.e1[k] + b.B2*t.e2[k]
		}
		from := sub(image, t.v0)
		image = mirror(image, dot(from, b.N), b.N)
		imageTol += 4*b.NTol*math.Sqrt(dot(from, from)) + 16*ulp*(inf(image)+t.size)
		b.Image, b.ImageTol = image, imageTol
		if chain = append(chain, b); len(chain) == bounces {
			return chain
		}
		e := epsilon(math.Max(inf(b.P), t.size))
		q := b.P
		for k := range q {
			q[k] += e * b.N[k]
		}
		off = drift{origin: b.PTol + e*b.NTol, angle: off.angle + 4*b.NTol + 4*ulp}
		rd = mirror(rd, dot(rd, b.N), b.N)
		hit = o.next(q, b.P, rd, off, b.Prim)
		ro = b.P
		if b.Ambiguous && !hit.Ambiguous {
			hit.doubt("follows an ambiguous bounce")
		}
	}
}

// next is the closest hit from q, off the surface of triangle prim, in the
// parameter from the point p on it. Leaving its plane, the ray cannot meet that
// triangle again.
func (o *Oracle) next(q, p, rd [3]float64, off drift, prim int) Hit {
	dlen := math.Sqrt(dot(rd, rd))
	near := o.crossings(q, rd, off, func(f int) bool { return f == prim })
	hit := o.decide(near, rd, dlen, math.Max(1, (inf(q)+o.vmax)/dlen), 0, math.Inf(1))
	if hit.Prim < 0 {
		return hit
	}
	// From the point itself the same triangle lies elsewhere by the offset.
	t := &o.tri[hit.Prim]
	s, m := sub(p, t.v0), cross(rd, t.e2)
	det, w := dot(t.e1, m), cross(s, t.e1)
	hit.T, hit.B1, hit.B2 = dot(t.e2, w)/det, dot(s, m)/det, dot(rd, w)/det
	return hit
}

func scaled(a [3]float64, s float64) [3]float64 { return [3]float64{s * a[0], s * a[1], s * a[2]} }

// mirror is a - 2 h n.
func mirror(a [3]float64, h float64, n [3]float64) [3]float64 { return sub(a, scaled(n, 2*h)) }

// CheckChain compares a chain with the oracle's up to the first ambiguous bounce,
// which, and what follows it, it accepts unseen. It returns how many bounces were
// compared, the miss at the end among them.
func CheckChain(want []Bounce, got []Reflection) (compared int, err error) {
	for i := range want {
		w := &want[i]
		if w.Ambiguous {
			return i, nil
		}
		if i >= len(got) {
			if w.Prim >= 0 {
				return i, fmt.Errorf("the chain ends after %d bounces, float64 hits triangle %d next", len(got), w.Prim)
			}
			return i + 1, nil
		}
		if err := w.check(&got[i]); err != nil {
			return i, fmt.Errorf("bounce %d: %w", i, err)
		}
	}
	if len(got) > len(want) {
		return len(want), fmt.Errorf("%d bounces, float64 has %d", len(got), len(want))
	}
	return len(want), nil
}

func (b *Bounce) check(r *Reflection) error {
	if r.Prim != b.Prim {
		return fmt.Errorf("triangle %d, float64 says %d at t = %g", r.Prim, b.Prim, b.T)
	}
	if d := math.Abs(float64(r.T) - b.T); !(d <= b.H) {
		return fmt.Errorf("t = %.9g, float64 says %.17g (margin %.3g)", r.T, b.T, b.H)
	}
	if d := math.Max(math.Abs(float64(r.B1)-b.B1), math.Abs(float64(r.B2)-b.B2)); !(d <= b.BTol) {
		return fmt.Errorf("barycentrics (%.9g, %.9g), float64 says (%.17g, %.17g)", r.B1, r.B2, b.B1, b.B2)
	}
	for _, c := range []struct {
		name string
		got  [3]float32
		want [3]float64
		tol  float64
	}{{"point", r.P, b.P, b.PTol}, {"normal", r.N, b.N, b.NTol}, {"image", r.Image, b.Image, b.ImageTol}} {
		if d := inf(sub(wide(c.got), c.want)); !(d <= c.tol) {
			return fmt.Errorf("%s %v, float64 says %v (off by %.3g, margin %.3g)", c.name, c.got, c.want, d, c.tol)
		}
	}
	return nil
}
