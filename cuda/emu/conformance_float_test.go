package emu_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"
)

// format is a binary floating-point format.
type format struct {
	name      string
	operand   typ
	precision int
	least     int // exponent of the smallest subnormal
	max       float64
}

var (
	half   = format{"f16", h16, 11, -24, 65504}
	single = format{"f32", f32, 24, -149, math.MaxFloat32}
	double = format{"f64", f64, 53, -1074, math.MaxFloat64}
)

// decode is the value of a bit pattern; every format is exact in float64.
func (f format) decode(v uint64) float64 {
	switch f.name {
	case "f32":
		return float64(math.Float32frombits(uint32(v)))
	case "f64":
		return math.Float64frombits(v)
	}
	sign, exp, frac := 1.0, int(v>>10&31), float64(v&1023)
	if v>>15&1 != 0 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// encode is the bit pattern of a value that the format holds exactly. NaN is
// any NaN: compare with sameFloat.
func (f format) encode(x float64) uint64 {
	switch f.name {
	case "f32":
		return uint64(math.Float32bits(float32(x)))
	case "f64":
		return math.Float64bits(x)
	}
	var sign uint64
	if math.Signbit(x) {
		sign, x = 1<<15, -x
	}
	switch {
	case math.IsNaN(x):
		return 0x7fff
	case math.IsInf(x, 0):
		return sign | 0x7c00
	case x < math.Ldexp(1, -14):
		return sign | uint64(math.Ldexp(x, 24))
	}
	frac, exp := math.Frexp(x)
	return sign | uint64(exp+14)<<10 | uint64(math.Ldexp(frac, 11))&1023
}

// subnormal reports whether x is too small to be normal.
func (f format) subnormal(x float64) bool {
	return x != 0 && math.Abs(x) < math.Ldexp(1, f.least+f.precision-1)
}

// flush is what .ftz does to operands and results.
func (f format) flush(x float64) float64 {
	if f.subnormal(x) {
		return math.Copysign(0, x)
	}
	return x
}

// round is the nearest value of the format in the direction of the mode: rn,
// rz, rm or rp. x is exact and not zero.
func (f format) round(x *big.Float, mode string) float64 {
	negative := x.Signbit()
	mag := new(big.Float).Abs(x)
	exp := max(mag.MantExp(nil)-f.precision, f.least)
	scaled := new(big.Float).SetMantExp(mag, -exp) // in units of the last place
	n, _ := scaled.Int(nil)
	rest := new(big.Float).Sub(scaled, new(big.Float).SetPrec(5000).SetInt(n))
	up := false
	switch mode {
	case "rn":
		c := rest.Cmp(big.NewFloat(0.5))
		up = c > 0 || c == 0 && n.Bit(0) == 1
	case "rm":
		up = negative && rest.Sign() > 0
	case "rp":
		up = !negative && rest.Sign() > 0
	}
	if up {
		n.Add(n, big.NewInt(1))
	}
	v, _ := new(big.Float).SetMantExp(new(big.Float).SetInt(n), exp).Float64()
	if v > f.max || math.IsInf(v, 0) {
		v = f.max
		if mode == "rn" || mode == "rm" && negative || mode == "rp" && !negative {
			v = math.Inf(1)
		}
	}
	if negative {
		v = -v
	}
	return v
}

func bigf(x float64) *big.Float { return new(big.Float).SetPrec(5000).SetFloat64(x) }

func special(v ...float64) bool {
	for _, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return true
		}
	}
	return false
}

// sum is a*b + c with one rounding; b is 1 for an addition.
func (f format) sum(a, b, c float64, mode string) float64 {
	switch {
	case special(a, b):
		return a*b + c // exact: infinities and NaN
	case special(c):
		return c // whatever the product, which must not overflow first
	}
	x := new(big.Float).SetPrec(5000).Mul(bigf(a), bigf(b))
	x.Add(x, bigf(c))
	if x.Sign() != 0 {
		return f.round(x, mode)
	}
	if negative := math.Signbit(a) != math.Signbit(b); (a == 0 || b == 0) && c == 0 && negative == math.Signbit(c) {
		return c
	}
	if mode == "rm" {
		return math.Copysign(0, -1)
	}
	return 0
}

