package vm

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
)

// roundBig rounds an exact value to a binary format of prec bits with the given least exponent and
// largest finite value, and returns it as a double. It is a second implementation, on integers.
func roundBig(v *big.Float, width int, mode string) float64 {
	prec, least, most := uint(24), -149, float64(math.MaxFloat32)
	if width == 64 {
		prec, least, most = 53, -1074, math.MaxFloat64
	}
	if v.Sign() == 0 {
		return 0
	}
	neg := v.Sign() < 0
	exp := max(v.MantExp(nil)-int(prec), least)
	scaled := new(big.Float).SetPrec(20000).SetMantExp(new(big.Float).SetPrec(20000).Abs(v), -exp)
	n, acc := scaled.Int(nil) // towards zero
	rest := new(big.Float).SetPrec(20000).Sub(scaled, new(big.Float).SetPrec(20000).SetInt(n))
	up := false
	if acc != big.Exact {
		switch half := rest.Cmp(big.NewFloat(0.5)); mode {
		case "rn":
			up = half > 0 || half == 0 && n.Bit(0) == 1
		case "rm":
			up = neg
		case "rp":
			up = !neg
		}
	}
	if up {
		n.Add(n, big.NewInt(1))
	}
	r := new(big.Float).SetPrec(200).SetMantExp(new(big.Float).SetPrec(200).SetInt(n), exp)
	f := math.Inf(1)
	if r.Cmp(big.NewFloat(most)) <= 0 {
		f, _ = r.Float64()
	} else if mode == "rz" || mode == "rm" && !neg || mode == "rp" && neg {
		f = most
	}
	if neg {
		f = -f
	}
	return f
}

// floatFmt reads and writes one of the two formats.
type floatFmt struct{ width int }

func (f floatFmt) value(x uint64) float64 {
	if f.width == 32 {
		return float64(math.Float32frombits(uint32(x)))
	}
	return math.Float64frombits(x)
}

