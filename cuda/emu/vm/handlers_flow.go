package vm

// statementOf resolves a label visible from the current statement.
func (c *compiler) statementOf(name string) int32 {
	for sc := c.s.scope; sc != nil; sc = sc.parent {
		if i, ok := sc.labels[name]; ok {
			return int32(i)
		}
	}
	c.fail("unknown label %s", name)
	return 0
}

func (c *compiler) nameOp(i int) string {
	if o := c.s.ops[i]; o.kind == opName && !o.neg && o.imm == 0 {
		return o.name
	}
	c.fail("expected a name")
	return ""
}

func bra(c *compiler) {
	c.take("uni")
	c.operands(1)
	in := inst{kind: kindJump, target: c.statementOf(c.nameOp(0))}
	if c.s.guard != "" {
		in.kind = kindBranch
	}
	c.emit(in)
}

func brx(c *compiler) {
	if !c.take("idx") {
		c.fail("only brx.idx exists")
	}
	c.take("uni")
	c.operands(2)
	in := inst{kind: kindSwitch, a: c.src(c.s.ops[0], u32, false), ua: true}
	name := c.nameOp(1)
	for sc := c.s.scope; sc != nil; sc = sc.parent {
		if labels, ok := sc.tables[name]; ok {
			for _, l := range labels {
				in.targets = append(in.targets, c.statementOf(l))
			}
			c.emit(in)
			return
		}
	}
	c.fail("unknown table %s", name)
}

func ret(c *compiler) {
	c.take("uni")
	c.operands(0)
	c.emit(inst{kind: kindReturn})
}

func exit(c *compiler) {
	c.operands(0)
	c.emit(inst{kind: kindExit})
}

func trap(detail string) func(c *compiler) {
	return func(c *compiler) {
		c.operands(0)
		c.emit(inst{exec: func(w *warp, in *inst, m uint32) {
			w.fault(in, firstLane(m), Fault{Kind: Trap, Detail: detail})
		}})
	}
}

// nothing accepts instructions without an effect here: blocks see memory in program order.
func nothing(c *compiler) { c.mods = nil; c.emit(inst{exec: func(*warp, *inst, uint32) {}}) }

// call compiles direct and indirect calls.
func call(c *compiler) {
	c.take("uni")
	ops := c.s.ops
	site := &callSite{}
	var rets, args []operand
	if len(ops) > 0 && ops[0].kind == opParen {
		rets, ops = ops[0].list, ops[1:]
	}
	if len(ops) == 0 || ops[0].kind != opName {
		c.fail("expected a function")
	}
	target := ops[0]
	ops = ops[1:]
	if len(ops) > 0 && ops[0].kind == opParen {
		args, ops = ops[0].list, ops[1:]
	}
	in := inst{kind: kindCall, call: site}
	c.calls = true
	if r, ok := c.register(target.name); ok {
		if len(ops) != 1 || r.typ.bits() != 64 {
			c.fail("an indirect call needs a 64-bit register and a prototype or a table")
		}
		in.a, in.ua = r.col, true
		site.bind(c, c.prototype(ops[0].name), rets, args)
		c.emit(in)
		return
	}
	if len(ops) > 0 {
		c.fail("unexpected operand after the arguments")
	}
	f := c.prog.byName[target.name]
	switch {
	case f == nil:
		c.fail("unknown function %s", target.name)
	case f.entry:
		c.fail("%s is a kernel", f.name)
	case !f.ast.hasBody:
		c.library(f.name, rets)
	default:
		site.callee = f
		site.bind(c, f.ast, rets, args)
		c.emit(in)
	}
}

// prototype finds what an indirect call passes: a .callprototype, or the first of .calltargets.
func (c *compiler) prototype(name string) *funcAST {
	for sc := c.s.scope; sc != nil; sc = sc.parent {
		if p := sc.protos[name]; p != nil {
			return p
		}
		for _, t := range sc.tables[name] {
			if f := c.prog.byName[t]; f != nil {
				return f.ast
			}
		}
	}
	c.fail("unknown prototype %s", name)
	return nil
}

// bind pairs arguments and results of a call with the callee's parameters.
func (s *callSite) bind(c *compiler, callee *funcAST, rets, args []operand) {
	if len(args) != len(callee.params) || len(rets) != len(callee.rets) {
		c.fail("%d arguments and %d results, %s has %d and %d", len(args), len(rets), callee.name, len(callee.params), len(callee.rets))
	}
	var area uint64
	pair := func(o operand, p variable, base uint64) paramCopy {
		off, size, ok := c.frameVar(o.name)
		if o.kind != opName || !ok {
			c.fail("arguments and results must be .param variables")
		}
		if size != p.size {
			c.fail("%s has %d bytes, the parameter %d", o.name, size, p.size)
		}
		return paramCopy{uint32(off), uint32(base + p.offset), uint32(size)}
	}
	for i, o := range args {
		s.args = append(s.args, pair(o, callee.params[i], 0))
		area = max(area, callee.params[i].offset+callee.params[i].size)
	}
	area = alignUp(area, 16)
	for i, o := range rets {
		s.rets = append(s.rets, pair(o, callee.rets[i], area))
	}
	s.proto = callee
}

// check compares the callee of an indirect call with the prototype.
func (s *callSite) check(f *function) string {
	same := func(a, b []variable) bool {
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if a[i].size != b[i].size || a[i].offset != b[i].offset {
				return false
			}
		}
		return true
	}
	if f.entry || !f.ast.hasBody || !same(f.params, s.proto.params) || !same(f.rets, s.proto.rets) {
		return f.name + " does not have the parameters of the call"
	}
	return ""
}

