//go:build !nocuda && (linux || windows)

package cuda

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Distinct values, so that swapped arguments are seen; those of 64 bits have
// bits above the 32nd, so that a narrowed one is seen.
const (
	nDev, nDev2  = cuapi.Device(3), cuapi.Device(5)
	nCtx, nCtx2  = cuapi.Context(0x7a00_0000_1110), cuapi.Context(0x7a00_0000_2220)
	nMod         = cuapi.Module(0x7a00_0000_3330)
	nFun         = cuapi.Function(0x7a00_0000_4440)
	nStr         = cuapi.Stream(0x7a00_0000_5550)
	nEvt, nEvt2  = cuapi.Event(0x7a00_0000_6660), cuapi.Event(0x7a00_0000_7770)
	nPtrA, nPtrB = cuapi.DevicePtr(0x7f11_0000_0100), cuapi.DevicePtr(0x7f22_0000_0200)
	nPool        = cuapi.MemPool(0x7a00_0000_8880)
	nSize        = uint64(0x1_2345_6780)
	nName        = "kernel_name"
)

// What a parameter must be when it is not a number.
type (
	outValue  struct{ v any }    // an address, to which the driver writes v
	hostBytes struct{ b []byte } // an address, at which these bytes are
	nullPtr   struct{}
	checkPtr  struct{ f func(*testing.T, uintptr) } // anything else
)

var nHost = []byte{1, 2, 3, 4, 5, 6, 7, 8}

// nDeviceName is what the fake writes into a text buffer.
var nDeviceName = [9]byte{'F', 'a', 'k', 'e', ' ', 'G', 'P', 'U', 0}

// nativeCase is one method: how it is called, what the entry point must
// receive, and what the method must return when the results are written.
type nativeCase struct {
	method string
	call   func(a cuapi.API) []any
	args   []any
	want   []any // without the final Success
}

func vals(v ...any) []any { return v }

