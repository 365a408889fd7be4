package vm

import "math/bits"

// compareFn returns the lanes of m for which a comparison holds.
type compareFn func(w *warp, in *inst, m uint32) uint32

var compareLoops = map[string][6]compareFn{ // eq, ne, lt, le, gt, ge
	"u16": {setU16Eq, setU16Ne, setU16Lt, setU16Le, setU16Gt, setU16Ge},
	"u32": {setU32Eq, setU32Ne, setU32Lt, setU32Le, setU32Gt, setU32Ge},
	"u64": {setU64Eq, setU64Ne, setU64Lt, setU64Le, setU64Gt, setU64Ge},
	"s16": {setU16Eq, setU16Ne, setS16Lt, setS16Le, setS16Gt, setS16Ge},
	"s32": {setU32Eq, setU32Ne, setS32Lt, setS32Le, setS32Gt, setS32Ge},
	"s64": {setU64Eq, setU64Ne, setS64Lt, setS64Le, setS64Gt, setS64Ge},
	"f32": {setF32Eq, nil, setF32Lt, setF32Le, setF32Gt, setF32Ge},
	"f64": {setF64Eq, nil, setF64Lt, setF64Le, setF64Gt, setF64Ge},
}

var compareIndex = map[string]int{"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5,
	"lo": 2, "ls": 3, "hi": 4, "hs": 5}

// unorderedOf maps an unordered comparison to the ordered one it is the negation of.
var unorderedOf = map[string]int{"neu": 0, "geu": 2, "gtu": 3, "leu": 4, "ltu": 5}

func nans(t typ, w *warp, in *inst, m uint32) uint32 {
	var r uint32
	for n := m; n != 0; n &= n - 1 {
		i := bits.TrailingZeros32(n) & 31
		if classify(t, w.r[in.a][i], "notanumber") || classify(t, w.r[in.b][i], "notanumber") {
			r |= 1 << i
		}
	}
	return r
}

// comparison consumes a comparison operator and returns a constructor for the type that follows.
func (c *compiler) comparison() func(t typ, ftz bool) compareFn {
	if len(c.mods) == 0 {
		c.fail("a comparison is missing")
	}
	op := c.mods[0]
	c.mods = c.mods[1:]
	return func(t typ, ftz bool) compareFn {
		name := t.String()
		if t.untyped() {
			name = "u" + name[1:]
			if op != "eq" && op != "ne" {
				c.fail(".%s compares no bits", op)
			}
		}
		loops := compareLoops[name]
		var f compareFn
		i, ordered := compareIndex[op]
		j, unordered := unorderedOf[op]
		switch {
		case (op == "lo" || op == "ls" || op == "hi" || op == "hs") && !t.unsigned():
		case t.float() && op == "ne":
			f = func(w *warp, in *inst, m uint32) uint32 { return m &^ (loops[0](w, in, m) | nans(t, w, in, m)) }
		case ordered:
			f = loops[i]
		case !t.float():
		case unordered:
			f = func(w *warp, in *inst, m uint32) uint32 { return m &^ loops[j](w, in, m) }
		case op == "equ":
			f = func(w *warp, in *inst, m uint32) uint32 { return loops[0](w, in, m) | nans(t, w, in, m) }
		case op == "num":
			f = func(w *warp, in *inst, m uint32) uint32 { return m &^ nans(t, w, in, m) }
		case op == "nan":
			f = func(w *warp, in *inst, m uint32) uint32 { return nans(t, w, in, m) }
		}
		if f == nil {
			c.fail("comparison .%s of type .%s does not exist", op, t)
		}
		if ftz {
			return flushCompare(f)
		}
		return f
	}
}

// flushCompare compares flushed copies of the operands, in columns of its own.
func flushCompare(f compareFn) compareFn {
	return func(w *warp, in *inst, m uint32) uint32 {
		tmp := warp{r: []col{w.r[in.a], w.r[in.b]}}
		for i := range 32 {
			tmp.r[0][i], tmp.r[1][i] = flushF32(tmp.r[0][i]), flushF32(tmp.r[1][i])
		}
		return f(&tmp, &inst{a: 0, b: 1}, m)
	}
}

var boolOps = map[string]func(x, y uint32) uint32{
	"and": func(x, y uint32) uint32 { return x & y },
	"or":  func(x, y uint32) uint32 { return x | y },
	"xor": func(x, y uint32) uint32 { return x ^ y },
}

var compareTypes = []typ{b16, b32, b64, u16, u32, u64, s16, s32, s64, f32, f64}

