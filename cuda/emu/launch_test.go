package emu

import (
	"cmp"
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

const header = ".version 8.0\n.target sm_75\n.address_size 64\n"

// entry is a kernel with one 64-bit parameter p, in register %rd1, and plenty
// of registers: %r, %rd (integers), %f, %p.
func entry(name, body string) string {
	return ".visible .entry " + name + "(.param .u64 p)\n{\n" +
		".reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n.reg .f32 %f<16>;\n.reg .pred %p<8>;\n" +
		"ld.param.u64 %rd1, [p];\n" + body + "\nret;\n}\n"
}

func load(t testing.TB, e *Emulator, ptx string) cuapi.Module {
	t.Helper()
	o := &cuapi.JITOptions{ErrorLog: make([]byte, 4096)}
	m, r := e.ModuleLoadDataEx([]byte(ptx), o)
	require.Equal(t, cuapi.Success, r, "%s", o.ErrorLog)
	return m
}

func kernel(t testing.TB, e *Emulator, body string) cuapi.Function {
	t.Helper()
	return must(e.ModuleGetFunction(load(t, e, header+entry("k", body)), "k"))(t)
}

func address(p cuapi.DevicePtr) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(p))
}

// addKernel is y[i] += x[i] for i < n with parameters x, y, n.
const addKernel = header + `
.visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n)
{
	.reg .pred %p1;
	.reg .b32 %r<5>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<6>;
	ld.param.u64 %rd1, [x];
	ld.param.u64 %rd2, [y];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r2, %r2, %r3, %r4;
	setp.ge.u32 %p1, %r2, %r1;
	@%p1 bra DONE;
	mul.wide.u32 %rd3, %r2, 4;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
	ld.global.f32 %f1, [%rd4];
	ld.global.f32 %f2, [%rd5];
	add.rn.f32 %f3, %f1, %f2;
	st.global.f32 [%rd5], %f3;
DONE:
	ret;
}
`

func addParams(x, y cuapi.DevicePtr, n int) []byte {
	return binary.LittleEndian.AppendUint32(append(address(x), address(y)...), uint32(n))
}