func (f format) mul(a, b float64, mode string) float64 {
	if special(a, b) || a == 0 || b == 0 {
		return a * b
	}
	return f.round(new(big.Float).SetPrec(5000).Mul(bigf(a), bigf(b)), mode)
}

// inexact moves a truncated result off the grid, towards its true value: no
// format has a boundary that close.
func inexact(x *big.Float) *big.Float {
	x.SetPrec(600)
	tail := new(big.Float).SetMantExp(big.NewFloat(1), x.MantExp(nil)-300)
	if x.Signbit() {
		tail.Neg(tail)
	}
	return x.Add(x, tail)
}

func (f format) div(a, b float64, mode string) float64 {
	if special(a, b) || a == 0 || b == 0 {
		return a / b
	}
	q := new(big.Float).SetPrec(280).SetMode(big.ToZero).Quo(bigf(a), bigf(b))
	if q.Acc() != big.Exact {
		q = inexact(q)
	}
	return f.round(q, mode)
}

func (f format) sqrt(a float64, mode string) float64 {
	if special(a) || a <= 0 {
		return math.Sqrt(a)
	}
	root, _ := new(big.Float).SetPrec(280).Sqrt(bigf(a)).Float64()
	if new(big.Float).SetPrec(200).Mul(big.NewFloat(root), big.NewFloat(root)).Cmp(bigf(a)) == 0 {
		return f.round(bigf(root), mode)
	}
	return f.round(new(big.Float).SetPrec(280).Sqrt(bigf(a)), mode)
}

// sameFloat wants equal bits, but any NaN for a NaN.
func (f format) sameFloat(got, want uint64, _ []uint64) bool {
	return got == want || math.IsNaN(f.decode(got)) && math.IsNaN(f.decode(want))
}

// sameFlushed allows for the one case that .ftz leaves open: a result that is
// subnormal before rounding and normal after it.
func (f format) sameFlushed(got, want uint64, v []uint64) bool {
	g, w := f.decode(got), f.decode(want)
	return f.sameFloat(got, want, v) ||
		g == 0 && math.Signbit(g) == math.Signbit(w) && math.Abs(w) == math.Ldexp(1, f.least+f.precision-1)
}

// canonical is the NaN that PTX promises for single precision minima.
func (f format) canonical(got, want uint64, v []uint64) bool {
	if f.name == "f32" && math.IsNaN(f.decode(want)) {
		return got == 0x7fffffff
	}
	return f.sameFloat(got, want, v)
}

