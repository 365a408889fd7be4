package vm

import "math/bits"

var (
	types163264 = []typ{u16, u32, u64, s16, s32, s64}
	bits163264  = []typ{b16, b32, b64}
)

// arithmetic handles add and sub for all types.
func arithmetic(sub bool) func(c *compiler) {
	return func(c *compiler) {
		if c.take("cc") {
			c.carry(sub, false, true)
			return
		}
		c.operands(3)
		if c.floatMods(func(fl floatMods) {
			c.floatBinary(fl, map[bool]string{false: "add", true: "sub"}[sub])
		}) {
			return
		}
		sat := c.take("sat")
		t := c.typ(types163264...)
		if sat && t != s32 {
			c.fail(".sat is for .s32")
		}
		d, a, b := c.dst(c.s.ops[0], t, false), c.src(c.s.ops[1], t, false), c.src(c.s.ops[2], t, false)
		switch {
		case sat:
			c.emit2(map2(func(x, y uint64) uint64 {
				v := int64(int32(x)) + int64(int32(y))
				if sub {
					v = int64(int32(x)) - int64(int32(y))
				}
				return uint64(uint32(min(max(v, -1<<31), 1<<31-1)))
			}), d, a, b)
		case sub:
			c.emit2(t.choose(loopsSub), d, a, b)
		default:
			c.emit2(t.choose(loopsAdd), d, a, b)
		}
	}
}

// carry compiles add.cc, addc, sub.cc and subc.
func (c *compiler) carry(sub, in, out bool) {
	t := c.typ(u32, s32, u64, s64)
	c.operands(3)
	c.emit2(carryOp{t: t, sub: sub, in: in, out: out}.exec,
		c.dst(c.s.ops[0], t, false), c.src(c.s.ops[1], t, false), c.src(c.s.ops[2], t, false))
}

func carryIn(sub bool) func(c *compiler) {
	return func(c *compiler) { c.carry(sub, true, c.take("cc")) }
}

// widened returns the type of twice the width.
func widened(t typ) typ {
	return map[typ]typ{u16: u32, s16: s32, u32: u64, s32: s64}[t]
}

func mul(c *compiler) {
	c.operands(3)
	if c.floatMods(func(fl floatMods) { c.floatBinary(fl, "mul") }) {
		return
	}
	half := c.takeOf("lo", "hi", "wide")
	t := c.typ(types163264...)
	if half == "" || half == "wide" && t.bits() == 64 {
		c.fail("needs .lo, .hi or .wide that fits the type")
	}
	dt := t
	if half == "wide" {
		dt = widened(t)
	}
	d, a, b := c.dst(c.s.ops[0], dt, false), c.src(c.s.ops[1], t, false), c.src(c.s.ops[2], t, false)
	switch {
	case half == "lo":
		c.emit2(t.choose(loopsMul), d, a, b)
	case half == "hi":
		f := map[typ]execFn{u32: opUMulHi32, s32: opSMulHi32}[t]
		if f == nil {
			f = map2(mulHi(t))
		}
		c.emit2(f, d, a, b)
	default:
		c.emit2(map[typ]execFn{u16: opUMulWide16, s16: opSMulWide16, u32: opUMulWide32, s32: opSMulWide32}[t], d, a, b)
	}
}

func mad(c *compiler) {
	c.operands(4)
	if c.floatMods(func(fl floatMods) { c.fma(fl) }) {
		return
	}
	half := c.takeOf("lo", "hi", "wide")
	if half != "" && half != "wide" && c.take("cc") {
		c.madCarry(half == "hi", false, true)
		return
	}
	sat := half == "hi" && c.take("sat")
	t := c.typ(types163264...)
	if half == "" || half == "wide" && t.bits() == 64 || sat && t != s32 {
		c.fail("needs .lo, .hi or .wide that fits the type")
	}
	dt := t
	if half == "wide" {
		dt = widened(t)
	}
	ops := c.s.ops
	d, a, b, x := c.dst(ops[0], dt, false), c.src(ops[1], t, false), c.src(ops[2], t, false), c.src(ops[3], dt, false)
	switch {
	case half == "lo":
		c.emit3(t.choose(loopsMad), d, a, b, x)
	case half == "hi":
		hi := mulHi(t)
		c.emit3(map3(func(x, y, z uint64) uint64 {
			if sat {
				v := int64(int32(hi(x, y))) + int64(int32(z))
				return uint64(uint32(min(max(v, -1<<31), 1<<31-1)))
			}
			return trunc(t, hi(x, y)+z)
		}), d, a, b, x)
	default:
		f := map[typ]execFn{u32: opUMadWide32, s32: opSMadWide32}[t]
		if f == nil {
			f = map3(func(x, y, z uint64) uint64 {
				if t == s16 {
					return uint64(uint32(int32(int16(x))*int32(int16(y)) + int32(z)))
				}
				return uint64(uint32(x*y + z))
			})
		}
		c.emit3(f, d, a, b, x)
	}
}