func floatBytes(v []float32) []byte {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func TestKernelComputes(t *testing.T) {
	r := newRand(t)
	e := one(t)
	f := must(e.ModuleGetFunction(load(t, e, addKernel), "add"))(t)
	for _, n := range []int{1, 31, 32, 33, 1000} {
		x, y, want := make([]float32, n), make([]float32, n), make([]float32, n)
		for i := range n {
			x[i], y[i] = r.Float32()-0.5, float32(r.NormFloat64())
			want[i] = x[i] + y[i]
		}
		px, py := must(e.MemAlloc(uint64(4*n)))(t), must(e.MemAlloc(uint64(4*n)))(t)
		ok(t, e.MemcpyHtoD(px, floatBytes(x)))
		ok(t, e.MemcpyHtoD(py, floatBytes(y)))
		s := newTestStream(t, e)
		params := addParams(px, py, n)
		ok(t, e.LaunchKernel(f, cuapi.D1(uint32(n+63)/64), cuapi.D1(64), 0, s, params))
		clear(params) // copied by the call
		got := make([]byte, 4*n)
		ok(t, e.MemcpyDtoHAsync(got, py, s))
		assert.Equal(t, floatBytes(want), got)
	}
	assert.Greater(t, e.Stats().LaneInstructions, uint64(10*1000))
	assert.Nil(t, e.LastFault())
}

func TestLaunchIsChecked(t *testing.T) {
	e := newEmu(t, 2)
	retain(t, e, 1)
	s1 := newTestStream(t, e)
	retain(t, e, 0)
	s := newTestStream(t, e)
	m := load(t, e, header+entry("k", "")+
		".visible .entry bounded(.param .u64 p)\n.maxntid 64, 1, 1\n{\nret;\n}\n")
	sm := load(t, e, header+
		".visible .entry shared(.param .u64 p)\n{\n.shared .align 4 .b8 buf[40960];\n.reg .b32 %r1;\nmov.u32 %r1, buf;\nret;\n}\n")
	k := must(e.ModuleGetFunction(m, "k"))(t)
	bounded := must(e.ModuleGetFunction(m, "bounded"))(t)
	shared := must(e.ModuleGetFunction(sm, "shared"))(t)
	p8 := make([]byte, 8)
	d := func(x, y, z uint32) cuapi.Dim3 { return cuapi.Dim3{X: x, Y: y, Z: z} }
	d1 := d(1, 1, 1)
	for _, c := range []struct {
		name        string
		f           cuapi.Function
		grid, block cuapi.Dim3
		shared      uint32
		s           cuapi.Stream
		params      []byte
		want        cuapi.Result
	}{
		{"fine", k, d1, d1, 0, s, p8, 0},
		{"legacy stream", k, d1, d1, 0, 0, p8, 0},
		{"largest block", k, d1, d(1024, 1, 1), 0, s, p8, 0},
		{"deep block", k, d1, d(4, 4, 64), 0, s, p8, 0},
		{"no grid", k, d(0, 1, 1), d1, 0, s, p8, 1},
		{"no grid y", k, d(1, 0, 1), d1, 0, s, p8, 1},
		{"no block", k, d1, d(1, 1, 0), 0, s, p8, 1},
		{"wide grid", k, d(1<<31, 1, 1), d1, 0, s, p8, 1},
		{"tall grid", k, d(1, 65536, 1), d1, 0, s, p8, 1},
		{"wide block", k, d1, d(1025, 1, 1), 0, s, p8, 1},
		{"many threads", k, d1, d(33, 32, 1), 0, s, p8, 1},
		{"deep block 65", k, d1, d(1, 1, 65), 0, s, p8, 1},
		{"overflowing block", k, d1, d(1<<31, 1<<31, 4), 0, s, p8, 1},
		{"short parameters", k, d1, d1, 0, s, p8[:4], 1},
		{"no parameters", k, d1, d1, 0, s, nil, 1},
		{"long parameters", k, d1, d1, 0, s, make([]byte, 16), 1},
		{"all shared memory", k, d1, d1, 48 << 10, s, p8, 0},
		{"too much shared memory", k, d1, d1, 48<<10 + 1, s, p8, 1},
		{"static and dynamic", shared, d1, d1, 8 << 10, s, p8, 0},
		{"static and too much dynamic", shared, d1, d1, 8<<10 + 1, s, p8, 1},
		{"within maxntid", bounded, d1, d(8, 8, 1), 0, s, p8, 0},
		{"beyond maxntid", bounded, d1, d(65, 1, 1), 0, s, p8, 701},
		{"no function", 0, d1, d1, 0, s, p8, 400},
		{"stream as function", cuapi.Function(s), d1, d1, 0, s, p8, 400},
		{"stream of another context", k, d1, d1, 0, s1, p8, 400},
	} {
		assert.Equal(t, c.want, e.LaunchKernel(c.f, c.grid, c.block, c.shared, c.s, c.params), c.name)
	}
	ok(t, e.CtxSynchronize())

	ok(t, e.FuncSetAttribute(shared, cuapi.FuncMaxDynamicSharedSizeBytes, 24<<10))
	ok(t, e.LaunchKernel(shared, d1, d1, 24<<10, s, p8))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.FuncSetAttribute(shared, cuapi.FuncMaxDynamicSharedSizeBytes, 24<<10+1))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.FuncSetAttribute(shared, cuapi.FuncNumRegs, 1))
	ok(t, e.FuncSetAttribute(shared, cuapi.FuncPreferredSharedMemoryCarveout, 100))
	assert.Equal(t, 100, must(e.FuncGetAttribute(cuapi.FuncPreferredSharedMemoryCarveout, shared))(t))

	retain(t, e, 1)
	assert.Equal(t, cuapi.ErrorInvalidHandle, e.LaunchKernel(k, d1, d1, 0, s, p8), "function of another context")
	assert.Equal(t, cuapi.ErrorInvalidHandle, e.LaunchKernel(k, d1, d1, 0, s1, p8), "function of another context")
}

