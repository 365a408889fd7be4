package oracle

import (
	"math"
	"math/big"
)

// DfrWedge is one state of AccumDfrDirect with the gain of its material.
type DfrWedge struct {
	Pos, Dir, N0, Src              [3]float32
	TMin, TMax, Theta, Power, Gain float32
	Inactive                       bool
}

// DfrGrid is a grid of cells; Axis is 0, 1 or 2.
type DfrGrid struct {
	Axis                             int
	Position, Min0, Max0, Min1, Max1 float32
	Res0, Res1                       int
}

// DfrCall is one call of AccumDfrDirect; one of Direct and Keller is zero.
type DfrCall struct {
	States         []DfrWedge
	Grid           DfrGrid
	Wavelength     float64
	Direct, Keller int64
	Seed           uint32
}

// DfrSums are the exact sums and counters of some lanes.
type DfrSums struct {
	Words                                    [][6]int64
	Accepted, VisRejects, UTDRejects, Unused int64
}

// Hash32 is the hash behind the random numbers, and Uniform24 the random number of a lane
// in units of 2^-24.
func Hash32(x uint32) uint32 {
	x = x ^ (x >> 16)
	x = x * 0x7feb352d
	x = x ^ (x >> 15)
	x = x * 0x846ca68b
	return x ^ (x >> 16)
}

func Uniform24(lane, stream, seed uint32) uint32 {
	return Hash32(lane^Hash32(seed+0x9e3779b9*(stream+1))) >> 8
}

// AccumDfr does the lanes [begin, begin+count) of a call, one after the other, in single
// precision and with the very order of operations of the definition.
func (c *Canonical) AccumDfr(d DfrCall, begin, count int64) DfrSums {
	cells := d.Grid.Res0 * d.Grid.Res1
	sums := DfrSums{Words: make([][6]int64, cells)}
	states := int64(len(d.States))
	prepared := make([]dfrLeg, states)
	for i := range prepared {
		prepared[i] = d.leg(i)
	}
	for l := begin; l < begin+count; l++ {
		s := l % states
		w, leg := &d.States[s], &prepared[s]
		if w.Inactive {
			sums.Unused++
			continue
		}
		if leg.broken {
			sums.UTDRejects++
			continue
		}
		u := float32(Uniform24(uint32(l), 0, d.Seed)) / (1 << 24)
		q := shifted(w.Pos, w.TMin+float32(u*leg.span), leg.e)
		lift := max(1e-4, float32(5e-6*inf32of(q)))
		near := shifted(q, lift, leg.bisector)
		if !c.Visible(w.Src, near) {
			sums.VisRejects++
			continue
		}
		var x [3]float32
		cell, weight, lanes := -1, float32(1), int64(0)
		if d.Keller > 0 {
			x, cell, weight = d.keller(w, leg, q, Uniform24(uint32(l), 1, d.Seed))
			lanes = lanesOf(d.Keller, states, s)
		} else {
			pair := l % (states * int64(cells))
			cell = int(pair / states)
			x = d.Grid.centre(cell)
			lanes = lanesOf(d.Direct, states*int64(cells), pair)
		}
		if cell < 0 {
			sums.UTDRejects++
			continue
		}
		if !c.Visible(near, x) {
			sums.VisRejects++
			continue
		}
		den := square32(sub32(q, w.Src)) * square32(sub32(x, q))
		v := leg.k / float32(lanes) / den
		if d.Keller > 0 {
			v *= float32(weight * float32(1/d.Grid.area()))
		}
		if !(v > 0) || !(v < 1<<55) {
			sums.UTDRejects++
			continue
		}
		sums.Accepted++
		AddWords(&sums.Words[cell], v)
	}
	return sums
}

// lanesOf is how many of n lanes are k modulo m.
func lanesOf(n, m, k int64) int64 {
	if k < n%m {
		return n/m + 1
	}
	return n / m
}

// square32 is a squared length of at least 1e-12.
func square32(a [3]float32) float32 {
	return max(fma32(a[2], a[2], fma32(a[1], a[1], float32(a[0]*a[0]))), 1e-12)
}

// dfrLeg is what does not change from lane to lane of a state.
type dfrLeg struct {
	e, bisector [3]float32
	span, k     float32
	broken      bool // something is not finite
}

func (d *DfrCall) leg(i int) (l dfrLeg) {
	w := d.States[i]
	dir, n0 := wide(w.Dir), wide(w.N0)
	length := math.Sqrt(dir[0]*dir[0] + dir[1]*dir[1] + dir[2]*dir[2])
	var e [3]float64
	for k := range e {
		e[k] = dir[k] / length
	}
	t0 := [3]float64{n0[1]*e[2] - n0[2]*e[1], n0[2]*e[0] - n0[0]*e[2], n0[0]*e[1] - n0[1]*e[0]}
	half := float64(w.Theta) / 2
	sum := float64(w.Theta) + float64(w.TMin) + float64(w.TMax) + float64(w.Power)
	for k := range e {
		l.e[k] = float32(e[k])
		l.bisector[k] = float32(math.Cos(half)*t0[k] + math.Sin(half)*n0[k])
		sum += float64(w.Pos[k]) + float64(w.Src[k]) + float64(l.e[k]) + float64(l.bisector[k])
	}
	l.span = w.TMax - w.TMin
	l.broken = math.IsNaN(sum) || math.IsInf(sum, 0)
	ledge := max(float64(w.TMax)-float64(w.TMin), 0)
	angle := min(max(float64(w.Theta), math.Pi/4)/(2*math.Pi), 2)
	range1 := d.Wavelength / (4 * math.Pi)
	l.k = float32(float64(w.Power) * angle * ledge * float64(w.Gain) * (range1 * range1 * d.Grid.area()))
	return l
}

