package vm

import "strings"

// function reads an entry or a device function after its directive.
func (p *parser) function(t token, extern bool) {
	f := &funcAST{entry: t.text == ".entry", line: t.line}
	if !f.entry && p.isPunct("(") {
		f.rets = p.paramList(false)
	}
	name := p.word("a function name")
	f.name = name.text
	if p.isPunct("(") {
		f.params = p.paramList(f.entry)
	}
	f.line = name.line
	for p.tok.kind == tokWord {
		p.performance(f)
	}
	switch {
	case p.accept(";"):
		if f.entry {
			p.fail(name.line, t.text, "%s has no body", f.name)
		}
	case p.accept("{"):
		if extern {
			p.fail(name.line, t.text, "%s is extern and has a body", f.name)
		}
		f.hasBody = true
		p.scope(f, nil, 0)
	default:
		p.fail(p.tok.line, "", "expected a body, found %q", p.tok.text)
	}
	if i, ok := p.mod.index[f.name]; ok {
		if p.mod.funcs[i].hasBody && f.hasBody {
			p.fail(name.line, t.text, "%s is defined twice", f.name)
		}
		if f.hasBody {
			p.mod.funcs[i] = f
		}
		return
	}
	p.mod.index[f.name] = len(p.mod.funcs)
	p.mod.funcs = append(p.mod.funcs, f)
}

// performance reads one directive between a function's head and its body.
func (p *parser) performance(f *funcAST) {
	t := p.advance()
	switch t.text {
	case ".maxntid", ".reqntid":
		n := p.number()
		for p.accept(",") {
			if k := p.number(); k <= 1024 {
				n *= k
			} else {
				n = 1 << 20
			}
		}
		if n == 0 || n > 1024 {
			p.fail(t.line, t.text, "a block has 1 to 1024 threads")
		}
		f.maxntid = uint32(n)
	case ".minnctapersm", ".maxnctapersm", ".maxnreg":
		p.number()
	case ".noreturn":
	case ".pragma":
		p.pragma()
	default:
		p.fail(t.line, t.text, "unknown directive of a function")
	}
}

// paramList reads "(.param ..., ...)" and lays the parameters out.
func (p *parser) paramList(entry bool) []variable {
	p.expect("(")
	var out []variable
	var off uint64
	for !p.accept(")") {
		t := p.word("a parameter")
		if t.text != ".param" {
			p.fail(t.line, t.text, "only .param parameters are supported")
		}
		v := p.declaration(t, false, true)
		off = alignUp(off, v.align)
		v.offset = off
		if off += v.size; off > maxParamBytes {
			p.fail(t.line, t.text, "parameters take more than %d bytes", maxParamBytes)
		}
		out = append(out, v)
		if !p.isPunct(")") {
			p.expect(",")
		}
	}
	return out
}

func alignUp(n, a uint64) uint64 { return (n + a - 1) &^ (a - 1) }

// scope reads statements up to the closing brace.
func (p *parser) scope(f *funcAST, parent *scopeAST, depth int) {
	if depth > maxNesting {
		p.fail(p.tok.line, "", "braces nested too deeply")
	}
	sc := newScope(parent)
	f.scopes = append(f.scopes, sc)
	for {
		f.lastLine = p.tok.line
		switch {
		case p.accept("}"):
			return
		case p.accept("{"):
			p.scope(f, sc, depth+1)
		case p.accept(";"):
		case p.isPunct("@"):
			p.instruction(f, sc)
		case p.tok.kind == tokWord && p.tok.text[0] == '.':
			p.bodyDirective(f, sc)
		case p.tok.kind == tokWord:
			p.labelOrInstruction(f, sc)
		default:
			p.fail(p.tok.line, "", "expected a statement, found %q", p.tok.text)
		}
	}
}