func TestFunctionNumbers(t *testing.T) {
	e := one(t, WithSMs(10), WithCapability(func(int) (int, int) { return 8, 6 }))
	k := kernel(t, e, "")
	m := load(t, e, header+".const .align 4 .b8 table[100];\n"+
		".visible .entry shared(.param .u64 p)\n{\n.shared .align 4 .b8 buf[20480];\n.local .align 4 .b8 tmp[48];\n.reg .b32 %r1;\nmov.u32 %r1, buf;\nret;\n}\n")
	shared := must(e.ModuleGetFunction(m, "shared"))(t)
	for a, want := range map[cuapi.FunctionAttribute]int{
		cuapi.FuncSharedSizeBytes:           20480,
		cuapi.FuncLocalSizeBytes:            48,
		cuapi.FuncConstSizeBytes:            100,
		cuapi.FuncMaxThreadsPerBlock:        1024,
		cuapi.FuncPTXVersion:                75,
		cuapi.FuncBinaryVersion:             86,
		cuapi.FuncMaxDynamicSharedSizeBytes: 48<<10 - 20480,
		cuapi.FuncClusterSizeMustBeSet:      0,
	} {
		assert.Equal(t, want, must(e.FuncGetAttribute(a, shared))(t), "attribute %d", a)
	}
	_, r := e.FuncGetAttribute(99, k)
	assert.Equal(t, cuapi.ErrorInvalidValue, r)
	regs := must(e.FuncGetAttribute(cuapi.FuncNumRegs, k))(t)
	assert.Positive(t, regs)
	assert.Less(t, regs, 64)

	// 1024 threads and 16 blocks per multiprocessor; 64 KiB of shared memory.
	for _, c := range []struct {
		f       cuapi.Function
		block   int
		dynamic uint64
		want    int
	}{
		{k, 32, 0, 16}, {k, 64, 0, 16}, {k, 96, 0, 10}, {k, 128, 0, 8}, {k, 1000, 0, 1}, {k, 1024, 0, 1}, {k, 1025, 0, 0},
		{k, 32, 16 << 10, 4}, {k, 32, 64 << 10, 1}, {k, 32, 64<<10 + 1, 0},
		{shared, 32, 0, 3}, {shared, 32, 1024, 3}, {shared, 32, 2048, 2},
	} {
		assert.Equal(t, c.want, must(e.OccupancyMaxActiveBlocks(c.f, c.block, c.dynamic))(t), "%+v", c)
	}
	_, r = e.OccupancyMaxActiveBlocks(k, 0, 0)
	assert.Equal(t, cuapi.ErrorInvalidValue, r)
	grid, block, r := e.OccupancyMaxPotentialBlockSize(k, 0, 0)
	ok(t, r)
	assert.Equal(t, [2]int{10, 1024}, [2]int{grid, block})
	grid, block, r = e.OccupancyMaxPotentialBlockSize(k, 0, 300)
	ok(t, r)
	assert.Equal(t, [2]int{40, 256}, [2]int{grid, block}, "4 blocks of 256 fill it; 3 of 300 do not")
	_, _, r = e.OccupancyMaxPotentialBlockSize(k, 0, -1)
	assert.Equal(t, cuapi.ErrorInvalidValue, r)
}