func (f floatFmt) bits(v float64, nanOf ...uint64) uint64 {
	switch {
	case v != v && f.width == 32:
		return 0x7fffffff
	case v != v:
		for _, x := range nanOf {
			if math.IsNaN(math.Float64frombits(x)) {
				return x | 1<<51
			}
		}
		return 0xfff8 << 48
	case f.width == 32:
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

func isFinite(vs ...float64) bool {
	for _, v := range vs {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

func TestFloatArithmetic(t *testing.T) {
	bf := func(v float64) *big.Float { return new(big.Float).SetPrec(5000).SetFloat64(v) }
	var cases []instrCase
	for _, w := range []int{32, 64} {
		f := floatFmt{w}
		for _, mode := range []string{"rn", "rz", "rm", "rp"} {
			zeroSum := func(a, b float64) float64 { // sign of an exactly zero sum
				if math.Signbit(a) == math.Signbit(b) {
					return math.Copysign(0, a)
				}
				if mode == "rm" {
					return math.Copysign(0, -1)
				}
				return 0
			}
			add := func(op, operands string, g func(a, b, c float64) float64) {
				cases = append(cases, instrCase{fmt.Sprintf("%s.%s.f%d %%d, %s;", op, mode, w, operands), [4]int{w, w, w, w},
					func(a, b, c uint64) uint64 {
						used := []uint64{a, b, c}[:strings.Count(operands, "%")]
						return f.bits(g(f.value(a), f.value(b), f.value(c)), used...)
					}})
			}
			sum := func(a, b float64) float64 {
				v := new(big.Float).SetPrec(5000)
				if !isFinite(a, b) {
					return a + b
				}
				if v.Add(bf(a), bf(b)); v.Sign() == 0 {
					return zeroSum(a, b)
				}
				return roundBig(v, w, mode)
			}
			add("add", "%a, %b", func(a, b, _ float64) float64 { return sum(a, b) })
			add("sub", "%a, %b", func(a, b, _ float64) float64 {
				if b != b {
					return b
				}
				return sum(a, -b)
			})
			add("mul", "%a, %b", func(a, b, _ float64) float64 {
				if !isFinite(a, b) || a == 0 || b == 0 {
					return a * b
				}
				return roundBig(new(big.Float).SetPrec(5000).Mul(bf(a), bf(b)), w, mode)
			})
			add("fma", "%a, %b, %c", func(a, b, c float64) float64 {
				if !isFinite(a, b, c) {
					return math.FMA(a, b, c)
				}
				p := new(big.Float).SetPrec(5000).Mul(bf(a), bf(b))
				v := new(big.Float).SetPrec(9000).Add(p, bf(c))
				if v.Sign() == 0 {
					s := math.Copysign(1, a) * math.Copysign(1, b)
					return zeroSum(math.Copysign(0, s), math.Copysign(0, c))
				}
				return roundBig(v, w, mode)
			})
			quo := func(a, b float64) float64 {
				if !isFinite(a, b) || a == 0 || b == 0 {
					return a / b
				}
				return roundBig(new(big.Float).SetPrec(4000).Quo(bf(a), bf(b)), w, mode)
			}
			add("div", "%a, %b", func(a, b, _ float64) float64 { return quo(a, b) })
			add("rcp", "%a", func(a, _, _ float64) float64 { return quo(1, a) })
			add("sqrt", "%a", func(a, _, _ float64) float64 {
				if !isFinite(a) || a <= 0 {
					return math.Sqrt(a)
				}
				return roundBig(new(big.Float).SetPrec(4000).Sqrt(bf(a)), w, mode)
			})
		}
		minmax := func(op string, less func(a, b float64) bool) {
			cases = append(cases, instrCase{fmt.Sprintf("%s.f%d %%d, %%a, %%b;", op, w), [4]int{w, w, w, w}, func(x, y, _ uint64) uint64 {
				a, b := f.value(x), f.value(y)
				switch {
				case a != a && b != b:
					return map[int]uint64{32: 0x7fffffff, 64: math.MaxInt64}[w]
				case a != a:
					return y
				case b != b:
					return x
				case a == b && math.Signbit(a) != math.Signbit(b):
					if math.Signbit(a) == (op == "min") {
						return x
					}
					return y
				case less(a, b):
					return x
				}
				return y
			}})
		}
		minmax("min", func(a, b float64) bool { return a < b })
		minmax("max", func(a, b float64) bool { return a > b })
		sign := uint64(1) << (w - 1)
		cases = append(cases,
			instrCase{fmt.Sprintf("neg.f%d %%d, %%a;", w), [4]int{w, w, w, w}, func(a, _, _ uint64) uint64 { return a ^ sign }},
			instrCase{fmt.Sprintf("abs.f%d %%d, %%a;", w), [4]int{w, w, w, w}, func(a, _, _ uint64) uint64 { return a &^ sign }},
			instrCase{fmt.Sprintf("copysign.f%d %%d, %%a, %%b;", w), [4]int{w, w, w, w}, func(a, b, _ uint64) uint64 { return a&sign | b&^sign }})
	}
	flush := func(x uint64) uint64 {
		if x>>23&255 == 0 {
			return x & (1 << 31)
		}
		return x
	}
	f := floatFmt{32}
	cases = append(cases,
		instrCase{"add.rn.ftz.sat.f32 %d, %a, %b;", [4]int{32, 32, 32, 32}, func(a, b, _ uint64) uint64 {
			v := float32(f.value(flush(a))) + float32(f.value(flush(b)))
			if !(v > 0) {
				return 0
			}
			return flush(uint64(math.Float32bits(min(v, 1))))
		}},
		instrCase{"mul.rn.ftz.f32 %d, %a, %b;", [4]int{32, 32, 32, 32}, func(a, b, _ uint64) uint64 {
			return flush(f.bits(float64(float32(f.value(flush(a))) * float32(f.value(flush(b))))))
		}},
		instrCase{"ex2.approx.f32 %d, %a;", [4]int{32, 32, 32, 32}, func(a, _, _ uint64) uint64 { return f.bits(math.Exp2(f.value(a))) }},
		instrCase{"rsqrt.approx.f32 %d, %a;", [4]int{32, 32, 32, 32}, func(a, _, _ uint64) uint64 { return f.bits(1 / math.Sqrt(f.value(a))) }})
	checkInstr(t, true, cases)
}

func TestComparisons(t *testing.T) {
	var cases []instrCase
	truth := func(b bool) uint64 {
		if b {
			return 1
		}
		return 0
	}
	type cmp struct {
		name string
		ok   func(order int) bool
	}
	ordered := []cmp{{"eq", func(o int) bool { return o == 0 }}, {"ne", func(o int) bool { return o != 0 }}, {"lt", func(o int) bool { return o < 0 }},
		{"le", func(o int) bool { return o <= 0 }}, {"gt", func(o int) bool { return o > 0 }}, {"ge", func(o int) bool { return o >= 0 }}}
	for _, w := range []int{16, 32, 64} {
		for _, s := range []string{"u", "s"} {
			for _, c := range ordered {
				cases = append(cases, instrCase{fmt.Sprintf("setp.%s.%s%d %%p0, %%a, %%b; selp.b32 %%d, 1, 0, %%p0;", c.name, s, w), [4]int{32, w, w, w},
					func(a, b, _ uint64) uint64 { return truth(c.ok(bigOf(a, w, s == "s").Cmp(bigOf(b, w, s == "s")))) }})
			}
		}
	}
	var floats []instrCase
	for _, w := range []int{32, 64} {
		f := floatFmt{w}
		for _, c := range ordered {
			for _, un := range []bool{false, true} {
				name := c.name
				if un {
					name += "u"
				}
				floats = append(floats, instrCase{fmt.Sprintf("setp.%s.f%d %%p0, %%a, %%b; selp.b32 %%d, 1, 0, %%p0;", name, w), [4]int{32, w, w, w},
					func(x, y, _ uint64) uint64 {
						a, b := f.value(x), f.value(y)
						if a != a || b != b {
							return truth(un)
						}
						return truth(c.ok(big.NewFloat(a).Cmp(big.NewFloat(b))))
					}})
			}
		}
		isNaN := func(x, y uint64) bool { return math.IsNaN(f.value(x)) || math.IsNaN(f.value(y)) }
		floats = append(floats,
			instrCase{fmt.Sprintf("setp.num.f%d %%p0, %%a, %%b; selp.b32 %%d, 1, 0, %%p0;", w), [4]int{32, w, w, w}, func(x, y, _ uint64) uint64 { return truth(!isNaN(x, y)) }},
			instrCase{fmt.Sprintf("setp.nan.f%d %%p0, %%a, %%b; selp.b32 %%d, 1, 0, %%p0;", w), [4]int{32, w, w, w}, func(x, y, _ uint64) uint64 { return truth(isNaN(x, y)) }},
			instrCase{fmt.Sprintf("testp.subnormal.f%d %%p0, %%a; selp.b32 %%d, 1, 0, %%p0;", w), [4]int{32, w, w, w}, func(x, _, _ uint64) uint64 {
				v, least := math.Abs(f.value(x)), map[int]float64{32: 0x1p-126, 64: 0x1p-1022}[w]
				return truth(v > 0 && v < least)
			}})
	}
	cases = append(cases,
		instrCase{"setp.lt.u32 %p0, %c, 1000; setp.lt.and.s32 %p1|%p2, %a, %b, !%p0; selp.b32 %d, 1, 0, %p1; @%p2 add.u32 %d, %d, 2;", [4]int{32, 32, 32, 32},
			func(a, b, c uint64) uint64 {
				q, r := c >= 1000, int32(a) < int32(b)
				return truth(r && q) + 2*truth(!r && q)
			}},
		instrCase{"set.ge.u32.s32 %d, %a, %b;", [4]int{32, 32, 32, 32}, func(a, b, _ uint64) uint64 { return -truth(int32(a) >= int32(b)) }},
		instrCase{"set.eq.f32.u32 %d, %a, %b;", [4]int{32, 32, 32, 32}, func(a, b, _ uint64) uint64 { return 0x3f800000 * truth(a == b) }},
		instrCase{"slct.b32.s32 %d, %a, %b, %c;", [4]int{32, 32, 32, 32}, func(a, b, c uint64) uint64 {
			if int32(c) >= 0 {
				return a
			}
			return b
		}},
		instrCase{"setp.ne.s32 %p0, %a, 0; setp.gt.u32 %p1, %b, %c; xor.pred %p2, %p0, %p1; not.pred %p2, %p2; mov.u32 %d, 5; @!%p2 mov.u32 %d, 6;", [4]int{32, 32, 32, 32},
			func(a, b, c uint64) uint64 { return 5 + truth((a != 0) != (b > c)) }})
	checkInstr(t, false, cases)
	checkInstr(t, true, floats)
}

func TestConversions(t *testing.T) {
	var ints, floats []instrCase
	value := func(a uint64, w int, s string) *big.Int { return bigOf(a&lowMask(w), w, s == "s") }
	clamp := func(v *big.Int, w int, s string) uint64 {
		lo, hi := big.NewInt(0), new(big.Int).SetUint64(lowMask(w))
		if s == "s" {
			hi = new(big.Int).SetUint64(lowMask(w - 1))
			lo = new(big.Int).Sub(new(big.Int).Neg(hi), big.NewInt(1))
		}
		if v.Cmp(lo) < 0 {
			v = lo
		}
		if v.Cmp(hi) > 0 {
			v = hi
		}
		return lowBits(v)
	}
	modes := []string{"rn", "rz", "rm", "rp"}
	for _, sw := range []int{8, 16, 32, 64} {
		for _, s := range []string{"u", "s"} {
			reg := max(sw, 16)
			for _, dw := range []int{16, 32, 64} {
				for _, d := range []string{"u", "s"} {
					ints = append(ints,
						instrCase{fmt.Sprintf("cvt.%s%d.%s%d %%d, %%a;", d, dw, s, sw), [4]int{dw, reg, 32, 32}, func(a, _, _ uint64) uint64 { return lowBits(value(a, sw, s)) }},
						instrCase{fmt.Sprintf("cvt.sat.%s%d.%s%d %%d, %%a;", d, dw, s, sw), [4]int{dw, reg, 32, 32}, func(a, _, _ uint64) uint64 { return clamp(value(a, sw, s), dw, d) }})
				}
			}
			for _, fw := range []int{32, 64} {
				for _, m := range modes {
					ints = append(ints, instrCase{fmt.Sprintf("cvt.%s.f%d.%s%d %%d, %%a;", m, fw, s, sw), [4]int{fw, reg, 32, 32}, func(a, _, _ uint64) uint64 {
						return floatFmt{fw}.bits(roundBig(new(big.Float).SetPrec(100).SetInt(value(a, sw, s)), fw, m))
					}})
					floats = append(floats, instrCase{fmt.Sprintf("cvt.%si.%s%d.f%d %%d, %%a;", m, s, sw, fw), [4]int{max(sw, 16), fw, 32, 32}, func(a, _, _ uint64) uint64 {
						v := floatFmt{fw}.value(a)
						if v != v { // the specification's value: zero, or the least number where 64 bits are involved
							if fw == 64 || sw == 64 {
								return lowBits(bigOf(1<<(sw-1), sw, s == "s"))
							}
							return 0
						}
						v = map[string]func(float64) float64{"rn": math.RoundToEven, "rz": math.Trunc, "rm": math.Floor, "rp": math.Ceil}[m](v)
						x, _ := new(big.Float).SetPrec(2000).SetFloat64(max(min(v, 1e30), -1e30)).Int(nil)
						return clamp(x, sw, s)
					}})
				}
			}
		}
	}
	for _, m := range modes {
		floats = append(floats, instrCase{"cvt." + m + ".f32.f64 %d, %a;", [4]int{32, 64, 32, 32}, func(a, _, _ uint64) uint64 {
			v := math.Float64frombits(a)
			if !isFinite(v) || v == 0 {
				return floatFmt{32}.bits(v)
			}
			r := roundBig(big.NewFloat(v), 32, m)
			return floatFmt{32}.bits(math.Copysign(r, v))
		}})
	}
	floats = append(floats,
		instrCase{"cvt.f64.f32 %d, %a;", [4]int{64, 32, 32, 32}, func(a, _, _ uint64) uint64 { return math.Float64bits(float64(math.Float32frombits(uint32(a)))) }},
		instrCase{"cvt.sat.f32.f32 %d, %a;", [4]int{32, 32, 32, 32}, func(a, _, _ uint64) uint64 {
			v := math.Float32frombits(uint32(a))
			if !(v > 0) {
				return 0
			}
			return uint64(math.Float32bits(min(v, 1)))
		}})
	checkInstr(t, false, ints)
	checkInstr(t, true, floats)
}

// TestHalfPrecision goes over all 65,536 halves and compares the way back with their neighbours.
func TestHalfPrecision(t *testing.T) {
	value := func(h uint64) float64 {
		m, e := float64(h&1023), int(h>>10&31)
		if e == 0 {
			return m * 0x1p-24
		}
		return (1 + m/1024) * math.Ldexp(1, e-15)
	}
	for h := uint64(0); h < 0x7c00; h++ {
		if got := halfValue(h); got != value(h) {
			t.Fatalf("half %#x is %v, want %v", h, got, value(h))
		}
		next := value(h + 1)
		mid := (value(h) + next) / 2
		for _, c := range []struct {
			v    float64
			mode rounding
			want uint64
		}{{value(h), roundNear, h}, {mid, roundNear, h + h&1}, {math.Nextafter(mid, 0), roundNear, h}, {math.Nextafter(mid, 1e9), roundNear, h + 1},
			{mid, roundZero, h}, {mid, roundUp, h + 1}, {-mid, roundUp, 1<<15 | h}, {-mid, roundDown, 1<<15 | (h + 1)}} {
			if got := halfOf(c.v, c.mode); got != c.want {
				t.Fatalf("%v in mode %d is %#x, want %#x", c.v, c.mode, got, c.want)
			}
		}
	}
}