func saturate(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

// arithmetic is one operation in all modes: rounding, and for f32 also .ftz
// and .sat where they exist.
func (f format) arithmetic(op string, n int, modes []string, sat bool, do func(v []float64, mode string) float64) []instruction {
	var list []instruction
	args := " $d"
	for i := range n {
		args += fmt.Sprintf(", $%d", i)
	}
	ftz := []string{""}
	if f.name == "f32" {
		ftz = append(ftz, ".ftz")
	}
	sats := []string{""}
	if sat && f.name == "f32" {
		sats = append(sats, ".sat")
	}
	for _, mode := range modes {
		for _, z := range ftz {
			for _, s := range sats {
				k := instruction{text: op + mode + z + s + "." + f.name + args + ";", out: f.operand, in: times(f.operand, n)}
				k.want = func(v []uint64) uint64 {
					x := make([]float64, n)
					for i := range x {
						x[i] = f.decode(v[i])
						if z != "" {
							x[i] = f.flush(x[i])
						}
					}
					rounding := "rn"
					if mode != "" {
						rounding = mode[1:]
					}
					r := do(x, rounding)
					if z != "" {
						r = f.flush(r)
					}
					if s != "" {
						r = saturate(r)
					}
					return f.encode(r)
				}
				k.same = f.sameFloat
				if z != "" {
					k.same = f.sameFlushed
				}
				list = append(list, k)
			}
		}
	}
	return list
}

func TestConformFloatArithmetic(t *testing.T) {
	four := []string{".rn", ".rz", ".rm", ".rp"}
	for _, f := range []format{single, double} {
		t.Run(f.name, func(t *testing.T) {
			var list []instruction
			add := func(k []instruction) { list = append(list, k...) }
			add(f.arithmetic("add", 2, append(four, ""), true, func(v []float64, m string) float64 { return f.sum(v[0], 1, v[1], m) }))
			add(f.arithmetic("sub", 2, append(four, ""), true, func(v []float64, m string) float64 { return f.sum(v[1], -1, v[0], m) }))
			add(f.arithmetic("mul", 2, append(four, ""), true, func(v []float64, m string) float64 { return f.mul(v[0], v[1], m) }))
			add(f.arithmetic("fma", 3, four, true, func(v []float64, m string) float64 { return f.sum(v[0], v[1], v[2], m) }))
			add(f.arithmetic("mad", 3, four, true, func(v []float64, m string) float64 { return f.sum(v[0], v[1], v[2], m) }))
			add(f.arithmetic("div", 2, four, false, func(v []float64, m string) float64 { return f.div(v[0], v[1], m) }))
			add(f.arithmetic("rcp", 1, four, false, func(v []float64, m string) float64 { return f.div(1, v[0], m) }))
			add(f.arithmetic("sqrt", 1, four, false, func(v []float64, m string) float64 { return f.sqrt(v[0], m) }))
			add(f.arithmetic("abs", 1, []string{""}, false, func(v []float64, _ string) float64 { return math.Abs(v[0]) }))
			add(f.arithmetic("neg", 1, []string{""}, false, func(v []float64, _ string) float64 { return -v[0] }))
			lesser := func(a, b float64) bool { return a < b || a == b && math.Signbit(a) }
			pick := func(first func(a, b float64) bool, nan bool) func(v []float64, _ string) float64 {
				return func(v []float64, _ string) float64 {
					switch {
					case nan && (math.IsNaN(v[0]) || math.IsNaN(v[1])):
						return math.NaN()
					case math.IsNaN(v[1]) || !math.IsNaN(v[0]) && first(v[0], v[1]):
						return v[0]
					}
					return v[1]
				}
			}
			greater := func(a, b float64) bool { return lesser(b, a) }
			extremes := append(f.arithmetic("min", 2, []string{""}, false, pick(lesser, false)),
				f.arithmetic("max", 2, []string{""}, false, pick(greater, false))...)
			for i := range extremes {
				extremes[i].same = f.canonical
			}
			add(extremes)
			for _, c := range []struct {
				name string
				is   func(x float64) bool
			}{
				{"finite", func(x float64) bool { return !special(x) }},
				{"infinite", func(x float64) bool { return math.IsInf(x, 0) }},
				{"number", func(x float64) bool { return !math.IsNaN(x) }},
				{"notanumber", math.IsNaN},
				{"normal", func(x float64) bool { return !special(x) && x != 0 && !f.subnormal(x) }},
				{"subnormal", func(x float64) bool { return f.subnormal(x) }},
			} {
				list = append(list, instruction{text: "testp." + c.name + "." + f.name + " $d, $0;", out: pred, in: times(f.operand, 1),
					want: func(v []uint64) uint64 { return truth(c.is(f.decode(v[0]))) }})
			}
			sign := uint64(1) << (8*f.operand.bytes - 1)
			list = append(list, instruction{text: "copysign." + f.name + " $d, $0, $1;", out: f.operand, in: times(f.operand, 2), same: f.sameFloat,
				want: func(v []uint64) uint64 { return v[0]&sign | v[1]&^sign }})
			conform(t, list)
		})
	}
}

// TestConformHalfway aims at results halfway between two numbers, which random
// operands hardly meet: sums and products of few bits.
func TestConformHalfway(t *testing.T) {
	for _, f := range []format{single, double} {
		var list []instruction
		modes := []string{".rn", ".rz", ".rm", ".rp"}
		list = append(list, f.arithmetic("add", 2, modes, false, func(v []float64, m string) float64 { return f.sum(v[0], 1, v[1], m) })...)
		list = append(list, f.arithmetic("mul", 2, modes, false, func(v []float64, m string) float64 { return f.mul(v[0], v[1], m) })...)
		list = append(list, f.arithmetic("fma", 3, modes, false, func(v []float64, m string) float64 { return f.sum(v[0], v[1], v[2], m) })...)
		list = append(list, f.arithmetic("div", 2, modes, false, func(v []float64, m string) float64 { return f.div(v[0], v[1], m) })...)
		for i := range list {
			list[i].fix = func(v []uint64) {
				for j, x := range v {
					// Few significant bits, at distances around the precision.
					m := float64(x&15 + 1)
					if x&16 != 0 {
						m = math.Ldexp(1, f.precision-1) + m
					}
					v[j] = f.encode(math.Ldexp(m, int(x>>8%8)-4+j*(int(x>>16&1)*-f.precision)))
				}
			}
		}
		conform(t, list)
	}
}

func TestConformApproximations(t *testing.T) {
	near := func(rel, abs float64) func(got, want uint64, v []uint64) bool {
		return func(got, want uint64, v []uint64) bool {
			g, w := single.decode(got), single.decode(want)
			if special(w) || w == 0 {
				return single.sameFloat(got, want, v) || w == 0 && math.Abs(g) <= abs
			}
			return math.Abs(g-w) <= max(math.Abs(w)*rel, abs) || single.subnormal(w) && math.Abs(g-w) <= math.Ldexp(2, -149)
		}
	}
	one := func(op string, rel, abs float64, f func(x float64) float64) instruction {
		return instruction{text: op + ".f32 $d, $0;", out: f32, in: times(f32, 1), same: near(rel, abs),
			want: func(v []uint64) uint64 { return single.encode(f(single.decode(v[0]))) }}
	}
	limit := func(k instruction, max float64) instruction {
		k.fix = func(v []uint64) {
			if x := single.decode(v[0]); !special(x) && math.Abs(x) > max {
				v[0] = single.encode(float64(float32(math.Mod(x, max))))
			}
		}
		return k
	}
	list := []instruction{
		one("rcp.approx", 0x1p-23, 0, func(x float64) float64 { return 1 / x }),
		one("sqrt.approx", 0x1p-22, 0, math.Sqrt),
		one("rsqrt.approx", 0x1p-22, 0, func(x float64) float64 { return 1 / math.Sqrt(x) }),
		one("lg2.approx", 0x1p-22, 0x1p-22, math.Log2),
		one("ex2.approx", 0x1p-22, 0, math.Exp2),
		one("tanh.approx", 0x1p-10, 0, math.Tanh),
		limit(one("sin.approx", 0, 0x1p-20, math.Sin), 2*math.Pi),
		limit(one("cos.approx", 0, 0x1p-20, math.Cos), 2*math.Pi),
	}
	for _, op := range []string{"div.approx", "div.full"} {
		list = append(list, instruction{text: op + ".f32 $d, $0, $1;", out: f32, in: times(f32, 2), same: near(0x1p-22, 0),
			want: func(v []uint64) uint64 { return single.encode(single.decode(v[0]) / single.decode(v[1])) },
			fix: func(v []uint64) { // the documented range of the divisor
				if y := math.Abs(single.decode(v[1])); y != 0 && !special(y) && (y < 0x1p-126 || y > 0x1p126) {
					v[1] = single.encode(3)
				}
			}})
	}
	conform(t, list)
}
