package emu_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
)

// bench runs small kernels on one device.
type bench struct {
	t testing.TB
	e *emu.Emulator
}

func newBench(t testing.TB) *bench {
	e, err := emu.New(1)
	require.NoError(t, err)
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	b := &bench{t, e}
	b.ok(e.Init(0))
	c, r := e.DevicePrimaryCtxRetain(0)
	b.ok(r)
	b.ok(e.CtxSetCurrent(c))
	return b
}

func (b *bench) ok(r cuapi.Result) {
	b.t.Helper()
	require.Equal(b.t, cuapi.Success, r, "%v", b.e.LastFault())
}

// run calls entry k of the text on the buffers, which it passes as pointers
// and reads back.
func (b *bench) run(text string, grid, block int, buffers ...[]byte) {
	b.t.Helper()
	log := &cuapi.JITOptions{ErrorLog: make([]byte, 1024)}
	m, r := b.e.ModuleLoadDataEx([]byte(".version 8.0\n.target sm_75\n.address_size 64\n"+text), log)
	require.Equal(b.t, cuapi.Success, r, "%s", log.ErrorLog)
	f, r := b.e.ModuleGetFunction(m, "k")
	b.ok(r)
	var params []byte
	var at []cuapi.DevicePtr
	for _, buf := range buffers {
		p, r := b.e.MemAlloc(uint64(len(buf)))
		b.ok(r)
		b.ok(b.e.MemcpyHtoD(p, buf))
		at = append(at, p)
		params = binary.LittleEndian.AppendUint64(params, uint64(p))
	}
	b.ok(b.e.LaunchKernel(f, cuapi.D1(uint32(grid)), cuapi.D1(uint32(block)), 0, 0, params))
	for i, buf := range buffers {
		b.ok(b.e.MemcpyDtoH(buf, at[i]))
		b.ok(b.e.MemFree(at[i]))
	}
	b.ok(b.e.ModuleUnload(m))
}

// TestConformLoads reads every size and sign, from every space, alone and as
// vectors, and stores what it read.
func TestConformLoads(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(rand.Uint64(), 2))
	const n = 64
	for _, space := range []string{"global", "shared", "local", "generic"} {
		for _, lanes := range []int{1, 2, 4} {
			eachInt(func(w int, s bool) {
				if w*lanes > 128 {
					return
				}
				// Values are widened into 64-bit registers; each is stored whole.
				ty, cell := letter(w, s), w/8*lanes
				regs, vec := "", ""
				for i := range lanes {
					regs += fmt.Sprintf("st.global.u64 [%%dst+%d], %%x%d;\n", 8*i, i)
					vec += fmt.Sprintf(", %%x%d", i)
				}
				vec = vec[2:]
				suffix := ""
				if lanes > 1 {
					suffix, vec = fmt.Sprintf(".v%d", lanes), "{"+vec+"}"
				}
				load := "ld.global" + suffix + "." + ty + " " + vec + ", [%src];\n"
				switch space {
				case "generic":
					load = "ld" + suffix + "." + ty + " " + vec + ", [%src];\n"
				case "shared", "local":
					load = "ld.global" + suffix + "." + ty + " " + vec + ", [%src];\n" +
						"mul.lo.u32 %i, %i, " + fmt.Sprint(cell) + ";\ncvt.u64.u32 %off, %i;\nmov.u64 %base, buf;\nadd.u64 %base, %base, %off;\n" +
						"st." + space + suffix + ".b" + fmt.Sprint(w) + " [%base], " + vec + ";\n" +
						"ld." + space + suffix + "." + ty + " " + vec + ", [%base];\n"
				}
				decl := ""
				if space == "shared" || space == "local" {
					decl = fmt.Sprintf(".%s .align 16 .b8 buf[%d];\n", space, n*cell)
				}
				text := ".visible .entry k(.param .u64 a, .param .u64 o)\n{\n" + decl +
					".reg .b32 %i;\n.reg .b64 %src, %dst, %off, %base;\n.reg .b64 %x<4>;\n" +
					"mov.u32 %i, %tid.x;\nld.param.u64 %src, [a];\nld.param.u64 %dst, [o];\n" +
					fmt.Sprintf("mad.wide.u32 %%src, %%i, %d, %%src;\nmad.wide.u32 %%dst, %%i, %d, %%dst;\n", cell, 8*lanes) +
					load + regs + "ret;\n}\n"
				in, out := make([]byte, n*cell), make([]byte, n*8*lanes)
				for i := range in {
					in[i] = byte(r.Uint32())
				}
				b.run(text, 1, n, in, out)
				for i := range n * lanes {
					var raw [8]byte
					copy(raw[:], in[i*w/8:(i+1)*w/8])
					want := wrap(num(binary.LittleEndian.Uint64(raw[:]), w, s), 64)
					require.Equal(t, want, binary.LittleEndian.Uint64(out[8*i:]), "%s %s element %d", space, ty+suffix, i)
				}
			}, 8, 16, 32, 64)
		}
	}
}