func TestModuleLoadFailures(t *testing.T) {
	e := one(t)
	for _, c := range []struct {
		name, image, log string
		want             cuapi.Result
	}{
		{"empty", "", "empty", 200},
		{"zero bytes", "\x00\x00", "empty", 200},
		{"binary", "\x7fELF\x02\x01", "binary", 209},
		{"no PTX", "hello", "", 218},
		{"unknown instruction", header + entry("k", "frobnicate.u32 %r1, %r2;"), "line 11", 218},
		{"unknown modifier", header + entry("k", "add.sideways.u32 %r1, %r2, %r3;"), "line 11", 218},
		{"truncated", header + ".visible .entry k(", "", 218},
		{"next ISA", ".version 8.8\n.target sm_75\n.address_size 64\n", "8.8", 222},
		{"far ISA", "// text\n .version 42.0\n", "42.0", 222},
		{"newer device", strings.Replace(header, "sm_75", "sm_90", 1) + entry("k", ""), "sm_90", 218},
	} {
		o := &cuapi.JITOptions{ErrorLog: make([]byte, 4096), InfoLog: make([]byte, 16)}
		h, r := e.ModuleLoadDataEx([]byte(c.image), o)
		assert.Equal(t, c.want, r, c.name)
		assert.Zero(t, h, c.name)
		assert.Contains(t, string(o.ErrorLog), c.log, c.name)
		assert.NotEmpty(t, o.ErrorLog, c.name)
		assert.Empty(t, o.InfoLog, c.name)
	}
	// A short buffer takes what fits; no options are fine.
	o := &cuapi.JITOptions{ErrorLog: make([]byte, 5)}
	_, r := e.ModuleLoadDataEx([]byte("hello"), o)
	assert.Equal(t, cuapi.ErrorInvalidPTX, r)
	assert.Len(t, o.ErrorLog, 5)
	_, r = e.ModuleLoadDataEx([]byte("hello"), nil)
	assert.Equal(t, cuapi.ErrorInvalidPTX, r)

	// A variable that does not fit leaves nothing behind.
	small := one(t, WithMemory(1<<20))
	_, r = small.ModuleLoadDataEx([]byte(header+".global .align 4 .b8 a[1024];\n.global .align 4 .b8 b[1048576];\n"), nil)
	assert.Equal(t, cuapi.ErrorOutOfMemory, r)
	free, total, r := small.MemGetInfo()
	ok(t, r)
	assert.Equal(t, total, free)

	ok(t, e.CtxSynchronize()) // a failed load harms nothing
	m, r := e.ModuleLoadDataEx([]byte(header+entry("k", "")+"\x00"), &cuapi.JITOptions{ErrorLog: make([]byte, 16)})
	ok(t, r)
	_, r = e.ModuleGetFunction(m, "nobody")
	assert.Equal(t, cuapi.ErrorNotFound, r)
	_, _, r = e.ModuleGetGlobal(m, "nothing")
	assert.Equal(t, cuapi.ErrorNotFound, r)
	f := must(e.ModuleGetFunction(m, "k"))(t)
	ok(t, e.ModuleUnload(m))
	assert.Equal(t, cuapi.ErrorInvalidHandle, e.ModuleUnload(m))
	_, r = e.ModuleGetFunction(m, "k")
	assert.Equal(t, cuapi.ErrorInvalidHandle, r)
	assert.Equal(t, cuapi.ErrorInvalidHandle, e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(1), 0, 0, make([]byte, 8)))
}

func TestModuleVariables(t *testing.T) {
	e := newEmu(t, 2)
	retain(t, e, 0)
	const ptx = header + `
.global .align 4 .u32 counter = 5;
.global .align 8 .u64 pointer = counter;
.const .align 4 .u32 table[3] = {10, 20, 30};
.global .align 4 .b8 zeros[16];
` + `.visible .entry k(.param .u64 p)
{
.reg .b32 %r<8>;
.reg .b64 %rd<8>;
ld.param.u64 %rd1, [p];
ld.global.u64 %rd2, [pointer];
ld.global.u32 %r1, [%rd2];
ld.const.u32 %r2, [table+8];
add.u32 %r1, %r1, %r2;
st.global.u32 [counter], %r1;
ld.global.u32 %r3, [zeros+12];
add.u32 %r3, %r3, %r1;
st.global.u32 [%rd1], %r3;
ret;
}
`
	m, twin := load(t, e, ptx), load(t, e, ptx)
	out := must(e.MemAlloc(4))(t)
	run := func(m cuapi.Module) uint32 {
		f := must(e.ModuleGetFunction(m, "k"))(t)
		ok(t, e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(1), 0, 0, address(out)))
		return word(t, e, out)
	}
	assert.EqualValues(t, 35, run(m))
	assert.EqualValues(t, 65, run(m), "variables keep their values")
	assert.EqualValues(t, 35, run(twin), "each load has its own")

	p, n, r := e.ModuleGetGlobal(m, "counter")
	ok(t, r)
	assert.EqualValues(t, 4, n)
	assert.EqualValues(t, 65, word(t, e, p))
	ok(t, e.MemcpyHtoD(p, words(1)))
	c, n, r := e.ModuleGetGlobal(m, "table")
	ok(t, r)
	assert.EqualValues(t, 12, n)
	ok(t, e.MemcpyHtoD(c+8, words(2)))
	assert.EqualValues(t, 3, run(m))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemcpyHtoD(p, words(1, 2)))
	ok(t, e.ModuleUnload(m))
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemcpyHtoD(p, words(1)))
}

