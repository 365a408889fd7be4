package governance_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docLink is [Name] or [Type.Method], as documentation links to what a package has. One letter is a length: [N].
var docLink = regexp.MustCompile(`\[\*?([A-Z]\w+)(?:\.([A-Z]\w*))?\]`)

// deadLinks are the links of a package's comments on top-level declarations, and on itself, that name nothing in it.
func deadLinks(t *testing.T, fset *token.FileSet, path string, files []*ast.File) (dead []string) {
	t.Helper()
	var texts []string
	for _, f := range files { // before doc takes the syntax apart
		texts = append(texts, f.Doc.Text())
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				texts = append(texts, d.Doc.Text())
			case *ast.GenDecl:
				texts = append(texts, d.Doc.Text())
			}
		}
	}
	p, err := doc.NewFromFiles(fset, files, path)
	require.NoError(t, err)
	known := p.Parser().LookupSym
	for _, text := range texts {
		for _, m := range docLink.FindAllStringSubmatch(text, -1) {
			recv, name := m[1], m[2]
			if name == "" {
				recv, name = "", m[1]
			}
			if !known(recv, name) {
				dead = append(dead, m[0])
			}
		}
	}
	return dead
}

func TestDocLinks(t *testing.T) {
	fset := token.NewFileSet()
	parse := func(name string, src any) *ast.File {
		f, err := parser.ParseFile(fset, name, src, parser.ParseComments)
		require.NoError(t, err)
		return f
	}
	made := parse("made.go", "// Package made has [Tea.M], [Tea.Gone], [F], [Lost] and arrays [N].\npackage made\n\n// Tea is.\ntype Tea int\n\n// M is.\nfunc (Tea) M() {}\n\n// F makes [Tea].\nfunc F() {}\n")
	require.Equal(t, []string{"[Tea.Gone]", "[Lost]"}, deadLinks(t, fset, "made", []*ast.File{made}))

	for line := range strings.Lines(goList(t, append([]string{"-f", "{{.ImportPath}} {{.Dir}} {{range .GoFiles}}{{.}} {{end}}"}, owned(t)...)...)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue // tests alone
		}
		var files []*ast.File
		for _, name := range fields[2:] {
			files = append(files, parse(filepath.Join(fields[1], name), nil))
		}
		require.Empty(t, deadLinks(t, fset, fields[0], files), fields[0])
	}
}