func (c *compiler) madCarry(hi, in, out bool) {
	t := c.typ(u32, s32, u64, s64)
	c.operands(4)
	ops := c.s.ops
	c.emit3(carryOp{t: t, in: in, out: out, mad: true, hi: hi, highOfMul: mulHi(t)}.exec,
		c.dst(ops[0], t, false), c.src(ops[1], t, false), c.src(ops[2], t, false), c.src(ops[3], t, false))
}

func madc(c *compiler) {
	half := c.takeOf("lo", "hi")
	if half == "" {
		c.fail("needs .lo or .hi")
	}
	c.madCarry(half == "hi", true, c.take("cc"))
}

func mul24Handler(mad bool) func(c *compiler) {
	return func(c *compiler) {
		half := c.takeOf("lo", "hi")
		t := c.typ(u32, s32)
		if half == "" {
			c.fail("needs .lo or .hi")
		}
		f, ops := mul24(t, half == "hi"), c.s.ops
		if !mad {
			c.operands(3)
			c.emit2(map2(f), c.dst(ops[0], t, false), c.src(ops[1], t, false), c.src(ops[2], t, false))
			return
		}
		c.operands(4)
		c.emit3(map3(func(x, y, z uint64) uint64 { return trunc(t, f(x, y)+z) }),
			c.dst(ops[0], t, false), c.src(ops[1], t, false), c.src(ops[2], t, false), c.src(ops[3], t, false))
	}
}

func division(op string) func(c *compiler) {
	return func(c *compiler) {
		c.operands(3)
		if op == "div" && c.floatMods(func(fl floatMods) { c.floatBinary(fl, op) }) {
			return
		}
		t := c.typ(types163264...)
		f := divide(t)
		if op == "rem" {
			f = remainder(t)
		}
		c.emit2(map2(f), c.dst(c.s.ops[0], t, false), c.src(c.s.ops[1], t, false), c.src(c.s.ops[2], t, false))
	}
}

func minMax(op string) func(c *compiler) {
	return func(c *compiler) {
		c.operands(3)
		if c.floatMods(func(fl floatMods) { c.floatBinary(fl, op) }) {
			return
		}
		t := c.typ(types163264...)
		loops := loopsMin
		if op == "max" {
			loops = loopsMax
		}
		c.emit2(t.choose(loops), c.dst(c.s.ops[0], t, false), c.src(c.s.ops[1], t, false), c.src(c.s.ops[2], t, false))
	}
}

func negAbs(op string) func(c *compiler) {
	return func(c *compiler) {
		c.operands(2)
		if c.floatMods(func(fl floatMods) { c.floatUnary(fl, op) }) {
			return
		}
		t := c.typ(s16, s32, s64)
		f := t.choose(loopsNeg)
		if op == "abs" {
			f = map1(absInt(t))
		}
		c.emit1(f, c.dst(c.s.ops[0], t, false), c.src(c.s.ops[1], t, false))
	}
}

// logic handles and, or and xor of bits and of predicates.
func logic(loops intBinary, pred func(x, y uint32) uint32) func(c *compiler) {
	return func(c *compiler) {
		c.operands(3)
		t := c.typ(b16, b32, b64, tPred)
		if t == tPred {
			c.predLogic(pred)
			return
		}
		c.emit2(t.choose(loops), c.dst(c.s.ops[0], t, false), c.src(c.s.ops[1], t, false), c.src(c.s.ops[2], t, false))
	}
}

func (c *compiler) predLogic(f func(x, y uint32) uint32) {
	p := c.predDst(c.s.ops[0])
	a, na := c.predOp(c.s.ops[1])
	b, nb := c.predOp(c.s.ops[2])
	fa, fb := flip(na), flip(nb)
	c.emit(inst{p: p, exec: func(w *warp, in *inst, m uint32) {
		w.p[p] = w.p[p]&^m | f(w.p[a]^fa, w.p[b]^fb)&m
	}})
}

func flip(neg bool) uint32 {
	if neg {
		return fullMask
	}
	return 0
}

func not(c *compiler) {
	c.operands(2)
	t := c.typ(b16, b32, b64, tPred)
	if t == tPred {
		p := c.predDst(c.s.ops[0])
		a, neg := c.predOp(c.s.ops[1])
		fa := flip(!neg)
		c.emit(inst{p: p, exec: func(w *warp, in *inst, m uint32) { w.p[p] = w.p[p]&^m | (w.p[a]^fa)&m }})
		return
	}
	c.emit1(t.choose(loopsNot), c.dst(c.s.ops[0], t, false), c.src(c.s.ops[1], t, false))
}

