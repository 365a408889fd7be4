package vm

import (
	"encoding/binary"
	"math"
)

// variables reads the declarators after a state-space directive, up to the semicolon.
func (p *parser) variables(space token, extern bool) []*variable {
	var out []*variable
	v := p.declaration(space, extern, false)
	out = append(out, &v)
	for p.accept(",") {
		w := variable{space: v.space, typ: v.typ, align: v.align, extern: extern, size: uint64(v.typ.bytes())}
		p.declarator(&w, false)
		out = append(out, &w)
	}
	p.expect(";")
	return out
}

var spaceNames = map[string]Space{
	".global": SpaceGlobal, ".const": SpaceConst, ".shared": SpaceShared, ".local": SpaceLocal, ".param": SpaceParam,
}

// declaration reads attributes, type, name, dimensions and initialiser. The name of a parameter of
// a call prototype may be "_".
func (p *parser) declaration(space token, extern, param bool) variable {
	sp, ok := spaceNames[space.text]
	if !ok {
		p.fail(space.line, space.text, "unknown state space")
	}
	v := variable{space: sp, extern: extern}
	vec := uint64(1)
	for v.typ == tNone {
		t := p.word("a type")
		switch t.text {
		case ".align":
			v.align = p.number()
			if v.align == 0 || v.align > 1<<16 || v.align&(v.align-1) != 0 {
				p.fail(t.line, t.text, "alignment %d is not a power of two up to 65536", v.align)
			}
		case ".v2":
			vec = 2
		case ".v4":
			vec = 4
		case ".ptr": // describes what a pointer parameter points to
			if p.tok.kind == tokWord && spaceNames[p.tok.text] != SpaceGeneric {
				p.advance()
			}
		default:
			ty, ok := typeNames[t.text[1:]]
			if !ok || t.text[0] != '.' || ty == tPred {
				p.fail(t.line, t.text, "unknown type or attribute of a variable")
			}
			v.typ = ty
		}
	}
	if param { // attributes of pointer parameters follow the type
		for p.tok.kind == tokWord && p.tok.text[0] == '.' {
			switch t := p.advance(); t.text {
			case ".ptr":
			case ".global", ".shared", ".const", ".local":
			case ".align":
				p.number()
			default:
				p.fail(t.line, t.text, "unknown attribute of a parameter")
			}
		}
	}
	v.size = uint64(v.typ.bytes()) * vec
	if v.align == 0 {
		v.align = v.size
	}
	p.declarator(&v, param)
	return v
}

func (p *parser) declarator(v *variable, param bool) {
	t := p.word("a name")
	v.name, v.line = t.text, t.line
	if t.text[0] == '.' {
		p.fail(t.line, t.text, "expected a name")
	}
	open := false
	for p.accept("[") {
		if p.accept("]") {
			open = true
			continue
		}
		n := p.number()
		if n != 0 && v.size > maxGlobalBytes/n {
			p.fail(t.line, "", "%s is too large", v.name)
		}
		v.size *= n
		p.expect("]")
	}
	if !param && p.accept("=") {
		if v.space != SpaceGlobal && v.space != SpaceConst {
			p.fail(t.line, "", "%s: only .global and .const variables take an initialiser", v.name)
		}
		if v.typ == f16 || v.typ == f16x2 {
			p.fail(t.line, "", "%s: initialiser of type %s is not supported", v.name, v.typ)
		}
		p.initialiser(v, 0)
		if open {
			v.size = uint64(len(v.init))
		}
	} else if open && !v.extern {
		p.fail(t.line, "", "%s has no size", v.name)
	} else if open {
		v.size = 0
	}
	if uint64(len(v.init)) > v.size {
		p.fail(t.line, "", "%s: initialiser has %d bytes, the variable %d", v.name, len(v.init), v.size)
	}
}

// initialiser appends elements to v.init, nested braces flattened.
func (p *parser) initialiser(v *variable, depth int) {
	if p.accept("{") {
		if depth > maxNesting {
			p.fail(p.tok.line, "", "initialiser nested too deeply")
		}
		for !p.accept("}") {
			p.initialiser(v, depth+1)
			if !p.isPunct("}") {
				p.expect(",")
			}
		}
		return
	}
	width := v.typ.bytes()
	off := uint64(len(v.init))
	var val uint64
	if p.tok.kind == tokWord {
		name := p.advance()
		if name.text == "generic" && p.accept("(") {
			name = p.word("a symbol")
			p.expect(")")
		}
		if width != 8 {
			p.fail(name.line, "", "address of %s in elements of %d bytes", name.text, width)
		}
		v.relocs = append(v.relocs, Reloc{Offset: off, Symbol: name.text, Addend: int64(p.addend())})
	} else {
		o := p.signedConstant()
		val = o.imm
		switch {
		case v.typ == f32 && o.float && o.width == 64:
			val = uint64(math.Float32bits(float32(math.Float64frombits(o.imm))))
		case v.typ == f64 && o.float && o.width == 32:
			val = math.Float64bits(float64(math.Float32frombits(uint32(o.imm))))
		case v.typ == f32 && !o.float:
			val = uint64(math.Float32bits(float32(int64(o.imm))))
		case v.typ == f64 && !o.float:
			val = math.Float64bits(float64(int64(o.imm)))
		case !v.typ.float() && o.float:
			p.fail(p.tok.line, "", "%s: floating-point initialiser of an integer", v.name)
		}
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], val)
	v.init = append(v.init, b[:width]...)
}

// registers reads ".reg" declarators after the directive.
func (p *parser) registers(sc *scopeAST) {
	t := p.word("a register type")
	ty, ok := typeNames[t.text[1:]]
	if !ok || t.text[0] != '.' {
		p.fail(t.line, t.text, "unknown register type")
	}
	for {
		name := p.word("a register name")
		d := regDecl{typ: ty, count: -1}
		if p.accept("<") {
			n := p.number()
			if n > 1<<24 {
				p.fail(name.line, ".reg", "%d registers are too many", n)
			}
			d.count = int(n)
			p.expect(">")
		}
		if _, dup := sc.regs[name.text]; dup {
			p.fail(name.line, ".reg", "%s is declared twice", name.text)
		}
		sc.regs[name.text] = d
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
}
