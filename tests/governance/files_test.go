package governance_test

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type importSpec = ast.ImportSpec

const root = "../.."

// longest is the most lines a file written by hand may have.
const longest = 900

// walk visits the Go and CUDA sources of a tree.
func walk(t *testing.T, dir string, visit func(path string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != dir || d.Name() == "testdata" || d.Name() == "artifacts") {
			return filepath.SkipDir
		}
		switch filepath.Ext(path) {
		case ".go", ".cu", ".cuh":
			visit(path)
		}
		return nil
	}))
}

func tooLong(t *testing.T, dir string) (bad []string) {
	walk(t, dir, func(path string) {
		if strings.HasPrefix(filepath.Base(path), "zz_") {
			return
		}
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		n := 0
		for s := bufio.NewScanner(f); s.Scan(); {
			n++
		}
		if n > longest {
			bad = append(bad, path)
		}
	})
	return bad
}

// undocumented lists packages without a package comment.
func undocumented(t *testing.T, dir string) (bad []string) {
	documented := map[string]bool{}
	walk(t, dir, func(path string) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		require.NoError(t, err)
		d := filepath.Dir(path)
		documented[d] = documented[d] || f.Doc != nil
	})
	for d, ok := range documented {
		if !ok {
			bad = append(bad, d)
		}
	}
	return bad
}

func TestFiles(t *testing.T) {
	require.Empty(t, tooLong(t, root))
	require.Empty(t, undocumented(t, root))
}

func TestFileRulesNotice(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n"+strings.Repeat("\n", longest)), 0o644))
	require.NotEmpty(t, tooLong(t, dir))
	require.NotEmpty(t, undocumented(t, dir))
}
