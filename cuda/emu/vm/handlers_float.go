package vm

import (
	"math"
	"math/bits"
	"slices"
)

// floatMods are the modifiers of a floating-point instruction.
type floatMods struct {
	t      typ
	mode   rounding
	given  bool // a rounding mode was written
	approx bool // .approx or .full
	ftz    bool
	sat    bool
}

// floatMods consumes the modifiers and calls f if the statement's type is .f32 or .f64; otherwise
// it consumes nothing and returns false.
func (c *compiler) floatMods(f func(fl floatMods)) bool {
	n := len(c.mods)
	if n == 0 || c.mods[n-1] != "f32" && c.mods[n-1] != "f64" {
		return false
	}
	var fl floatMods
	if fl.mode, fl.given = c.rounding(); !fl.given {
		fl.approx = c.takeOf("approx", "full") != ""
	}
	fl.ftz, fl.sat = c.take("ftz"), c.take("sat")
	fl.t = c.typ(f32, f64)
	if fl.t == f64 && (fl.ftz || fl.sat) {
		c.fail(".ftz and .sat are for .f32")
	}
	f(fl)
	return true
}

// finish1 to finish3 add .ftz and .sat to a function on single precision.
func (fl floatMods) finish1(f func(x uint64) uint64) func(x uint64) uint64 {
	if !fl.ftz && !fl.sat {
		return f
	}
	return func(x uint64) uint64 {
		if fl.ftz {
			x = flushF32(x)
		}
		return fl.result(f(x))
	}
}

func (fl floatMods) finish2(f func(x, y uint64) uint64) func(x, y uint64) uint64 {
	if !fl.ftz && !fl.sat {
		return f
	}
	return func(x, y uint64) uint64 {
		if fl.ftz {
			x, y = flushF32(x), flushF32(y)
		}
		return fl.result(f(x, y))
	}
}

func (fl floatMods) finish3(f func(x, y, z uint64) uint64) func(x, y, z uint64) uint64 {
	if !fl.ftz && !fl.sat {
		return f
	}
	return func(x, y, z uint64) uint64 {
		if fl.ftz {
			x, y, z = flushF32(x), flushF32(y), flushF32(z)
		}
		return fl.result(f(x, y, z))
	}
}

func (fl floatMods) result(r uint64) uint64 {
	if fl.ftz {
		r = flushF32(r)
	}
	if fl.sat {
		r = satF32(r)
	}
	return r
}

// plain reports that an operation is the one with a loop of its own.
func (fl floatMods) plain() bool { return fl.mode == roundNear && !fl.ftz && !fl.sat }

type binaryImpl struct {
	loop execFn
	near func(x, y uint64) uint64
	dir  func(x, y uint64, mode rounding) uint64 // nil: takes no rounding mode
}

var floatBinaries = map[typ]map[string]binaryImpl{
	f32: {
		"add": {opAddF32, nil, addDirF32},
		"sub": {opSubF32, nil, func(x, y uint64, mode rounding) uint64 { return addDirF32(x, negF32(y), mode) }},
		"mul": {opMulF32, nil, mulDirF32},
		"div": {opDivF32, nil, divDirF32},
		"min": {opMinF32, minF32, nil},
		"max": {opMaxF32, maxF32, nil},
	},
	f64: {
		"add": {opAddF64, nil, addDirF64},
		"sub": {opSubF64, nil, subDirF64},
		"mul": {opMulF64, nil, mulDirF64},
		"div": {nil, divF64, divDirF64},
		"min": {nil, minF64, nil},
		"max": {nil, maxF64, nil},
	},
}

func (c *compiler) floatBinary(fl floatMods, op string) {
	im := floatBinaries[fl.t][op]
	switch {
	case fl.given && im.dir == nil:
		c.fail("takes no rounding mode")
	case op == "div" && !fl.given && !fl.approx, op != "div" && fl.approx, fl.approx && fl.t == f64:
		c.fail("needs a rounding mode, or .approx or .full for division of .f32")
	case fl.sat && (op == "div" || op == "min" || op == "max"):
		c.fail("takes no .sat")
	}
	d, a, b := c.dst(c.s.ops[0], fl.t, false), c.src(c.s.ops[1], fl.t, false), c.src(c.s.ops[2], fl.t, false)
	if fl.plain() && im.loop != nil {
		c.emit2(im.loop, d, a, b)
		return
	}
	f := im.near
	if f == nil || fl.mode != roundNear {
		mode := fl.mode
		f = func(x, y uint64) uint64 { return im.dir(x, y, mode) }
	}
	c.emit2(map2(fl.finish2(f)), d, a, b)
}

func (c *compiler) fma(fl floatMods) {
	if fl.approx || !fl.given {
		c.fail("needs a rounding mode")
	}
	c.operands(4)
	ops := c.s.ops
	d, a, b, x := c.dst(ops[0], fl.t, false), c.src(ops[1], fl.t, false), c.src(ops[2], fl.t, false), c.src(ops[3], fl.t, false)
	loop, dir := opFmaF32, fmaDirF32
	if fl.t == f64 {
		loop, dir = opFmaF64, fmaDirF64
	}
	if fl.plain() {
		c.emit3(loop, d, a, b, x)
		return
	}
	f := func(x, y, z uint64) uint64 { return dir(x, y, z, fl.mode) }
	if fl.mode == roundNear {
		f = fmaF32
	}
	c.emit3(map3(fl.finish3(f)), d, a, b, x)
}

func fmaHandler(c *compiler) {
	if !c.floatMods(func(fl floatMods) { c.fma(fl) }) {
		c.fail("only .f32 and .f64 are supported")
	}
}