func (g *DfrGrid) area() float64 {
	return (float64(g.Max0) - float64(g.Min0)) * (float64(g.Max1) - float64(g.Min1)) / float64(g.Res0*g.Res1)
}

// others are the axes of the coordinates of a grid.
func (g *DfrGrid) others() (int, int) {
	switch g.Axis {
	case 0:
		return 1, 2
	case 1:
		return 0, 2
	}
	return 0, 1
}

func (g *DfrGrid) centre(cell int) (x [3]float32) {
	a, b := g.others()
	x[g.Axis] = g.Position
	x[a] = g.Min0 + float32((float32(cell%g.Res0)+0.5)*((g.Max0-g.Min0)/float32(g.Res0)))
	x[b] = g.Min1 + float32((float32(cell/g.Res0)+0.5)*((g.Max1-g.Min1)/float32(g.Res1)))
	return x
}

// cellOf is the cell of a point in the plane, or -1.
func (g *DfrGrid) cellOf(x [3]float32) int {
	a, b := g.others()
	along := func(v, lo, hi float32, res int) int {
		if !(v >= lo && v < hi) {
			return -1
		}
		return min(int(float32((v-lo)/(hi-lo)*float32(res))), res-1)
	}
	i, j := along(x[a], g.Min0, g.Max0, g.Res0), along(x[b], g.Min1, g.Max1, g.Res1)
	if i < 0 || j < 0 {
		return -1
	}
	return j*g.Res0 + i
}

// keller is where the ray with an azimuth meets the plane, its cell or -1, and 2 pi J.
func (d *DfrCall) keller(w *DfrWedge, leg *dfrLeg, q [3]float32, turns uint32) (x [3]float32, cell int, weight float32) {
	i, e := sub32(q, w.Src), leg.e
	around, along := cross32(e, i), dot32(e, i)
	sine, cosine := SinCos24(turns)
	c1 := (1 - cosine) * along
	length := sqrt32(square32(i))
	var r [3]float32
	for k := range r {
		r[k] = fma32(sine, around[k], fma32(cosine, i[k], float32(c1*e[k]))) / length
	}
	slope := r[d.Grid.Axis]
	ell := (d.Grid.Position - q[d.Grid.Axis]) / slope
	if !(abs32(slope) > 1e-6) || !(ell > 1e-4) || !(ell < inf32) {
		return x, -1, 0
	}
	x = shifted(q, ell, r)
	x[d.Grid.Axis] = d.Grid.Position
	sin2 := dot32(around, around) / float32(length*length)
	j := float32(float32(sin2*ell)*(ell+length)) / float32(length*abs32(slope))
	return x, d.Grid.cellOf(x), float32(j * (2 * math.Pi))
}

// SinCos24 is the sine and cosine of turns * 2^-24 turns by the series of the definition.
func SinCos24(turns uint32) (s, c float32) {
	quarter := (turns + 1<<21) >> 22
	x := float32(int32(turns)-int32(quarter<<22)) / (1 << 24) * (2 * math.Pi)
	x2 := float32(x * x)
	odd := fma32(fma32(fma32(2.7557319e-6, x2, -1.9841270e-4), x2, 8.3333333e-3), x2, -1.6666667e-1)
	even := fma32(fma32(fma32(-2.7557319e-7, x2, 2.4801587e-5), x2, -1.3888889e-3), x2, 4.1666667e-2)
	s, c = fma32(float32(odd*x2), x, x), fma32(fma32(even, x2, -0.5), x2, 1)
	switch quarter & 3 {
	case 1:
		s, c = c, -s
	case 2:
		s, c = -s, -c
	case 3:
		s, c = -c, s
	}
	return s, c
}

// AddWords adds a value to an exact sum.
func AddWords(w *[6]int64, v float32) {
	frac, exp := math.Frexp(math.Abs(float64(v)))
	m := uint64(frac * (1 << 24))
	place := exp - 24 + 128
	if place < 0 {
		m >>= min(-place, 63)
		place = 0
	}
	i, wide := place>>5, m<<(place&31)
	sign := int64(1)
	if v < 0 {
		sign = -1
	}
	w[i] += sign * int64(wide&0xffffffff)
	w[i+1] += sign * int64(wide>>32)
}

// ReadWords is an exact sum, rounded to float64 and then to float32.
func ReadWords(w [6]int64) float32 {
	sum := new(big.Int)
	for i := 5; i >= 0; i-- {
		sum.Lsh(sum, 32)
		sum.Add(sum, big.NewInt(w[i]))
	}
	v, _ := new(big.Rat).SetFrac(sum, new(big.Int).Lsh(big.NewInt(1), 128)).Float64()
	return float32(v)
}
