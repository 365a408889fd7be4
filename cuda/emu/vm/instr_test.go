package vm

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// instrCase runs one instruction on columns of operands. In text, %d is the result and %a, %b, %c
// the operands; widths gives their bits, the result's first. want is computed without the machine.
type instrCase struct {
	text   string
	widths [4]int
	want   func(a, b, c uint64) uint64
}

const instrThreads = 1024

func runInstr(t *testing.T, tc instrCase, operands [3][]uint64) []uint64 {
	t.Helper()
	var b strings.Builder
	b.WriteString(".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc)\n{\n.reg .b64 %t<8>;\n.reg .pred %p<4>;\n.reg .b32 %x<8>;\nmov.u32 %x0, %tid.x;\nmul.wide.u32 %t0, %x0, 8;\n")
	for i, n := range []string{"d", "a", "b", "c"} {
		fmt.Fprintf(&b, ".reg .b%d %%%s;\nld.param.u64 %%t%d, [p%s];\nadd.u64 %%t%d, %%t%d, %%t0;\n", tc.widths[i], n, i+1, n, i+1, i+1)
		if i > 0 {
			fmt.Fprintf(&b, "ld.global.b%d %%%s, [%%t%d];\n", tc.widths[i], n, i+1)
		}
	}
	fmt.Fprintf(&b, "%s\nst.global.b%d [%%t1], %%d;\nret;\n}\n", tc.text, tc.widths[0])
	r := newRig(t, b.String())
	out := upload(r, make([]uint64, instrThreads))
	r.mustRun(1, instrThreads, out, upload(r, operands[0]), upload(r, operands[1]), upload(r, operands[2]))
	return download[uint64](r, out, instrThreads)
}

var edgeInts = []uint64{0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000,
	0xffffffff, 0xfffffffe, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64, math.MaxUint64 - 1, 0x123456789abcdef0}

var edgeF32 = []uint32{0, 1 << 31, 1, 0x80000001, 0x007fffff, 0x00800000, 0x00800001, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
	0x7fc00000, 0x7f800001, 0xffc12345, 0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff, 0x4b800000, 0x4b000001, 0x33800000, 0x34000000, 0x00400000}

func edges(rng *rand.Rand, width int, float bool) []uint64 {
	out := make([]uint64, instrThreads)
	for i := range out {
		switch k := rng.Intn(4); {
		case float && width == 32 && k < 2:
			out[i] = uint64(edgeF32[rng.Intn(len(edgeF32))])
		case float && width == 64 && k < 2:
			f := math.Float32frombits(edgeF32[rng.Intn(len(edgeF32))])
			out[i] = math.Float64bits(float64(f) * math.Ldexp(1, []int{0, 0, 900, -900, -926}[rng.Intn(5)]))
		case float && k == 2: // near one another, so that sums cancel and round
			f := (rng.Float64() - 0.5) * math.Ldexp(1, rng.Intn(8))
			if out[i] = math.Float64bits(f); width == 32 {
				out[i] = uint64(math.Float32bits(float32(f)))
			}
		case k == 0:
			out[i] = edgeInts[rng.Intn(len(edgeInts))]
		case k == 1:
			out[i] = uint64(rng.Intn(70))
		default:
			out[i] = rng.Uint64()
		}
		out[i] &= lowMask(width)
	}
	return out
}

func lowMask(width int) uint64 { return ^uint64(0) >> (64 - width) }

func checkInstr(t *testing.T, float bool, cases []instrCase) {
	rng := rand.New(rand.NewSource(42))
	for _, tc := range cases {
		t.Run(tc.text, func(t *testing.T) {
			for i, w := range tc.widths {
				if w == 0 {
					tc.widths[i] = 32
				}
			}
			ops := [3][]uint64{edges(rng, tc.widths[1], float), edges(rng, tc.widths[2], float), edges(rng, tc.widths[3], float)}
			for i, got := range runInstr(t, tc, ops) {
				a, b, c := ops[0][i], ops[1][i], ops[2][i]
				require.Equal(t, tc.want(a, b, c)&lowMask(tc.widths[0]), got, "a=%#x b=%#x c=%#x", a, b, c)
			}
		})
	}
}

func bigOf(v uint64, w int, signed bool) *big.Int {
	x := new(big.Int).SetUint64(v)
	if signed && v>>(w-1)&1 != 0 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(w)))
	}
	return x
}

func lowBits(x *big.Int) uint64 {
	return new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
}

