package vm

import "math"

const nanF32 = 0x7fffffff // the NaN that single-precision operations produce

func f32of(x uint64) float32 { return math.Float32frombits(uint32(x)) }

// bitsF32 returns a result's bits; every NaN becomes the canonical one.
func bitsF32(f float32) uint64 {
	if f != f {
		return nanF32
	}
	return uint64(math.Float32bits(f))
}

func negF32(x uint64) uint64 { return uint64(uint32(x) ^ 1<<31) }
func absF32(x uint64) uint64 { return uint64(uint32(x) &^ (1 << 31)) }

// fmaF32 is a fused multiply-add rounded once. The product is exact in double precision; the sum is
// rounded to double first, which only matters if it lies on the midpoint of two singles, or
// where singles have fewer bits. There the sum is rounded to odd instead, and rounds correctly.
func fmaF32(x, y, z uint64) uint64 {
	p, c := float64(f32of(x))*float64(f32of(y)), float64(f32of(z))
	s := p + c
	b := math.Float64bits(s)
	if b&0x1fffffff != 0x10000000 && b<<1>>53 >= 1023-126 || s == 0 {
		return bitsF32(float32(s))
	}
	return bitsF32(float32(roundToOdd(s, sumError(p, c, s))))
}

// sumError returns the sign-exact rounding error of s = a + b.
func sumError(a, b, s float64) float64 {
	t := s - a
	return (a - (s - t)) + (b - t)
}

// roundToOdd moves s, the rounded sum with error e, to the neighbour with an odd last bit.
func roundToOdd(s, e float64) float64 {
	if e == 0 || e != e {
		return s
	}
	b := math.Float64bits(s)
	if b&1 != 0 {
		return s
	}
	if (e > 0) == (s > 0) {
		return math.Float64frombits(b + 1)
	}
	return math.Float64frombits(b - 1)
}

func minF32(x, y uint64) uint64 {
	a, b := f32of(x), f32of(y)
	switch {
	case a < b:
		return x
	case b < a:
		return y
	case a == b:
		return x | y // a negative zero is the smaller
	case a == a:
		return x
	case b == b:
		return y
	}
	return nanF32
}

func maxF32(x, y uint64) uint64 {
	a, b := f32of(x), f32of(y)
	switch {
	case a > b:
		return x
	case b > a:
		return y
	case a == b:
		return x & y
	case a == a:
		return x
	case b == b:
		return y
	}
	return nanF32
}

// rounding is a PTX rounding mode.
type rounding uint8

const (
	roundNear rounding = iota
	roundZero
	roundDown
	roundUp
)

var roundModes = map[string]rounding{"rn": roundNear, "rz": roundZero, "rm": roundDown, "rp": roundUp}

// directF32 rounds the exact value s + e to single precision, where only the sign of e matters and
// |e| is below half a unit in the last place of s.
func directF32(s, e float64, mode rounding) float32 {
	f := float32(s)
	if mode == roundNear || f != f || math.IsInf(s, 0) {
		return f
	}
	rest := s - float64(f) // infinite if f overflowed
	if rest == 0 {
		rest = e
	}
	switch {
	case rest < 0 && (mode == roundDown || mode == roundZero && f > 0):
		return math.Nextafter32(f, float32(math.Inf(-1)))
	case rest > 0 && (mode == roundUp || mode == roundZero && f < 0):
		return math.Nextafter32(f, float32(math.Inf(1)))
	}
	return f
}

// exactZero gives a sum that is exactly zero its sign: operands of unlike sign yield -0 only when rounding down.
func exactZero(a, b float64, mode rounding) float64 {
	if math.Signbit(a) == math.Signbit(b) {
		return a
	}
	if mode == roundDown {
		return math.Copysign(0, -1)
	}
	return 0
}

func addDirF32(x, y uint64, mode rounding) uint64 {
	a, b := float64(f32of(x)), float64(f32of(y))
	return sumDirF32(a, b, mode)
}

func sumDirF32(a, b float64, mode rounding) uint64 {
	s := a + b
	if s == 0 {
		return bitsF32(float32(exactZero(a, b, mode)))
	}
	return bitsF32(directF32(s, sumError(a, b, s), mode))
}

func mulDirF32(x, y uint64, mode rounding) uint64 {
	return bitsF32(directF32(float64(f32of(x))*float64(f32of(y)), 0, mode))
}

func fmaDirF32(x, y, z uint64, mode rounding) uint64 {
	return sumDirF32(float64(f32of(x))*float64(f32of(y)), float64(f32of(z)), mode)
}

func divDirF32(x, y uint64, mode rounding) uint64 {
	a, b := float64(f32of(x)), float64(f32of(y))
	q := a / b
	if q == 0 || math.IsInf(q, 0) || q != q {
		return bitsF32(float32(q))
	}
	r := math.FMA(-q, b, a)
	if math.IsInf(b, 0) {
		r = 0
	}
	if b < 0 {
		r = -r
	}
	return bitsF32(directF32(q, r, mode))
}

func sqrtDirF32(x uint64, mode rounding) uint64 {
	a := float64(f32of(x))
	q := math.Sqrt(a)
	if q == 0 || math.IsInf(q, 0) || q != q {
		return bitsF32(float32(q))
	}
	return bitsF32(directF32(q, math.FMA(-q, q, a), mode))
}

// flushF32 replaces a subnormal by a zero of its sign.
func flushF32(x uint64) uint64 {
	if uint32(x)&0x7f800000 == 0 {
		return x & (1 << 31)
	}
	return x
}

// satF32 clamps to [0, 1]; NaN becomes +0.
func satF32(x uint64) uint64 {
	f := f32of(x)
	switch {
	case !(f > 0):
		return 0
	case f > 1:
		return uint64(math.Float32bits(1))
	}
	return x
}

// approxF32 rounds a double-precision function to single precision.
func approxF32(f func(float64) float64) func(x uint64) uint64 {
	return func(x uint64) uint64 { return bitsF32(float32(f(float64(f32of(x))))) }
}

func rsqrt(x float64) float64 { return 1 / math.Sqrt(x) }
func rcp(x float64) float64   { return 1 / x }
