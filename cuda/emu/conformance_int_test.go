package emu_test

import (
	"fmt"
	"math/big"
	"math/bits"
	"testing"
)

// num reads the low width bits as a signed or unsigned number.
func num(v uint64, width int, signed bool) *big.Int {
	v &= ^uint64(0) >> (64 - width)
	n := new(big.Int).SetUint64(v)
	if signed && v>>(width-1) != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(width)))
	}
	return n
}

// wrap is a number modulo 2^width.
func wrap(n *big.Int, width int) uint64 {
	m := new(big.Int).Lsh(big.NewInt(1), uint(width))
	return new(big.Int).Mod(n, m).Uint64()
}

// clampInt is the nearest number that width bits can hold.
func clampInt(n *big.Int, width int, signed bool) *big.Int {
	lo, hi := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(width))
	if signed {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	hi.Sub(hi, big.NewInt(1))
	switch {
	case n.Cmp(lo) < 0:
		return lo
	case n.Cmp(hi) > 0:
		return hi
	}
	return n
}

// letter is the PTX spelling of an integer type.
func letter(width int, signed bool) string {
	if signed {
		return fmt.Sprintf("s%d", width)
	}
	return fmt.Sprintf("u%d", width)
}

// times repeats an operand type.
func times(t typ, n int) []typ {
	var v []typ
	for range n {
		v = append(v, t)
	}
	return v
}

// eachInt calls f for all integer types of the widths.
func eachInt(f func(width int, signed bool), widths ...int) {
	for _, w := range widths {
		f(w, true)
		f(w, false)
	}
}

// exact builds an instruction whose result is a number modulo 2^width.
func exact(text string, width, outWidth int, signed bool, n int, f func(v []*big.Int) *big.Int) instruction {
	return instruction{text: text, out: intType(outWidth), in: times(intType(width), n), want: func(v []uint64) uint64 {
		x := make([]*big.Int, n)
		for i := range x {
			x[i] = num(v[i], width, signed)
		}
		return wrap(f(x), outWidth)
	}}
}

func nonZeroDivisor(v []uint64) {
	if v[1] == 0 {
		v[1] = 5
	}
}

