package audit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ptxText is the part of a PTX module that the audit looks at.
type ptxText struct {
	isaVersion, target string
	addressSize        int
	compiler           string // version in the compiler's own comment, "" without one
	functions          []ptxFunction
	constantBytes      int // of the launch parameters of device programs
}

type ptxFunction struct {
	name  string
	entry bool
	// paramBytes are the sizes of an entry's parameters.
	paramBytes []int
	// registers are the kinds (u32, u64, f32 ...) by name without its number.
	registers  map[string]string
	statements []ptxStatement
}

type ptxStatement struct {
	line int
	// opcode with all its modifiers, and the operands behind it.
	opcode, operands string
}

var (
	versionLine = regexp.MustCompile(`(?m)^[ \t]*\.version[ \t]+(\S+)[ \t]*$`)
	targetLine  = regexp.MustCompile(`(?m)^[ \t]*\.target[ \t]+(\S+)[ \t]*$`)
	addressLine = regexp.MustCompile(`(?m)^[ \t]*\.address_size[ \t]+(\d+)[ \t]*$`)
	compilerTag = regexp.MustCompile(`(?m)^// Cuda compilation tools, release \S+, V(\S+)$`)
	functionTag = regexp.MustCompile(`\.(entry|func)\s*(?:\([^)]*\)\s*)?([\w$%]+)\s*(?:\(([^)]*)\))?`)
	paramTag    = regexp.MustCompile(`^\s*\.param\s+(?:\.align\s+\d+\s+)?\.([bsuf])(\d+)\s+[\w$%]+(?:\[(\d+)\])?\s*$`)
	prefixTag   = regexp.MustCompile(`^(?:[\w$%]+\s*:|@!?%?[\w$]+)\s+`)
)

// parsePTX splits a module into functions and statements. It needs no
// knowledge of the instruction set; it refuses what it cannot split.
func parsePTX(text string) (*ptxText, error) {
	code := stripComments(text)
	p := &ptxText{}
	var err error
	if p.isaVersion, err = only(versionLine, code, ".version"); err != nil {
		return nil, err
	}
	if p.target, err = only(targetLine, code, ".target"); err != nil {
		return nil, err
	}
	size, err := only(addressLine, code, ".address_size")
	if err != nil {
		return nil, err
	}
	p.addressSize, _ = strconv.Atoi(size)
	if m := compilerTag.FindStringSubmatch(text); m != nil {
		p.compiler = m[1]
	}
	return p, p.split(code)
}

func only(line *regexp.Regexp, code, name string) (string, error) {
	m := line.FindAllStringSubmatch(code, -1)
	if len(m) != 1 {
		return "", fmt.Errorf("%d %s directives, expected one", len(m), name)
	}
	return m[0][1], nil
}

// split walks the module once. Outside of functions text is collected up to a
// semicolon or a brace; inside, up to a semicolon, where a brace that follows
// text belongs to an operand and any other brace is a scope.
func (p *ptxText) split(code string) error {
	var (
		fn            *ptxFunction
		depth, vector int
		start         int
		line, at      = 1, 1 // of the cursor, and of the statement's first character
	)
	for i := 0; i < len(code); i++ {
		c := code[i]
		blank := strings.TrimSpace(code[start:i]) == ""
		if blank {
			at = line
		}
		switch {
		case c == '\n':
			line++
		case c == '"':
			i = literalEnd(code, i) - 1
		case c == '{' && fn == nil:
			f, err := header(code[start:i])
			if err != nil {
				return fmt.Errorf("line %d: %w", at, err)
			}
			if f == nil { // an initialiser
				end := strings.IndexByte(code[i:], '}')
				if end < 0 {
					return fmt.Errorf("line %d: unclosed initialiser", line)
				}
				line += strings.Count(code[i:i+end], "\n")
				i += end
				continue
			}
			fn, depth, start = f, 1, i+1
		case c == '{' && blank:
			depth, start = depth+1, i+1
		case c == '{':
			vector++
		case c == '}' && vector > 0:
			vector--
		case c == '}':
			if fn == nil || !blank {
				return fmt.Errorf("line %d: unexpected closing brace", line)
			}
			depth, start = depth-1, i+1
			if depth == 0 {
				p.functions = append(p.functions, *fn)
				fn = nil
			}
		case c == ';':
			if fn != nil {
				if s, ok := statement(code[start:i], at); ok {
					fn.statements = append(fn.statements, s)
				} else {
					fn.declare(code[start:i])
				}
			} else if m := constantTag.FindStringSubmatch(code[start:i]); m != nil {
				p.constantBytes, _ = strconv.Atoi(m[1])
			}
			start = i + 1
		}
	}
	if fn != nil {
		return fmt.Errorf("function %s is not closed", fn.name)
	}
	return nil
}

// header reads the head of a function; nil for other declarations.
func header(text string) (*ptxFunction, error) {
	m := functionTag.FindStringSubmatch(text)
	if m == nil {
		return nil, nil
	}
	f := &ptxFunction{name: m[2], entry: m[1] == "entry"}
	if !f.entry || strings.TrimSpace(m[3]) == "" {
		return f, nil
	}
	for _, param := range strings.Split(m[3], ",") {
		d := paramTag.FindStringSubmatch(param)
		if d == nil {
			return nil, fmt.Errorf("entry %s: parameter %q has an unknown form", f.name, strings.TrimSpace(param))
		}
		bits, _ := strconv.Atoi(d[2])
		count := 1
		if d[3] != "" {
			count, _ = strconv.Atoi(d[3])
		}
		f.paramBytes = append(f.paramBytes, bits/8*count)
	}
	return f, nil
}

// statement cuts labels and the predicate off an instruction; declarations
// are no statements.
func statement(text string, line int) (ptxStatement, bool) {
	for {
		text = strings.TrimLeft(text, " \t\n")
		m := prefixTag.FindString(text)
		if m == "" {
			break
		}
		line += strings.Count(m, "\n")
		text = text[len(m):]
	}
	if text == "" || text[0] == '.' {
		return ptxStatement{}, false
	}
	n := strings.IndexAny(text, " \t\n")
	if n < 0 {
		n = len(text)
	}
	return ptxStatement{line: line, opcode: text[:n], operands: strings.TrimSpace(text[n:])}, true
}

// entries are the kernels, sorted by name.
func (p *ptxText) entries() []ptxFunction {
	var list []ptxFunction
	for _, f := range p.functions {
		if f.entry {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b ptxFunction) int { return strings.Compare(a.name, b.name) })
	return list
}

var callTag = regexp.MustCompile(`^(?:\([^)]*\)\s*,\s*)?([\w$%]+)`)

// imports are the call targets that the module does not define, sorted. A call
// through a register counts under the register's name.
func (p *ptxText) imports() []string {
	defined := map[string]bool{}
	for _, f := range p.functions {
		defined[f.name] = true
	}
	list := []string{}
	for _, f := range p.functions {
		for _, s := range f.statements {
			if op, _, _ := strings.Cut(s.opcode, "."); op != "call" {
				continue
			}
			m := callTag.FindStringSubmatch(s.operands)
			if m != nil && !defined[m[1]] && !slices.Contains(list, m[1]) {
				list = append(list, m[1])
			}
		}
	}
	slices.Sort(list)
	return list
}
