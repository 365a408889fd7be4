package governance

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the import path of the repository.
const Module = "github.com/raymux/raymux"

// Purego is the one package through which shared libraries are called.
const Purego = "github.com/ebitengine/purego"

// Package is what `go list -deps -json` says about one package.
type Package struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string // transitive
	CgoFiles   []string
}

// mayImport lists, for every library package, which of our other packages it
// may import. A package that is not listed is a program, an example or a
// test, and may import anything that is public.
var mayImport = map[string][]string{
	"ptx":                {"ptx/manifest"},
	"ptx/manifest":       {},
	"chunked":            {},
	"offload":            {"chunked"},
	"cuda/cuapi":         {},
	"cuda/dl":            {},
	"cuda/wrap":          {"cuda/cuapi"},
	"cuda/emu/vm":        {},
	"cuda/emu":           {"cuda/cuapi", "cuda/emu/vm"},
	"cuda":               {"cuda/cuapi", "cuda/dl", "cuda/emu"},
	"cuda/nccl":          {"cuda", "cuda/cuapi", "cuda/dl"},
	"cuda/mpi":           {"cuda/dl"},
	"optixabi":           {"cuda/dl"},
	"optixabi/fakeoptix": {"cuda/dl", "optixabi"},
	"scene":              {"cuda", "cuda/cuapi", "optixabi", "ptx"},
	"multi":              {"cuda", "cuda/cuapi", "cuda/nccl", "scene", "chunked", "offload", "ptx"},
	"tests/oracle":       {},
}

// unsafeOK lists the packages in which unsafe may appear. In scene it is one
// file only, see OneUnsafeFile.
var unsafeOK = []string{"cuda", "cuda/dl", "cuda/emu", "cuda/emu/vm", "cuda/nccl", "cuda/mpi", "optixabi", "optixabi/fakeoptix", "scene"}

// outside lists the foreign modules that a library package may depend on.
var outside = []string{Purego, "golang.org/x/sys"}

// noPurego lists packages that must stay free of purego, because importing it
// makes a binary need a program interpreter.
var noPurego = []string{"ptx", "ptx/manifest", "chunked", "offload", "cuda/cuapi", "cuda/wrap", "cuda/emu", "cuda/emu/vm", "tools/ptxaudit/audit", "tests/oracle"}

// CheckImports returns every violation of the import rules, sorted.
func CheckImports(pkgs []Package) []string {
	var bad []string
	report := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	for _, p := range pkgs {
		name, ours := local(p.ImportPath)
		if !ours {
			continue
		}
		if len(p.CgoFiles) > 0 || slices.Contains(p.Imports, "C") {
			report("%s: imports \"C\"", name)
		}
		if slices.Contains(p.Imports, "unsafe") && !slices.Contains(unsafeOK, name) {
			report("%s: imports unsafe", name)
		}
		if name != "cuda/dl" && slices.ContainsFunc(p.Imports, isPurego) {
			report("%s: imports purego, only cuda/dl may", name)
		}
		if slices.Contains(noPurego, name) && slices.ContainsFunc(p.Deps, isPurego) {
			report("%s: depends on purego", name)
		}
		allowed, library := mayImport[name]
		if !library {
			continue
		}
		for _, imp := range p.Imports {
			if dep, ours := local(imp); ours && !slices.Contains(allowed, dep) {
				report("%s: may not import %s", name, dep)
			}
		}
		for _, dep := range p.Deps {
			if _, ours := local(dep); ours || isStandard(dep) {
				continue
			}
			if !slices.ContainsFunc(outside, func(o string) bool { return dep == o || strings.HasPrefix(dep, o+"/") }) {
				report("%s: depends on %s, libraries depend on purego and golang.org/x/sys only", name, dep)
			}
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

// CheckListed returns the library packages that no rule covers: a new
// top-level package must be given its place first.
func CheckListed(pkgs []Package) []string {
	var bad []string
	for _, p := range pkgs {
		name, ours := local(p.ImportPath)
		if !ours || name == "" {
			continue
		}
		top, _, _ := strings.Cut(name, "/")
		if slices.Contains([]string{"bench", "tools", "examples", "tests"}, top) {
			continue
		}
		if _, ok := mayImport[name]; !ok {
			bad = append(bad, name+": no import rule, add it to mayImport")
		}
	}
	slices.Sort(bad)
	return bad
}

// Scratch reports whether a package lies in the folder artifacts, which git
// ignores: whatever runs left there is not the repository's.
func Scratch(path string) bool {
	name, ours := local(path)
	top, _, _ := strings.Cut(name, "/")
	return ours && top == "artifacts"
}

func local(path string) (string, bool) {
	if path == Module {
		return "", true
	}
	return strings.CutPrefix(path, Module+"/")
}

func isPurego(path string) bool { return path == Purego || strings.HasPrefix(path, Purego+"/") }

// isStandard holds for the standard library: its paths have no dot in the
// first element.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