func TestConformIntegerArithmetic(t *testing.T) {
	var list []instruction
	add := func(k instruction) { list = append(list, k) }
	i := func() *big.Int { return new(big.Int) }
	eachInt(func(w int, s bool) {
		ty := letter(w, s)
		add(exact("add."+ty+" $d, $0, $1;", w, w, s, 2, func(v []*big.Int) *big.Int { return i().Add(v[0], v[1]) }))
		add(exact("sub."+ty+" $d, $0, $1;", w, w, s, 2, func(v []*big.Int) *big.Int { return i().Sub(v[0], v[1]) }))
		add(exact("mul.lo."+ty+" $d, $0, $1;", w, w, s, 2, func(v []*big.Int) *big.Int { return i().Mul(v[0], v[1]) }))
		add(exact("mul.hi."+ty+" $d, $0, $1;", w, w, s, 2, func(v []*big.Int) *big.Int {
			return i().Rsh(i().Mul(v[0], v[1]), uint(w))
		}))
		add(exact("mad.lo."+ty+" $d, $0, $1, $2;", w, w, s, 3, func(v []*big.Int) *big.Int {
			return i().Add(i().Mul(v[0], v[1]), v[2])
		}))
		add(exact("mad.hi."+ty+" $d, $0, $1, $2;", w, w, s, 3, func(v []*big.Int) *big.Int {
			return i().Add(i().Rsh(i().Mul(v[0], v[1]), uint(w)), v[2])
		}))
		add(exact("min."+ty+" $d, $0, $1;", w, w, s, 2, func(v []*big.Int) *big.Int {
			if v[0].Cmp(v[1]) < 0 {
				return v[0]
			}
			return v[1]
		}))
		add(exact("max."+ty+" $d, $0, $1;", w, w, s, 2, func(v []*big.Int) *big.Int {
			if v[0].Cmp(v[1]) > 0 {
				return v[0]
			}
			return v[1]
		}))
		sad := exact("sad."+ty+" $d, $0, $1, $2;", w, w, s, 3, func(v []*big.Int) *big.Int {
			return i().Add(v[2], i().Abs(i().Sub(v[0], v[1])))
		})
		add(sad)
		div := exact("div."+ty+" $d, $0, $1;", w, w, s, 2, func(v []*big.Int) *big.Int { return i().Quo(v[0], v[1]) })
		div.fix = nonZeroDivisor
		add(div)
		rem := exact("rem."+ty+" $d, $0, $1;", w, w, s, 2, func(v []*big.Int) *big.Int { return i().Rem(v[0], v[1]) })
		rem.fix = nonZeroDivisor
		add(rem)
		if s {
			add(exact("neg."+ty+" $d, $0;", w, w, s, 1, func(v []*big.Int) *big.Int { return i().Neg(v[0]) }))
			add(exact("abs."+ty+" $d, $0;", w, w, s, 1, func(v []*big.Int) *big.Int { return i().Abs(v[0]) }))
		}
		if w < 64 {
			add(exact("mul.wide."+ty+" $d, $0, $1;", w, 2*w, s, 2, func(v []*big.Int) *big.Int { return i().Mul(v[0], v[1]) }))
			wide := instruction{text: "mad.wide." + ty + " $d, $0, $1, $2;", out: intType(2 * w),
				in: []typ{intType(w), intType(w), intType(2 * w)},
				want: func(v []uint64) uint64 {
					p := i().Mul(num(v[0], w, s), num(v[1], w, s))
					return wrap(p.Add(p, num(v[2], 2*w, s)), 2*w)
				}}
			add(wide)
		}
		if w == 32 {
			low24 := func(x *big.Int) *big.Int { return num(wrap(x, 24), 24, s) }
			add(exact("mul24.lo."+ty+" $d, $0, $1;", 32, 32, s, 2, func(v []*big.Int) *big.Int { return i().Mul(low24(v[0]), low24(v[1])) }))
			add(exact("mul24.hi."+ty+" $d, $0, $1;", 32, 32, s, 2, func(v []*big.Int) *big.Int {
				return i().Rsh(i().Mul(low24(v[0]), low24(v[1])), 16)
			}))
			add(exact("mad24.lo."+ty+" $d, $0, $1, $2;", 32, 32, s, 3, func(v []*big.Int) *big.Int {
				return i().Add(i().Mul(low24(v[0]), low24(v[1])), v[2])
			}))
		}
	}, 16, 32, 64)

	saturating := func(text string, n int, f func(v []*big.Int) *big.Int) {
		add(exact(text, 32, 32, true, n, func(v []*big.Int) *big.Int { return clampInt(f(v), 32, true) }))
	}
	saturating("add.sat.s32 $d, $0, $1;", 2, func(v []*big.Int) *big.Int { return i().Add(v[0], v[1]) })
	saturating("sub.sat.s32 $d, $0, $1;", 2, func(v []*big.Int) *big.Int { return i().Sub(v[0], v[1]) })
	saturating("mad.hi.sat.s32 $d, $0, $1, $2;", 3, func(v []*big.Int) *big.Int {
		return i().Add(i().Rsh(i().Mul(v[0], v[1]), 32), v[2])
	})
	conform(t, list)
}

func TestConformCarries(t *testing.T) {
	low := func(n *big.Int) uint64 { return wrap(n, 64) }
	u := func(v uint64) *big.Int { return new(big.Int).SetUint64(v) }
	const split = "mov.b64 {%t0, %t1}, $0;\nmov.b64 {%t2, %t3}, $1;\n"
	conform(t, []instruction{
		{text: split + "add.cc.u32 %t0, %t0, %t2;\naddc.u32 %t1, %t1, %t3;\nmov.b64 $d, {%t0, %t1};", out: i64, in: times(i64, 2),
			want: func(v []uint64) uint64 { return low(new(big.Int).Add(u(v[0]), u(v[1]))) }},
		{text: split + "sub.cc.u32 %t0, %t0, %t2;\nsubc.u32 %t1, %t1, %t3;\nmov.b64 $d, {%t0, %t1};", out: i64, in: times(i64, 2),
			want: func(v []uint64) uint64 { return low(new(big.Int).Sub(u(v[0]), u(v[1]))) }},
		{text: "add.cc.u64 %u0, $0, $1;\naddc.u64 $d, 0, 0;", out: i64, in: times(i64, 2),
			want: func(v []uint64) uint64 { return new(big.Int).Rsh(new(big.Int).Add(u(v[0]), u(v[1])), 64).Uint64() }},
		{text: "add.cc.u64 %u0, $0, $1;\naddc.cc.u64 %u1, $2, $3;\naddc.u64 $d, 0, 0;", out: i64, in: times(i64, 4),
			want: func(v []uint64) uint64 {
				a := new(big.Int).Add(u(v[0]), new(big.Int).Lsh(u(v[2]), 64))
				b := new(big.Int).Add(u(v[1]), new(big.Int).Lsh(u(v[3]), 64))
				return new(big.Int).Rsh(a.Add(a, b), 128).Uint64()
			}},
		{text: "sub.cc.u64 %u0, $0, $1;\nsubc.cc.u64 %u1, $2, $3;\nsubc.u64 $d, 0, 0;", out: i64, in: times(i64, 4),
			want: func(v []uint64) uint64 {
				a := new(big.Int).Add(u(v[0]), new(big.Int).Lsh(u(v[2]), 64))
				b := new(big.Int).Add(u(v[1]), new(big.Int).Lsh(u(v[3]), 64))
				if a.Cmp(b) < 0 {
					return ^uint64(0)
				}
				return 0
			}},
		// a 32 x 32 + 64 bit product sum, in halves
		{text: "mov.b64 {%t2, %t3}, $2;\nmad.lo.cc.u32 %t0, $0, $1, %t2;\nmadc.hi.u32 %t1, $0, $1, %t3;\nmov.b64 $d, {%t0, %t1};",
			out: i64, in: []typ{i32, i32, i64},
			want: func(v []uint64) uint64 {
				p := new(big.Int).Mul(u(v[0]), u(v[1]))
				return low(p.Add(p, u(v[2])))
			}},
	})
}

