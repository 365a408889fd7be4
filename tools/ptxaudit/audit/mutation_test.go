package audit

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/ptx/manifest"
)

// canned stands in for the compiler: it returns texts written by hand and
// remembers what it was given.
type canned struct {
	ptx, layout string
	library     string
	programs    []Program
}

func (c *canned) Toolchain() (library, builtins string) {
	return digest("library" + c.library), digest("builtins")
}

func (c *canned) Compile(programs []Program) ([]string, error) {
	c.programs = append(c.programs, programs...)
	texts := make([]string, len(programs))
	for i, p := range programs {
		texts[i] = c.ptx
		if strings.Contains(p.Source, layoutName) {
			texts[i] = c.layout
		}
	}
	return texts, nil
}

func newCanned(t *testing.T) *canned {
	return &canned{ptx: readFile(t, "testdata/compiled/box.ptx"), layout: readFile(t, "testdata/compiled/layout.ptx")}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

// repository is a temporary copy of the fixture.
type repository struct {
	*testing.T
	root string
}

func newRepository(t *testing.T) repository {
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS("testdata/repo")))
	return repository{t, root}
}

func (r repository) path(name string) string { return filepath.Join(r.root, filepath.FromSlash(name)) }

func (r repository) write(name, text string) {
	r.Helper()
	require.NoError(r, os.MkdirAll(path.Dir(r.path(name)), 0o755))
	require.NoError(r, os.WriteFile(r.path(name), []byte(text), 0o644))
}

// replace edits a file; the text to replace must be there.
func (r repository) replace(name, from, to string) {
	r.Helper()
	text := readFile(r.T, r.path(name))
	require.Contains(r, text, from)
	r.write(name, strings.Replace(text, from, to, 1))
}

// toggle changes one random byte.
func (r repository) toggle(name string) {
	data := []byte(readFile(r.T, r.path(name)))
	data[rand.IntN(len(data))] ^= 1
	r.write(name, string(data))
}

func (r repository) update(cc Compiler) {
	r.Helper()
	_, err := Update(r.root, cc)
	require.NoError(r, err)
}

func (r repository) check() []Finding {
	r.Helper()
	_, found, err := Check(r.root)
	require.NoError(r, err)
	return found
}

// refused asserts that the check names the file and says why.
func (r repository) refused(file, text string) {
	r.Helper()
	found := r.check()
	for _, f := range found {
		if strings.Contains(f.File, file) && strings.Contains(f.Text, text) {
			return
		}
	}
	assert.Failf(r, "not refused", "no finding for %s with %q among %v", file, text, found)
}

func TestFixtureIsAccepted(t *testing.T) {
	r := newRepository(t)
	cc := newCanned(t)
	r.update(cc)
	n, found, err := Check(r.root)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Empty(t, found)

	// Nothing but the declared closure and options reaches the compiler.
	require.Len(t, cc.programs, 2)
	first := cc.programs[0]
	assert.Equal(t, "box.cu", first.Name)
	assert.Equal(t, readFile(t, "testdata/repo/ptx/kernels/box.cu"), first.Source)
	assert.Equal(t, map[string]string{
		"ray.cuh": readFile(t, "testdata/repo/ptx/kernels/ray.cuh"),
		"vec.h":   readFile(t, "testdata/repo/ptx/external/vec.h"),
	}, first.Headers)
	assert.Equal(t, []string{"--gpu-architecture=compute_75", "-std=c++17", "--fmad=false", "--ftz=false",
		"--prec-div=true", "--prec-sqrt=true", "--maxrregcount=64"}, first.Options)

	m, err := manifest.Parse([]byte(readFile(t, r.path(manifestPath))))
	require.NoError(t, err)
	mod := m.Module("box")
	require.NotNil(t, mod)
	assert.Equal(t, []string{"box_test", "idle"}, mod.Entries)
	assert.Equal(t, []string{"_optix_get_launch_index_x"}, mod.Imports)
	assert.Equal(t, []manifest.External{{Origin: "example toolkit 1.2", Path: "ptx/external/vec.h",
		SHA256: digest(readFile(t, "testdata/repo/ptx/external/vec.h"))}}, m.External)
	assert.Equal(t, manifest.Params{Entry: "box_test", Struct: "BoxParams", Bytes: 40, Fields: []manifest.Field{
		{Name: "boxes", Offset: 0, Bytes: 8, Kind: "pointer"},
		{Name: "count", Offset: 8, Bytes: 8, Kind: "uint"},
		{Name: "range.begin", Offset: 16, Bytes: 4, Kind: "int"},
		{Name: "range.end", Offset: 20, Bytes: 4, Kind: "int"},
		{Name: "scale", Offset: 24, Bytes: 12, Kind: "float"},
		{Name: "flags", Offset: 36, Bytes: 4, Kind: "int"},
	}}, mod.Params[0])
}

