package audit

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/ptx/manifest"
)

func TestStripComments(t *testing.T) {
	for in, want := range map[string]string{
		"a // b\nc":              "a     \nc",
		"a /* b\nc */ d":         "a     \n     d",
		`s = "// no"; // yes`:    `s = "// no";       `,
		`s = "\"/*"; /* x */ t`:  `s = "\"/*";         t`,
		`c = '"'; // q`:          `c = '"';     `,
		"n = 1'000; // digits":   "n = 1'000;          ",
		"open /* never closed":   "open                ",
		"text \"open\nnext // x": "text \"open\nnext     ",
		"/":                      "/",
		"":                       "",
	} {
		assert.Equal(t, want, stripComments(in), "%q", in)
	}
}

func TestParsePTX(t *testing.T) {
	p, err := parsePTX(readFile(t, "testdata/compiled/box.ptx"))
	require.NoError(t, err)
	assert.Equal(t, "8.0", p.isaVersion)
	assert.Equal(t, "sm_75", p.target)
	assert.Equal(t, 64, p.addressSize)
	assert.Equal(t, "12.0.140", p.compiler)
	require.Len(t, p.functions, 3)
	assert.Equal(t, "cull", p.functions[0].name)
	assert.False(t, p.functions[0].entry)
	entries := p.entries()
	require.Len(t, entries, 2)
	assert.Equal(t, []int{40}, entries[0].paramBytes)
	assert.Empty(t, entries[1].paramBytes)

	var ops []string
	for _, s := range entries[0].statements {
		ops = append(ops, s.opcode)
	}
	assert.Equal(t, []string{"ld.param.v2.f32", "call", "setp.ne.s32", "bra", "st.param.f32", "call.uni", "ld.param.f32",
		"add.rn.f32", "fma.rn.f32", "div.rn.f32", "sqrt.rn.f32", "add.s32", "ret"}, ops)
}

func TestParsePTXRefuses(t *testing.T) {
	const head = ".version 8.0\n.target sm_75\n.address_size 64\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "0 .version"},
		{"two versions", head + ".version 7.0\n", "2 .version"},
		{"no target", ".version 8.0\n.address_size 64\n", "0 .target"},
		{"open function", head + ".visible .entry k() { ret;", "k is not closed"},
		{"extra brace", head + ".visible .entry k() { ret; } }", "line 4: unexpected closing brace"},
		{"statement without end", head + ".visible .entry k()\n{\nret }", "line 6"},
		{"open initialiser", head + ".global .b8 x[2] = {1, 2", "unclosed"},
		{"parameter form", head + ".entry k(.param .texref t)\n{ ret; }", "unknown form"},
	} {
		_, err := parsePTX(c.text)
		assert.ErrorContains(t, err, c.want, c.name)
	}
}

// Damaged texts may be refused or not, but never end in a panic.
func TestParsePTXSurvivesDamage(t *testing.T) {
	whole := readFile(t, "testdata/compiled/box.ptx")
	for range 3000 {
		b := []byte(whole)[:rand.IntN(len(whole)+1)]
		for range rand.IntN(4) {
			if len(b) > 0 {
				b[rand.IntN(len(b))] = "{}();\"\n:,@/*%."[rand.IntN(14)]
			}
		}
		if p, err := parsePTX(string(b)); err == nil {
			_ = p.imports()
		}
	}
}

func TestImports(t *testing.T) {
	const head = ".version 8.0\n.target sm_75\n.address_size 64\n"
	p, err := parsePTX(head + `.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.func own() { ret; }
.visible .entry k()
{
	call.uni own;
	call own, ();
	call (%r1), _optix_b, (%r2);
	@%p1 call.uni (r), vprintf, (a, b);
L: call _optix_a, ();
	call (%r1), %rd4, (a), proto;
	callee.x zero;
}`)
	require.NoError(t, err)
	assert.Equal(t, []string{"%rd4", "_optix_a", "_optix_b", "vprintf"}, p.imports())
}

func TestArithmetic(t *testing.T) {
	for _, op := range []string{"add.rn.f32", "sub.rn.f64", "mul.rn.f32", "fma.rn.f64", "div.rn.f64", "sqrt.rn.f32",
		"add.s32", "mul.wide.u32", "mul.lo.s64", "mad.lo.s32", "div.u32", "sub.u64", "atom.global.add.u64", "red.global.add.s32",
		"min.f32", "setp.lt.f32", "cvt.rn.f32.u32", "cvt.rzi.s32.f32", "neg.f32", "selp.f32", "ld.global.f32", "rcp.rn.f32"} {
		assert.Empty(t, arithmetic(op, false), op)
	}
	for _, op := range []string{"add.f32", "sub.f32", "mul.f32", "fma.f32", "div.f32", "sqrt.f32", "add.f64", "sub.f64",
		"mul.f64", "fma.f64", "div.f64", "sqrt.f64", "add.rz.f32", "mul.rm.f32", "add.sat.f32", "mad.f32", "rcp.f32", "add.f16",
		"div.approx.f32", "div.full.f32", "sqrt.approx.f32", "rsqrt.approx.f32", "sin.approx.f32", "rcp.approx.ftz.f64"} {
		assert.NotEmpty(t, arithmetic(op, false), op)
	}
	for _, op := range []string{"add.f32", "mul.rm.f32", "rcp.approx.f32", "div.full.f32"} {
		assert.Empty(t, arithmetic(op, true), op)
	}
	for _, op := range []string{"add.ftz.f32", "rcp.approx.ftz.f32", "atom.add.f64", "red.global.add.f32"} {
		assert.NotEmpty(t, arithmetic(op, true), op)
	}
}

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		have, limit string
		want        bool
	}{
		{"8.0", "8.0", false}, {"7.8", "8.0", false}, {"8.1", "8.0", true}, {"9.0", "8.5", true},
		{"10.0", "9.9", true}, {"7.10", "8.0", false}, {"8", "8.0", true}, {"x.y", "8.0", true}, {"8.0", "", true},
	} {
		assert.Equal(t, c.want, newer(c.have, c.limit), c)
	}
}