// floatUnary compiles neg and abs.
func (c *compiler) floatUnary(fl floatMods, op string) {
	if fl.given || fl.approx || fl.sat {
		c.fail("takes no rounding mode and no .sat")
	}
	d, a := c.dst(c.s.ops[0], fl.t, false), c.src(c.s.ops[1], fl.t, false)
	f, loop := negF32, opNegF32
	switch {
	case fl.t == f32 && op == "abs":
		f, loop = absF32, opAbsF32
	case fl.t == f64 && op == "neg":
		loop = map1(func(x uint64) uint64 { return x ^ 1<<63 })
	case fl.t == f64:
		loop = map1(func(x uint64) uint64 { return x &^ (1 << 63) })
	}
	if fl.ftz {
		loop = map1(fl.finish1(f))
	}
	c.emit1(loop, d, a)
}

// roots handles rcp, sqrt and rsqrt.
func roots(op string) func(c *compiler) {
	return func(c *compiler) {
		c.operands(2)
		if op != "sqrt" && slices.Equal(c.mods, []string{"approx", "ftz", "f64"}) {
			c.mods = nil
			f := rcp
			if op == "rsqrt" {
				f = rsqrt
			}
			c.emit1(map1(rcpFtz64(f)), c.dst(c.s.ops[0], f64, false), c.src(c.s.ops[1], f64, false))
			return
		}
		if !c.floatMods(func(fl floatMods) { c.root(fl, op) }) {
			c.fail("only .f32 and .f64 are supported")
		}
	}
}

func (c *compiler) root(fl floatMods, op string) {
	if fl.given == fl.approx || fl.sat || op == "rsqrt" && fl.given {
		c.fail("needs .approx or, except for rsqrt, a rounding mode")
	}
	d, a := c.dst(c.s.ops[0], fl.t, false), c.src(c.s.ops[1], fl.t, false)
	if op == "sqrt" && fl.plain() && fl.t == f32 {
		c.emit1(opSqrtF32, d, a)
		return
	}
	mode := fl.mode
	var f func(x uint64) uint64
	if fl.t == f32 {
		f = map[string]func(x uint64) uint64{
			"rcp":   func(x uint64) uint64 { return divDirF32(uint64(math.Float32bits(1)), x, mode) },
			"sqrt":  func(x uint64) uint64 { return sqrtDirF32(x, mode) },
			"rsqrt": approxF32(rsqrt),
		}[op]
	} else {
		if op == "sqrt" && fl.approx {
			c.fail("sqrt.approx is for .f32")
		}
		f = map[string]func(x uint64) uint64{
			"rcp":   func(x uint64) uint64 { return divDirF64(math.Float64bits(1), x, mode) },
			"sqrt":  func(x uint64) uint64 { return sqrtDirF64(x, mode) },
			"rsqrt": unaryF64(rsqrt),
		}[op]
	}
	c.emit1(map1(fl.finish1(f)), d, a)
}

// rcpFtz64 is rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: only the high word of operand and result count.
func rcpFtz64(f func(float64) float64) func(x uint64) uint64 {
	flush := func(x uint64) uint64 {
		if x&0x7ff0000000000000 == 0 {
			return x & (1 << 63)
		}
		return x
	}
	g := unaryF64(f)
	return func(x uint64) uint64 { return flush(g(flush(x&^0xffffffff))) &^ 0xffffffff }
}

// approximate handles instructions that only exist as .approx.f32.
func approximate(f func(float64) float64) func(c *compiler) {
	return func(c *compiler) {
		c.operands(2)
		if !c.floatMods(func(fl floatMods) {
			if !fl.approx || fl.sat || fl.t != f32 {
				c.fail("only .approx.f32 exists")
			}
			c.emit1(map1(fl.finish1(approxF32(f))), c.dst(c.s.ops[0], f32, false), c.src(c.s.ops[1], f32, false))
		}) {
			c.fail("only .approx.f32 exists")
		}
	}
}

func copysignHandler(c *compiler) {
	c.operands(3)
	t := c.typ(f32, f64)
	f := copysignF32
	if t == f64 {
		f = copysignF64
	}
	c.emit2(map2(f), c.dst(c.s.ops[0], t, false), c.src(c.s.ops[1], t, false), c.src(c.s.ops[2], t, false))
}

// testp tests the class of a number.
func testp(c *compiler) {
	op := c.takeOf("finite", "infinite", "number", "notanumber", "normal", "subnormal")
	if op == "" {
		c.fail("unknown test")
	}
	t := c.typ(f32, f64)
	c.operands(2)
	p, a := c.predDst(c.s.ops[0]), c.src(c.s.ops[1], t, false)
	c.emit(inst{a: a, ua: true, exec: func(w *warp, in *inst, m uint32) {
		var r uint32
		for n := m; n != 0; n &= n - 1 {
			i := bits.TrailingZeros32(n) & 31
			if classify(t, w.r[in.a][i], op) {
				r |= 1 << i
			}
		}
		w.p[p] = w.p[p]&^m | r
	}})
}

func classify(t typ, x uint64, op string) bool {
	mant, exp, top := x&(1<<23-1), x>>23&255, uint64(255)
	if t == f64 {
		mant, exp, top = x&(1<<52-1), x>>52&2047, 2047
	}
	switch op {
	case "finite":
		return exp != top
	case "infinite":
		return exp == top && mant == 0
	case "number":
		return exp != top || mant == 0
	case "notanumber":
		return exp == top && mant != 0
	case "normal":
		return exp != top && exp != 0
	}
	return exp == 0 && mant != 0
}