func TestConformBits(t *testing.T) {
	var list []instruction
	add := func(text string, out typ, in []typ, want func(v []uint64) uint64) {
		list = append(list, instruction{text: text, out: out, in: in, want: want})
	}
	for _, w := range []int{16, 32, 64} {
		ty, m := intType(w), ^uint64(0)>>(64-w)
		b := fmt.Sprintf("b%d", w)
		add("and."+b+" $d, $0, $1;", ty, times(ty, 2), func(v []uint64) uint64 { return v[0] & v[1] })
		add("or."+b+" $d, $0, $1;", ty, times(ty, 2), func(v []uint64) uint64 { return v[0] | v[1] })
		add("xor."+b+" $d, $0, $1;", ty, times(ty, 2), func(v []uint64) uint64 { return v[0] ^ v[1] })
		add("not."+b+" $d, $0;", ty, times(ty, 1), func(v []uint64) uint64 { return ^v[0] & m })
		add("cnot."+b+" $d, $0;", ty, times(ty, 1), func(v []uint64) uint64 { return truth(v[0] == 0) })
		add("shl."+b+" $d, $0, $1;", ty, []typ{ty, i32}, func(v []uint64) uint64 { return v[0] << v[1] & m })
		for _, kind := range []string{"b", "u"} {
			add(fmt.Sprintf("shr.%s%d $d, $0, $1;", kind, w), ty, []typ{ty, i32}, func(v []uint64) uint64 { return v[0] >> v[1] })
		}
		add(fmt.Sprintf("shr.s%d $d, $0, $1;", w), ty, []typ{ty, i32}, func(v []uint64) uint64 {
			return wrap(new(big.Int).Rsh(num(v[0], w, true), uint(min(v[1], 64))), w)
		})
		if w == 16 {
			continue
		}
		add("popc."+b+" $d, $0;", i32, []typ{ty}, func(v []uint64) uint64 { return uint64(bits.OnesCount64(v[0])) })
		add("clz."+b+" $d, $0;", i32, []typ{ty}, func(v []uint64) uint64 { return uint64(bits.LeadingZeros64(v[0]) - 64 + w) })
		add("brev."+b+" $d, $0;", ty, []typ{ty}, func(v []uint64) uint64 { return bits.Reverse64(v[0]) >> (64 - w) })
		eachInt(func(_ int, s bool) {
			top := func(v uint64) int { // the highest bit unlike the sign
				if s && v>>(w-1) != 0 {
					v = ^v & m
				}
				return bits.Len64(v) - 1
			}
			add("bfind."+letter(w, s)+" $d, $0;", i32, []typ{ty}, func(v []uint64) uint64 { return uint64(uint32(top(v[0]))) })
			add("bfind.shiftamt."+letter(w, s)+" $d, $0;", i32, []typ{ty}, func(v []uint64) uint64 {
				if k := top(v[0]); k >= 0 {
					return uint64(w - 1 - k)
				}
				return 0xffffffff
			})
			add("bfe."+letter(w, s)+" $d, $0, $1, $2;", ty, []typ{ty, i32, i32}, func(v []uint64) uint64 {
				return extract(v[0], int(v[1]&255), int(v[2]&255), w, s)
			})
		}, w)
		add("bfi."+b+" $d, $0, $1, $2, $3;", ty, []typ{ty, ty, i32, i32}, func(v []uint64) uint64 {
			out, pos, n := v[1], int(v[2]&255), int(v[3]&255)
			for i := 0; i < n && pos+i < w; i++ {
				out = out&^(1<<(pos+i)) | v[0]>>i&1<<(pos+i)
			}
			return out
		})
	}
	for op, f := range map[string]func(a, b bool) bool{
		"and": func(a, b bool) bool { return a && b }, "or": func(a, b bool) bool { return a || b }, "xor": func(a, b bool) bool { return a != b },
	} {
		add(op+".pred $d, $0, $1;", pred, times(pred, 2), func(v []uint64) uint64 { return truth(f(v[0] != 0, v[1] != 0)) })
	}
	add("not.pred $d, $0;", pred, times(pred, 1), func(v []uint64) uint64 { return 1 - v[0] })
	for _, lut := range []int{0, 1, 0x96, 0xe8, 0xca, 0x80, 0xfe, 0x1b, 0xff, 0x6c} {
		add(fmt.Sprintf("lop3.b32 $d, $0, $1, $2, %d;", lut), i32, times(i32, 3), func(v []uint64) (out uint64) {
			for i := range 32 {
				k := v[0]>>i&1<<2 | v[1]>>i&1<<1 | v[2]>>i&1
				out |= uint64(lut) >> k & 1 << i
			}
			return out
		})
	}
	for _, mode := range []string{"wrap", "clamp"} {
		n := func(c uint64) uint {
			if mode == "wrap" {
				return uint(c & 31)
			}
			return uint(min(c, 32))
		}
		add("shf.l."+mode+".b32 $d, $0, $1, $2;", i32, times(i32, 3), func(v []uint64) uint64 {
			return (v[1]<<32 | v[0]) << n(v[2]) >> 32
		})
		add("shf.r."+mode+".b32 $d, $0, $1, $2;", i32, times(i32, 3), func(v []uint64) uint64 {
			return (v[1]<<32 | v[0]) >> n(v[2]) & 0xffffffff
		})
	}
	add("prmt.b32 $d, $0, $1, $2;", i32, times(i32, 3), func(v []uint64) (out uint64) {
		all := v[1]<<32 | v[0]
		for i := range 4 {
			sel := v[2] >> (4 * i) & 15
			b := all >> (8 * (sel & 7)) & 255
			if sel >= 8 {
				b = -(b >> 7) & 255
			}
			out |= b << (8 * i)
		}
		return out
	})
	for mode, table := range map[string][4]string{ // source bytes, most significant first, by selector
		"f4e": {"3210", "4321", "5432", "6543"}, "b4e": {"5670", "6701", "7012", "0123"},
		"rc8": {"0000", "1111", "2222", "3333"}, "rc16": {"1010", "3232", "1010", "3232"},
		"ecl": {"3210", "3211", "3222", "3333"}, "ecr": {"0000", "1110", "2210", "3210"},
	} {
		add("prmt.b32."+mode+" $d, $0, $1, $2;", i32, times(i32, 3), func(v []uint64) (out uint64) {
			all := v[1]<<32 | v[0]
			for _, c := range table[v[2]&3] {
				out = out<<8 | all>>(8*(c-'0'))&255
			}
			return out
		})
	}
	eachInt(func(_ int, sa bool) {
		eachInt(func(_ int, sb bool) {
			signed := sa || sb
			add(fmt.Sprintf("dp4a.%s.%s $d, $0, $1, $2;", letter(32, sa), letter(32, sb)), i32, times(i32, 3), func(v []uint64) uint64 {
				sum := num(v[2], 32, signed)
				for i := range 4 {
					sum = new(big.Int).Add(sum, new(big.Int).Mul(num(v[0]>>(8*i), 8, sa), num(v[1]>>(8*i), 8, sb)))
				}
				return wrap(sum, 32)
			})
			for half, name := range []string{"lo", "hi"} {
				add(fmt.Sprintf("dp2a.%s.%s.%s $d, $0, $1, $2;", name, letter(32, sa), letter(32, sb)), i32, times(i32, 3), func(v []uint64) uint64 {
					sum := num(v[2], 32, signed)
					for i := range 2 {
						sum = new(big.Int).Add(sum, new(big.Int).Mul(num(v[0]>>(16*i), 16, sa), num(v[1]>>(8*(2*half+i)), 8, sb)))
					}
					return wrap(sum, 32)
				})
			}
		}, 32)
	}, 32)
	conform(t, list)
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// extract is bfe: bits beyond the value are its sign (or zero).
func extract(v uint64, pos, n, width int, signed bool) uint64 {
	if n == 0 {
		return 0
	}
	sign := uint64(0)
	if signed {
		sign = v >> min(pos+n-1, width-1) & 1
	}
	var out uint64
	for i := range width {
		bit := sign
		if i < n && pos+i < width {
			bit = v >> (pos + i) & 1
		}
		out |= bit << i
	}
	return out
}
