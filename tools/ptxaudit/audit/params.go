package audit

import (
	"fmt"
	"regexp"
	"strings"
)

// cStructs finds names in CUDA C++ sources: which struct a kernel takes, and
// which fields a struct has. Sizes and offsets are the compiler's to say; this
// reader only has to know what to ask for (layout.go), and refuses forms that
// it does not understand.
type cStructs struct {
	code string // all files of a closure without comments
}

func newCStructs(c *closure) cStructs {
	var b strings.Builder
	for _, p := range c.paths() {
		b.WriteString(stripComments(c.texts[p]))
		b.WriteByte('\n')
	}
	return cStructs{b.String()}
}

var (
	kernelTag = regexp.MustCompile(`__global__\s+(?:__launch_bounds__\s*\([^()]*\)\s*)?void\s+` +
		`(?:__launch_bounds__\s*\([^()]*\)\s*)?(\w+)\s*\(([^)]*)\)`)
	kernelParam = regexp.MustCompile(`^\s*(?:(?:const|struct|__grid_constant__)\s+)*(\w+)\s+` +
		`(?:(?:const|__grid_constant__)\s+)*\w+\s*$`)
	structTag = regexp.MustCompile(`\bstruct\s+(?:(?:alignas|__align__)\s*\(\s*\w+\s*\)\s*)?(\w+)\s*\{`)
	arrayTag  = regexp.MustCompile(`\[[^\]]*\]`)
)

var launchParamsTag = regexp.MustCompile(`__constant__\s+(\w+)\s+` + launchParams + `\s*;`)

// param returns the struct that a kernel takes, or "" for none. That of a ray
// generation program is the type of the constant block.
func (s cStructs) param(kernel string) (string, error) {
	if program, raygen := deviceProgram(kernel); program {
		m := launchParamsTag.FindStringSubmatch(s.code)
		switch {
		case !raygen:
			return "", nil
		case m == nil:
			return "", fmt.Errorf("no definition `__constant__ T %s;` found for %s", launchParams, kernel)
		}
		return m[1], nil
	}
	for _, m := range kernelTag.FindAllStringSubmatch(s.code, -1) {
		if m[1] != kernel {
			continue
		}
		list := strings.TrimSpace(m[2])
		if list == "" || list == "void" {
			return "", nil
		}
		p := kernelParam.FindStringSubmatch(list)
		if p == nil {
			return "", fmt.Errorf("kernel %s takes (%s); it must take one struct by value, or nothing", kernel, list)
		}
		return p[1], nil
	}
	return "", fmt.Errorf("no definition `__global__ void %s(...)` found", kernel)
}

// fields lists a struct's fields in order; nested structs are resolved to
// dotted names, arrays stay one field.
func (s cStructs) fields(name string) ([]string, error) {
	body, ok := s.body(name)
	if !ok {
		return nil, fmt.Errorf("struct %s is not defined in the sources", name)
	}
	if strings.ContainsAny(body, "(){}:=") {
		return nil, fmt.Errorf("struct %s may hold plain fields only: no functions, bit fields, unions or initialisers", name)
	}
	var list []string
	for _, decl := range strings.Split(body, ";") {
		decl = strings.TrimSpace(decl)
		if decl == "" {
			continue
		}
		var typ string
		for i, d := range strings.Split(decl, ",") {
			array := arrayTag.MatchString(d)
			words := strings.Fields(strings.ReplaceAll(arrayTag.ReplaceAllString(d, ""), "*", " * "))
			if len(words) == 0 || i == 0 && len(words) < 2 {
				return nil, fmt.Errorf("struct %s: cannot read the field %q", name, decl)
			}
			field := words[len(words)-1]
			pointer := strings.Contains(d, "*")
			if i == 0 {
				typ = words[0]
				if typ == "const" || typ == "struct" {
					typ = words[1]
				}
			}
			if _, nested := s.body(typ); !nested || pointer || array {
				list = append(list, field)
				continue
			}
			inner, err := s.fields(typ)
			if err != nil {
				return nil, err
			}
			for _, f := range inner {
				list = append(list, field+"."+f)
			}
		}
	}
	return list, nil
}

func (s cStructs) body(name string) (string, bool) {
	for _, m := range structTag.FindAllStringSubmatchIndex(s.code, -1) {
		if s.code[m[2]:m[3]] != name {
			continue
		}
		depth := 1
		for i := m[1]; i < len(s.code); i++ {
			switch s.code[i] {
			case '{':
				depth++
			case '}':
				if depth--; depth == 0 {
					return s.code[m[1]:i], true
				}
			}
		}
	}
	return "", false
}