// Every edit of files that the check exists to catch.
func TestEditsAreRefused(t *testing.T) {
	const (
		cu     = "ptx/kernels/box.cu"
		cuh    = "ptx/kernels/ray.cuh"
		vec    = "ptx/external/vec.h"
		ptx    = "ptx/box.ptx"
		launch = "launch/launch.go"
	)
	swap := func(file, from, to string) func(repository) {
		return func(r repository) { r.replace(file, from, to) }
	}
	for _, c := range []struct {
		name       string
		edit       func(repository)
		file, text string
	}{
		{"byte of a source", func(r repository) { r.toggle(cu) }, cu, "module box: "},
		{"byte of a header", swap(cuh, "begin, end", "begin, enD"), cuh, "module box: stale"},
		{"byte of an external header", swap(vec, "102", "103"), vec, "module box: stale"},
		{"new include", func(r repository) {
			r.write("ptx/kernels/new.cuh", "\n")
			r.replace(cu, "#include", "#include \"new.cuh\"\n#include")
		}, "ptx/kernels/new.cuh", "module box: closure changed"},
		{"new include in a header", func(r repository) {
			r.write("ptx/kernels/new.cuh", "\n")
			r.replace(cuh, "struct", "#  include \"new.cuh\"\nstruct")
		}, "ptx/kernels/new.cuh", "module box: closure changed"},
		{"new include of a missing file", swap(cu, "#include", "#include \"gone.cuh\"\n#include"), cu, "gone.cuh"},
		{"removed include", swap(cu, "#include \"ray.cuh\"", ""), cuh, "module box: closure changed"},
		{"removed external include", swap(cu, "#include <vec.h>", ""), vec, "closure changed"},
		{"undeclared external include", swap(cu, "<vec.h>", "<cuda.h>"), cu, "not declared as an external header"},
		{"include above the kernels", swap(cu, "\"ray.cuh\"", "\"../ray.cuh\""), cu, "relative to ptx/kernels"},

		{"module edited", func(r repository) { r.replace(ptx, "add.s32", "sub.s32") }, ptx, "digest"},
		{"module with CRLF", func(r repository) {
			r.write(ptx, strings.ReplaceAll(readFile(t, r.path(ptx)), "\n", "\r\n"))
		}, ptx, ""},
		{"module added", func(r repository) { r.write("ptx/more.ptx", readFile(t, r.path(ptx))) }, "ptx/more.ptx", "orphan"},
		{"module deleted", func(r repository) { require.NoError(t, os.Remove(r.path(ptx))) }, ptx, "missing"},
		{"module behind a link", func(r repository) {
			require.NoError(t, os.Rename(r.path(ptx), r.path("elsewhere")))
			require.NoError(t, os.Symlink(r.path("elsewhere"), r.path(ptx)))
		}, ptx, "not a regular file"},
		{"source behind a link", func(r repository) {
			require.NoError(t, os.Rename(r.path(cuh), r.path("elsewhere")))
			require.NoError(t, os.Symlink(r.path("elsewhere"), r.path(cuh)))
		}, cu, "not a regular file"},
		{"module no text", func(r repository) { r.write(ptx, "") }, ptx, "not a readable PTX text"},

		{"option in the policy only", swap(policyPath, "maxrregcount=64", "maxrregcount=32"), manifestPath, "differs from policy"},
		{"option in the manifest only", swap(manifestPath, "maxrregcount=64", "maxrregcount=32"), manifestPath, "differs from policy"},
		{"architecture in the policy only", swap(policyPath, "compute_75", "compute_80"), manifestPath, "differs from policy"},
		{"architecture in the manifest only", swap(manifestPath, "compute_75", "compute_80"), manifestPath, "differs from policy"},
		{"undeclared option", swap(manifestPath, `"-std=c++17",`, `"-std=c++17", "-extra",`), manifestPath, "differs from policy"},
		{"profile edited", swap(policyPath, "ftz=false", "ftz=true"), policyPath, "numeric profile"},
		{"profile shortened", swap(policyPath, `, "--prec-sqrt=true"`, ""), policyPath, "numeric profile"},
		{"module leaves the profile", swap(policyPath, "--maxrregcount=64", "-fm"+"ad=true"), policyPath, "leaves the numeric profile"},
		{"fast math", swap(policyPath, "--maxrregcount=64", "-use_fast"+"_math"), policyPath, "leaves the numeric profile"},
		{"line table", swap(policyPath, "--maxrregcount=64", "-lineinfo"), policyPath, "not reproducible by construction"},
		{"debug code", swap(policyPath, "--maxrregcount=64", "-G"), policyPath, "not reproducible by construction"},
		{"flag in a script", func(r repository) { r.write(".ci/run", "nvcc --fm"+"ad=true x.cu\n") }, ".ci/run", "numeric compiler option"},
		{"flag in a program", func(r repository) {
			r.write("tools/x.go", "package x\n\nvar o = []string{\"-f"+"tz=true\"}\n")
		}, "tools/x.go", "line 3: numeric compiler option"},
		{"flag in a workflow", func(r repository) { r.write(".github/workflows/x.yml", "run: nvcc -prec"+"-div=false\n") },
			".github/workflows/x.yml", "numeric compiler option"},

		{"date", swap(cu, "work(p);", "work(p, __DATE__);"), cu, "not reproducible by construction"},
		{"time", swap(cuh, "int begin", "// x\nint t = __TIME__; int begin"), cuh, "not reproducible by construction"},
		{"file", swap(cu, "work(p);", "work(__FILE__);"), cu, "not reproducible by construction"},
		{"timestamp", swap(cu, "work(p);", "work(__TIMESTAMP__);"), cu, "not reproducible by construction"},
		{"counter", swap(cu, "work(p);", "work(__COUNT\\\nER__);"), cu, "not reproducible by construction"},
		{"computed include", swap(cu, "#include \"ray.cuh\"", "#define RAY \"ray.cuh\"\n#include RAY"), cu, "computed"},

		{"launch of an unknown kernel", swap(launch, `"box_test"`, `"box_tests"`), launch, "entry set differs"},
		{"launch from an unknown module", swap(launch, `"box"`, `"boxes"`), launch, "entry set differs"},
		{"launch removed", swap(launch, "idleKernel = ptx.Entry[struct{}]{Module: module, Name: \"idle\"}",
			"idleKernel struct{ Name string }"), cu, "entry idle differs from the Go program table"},
		{"launch by a literal", swap(launch, "idleKernel.Name", `"idle"`), launch, "line 29: a kernel is launched"},
		{"launch by a variable", swap(launch, "m.Function(idleKernel.Name)", "m.Function(name)"), launch, "line 29: a kernel is launched"},
		{"entries in a list", swap(launch, "const module", "var all = []ptx.Entry[boxParams]{{Module: module}}\n\nconst module"),
			launch, "value of its own"},
		{"module by a call", swap(launch, "Module: module, Name: \"idle\"", "Module: f(), Name: \"idle\""), launch, "string constant"},
		{"entry without field names", swap(launch, "Module: module, Name: \"idle\"", "module, \"idle\""), launch, "with their names"},
		{"struct of another package", swap(launch, "ptx.Entry[struct{}]", "ptx.Entry[other.T]"), launch, "declared in this package"},
		{"struct without type", swap(launch, "ptx.Entry[struct{}]", "ptx.Entry[int]"), launch, "declared in this package"},

		{"struct too large", swap(launch, "Flags int32", "Flags, More int32"), launch, "ABI mismatch: boxParams of kernel box_test: 48 bytes"},
		{"struct too small", swap(launch, "\tFlags int32\n", ""), launch, "5 fields"},
		{"fields swapped", swap(launch, "Begin, End", "End, Begin"), launch, "field Range.End"},
		{"field of another kind", swap(launch, "Flags int32", "Flags float32"), launch, "field Flags is float"},
		{"field of another size", swap(launch, "Scale [3]float32", "Scale [2]float32"), launch, "field Scale"},
		{"field of platform size", swap(launch, "Flags int32", "Flags int"), launch, "fixed-size numbers"},
		{"pointer field", swap(launch, "Boxes uint64", "Boxes *float32"), launch, "fixed-size numbers"},
		{"struct of another name", swap(launch, "ptx.Entry[boxParams]", "ptx.Entry[span]"), launch, `takes a "BoxParams"`},
		{"parameters for a kernel without", swap(launch, "ptx.Entry[struct{}]", "ptx.Entry[span]"), launch, "0"},

		{"recorded size edited", swap(manifestPath, `"bytes": 40`, `"bytes": 48`), ptx, "recorded one of 48 bytes"},
		{"recorded entry edited", swap(manifestPath, `"idle"`, `"idles"`), ptx, "exports"},
		{"recorded field edited", swap(manifestPath, `"name": "flags"`, `"name": "flag"`), manifestPath, "parameter structs"},
		{"recorded struct edited", swap(manifestPath, "BoxParams", "BoxParam"), manifestPath, "parameter structs"},
		{"recorded text size edited", swap(manifestPath, `"isa_version": "8.0"`, `"isa_version": "7.8"`), manifestPath, "PTX is"},
		{"recorded compiler edited", swap(manifestPath, `"nvrtc": "12.0.140"`, `"nvrtc": "12.0.76"`), manifestPath, "toolchain"},
		{"compiler digest dropped", swap(manifestPath, digest("builtins"), ""), manifestPath, "toolchain"},
		{"program name edited", swap(manifestPath, `"program_name": "box.cu"`, `"program_name": "a.cu"`), manifestPath, "compiled as"},
		{"manifest reformatted", swap(manifestPath, "\n", "\n\n"), manifestPath, "edited by hand"},
		{"module undeclared", swap(policyPath, `"name": "box"`, `"name": "boxes"`), manifestPath, "not declared"},
		{"module not compiled", swap(policyPath, `"modules": [`,
			`"modules": [{"name": "two", "source": "ptx/kernels/two.cu"},`), manifestPath, "module two of the policy is missing"},
		{"module declared twice", swap(policyPath, `"modules": [`,
			`"modules": [{"name": "box", "source": "ptx/kernels/box.cu"},`), policyPath, "declared twice"},
		{"source elsewhere", swap(policyPath, "ptx/kernels/box.cu", "ptx/box.cu"), policyPath, "not a .cu file"},
		{"conservative without reason", swap(policyPath, "widened by more than its error", ""), policyPath, "a reason"},
		{"conservative function gone", swap(policyPath, `"cull"`, `"culls"`), policyPath, "no such function"},
		{"import no longer declared", swap(policyPath, "_optix_get_launch_index_x", "_optix_get_launch_index_y"), ptx, "ABI: calls _optix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepository(t)
			r.update(newCanned(t))
			require.Empty(t, r.check())
			c.edit(r)
			r.refused(c.file, c.text)
		})
	}
}

