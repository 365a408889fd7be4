package vm

import "math/bits"

// Functions of one to three operands become instructions that call them per lane. What kernels
// execute most has loops of its own (zz_ops.go).

func map1(f func(x uint64) uint64) execFn {
	return func(w *warp, in *inst, m uint32) {
		d, a := &w.r[in.d], &w.r[in.a]
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			d[i] = f(a[i])
		}
	}
}

func map2(f func(x, y uint64) uint64) execFn {
	return func(w *warp, in *inst, m uint32) {
		d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			d[i] = f(a[i], b[i])
		}
	}
}

func map3(f func(x, y, z uint64) uint64) execFn {
	return func(w *warp, in *inst, m uint32) {
		d, a, b, c := &w.r[in.d], &w.r[in.a], &w.r[in.b], &w.r[in.c]
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			d[i] = f(a[i], b[i], c[i])
		}
	}
}

// trunc keeps the low bits of a type's width.
func trunc(t typ, v uint64) uint64 {
	if n := t.bits(); n < 64 {
		return v & (1<<n - 1)
	}
	return v
}

// signedValue interprets the low bits of a column as a signed number of a type's width.
func signedValue(t typ, v uint64) int64 {
	sh := 64 - t.bits()
	return int64(v<<sh) >> sh
}

// intBinary holds the loops of binary operations by width; s is for signed types.
type intBinary struct{ w16, w32, w64, s16, s32, s64 execFn }

func (t typ) choose(b intBinary) execFn {
	if t.signed() && b.s32 != nil {
		return map[int]execFn{16: b.s16, 32: b.s32, 64: b.s64}[t.bits()]
	}
	return map[int]execFn{16: b.w16, 32: b.w32, 64: b.w64}[t.bits()]
}

func any3(f execFn) intBinary { return intBinary{w16: f, w32: f, w64: f} }

var (
	loopsAdd = intBinary{w16: opAdd16, w32: opAdd32, w64: opAdd64}
	loopsSub = intBinary{w16: opSub16, w32: opSub32, w64: opSub64}
	loopsMul = intBinary{w16: opMul16, w32: opMul32, w64: opMul64}
	loopsMad = intBinary{w16: opMad16, w32: opMad32, w64: opMad64}
	loopsMin = intBinary{opUMin16, opUMin32, opUMin64, opSMin16, opSMin32, opSMin64}
	loopsMax = intBinary{opUMax16, opUMax32, opUMax64, opSMax16, opSMax32, opSMax64}
	loopsShl = intBinary{w16: opShl16, w32: opShl32, w64: opShl64}
	loopsShr = intBinary{opUShr16, opUShr32, opUShr64, opSShr16, opSShr32, opSShr64}
	loopsNeg = intBinary{w16: opNeg16, w32: opNeg32, w64: opNeg64}
	loopsNot = intBinary{w16: opNot16, w32: opNot32, w64: opNot64}
	loopsAnd = any3(opAnd)
	loopsOr  = any3(opOr)
	loopsXor = any3(opXor)
)

// mulHi returns the high half of a product.
func mulHi(t typ) func(x, y uint64) uint64 {
	return func(x, y uint64) uint64 {
		n := t.bits()
		if t.signed() {
			a, b := signedValue(t, x), signedValue(t, y)
			if n < 64 {
				return trunc(t, uint64(a*b>>n))
			}
			hi, _ := bits.Mul64(x, y)
			if a < 0 {
				hi -= y
			}
			if b < 0 {
				hi -= x
			}
			return hi
		}
		hi, lo := bits.Mul64(x, y)
		if n == 64 {
			return hi
		}
		return trunc(t, lo>>n)
	}
}

// divide and remainder yield what the hardware does for a zero divisor: all ones, and the dividend.
func divide(t typ) func(x, y uint64) uint64 {
	return func(x, y uint64) uint64 {
		if y == 0 {
			return trunc(t, ^uint64(0))
		}
		if t.signed() {
			b := signedValue(t, y)
			if b == -1 {
				return trunc(t, -x)
			}
			return trunc(t, uint64(signedValue(t, x)/b))
		}
		return x / y
	}
}

func remainder(t typ) func(x, y uint64) uint64 {
	return func(x, y uint64) uint64 {
		if y == 0 {
			return x
		}
		if t.signed() {
			b := signedValue(t, y)
			if b == -1 {
				return 0
			}
			return trunc(t, uint64(signedValue(t, x)%b))
		}
		return x % y
	}
}

func absInt(t typ) func(x uint64) uint64 {
	return func(x uint64) uint64 {
		if signedValue(t, x) < 0 {
			return trunc(t, -x)
		}
		return x
	}
}

func sad(t typ) func(x, y, z uint64) uint64 {
	return func(x, y, z uint64) uint64 {
		less := x < y
		if t.signed() {
			less = signedValue(t, x) < signedValue(t, y)
		}
		if less {
			x, y = y, x
		}
		return trunc(t, x-y+z)
	}
}

// mul24 multiplies the low 24 bits; hi keeps bits 16 to 47 of the product.
func mul24(t typ, hi bool) func(x, y uint64) uint64 {
	return func(x, y uint64) uint64 {
		p := x & 0xffffff * (y & 0xffffff)
		if t.signed() {
			p = uint64(int64(x<<40) >> 40 * (int64(y<<40) >> 40))
		}
		if hi {
			p >>= 16
		}
		return trunc(t, p)
	}
}

