package audit

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// closure is a module's translation unit: every file that an #include can
// reach, whatever conditionals say.
type closure struct {
	root  string
	texts map[string]string // by path, with LF line ends
	// headers are the same texts by the name that an #include uses.
	headers map[string]string
	// external lists the reached external headers by path.
	external []string
}

// paths are the files of the closure, sorted.
func (c *closure) paths() []string {
	list := make([]string, 0, len(c.texts))
	for p := range c.texts {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

var (
	directive = regexp.MustCompile(`(?m)^[ \t]*(?:#|%:|\?\?=)[ \t]*(include|include_next|import|embed)\b[ \t]*(.*)$`)
	target    = regexp.MustCompile(`^(?:"([^"]+)"|<([^>]+)>)[ \t]*$`)
	volatile  = regexp.MustCompile(`\b__(?:DATE|TIME|FILE|TIMESTAMP|COUNTER)__\b`)
)

// closure reads a module's source and everything that it includes. What would
// make the compilation depend on anything but these bytes is a finding.
func (t tree) closure(p *policy, source string) (*closure, findings, error) {
	c := &closure{root: source, texts: map[string]string{}, headers: map[string]string{}}
	var out findings
	if err := t.collect(p, c, source, &out); err != nil {
		return nil, nil, err
	}
	return c, out, nil
}

func (t tree) collect(p *policy, c *closure, file string, out *findings) error {
	if _, done := c.texts[file]; done {
		return nil
	}
	text, err := t.readText(file)
	if err != nil {
		return err
	}
	c.texts[file] = text
	code := stripComments(strings.ReplaceAll(text, "\\\n", ""))
	for _, name := range volatile.FindAllString(code, -1) {
		out.add(file, "%s is not reproducible by construction", name)
	}
	for _, m := range directive.FindAllStringSubmatch(code, -1) {
		name := target.FindStringSubmatch(m[2])
		if m[1] != "include" || name == nil {
			out.add(file, "#%s %s: computed and special includes are not reproducible by construction", m[1], m[2])
			continue
		}
		include := name[1] + name[2]
		next, err := p.resolve(include, name[2] != "")
		if err != nil {
			out.add(file, "%v", err)
			continue
		}
		if err := t.collect(p, c, next, out); err != nil {
			out.add(file, "#include of a file that cannot be read: %v", err)
			continue
		}
		c.headers[include] = c.texts[next]
		if name[2] != "" && !slices.Contains(c.external, next) {
			c.external = append(c.external, next)
		}
	}
	return nil
}

// resolve maps an include to a file. One folder holds all own headers, so that
// the name in the source is the name that the compiler is given.
func (p *policy) resolve(include string, angled bool) (string, error) {
	if !angled {
		if include != path.Clean(include) || path.IsAbs(include) || strings.HasPrefix(include, "../") {
			return "", fmt.Errorf("#include %q: write the path relative to %s", include, kernelDir)
		}
		return path.Join(kernelDir, include), nil
	}
	for _, e := range p.External {
		if e.Include == include {
			return e.Path, nil
		}
	}
	return "", fmt.Errorf("#include <%s>: not declared as an external header in %s", include, policyPath)
}

// stripComments replaces comments by spaces and keeps line ends and literals.
func stripComments(text string) string {
	out := []byte(text)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "//"):
			end := endOf(text, i, "\n") // the line end itself stays
			blank(i, end)
			i = end
		case strings.HasPrefix(text[i:], "/*"):
			end := endOf(text, i+2, "*/")
			blank(i, end)
			i = end
		case text[i] == '"' || (text[i] == '\'' && (i == 0 || !isWord(text[i-1]))):
			i = literalEnd(text, i)
		default:
			i++
		}
	}
	return string(out)
}

func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// endOf is the index behind the next occurrence of mark from i on, or the end
// of the text.
func endOf(text string, i int, mark string) int {
	n := strings.Index(text[i:], mark)
	if n < 0 {
		return len(text)
	}
	return i + n + len(mark)
}

// literalEnd is the index behind the literal that starts at i; a line end
// closes an unterminated one.
func literalEnd(text string, i int) int {
	quote := text[i]
	for i++; i < len(text) && text[i] != '\n'; i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return min(i, len(text))
}