// Folders that git ignores are nobody's source.
func TestScratchIsPassedOver(t *testing.T) {
	r := newRepository(t)
	r.update(newCanned(t))
	for _, folder := range []string{"artifacts", ".carry", ".venv"} {
		r.write(folder+"/x.sh", "nvcc --fm"+"ad=true x.cu\n")
		r.write(folder+"/launch.go", "not even Go\n")
	}
	require.Empty(t, r.check())
	const elsewhere = "tools/artifacts/x.sh"
	r.write(elsewhere, "nvcc --fm"+"ad=true x.cu\n")
	r.refused(elsewhere, "numeric compiler option")
}

// Texts that a compiler could produce from a changed source: the manifest is
// in order, and the policy is not kept.
func TestCompiledTextsAreRefused(t *testing.T) {
	const add, inFunction = "add.rn.f32 	%f4", "mul.f32 	%f3"
	for _, c := range []struct{ name, from, to, text string }{
		{"newer ISA", ".version 8.0", ".version 8.1", "policy: .version 8.1"},
		{"much newer ISA", ".version 8.0", ".version 10.0", "policy: .version 10.0"},
		{"no version", ".version 8.0", ".version next", "policy: .version next"},
		{"newer target", "sm_75", "sm_80", "policy: .target sm_80"},
		{"older target", "sm_75", "sm_70", "policy: .target sm_70"},
		{"narrow addresses", "_size 64", "_size 32", "policy: .address_size 32"},
		{"another compiler", "V12.0.140", "V12.0.76", "12.0.76"},
		{"no kernel", ".visible .entry", ".func", "no kernel"},
		{"entry renamed", "entry idle()", "entry idle2()", ""},
		{"parameter widened", "box_test_param_0[40]", "box_test_param_0[48]", "takes 1 parameters of 48 bytes"},
		{"two parameters", "box_test_param_0[40]", "box_test_param_0[32],\n\t.param .u64 more", "takes 2 parameters"},
		{"bare add", add, "add.f32 	%f4", "line 60, function box_test: add.f32"},
		{"bare sub", add, "sub.f32 	%f4", "sub.f32"},
		{"bare mul", add, "mul.f32 	%f4", "mul.f32"},
		{"bare f64", add, "add.f64 	%f4", "add.f64"},
		{"other rounding", add, "add.rz.f32 	%f4", "add.rz.f32"},
		{"fma without rounding", "fma.rn.f32", "fma.f32", "fma.f32"},
		{"mad without rounding", "fma.rn.f32", "mad.f32", "mad.f32"},
		{"division", "div.rn.f32", "div.full.f32", "div.full.f32"},
		{"approximate division", "div.rn.f32", "div.approx.f32", "div.approx.f32"},
		{"approximate root", "sqrt.rn.f32", "sqrt.approx.f32", "sqrt.approx.f32"},
		{"approximate function", add, "ex2.approx.f32 	%f4", "ex2.approx.f32"},
		{"flush", add, "add.rn.ftz.f32 	%f4", "flushes subnormals"},
		{"flush in a conservative function", inFunction, "mul.ftz.f32 	%f3", "function cull: mul.ftz.f32 flushes"},
		{"flush in a conversion", add, "cvt.rni.ftz.f32.f32 	%f4", "flushes subnormals"},
		{"float atomic", add, "atom.global.add.f32 	%f4", "order that scheduling decides"},
		{"import", "_optix_get_launch_index_x", "_optix_trace_7", "ABI: calls _optix_trace_7"},
		{"library call", "\tcull,", "\tvprintf,", "ABI: calls vprintf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepository(t)
			r.update(newCanned(t))
			cc := newCanned(t)
			require.Contains(t, cc.ptx, c.from)
			cc.ptx = strings.ReplaceAll(cc.ptx, c.from, c.to)
			if _, err := Update(r.root, cc); err != nil {
				// Refused even earlier, with the source named.
				assert.ErrorContains(t, err, "ptx/kernels/box.cu")
				return
			}
			r.refused("ptx/box.ptx", c.text)
		})
	}
}