// bfind returns the position of the highest bit that differs from the sign, all ones if none.
func bfind(t typ, shift bool) func(x uint64) uint64 {
	return func(x uint64) uint64 {
		if t.signed() && signedValue(t, x) < 0 {
			x = trunc(t, ^x)
		}
		if x == 0 {
			return 0xffffffff
		}
		n := uint64(bits.Len64(x) - 1)
		if shift {
			n = uint64(t.bits()-1) - n
		}
		return n
	}
}

func bfe(t typ) func(x, y, z uint64) uint64 {
	return func(x, pos, length uint64) uint64 {
		pos, length = pos&255, length&255
		msb := uint64(t.bits() - 1)
		var sign uint64
		if t.signed() && length > 0 {
			sign = x >> min(pos+length-1, msb) & 1
		}
		var r uint64
		for i := uint64(0); i <= msb; i++ {
			b := sign
			if i < length && pos+i <= msb {
				b = x >> (pos + i) & 1
			}
			r |= b << i
		}
		return r
	}
}

// bfi inserts the low bits of x in y at a position.
func bfi(t typ, x, y, pos, length uint64) uint64 {
	pos, length = pos&255, length&255
	n := uint64(t.bits())
	if pos >= n {
		return y
	}
	mask := uint64(1)<<min(length, 63) - 1
	if length >= 64 {
		mask = ^uint64(0)
	}
	mask = trunc(t, mask<<pos)
	return y&^mask | x<<pos&mask
}

// prmt picks bytes of y:x; the modes are those of PTX.
func prmt(mode string) func(x, y, sel uint64) uint64 {
	return func(x, y, sel uint64) uint64 {
		all := y<<32 | x
		at := func(i uint64) uint64 { return all >> (8 * (i & 7)) & 255 }
		var r uint64
		for i := range uint64(4) {
			s := sel & 3
			var b uint64
			switch mode {
			case "":
				k := sel >> (4 * i) & 15
				if b = at(k & 7); k&8 != 0 {
					b = 255 * (b >> 7)
				}
			case "f4e":
				b = at(s + i)
			case "b4e":
				b = at(s - i)
			case "rc8":
				b = at(s)
			case "ecl":
				b = at(max(i, s))
			case "ecr":
				b = at(min(i, s))
			case "rc16":
				b = at(s&1*2 + i&1)
			}
			r |= b << (8 * i)
		}
		return r
	}
}

func shf(left, wrap bool) func(x, y, n uint64) uint64 {
	return func(x, y, n uint64) uint64 {
		if n = n & 0xffffffff; wrap {
			n &= 31
		} else {
			n = min(n, 32)
		}
		v := y<<32 | x
		if left {
			return v << n >> 32
		}
		return uint64(uint32(v >> n))
	}
}

// fns finds the n-th set bit at or after a base position.
func fns(mask, base, offset uint64) uint64 {
	pos, n, step := int(base), int(int32(offset)), 1
	switch {
	case n == 0:
		if base < 32 && mask>>base&1 != 0 {
			return base
		}
		return 0xffffffff
	case n < 0:
		n, step = -n, -1
	}
	for ; pos >= 0 && pos < 32; pos += step {
		if mask>>pos&1 != 0 {
			if n--; n == 0 {
				return uint64(pos)
			}
		}
	}
	return 0xffffffff
}

// dp4a and dp2a: byte dot products with accumulation.
func dp4a(sa, sb bool) func(x, y, z uint64) uint64 {
	return func(x, y, z uint64) uint64 {
		for i := range 4 {
			z += uint64(part(x>>(8*i), 8, sa) * part(y>>(8*i), 8, sb))
		}
		return uint64(uint32(z))
	}
}

func dp2a(sa, sb, hi bool) func(x, y, z uint64) uint64 {
	return func(x, y, z uint64) uint64 {
		if hi {
			y >>= 16
		}
		for i := range 2 {
			z += uint64(part(x>>(16*i), 16, sa) * part(y>>(8*i), 8, sb))
		}
		return uint64(uint32(z))
	}
}

func part(v uint64, n uint, signed bool) int64 {
	v <<= 64 - n
	if signed {
		return int64(v) >> (64 - n)
	}
	return int64(v >> (64 - n))
}

// carryOp is add, sub or mad with the carry flags; a, b and c are its operands.
type carryOp struct {
	t         typ
	sub       bool
	in, out   bool
	mad, hi   bool
	highOfMul func(x, y uint64) uint64
}

func (o carryOp) exec(w *warp, in *inst, m uint32) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	c := b
	if in.uc {
		c = &w.r[in.c]
	}
	for n := m; n != 0; n &= n - 1 {
		i := bits.TrailingZeros32(n) & 31
		x, y := a[i], b[i]
		if o.mad {
			if o.hi {
				x = o.highOfMul(x, y)
			} else {
				x = trunc(o.t, x*y)
			}
			y = c[i]
		}
		var carry uint64
		if o.in {
			carry = uint64(w.cc >> i & 1)
		}
		var r, out uint64
		if o.t.bits() == 32 {
			if o.sub {
				r = x - y - carry
			} else {
				r = x + y + carry
			}
			out = r >> 32 & 1
			r = uint64(uint32(r))
		} else if o.sub {
			r, out = bits.Sub64(x, y, carry)
		} else {
			r, out = bits.Add64(x, y, carry)
		}
		d[i] = r
		if o.out {
			w.cc = w.cc&^(1<<i) | uint32(out)<<i
		}
	}
}
