package vm

import (
	"math/bits"
	"slices"
	"strings"
)

var memTypes = []typ{b8, b16, b32, b64, u8, u16, u32, u64, s8, s16, s32, s64, f32, f64}

// memOrder consumes what comes before the state space of ld and st.
func (c *compiler) memOrder() (atomic bool) {
	switch c.takeOf("weak", "volatile", "relaxed", "acquire", "release", "mmio") {
	case "volatile":
		return true
	case "relaxed", "acquire", "release", "mmio":
		if c.scope() == "" {
			c.fail("a scope is missing")
		}
		return true
	}
	return false
}

// scope consumes a scope. Everything that orders does so for the whole system here.
func (c *compiler) scope() string { return c.takeOf("cta", "cluster", "gpu", "sys") }

func (c *compiler) space(names ...Space) Space {
	for _, s := range names {
		if c.take(s.String()) {
			return s
		}
	}
	return SpaceGeneric
}

// cacheHints consumes modifiers that only guide caches.
func (c *compiler) cacheHints() {
	for len(c.mods) > 0 {
		m := c.mods[0]
		if !slices.Contains([]string{"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"}, m) &&
			!strings.HasPrefix(m, "L1::") && !strings.HasPrefix(m, "L2::") {
			return
		}
		c.mods = c.mods[1:]
	}
}

// elements returns the operands of a vector access, or the one of a scalar access.
func (c *compiler) elements(o operand, vec int) []operand {
	if vec == 1 {
		if o.kind == opVector {
			if len(o.list) != 1 {
				c.fail("a vector operand needs .v2 or .v4")
			}
			return o.list
		}
		return []operand{o}
	}
	if o.kind != opVector || len(o.list) != vec {
		c.fail("expected %d elements in braces", vec)
	}
	return o.list
}

func memory(store bool) func(c *compiler) {
	return func(c *compiler) { c.loadStore(store) }
}

func (c *compiler) loadStore(isStore bool) {
	op := loadOp{atomic: c.memOrder(), vec: 1}
	op.space = c.space(SpaceGlobal, SpaceShared, SpaceLocal, SpaceConst, SpaceParam)
	c.takeOf("cta", "cluster", "func", "entry") // .shared::cta is split at the dots, sub-spaces of .param
	c.cacheHints()
	switch c.takeOf("v2", "v4") {
	case "v2":
		op.vec = 2
	case "v4":
		op.vec = 4
	}
	t := c.typ(memTypes...)
	if op.n = uint64(t.bytes()); op.n*op.vec > 16 {
		c.fail("access of more than 16 bytes")
	}
	c.operands(2)
	val, addr := c.s.ops[0], c.s.ops[1]
	if isStore {
		val, addr = addr, val
	}
	in := inst{vdef: !isStore, site: int32(c.prog.sites)}
	for _, e := range c.elements(val, int(op.vec)) {
		if isStore {
			in.v = append(in.v, c.src(e, t, true))
			continue
		}
		in.v = append(in.v, c.dst(e, t, true))
		op.signed, op.keep = t.signed(), c.keepMask(e, t)
	}
	if op.space == SpaceParam && c.frameAccess(addr, op, isStore, &in) {
		c.emit(in)
		return
	}
	if isStore && (op.space == SpaceParam || op.space == SpaceConst) {
		c.fail("cannot store there")
	}
	if op.space == SpaceParam && !c.f.entry {
		c.fail("parameter is not known in this function")
	}
	in.a, in.x = c.address(addr)
	in.ua = true
	space := op.space
	if space == SpaceConst { // constants live in global memory, where stores to them fault
		op.space = SpaceGlobal
	}
	c.prog.sites++
	in.exec = load(op)
	if isStore {
		in.exec = store(op)
	}
	c.emit(in)
}

// keepMask returns the mask of a load's destination, up to which signs are extended.
func (c *compiler) keepMask(o operand, t typ) uint64 {
	if r, ok := c.register(o.name); ok && o.name != "_" {
		t = r.typ
	}
	return trunc(t, ^uint64(0))
}

// frameAccess handles variables in the parameter area of the current call: formal parameters,
// results and .param variables of the body.
func (c *compiler) frameAccess(addr operand, op loadOp, isStore bool, in *inst) bool {
	if addr.kind != opAddress {
		return false
	}
	off, size, ok := c.frameVar(addr.name)
	if !ok {
		return false
	}
	if n := op.n * op.vec; addr.imm > size || n > size-addr.imm {
		c.fail("access beyond %s, which has %d bytes", addr.name, size)
	}
	in.x = off + addr.imm
	in.exec = loadFrame(op)
	if isStore {
		in.exec = storeFrame(op)
	}
	return true
}

// frameVar finds a variable of the parameter area: offset and size.
func (c *compiler) frameVar(name string) (off, size uint64, ok bool) {
	if v := c.lookupVar(name); v != nil && v.space == SpaceParam {
		return c.varOff[v], v.size, true
	}
	if c.f.entry {
		return 0, 0, false
	}
	for _, p := range c.f.params {
		if p.name == name {
			return p.offset, p.size, true
		}
	}
	for _, p := range c.f.rets {
		if p.name == name {
			return uint64(c.f.retOffset) + p.offset, p.size, true
		}
	}
	return 0, 0, false
}