// Float atomics need a declaration with a reason, and a declaration needs float atomics.
func TestFloatAtomicsException(t *testing.T) {
	r := newRepository(t)
	r.replace(policyPath, `"options": ["--maxrregcount=64"]`, `"float_atomics": "what exact sums are compared with"`)
	r.update(newCanned(t))
	r.refused(policyPath, "float_atomics of module box: it has none")
	cc := newCanned(t)
	cc.ptx = strings.ReplaceAll(cc.ptx, "add.rn.f32 	%f4", "atom.global.add.f32 	%f4")
	r.update(cc)
	require.Empty(t, r.check())
	cc.ptx = strings.ReplaceAll(cc.ptx, "fma.rn.f32", "fma.f32")
	r.update(cc)
	r.refused("ptx/box.ptx", "fma.f32 has no explicit .rn rounding")
}

// A program that takes the names from the manifest cannot name a wrong kernel.
func TestLaunchOfListedEntries(t *testing.T) {
	r := newRepository(t)
	r.update(newCanned(t))
	r.replace("launch/launch.go", "\treturn m.Function(idleKernel.Name)",
		"\tfor _, e := range ptx.Entries(module) {\n\t\t_ = m.Function(e)\n\t}\n\treturn nil")
	assert.Empty(t, r.check())
}

