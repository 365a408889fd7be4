package governance_test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/raymux/raymux/tests/governance"
	"github.com/stretchr/testify/require"
)

// goList runs go list.
func goList(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		t.Fatalf("go list: %s", ee.Stderr)
	}
	require.NoError(t, err)
	return string(out)
}

// owned lists the packages of the module except those in the scratch folder,
// which need not even compile. Go itself passes over folders that begin with a
// dot.
func owned(t *testing.T, flags ...string) (list []string) {
	t.Helper()
	for path := range strings.FieldsSeq(goList(t, append(flags, "-e", governance.Module+"/...")...)) {
		if !governance.Scratch(path) {
			list = append(list, path)
		}
	}
	return list
}

// list describes the packages of the module and whatever they depend on.
func list(t *testing.T, flags ...string) []governance.Package {
	t.Helper()
	args := append([]string{"-deps", "-json=ImportPath,Standard,Imports,Deps,CgoFiles"}, flags...)
	out := goList(t, append(args, owned(t, flags...)...)...)
	var pkgs []governance.Package
	dec := json.NewDecoder(strings.NewReader(out))
	for {
		var p governance.Package
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
		pkgs = append(pkgs, p)
	}
	require.Greater(t, len(pkgs), 10, "go list found next to nothing")
	return pkgs
}

func TestImports(t *testing.T) {
	pkgs := list(t)
	require.Empty(t, governance.CheckImports(pkgs))
	require.Empty(t, governance.CheckListed(pkgs))
}

// With the nocuda tag nothing depends on purego, so the binary is static.
func TestNoCUDA(t *testing.T) {
	for _, p := range list(t, "-tags", "nocuda") {
		require.False(t, strings.HasPrefix(p.ImportPath, governance.Purego), "%s is still there with -tags nocuda", p.ImportPath)
	}
}

// Each rule must notice the fault it exists for.
func TestImportRulesNotice(t *testing.T) {
	m := governance.Module
	pkg := func(path string, imports ...string) governance.Package {
		return governance.Package{ImportPath: m + "/" + path, Imports: imports, Deps: imports}
	}
	require.Empty(t, governance.CheckImports([]governance.Package{pkg("scene", "fmt", m+"/cuda"), pkg("cuda/dl", governance.Purego, "unsafe")}))
	for name, p := range map[string]governance.Package{
		"C":           pkg("cuda", "C"),
		"cgo files":   {ImportPath: m + "/cuda", CgoFiles: []string{"x.go"}},
		"unsafe":      pkg("multi", "unsafe"),
		"purego":      pkg("scene", governance.Purego),
		"upwards":     pkg("cuda", m+"/scene"),
		"sideways":    pkg("ptx", m+"/cuda"),
		"pure":        pkg("chunked", m+"/cuda/dl"),
		"foreign":     pkg("multi", "github.com/stretchr/testify/require"),
		"deep purego": {ImportPath: m + "/chunked", Deps: []string{governance.Purego + "/internal/x"}},
	} {
		require.NotEmpty(t, governance.CheckImports([]governance.Package{p}), name)
	}
	require.NotEmpty(t, governance.CheckListed([]governance.Package{pkg("newthing")}))
	require.Empty(t, governance.CheckListed([]governance.Package{pkg("tools/newthing")}))
}

func TestScratch(t *testing.T) {
	for path, want := range map[string]bool{
		"artifacts": true, "artifacts/x": true, "artifactsx": false, "tools/artifacts": false, "scene": false,
	} {
		require.Equal(t, want, governance.Scratch(governance.Module+"/"+path), path)
	}
	require.False(t, governance.Scratch("example.org/artifacts"))
}

// unsafeFiles lists the non-test files below dir that import unsafe.
func unsafeFiles(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		ast, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ImportsOnly)
		require.NoError(t, err)
		if slices.ContainsFunc(ast.Imports, func(i *importSpec) bool { return i.Path.Value == `"unsafe"` }) {
			out = append(out, f)
		}
	}
	return out
}

func TestSceneHasAtMostOneUnsafeFile(t *testing.T) {
	require.LessOrEqual(t, len(unsafeFiles(t, "../../scene")), 1)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\nimport \"unsafe\"\nvar _ unsafe.Pointer\n"), 0o644))
	require.Len(t, unsafeFiles(t, dir), 1)
}
