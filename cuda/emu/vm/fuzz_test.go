package vm

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzLoad feeds arbitrary text: Load must answer with a program or a *LoadError, and what loads must
// end well or with a fault. Some seeds are large, so run it with -fuzzminimizetime=10x.
func FuzzLoad(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.ptx")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(b)
		}
	}
	head := ".version 8.0\n.target sm_75\n.address_size 64\n"
	for _, s := range []string{"", ".version", head + ".visible .entry k(){ret;}", head + ".entry k(.param .u32 a){.reg .b32 %r<3>;ld.param.u32 %r1,[a];{.reg .pred p;setp.eq.s32 p,%r1,0;@p bra L;L:}ret;}",
		head + ".global .u64 x[3]={1,generic(x)+8};", head + ".func (.param .b32 r) f(.param .b32 a){ret;}", head + ".extern .shared .align 16 .b8 s[];",
		head + ".entry k(){.reg .b32 %r<4>;t: .branchtargets A,B;brx.idx %r1,t;A:B:exit;}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := Load(src)
		if err != nil {
			var le *LoadError
			require.True(t, errors.As(err, &le))
			require.Positive(t, le.Line)
			return
		}
		for _, k := range p.Kernels() {
			runAny(t, p, k)
		}
	})
}

// runAny launches a kernel with zeros as parameters, for a moment.
func runAny(t *testing.T, p *Program, k *Kernel) {
	mem := NewMemory("device 0", rigBase, 1<<40)
	l := Launch{Kernel: k, Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{33, 1, 1}, DynShared: 64, Params: make([]byte, k.ParamSize),
		Spaces: []*Memory{mem}, Globals: map[string]uint64{}, RaceCheck: true, Cancel: new(atomic.Bool), Workers: 1}
	next := uint64(rigBase)
	for _, g := range p.Globals() {
		if g.Size > 1<<20 {
			return
		}
		_, err := mem.Map(next, max(g.Size, 1), MapOptions{Written: true})
		require.NoError(t, err)
		l.Globals[g.Name] = next
		next += alignUp(g.Size+256, 256)
	}
	defer time.AfterFunc(10*time.Millisecond, func() { l.Cancel.Store(true) }).Stop()
	l.Run()
}

func TestLoadErrors(t *testing.T) {
	head := ".version 8.0\n.target sm_75\n.address_size 64\n"
	for _, tc := range []struct {
		src, opcode, msg string
		line             int
	}{
		{"hello", "hello", "a module begins with .version", 1},
		{head + ".wrong x;", ".wrong", "unknown directive", 4},
		{head + ".entry k(){\n.reg .b32 %r<3>;\nfrobnicate.u32 %r1, %r2;\n}", "frobnicate.u32", "unknown instruction", 6},
		{head + ".entry k(){\n.reg .b32 %r<3>;\nadd.u32.fast %r1, %r2, %r2;\n}", "add.u32.fast", "unknown modifier .fast", 6},
		{head + ".entry k(){\n.reg .b32 %r<3>;\n\n\nadd.f16 %r1, %r2, %r2;\n}", "add.f16", "type .f16 is not supported here", 8},
		{head + ".entry k(){\n.reg .b32 %r<3>;\nadd.u32 %r1, %r2, %r3;\n}", "add.u32", "unknown name %r3", 6},
		{head + ".entry k(){\n.reg .b32 %r<3>; .reg .b64 %d<2>;\nadd.u64 %d1, %d0, %r1;\n}", "add.u64", "%r1 has 32 bits, the operand 64", 6},
		{head + ".entry k(){\nbra nowhere;\n}", "bra", "unknown label nowhere", 5},
		{head + ".entry k(){\n.reg .b32 %r<3>;\nredux.sync.add.s32 %r1, %r2, -1;\n}", "redux.sync.add.s32", "unknown instruction", 6},
		{head + ".entry k(){\n.reg .f32 %f<3>;\ndiv.f32 %f1, %f2, %f2;\n}", "div.f32", "needs a rounding mode", 6},
		{head + ".entry k(){", "", "expected a statement, found \"end of text\"", 4},
		{head + ".global .u32 x = \"a\";", "", "expected a number", 4},
		{head + ".entry k(){\n/* open", "", "comment is not closed", 5},
		{head + ".func f();\n.entry k(){\ncall f;\n}", "call", "function f has no body", 6},
	} {
		_, err := Load([]byte(tc.src))
		var le *LoadError
		require.ErrorAs(t, err, &le, tc.src)
		require.Equal(t, tc.line, le.Line, err)
		require.Equal(t, tc.opcode, le.Opcode, err)
		require.Contains(t, le.Msg, tc.msg)
	}
}

func BenchmarkLoad(b *testing.B) {
	src, err := os.ReadFile("testdata/math.ptx")
	require.NoError(b, err)
	b.SetBytes(int64(len(src)))
	for range b.N {
		_, err := Load(src)
		require.NoError(b, err)
	}
}
