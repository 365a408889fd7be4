package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/ptx/manifest"
	"github.com/raymux/raymux/tools/ptxaudit/audit"
)

const repoRoot = "../.."

// launches reports whether a folder's Go files use package ptx.
func launches(t *testing.T, dir string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		if bytes.Contains(data, []byte(`"github.com/raymux/raymux/ptx"`)) {
			return true
		}
	}
	return false
}

// copyOfRepository copies what the audit compares: package ptx and the Go code
// that launches its kernels.
func copyOfRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	err := filepath.WalkDir(repoRoot, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(repoRoot, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || rel == "artifacts") {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(root, rel), 0o755)
		}
		owned := strings.HasPrefix(filepath.ToSlash(rel), "ptx/")
		if !owned && filepath.Ext(rel) != ".go" {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !owned && !launches(t, filepath.Dir(name)) {
			return nil
		}
		return os.WriteFile(filepath.Join(root, rel), data, 0o644)
	})
	require.NoError(t, err)
	return root
}

func readManifest(t *testing.T, root string) *manifest.Manifest {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "ptx", "manifest.json"))
	require.NoError(t, err)
	m, err := manifest.Parse(data)
	require.NoError(t, err)
	return m
}

// edit changes committed files for the length of a call.
func edit(t *testing.T, root string, files []string, change func([]byte) []byte, look func(found []audit.Finding)) {
	t.Helper()
	old := map[string][]byte{}
	for _, file := range files {
		name := filepath.Join(root, filepath.FromSlash(file))
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		old[name] = data
		require.NoError(t, os.WriteFile(name, change(bytes.Clone(data)), 0o644))
	}
	_, found, err := audit.Check(root)
	require.NoError(t, err)
	look(found)
	for name, data := range old {
		require.NoError(t, os.WriteFile(name, data, 0o644))
	}
}

// The committed tree is in order, and one bit in any file of any module is
// seen and named: in all files at once, and in some of them alone.
func TestCommittedModules(t *testing.T) {
	root := copyOfRepository(t)
	n, found, err := audit.Check(root)
	require.NoError(t, err)
	require.Empty(t, found)
	m := readManifest(t, repoRoot)
	require.Len(t, m.Modules, n)

	all, sources := map[string]bool{}, map[string]bool{}
	for _, mod := range m.Modules {
		all[mod.PTX.Path] = true
		for _, s := range mod.Sources {
			all[s.Path], sources[s.Path] = true, true
		}
	}
	edit(t, root, slices.Sorted(maps.Keys(sources)), func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) },
		func(found []audit.Finding) { assert.Empty(t, found, "line ends") })

	files := slices.Sorted(maps.Keys(all))
	sets := [][]string{files}
	for range 3 {
		sets = append(sets, []string{files[rand.IntN(len(files))]})
	}
	flip := func(b []byte) []byte { b[rand.IntN(len(b))] ^= 1; return b }
	for _, set := range sets {
		edit(t, root, set, flip, func(found []audit.Finding) {
			named := map[string]bool{}
			for _, f := range found {
				named[f.File] = true
			}
			for _, file := range set {
				assert.True(t, named[file], "a changed bit of %s gave %v", file, found)
			}
		})
	}
}

func runTool(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, &out, &err)
	return code, out.String(), err.String()
}

func TestExitStatus(t *testing.T) {
	empty := t.TempDir()
	otherLibrary := t.TempDir()
	for _, f := range []string{libraryFile, builtinsFile} {
		require.NoError(t, os.WriteFile(filepath.Join(otherLibrary, f), []byte("not the pinned one"), 0o644))
	}
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		output string
	}{
		{"check", []string{"-root", repoRoot, "check"}, 0, "claim level: identity"},
		{"no command", nil, 2, "ptxaudit: no command\nusage: ptxaudit [flags] check"},
		{"unknown command", []string{"-root", repoRoot, "verify"}, 2, "ptxaudit: unknown command \"verify\"\nusage: ptxaudit"},
		{"flags behind the command", []string{"rebuild", "-nvrtc", empty}, 2, "flags come before the command: ptxaudit -nvrtc " + empty + " rebuild\nusage"},
		{"two commands", []string{"check", "rebuild"}, 2, "found \"rebuild\" behind the command check\nusage"},
		{"unknown flag", []string{"-x"}, 2, "usage"},
		{"help", []string{"-h"}, 0, "usage: ptxaudit"},
		{"no repository", []string{"-root", empty, "check"}, 1, "ptx/policy.json"},
		{"rebuild without compiler", []string{"-root", repoRoot, "-nvrtc", empty, "rebuild"}, 3, "nothing was rebuilt: docs/ptx.md has the command that installs"},
		{"update without compiler", []string{"-root", repoRoot, "-nvrtc", empty, "update"}, 3, "nothing was rebuilt"},
		{"rebuild with another compiler", []string{"-root", repoRoot, "-nvrtc", otherLibrary, "rebuild"}, 1, "nothing was rebuilt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := runTool(c.args...)
			assert.Equal(t, c.code, code)
			assert.Contains(t, stdout+stderr, c.output)
			if c.code != 0 {
				assert.NotContains(t, stdout, "claim level")
			}
		})
	}
}