func TestDeclaredExceptionsAreAccepted(t *testing.T) {
	r := newRepository(t)
	r.replace(policyPath, `"options": ["--maxrregcount=64"]`, `"isa_version": "8.3", "isa_reason": "measured gain"`)
	cc := newCanned(t)
	cc.ptx = strings.Replace(cc.ptx, ".version 8.0", ".version 8.3", 1)
	r.update(cc)
	assert.Empty(t, r.check())
	r.replace(policyPath, "measured gain", "")
	r.refused(policyPath, "isa_reason")
}

// A checkout that converts line ends changes nothing, neither for the check
// nor for the compiler.
func TestLineEnds(t *testing.T) {
	r := newRepository(t)
	r.update(newCanned(t))
	for _, name := range []string{"ptx/kernels/box.cu", "ptx/kernels/ray.cuh", "ptx/external/vec.h", manifestPath, policyPath, "launch/launch.go"} {
		r.write(name, strings.ReplaceAll(readFile(t, r.path(name)), "\n", "\r\n"))
	}
	assert.Empty(t, r.check())
	cc := newCanned(t)
	r.update(cc)
	assert.NotContains(t, cc.programs[0].Source, "\r")
}

func TestUpdateRemovesModulesOfNoPolicy(t *testing.T) {
	r := newRepository(t)
	r.write("ptx/old.ptx", "")
	r.update(newCanned(t))
	assert.NoFileExists(t, r.path("ptx/old.ptx"))
	left, err := fs.Glob(os.DirFS(r.path("ptx")), ".ptxaudit-*")
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestRebuild(t *testing.T) {
	setup := func(t *testing.T) repository {
		r := newRepository(t)
		r.update(newCanned(t))
		return r
	}
	t.Run("reproduced", func(t *testing.T) {
		found, err := Rebuild(setup(t).root, newCanned(t))
		require.NoError(t, err)
		assert.Empty(t, found)
	})
	t.Run("another library", func(t *testing.T) {
		cc := newCanned(t)
		cc.library = "other"
		found, err := Rebuild(setup(t).root, cc)
		require.NoError(t, err)
		require.Len(t, found, 1)
		assert.Contains(t, found[0].String(), "nothing was rebuilt")
		assert.Empty(t, cc.programs, "compiled with another library")
	})
	t.Run("comment header differs", func(t *testing.T) {
		cc := newCanned(t)
		cc.ptx = strings.Replace(cc.ptx, "CL-32267302", "CL-32267303", 1)
		found, err := Rebuild(setup(t).root, cc)
		require.NoError(t, err)
		require.NotEmpty(t, found)
		assert.Equal(t, "ptx/box.ptx: not reproduced: line 4 differs", found[0].String())
	})
	t.Run("layout differs", func(t *testing.T) {
		cc := newCanned(t)
		cc.layout = strings.Replace(cc.layout, "{40,", "{48,", 1)
		found, err := Rebuild(setup(t).root, cc)
		require.NoError(t, err)
		require.Len(t, found, 1)
		assert.Equal(t, manifestPath, found[0].File)
	})
	t.Run("module missing", func(t *testing.T) {
		r := setup(t)
		require.NoError(t, os.Remove(r.path("ptx/box.ptx")))
		found, err := Rebuild(r.root, newCanned(t))
		require.NoError(t, err)
		require.NotEmpty(t, found)
		assert.Contains(t, found[0].String(), "ptx/box.ptx: missing")
	})
}