// TestConformAtomics has every thread update one of a few cells. Operations
// commute, so the cells are known; the old values must be a permutation of
// what the cell held on the way, which is checked for the sums of ones.
func TestConformAtomics(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(rand.Uint64(), 3))
	const blocks, threads, cells = 8, 128, 4
	n := blocks * threads
	type atom struct {
		op, ty string
		width  int
		f      func(old, v *big.Int) *big.Int
		signed bool
	}
	pickMin := func(a, v *big.Int) *big.Int {
		if a.Cmp(v) < 0 {
			return a
		}
		return v
	}
	pickMax := func(a, v *big.Int) *big.Int {
		if a.Cmp(v) > 0 {
			return a
		}
		return v
	}
	var list []atom
	for _, w := range []int{32, 64} {
		u, s, bt := letter(w, false), letter(w, true), fmt.Sprintf("b%d", w)
		list = append(list,
			atom{"add", u, w, func(a, v *big.Int) *big.Int { return new(big.Int).Add(a, v) }, false},
			atom{"min", u, w, pickMin, false}, atom{"max", u, w, pickMax, false},
			atom{"min", s, w, pickMin, true}, atom{"max", s, w, pickMax, true},
			atom{"and", bt, w, func(a, v *big.Int) *big.Int { return new(big.Int).And(a, v) }, false},
			atom{"or", bt, w, func(a, v *big.Int) *big.Int { return new(big.Int).Or(a, v) }, false},
			atom{"xor", bt, w, func(a, v *big.Int) *big.Int { return new(big.Int).Xor(a, v) }, false})
	}
	for _, a := range list {
		for _, form := range []string{"atom.global.", "red.global.", "atom.", "atom.relaxed.gpu.global.", "atom.global.sys."} {
			dst := "%old, "
			if form == "red.global." {
				dst = ""
			}
			text := fmt.Sprintf(`.visible .entry k(.param .u64 c, .param .u64 v)
{
.reg .b32 %%i, %%n, %%j;
.reg .b64 %%cell, %%val;
.reg .b%d %%x, %%old;
ld.param.u64 %%cell, [c];
ld.param.u64 %%val, [v];
mov.u32 %%i, %%ctaid.x;
mov.u32 %%n, %%ntid.x;
mov.u32 %%j, %%tid.x;
mad.lo.u32 %%i, %%i, %%n, %%j;
mad.wide.u32 %%val, %%i, 8, %%val;
ld.global.b%d %%x, [%%val];
and.b32 %%j, %%i, %d;
mad.wide.u32 %%cell, %%j, 8, %%cell;
%s%s.%s %s[%%cell], %%x;
ret;
}
`, a.width, a.width, cells-1, form, a.op, a.ty, dst)
			cell, val := make([]byte, 8*cells), make([]byte, 8*n)
			want := make([]*big.Int, cells)
			for i := range want {
				v := r.Uint64() & (^uint64(0) >> (64 - a.width))
				binary.LittleEndian.PutUint64(cell[8*i:], v)
				want[i] = num(v, a.width, a.signed)
			}
			for i := range n {
				v := r.Uint64() & (^uint64(0) >> (64 - a.width))
				if a.op == "and" {
					v |= r.Uint64() | r.Uint64() | r.Uint64() // else all bits vanish
					v &= ^uint64(0) >> (64 - a.width)
				}
				binary.LittleEndian.PutUint64(val[8*i:], v)
				want[i%cells] = num(wrap(a.f(want[i%cells], num(v, a.width, a.signed)), a.width), a.width, a.signed)
			}
			b.run(text, blocks, threads, cell, val)
			for i := range want {
				assert.Equal(t, wrap(want[i], a.width), binary.LittleEndian.Uint64(cell[8*i:]), "%s%s.%s", form, a.op, a.ty)
			}
		}
	}

	// Counting hands out every number once; compare-and-swap loops lose nothing.
	count, tickets := make([]byte, 16), make([]byte, 4*n)
	b.run(`.visible .entry k(.param .u64 c, .param .u64 o)
{
.reg .b32 %i, %n, %j, %old, %new, %seen;
.reg .b64 %cell, %out;
.reg .pred %p;
ld.param.u64 %cell, [c];
ld.param.u64 %out, [o];
mov.u32 %i, %ctaid.x;
mov.u32 %n, %ntid.x;
mov.u32 %j, %tid.x;
mad.lo.u32 %i, %i, %n, %j;
atom.global.add.u32 %old, [%cell], 1;
mad.wide.u32 %out, %i, 4, %out;
st.global.u32 [%out], %old;
ld.volatile.global.u32 %old, [%cell+4];
AGAIN:
add.u32 %new, %old, 3;
atom.global.cas.b32 %seen, [%cell+4], %old, %new;
setp.ne.u32 %p, %seen, %old;
mov.u32 %old, %seen;
@%p bra AGAIN;
atom.global.inc.u32 %old, [%cell+8], 9;
atom.global.exch.b32 %old, [%cell+12], 77;
ret;
}
`, blocks, threads, count, tickets)
	seen := make([]bool, n)
	for i := range n {
		seen[binary.LittleEndian.Uint32(tickets[4*i:])] = true
	}
	assert.NotContains(t, seen, false)
	for i, want := range []uint32{uint32(n), uint32(3 * n), uint32(n % 10), 77} {
		assert.Equal(t, want, binary.LittleEndian.Uint32(count[4*i:]), "cell %d", i)
	}
}

