package vm

import (
	"fmt"
	"math"
	"strings"
)

// compiler turns one function's statements into instructions. Errors unwind as parseError.
type compiler struct {
	mod      *moduleAST
	prog     *Program
	f        *function
	s        *statement
	mods     []string // modifiers of s that are not consumed yet
	insts    []inst
	starts   []int // first instruction of each statement
	cols     int32
	regCols  map[regKey]register
	predIdx  map[regKey]int32
	constIdx map[uint64]int32
	symIdx   map[string]int32
	srIdx    map[special]int32
	localIdx map[uint32]int32
	varOff   map[*variable]uint64
	shared   map[string]*variable // module-scope shared variables
	globals  map[string]bool
	calls    bool
}

type regKey struct {
	scope *scopeAST
	name  string
}

type register struct {
	col int32
	typ typ
}

func (c *compiler) fail(format string, args ...any) {
	panic(parseError{&LoadError{Line: c.s.line, Opcode: c.s.text(), Msg: fmt.Sprintf(format, args...)}})
}

// Modifiers

// take consumes the next modifier if it is name.
func (c *compiler) take(name string) bool {
	if len(c.mods) > 0 && c.mods[0] == name {
		c.mods = c.mods[1:]
		return true
	}
	return false
}

// takeOf consumes the next modifier if it is one of names, and returns it.
func (c *compiler) takeOf(names ...string) string {
	for _, n := range names {
		if c.take(n) {
			return n
		}
	}
	return ""
}

// typ consumes the type, which must be one of allowed (any if none is given).
func (c *compiler) typ(allowed ...typ) typ {
	if len(c.mods) == 0 {
		c.fail("a type is missing")
	}
	t, ok := typeNames[c.mods[0]]
	if !ok {
		c.fail("unknown modifier .%s", c.mods[0])
	}
	for _, a := range allowed {
		if a == t {
			ok = true
			break
		}
		ok = false
	}
	if !ok {
		c.fail("type .%s is not supported here", c.mods[0])
	}
	c.mods = c.mods[1:]
	return t
}

func (c *compiler) rounding() (rounding, bool) {
	if len(c.mods) > 0 {
		if r, ok := roundModes[c.mods[0]]; ok {
			c.mods = c.mods[1:]
			return r, true
		}
	}
	return roundNear, false
}

func (c *compiler) operands(n int) {
	if len(c.s.ops) != n {
		c.fail("%d operands, expected %d", len(c.s.ops), n)
	}
}

// Names

// lookupReg finds a register declared in the statement's scope or one around it.
func (c *compiler) lookupReg(name string) (regKey, regDecl, bool) {
	prefix := strings.TrimRight(name, "0123456789")
	for sc := c.s.scope; sc != nil; sc = sc.parent {
		if d, ok := sc.regs[name]; ok && d.count < 0 {
			return regKey{sc, name}, d, true
		}
		// A prefix may itself end in digits; try every split.
		for cut := len(prefix); cut < len(name); cut++ {
			d, ok := sc.regs[name[:cut]]
			if !ok || d.count < 0 {
				continue
			}
			n, ok := parseInt(name[cut:])
			if ok && n < uint64(d.count) && (len(name)-cut == 1 || name[cut] != '0') {
				return regKey{sc, name}, d, true
			}
		}
	}
	return regKey{}, regDecl{}, false
}

func (c *compiler) lookupVar(name string) *variable {
	for sc := c.s.scope; sc != nil; sc = sc.parent {
		if v := sc.vars[name]; v != nil {
			return v
		}
	}
	return nil
}

func (c *compiler) newCol() int32 {
	c.cols++
	return c.cols - 1
}

// constant returns a column that holds v in every lane.
func (c *compiler) constant(v uint64) int32 {
	i, ok := c.constIdx[v]
	if !ok {
		i = c.newCol()
		c.constIdx[v] = i
		c.f.consts = append(c.f.consts, constCol{col: i, value: v})
	}
	return i
}

