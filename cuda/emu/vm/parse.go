package vm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Syntax tree of a module. Names are resolved later, except that each body keeps its declarations.

type operandKind uint8

const (
	opName    operandKind = iota // register, special register, symbol or label, with an addend
	opImm                        // integer or floating-point constant
	opAddress                    // [base+offset]
	opVector                     // {a, b, ...}
	opPair                       // p|q
	opParen                      // (a, b, ...) of a call
)

type operand struct {
	kind  operandKind
	name  string // opName, opAddress (may be empty: absolute address)
	neg   bool   // !p
	imm   uint64 // value, bit pattern, addend or offset
	float bool   // imm is the bit pattern of a float64 (width 64) or float32 (width 32)
	width int    // of a floating-point constant
	list  []operand
}

type statement struct {
	line     int
	opcode   string   // first part, without modifiers
	mods     []string // modifiers in order
	ops      []operand
	guard    string
	guardNeg bool
	scope    *scopeAST
}

func (s *statement) text() string { return strings.Join(append([]string{s.opcode}, s.mods...), ".") }

type variable struct {
	name   string
	space  Space
	typ    typ
	size   uint64
	align  uint64
	extern bool
	init   []byte
	relocs []Reloc
	line   int
	offset uint64 // within its space, assigned later
}

type regDecl struct {
	typ   typ
	count int // -1: a plain name; else name is a prefix with indices below count
}

type funcAST struct {
	name     string
	entry    bool
	line     int
	params   []variable
	rets     []variable
	vars     []*variable // .local, .shared and .param variables of the body
	scopes   []*scopeAST // the outermost first
	body     []statement
	hasBody  bool
	maxntid  uint32 // product; 0 if absent
	lastLine int
}

// scopeAST holds what one pair of braces declares.
type scopeAST struct {
	parent *scopeAST // nil for the outermost
	regs   map[string]regDecl
	vars   map[string]*variable
	labels map[string]int      // statement index
	tables map[string][]string // .branchtargets
	protos map[string]*funcAST // .callprototype
}

func newScope(parent *scopeAST) *scopeAST {
	return &scopeAST{parent: parent, regs: map[string]regDecl{}, vars: map[string]*variable{},
		labels: map[string]int{}, tables: map[string][]string{}, protos: map[string]*funcAST{}}
}

type moduleAST struct {
	major, minor int
	target       string
	vars         []*variable
	funcs        []*funcAST
	index        map[string]int // of funcs, by name
}

const (
	maxSharedBytes = 232448  // the largest that any device allows to a block
	maxLocalBytes  = 1 << 19 // 512 KiB of a thread
	maxParamBytes  = 4352
	maxGlobalBytes = 1 << 40
	maxNesting     = 64
)

type parser struct {
	lex  lexer
	tok  token
	mod  *moduleAST
	seen map[string]bool // module-scope variables
}

// parseError unwinds the parser; it never leaves parseModule.
type parseError struct{ err *LoadError }

func (p *parser) fail(line int, opcode, format string, args ...any) {
	panic(parseError{&LoadError{Line: line, Opcode: opcode, Msg: fmt.Sprintf(format, args...)}})
}

func (p *parser) advance() token {
	t := p.tok
	next, err := p.lex.next()
	if err != nil {
		panic(parseError{err.(*LoadError)})
	}
	p.tok = next
	return t
}

func (p *parser) isPunct(s string) bool { return p.tok.kind == tokPunct && p.tok.text == s }

func (p *parser) accept(s string) bool {
	if p.isPunct(s) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.fail(p.tok.line, "", "expected %q, found %q", s, p.tok.text)
	}
}

func (p *parser) word(what string) token {
	if p.tok.kind != tokWord {
		p.fail(p.tok.line, "", "expected %s, found %q", what, p.tok.text)
	}
	return p.advance()
}

func parseModule(src string) (m *moduleAST, err error) {
	p := &parser{lex: lexer{src: src, line: 1}, mod: &moduleAST{index: map[string]int{}}, seen: map[string]bool{}}
	defer func() {
		if r := recover(); r != nil {
			pe, ok := r.(parseError)
			if !ok {
				panic(r)
			}
			m, err = nil, pe.err
		}
	}()
	p.advance()
	p.module()
	return p.mod, nil
}