func nativeCases() []nativeCase {
	return []nativeCase{
		{"Init", func(a cuapi.API) []any { return vals(a.Init(7)) }, vals(7), nil},
		{"DriverGetVersion", func(a cuapi.API) []any { v, r := a.DriverGetVersion(); return vals(v, r) }, vals(outValue{int32(12080)}), vals(12080)},
		{"GetErrorText", func(a cuapi.API) []any { v, r := a.GetErrorText(700); return vals(v, r) },
			vals(700, outValue{uintptr(unsafe.Pointer(&nDeviceName))}), vals("Fake GPU")},
		{"DeviceGetCount", func(a cuapi.API) []any { v, r := a.DeviceGetCount(); return vals(v, r) }, vals(outValue{int32(2)}), vals(2)},
		{"DeviceGet", func(a cuapi.API) []any { v, r := a.DeviceGet(1); return vals(v, r) }, vals(outValue{int32(3)}, 1), vals(nDev)},
		{"DeviceGetName", func(a cuapi.API) []any { v, r := a.DeviceGetName(nDev); return vals(v, r) },
			vals(outValue{nDeviceName}, textBytes, nDev), vals("Fake GPU")},
		{"DeviceGetUUID", func(a cuapi.API) []any { v, r := a.DeviceGetUUID(nDev); return vals(v, r) },
			vals(outValue{[16]byte{1, 15: 9}}, nDev), vals([16]byte{1, 15: 9})},
		{"DeviceTotalMem", func(a cuapi.API) []any { v, r := a.DeviceTotalMem(nDev); return vals(v, r) }, vals(outValue{nSize}, nDev), vals(nSize)},
		{"DeviceGetAttribute", func(a cuapi.API) []any { v, r := a.DeviceGetAttribute(16, nDev); return vals(v, r) },
			vals(outValue{int32(-4)}, 16, nDev), vals(-4)},
		{"DeviceGetPCIBusID", func(a cuapi.API) []any { v, r := a.DeviceGetPCIBusID(nDev); return vals(v, r) },
			vals(outValue{nDeviceName}, textBytes, nDev), vals("Fake GPU")},
		{"DeviceCanAccessPeer", func(a cuapi.API) []any { v, r := a.DeviceCanAccessPeer(nDev, nDev2); return vals(v, r) },
			vals(outValue{int32(1)}, nDev, nDev2), vals(true)},
		{"DeviceGetP2PAttribute", func(a cuapi.API) []any { v, r := a.DeviceGetP2PAttribute(2, nDev, nDev2); return vals(v, r) },
			vals(outValue{int32(1)}, 2, nDev, nDev2), vals(1)},

		{"DevicePrimaryCtxRetain", func(a cuapi.API) []any { v, r := a.DevicePrimaryCtxRetain(nDev); return vals(v, r) }, vals(outValue{uintptr(nCtx)}, nDev), vals(nCtx)},
		{"DevicePrimaryCtxRelease", func(a cuapi.API) []any { return vals(a.DevicePrimaryCtxRelease(nDev)) }, vals(nDev), nil},
		{"DevicePrimaryCtxGetState", func(a cuapi.API) []any { f, v, r := a.DevicePrimaryCtxGetState(nDev); return vals(f, v, r) },
			vals(nDev, outValue{uint32(0x80000001)}, outValue{int32(1)}), vals(uint32(0x80000001), true)},
		{"CtxGetCurrent", func(a cuapi.API) []any { v, r := a.CtxGetCurrent(); return vals(v, r) }, vals(outValue{uintptr(nCtx)}), vals(nCtx)},
		{"CtxSetCurrent", func(a cuapi.API) []any { return vals(a.CtxSetCurrent(nCtx)) }, vals(nCtx), nil},
		{"CtxGetDevice", func(a cuapi.API) []any { v, r := a.CtxGetDevice(); return vals(v, r) }, vals(outValue{int32(3)}), vals(nDev)},
		{"CtxSynchronize", func(a cuapi.API) []any { return vals(a.CtxSynchronize()) }, nil, nil},
		{"CtxGetStreamPriorityRange", func(a cuapi.API) []any { l, g, r := a.CtxGetStreamPriorityRange(); return vals(l, g, r) },
			vals(outValue{int32(2)}, outValue{int32(-5)}), vals(2, -5)},
		{"CtxGetLimit", func(a cuapi.API) []any { v, r := a.CtxGetLimit(2); return vals(v, r) }, vals(outValue{nSize}, 2), vals(nSize)},
		{"CtxSetLimit", func(a cuapi.API) []any { return vals(a.CtxSetLimit(2, nSize)) }, vals(2, nSize), nil},
		{"CtxEnablePeerAccess", func(a cuapi.API) []any { return vals(a.CtxEnablePeerAccess(nCtx, 6)) }, vals(nCtx, 6), nil},
		{"CtxDisablePeerAccess", func(a cuapi.API) []any { return vals(a.CtxDisablePeerAccess(nCtx)) }, vals(nCtx), nil},

		{"ModuleLoadDataEx", func(a cuapi.API) []any { v, r := a.ModuleLoadDataEx([]byte(nName), nil); return vals(v, r) },
			vals(outValue{uintptr(nMod)}, hostBytes{[]byte(nName + "\x00")}, 0, nullPtr{}, nullPtr{}), vals(nMod)},
		{"ModuleUnload", func(a cuapi.API) []any { return vals(a.ModuleUnload(nMod)) }, vals(nMod), nil},
		{"ModuleGetFunction", func(a cuapi.API) []any { v, r := a.ModuleGetFunction(nMod, nName); return vals(v, r) },
			vals(outValue{uintptr(nFun)}, nMod, hostBytes{[]byte(nName + "\x00")}), vals(nFun)},
		{"ModuleGetGlobal", func(a cuapi.API) []any { p, n, r := a.ModuleGetGlobal(nMod, nName); return vals(p, n, r) },
			vals(outValue{uint64(nPtrA)}, outValue{nSize}, nMod, hostBytes{[]byte(nName + "\x00")}), vals(nPtrA, nSize)},
		{"FuncGetAttribute", func(a cuapi.API) []any { v, r := a.FuncGetAttribute(4, nFun); return vals(v, r) }, vals(outValue{int32(40)}, 4, nFun), vals(40)},
		{"FuncSetAttribute", func(a cuapi.API) []any { return vals(a.FuncSetAttribute(nFun, 8, -1)) }, vals(nFun, 8, -1), nil},
		{"OccupancyMaxActiveBlocks", func(a cuapi.API) []any { v, r := a.OccupancyMaxActiveBlocks(nFun, 128, nSize); return vals(v, r) },
			vals(outValue{int32(16)}, nFun, 128, nSize), vals(16)},
		{"OccupancyMaxPotentialBlockSize", func(a cuapi.API) []any {
			g, b, r := a.OccupancyMaxPotentialBlockSize(nFun, nSize, 512)
			return vals(g, b, r)
		},
			vals(outValue{int32(132)}, outValue{int32(256)}, nFun, nullPtr{}, nSize, 512), vals(132, 256)},
		{"LaunchKernel", func(a cuapi.API) []any {
			return vals(a.LaunchKernel(nFun, cuapi.Dim3{X: 11, Y: 12, Z: 13}, cuapi.Dim3{X: 21, Y: 22, Z: 23}, 31, nStr, nHost))
		}, vals(nFun, 11, 12, 13, 21, 22, 23, 31, nStr, nullPtr{}, checkPtr{func(t *testing.T, extra uintptr) {
			assert.Equal(t, nHost, launchParams(t, extra))
		}}), nil},

		{"StreamCreateWithPriority", func(a cuapi.API) []any { v, r := a.StreamCreateWithPriority(1, -2); return vals(v, r) },
			vals(outValue{uintptr(nStr)}, 1, -2), vals(nStr)},
		{"StreamDestroy", func(a cuapi.API) []any { return vals(a.StreamDestroy(nStr)) }, vals(nStr), nil},
		{"StreamSynchronize", func(a cuapi.API) []any { return vals(a.StreamSynchronize(nStr)) }, vals(nStr), nil},
		{"StreamQuery", func(a cuapi.API) []any { return vals(a.StreamQuery(nStr)) }, vals(nStr), nil},
		{"StreamWaitEvent", func(a cuapi.API) []any { return vals(a.StreamWaitEvent(nStr, nEvt, 1)) }, vals(nStr, nEvt, 1), nil},
		{"StreamGetPriority", func(a cuapi.API) []any { v, r := a.StreamGetPriority(nStr); return vals(v, r) }, vals(nStr, outValue{int32(-3)}), vals(-3)},
		{"EventCreate", func(a cuapi.API) []any { v, r := a.EventCreate(2); return vals(v, r) }, vals(outValue{uintptr(nEvt)}, 2), vals(nEvt)},
		{"EventDestroy", func(a cuapi.API) []any { return vals(a.EventDestroy(nEvt)) }, vals(nEvt), nil},
		{"EventRecord", func(a cuapi.API) []any { return vals(a.EventRecord(nEvt, nStr)) }, vals(nEvt, nStr), nil},
		{"EventQuery", func(a cuapi.API) []any { return vals(a.EventQuery(nEvt)) }, vals(nEvt), nil},
		{"EventSynchronize", func(a cuapi.API) []any { return vals(a.EventSynchronize(nEvt)) }, vals(nEvt), nil},
		{"EventElapsedTime", func(a cuapi.API) []any { v, r := a.EventElapsedTime(nEvt, nEvt2); return vals(v, r) },
			vals(outValue{float32(1.25)}, nEvt, nEvt2), vals(float32(1.25))},

		{"MemAlloc", func(a cuapi.API) []any { v, r := a.MemAlloc(nSize); return vals(v, r) }, vals(outValue{uint64(nPtrA)}, nSize), vals(nPtrA)},
		{"MemFree", func(a cuapi.API) []any { return vals(a.MemFree(nPtrA)) }, vals(nPtrA), nil},
		{"MemAllocAsync", func(a cuapi.API) []any { v, r := a.MemAllocAsync(nSize, nStr); return vals(v, r) }, vals(outValue{uint64(nPtrA)}, nSize, nStr), vals(nPtrA)},
		{"MemFreeAsync", func(a cuapi.API) []any { return vals(a.MemFreeAsync(nPtrA, nStr)) }, vals(nPtrA, nStr), nil},
		{"MemGetInfo", func(a cuapi.API) []any { f, n, r := a.MemGetInfo(); return vals(f, n, r) }, vals(outValue{nSize}, outValue{2 * nSize}), vals(nSize, 2*nSize)},
		{"MemGetAddressRange", func(a cuapi.API) []any { p, n, r := a.MemGetAddressRange(nPtrB); return vals(p, n, r) },
			vals(outValue{uint64(nPtrA)}, outValue{nSize}, nPtrB), vals(nPtrA, nSize)},
		{"MemHostAlloc", func(a cuapi.API) []any { v, r := a.MemHostAlloc(8, 3); return vals(v, r) },
			vals(outValue{uintptr(unsafe.Pointer(&nHost[0]))}, 8, 3), vals(nHost)},
		{"MemFreeHost", func(a cuapi.API) []any { return vals(a.MemFreeHost(nHost)) }, vals(hostBytes{nHost}), nil},
		{"MemHostRegister", func(a cuapi.API) []any { return vals(a.MemHostRegister(nHost, 1)) }, vals(hostBytes{nHost}, 8, 1), nil},
		{"MemHostUnregister", func(a cuapi.API) []any { return vals(a.MemHostUnregister(nHost)) }, vals(hostBytes{nHost}), nil},
		{"PointerGetInfo", func(a cuapi.API) []any { v, r := a.PointerGetInfo(nPtrB); return vals(v, r) },
			vals(5, checkPtr{func(t *testing.T, p uintptr) {
				// Memory type, context, ordinal, start of the range, its size.
				assert.Equal(t, [5]int32{2, 1, 9, 11, 12}, *ptrAt[[5]int32](p))
			}}, checkPtr{func(t *testing.T, p uintptr) {
				where := *ptrAt[[5]uintptr](p)
				writeAt(where[0], int32(2))
				writeAt(where[1], uintptr(nCtx))
				writeAt(where[2], int32(1))
				writeAt(where[3], uint64(nPtrA))
				writeAt(where[4], nSize)
			}}, nPtrB),
			vals(cuapi.PointerInfo{MemoryType: cuapi.MemoryTypeDevice, Context: nCtx, Ordinal: 1, RangeStart: nPtrA, RangeSize: nSize})},

		{"DeviceGetDefaultMemPool", func(a cuapi.API) []any { v, r := a.DeviceGetDefaultMemPool(nDev); return vals(v, r) }, vals(outValue{uintptr(nPool)}, nDev), vals(nPool)},
		{"MemPoolTrimTo", func(a cuapi.API) []any { return vals(a.MemPoolTrimTo(nPool, nSize)) }, vals(nPool, nSize), nil},
		{"MemPoolGetAttribute", func(a cuapi.API) []any { v, r := a.MemPoolGetAttribute(nPool, 4); return vals(v, r) }, vals(nPool, 4, outValue{nSize}), vals(nSize)},
		{"MemPoolSetAttribute", func(a cuapi.API) []any { return vals(a.MemPoolSetAttribute(nPool, 4, 0x0102030405060708)) },
			vals(nPool, 4, hostBytes{[]byte{8, 7, 6, 5, 4, 3, 2, 1}}), nil},
		{"MemPoolSetAccess", func(a cuapi.API) []any { return vals(a.MemPoolSetAccess(nPool, nDev, 3)) },
			// Location of type device, its id, read and write access.
			vals(nPool, hostBytes{[]byte{1, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0}}, 1), nil},

		{"MemcpyHtoD", func(a cuapi.API) []any { return vals(a.MemcpyHtoD(nPtrA, nHost)) }, vals(nPtrA, hostBytes{nHost}, 8), nil},
		{"MemcpyDtoH", func(a cuapi.API) []any { return vals(a.MemcpyDtoH(nHost, nPtrA)) }, vals(hostBytes{nHost}, nPtrA, 8), nil},
		{"MemcpyDtoD", func(a cuapi.API) []any { return vals(a.MemcpyDtoD(nPtrA, nPtrB, nSize)) }, vals(nPtrA, nPtrB, nSize), nil},
		{"MemcpyHtoDAsync", func(a cuapi.API) []any { return vals(a.MemcpyHtoDAsync(nPtrA, nHost, nStr)) }, vals(nPtrA, hostBytes{nHost}, 8, nStr), nil},
		{"MemcpyDtoHAsync", func(a cuapi.API) []any { return vals(a.MemcpyDtoHAsync(nHost, nPtrA, nStr)) }, vals(hostBytes{nHost}, nPtrA, 8, nStr), nil},
		{"MemcpyDtoDAsync", func(a cuapi.API) []any { return vals(a.MemcpyDtoDAsync(nPtrA, nPtrB, nSize, nStr)) }, vals(nPtrA, nPtrB, nSize, nStr), nil},
		{"MemcpyPeer", func(a cuapi.API) []any { return vals(a.MemcpyPeer(nPtrA, nCtx, nPtrB, nCtx2, nSize)) }, vals(nPtrA, nCtx, nPtrB, nCtx2, nSize), nil},
		{"MemcpyPeerAsync", func(a cuapi.API) []any { return vals(a.MemcpyPeerAsync(nPtrA, nCtx, nPtrB, nCtx2, nSize, nStr)) }, vals(nPtrA, nCtx, nPtrB, nCtx2, nSize, nStr), nil},
		{"MemsetD8", func(a cuapi.API) []any { return vals(a.MemsetD8(nPtrA, 0xab, nSize)) }, vals(nPtrA, 0xab, nSize), nil},
		{"MemsetD8Async", func(a cuapi.API) []any { return vals(a.MemsetD8Async(nPtrA, 0xab, nSize, nStr)) }, vals(nPtrA, 0xab, nSize, nStr), nil},
		{"MemsetD32", func(a cuapi.API) []any { return vals(a.MemsetD32(nPtrA, 0xfedcba98, nSize)) }, vals(nPtrA, 0xfedcba98, nSize), nil},
		{"MemsetD32Async", func(a cuapi.API) []any { return vals(a.MemsetD32Async(nPtrA, 0xfedcba98, nSize, nStr)) }, vals(nPtrA, 0xfedcba98, nSize, nStr), nil},
	}
}