func TestIntegerArithmetic(t *testing.T) {
	var cases []instrCase
	for _, w := range []int{16, 32, 64} {
		for _, s := range []bool{false, true} {
			ty := map[bool]string{false: "u", true: "s"}[s] + fmt.Sprint(w)
			add := func(op, operands string, f func(x, y, z *big.Int) *big.Int) {
				cases = append(cases, instrCase{op + "." + ty + " %d, " + operands + ";", [4]int{w, w, w, w}, func(a, b, c uint64) uint64 {
					return lowBits(f(bigOf(a, w, s), bigOf(b, w, s), bigOf(c, w, s)))
				}})
			}
			n := func() *big.Int { return new(big.Int) }
			add("add", "%a, %b", func(x, y, _ *big.Int) *big.Int { return n().Add(x, y) })
			add("sub", "%a, %b", func(x, y, _ *big.Int) *big.Int { return n().Sub(x, y) })
			add("mul.lo", "%a, %b", func(x, y, _ *big.Int) *big.Int { return n().Mul(x, y) })
			add("mul.hi", "%a, %b", func(x, y, _ *big.Int) *big.Int { return n().Rsh(n().Mul(x, y), uint(w)) })
			add("mad.lo", "%a, %b, %c", func(x, y, z *big.Int) *big.Int { return n().Add(n().Mul(x, y), z) })
			add("mad.hi", "%a, %b, %c", func(x, y, z *big.Int) *big.Int { return n().Add(n().Rsh(n().Mul(x, y), uint(w)), z) })
			add("min", "%a, %b", func(x, y, _ *big.Int) *big.Int {
				if x.Cmp(y) < 0 {
					return x
				}
				return y
			})
			add("max", "%a, %b", func(x, y, _ *big.Int) *big.Int {
				if x.Cmp(y) > 0 {
					return x
				}
				return y
			})
			add("sad", "%a, %b, %c", func(x, y, z *big.Int) *big.Int { return n().Add(n().Abs(n().Sub(x, y)), z) })
			add("div", "%a, %b", func(x, y, _ *big.Int) *big.Int {
				if y.Sign() == 0 {
					return big.NewInt(-1)
				}
				return n().Quo(x, y)
			})
			add("rem", "%a, %b", func(x, y, _ *big.Int) *big.Int {
				if y.Sign() == 0 {
					return x
				}
				return n().Rem(x, y)
			})
			if s {
				add("neg", "%a", func(x, _, _ *big.Int) *big.Int { return n().Neg(x) })
				add("abs", "%a", func(x, _, _ *big.Int) *big.Int { return n().Abs(x) })
			}
			if w < 64 {
				cases = append(cases,
					instrCase{"mul.wide." + ty + " %d, %a, %b;", [4]int{2 * w, w, w, w}, func(a, b, _ uint64) uint64 {
						return lowBits(n().Mul(bigOf(a, w, s), bigOf(b, w, s)))
					}},
					instrCase{"mad.wide." + ty + " %d, %a, %b, %c;", [4]int{2 * w, w, w, 2 * w}, func(a, b, c uint64) uint64 {
						return lowBits(n().Add(n().Mul(bigOf(a, w, s), bigOf(b, w, s)), bigOf(c, 2*w, s)))
					}})
			}
			shr := func(a, b, _ uint64) uint64 {
				return lowBits(n().Rsh(bigOf(a, w, s), uint(min(b&lowMask(32), 200))))
			}
			cases = append(cases, instrCase{"shr." + ty + " %d, %a, %b;", [4]int{w, w, 32, w}, shr})
		}
		ty := fmt.Sprint("b", w)
		add := func(text string, f func(a, b, c uint64) uint64) {
			cases = append(cases, instrCase{strings.ReplaceAll(text, "T", ty), [4]int{w, w, w, w}, f})
		}
		add("and.T %d, %a, %b;", func(a, b, _ uint64) uint64 { return a & b })
		add("or.T %d, %a, %b;", func(a, b, _ uint64) uint64 { return a | b })
		add("xor.T %d, %a, %b;", func(a, b, _ uint64) uint64 { return a ^ b })
		add("not.T %d, %a;", func(a, _, _ uint64) uint64 { return ^a })
		add("cnot.T %d, %a;", func(a, _, _ uint64) uint64 {
			if a == 0 {
				return 1
			}
			return 0
		})
		cases = append(cases, instrCase{"shl." + ty + " %d, %a, %b;", [4]int{w, w, 32, w}, func(a, b, _ uint64) uint64 {
			return lowBits(new(big.Int).Lsh(new(big.Int).SetUint64(a), uint(min(b, 200))))
		}})
	}
	checkInstr(t, false, cases)
}

