package vm

import (
	"math"
	"math/big"
)

// nanF64 is the result of an operation on doubles that is not a number: the first NaN operand made
// quiet, else the default NaN.
func nanF64(ops ...uint64) uint64 {
	for _, x := range ops {
		if isNaN64(x) {
			return x | 1<<51
		}
	}
	return 0xfff8000000000000
}

func isNaN64(x uint64) bool { return x<<1 > 0x7ff0000000000000<<1 }

func f64of(x uint64) float64 { return math.Float64frombits(x) }

func addF64(x, y uint64) uint64 {
	if r := f64of(x) + f64of(y); r == r {
		return math.Float64bits(r)
	}
	return nanF64(x, y)
}

func subF64(x, y uint64) uint64 {
	if r := f64of(x) - f64of(y); r == r {
		return math.Float64bits(r)
	}
	return nanF64(x, y)
}

func mulF64(x, y uint64) uint64 {
	if r := f64of(x) * f64of(y); r == r {
		return math.Float64bits(r)
	}
	return nanF64(x, y)
}

func divF64(x, y uint64) uint64 {
	if r := f64of(x) / f64of(y); r == r {
		return math.Float64bits(r)
	}
	return nanF64(x, y)
}

func fmaF64(x, y, z uint64) uint64 {
	if r := math.FMA(f64of(x), f64of(y), f64of(z)); r == r {
		return math.Float64bits(r)
	}
	return nanF64(x, y, z)
}

func unaryF64(f func(float64) float64) func(x uint64) uint64 {
	return func(x uint64) uint64 {
		if r := f(f64of(x)); r == r {
			return math.Float64bits(r)
		}
		return nanF64(x)
	}
}

func minF64(x, y uint64) uint64 {
	a, b := f64of(x), f64of(y)
	switch {
	case a < b:
		return x
	case b < a:
		return y
	case a == b:
		return x | y
	case a == a:
		return x
	case b == b:
		return y
	}
	return 0x7fffffffffffffff
}

func maxF64(x, y uint64) uint64 {
	a, b := f64of(x), f64of(y)
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
	return 0x7fffffffffffffff
}

// widen converts single to double; a NaN stays one, made quiet.
func widen(x uint64) uint64 { return math.Float64bits(float64(f32of(x))) }

// exactPrec holds any sum or product of doubles exactly: exponents span 2*(1074+1024) bits.
const exactPrec = 4400

func exact(x float64) *big.Float { return new(big.Float).SetPrec(exactPrec).SetFloat64(x) }

// directF64 moves near, the exact value rounded to nearest, to where the mode asks. sign is the
// sign of the exact value minus near.
func directF64(near float64, sign int, mode rounding) uint64 {
	switch {
	case sign < 0 && (mode == roundDown || mode == roundZero && near > 0):
		near = math.Nextafter(near, math.Inf(-1))
	case sign > 0 && (mode == roundUp || mode == roundZero && near < 0):
		near = math.Nextafter(near, math.Inf(1))
	}
	return math.Float64bits(near)
}

func finite(fs ...float64) bool {
	for _, f := range fs {
		if math.IsInf(f, 0) || f != f {
			return false
		}
	}
	return true
}

// cmpNear compares an exact value with its rounded form, which may have overflowed.
func cmpNear(v *big.Float, near float64) int {
	return v.Cmp(new(big.Float).SetPrec(exactPrec).SetFloat64(near))
}

// The directed forms of double-precision operations are rare, so they take the exact value from
// arbitrary-precision arithmetic.

func fmaDirF64(x, y, z uint64, mode rounding) uint64 {
	a, b, c := f64of(x), f64of(y), f64of(z)
	if !finite(a, b, c) {
		return fmaF64(x, y, z)
	}
	p := new(big.Float).SetPrec(exactPrec).Mul(exact(a), exact(b))
	v := new(big.Float).SetPrec(exactPrec).Add(p, exact(c))
	if v.Sign() == 0 {
		ps := math.Copysign(0, a) * math.Copysign(1, b)
		if p.Sign() != 0 {
			ps = math.Copysign(0, float64(p.Sign()))
		}
		return math.Float64bits(exactZero(ps, math.Copysign(0, c), mode))
	}
	near := math.FMA(a, b, c)
	return directF64(near, cmpNear(v, near), mode)
}

func addDirF64(x, y uint64, mode rounding) uint64 {
	return fmaDirF64(x, math.Float64bits(1), y, mode)
}

func subDirF64(x, y uint64, mode rounding) uint64 {
	if isNaN64(y) { // its sign stays
		return subF64(x, y)
	}
	return addDirF64(x, y^1<<63, mode)
}

func mulDirF64(x, y uint64, mode rounding) uint64 {
	a, b := f64of(x), f64of(y)
	near := a * b
	if !finite(a, b) {
		return mulF64(x, y)
	}
	return directF64(near, cmpNear(new(big.Float).SetPrec(exactPrec).Mul(exact(a), exact(b)), near), mode)
}

func divDirF64(x, y uint64, mode rounding) uint64 {
	a, b := f64of(x), f64of(y)
	near := a / b
	if !finite(a, b) || b == 0 {
		return divF64(x, y)
	}
	sign := 0
	if math.IsInf(near, 0) {
		sign = -1
		if near < 0 {
			sign = 1
		}
	} else {
		back := new(big.Float).SetPrec(exactPrec).Mul(exact(near), exact(b))
		if sign = exact(a).Cmp(back); b < 0 {
			sign = -sign
		}
	}
	return directF64(near, sign, mode)
}

func sqrtDirF64(x uint64, mode rounding) uint64 {
	a := f64of(x)
	near := math.Sqrt(a)
	if !finite(near) {
		return unaryF64(math.Sqrt)(x)
	}
	q := exact(near)
	return directF64(near, exact(a).Cmp(new(big.Float).SetPrec(exactPrec).Mul(q, q)), mode)
}
