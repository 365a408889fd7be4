package cuda_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
	"github.com/raymux/raymux/tests/gputest"
)

// variablesPTX has variables with contents, which no committed module needs,
// and a kernel whose shared memory is given at launch.
const variablesPTX = `.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 numbers[3] = {7, 8, 9};
.visible .const .align 8 .u64 constant64 = 81985529216486895;
.extern .shared .align 4 .b8 scratch[];
.visible .entry last_word(.param .u64 dst, .param .u32 words)
{
	.reg .b32 %r<5>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [dst];
	ld.param.u32 %r1, [words];
	mov.u32 %r2, scratch;
	add.u32 %r1, %r1, -1;
	shl.b32 %r1, %r1, 2;
	add.u32 %r2, %r2, %r1;
	mov.u32 %r3, 4711;
	st.shared.u32 [%r2], %r3;
	ld.shared.u32 %r4, [%r2];
	st.global.u32 [%rd1], %r4;
	ret;
}
`

type lastWordParams struct {
	Dst             uint64
	Words, Reserved uint32
}

func TestHardwareVariables(t *testing.T) {
	api, us := units(t, 1)
	u := us[0]
	m, err := u.c.LoadModule([]byte(variablesPTX), cuda.JITOptions{OptLevel: cuda.Opt4, LineInfo: true, Verbose: true, MaxRegisters: 32})
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	addr, size, err := m.Global("numbers")
	require.NoError(t, err)
	assert.EqualValues(t, 12, size)
	u.in(func() {
		got := make([]byte, 12)
		require.Equal(t, cuapi.Success, api.MemcpyDtoH(got, cuapi.DevicePtr(addr)))
		assert.Equal(t, []byte{7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0}, got)
		changed := []byte("new contents")
		require.Equal(t, cuapi.Success, api.MemcpyHtoD(cuapi.DevicePtr(addr), changed))
		require.Equal(t, cuapi.Success, api.MemcpyDtoH(got, cuapi.DevicePtr(addr)))
		assert.Equal(t, changed, got)
	})
	addr, size, err = m.Global("constant64")
	require.NoError(t, err)
	assert.EqualValues(t, 8, size)
	u.in(func() {
		got := make([]byte, 8)
		require.Equal(t, cuapi.Success, api.MemcpyDtoH(got, cuapi.DevicePtr(addr)))
		assert.Equal(t, []byte{0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01}, got)
	})
	_, _, err = m.Global("absent")
	assert.ErrorIs(t, err, cuapi.ErrorNotFound)
}