// launchParams reads the parameter buffer that a launch option list names.
func launchParams(t *testing.T, extra uintptr) []byte {
	t.Helper()
	list := *ptrAt[[5]uintptr](extra)
	require.Equal(t, uintptr(1), list[0], "buffer pointer")
	require.Equal(t, uintptr(2), list[2], "buffer size")
	require.Equal(t, uintptr(0), list[4], "end of the list")
	return append([]byte(nil), unsafe.Slice(ptrAt[byte](list[1]), *ptrAt[uint64](list[3]))...)
}

// checkArg compares one argument word, cut to the width of its C type.
func checkArg(t *testing.T, ctype string, want any, got uintptr) {
	t.Helper()
	bits := 8 * cWidth(ctype)
	switch w := want.(type) {
	case outValue:
		require.Equal(t, byte('*'), ctype[len(ctype)-1], "a result goes through a pointer")
		require.NotZero(t, got)
		target := reflect.NewAt(reflect.TypeOf(w.v), *(*unsafe.Pointer)(unsafe.Pointer(&got)))
		if elem := ctype[:len(ctype)-1]; elem != "void" && elem != "char" && elem != "CUuuid" {
			require.Equal(t, cWidth(elem), int(target.Type().Elem().Size()), "width of the result")
		}
		target.Elem().Set(reflect.ValueOf(w.v))
	case hostBytes:
		require.Equal(t, byte('*'), ctype[len(ctype)-1])
		require.NotZero(t, got)
		assert.Equal(t, w.b, append([]byte(nil), unsafe.Slice(ptrAt[byte](got), len(w.b))...))
	case nullPtr:
		assert.Zero(t, got)
	case checkPtr:
		require.NotZero(t, got)
		w.f(t, got)
	default:
		v := reflect.ValueOf(want)
		var word uint64
		if v.CanInt() {
			word = uint64(v.Int())
		} else {
			word = v.Uint()
		}
		assert.Equal(t, word<<(64-bits), uint64(got)<<(64-bits), "%s", ctype)
	}
}