func (c *compiler) register(name string) (register, bool) {
	key, d, ok := c.lookupReg(name)
	if !ok {
		return register{}, false
	}
	if d.typ == tPred {
		c.fail("%s is a predicate", name)
	}
	r, ok := c.regCols[key]
	if !ok {
		r = register{c.newCol(), d.typ}
		c.regCols[key] = r
	}
	return r, true
}

// pred returns the index of a predicate register.
func (c *compiler) pred(name string) int32 {
	key, d, ok := c.lookupReg(name)
	if !ok || d.typ != tPred {
		c.fail("%s is not a predicate", name)
	}
	i, ok := c.predIdx[key]
	if !ok {
		i = int32(c.f.preds)
		c.f.preds++
		c.predIdx[key] = i
	}
	return i
}

// predOp returns the predicate of an operand and whether it is negated; integers are constants.
func (c *compiler) predOp(o operand) (int32, bool) {
	switch o.kind {
	case opName:
		return c.pred(o.name), o.neg
	case opImm:
		return 0, o.imm == 0
	}
	c.fail("expected a predicate")
	return 0, false
}

func (c *compiler) predDst(o operand) int32 {
	if o.kind != opName || o.neg {
		c.fail("expected a predicate as destination")
	}
	if o.name == "_" {
		c.f.preds++
		return int32(c.f.preds - 1)
	}
	return c.pred(o.name)
}

// checkWidth compares a register with an operand's type.
func (c *compiler) checkWidth(name string, r typ, t typ, wider bool) {
	if r.bits() == t.bits() || wider && r.bits() > t.bits() {
		return
	}
	c.fail("%s has %d bits, the operand %d", name, r.bits(), t.bits())
}

// dst returns the column of a destination. With wider the register may be wider than the type.
func (c *compiler) dst(o operand, t typ, wider bool) int32 {
	if o.kind != opName || o.neg || o.imm != 0 {
		c.fail("expected a register as destination")
	}
	if o.name == "_" {
		return c.newCol()
	}
	r, ok := c.register(o.name)
	if !ok {
		c.fail("unknown register %s", o.name)
	}
	c.checkWidth(o.name, r.typ, t, wider)
	return r.col
}

// src returns the column of a source operand.
func (c *compiler) src(o operand, t typ, wider bool) int32 {
	switch o.kind {
	case opImm:
		return c.constant(c.immediate(o, t))
	case opName:
		if o.neg {
			c.fail("%s cannot be negated here", o.name)
		}
		if r, ok := c.register(o.name); ok {
			if o.imm != 0 {
				c.fail("register with an offset outside of brackets")
			}
			c.checkWidth(o.name, r.typ, t, wider)
			return r.col
		}
		if sr, ok := specials[o.name]; ok {
			if sr.id.volatile() {
				c.fail("%s can only be read by mov", o.name)
			}
			if sr.width != t.bits() && !(wider && sr.width > t.bits()) {
				c.fail("%s has %d bits, the operand %d", o.name, sr.width, t.bits())
			}
			return c.special(sr.id)
		}
		if o.name == "WARP_SZ" {
			return c.constant(32)
		}
		if t.bits() >= 32 {
			if col, off, ok := c.symbol(o.name); ok {
				if sum := off + o.imm; sum == 0 {
					return col
				} else if k, ok := c.constOf(col); ok {
					return c.constant(k + sum)
				}
				d := c.newCol()
				c.emit(inst{exec: opAdd64, d: d, def: true, a: col, ua: true, b: c.constant(off + o.imm), ub: true, free: true})
				return d
			}
		}
		c.fail("unknown name %s", o.name)
	}
	c.fail("unexpected kind of operand")
	return 0
}

func (c *compiler) special(id special) int32 {
	i, ok := c.srIdx[id]
	if !ok {
		i = c.newCol()
		c.srIdx[id] = i
		c.f.special = append(c.f.special, specialCol{i, id})
	}
	return i
}