// atomics handles atom and red.
func atomics(red bool) func(c *compiler) {
	return func(c *compiler) {
		c.takeOf("relaxed", "acquire", "release", "acq_rel")
		scope := c.scope()
		space := c.space(SpaceGlobal, SpaceShared)
		if scope == "" {
			c.scope() // where NVRTC writes it
		}
		op := c.takeOf("and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max")
		c.cacheHints()
		t := c.typ(b32, b64, u32, u64, s32, s64, f32, f64)
		f := atomicUpdate(op, t)
		if f == nil || red && (op == "cas" || op == "exch") {
			c.fail("operation does not exist for .%s", t)
		}
		n := 3
		if op == "cas" {
			n = 4
		}
		ops := c.s.ops
		in := inst{site: int32(c.prog.sites)}
		if red {
			n--
		} else if c.operands(n); ops[0].kind == opName {
			in.d, in.def = c.dst(ops[0], t, false), true
			ops = ops[1:]
		}
		if red {
			c.operands(n)
		}
		c.prog.sites++
		in.a, in.x = c.address(ops[0])
		in.b = c.src(ops[1], t, false)
		in.ua, in.ub = true, true
		if op == "cas" {
			in.c, in.uc = c.src(ops[2], t, false), true
		}
		g := f
		if op == "add" && t == f32 {
			g = flushAdd
		}
		in.exec = atomicOp(space, t, f, g)
		c.emit(in)
	}
}

var windows = map[Space]uint64{SpaceGlobal: 0, SpaceConst: 0, SpaceShared: sharedWindow, SpaceLocal: localWindow, SpaceParam: paramWindow}

// cvta converts between generic addresses and those of a space.
func cvta(c *compiler) {
	to := c.take("to")
	space := c.space(SpaceGlobal, SpaceConst, SpaceShared, SpaceLocal, SpaceParam)
	if space == SpaceGeneric {
		c.fail("a state space is missing")
	}
	t := c.typ(u64)
	c.operands(2)
	d, a := c.dst(c.s.ops[0], t, false), c.src(c.s.ops[1], t, false)
	delta := windows[space]
	if to {
		delta = -delta
	}
	if delta == 0 {
		c.emit1(opMov64, d, a)
		return
	}
	c.emit2(opAdd64, d, a, c.constant(delta))
}

// isspacep tells whether a generic address lies in a space.
func isspacep(c *compiler) {
	space := c.space(SpaceGlobal, SpaceConst, SpaceShared, SpaceLocal, SpaceParam)
	if space == SpaceGeneric {
		c.fail("a state space is missing")
	}
	c.operands(2)
	p, a := c.predDst(c.s.ops[0]), c.src(c.s.ops[1], u64, false)
	base := windows[space]
	c.emit(inst{a: a, ua: true, exec: func(w *warp, in *inst, m uint32) {
		var r uint32
		for n := m; n != 0; n &= n - 1 {
			i := bits.TrailingZeros32(n) & 31
			addr := w.r[in.a][i]
			yes := addr-base < WindowSize
			if base == 0 {
				yes = addr < WindowBase
			}
			if yes {
				r |= 1 << i
			}
		}
		w.p[p] = w.p[p]&^m | r
	}})
}

// hint accepts instructions that only guide caches.
func hint(c *compiler) { c.mods = nil }

// mov copies, packs, unpacks and reads special registers.
func mov(c *compiler) {
	c.operands(2)
	t := c.typ(b16, b32, b64, u16, u32, u64, s16, s32, s64, f32, f64, tPred)
	d, s := c.s.ops[0], c.s.ops[1]
	switch {
	case t == tPred:
		p := c.predDst(d)
		q, neg := c.predOp(s)
		fq := flip(neg)
		c.emit(inst{exec: func(w *warp, in *inst, m uint32) { w.p[p] = w.p[p]&^m | (w.p[q]^fq)&m }})
	case d.kind == opVector:
		c.unpack(d.list, s, t)
	case s.kind == opVector:
		c.pack(d, s.list, t)
	default:
		if sr, ok := specials[s.name]; ok && s.kind == opName && sr.id.volatile() {
			if sr.width != t.bits() {
				c.fail("%s has %d bits", s.name, sr.width)
			}
			c.emit(inst{exec: readVolatile(sr.id), d: c.dst(d, t, false), def: true})
			return
		}
		c.emit1(opMov64, c.dst(d, t, false), c.src(s, t, false))
	}
}

// partType returns the type of one of n equal parts.
func (c *compiler) partType(t typ, n int) typ {
	p, ok := map[int]typ{8: b8, 16: b16, 32: b32}[t.bits()/max(1, n)]
	if !ok || n != 2 && n != 4 || !t.untyped() {
		c.fail("cannot split .%s in %d parts", t, n)
	}
	return p
}

func (c *compiler) unpack(dst []operand, s operand, t typ) {
	pt := c.partType(t, len(dst))
	n := pt.bits()
	in := inst{a: c.src(s, t, false), ua: true, vdef: true}
	for _, o := range dst {
		in.v = append(in.v, c.dst(o, pt, false))
	}
	in.exec = func(w *warp, in *inst, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			x := w.r[in.a][i]
			for k, r := range in.v {
				w.r[r][i] = trunc(pt, x>>(k*n))
			}
		}
	}
	c.emit(in)
}

func (c *compiler) pack(d operand, src []operand, t typ) {
	pt := c.partType(t, len(src))
	n := pt.bits()
	in := inst{d: c.dst(d, t, false), def: true}
	for _, o := range src {
		in.v = append(in.v, c.src(o, pt, false))
	}
	in.exec = func(w *warp, in *inst, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			var x uint64
			for k, r := range in.v {
				x |= w.r[r][i] << (k * n)
			}
			w.r[in.d][i] = x
		}
	}
	c.emit(in)
}