// compare consumes the rest of setp or set after the opcode, up to the source type.
func (c *compiler) compare(types func() (d, s typ)) (f compareFn, boolOp func(x, y uint32) uint32, d, s typ) {
	cmp := c.comparison()
	boolOp = boolOps[c.takeOf("and", "or", "xor")]
	ftz := c.take("ftz")
	d, s = types()
	if ftz && s != f32 {
		c.fail(".ftz is for .f32")
	}
	return cmp(s, ftz), boolOp, d, s
}

func setp(c *compiler) {
	f, boolOp, _, t := c.compare(func() (typ, typ) { return tNone, c.typ(compareTypes...) })
	n := 3
	if boolOp != nil {
		n = 4
	}
	c.operands(n)
	ops := c.s.ops
	dst := ops[:1]
	if ops[0].kind == opPair {
		dst = ops[0].list
	}
	p, second := c.predDst(dst[0]), int32(-1)
	if len(dst) > 1 {
		second = c.predDst(dst[1])
	}
	in := inst{a: c.src(ops[1], t, false), ua: true, b: c.src(ops[2], t, false), ub: true}
	if boolOp == nil && second < 0 {
		in.exec = func(w *warp, in *inst, m uint32) {
			r := f(w, in, m)
			w.p[p] = w.p[p]&^m | r
		}
		c.emit(in)
		return
	}
	q, neg := int32(0), false
	if boolOp == nil {
		boolOp = boolOps["and"] // with true
	} else {
		q, neg = c.predOp(ops[3])
	}
	fq := flip(neg)
	in.exec = func(w *warp, in *inst, m uint32) {
		r := f(w, in, m)
		third := w.p[q] ^ fq
		w.p[p] = w.p[p]&^m | boolOp(r, third)&m
		if second >= 0 {
			w.p[second] = w.p[second]&^m | boolOp(^r, third)&m
		}
	}
	c.emit(in)
}

// set writes all ones, or 1.0, where the comparison holds and zero elsewhere.
func set(c *compiler) {
	f, boolOp, dt, t := c.compare(func() (typ, typ) { d := c.typ(u32, s32, f32); return d, c.typ(compareTypes...) })
	n := 3
	if boolOp != nil {
		n = 4
	}
	c.operands(n)
	ops := c.s.ops
	q, neg := int32(0), false
	if boolOp != nil {
		q, neg = c.predOp(ops[3])
	}
	fq, yes := flip(neg), uint64(0xffffffff)
	if dt == f32 {
		yes = 0x3f800000
	}
	c.emit(inst{d: c.dst(ops[0], dt, false), def: true, a: c.src(ops[1], t, false), ua: true, b: c.src(ops[2], t, false), ub: true,
		exec: func(w *warp, in *inst, m uint32) {
			r := f(w, in, m)
			if boolOp != nil {
				r = boolOp(r, w.p[q]^fq)
			}
			for n := m; n != 0; n &= n - 1 {
				i := bits.TrailingZeros32(n) & 31
				w.r[in.d][i] = yes * uint64(r>>i&1)
			}
		}})
}

func selp(c *compiler) {
	t := c.typ(b16, b32, b64, u16, u32, u64, s16, s32, s64, f32, f64)
	c.operands(4)
	ops := c.s.ops
	q, neg := c.predOp(ops[3])
	fq := flip(neg)
	c.emit2(func(w *warp, in *inst, m uint32) {
		d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
		sel := w.p[q] ^ fq
		if m == fullMask {
			for i := range d {
				k := -uint64(sel >> i & 1)
				d[i] = a[i]&k | b[i]&^k
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			k := -uint64(sel >> i & 1)
			d[i] = a[i]&k | b[i]&^k
		}
	}, c.dst(ops[0], t, false), c.src(ops[1], t, false), c.src(ops[2], t, false))
}

// slct selects by the sign of its third source.
func slct(c *compiler) {
	ftz := c.take("ftz")
	t := c.typ(b16, b32, b64, u16, u32, u64, s16, s32, s64, f32, f64)
	st := c.typ(s32, f32)
	c.operands(4)
	ops := c.s.ops
	c.emit3(map3(func(x, y, z uint64) uint64 {
		if st == s32 {
			return choose(int32(z) >= 0, x, y)
		}
		if ftz {
			z = flushF32(z)
		}
		return choose(f32of(z) >= 0, x, y)
	}), c.dst(ops[0], t, false), c.src(ops[1], t, false), c.src(ops[2], t, false), c.src(ops[3], st, false))
}