// TestNativeCalls checks, for every method of the interface, which entry point
// it calls and with which arguments, and how the results come back.
func TestNativeCalls(t *testing.T) {
	params := symbolFacts(t)
	seen := map[string]bool{}
	for _, c := range nativeCases() {
		seen[c.method] = true
		t.Run(c.method, func(t *testing.T) {
			e, ok := entryFor(c.method)
			require.True(t, ok)
			list := params[e.name]
			require.Len(t, c.args, len(list), "parameters of %s", e.name)
			f := newFake(t)
			f.on[e.name] = func(args []uintptr) {
				for i, a := range args {
					checkArg(t, list[i][0], c.args[i], a)
				}
			}
			got := c.call(newNative(f.library()))
			assert.Equal(t, append(c.want, cuapi.Success), got)
			assert.Equal(t, map[string]int{e.name: 1}, f.calls)
		})
	}
	api := reflect.TypeFor[cuapi.API]()
	for i := range api.NumMethod() {
		if name := api.Method(i).Name; name != "Name" {
			assert.True(t, seen[name], "no case for %s", name)
		}
	}
}

// TestNativeCodes checks that a failure of any entry point comes back as its
// code, and that no result is made up.
func TestNativeCodes(t *testing.T) {
	for _, c := range nativeCases() {
		t.Run(c.method, func(t *testing.T) {
			e, _ := entryFor(c.method)
			f := newFake(t)
			delete(f.on, e.name)
			f.results[e.name] = cuapi.ErrorIllegalAddress
			got := c.call(newNative(f.library()))
			last := len(got) - 1
			assert.Equal(t, cuapi.ErrorIllegalAddress, got[last])
			for i, v := range got[:last] {
				assert.Zero(t, v, "result %d", i)
			}
		})
	}
}

// TestNativeMissing checks that an absent entry point is answered without a
// call, is looked up once, and costs nothing else.
func TestNativeMissing(t *testing.T) {
	for _, c := range nativeCases() {
		t.Run(c.method, func(t *testing.T) {
			e, _ := entryFor(c.method)
			f := newFake(t)
			f.absent[e.name] = true
			api := newNative(f.library())
			for range 2 {
				got := c.call(api)
				assert.Equal(t, cuapi.ErrorCallRequiresNewerDriver, got[len(got)-1])
			}
			assert.Empty(t, f.calls)
			assert.Equal(t, map[string]int{e.name: 1}, f.lookups)
		})
	}
}