func (c *compiler) constOf(col int32) (uint64, bool) {
	for _, k := range c.f.consts {
		if k.col == col && k.symbol == "" {
			return k.value, true
		}
	}
	return 0, false
}

func (c *compiler) immediate(o operand, t typ) uint64 {
	v := o.imm
	switch {
	case o.float && t == f32 && o.width == 64:
		v = uint64(math.Float32bits(float32(math.Float64frombits(v))))
	case o.float && t == f64 && o.width == 32:
		v = math.Float64bits(float64(math.Float32frombits(uint32(v))))
	case o.float && t.bits() != o.width:
		c.fail("floating-point constant of %d bits for an operand of type .%s", o.width, t)
	case o.float && t.integer():
		c.fail("floating-point constant for an operand of type .%s", t)
	case !o.float && t.float():
		c.fail("integer constant for an operand of type .%s", t)
	}
	if n := t.bits(); n < 64 {
		v &= 1<<n - 1
	}
	return v
}

// symbol returns the address of a variable or function as a column and an offset to add.
func (c *compiler) symbol(name string) (col int32, off uint64, ok bool) {
	v := c.lookupVar(name)
	if v == nil {
		v = c.shared[name]
	}
	switch {
	case v != nil && v.space == SpaceShared:
		return c.constant(0), c.varOff[v], true
	case v != nil && v.space == SpaceLocal:
		o := uint32(c.varOff[v])
		i, seen := c.localIdx[o]
		if !seen {
			i = c.newCol()
			c.localIdx[o] = i
			c.f.locals = append(c.f.locals, i)
			c.f.localOf = append(c.f.localOf, o)
		}
		return i, 0, true
	case v != nil:
		return 0, 0, false
	case c.globals[name]:
		i, seen := c.symIdx[name]
		if !seen {
			i = c.newCol()
			c.symIdx[name] = i
			c.f.consts = append(c.f.consts, constCol{col: i, symbol: name})
		}
		return i, 0, true
	}
	if c.f.entry {
		for _, p := range c.f.params {
			if p.name == name {
				return c.constant(0), p.offset, true
			}
		}
	}
	if a, found := c.prog.FunctionAddress(name); found {
		return c.constant(a), 0, true
	}
	return 0, 0, false
}

// address returns base column and offset of an address operand.
func (c *compiler) address(o operand) (int32, uint64) {
	if o.kind != opAddress {
		c.fail("expected an address in brackets")
	}
	if o.name == "" {
		return c.constant(0), o.imm
	}
	if r, ok := c.register(o.name); ok {
		if r.typ.bits() < 32 {
			c.fail("%s is too narrow for an address", o.name)
		}
		return r.col, o.imm
	}
	col, off, ok := c.symbol(o.name)
	if !ok {
		c.fail("unknown name %s", o.name)
	}
	return col, off + o.imm
}

// emit appends an instruction for the current statement.
func (c *compiler) emit(in inst) {
	in.line = int32(c.s.line)
	if c.s.guard != "" && !in.free {
		in.guard = c.pred(c.s.guard)
		if c.s.guardNeg {
			in.flip = fullMask
		}
	}
	c.insts = append(c.insts, in)
}

// emit1 to emit3 append operations on columns.
func (c *compiler) emit1(f execFn, d, a int32) {
	c.emit(inst{exec: f, d: d, def: true, a: a, ua: true})
}

func (c *compiler) emit2(f execFn, d, a, b int32) {
	c.emit(inst{exec: f, d: d, def: true, a: a, ua: true, b: b, ub: true})
}

func (c *compiler) emit3(f execFn, d, a, b, x int32) {
	c.emit(inst{exec: f, d: d, def: true, a: a, ua: true, b: b, ub: true, c: x, uc: true})
}

// statement compiles one statement.
func (c *compiler) statement(s *statement) {
	c.s, c.mods = s, s.mods
	h, ok := handlers[s.opcode]
	if !ok {
		c.fail("unknown instruction")
	}
	h(c)
	if len(c.mods) > 0 {
		c.fail("unknown modifier .%s", c.mods[0])
	}
}