// TestConformWarps exchanges values within warps, some of whose lanes are off.
func TestConformWarps(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(rand.Uint64(), 4))
	const results = 12
	for range 40 {
		active := r.Uint32() | 1<<r.IntN(32)
		if r.IntN(3) == 0 {
			active = ^uint32(0)
		}
		k, v := uint32(r.IntN(32)), make([]uint32, 32)
		in, out := make([]byte, 128), make([]byte, 32*4*results)
		common := r.Uint32N(4)
		for i := range v {
			v[i] = r.Uint32N(4)
			if r.IntN(4) > 0 {
				v[i] = common
			}
			binary.LittleEndian.PutUint32(in[4*i:], v[i])
		}
		mask := fmt.Sprint(active)
		store := func(i int) string { return fmt.Sprintf("st.global.b32 [%%out+%d], %%x;\n", 4*i) }
		flag := "selp.b32 %x, 1, 0, %p;\n"
		text := `.visible .entry k(.param .u64 a, .param .u64 o)
{
.reg .b32 %i, %v, %x, %m;
.reg .b64 %in, %out;
.reg .pred %p, %on;
ld.param.u64 %in, [a];
ld.param.u64 %out, [o];
mov.u32 %i, %laneid;
mad.wide.u32 %in, %i, 4, %in;
mad.wide.u32 %out, %i, ` + fmt.Sprint(4*results) + `, %out;
ld.global.u32 %v, [%in];
mov.u32 %m, 1;
shl.b32 %m, %m, %i;
and.b32 %m, %m, ` + mask + `;
setp.eq.u32 %on, %m, 0;
@%on bra OFF;
` +
			fmt.Sprintf("shfl.sync.idx.b32 %%x|%%p, %%i, %d, 31, %s;\n", k, mask) + store(0) + flag + store(1) +
			fmt.Sprintf("shfl.sync.up.b32 %%x|%%p, %%i, %d, 0, %s;\n", k, mask) + store(2) +
			fmt.Sprintf("shfl.sync.down.b32 %%x|%%p, %%i, %d, 31, %s;\n", k, mask) + store(3) + flag + store(4) +
			fmt.Sprintf("shfl.sync.bfly.b32 %%x, %%i, %d, 31, %s;\n", k, mask) + store(5) +
			"setp.eq.u32 %p, %v, 1;\nvote.sync.ballot.b32 %x, %p, " + mask + ";\n" + store(6) +
			"vote.sync.any.pred %p, %p, " + mask + ";\n" + flag + store(7) +
			"setp.eq.u32 %p, %v, " + fmt.Sprint(common) + ";\nvote.sync.all.pred %p, %p, " + mask + ";\n" + flag + store(8) +
			"match.any.sync.b32 %x, %v, " + mask + ";\n" + store(9) +
			"match.all.sync.b32 %x|%p, %v, " + mask + ";\n" + store(10) +
			"activemask.b32 %x;\n" + store(11) + "OFF:\nret;\n}\n"
		b.run(text, 1, 32, in, out)

		on := func(i int) bool { return active>>i&1 != 0 }
		var ones, equal uint32
		all, same := true, true
		first := bits.TrailingZeros32(active)
		for i := range 32 {
			if !on(i) {
				continue
			}
			if v[i] == 1 {
				ones |= 1 << i
			}
			all = all && v[i] == common
			same = same && v[i] == v[first]
		}
		for i := range 32 {
			got := func(j int) uint32 { return binary.LittleEndian.Uint32(out[4*(results*i+j):]) }
			if !on(i) {
				continue
			}
			// A source that is off has no value; one out of range is the lane itself.
			shuffled := func(j, source int, inRange bool) {
				if !inRange {
					assert.EqualValues(t, i, got(j), "result %d of lane %d", j, i)
				} else if on(source) {
					assert.EqualValues(t, source, got(j), "result %d of lane %d", j, i)
				}
			}
			shuffled(0, int(k), true)
			assert.EqualValues(t, 1, got(1))
			shuffled(2, i-int(k), i >= int(k))
			shuffled(3, i+int(k), i+int(k) < 32)
			assert.EqualValues(t, truth(i+int(k) < 32), got(4))
			shuffled(5, i^int(k), true)
			assert.Equal(t, ones, got(6), "ballot")
			assert.EqualValues(t, truth(ones != 0), got(7), "any")
			assert.EqualValues(t, truth(all), got(8), "all")
			equal = 0
			for j := range 32 {
				if on(j) && v[j] == v[i] {
					equal |= 1 << j
				}
			}
			assert.Equal(t, equal, got(9), "match any")
			if same {
				assert.Equal(t, active, got(10), "match all")
			} else {
				assert.Zero(t, got(10), "match all")
			}
			assert.Equal(t, active, got(11), "activemask")
		}
	}
}

