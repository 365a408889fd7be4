package oracle

import (
	"math"
	"math/cmplx"
)

// Tubes is an accumulation of reflections in float64: rays carry a field from surface to
// surface by the formulas of geometrical optics, against brute force.
type Tubes struct {
	*Oracle
	Media      func(prim int) Medium
	Wavelength float64
	SolidAngle float64
	Bounces    int
	Direct     bool // the first leg counts
	ByArea     bool // the field is weighted by the area that a tube cuts

	// The grid: cells of a plane across one axis.
	Axis     int
	Position float64
	Min, Max [2]float64
	Res      [2]int
}

// Tube is one ray and its transmitter.
type Tube struct {
	O, D             [3]float32
	TMax             float32 // in metres
	Tx, Polarization [3]float32
}

// Deposit is what one leg leaves in a cell, without the factor that all have in common.
type Deposit struct {
	Depth, Cell int
	Field       Field
	Power       float64
	Length      float64 // from the image source
	// FieldTol and PowerTol are how far single precision may be off, as a share: errors of
	// the direction, of a few units in the last place at each reflection, count by the
	// flatness with which the leg meets the plane, and those of the length by the phase.
	FieldTol, PowerTol float64
}

// TubeEvent is a hit that reflects a field.
type TubeEvent struct {
	Depth, Prim     int
	P, N, K, Source [3]float64
	Power           float64
}

// tubeMargin is how close to a border of any kind, in metres, a leg makes its ray doubtful.
const tubeMargin = 1e-4

// tubeDoubt is the bound of the rounding of a point, in metres, from which a ray is
// doubtful. Bounds assume the worst at every bounce: they are a hundred times what is seen.
const tubeDoubt = 2e-3

// Base is the factor of all fields.
func (u *Tubes) Base() float64 {
	return u.Wavelength / (4 * math.Pi) * math.Sqrt(u.SolidAngle/u.cellArea())
}

func (u *Tubes) cellArea() float64 {
	return (u.Max[0] - u.Min[0]) * (u.Max[1] - u.Min[1]) / float64(u.Res[0]*u.Res[1])
}

// Follow is what a ray leaves and what it meets. A ray of which single precision may see
// another path, or cells other than these, is doubtful.
func (u *Tubes) Follow(r Tube) (left []Deposit, met []TubeEvent, doubtful bool) {
	d := wide(r.D)
	length := math.Sqrt(dot(d, d))
	if !(length > 0) || !finite(d) || !finite(wide(r.O)) || !(float64(r.TMax) >= TMin) {
		return nil, nil, false
	}
	k := scaled(d, 1/length)
	chain := u.Reflect(r.O, r.D, float32(float64(r.TMax)/length), u.Bounces+1)
	q, image, f := wide(r.O), wide(r.Tx), complexField(Transverse(wide(r.Polarization), k))
	for depth := 0; depth <= u.Bounces; depth++ {
		hit := chain[depth]
		end := math.Inf(1)
		switch {
		case hit.Prim >= 0:
			end = math.Max(dot(sub(hit.P, q), k), 0)
		case depth == 0:
			end = float64(r.TMax)
		}
		if hit.Ambiguous || hit.Prim >= 0 && hit.PTol > tubeDoubt {
			return left, met, true
		}
		if depth > 0 || u.Direct {
			dep, crosses, unsure := u.deposit(q, k, image, f, end)
			if unsure {
				return left, met, true
			}
			if crosses {
				dep.Depth = depth
				flat := 4 * ulp * float64(1+depth) / math.Abs(k[u.Axis])
				dep.PowerTol, dep.FieldTol = flat, flat*(1+2*math.Pi*dep.Length/u.Wavelength)
				left = append(left, dep)
			}
		}
		if hit.Prim < 0 || depth == u.Bounces {
			break
		}
		m := u.Media(hit.Prim)
		if m.Absorbs {
			break
		}
		before := f
		if f = f.Reflect(k, hit.N, m, u.Wavelength); f == (Field{}) {
			break
		}
		met = append(met, TubeEvent{Depth: depth, Prim: hit.Prim, P: hit.P, N: hit.N, K: k, Source: image, Power: before.Power() * u.SolidAngle})
		image = mirror(image, dot(sub(image, hit.P), hit.N), hit.N)
		k = mirror(k, dot(k, hit.N), hit.N)
		q = hit.P
	}
	return left, met, false
}

func (u *Tubes) deposit(q, k, image [3]float64, f Field, end float64) (out Deposit, crosses, unsure bool) {
	slope := k[u.Axis]
	if math.Abs(slope) < .01 {
		return out, false, true // where single precision crosses the plane is not certain
	}
	t := (u.Position - q[u.Axis]) / slope
	if math.Abs(t) < tubeMargin || math.Abs(t-end) < tubeMargin {
		return out, false, true
	}
	if t < 0 || t > end {
		return out, false, false
	}
	x := q
	for i := range x {
		x[i] += t * k[i]
	}
	x[u.Axis] = u.Position
	cell, stride := 0, 1
	for i, a := range otherAxes(u.Axis) {
		width := (u.Max[i] - u.Min[i]) / float64(u.Res[i])
		at := (x[a] - u.Min[i]) / width
		if beside := math.Abs(at - math.Round(at)); beside*width < tubeMargin {
			return out, false, true
		}
		if at < 0 || at >= float64(u.Res[i]) {
			return out, false, false
		}
		cell += stride * int(at)
		stride *= u.Res[i]
	}
	w := sub(x, image)
	out.Cell, out.Length = cell, math.Sqrt(dot(w, w))
	out.Power = f.Power() / math.Abs(slope)
	weight := 1 / math.Sqrt(math.Abs(slope))
	if u.ByArea {
		weight *= out.Length * math.Sqrt(u.SolidAngle/(u.cellArea()*math.Abs(slope)))
	}
	phase := cmplx.Exp(complex(0, -2*math.Pi*out.Length/u.Wavelength))
	for i := range f {
		out.Field[i] = f[i] * complex(weight, 0) * phase
	}
	return out, true, false
}

func otherAxes(axis int) [2]int {
	return [3][2]int{{1, 2}, {0, 2}, {0, 1}}[axis]
}

func complexField(a [3]float64) (f Field) {
	for i := range f {
		f[i] = complex(a[i], 0)
	}
	return f
}