// faultCase is a kernel that goes wrong at the line marked "here".
type faultCase struct {
	name    string
	body    string
	kind    vm.FaultKind
	code    cuapi.Result
	offset  int64  // of Address from the parameter
	size    uint64 // of the allocation; 0: 64
	noAddr  bool   // the fault has no address in device memory
	thread  uint32
	nearest string
}

var faultCases = []faultCase{
	{name: "store past the end", kind: vm.OutOfBounds, code: 700, offset: 64, nearest: "64 bytes",
		body: "st.global.u32 [%rd1+64], %r1; // here"},
	{name: "load before the start", kind: vm.OutOfBounds, code: 700, offset: -4,
		body: "ld.global.u32 %r1, [%rd1+-4]; // here"},
	{name: "straddling the end", kind: vm.OutOfBounds, code: 700, offset: 56, size: 60,
		body: "mov.u64 %rd2, 1;\nst.global.u64 [%rd1+56], %rd2; // here"},
	{name: "one thread past the end", kind: vm.OutOfBounds, code: 700, offset: 64, thread: 16,
		body: "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r1; // here"},
	{name: "null pointer", kind: vm.OutOfBounds, code: 700, noAddr: true,
		body: "mov.u64 %rd2, 0;\nld.global.u32 %r1, [%rd2]; // here"},
	{name: "misaligned", kind: vm.Misaligned, code: 716, offset: 2,
		body: "ld.global.u32 %r1, [%rd1+2]; // here"},
	{name: "misaligned vector", kind: vm.Misaligned, code: 716, offset: 8,
		body: "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1+8]; // here"},
	{name: "never written", kind: vm.Uninitialized, code: 700, offset: 32,
		body: "ld.global.u32 %r1, [%rd1+28];\nld.global.u32 %r2, [%rd1+32]; // here"},
	{name: "trap", kind: vm.Trap, code: 719, noAddr: true, thread: 3,
		body: "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 trap; // here"},
	{name: "barrier not reached by all", kind: vm.Deadlock, code: 702, noAddr: true, thread: 32,
		body: "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bra W;\nbar.sync 1, 128; // here\nW:\n"},
}

func lineOf(t testing.TB, ptx, marker string) int {
	for i, l := range strings.Split(ptx, "\n") {
		if strings.Contains(l, marker) {
			return i + 1
		}
	}
	t.Fatal("no marked line")
	return 0
}