// The folder that is asked for by name wins, and is the only one tried.
func TestLocate(t *testing.T) {
	install := func(dir, text string) string {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		for _, f := range []string{libraryFile, builtinsFile} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte(f+text), 0o644))
		}
		return dir
	}
	root := t.TempDir()
	wheel := install(filepath.Join(root, ".venv", "lib", "python3.11", "site-packages", "nvidia", "cuda_nvrtc", "lib"), "wheel")
	env, flag, empty := install(t.TempDir(), "env"), install(t.TempDir(), "flag"), t.TempDir()
	for _, c := range []struct{ name, env, flag, want string }{
		{"wheel", "", "", wheel}, {"variable", env, "", env}, {"flag", env, flag, flag},
		{"empty variable folder", empty, "", ""}, {"empty flag folder", env, empty, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("RAYMUX_NVRTC", c.env)
			cc, err := locate(root, c.flag)
			if c.want == "" {
				require.ErrorIs(t, err, errNoCompiler)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, cc.dir)
			for have, file := range map[string]string{cc.library: libraryFile, cc.builtin: builtinsFile} {
				data, err := os.ReadFile(filepath.Join(c.want, file))
				require.NoError(t, err)
				assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256(data)), have)
			}
		})
	}
}

// The check must stay usable where no library can be loaded.
func TestAuditLinksNoLoader(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "github.com/raymux/raymux/tools/ptxaudit",
		"github.com/raymux/raymux/tools/ptxaudit/audit", "github.com/raymux/raymux/ptx").Output()
	require.NoError(t, err)
	assert.NotContains(t, string(out), "purego")
	assert.NotContains(t, string(out), "raymux/cuda")
}

// pinned finds the compiler, which continuous integration installs.
func pinned(t *testing.T) *toolchain {
	t.Helper()
	cc, err := locate(repoRoot, "")
	if err != nil {
		t.Skipf("nothing is compiled in this test: %v", err)
	}
	return cc
}

// No file but the given headers is seen: NVRTC by itself would find one in the
// working folder.
func TestCompilationIsHermetic(t *testing.T) {
	cc := pinned(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "near.cuh"), []byte("#define N 1\n"), 0o644))
	options := readManifest(t, repoRoot).Modules[0].Options
	t.Chdir(dir)
	t.Setenv("CPATH", dir)
	program := audit.Program{Name: "x.cu", Options: options,
		Source: "#include \"near.cuh\"\nextern \"C\" __global__ void k(int *p) { *p = N; }\n"}
	_, err := cc.Compile([]audit.Program{program})
	require.ErrorContains(t, err, "open source file \"near.cuh\"")

	program.Headers = map[string]string{"near.cuh": "#define N 77\n"}
	texts, err := cc.Compile([]audit.Program{program})
	require.NoError(t, err)
	assert.Regexp(t, `mov\.u32\s+%r\d+, 77;`, texts[0])
}

// What the compiler says of a struct is what C's rules of layout say, and it says so
// every time. (Every committed module is rebuilt by the command itself.)
func TestLayoutByTheCompiler(t *testing.T) {
	cc := pinned(t)
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS("audit/testdata/repo")))
	source := filepath.Join(root, "ptx", "kernels", "box.cu")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	text = bytes.Replace(text, []byte("work(p);"), []byte("*(volatile int *)p.boxes = p.flags;"), 1)
	require.NoError(t, os.WriteFile(source, text, 0o644))
	_, err = audit.Update(root, cc)
	require.NoError(t, err)
	found, err := audit.Rebuild(root, cc)
	require.NoError(t, err)
	assert.Empty(t, found)
	assert.Equal(t, manifest.Params{Entry: "box_test", Struct: "BoxParams", Bytes: 40, Fields: []manifest.Field{
		{Name: "boxes", Offset: 0, Bytes: 8, Kind: "pointer"},
		{Name: "count", Offset: 8, Bytes: 8, Kind: "uint"},
		{Name: "range.begin", Offset: 16, Bytes: 4, Kind: "int"},
		{Name: "range.end", Offset: 20, Bytes: 4, Kind: "int"},
		{Name: "scale", Offset: 24, Bytes: 12, Kind: "float"},
		{Name: "flags", Offset: 36, Bytes: 4, Kind: "int"},
	}}, readManifest(t, root).Modules[0].Params[0])
}