func TestHardwareSharedMemory(t *testing.T) {
	_, us := units(t, 1)
	u := us[0]
	m, err := u.c.LoadModule([]byte(variablesPTX), cuda.JITOptions{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	f, err := m.Function("last_word")
	require.NoError(t, err)
	optin, err := u.dev.Attribute(cuapi.AttrMaxSharedMemoryPerBlockOptin)
	require.NoError(t, err)
	x := newSlice[uint32](u, 1)
	launch := func(bytes int) error {
		p := lastWordParams{Dst: x.Addr(), Words: uint32(bytes / 4)}
		return f.Launch(u.s, cuapi.D1(1), cuapi.D1(1), uint32(bytes), cuda.ParamBytes(&p)[:12])
	}
	require.NoError(t, launch(48<<10))
	assert.Equal(t, []uint32{4711}, download(u, x))
	assert.ErrorIs(t, launch(optin), cuapi.ErrorInvalidValue, "more than 48 KiB are asked for first")
	require.NoError(t, f.SetAttribute(cuapi.FuncMaxDynamicSharedSizeBytes, optin))
	v, err := f.Attribute(cuapi.FuncMaxDynamicSharedSizeBytes)
	require.NoError(t, err)
	assert.Equal(t, optin, v)
	require.NoError(t, cuda.Fill8(u.s, x, 0))
	require.NoError(t, launch(optin))
	assert.Equal(t, []uint32{4711}, download(u, x))
	assert.ErrorIs(t, f.SetAttribute(cuapi.FuncMaxDynamicSharedSizeBytes, 1<<30), cuapi.ErrorInvalidValue)
}

func TestHardwareModules(t *testing.T) {
	_, us := units(t, 1)
	u := us[0]
	image, err := ptx.Module("link")
	require.NoError(t, err)
	replaced := func(old, new string) []byte {
		out := bytes.Replace(image, []byte(old), []byte(new), 1)
		require.NotEqual(t, image, out, "the module has no %q", old)
		return out
	}
	cases := []struct {
		name  string
		image []byte
		codes []cuapi.Result
		log   string // what the compiler must name; empty: anything
	}{
		{"unknown instruction", replaced("ld.param.u64", "zz.param.u64"), []cuapi.Result{cuapi.ErrorInvalidPTX}, "line"},
		{"version of the future", replaced(".version 8.0", ".version 9.9"), []cuapi.Result{cuapi.ErrorUnsupportedPTXVersion}, ""},
		{"undeclared register", replaced("%rd1", "%xx1"), []cuapi.Result{cuapi.ErrorInvalidPTX}, ""},
		{"without its end", image[:bytes.LastIndexByte(image, '}')], []cuapi.Result{cuapi.ErrorInvalidPTX}, ""},
		{"flipped bytes", flip(image), []cuapi.Result{cuapi.ErrorInvalidPTX}, ""},
		{"no program", []byte("the quick brown fox"), []cuapi.Result{cuapi.ErrorInvalidPTX, cuapi.ErrorInvalidImage}, ""},
		{"noise", randomBytes(4096, 3), []cuapi.Result{cuapi.ErrorInvalidPTX, cuapi.ErrorInvalidImage, cuapi.ErrorNoBinaryForGPU}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := u.c.LoadModule(c.image, cuda.JITOptions{})
			var failed *cuda.ModuleError
			require.ErrorAs(t, err, &failed)
			var code cuapi.Result
			require.ErrorAs(t, err, &code)
			assert.Contains(t, c.codes, code, "%v", err)
			assert.Contains(t, failed.Log, c.log)
			if code == cuapi.ErrorUnsupportedPTXVersion {
				assert.ErrorIs(t, err, cuda.ErrDriverTooOld)
			}
			t.Log(err)
		})
	}
	for _, name := range ptx.Names() {
		image, err := ptx.Module(name)
		require.NoError(t, err)
		if bytes.Contains(image, []byte("_optix_")) {
			continue // calls functions that only the OptiX compiler provides
		}
		m, err := u.c.LoadModule(image, cuda.JITOptions{})
		require.NoError(t, err, "after the failures the context works: module %s", name)
		for _, entry := range ptx.Entries(name) {
			f, err := m.Function(entry)
			require.NoError(t, err, "%s of %s", entry, name)
			regs, err := f.Attribute(cuapi.FuncNumRegs)
			require.NoError(t, err)
			assert.Positive(t, regs, "%s of %s", entry, name)
		}
		require.NoError(t, m.Close())
	}
	for _, name := range []string{"absent", "", "Peer_Fill"} {
		_, err := u.m.Function(name)
		assert.True(t, errors.Is(err, cuapi.ErrorNotFound) || name == "" && errors.Is(err, cuapi.ErrorInvalidValue), "%q: %v", name, err)
	}
}

// flip damages every 97th byte of the instructions.
func flip(image []byte) []byte {
	out := bytes.Clone(image)
	for i := bytes.IndexByte(out, '{'); i < len(out); i += 97 {
		out[i] ^= 0x55
	}
	return out
}

func TestHardwareFunctions(t *testing.T) {
	_, us := units(t, 1)
	u := us[0]
	attr := func(a cuapi.FunctionAttribute) int {
		v, err := u.fill.Attribute(a)
		require.NoError(t, err, "attribute %d", a)
		return v
	}
	major, minor := u.dev.Capability()
	assert.Equal(t, 75, attr(cuapi.FuncPTXVersion), "the target that the modules are compiled for")
	assert.LessOrEqual(t, attr(cuapi.FuncBinaryVersion), major*10+minor)
	assert.GreaterOrEqual(t, attr(cuapi.FuncBinaryVersion), major*10)
	assert.Equal(t, 1024, attr(cuapi.FuncMaxThreadsPerBlock))
	assert.Zero(t, attr(cuapi.FuncSharedSizeBytes))
	assert.Zero(t, attr(cuapi.FuncLocalSizeBytes))
	_, err := u.fill.Attribute(9999)
	assert.ErrorIs(t, err, cuapi.ErrorInvalidValue)

	perSM, err := u.dev.Attribute(cuapi.AttrMaxThreadsPerMultiprocessor)
	require.NoError(t, err)
	for _, block := range []int{32, 256, 1024} {
		n, err := u.fill.Occupancy(block, 0)
		require.NoError(t, err)
		assert.Positive(t, n)
		assert.LessOrEqual(t, n*block, perSM)
	}
	grid, block, err := u.fill.BlockSize(0, 0)
	require.NoError(t, err)
	assert.Zero(t, block%32)
	assert.LessOrEqual(t, block, 1024)
	assert.GreaterOrEqual(t, grid, u.dev.Multiprocessors())
	_, block, err = u.fill.BlockSize(0, 128)
	require.NoError(t, err)
	assert.LessOrEqual(t, block, 128)
}

func TestHardwareLaunch(t *testing.T) {
	_, us := units(t, 1)
	u := us[0]
	for _, c := range []struct {
		words       int
		grid, block uint32
	}{{1, 1, 1}, {31, 1, 32}, {1000, 3, 33}, {1 << 16, 1, 1024}, {1<<16 + 7, 64, 256}, {5, 100, 128}} {
		x := newSlice[uint32](u, c.words+2) // guards on both sides
		require.NoError(t, cuda.Fill32(u.s, x, 0xdeadbeef))
		inner, err := x.Sub(1, c.words+1)
		require.NoError(t, err)
		require.NoError(t, u.fillWords(u.s, inner, uint32(c.words), c.grid, c.block))
		want := append(append([]uint32{0xdeadbeef}, patterns(c.words, uint32(c.words))...), 0xdeadbeef)
		assert.Equal(t, want, download(u, x), "%+v", c)
		assert.Zero(t, u.wrongWords(inner, uint32(c.words)))
		other := uint64(0)
		for i := range c.words {
			if pattern(uint64(i), uint32(c.words)) != pattern(uint64(i), 1234) {
				other++
			}
		}
		assert.Equal(t, other, u.wrongWords(inner, 1234), "another seed is another pattern")
	}
	require.NoError(t, u.empty.Launch(u.s, cuapi.Dim3{X: 3, Y: 4, Z: 5}, cuapi.Dim3{X: 8, Y: 4, Z: 2}, 0, nil))
	u.wait()
}

// TestHardwareLaunchMisuse goes around the checks of the safe layer.
func TestHardwareLaunchMisuse(t *testing.T) {
	api, us := units(t, 1)
	u := us[0]
	image, err := ptx.Module("link")
	require.NoError(t, err)
	u.in(func() {
		opts := cuapi.JITOptions{OptLevel: -1, InfoLog: make([]byte, 1024), ErrorLog: make([]byte, 1024)}
		m, r := api.ModuleLoadDataEx(image, &opts)
		require.Equal(t, cuapi.Success, r)
		assert.GreaterOrEqual(t, opts.WallTimeMs, float32(0))
		f, r := api.ModuleGetFunction(m, emptyKernel.Name)
		require.Equal(t, cuapi.Success, r)
		for _, c := range []struct{ grid, block cuapi.Dim3 }{
			{cuapi.Dim3{X: 0, Y: 1, Z: 1}, cuapi.D1(1)},
			{cuapi.Dim3{X: 1, Y: 1 << 16, Z: 1}, cuapi.D1(1)},
			{cuapi.D1(1), cuapi.D1(0)},
			{cuapi.D1(1), cuapi.D1(2048)},
			{cuapi.D1(1), cuapi.Dim3{X: 1024, Y: 2, Z: 1}},
			{cuapi.D1(1), cuapi.Dim3{X: 1, Y: 1, Z: 128}},
		} {
			assert.Equal(t, cuapi.ErrorInvalidValue, api.LaunchKernel(f, c.grid, c.block, 0, u.s.Handle(), nil), "%+v", c)
		}
		assert.Equal(t, cuapi.Success, api.LaunchKernel(f, cuapi.D1(1), cuapi.D1(1), 0, u.s.Handle(), nil))
		grid, block, r := api.OccupancyMaxPotentialBlockSize(f, 0, 0)
		assert.Equal(t, cuapi.Success, r)
		assert.Positive(t, grid*block)
		perSM, r := api.OccupancyMaxActiveBlocks(f, block, 0)
		assert.Equal(t, cuapi.Success, r)
		assert.Equal(t, grid, perSM*u.dev.Multiprocessors(), "the grid fills the device")
		assert.Equal(t, cuapi.Success, api.StreamSynchronize(u.s.Handle()))
		assert.Equal(t, cuapi.Success, api.ModuleUnload(m))
	})
	for _, block := range []uint32{0, 2048} {
		var bad *cuda.ArgumentError
		assert.ErrorAs(t, u.empty.Launch(u.s, cuapi.D1(1), cuapi.D1(block), 0, nil), &bad)
	}
	u.wait()
}

// TestHardwareLaunchAllocations measures the Go heap. The emulator's own queue
// allocates; a call of a real driver must not.
func TestHardwareLaunchAllocations(t *testing.T) {
	_, us := units(t, 1)
	u := us[0]
	x := newSlice[uint32](u, 32)
	limit, runs := 8.0, 50
	if gputest.Native() {
		limit, runs = 0, 500
	}
	var failed error
	launch := func(do func(params []byte) error) func() {
		return func() {
			p := peerFillParams{Dst: x.Addr(), Count: 32, Seed: 1}
			if err := do(cuda.ParamBytes(&p)); err != nil {
				failed = err
			}
		}
	}
	plain := testing.AllocsPerRun(runs, launch(func(params []byte) error {
		return u.fill.Launch(u.s, cuapi.D1(1), cuapi.D1(32), 0, params)
	}))
	require.NoError(t, failed)
	assert.LessOrEqual(t, plain, limit, "Function.Launch")
	sc, err := u.c.Enter()
	require.NoError(t, err)
	scoped := testing.AllocsPerRun(runs, launch(func(params []byte) error {
		return sc.Launch(u.fill, u.s, cuapi.D1(1), cuapi.D1(32), 0, params)
	}))
	require.NoError(t, sc.Exit())
	require.NoError(t, failed)
	assert.LessOrEqual(t, scoped, limit, "Scope.Launch")
	u.wait()
	assert.Zero(t, u.wrongWords(x, 1))
}