func TestKernelFaults(t *testing.T) {
	for _, c := range faultCases {
		t.Run(c.name, func(t *testing.T) {
			e := newEmu(t, 2)
			other := retain(t, e, 1)
			alive := must(e.MemAlloc(4))(t)
			retain(t, e, 0)
			ptx := header + entry("culprit", c.body)
			m := load(t, e, ptx)
			f := must(e.ModuleGetFunction(m, "culprit"))(t)
			p := must(e.MemAlloc(cmp.Or(c.size, 64)))(t)
			ok(t, e.MemsetD8(p, 0, 32)) // the second half is never written
			ok(t, e.CtxSynchronize())
			s, bystander := newTestStream(t, e), newTestStream(t, e)
			ok(t, e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(64), 0, s, address(p)))
			assert.Equal(t, c.code, e.StreamSynchronize(s))
			// Sticky, on every stream and call of the device.
			for range 2 {
				assert.Equal(t, c.code, e.StreamSynchronize(bystander))
				assert.Equal(t, c.code, e.CtxSynchronize())
				assert.Equal(t, c.code, e.MemFree(p))
				assert.Equal(t, c.code, e.MemcpyHtoD(p, words(1)))
				assert.Equal(t, c.code, e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(1), 0, s, address(p)))
			}
			require.True(t, c.code.Sticky())

			got := e.LastFault()
			require.NotNil(t, got)
			assert.Equal(t, c.kind, got.Kind)
			assert.Equal(t, c.code, got.Code)
			assert.Equal(t, "culprit", got.Kernel)
			assert.Equal(t, m, got.Module)
			assert.Equal(t, 0, got.Device)
			assert.Equal(t, lineOf(t, ptx, "// here"), got.PTXLine)
			assert.Contains(t, ptx, got.Text)
			assert.NotEmpty(t, got.Text)
			assert.Equal(t, [3]uint32{c.thread}, got.Thread)
			assert.EqualValues(t, c.thread%32, got.Lane)
			assert.Zero(t, got.Block)
			if !c.noAddr {
				assert.Equal(t, uint64(int64(p)+c.offset), got.Address)
				assert.NotEmpty(t, got.Nearest)
			}
			assert.Contains(t, got.Nearest, c.nearest)
			assert.ErrorContains(t, got, "culprit")

			ok(t, e.CtxSetCurrent(other))
			ok(t, e.MemsetD32(alive, 6, 1))
			assert.EqualValues(t, 6, word(t, e, alive))
		})
	}
}

func TestKernelOnFreedMemory(t *testing.T) {
	e := one(t)
	f := kernel(t, e, "st.global.u32 [%rd1+12], %r1;")
	p := must(e.MemAlloc(64))(t)
	ok(t, e.MemFree(p))
	ok(t, e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(1), 0, 0, address(p)))
	assert.Equal(t, cuapi.ErrorIllegalAddress, e.CtxSynchronize())
	assert.Equal(t, vm.UseAfterFree, e.LastFault().Kind)
	assert.Equal(t, uint64(p)+12, e.LastFault().Address)
}

func TestSharedRaceIsFoundOnRequest(t *testing.T) {
	// Thread i reads what thread i^32 wrote, without a barrier between.
	const body = `.shared .align 4 .b8 buf[256];
mov.u32 %r1, %tid.x;
mov.u32 %r2, buf;
shl.b32 %r3, %r1, 2;
add.u32 %r4, %r2, %r3;
st.shared.u32 [%r4], %r1;
bar.sync 0;
st.shared.u32 [%r4], %r3;
BARRIER
xor.b32 %r5, %r3, 128;
add.u32 %r6, %r2, %r5;
ld.shared.u32 %r7, [%r6];
`
	for _, c := range []struct {
		barrier string
		check   bool
		want    cuapi.Result
	}{{"bar.sync 0;", true, 0}, {"", true, 700}, {"bar.sync 0;", false, 0}} {
		e := one(t, WithRaceCheck(c.check))
		f := kernel(t, e, strings.Replace(body, "BARRIER", c.barrier, 1))
		ok(t, e.LaunchKernel(f, cuapi.D1(2), cuapi.D1(64), 0, 0, make([]byte, 8)))
		assert.Equal(t, c.want, e.CtxSynchronize(), "%+v", c)
		if c.want != 0 {
			assert.Equal(t, vm.SharedRace, e.LastFault().Kind)
		}
	}
}

