package vm

import (
	"math"
	"math/big"
)

// cvt compiles a conversion between any two of the integer and floating-point types.
func cvt(c *compiler) {
	c.operands(2)
	toInt := map[string]rounding{"rni": roundNear, "rzi": roundZero, "rmi": roundDown, "rpi": roundUp}
	mode, given := c.rounding()
	integral := false
	if !given && len(c.mods) > 0 {
		if mode, integral = toInt[c.mods[0]]; integral {
			c.mods = c.mods[1:]
		}
	}
	ftz, sat := c.take("ftz"), c.take("sat")
	kinds := []typ{u8, u16, u32, u64, s8, s16, s32, s64, f16, f32, f64}
	dt, st := c.typ(kinds...), c.typ(kinds...)
	narrowing := dt.float() && st.float() && dt.bits() < st.bits()
	switch {
	case given != (narrowing || dt.float() && !st.float()):
		c.fail("a rounding mode is %s", map[bool]string{true: "not allowed here", false: "missing"}[given])
	case st.float() && !dt.float() && !integral:
		c.fail("an integer rounding mode is missing")
	case integral && !(st.float() && (dt == st || !dt.float())):
		c.fail("an integer rounding mode is not allowed here")
	case ftz && st != f32 && dt != f32:
		c.fail(".ftz is for .f32")
	}
	keep := c.keepMask(c.s.ops[0], dt)
	d, a := c.dst(c.s.ops[0], asBits(dt), true), c.src(c.s.ops[1], asBits(st), true)
	wide := keep == ^uint64(0) && !dt.float()
	switch {
	case !sat && dt.integer() && st == s32 && wide && dt.bits() == 64:
		c.emit1(opSext32, d, a)
	case !sat && st == u32 && dt.integer() && dt.bits() == 64, !sat && dt == u32 && st.integer() && st.bits() >= 32:
		c.emit1(opMov32, d, a)
	case dt == f32 && st == s32 && mode == roundNear && !sat:
		c.emit1(opS32ToF32, d, a)
	case dt == f32 && st == u32 && mode == roundNear && !sat:
		c.emit1(opU32ToF32, d, a)
	case dt == f64 && st == f32 && !ftz && !sat:
		c.emit1(opF32ToF64, d, a)
	case dt == f32 && st == f64 && mode == roundNear && !ftz && !sat:
		c.emit1(opF64ToF32, d, a)
	default:
		c.emit1(map1(conversion(dt, st, mode, integral, ftz, sat, keep)), d, a)
	}
}

// asBits allows registers of any kind for a type: the width is what counts.
func asBits(t typ) typ { return map[int]typ{8: b8, 16: b16, 32: b32, 64: b64}[t.bits()] }

// conversion returns the function that converts from st to dt. Results that go to a wider register
// are extended as the destination type says.
func conversion(dt, st typ, mode rounding, integral, ftz, sat bool, keep uint64) func(x uint64) uint64 {
	switch {
	case st.integer() && dt.integer():
		return func(x uint64) uint64 { return intToInt(dt, st, x, sat) & keep }
	case st.integer():
		return func(x uint64) uint64 { return saturate(dt, intToFloat(dt, st, x, mode), sat) }
	case dt.integer():
		return func(x uint64) uint64 {
			if ftz {
				x = flushF32(trunc(f32, x))
			}
			return floatToInt(dt, st, toDouble(st, x), mode) & keep
		}
	}
	return func(x uint64) uint64 {
		x = trunc(st, x)
		if ftz && st == f32 {
			x = flushF32(x)
		}
		f := toDouble(st, x)
		if integral {
			f = roundInt(f, mode)
		}
		r := fromDouble(dt, f, mode)
		if ftz && dt == f32 {
			r = flushF32(r)
		}
		return saturate(dt, r, sat)
	}
}

func saturate(t typ, x uint64, sat bool) uint64 {
	if !sat {
		return x
	}
	f := toDouble(t, x)
	switch {
	case !(f > 0):
		return 0
	case f > 1:
		return fromDouble(t, 1, roundNear)
	}
	return x
}

// extend returns the value of type t as a 64-bit pattern, extended by its sign if it has one.
func extend(t typ, x uint64) uint64 {
	if t.signed() {
		return uint64(signedValue(t, x))
	}
	return trunc(t, x)
}

