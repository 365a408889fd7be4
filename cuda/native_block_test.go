//go:build !nocuda && (linux || windows)

package cuda

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/dl"
)

// yieldLibrary is a driver whose every entry point is a C function that
// ignores its arguments and returns 0. Function pointers made of Go functions
// would allocate themselves.
func yieldLibrary(t testing.TB) *dl.Library {
	t.Helper()
	libc, err := dl.Open([]string{"libc.so.6"}, dl.Options{})
	if err != nil {
		t.Skipf("needs the C library of the system: %v", err)
	}
	fn, ok := libc.Lookup("sched_yield")
	require.True(t, ok)
	return dl.New("libc.so.6", func(string) uintptr { return fn })
}

// TestNativeAllocations checks the calls that a running program makes often.
func TestNativeAllocations(t *testing.T) {
	var api cuapi.API = newNative(yieldLibrary(t))
	host := make([]byte, 64)
	params := make([]byte, 256)
	hot := map[string]func() cuapi.Result{
		"launch":      func() cuapi.Result { return api.LaunchKernel(nFun, cuapi.D1(1), cuapi.D1(32), 0, nStr, params) },
		"record":      func() cuapi.Result { return api.EventRecord(nEvt, nStr) },
		"wait":        func() cuapi.Result { return api.StreamWaitEvent(nStr, nEvt, 0) },
		"event query": func() cuapi.Result { return api.EventQuery(nEvt) },
		"query":       func() cuapi.Result { return api.StreamQuery(nStr) },
		"copy in":     func() cuapi.Result { return api.MemcpyHtoDAsync(nPtrA, host, nStr) },
		"copy out":    func() cuapi.Result { return api.MemcpyDtoHAsync(host, nPtrA, nStr) },
		"copy":        func() cuapi.Result { return api.MemcpyDtoDAsync(nPtrA, nPtrB, 8, nStr) },
		"peer copy":   func() cuapi.Result { return api.MemcpyPeerAsync(nPtrA, nCtx, nPtrB, nCtx2, 8, nStr) },
		"fill 8":      func() cuapi.Result { return api.MemsetD8Async(nPtrA, 1, 8, nStr) },
		"fill 32":     func() cuapi.Result { return api.MemsetD32Async(nPtrA, 1, 8, nStr) },
		"get current": func() cuapi.Result { _, r := api.CtxGetCurrent(); return r },
		"set current": func() cuapi.Result { return api.CtxSetCurrent(nCtx) },
	}
	for name, call := range hot {
		require.Equal(t, cuapi.Success, call(), name)
		assert.Zero(t, testing.AllocsPerRun(200, func() { call() }), name)
	}
}

func BenchmarkNativeLaunch(b *testing.B) {
	api := newNative(yieldLibrary(b))
	params := make([]byte, 128)
	b.ReportAllocs()
	for b.Loop() {
		api.LaunchKernel(nFun, cuapi.D1(1), cuapi.D1(32), 0, nStr, params)
	}
}

// TestLaunchParams checks parameter blocks of every length that matters, one
// after the other through the same block.
func TestLaunchParams(t *testing.T) {
	f := newFake(t)
	var got []byte
	f.on["cuLaunchKernel"] = func(a []uintptr) {
		got = nil
		if a[10] != 0 {
			got = launchParams(t, a[10])
		}
	}
	api := newNative(f.library())
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 8, 4095, 4096, 4097, 32764, 16, 0} {
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		require.Equal(t, cuapi.Success, api.LaunchKernel(nFun, cuapi.D1(1), cuapi.D1(1), 0, nStr, want))
		assert.True(t, bytes.Equal(want, got), "%d bytes", n)
	}
}

// TestNativeConcurrent launches from many goroutines. Each call must see its
// own parameters and its own result.
func TestNativeConcurrent(t *testing.T) {
	f := newFake(t)
	f.on["cuLaunchKernel"] = func(a []uintptr) {
		for _, p := range launchParams(t, a[10]) {
			assert.Equal(t, byte(a[0]), p)
		}
	}
	f.on["cuMemAlloc_v2"] = func(a []uintptr) { writeAt(a[0], uint64(a[1])+1) }
	api := newNative(f.library())
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			params := bytes.Repeat([]byte{byte(g)}, 1+37*g)
			for i := range 200 {
				assert.Equal(t, cuapi.Success, api.LaunchKernel(cuapi.Function(g), cuapi.D1(1), cuapi.D1(1), 0, nStr, params))
				n := uint64(g*1000 + i)
				p, _ := api.MemAlloc(n)
				assert.Equal(t, cuapi.DevicePtr(n+1), p)
			}
		})
	}
	wg.Wait()
}

// jitOption is one option as the driver sees it: a number and a slot.
type jitOption struct {
	key  cuapi.JITOption
	slot *uintptr
}

func jitOptions(a []uintptr) []jitOption {
	n := int(uint32(a[2]))
	keys := unsafe.Slice(ptrAt[cuapi.JITOption](a[3]), n)
	slots := unsafe.Slice(ptrAt[uintptr](a[4]), n)
	list := make([]jitOption, n)
	for i := range list {
		list[i] = jitOption{keys[i], &slots[i]}
	}
	return list
}