func shift(left bool) func(c *compiler) {
	return func(c *compiler) {
		c.operands(3)
		allowed, loops := bits163264, loopsShl
		if !left {
			allowed, loops = append(allowed[:3:3], types163264...), loopsShr
		}
		t := c.typ(allowed...)
		c.emit2(t.choose(loops), c.dst(c.s.ops[0], t, false), c.src(c.s.ops[1], t, false), c.src(c.s.ops[2], u32, false))
	}
}

// unaryInt handles operations with one source and a result of type dt (the source's if none).
func unaryInt(dt typ, f func(t typ) func(x uint64) uint64, allowed ...typ) func(c *compiler) {
	return func(c *compiler) {
		c.operands(2)
		t := c.typ(allowed...)
		d := dt
		if d == tNone {
			d = t
		}
		c.emit1(map1(f(t)), c.dst(c.s.ops[0], d, false), c.src(c.s.ops[1], t, false))
	}
}

func popcOf(typ) func(x uint64) uint64 {
	return func(x uint64) uint64 { return uint64(bits.OnesCount64(x)) }
}

func clzOf(t typ) func(x uint64) uint64 { return func(x uint64) uint64 { return clz(x, t.bits()) } }

func brevOf(t typ) func(x uint64) uint64 {
	return func(x uint64) uint64 { return bits.Reverse64(x) >> (64 - t.bits()) }
}

func cnotOf(typ) func(x uint64) uint64 {
	return func(x uint64) uint64 { return choose(x == 0, 1, 0) }
}

func bfindHandler(c *compiler) {
	shift := c.take("shiftamt")
	unaryInt(u32, func(t typ) func(uint64) uint64 { return bfind(t, shift) }, u32, u64, s32, s64)(c)
}

// ternary handles operations with three sources of types t1, t2, t3 (the named type if none).
func ternary(f func(t typ) func(x, y, z uint64) uint64, t2, t3 typ, allowed ...typ) func(c *compiler) {
	return func(c *compiler) {
		c.operands(4)
		t := c.typ(allowed...)
		or := func(o typ) typ {
			if o == tNone {
				return t
			}
			return o
		}
		ops := c.s.ops
		c.emit3(map3(f(t)), c.dst(ops[0], t, false), c.src(ops[1], t, false), c.src(ops[2], or(t2), false), c.src(ops[3], or(t3), false))
	}
}

func bfiHandler(c *compiler) {
	c.operands(5)
	t := c.typ(b32, b64)
	ops := c.s.ops
	c.emit(inst{d: c.dst(ops[0], t, false), def: true, a: c.src(ops[1], t, false), ua: true, b: c.src(ops[2], t, false), ub: true,
		v: []int32{c.src(ops[3], u32, false), c.src(ops[4], u32, false)},
		exec: func(w *warp, in *inst, m uint32) {
			d, a, b, pos, length := &w.r[in.d], &w.r[in.a], &w.r[in.b], &w.r[in.v[0]], &w.r[in.v[1]]
			for ; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m) & 31
				d[i] = bfi(t, a[i], b[i], pos[i], length[i])
			}
		}})
}

func prmtHandler(c *compiler) {
	t := c.typ(b32)
	mode := c.takeOf("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
	c.operands(4)
	ops := c.s.ops
	c.emit3(map3(prmt(mode)), c.dst(ops[0], t, false), c.src(ops[1], t, false), c.src(ops[2], t, false), c.src(ops[3], t, false))
}

func shfHandler(c *compiler) {
	dir, mode := c.takeOf("l", "r"), c.takeOf("wrap", "clamp")
	if dir == "" || mode == "" {
		c.fail("needs a direction and a mode")
	}
	ternary(func(typ) func(x, y, z uint64) uint64 { return shf(dir == "l", mode == "wrap") }, tNone, u32, b32)(c)
}

func lop3Handler(c *compiler) {
	t := c.typ(b32)
	c.operands(5)
	ops := c.s.ops
	if ops[4].kind != opImm || ops[4].float || ops[4].imm > 255 {
		c.fail("the table must be a constant below 256")
	}
	c.emit(inst{exec: opLop3, d: c.dst(ops[0], t, false), def: true, a: c.src(ops[1], t, false), ua: true,
		b: c.src(ops[2], t, false), ub: true, c: c.src(ops[3], t, false), uc: true, x: ops[4].imm})
}

func dotProduct(four bool) func(c *compiler) {
	return func(c *compiler) {
		hi := false
		if !four {
			half := c.takeOf("lo", "hi")
			if half == "" {
				c.fail("needs .lo or .hi")
			}
			hi = half == "hi"
		}
		ta, tb := c.typ(u32, s32), c.typ(u32, s32)
		c.operands(4)
		f := dp4a(ta == s32, tb == s32)
		if !four {
			f = dp2a(ta == s32, tb == s32, hi)
		}
		ops := c.s.ops
		c.emit3(map3(f), c.dst(ops[0], u32, false), c.src(ops[1], u32, false), c.src(ops[2], u32, false), c.src(ops[3], u32, false))
	}
}