func intToInt(dt, st typ, x uint64, sat bool) uint64 {
	x = extend(st, x)
	if !sat {
		return extend(dt, x)
	}
	neg := st.signed() && int64(x) < 0
	var lo, hi int64 = 0, math.MaxInt64
	if dt.signed() {
		lo, hi = -1<<(dt.bits()-1), 1<<(dt.bits()-1)-1
	} else if dt.bits() < 64 {
		hi = 1<<dt.bits() - 1
	}
	switch {
	case neg && int64(x) < lo:
		return uint64(lo)
	case !neg && x > uint64(hi) && dt != u64:
		return uint64(hi)
	}
	return x
}

func intToFloat(dt, st typ, x uint64, mode rounding) uint64 {
	x = extend(st, x)
	near32, near64 := float32(x), float64(x)
	if st.signed() {
		near32, near64 = float32(int64(x)), float64(int64(x))
	}
	if st.bits() <= 32 { // exact as a double
		return fromDouble(dt, near64, mode)
	}
	v := new(big.Float).SetUint64(x)
	if st.signed() {
		v = new(big.Float).SetInt64(int64(x))
	}
	sign := v.Cmp(big.NewFloat(near64))
	switch dt {
	case f64:
		return directF64(near64, sign, mode)
	case f32:
		if mode == roundNear {
			return bitsF32(near32)
		}
		return bitsF32(directF32(near64, float64(sign), mode))
	}
	return halfOf(roundToOdd(near64, float64(sign)), mode)
}

// toDouble widens a floating-point value exactly.
func toDouble(t typ, x uint64) float64 {
	switch t {
	case f16:
		return halfValue(x)
	case f32:
		return float64(f32of(x))
	}
	return f64of(x)
}

// fromDouble rounds to a floating-point type.
func fromDouble(t typ, f float64, mode rounding) uint64 {
	switch t {
	case f16:
		return halfOf(f, mode)
	case f32:
		return bitsF32(directF32(f, 0, mode))
	}
	return math.Float64bits(f)
}

func roundInt(f float64, mode rounding) float64 {
	switch mode {
	case roundZero:
		return math.Trunc(f)
	case roundDown:
		return math.Floor(f)
	case roundUp:
		return math.Ceil(f)
	}
	return math.RoundToEven(f)
}

// floatToInt converts with saturation. NaN becomes zero between types of at most 32 bits, and the
// value with only the top bit set otherwise.
func floatToInt(dt, st typ, f float64, mode rounding) uint64 {
	if f != f {
		if st != f64 && dt.bits() < 64 {
			return 0
		}
		return extend(dt, 1<<(dt.bits()-1))
	}
	f = roundInt(f, mode)
	n := dt.bits()
	if dt.signed() {
		limit := math.Ldexp(1, n-1)
		switch {
		case f >= limit:
			return 1<<(n-1) - 1
		case f < -limit:
			return ^uint64(0) << (n - 1)
		}
		return uint64(int64(f))
	}
	switch {
	case f <= 0:
		return 0
	case f >= math.Ldexp(1, n):
		return ^uint64(0) >> (64 - n)
	case f >= 1<<63:
		return uint64(int64(f-1<<63)) | 1<<63
	}
	return uint64(int64(f))
}

func halfValue(x uint64) float64 {
	mant, exp := x&1023, int(x>>10&31)
	var f float64
	switch {
	case exp == 31 && mant != 0:
		return math.NaN()
	case exp == 31:
		f = math.Inf(1)
	case exp == 0:
		f = math.Ldexp(float64(mant), -24)
	default:
		f = math.Ldexp(float64(mant|1024), exp-25)
	}
	if x>>15&1 != 0 {
		f = -f
	}
	return f
}

// halfOf rounds a double to half precision.
func halfOf(f float64, mode rounding) uint64 {
	if f != f {
		return 0x7fff
	}
	var sign uint64
	if math.Signbit(f) {
		sign = 1 << 15
		f = -f
		switch mode { // of the magnitude
		case roundDown:
			mode = roundUp
		case roundUp:
			mode = roundDown
		}
	}
	if math.IsInf(f, 0) {
		return sign | 0x7c00
	}
	exp := -14
	if f > 0 {
		exp = max(exp, math.Ilogb(f))
	}
	q := roundInt(math.Ldexp(f, 10-exp), mode) // in units of the last place, up to 2048
	if exp > 15 || exp == 15 && q == 2048 {
		if mode == roundZero || mode == roundDown {
			return sign | 0x7bff
		}
		return sign | 0x7c00
	}
	return sign | uint64(exp+14)<<10 + uint64(q) // the carry of q moves to the exponent
}