func TestKernelsReachPeersPinnedMemoryAndPools(t *testing.T) {
	const increment = "ld.global.u32 %r1, [%rd1];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%rd1], %r1;"
	p := newPair(t)
	e := p.e
	f := kernel(t, e, increment)
	run := func(at cuapi.DevicePtr) cuapi.Result {
		ok(t, e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(1), 0, p.stream[0], address(at)))
		return e.StreamSynchronize(p.stream[0])
	}
	ok(t, run(p.cell[0]))
	assert.EqualValues(t, 1, word(t, e, p.cell[0]))

	host := must(e.MemHostAlloc(8, 0))(t)
	ok(t, run(cuapi.DevicePtr(uintptr(unsafe.Pointer(&host[4])))))
	assert.Equal(t, words(0, 1), host)

	ok(t, e.CtxEnablePeerAccess(p.ctx[1], 0))
	ok(t, run(p.cell[1]))
	assert.EqualValues(t, 2, word(t, e, p.cell[1]))

	own := must(e.MemAllocAsync(4, p.stream[0]))(t)
	ok(t, e.MemsetD32Async(own, 40, 1, p.stream[0]))
	ok(t, run(own))
	assert.EqualValues(t, 41, word(t, e, own))

	ok(t, e.CtxSetCurrent(p.ctx[1]))
	theirs := must(e.MemAllocAsync(4, p.stream[1]))(t)
	ok(t, e.MemsetD32Async(theirs, 50, 1, p.stream[1]))
	ok(t, e.StreamSynchronize(p.stream[1]))
	ok(t, e.CtxSetCurrent(p.ctx[0]))
	pool := must(e.DeviceGetDefaultMemPool(1))(t)
	ok(t, e.MemPoolSetAccess(pool, 0, cuapi.MemAccessProtReadwrite))
	ok(t, run(theirs))
	assert.EqualValues(t, 51, word(t, e, theirs))
	// Peer access is enabled, but pools do not follow it.
	ok(t, e.MemPoolSetAccess(pool, 0, cuapi.MemAccessProtNone))
	assert.Equal(t, cuapi.ErrorIllegalAddress, run(theirs))
	assert.Equal(t, vm.NoPeerAccess, e.LastFault().Kind)
}

func TestKernelWithoutPeerAccessFaults(t *testing.T) {
	p := newPair(t)
	e := p.e
	f := kernel(t, e, "ld.global.u32 %r1, [%rd1];")
	ok(t, e.CtxEnablePeerAccess(p.ctx[1], 0))
	ok(t, e.CtxDisablePeerAccess(p.ctx[1]))
	ok(t, e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(1), 0, 0, address(p.cell[1])))
	assert.Equal(t, cuapi.ErrorIllegalAddress, e.CtxSynchronize())
	got := e.LastFault()
	assert.Equal(t, vm.NoPeerAccess, got.Kind)
	assert.Contains(t, got.Error(), "device 1")
	ok(t, e.CtxSetCurrent(p.ctx[1]))
	ok(t, e.CtxSynchronize())
}

func TestNeverWrittenTravelsToAKernelThroughACopy(t *testing.T) {
	e := one(t)
	f := kernel(t, e, "ld.global.u32 %r1, [%rd1];")
	p, q := must(e.MemAlloc(4))(t), must(e.MemAlloc(4))(t)
	ok(t, e.MemsetD8(q, 0, 4))
	ok(t, e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(1), 0, 0, address(q)))
	ok(t, e.CtxSynchronize())
	ok(t, e.MemcpyDtoD(q, p, 4))
	ok(t, e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(1), 0, 0, address(q)))
	assert.Equal(t, cuapi.ErrorIllegalAddress, e.CtxSynchronize())
	assert.Equal(t, vm.Uninitialized, e.LastFault().Kind)
}

func TestKillingADeviceStopsItsKernels(t *testing.T) {
	before := runtime.NumGoroutine()
	e := newEmu(t, 2)
	retain(t, e, 0)
	f := kernel(t, e, "LOOP:\nadd.u32 %r2, %r2, 1;\nbra LOOP;")
	s := newTestStream(t, e)
	ok(t, e.LaunchKernel(f, cuapi.D1(4), cuapi.D1(64), 0, s, make([]byte, 8)))
	time.Sleep(20 * time.Millisecond)
	assert.Equal(t, cuapi.ErrorNotReady, e.StreamQuery(s))
	ends := e.currentContext().tails()
	e.KillDevice(0)
	for _, end := range ends {
		assert.True(t, end.reached(), "nothing runs any more")
	}
	assert.Equal(t, cuapi.ErrorLaunchFailed, e.StreamSynchronize(s))
	assert.Nil(t, e.LastFault(), "nothing of ours went wrong")
	assert.LessOrEqual(t, settled(before), before)
}

