package vm

import (
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// rig is a device with memory for tests.
type rig struct {
	t    testing.TB
	mem  *Memory
	next uint64
	prog *Program
	l    Launch
}

const rigBase = 0x10000000

func newRig(t testing.TB, ptx string) *rig {
	t.Helper()
	p, err := Load([]byte(ptx))
	require.NoError(t, err)
	r := &rig{t: t, mem: NewMemory("device 0", rigBase, 1<<32), next: rigBase, prog: p}
	r.l = Launch{Kernel: p.Kernels()[0], Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1},
		Spaces: []*Memory{r.mem}, Globals: map[string]uint64{}}
	for _, g := range p.Globals() {
		at := r.alloc(max(g.Size, 1), true)
		require.NoError(t, r.mem.Write(at, g.Init))
		r.l.Globals[g.Name] = at
	}
	for _, g := range p.Globals() {
		for _, rel := range g.Relocs {
			v, ok := r.l.Globals[rel.Symbol]
			if !ok {
				v, ok = p.FunctionAddress(rel.Symbol)
			}
			require.True(t, ok)
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], v+uint64(rel.Addend))
			require.NoError(t, r.mem.Write(r.l.Globals[g.Name]+rel.Offset, b[:]))
		}
	}
	return r
}

func rigFile(t testing.TB, name string) *rig {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return newRig(t, string(b))
}

// kernel selects an entry.
func (r *rig) kernel(name string) *rig {
	k, ok := r.prog.Kernel(name)
	require.True(r.t, ok, name)
	r.l.Kernel = k
	return r
}

func (r *rig) alloc(n uint64, written bool) uint64 {
	at := r.next
	_, err := r.mem.Map(at, n, MapOptions{Written: written})
	require.NoError(r.t, err)
	r.next += (n + 511) &^ 255
	return at
}

func bytesOf[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

func upload[T any](r *rig, s []T) uint64 {
	at := r.alloc(uint64(len(bytesOf(s))), false)
	require.NoError(r.t, r.mem.Write(at, bytesOf(s)))
	return at
}

func download[T any](r *rig, at uint64, n int) []T {
	out := make([]T, n)
	require.NoError(r.t, r.mem.Read(at, bytesOf(out)))
	return out
}

// params packs arguments of 4 or 8 bytes by the kernel's layout.
func (r *rig) params(args ...any) {
	r.t.Helper()
	k := r.l.Kernel
	require.Len(r.t, args, len(k.Params))
	b := make([]byte, k.ParamSize)
	for i, a := range args {
		p := k.Params[i]
		n, err := binary.Encode(b[p.Offset:], binary.LittleEndian, a)
		require.NoError(r.t, err)
		require.EqualValues(r.t, p.Size, n)
	}
	r.l.Params = b
}

func (r *rig) run(grid, block uint32, args ...any) (Stats, *Fault) {
	r.t.Helper()
	r.params(args...)
	r.l.Grid, r.l.Block = [3]uint32{grid, 1, 1}, [3]uint32{block, 1, 1}
	return r.l.Run()
}

func (r *rig) mustRun(grid, block uint32, args ...any) Stats {
	r.t.Helper()
	s, f := r.run(grid, block, args...)
	require.Nil(r.t, f)
	return s
}