// TestJITOptions plays a compiler that writes both logs and its time.
func TestJITOptions(t *testing.T) {
	f := newFake(t)
	numbers := map[cuapi.JITOption]uintptr{}
	f.results["cuModuleLoadDataEx"] = cuapi.ErrorInvalidPTX
	f.on["cuModuleLoadDataEx"] = func(a []uintptr) {
		buffers := map[cuapi.JITOption]uintptr{}
		for _, o := range jitOptions(a) {
			switch o.key {
			case cuapi.JITInfoLogBuffer, cuapi.JITErrorLogBuffer:
				buffers[o.key] = *o.slot
			case cuapi.JITInfoLogBufferSizeBytes:
				assert.Equal(t, uintptr(64), *o.slot)
				copy(unsafe.Slice(ptrAt[byte](buffers[cuapi.JITInfoLogBuffer]), 64), "info: 12 registers")
				*o.slot = 18
			case cuapi.JITErrorLogBufferSizeBytes:
				assert.Equal(t, uintptr(16), *o.slot)
				copy(unsafe.Slice(ptrAt[byte](buffers[cuapi.JITErrorLogBuffer]), 16), "ptxas fatal, and more")
				*o.slot = 21 // the whole text would need more than the buffer
			case cuapi.JITWallTime:
				*o.slot = uintptr(math.Float32bits(2.5))
			default:
				numbers[o.key] = *o.slot
			}
		}
	}
	o := cuapi.JITOptions{MaxRegisters: 40, OptLevel: 2, LineInfo: true, Verbose: true, InfoLog: bytes.Repeat([]byte{'x'}, 64), ErrorLog: make([]byte, 16)}
	_, r := newNative(f.library()).ModuleLoadDataEx([]byte("bad"), &o)
	assert.Equal(t, cuapi.ErrorInvalidPTX, r)
	assert.Equal(t, "info: 12 registers", string(o.InfoLog))
	assert.Equal(t, "ptxas fatal, and", string(o.ErrorLog))
	assert.Equal(t, float32(2.5), o.WallTimeMs)
	assert.Equal(t, map[cuapi.JITOption]uintptr{
		cuapi.JITMaxRegisters: 40, cuapi.JITOptimizationLevel: 2, cuapi.JITGenerateLineInfo: 1, cuapi.JITLogVerbose: 1,
	}, numbers)
}

// TestJITDefaults checks that what the caller leaves open is not passed, and
// that a log the compiler does not touch reads as empty.
func TestJITDefaults(t *testing.T) {
	f := newFake(t)
	var keys []cuapi.JITOption
	f.on["cuModuleLoadDataEx"] = func(a []uintptr) {
		for _, o := range jitOptions(a) {
			keys = append(keys, o.key)
		}
	}
	o := cuapi.JITOptions{OptLevel: -1, ErrorLog: bytes.Repeat([]byte{'x'}, 32)}
	_, r := newNative(f.library()).ModuleLoadDataEx([]byte(".version 8.0"), &o)
	assert.Equal(t, cuapi.Success, r)
	assert.Equal(t, []cuapi.JITOption{cuapi.JITWallTime, cuapi.JITErrorLogBuffer, cuapi.JITErrorLogBufferSizeBytes}, keys)
	assert.Empty(t, o.ErrorLog)
}

// TestNames checks names around the size of the block's own buffer.
func TestNames(t *testing.T) {
	f := newFake(t)
	var got string
	f.on["cuModuleGetFunction"] = func(a []uintptr) { got = foreignText(a[2]) }
	api := newNative(f.library())
	for _, n := range []int{0, 1, textBytes - 1, textBytes, textBytes + 1, 1000} {
		want := strings.Repeat("k", n)
		_, r := api.ModuleGetFunction(nMod, want)
		require.Equal(t, cuapi.Success, r)
		assert.Equal(t, want, got)
	}
}

// TestUnendedTexts checks that texts without an end are cut and not followed
// into foreign memory.
func TestUnendedTexts(t *testing.T) {
	f := newFake(t)
	long := bytes.Repeat([]byte{'t'}, maxTextRead+100)
	f.on["cuGetErrorString"] = func(a []uintptr) { writeAt(a[1], uintptr(unsafe.Pointer(&long[0]))) }
	f.on["cuDeviceGetName"] = func(a []uintptr) {
		copy(unsafe.Slice(ptrAt[byte](a[0]), textBytes), long)
	}
	api := newNative(f.library())
	got, r := api.GetErrorText(1)
	assert.Equal(t, cuapi.Success, r)
	assert.Len(t, got, maxTextRead)
	got, r = api.DeviceGetName(nDev)
	assert.Equal(t, cuapi.Success, r)
	assert.Len(t, got, textBytes)

	// An unknown code gives a null pointer.
	f.on["cuGetErrorString"] = func(a []uintptr) { writeAt(a[1], uintptr(0)) }
	got, _ = api.GetErrorText(12345)
	assert.Empty(t, got)
}