func (p *parser) module() {
	for first := true; p.tok.kind != tokEOF; first = false {
		t := p.word("a directive")
		if first && t.text != ".version" {
			p.fail(t.line, t.text, "a module begins with .version")
		}
		switch t.text {
		case ".version":
			v := p.advance()
			maj, min, ok := strings.Cut(v.text, ".")
			a, e1 := strconv.Atoi(maj)
			b, e2 := strconv.Atoi(min)
			if v.kind != tokNumber || !ok || e1 != nil || e2 != nil {
				p.fail(v.line, t.text, "expected major.minor, found %q", v.text)
			}
			p.mod.major, p.mod.minor = a, b
		case ".target":
			p.mod.target = p.word("a target").text
			for p.accept(",") {
				p.word("a target option")
			}
		case ".address_size":
			if n := p.number(); n != 64 {
				p.fail(t.line, t.text, "only 64-bit addresses are supported, found %d", n)
			}
		case ".file":
			p.number()
			if p.tok.kind != tokString {
				p.fail(t.line, t.text, "expected a file name")
			}
			p.advance()
			for p.accept(",") {
				p.number()
			}
		case ".section":
			p.section()
		case ".visible", ".extern", ".weak", ".common", ".entry", ".func", ".global", ".const", ".shared", ".pragma":
			p.topLevel(t)
		default:
			p.fail(t.line, t.text, "unknown directive")
		}
	}
}

// section skips debugging data; nothing in it changes what the code does.
func (p *parser) section() {
	p.word("a section name")
	p.expect("{")
	for !p.isPunct("}") {
		if p.tok.kind == tokEOF {
			p.fail(p.tok.line, ".section", "section is not closed")
		}
		p.advance()
	}
	p.expect("}")
}

func (p *parser) topLevel(t token) {
	extern := false
	for {
		switch t.text {
		case ".extern":
			extern = true
		case ".visible", ".weak", ".common":
		case ".pragma":
			p.pragma()
			return
		case ".entry", ".func":
			p.function(t, extern)
			return
		case ".global", ".const", ".shared":
			for _, v := range p.variables(t, extern) {
				if p.seen[v.name] {
					p.fail(v.line, t.text, "%s is declared twice", v.name)
				}
				p.seen[v.name] = true
				p.mod.vars = append(p.mod.vars, v)
			}
			return
		default:
			p.fail(t.line, t.text, "unknown directive")
		}
		t = p.word("a directive")
	}
}

func (p *parser) pragma() {
	if p.tok.kind != tokString {
		p.fail(p.tok.line, ".pragma", "expected a string, found %q", p.tok.text)
	}
	p.advance()
	p.expect(";")
}

// number reads a non-negative integer constant.
func (p *parser) number() uint64 {
	t := p.advance()
	if t.kind == tokNumber {
		if n, ok := parseInt(t.text); ok {
			return n
		}
	}
	p.fail(t.line, "", "expected a number, found %q", t.text)
	return 0
}

func parseInt(s string) (uint64, bool) {
	s = strings.TrimRight(s, "uU")
	n, err := strconv.ParseUint(s, 0, 64)
	return n, err == nil && !strings.Contains(s, "_") && !strings.HasPrefix(s, "0o")
}

// constant interprets a number token as an operand.
func (p *parser) constant(t token) operand {
	bad := func() { p.fail(t.line, "", "malformed number %q", t.text) }
	s := t.text
	if len(s) > 2 && s[0] == '0' && strings.IndexByte("fFdD", s[1]) >= 0 {
		width := 32
		if s[1] == 'd' || s[1] == 'D' {
			width = 64
		}
		v, err := strconv.ParseUint(s[2:], 16, width)
		if err != nil || len(s)-2 != width/4 {
			bad()
		}
		return operand{kind: opImm, imm: v, float: true, width: width}
	}
	if v, ok := parseInt(s); ok {
		return operand{kind: opImm, imm: v}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.ContainsAny(s, "_xX") {
		bad()
	}
	return operand{kind: opImm, imm: math.Float64bits(f), float: true, width: 64}
}

// signedConstant reads an optionally negated number.
func (p *parser) signedConstant() operand {
	neg := p.accept("-")
	if p.tok.kind != tokNumber {
		p.fail(p.tok.line, "", "expected a number, found %q", p.tok.text)
	}
	o := p.constant(p.advance())
	if neg {
		if o.float {
			o.imm ^= 1 << (o.width - 1)
		} else {
			o.imm = -o.imm
		}
	}
	return o
}

// addend reads "+n", "-n" or "+-n" repeatedly and returns the sum.
func (p *parser) addend() uint64 {
	var sum uint64
	for p.isPunct("+") || p.isPunct("-") {
		if p.accept("+") {
			o := p.signedConstant()
			if o.float {
				p.fail(p.tok.line, "", "offset is not an integer")
			}
			sum += o.imm
		} else {
			sum += p.signedConstant().imm
		}
	}
	return sum
}