func TestKernelParameters(t *testing.T) {
	s := cStructs{stripComments(`
extern "C" __global__ void a(const AParams p) {}
extern "C" __global__ void __launch_bounds__(128, 4) b(const __grid_constant__ struct BParams p);
extern "C" __global__ __launch_bounds__(BLOCK) void c(CParams const p) {}
extern "C" __global__ void d() {}
extern "C" __global__ void e(void) {}
extern "C" __global__ void f(float *x) {}
extern "C" __global__ void g(AParams p, int n) {}
extern "C" __global__ void
h(AParams
  p) {}
// __global__ void gone(AParams p) {}
`)}
	for kernel, want := range map[string]string{"a": "AParams", "b": "BParams", "c": "CParams", "d": "", "e": "", "h": "AParams"} {
		have, err := s.param(kernel)
		require.NoError(t, err, kernel)
		assert.Equal(t, want, have, kernel)
	}
	for kernel, want := range map[string]string{"f": "one struct by value", "g": "one struct by value", "gone": "no definition"} {
		_, err := s.param(kernel)
		assert.ErrorContains(t, err, want, kernel)
	}
}

func TestStructFields(t *testing.T) {
	s := cStructs{stripComments(`
struct Inner { float x, y; int n[2]; };
struct alignas(16) Outer {
    const float *__restrict__ p, *q;  // two pointers
    unsigned long long count;
    Inner in, more;
    const struct Inner *list;
    Inner pair[2];
    float m[3][4], z;
};
struct Method { int f() const; };
struct Bits { int a : 3; };
struct Sum { union { int a; float b; }; };
struct Preset { int a = 1; };
struct Odd { int; };
`)}
	have, err := s.fields("Outer")
	require.NoError(t, err)
	assert.Equal(t, []string{"p", "q", "count", "in.x", "in.y", "in.n", "more.x", "more.y", "more.n", "list", "pair", "m", "z"}, have)
	for _, name := range []string{"Method", "Bits", "Sum", "Preset"} {
		_, err := s.fields(name)
		assert.ErrorContains(t, err, "plain fields only", name)
	}
	_, err = s.fields("Odd")
	assert.ErrorContains(t, err, "cannot read")
	_, err = s.fields("Nowhere")
	assert.ErrorContains(t, err, "not defined")
}

func TestReadLayout(t *testing.T) {
	params := func() []manifest.Params {
		return []manifest.Params{{Entry: "none"}, {Entry: "k", Struct: "P", Fields: []manifest.Field{{Name: "a"}}}}
	}
	want := []manifest.Field{{Name: "a", Offset: 0, Bytes: 4, Kind: "float"}}
	// 0x7261796d7578 as bytes from the lowest up: 78 75 6d 79 61 72.
	for _, text := range []string{
		".global .align 8 .u64 raymux_layout_1[5] = {4, 0, 4, 1, 125762974610808};",
		".global .align 8 .b8 raymux_layout_1[40] = {4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, " +
			"1, 0, 0, 0, 0, 0, 0, 0, 120, 117, 109, 121, 97, 114, 0, 0};",
	} {
		p := params()
		require.NoError(t, readLayout(text, p))
		assert.Equal(t, 4, p[1].Bytes)
		assert.Equal(t, want, p[1].Fields)
	}
	for text, want := range map[string]string{
		"": "did not state",
		".global .align 8 .u64 raymux_layout_1[4] = {4, 0, 4, 1};":                         "did not state",
		".global .align 8 .u64 raymux_layout_1[5] = {4, 0, 4, 0, 125762974610808};":        "no number",
		".global .align 8 .u64 raymux_layout_1[5] = {4, symbol, 4, 1, 125762974610808};":   "layout word",
		".global .align 8 .u64 raymux_layout_0[5] = {4, 0, 4, 1, 125762974610808};":        "did not state",
		".global .align 8 .u64 raymux_layout_1[6] = {4, 0, 4, 1, 125762974610808, 0};":     "did not state",
		strings.Repeat(".global .align 8 .b32 raymux_layout_1[1] = {125762974610808};", 2): "did not state",
	} {
		assert.ErrorContains(t, readLayout(text, params()), want, text)
	}
}