func TestBitInstructions(t *testing.T) {
	bit := func(v uint64, i uint64) uint64 { return v >> i & 1 }
	var cases []instrCase
	for _, w := range []int{32, 64} {
		w64 := uint64(w)
		add := func(text string, widths [4]int, f func(a, b, c uint64) uint64) {
			cases = append(cases, instrCase{strings.ReplaceAll(text, "W", fmt.Sprint(w)), widths, f})
		}
		add("popc.bW %d, %a;", [4]int{32, w, w, w}, func(a, _, _ uint64) (n uint64) {
			for i := range w64 {
				n += bit(a, i)
			}
			return n
		})
		add("clz.bW %d, %a;", [4]int{32, w, w, w}, func(a, _, _ uint64) uint64 { return uint64(w - bits.Len64(a)) })
		add("brev.bW %d, %a;", [4]int{w, w, w, w}, func(a, _, _ uint64) (r uint64) {
			for i := range w64 {
				r |= bit(a, i) << (w64 - 1 - i)
			}
			return r
		})
		for _, s := range []string{"u", "s"} {
			find := func(a uint64) uint64 {
				if s == "s" && bit(a, w64-1) != 0 {
					a = ^a & lowMask(w)
				}
				return uint64(bits.Len64(a)) - 1
			}
			add("bfind."+s+"W %d, %a;", [4]int{32, w, w, w}, func(a, _, _ uint64) uint64 { return find(a) })
			add("bfind.shiftamt."+s+"W %d, %a;", [4]int{32, w, w, w}, func(a, _, _ uint64) uint64 {
				if find(a) == math.MaxUint64 {
					return math.MaxUint64
				}
				return w64 - 1 - find(a)
			})
			add("bfe."+s+"W %d, %a, %b, %c;", [4]int{w, w, 32, 32}, func(a, b, c uint64) uint64 {
				x := bigOf(a, w, s == "s") // sign and zero extension beyond the width for free
				pos, n := uint(b&255), uint(c&255)
				if n == 0 {
					return 0
				}
				if s == "u" || pos+n <= uint(w) {
					x = x.Rsh(x, pos)
					v := lowBits(x.And(x, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), n), big.NewInt(1))))
					if s == "s" && n < uint(w) && v>>(n-1)&1 != 0 {
						v |= ^uint64(0) << n
					}
					return v
				}
				return lowBits(x.Rsh(x, pos))
			})
		}
		add("bfi.bW %d, %a, %b, %c, 9;", [4]int{w, w, w, 32}, func(a, b, c uint64) uint64 {
			for i := uint64(0); i < 9; i++ {
				if p := c&255 + i; p < w64 {
					b = b&^(1<<p) | bit(a, i)<<p
				}
			}
			return b
		})
	}
	add := func(text string, f func(a, b, c uint64) uint64) {
		cases = append(cases, instrCase{text: text, want: f})
	}
	for _, lut := range []uint64{0, 0x1b, 0x80, 0x96, 0xe8, 0xff} {
		add(fmt.Sprintf("lop3.b32 %%d, %%a, %%b, %%c, %d;", lut), func(a, b, c uint64) (r uint64) {
			for i := range uint64(32) {
				r |= bit(lut, bit(a, i)<<2|bit(b, i)<<1|bit(c, i)) << i
			}
			return r
		})
	}
	for _, mode := range []string{"wrap", "clamp"} {
		amount := func(c uint64) uint64 {
			if mode == "wrap" {
				return c % 32
			}
			return min(c, 32)
		}
		add("shf.l."+mode+".b32 %d, %a, %b, %c;", func(a, b, c uint64) uint64 { return (b<<32 | a) << amount(c) >> 32 })
		add("shf.r."+mode+".b32 %d, %a, %b, %c;", func(a, b, c uint64) uint64 { return (b<<32 | a) >> amount(c) })
	}
	prmtBytes := func(pick func(sel uint64, i uint64) (byteIndex uint64, sign bool)) func(a, b, c uint64) uint64 {
		return func(a, b, c uint64) (r uint64) {
			for i := range uint64(4) {
				k, sign := pick(c, i)
				v := (b<<32 | a) >> (8 * (k % 8)) & 255
				if sign {
					v = uint64(byte(int8(v) >> 7))
				}
				r |= v << (8 * i)
			}
			return r
		}
	}
	add("prmt.b32 %d, %a, %b, %c;", prmtBytes(func(s, i uint64) (uint64, bool) { return s >> (4 * i) & 7, s>>(4*i)&8 != 0 }))
	add("prmt.b32.f4e %d, %a, %b, %c;", prmtBytes(func(s, i uint64) (uint64, bool) { return s%4 + i, false }))
	add("prmt.b32.b4e %d, %a, %b, %c;", prmtBytes(func(s, i uint64) (uint64, bool) { return s%4 + 8 - i, false }))
	add("prmt.b32.rc8 %d, %a, %b, %c;", prmtBytes(func(s, i uint64) (uint64, bool) { return s % 4, false }))
	add("prmt.b32.ecl %d, %a, %b, %c;", prmtBytes(func(s, i uint64) (uint64, bool) { return max(s%4, i), false }))
	add("prmt.b32.ecr %d, %a, %b, %c;", prmtBytes(func(s, i uint64) (uint64, bool) { return min(s%4, i), false }))
	add("prmt.b32.rc16 %d, %a, %b, %c;", prmtBytes(func(s, i uint64) (uint64, bool) { return s%2*2 + i%2, false }))
	add("mul24.lo.u32 %d, %a, %b;", func(a, b, _ uint64) uint64 { return a % (1 << 24) * (b % (1 << 24)) })
	add("mul24.hi.s32 %d, %a, %b;", func(a, b, _ uint64) uint64 {
		x := new(big.Int).Mul(bigOf(a%(1<<24), 24, true), bigOf(b%(1<<24), 24, true))
		return lowBits(x.Rsh(x, 16))
	})
	add("mad24.lo.s32 %d, %a, %b, %c;", func(a, b, c uint64) uint64 { return uint64(int64(a<<40)>>40*(int64(b<<40)>>40)) + c })
	add("dp4a.s32.u32 %d, %a, %b, %c;", func(a, b, c uint64) uint64 {
		r := int64(c)
		for i := range 4 {
			r += int64(int8(a>>(8*i))) * int64(uint8(b>>(8*i)))
		}
		return uint64(r)
	})
	add("dp2a.hi.u32.s32 %d, %a, %b, %c;", func(a, b, c uint64) uint64 {
		return uint64(int64(c) + int64(uint16(a))*int64(int8(b>>16)) + int64(uint16(a>>16))*int64(int8(b>>24)))
	})
	add("add.sat.s32 %d, %a, %b;", func(a, b, _ uint64) uint64 {
		return uint64(max(min(int64(int32(a))+int64(int32(b)), math.MaxInt32), math.MinInt32))
	})
	add("fns.b32 %d, %a, 4, 3;", func(a, _, _ uint64) uint64 {
		n := 0
		for i := uint64(4); i < 32; i++ {
			if n += int(bit(a, i)); n == 3 {
				return i
			}
		}
		return math.MaxUint32
	})
	wide := func(text string, f func(a, b, c *big.Int) *big.Int) {
		cases = append(cases, instrCase{text, [4]int{64, 64, 64, 64}, func(a, b, c uint64) uint64 {
			return lowBits(f(bigOf(a, 64, false), bigOf(b, 64, false), bigOf(c, 64, false)))
		}})
	}
	// Carries: the low words produce one, the high words consume it.
	wide("{.reg .b32 l<6>; mov.b64 {l0, l1}, %a; mov.b64 {l2, l3}, %b; add.cc.u32 l4, l0, l2; addc.u32 l5, l1, l3; mov.b64 %d, {l4, l5};}",
		func(a, b, _ *big.Int) *big.Int { return new(big.Int).Add(a, b) })
	wide("{.reg .b32 l<6>; mov.b64 {l0, l1}, %a; mov.b64 {l2, l3}, %b; sub.cc.u32 l4, l0, l2; subc.u32 l5, l1, l3; mov.b64 %d, {l4, l5};}",
		func(a, b, _ *big.Int) *big.Int { return new(big.Int).Sub(a, b) })
	wide("{.reg .b64 h; mad.lo.cc.u64 h, %a, %b, %c; madc.hi.u64 %d, %a, %b, 0;}",
		func(a, b, c *big.Int) *big.Int {
			p := new(big.Int).Mul(a, b)
			return p.Rsh(p.Add(p, c), 64)
		})
	checkInstr(t, false, cases)
}