// TestConformDivergence has every lane run a loop of its own length with
// branches and a call inside, and meet the others at a barrier.
func TestConformDivergence(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(rand.Uint64(), 5))
	const blocks, threads = 5, 96
	n := blocks * threads
	in, out := make([]byte, 4*n), make([]byte, 4*n)
	start := make([]uint32, n)
	for i := range start {
		start[i] = 1 + r.Uint32N(5000)
		binary.LittleEndian.PutUint32(in[4*i:], start[i])
	}
	b.run(`.func (.param .b32 res) step(.param .b32 x)
{
.reg .pred %p;
.reg .b32 %m, %x, %r;
ld.param.b32 %x, [x];
and.b32 %m, %x, 1;
setp.eq.u32 %p, %m, 0;
@%p bra EVEN;
mad.lo.u32 %r, %x, 3, 1;
st.param.b32 [res], %r;
ret;
EVEN:
shr.u32 %r, %x, 1;
st.param.b32 [res], %r;
ret;
}
.visible .entry k(.param .u64 a, .param .u64 o)
{
.shared .align 4 .b8 buf[384];
.reg .b32 %i, %n, %j, %x, %count, %s;
.reg .b64 %in, %out;
.reg .pred %p;
ld.param.u64 %in, [a];
ld.param.u64 %out, [o];
mov.u32 %i, %ctaid.x;
mov.u32 %n, %ntid.x;
mov.u32 %j, %tid.x;
mad.lo.u32 %i, %i, %n, %j;
mad.wide.u32 %in, %i, 4, %in;
mad.wide.u32 %out, %i, 4, %out;
ld.global.u32 %x, [%in];
mov.u32 %count, 0;
LOOP:
setp.eq.u32 %p, %x, 1;
@%p bra DONE;
{
.param .b32 arg;
st.param.b32 [arg], %x;
.param .b32 back;
call (back), step, (arg);
ld.param.b32 %x, [back];
}
add.u32 %count, %count, 1;
bra.uni LOOP;
DONE:
mov.u32 %s, buf;
mad.lo.u32 %s, %j, 4, %s;
st.shared.u32 [%s], %count;
bar.sync 0;
sub.u32 %j, 95, %j;
mov.u32 %s, buf;
mad.lo.u32 %s, %j, 4, %s;
ld.shared.u32 %count, [%s];
st.global.u32 [%out], %count;
ret;
}
`, blocks, threads, in, out)
	for i := range n {
		mirror := i/threads*threads + threads - 1 - i%threads
		want := 0
		for x := uint64(start[mirror]); x != 1; want++ {
			if x%2 == 0 {
				x /= 2
			} else {
				x = 3*x + 1
			}
		}
		require.EqualValues(t, want, binary.LittleEndian.Uint32(out[4*i:]), "thread %d", i)
	}
}

// TestConformFloatAtomics sums small integers, which is exact in any order.
func TestConformFloatAtomics(t *testing.T) {
	b := newBench(t)
	cell := make([]byte, 16)
	b.run(`.visible .entry k(.param .u64 c)
{
.reg .b32 %i;
.reg .b64 %cell;
.reg .f32 %f, %g;
.reg .f64 %d, %e;
ld.param.u64 %cell, [c];
mov.u32 %i, %tid.x;
cvt.rn.f32.u32 %f, %i;
cvt.rn.f64.u32 %d, %i;
atom.global.add.f64 %e, [%cell], %d;
atom.global.add.f32 %g, [%cell+8], %f;
red.global.add.f32 [%cell+12], 0f3F800000;
ret;
}
`, 4, 100, cell)
	assert.Equal(t, 4*4950.0, math.Float64frombits(binary.LittleEndian.Uint64(cell)))
	assert.Equal(t, float32(4*4950), math.Float32frombits(binary.LittleEndian.Uint32(cell[8:])))
	assert.Equal(t, float32(400), math.Float32frombits(binary.LittleEndian.Uint32(cell[12:])))
}