func (p *parser) bodyDirective(f *funcAST, sc *scopeAST) {
	t := p.advance()
	switch t.text {
	case ".reg":
		p.registers(sc)
	case ".local", ".shared", ".param":
		for _, v := range p.variables(t, false) {
			if sc.vars[v.name] != nil {
				p.fail(v.line, t.text, "%s is declared twice", v.name)
			}
			sc.vars[v.name] = v
			f.vars = append(f.vars, v)
		}
	case ".pragma":
		p.pragma()
	case ".loc":
		p.number()
		p.number()
		p.number()
		for p.accept(",") { // inlining information
			p.word("a location attribute")
			for p.tok.kind == tokNumber || p.tok.kind == tokWord && !p.isStatementStart() || p.isPunct("+") {
				p.advance()
			}
		}
	default:
		p.fail(t.line, t.text, "unknown directive")
	}
}

// isStatementStart tells the names of location attributes from what follows the directive: those
// are labels of the debugging sections and begin with a dollar sign or an L.
func (p *parser) isStatementStart() bool {
	return !strings.HasPrefix(p.tok.text, "$L__info_string") && !strings.HasPrefix(p.tok.text, ".debug") &&
		p.tok.text != "inlined_at"
}

func (p *parser) labelOrInstruction(f *funcAST, sc *scopeAST) {
	saveLex, saveTok := p.lex, p.tok
	t := p.advance()
	if !p.accept(":") {
		p.lex, p.tok = saveLex, saveTok
		p.instruction(f, sc)
		return
	}
	if p.tok.kind == tokWord && (p.tok.text == ".branchtargets" || p.tok.text == ".calltargets" || p.tok.text == ".callprototype") {
		p.labelled(t, sc)
		return
	}
	if _, dup := sc.labels[t.text]; dup {
		p.fail(t.line, "", "label %s is defined twice", t.text)
	}
	sc.labels[t.text] = len(f.body)
}

// labelled reads a directive that a label names.
func (p *parser) labelled(label token, sc *scopeAST) {
	d := p.advance()
	if d.text == ".callprototype" {
		proto := &funcAST{line: d.line, name: label.text}
		if p.isPunct("(") {
			proto.rets = p.paramList(false)
		}
		p.word("_")
		if p.isPunct("(") {
			proto.params = p.paramList(false)
		}
		sc.protos[label.text] = proto
	} else {
		var names []string
		for {
			names = append(names, p.word("a name").text)
			if !p.accept(",") {
				break
			}
		}
		sc.tables[label.text] = names
	}
	p.expect(";")
}

func (p *parser) instruction(f *funcAST, sc *scopeAST) {
	s := statement{scope: sc}
	if p.accept("@") {
		s.guardNeg = p.accept("!")
		s.guard = p.word("a predicate").text
	}
	op := p.word("an instruction")
	parts := strings.Split(op.text, ".")
	s.line, s.opcode, s.mods = op.line, parts[0], parts[1:]
	if s.opcode == "" {
		p.fail(op.line, op.text, "expected an instruction")
	}
	for !p.isPunct(";") {
		s.ops = append(s.ops, p.operand(0))
		if !p.isPunct(";") {
			p.expect(",")
		}
	}
	p.advance()
	f.body = append(f.body, s)
}

func (p *parser) operand(depth int) operand {
	if depth > 3 {
		p.fail(p.tok.line, "", "operand nested too deeply")
	}
	switch {
	case p.accept("{"):
		return operand{kind: opVector, list: p.operandList("}", depth)}
	case p.accept("("):
		return operand{kind: opParen, list: p.operandList(")", depth)}
	case p.accept("["):
		o := operand{kind: opAddress}
		if p.tok.kind == tokWord {
			o.name = p.advance().text
			o.imm = p.addend()
		} else {
			o.imm = p.signedConstant().imm
		}
		p.expect("]")
		return o
	case p.accept("!"):
		return operand{kind: opName, name: p.word("a predicate").text, neg: true}
	case p.isPunct("-") || p.tok.kind == tokNumber:
		return p.signedConstant()
	}
	o := operand{kind: opName, name: p.word("an operand").text}
	if p.accept("|") {
		return operand{kind: opPair, list: []operand{o, {kind: opName, name: p.word("a predicate").text}}}
	}
	o.imm = p.addend()
	return o
}

func (p *parser) operandList(end string, depth int) []operand {
	var list []operand
	for !p.accept(end) {
		list = append(list, p.operand(depth+1))
		if !p.isPunct(end) {
			p.expect(",")
		}
	}
	return list
}