// library compiles calls of functions that the driver provides.
func (c *compiler) library(name string, rets []operand) {
	switch name {
	case "__assertfail":
		c.emit(inst{exec: func(w *warp, in *inst, m uint32) {
			w.fault(in, firstLane(m), Fault{Kind: Trap, Detail: "an assertion of the kernel failed"})
		}})
	case "vprintf": // output is dropped; the result says that nothing was printed
		if len(rets) == 1 {
			off, size, ok := c.frameVar(rets[0].name)
			if !ok || size != 4 {
				c.fail("vprintf returns 4 bytes")
			}
			c.emit(inst{x: off, v: []int32{c.constant(0)}, exec: storeFrame(loadOp{n: 4, vec: 1})})
		}
	default:
		c.fail("function %s has no body", name)
	}
}

// barrierHandler compiles bar and barrier.
func barrierHandler(c *compiler) {
	c.take("cta")
	if c.take("warp") {
		if !c.take("sync") {
			c.fail("only bar.warp.sync exists")
		}
		c.operands(1)
		c.emit(inst{kind: kindWarpBar, c: c.src(c.s.ops[0], b32, false), uc: true})
		return
	}
	op := c.takeOf("sync", "arrive", "red")
	bar := &barrierOp{arrive: op == "arrive"}
	in := inst{kind: kindBarrier, bar: bar, ua: true}
	ops := c.s.ops
	if op == "red" {
		bar.red = map[string]uint8{"and": '&', "or": '|', "popc": '+'}[c.takeOf("and", "or", "popc")]
	}
	c.take("aligned")
	switch {
	case op == "" || op == "red" && bar.red == 0:
		c.fail("unknown form of barrier")
	case op == "red" && bar.red == '+':
		t := c.typ(u32)
		if len(ops) < 3 {
			c.fail("3 or 4 operands are needed")
		}
		in.d, in.def = c.dst(ops[0], t, false), true
	case op == "red":
		c.typ(tPred)
		if len(ops) < 3 {
			c.fail("3 or 4 operands are needed")
		}
		in.p = c.predDst(ops[0])
	}
	if op == "red" {
		in.q, bar.negP = c.predOp(ops[len(ops)-1])
		ops = ops[1 : len(ops)-1]
	}
	if len(ops) < 1 || len(ops) > 2 || bar.arrive && len(ops) < 2 {
		c.fail("wrong number of operands")
	}
	in.a = c.src(ops[0], u32, false)
	if len(ops) == 2 {
		in.b, in.ub, bar.count = c.src(ops[1], u32, false), true, true
	}
	c.emit(in)
}

func shflHandler(c *compiler) {
	if !c.take("sync") {
		c.fail("only shfl.sync is supported")
	}
	modes := map[string]int{"up": shflUp, "down": shflDown, "bfly": shflBfly, "idx": shflIdx}
	mode, ok := modes[c.takeOf("up", "down", "bfly", "idx")]
	if !ok {
		c.fail("unknown mode")
	}
	t := c.typ(b32)
	c.operands(5)
	ops := c.s.ops
	in := inst{kind: kindSync, exec: shuffle(mode), def: true, ua: true, ub: true, uc: true}
	dst := ops[0]
	if dst.kind == opPair {
		dst = ops[0].list[0]
		in.p = c.predDst(ops[0].list[1])
	}
	in.d, in.a, in.b = c.dst(dst, t, false), c.src(ops[1], t, false), c.src(ops[2], u32, false)
	in.v, in.c = []int32{c.src(ops[3], u32, false)}, c.src(ops[4], b32, false)
	c.emit(in)
}

func voteHandler(c *compiler) {
	if !c.take("sync") {
		c.fail("only vote.sync is supported")
	}
	mode := c.takeOf("all", "any", "uni", "ballot")
	c.operands(3)
	ops := c.s.ops
	in := inst{kind: kindSync, c: c.src(ops[2], b32, false), uc: true}
	q, neg := c.predOp(ops[1])
	in.q = q
	switch {
	case mode == "":
		c.fail("unknown mode")
	case mode == "ballot":
		in.d, in.def = c.dst(ops[0], c.typ(b32), false), true
	default:
		c.typ(tPred)
		in.p = c.predDst(ops[0])
	}
	in.exec = vote(mode, neg)
	c.emit(in)
}

func matchHandler(c *compiler) {
	mode := c.takeOf("any", "all")
	if mode == "" || !c.take("sync") {
		c.fail("only match.any.sync and match.all.sync exist")
	}
	t := c.typ(b32, b64)
	c.operands(3)
	ops := c.s.ops
	in := inst{kind: kindSync, exec: match(mode == "all"), def: true, ua: true, uc: true}
	dst := ops[0]
	if dst.kind == opPair && mode == "all" {
		dst = ops[0].list[0]
		in.p = c.predDst(ops[0].list[1])
	}
	in.d, in.a, in.c = c.dst(dst, b32, false), c.src(ops[1], t, false), c.src(ops[2], b32, false)
	c.emit(in)
}

func activemask(c *compiler) {
	c.operands(1)
	c.emit(inst{exec: activeMask, d: c.dst(c.s.ops[0], c.typ(b32), false), def: true})
}