// A stream that waits for a device that is lost goes on, and reads what that device was to
// write. It is not the reader that fails.
func TestMemoryThatALostDeviceLeftUnwrittenIsNoFaultOfOthers(t *testing.T) {
	p := newPair(t)
	e := p.e
	read := kernel(t, e, "ld.global.u32 %r1, [%rd1];")
	left := must(e.MemAlloc(4))(t)
	ok(t, e.CtxSetCurrent(p.ctx[1]))
	endless := kernel(t, e, "LOOP:\nadd.u32 %r2, %r2, 1;\nbra LOOP;")
	written := newTestEvent(t, e)
	ok(t, e.LaunchKernel(endless, cuapi.D1(1), cuapi.D1(32), 0, p.stream[1], make([]byte, 8)))
	ok(t, e.EventRecord(written, p.stream[1]))
	ok(t, e.CtxSetCurrent(p.ctx[0]))
	ok(t, e.StreamWaitEvent(p.stream[0], written, 0))
	ok(t, e.LaunchKernel(read, cuapi.D1(1), cuapi.D1(1), 0, p.stream[0], address(left)))
	e.KillDevice(1)
	ok(t, e.StreamSynchronize(p.stream[0]))
	assert.Nil(t, e.LastFault())
}

func TestLaunchAllocatesLittle(t *testing.T) {
	e := one(t)
	f := kernel(t, e, "")
	s := newTestStream(t, e)
	params := make([]byte, 8)
	for range 256 { // fill the stock of spent launches
		ok(t, e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(1), 0, s, params))
	}
	ok(t, e.StreamSynchronize(s))
	open := hold(t, e, s) // only the calls are measured
	n := testing.AllocsPerRun(100, func() { e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(1), 0, s, params) })
	open()
	ok(t, e.StreamSynchronize(s))
	assert.LessOrEqual(t, n, 2.0)
}

func TestDevicesComputeAtOnce(t *testing.T) {
	const devices, streams, n = 8, 3, 512
	e := newEmu(t, devices)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for d := range devices {
		for range streams {
			wg.Go(func() {
				done := make(chan string)
				go func() {
					lockForever()
					done <- addTwice(e, d, n)
				}()
				msg := <-done
				mu.Lock()
				defer mu.Unlock()
				assert.Empty(t, msg)
			})
		}
	}
	wg.Wait()
}

// addTwice computes x + x + 1 on a device and says what went wrong.
func addTwice(e *Emulator, dev, n int) string {
	c, _ := e.DevicePrimaryCtxRetain(cuapi.Device(dev))
	e.CtxSetCurrent(c)
	m, r := e.ModuleLoadDataEx([]byte(addKernel), nil)
	if r != cuapi.Success {
		return r.Error()
	}
	f, _ := e.ModuleGetFunction(m, "add")
	s, _ := e.StreamCreateWithPriority(cuapi.StreamNonBlocking, 0)
	x, _ := e.MemAlloc(uint64(4 * n))
	y, _ := e.MemAlloc(uint64(4 * n))
	in, out := make([]float32, n), make([]float32, n)
	for i := range in {
		in[i] = float32(i + dev)
	}
	e.MemcpyHtoDAsync(x, floatBytes(in), s)
	e.MemsetD32Async(y, math.Float32bits(1), uint64(n), s)
	for range 2 {
		if r := e.LaunchKernel(f, cuapi.D1(uint32(n/64)), cuapi.D1(64), 0, s, addParams(x, y, n)); r != cuapi.Success {
			return r.Error()
		}
	}
	b := make([]byte, 4*n)
	if r := e.MemcpyDtoHAsync(b, y, s); r != cuapi.Success {
		return r.Error()
	}
	for i := range in {
		out[i] = 2*in[i] + 1
	}
	if string(b) != string(floatBytes(out)) {
		return "wrong sums"
	}
	return ""
}
