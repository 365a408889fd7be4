package audit

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/raymux/raymux/ptx/manifest"
)

const (
	ptxImport = "github.com/raymux/raymux/ptx"
	entryType = "Entry"
)

// launch is one ptx.Entry declaration.
type launch struct {
	file         string // with the line
	module, name string
	params       string // name of the struct, "" for struct{}
	layout       *types.Struct
}

// checkLaunches compares the Go program table with the manifest: every
// declared launch must find its kernel with the same parameter block, and
// every kernel its launch.
func (t tree) checkLaunches(m *manifest.Manifest) (out findings, err error) {
	packages := map[string][]string{} // folder: files
	users := map[string]bool{}
	err = t.walk(func(name string) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		dir := path.Dir(name)
		packages[dir] = append(packages[dir], name)
		text, err := t.readText(name)
		if strings.Contains(text, strconv.Quote(ptxImport)) {
			users[dir] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	launched := map[string]bool{}
	for dir := range users {
		list, bad, err := t.launches(packages[dir])
		if err != nil {
			return nil, err
		}
		out = append(out, bad...)
		for _, l := range list {
			launched[l.module+" "+l.name] = true
			out = append(out, l.check(m)...)
		}
	}
	for _, mod := range m.Modules {
		for _, e := range mod.Entries {
			if !launched[mod.Name+" "+e] {
				out.add(mod.Source, "module %s: entry %s differs from the Go program table: no ptx.Entry declares it", mod.Name, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

// launches reads the declarations of one folder. External test packages share
// it, so files are grouped by package name.
func (t tree) launches(files []string) (list []launch, out findings, err error) {
	fset := token.NewFileSet()
	groups := map[string][]*ast.File{}
	for _, name := range files {
		text, err := t.readText(name)
		if err != nil {
			return nil, nil, err
		}
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			out.add(name, "cannot be parsed: %v", err)
			continue
		}
		groups[f.Name.Name] = append(groups[f.Name.Name], f)
	}
	for name, group := range groups {
		scope := declarations(fset, name, group)
		for _, f := range group {
			r := reader{fset: fset, scope: scope, local: importName(f)}
			if r.local == "" {
				continue
			}
			ast.Inspect(f, r.visit)
			list, out = append(list, r.list...), append(out, r.out...)
		}
	}
	return list, out, nil
}

// noImports makes every import fail, so that the check needs no other
// package: parameter structs consist of fixed-size numbers and of each other.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) {
	return nil, errors.New("not resolved")
}

// declarations resolves the package's own types and constants. Errors are
// expected, since imports stay unresolved.
func declarations(fset *token.FileSet, name string, files []*ast.File) *types.Scope {
	cfg := types.Config{Importer: noImports{}, Error: func(error) {}, Sizes: sizes, IgnoreFuncBodies: true}
	pkg, _ := cfg.Check(name, fset, files, nil)
	return pkg.Scope()
}

// sizes are those of every 64-bit platform that has a GPU driver.
var sizes = types.SizesFor("gc", "amd64")

func importName(f *ast.File) string {
	for _, i := range f.Imports {
		if i.Path.Value == strconv.Quote(ptxImport) {
			if i.Name != nil {
				return i.Name.Name
			}
			return path.Base(ptxImport)
		}
	}
	return ""
}

// reader collects the declarations of one file.
type reader struct {
	fset  *token.FileSet
	scope *types.Scope
	local string // the file's name for package ptx
	// listed are variables that range over ptx.Entries, whose values exist.
	listed []string
	list   []launch
	out    findings
}

func (r *reader) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if index, ok := n.Type.(*ast.IndexExpr); ok && r.isPtx(index.X, entryType) {
			r.entry(n, index.Index)
		}
		if index, ok := elementType(n.Type).(*ast.IndexExpr); ok && r.isPtx(index.X, entryType) {
			r.bad(n, "declare each ptx.Entry as a value of its own, not inside an untyped list")
		}
	case *ast.RangeStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && r.isPtx(call.Fun, "Entries") {
			if id, ok := n.Value.(*ast.Ident); ok {
				r.listed = append(r.listed, id.Name)
			}
		}
	case *ast.CallExpr:
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Function" && len(n.Args) == 1 {
			r.function(n)
		}
	}
	return true
}

// function refuses kernels named by anything but an entry's Name or the
// manifest itself. Tests may name what does not exist.
func (r *reader) function(call *ast.CallExpr) {
	if strings.HasSuffix(r.fset.Position(call.Pos()).Filename, "_test.go") {
		return
	}
	switch arg := call.Args[0].(type) {
	case *ast.SelectorExpr:
		if arg.Sel.Name == "Name" {
			return
		}
	case *ast.Ident:
		if slices.Contains(r.listed, arg.Name) {
			return
		}
	}
	r.bad(call, "a kernel is launched that differs from the Go program table: use the Name of a ptx.Entry")
}

func elementType(t ast.Expr) ast.Expr {
	switch t := t.(type) {
	case *ast.ArrayType:
		return t.Elt
	case *ast.MapType:
		return t.Value
	}
	return nil
}

func (r *reader) isPtx(e ast.Expr, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == r.local
}

func (r *reader) bad(n ast.Node, format string, args ...any) {
	p := r.fset.Position(n.Pos())
	r.out.add(p.Filename, "line %d: %s", p.Line, fmt.Sprintf(format, args...))
}

func (r *reader) entry(lit *ast.CompositeLit, param ast.Expr) {
	p := r.fset.Position(lit.Pos())
	l := launch{file: p.Filename}
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			r.bad(lit, "ptx.Entry: write the fields with their names")
			return
		}
		key, ok := kv.Key.(*ast.Ident)
		if !ok {
			continue // the Go compiler refuses it
		}
		value, ok := r.text(kv.Value)
		if !ok {
			r.bad(kv, "ptx.Entry: the value must be a string constant of this package")
			return
		}
		switch key.Name {
		case "Module":
			l.module = value
		case "Name":
			l.name = value
		}
	}
	switch param := param.(type) {
	case *ast.StructType:
		if len(param.Fields.List) == 0 {
			l.layout = types.NewStruct(nil, nil)
		}
	case *ast.Ident:
		if obj, ok := r.scope.Lookup(param.Name).(*types.TypeName); ok {
			l.params = param.Name
			l.layout, _ = obj.Type().Underlying().(*types.Struct)
		}
	}
	if l.layout == nil {
		r.bad(lit, "ptx.Entry: the type argument must be struct{} or a struct declared in this package")
		return
	}
	r.list = append(r.list, l)
}

// text evaluates a string literal or a constant of the package.
func (r *reader) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		if c, ok := r.scope.Lookup(e.Name).(*types.Const); ok && c.Val().Kind() == constant.String {
			return constant.StringVal(c.Val()), true
		}
	}
	return "", false
}
