package emu

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
)

// call is one driver call with arguments that are zero where a handle is due.
type call struct {
	name string
	do   func(e *Emulator) cuapi.Result
	// context says whether the call needs a current context.
	context bool
}

func calls() []call {
	b := make([]byte, 8)
	r1 := func(_ any, r cuapi.Result) cuapi.Result { return r }
	return []call{
		{"DeviceGetCount", func(e *Emulator) cuapi.Result { return r1(e.DeviceGetCount()) }, false},
		{"DeviceGet", func(e *Emulator) cuapi.Result { return r1(e.DeviceGet(0)) }, false},
		{"DeviceGetName", func(e *Emulator) cuapi.Result { return r1(e.DeviceGetName(0)) }, false},
		{"DeviceGetUUID", func(e *Emulator) cuapi.Result { return r1(e.DeviceGetUUID(0)) }, false},
		{"DeviceTotalMem", func(e *Emulator) cuapi.Result { return r1(e.DeviceTotalMem(0)) }, false},
		{"DeviceGetAttribute", func(e *Emulator) cuapi.Result { return r1(e.DeviceGetAttribute(1, 0)) }, false},
		{"DeviceGetPCIBusID", func(e *Emulator) cuapi.Result { return r1(e.DeviceGetPCIBusID(0)) }, false},
		{"DeviceCanAccessPeer", func(e *Emulator) cuapi.Result { return r1(e.DeviceCanAccessPeer(0, 1)) }, false},
		{"DeviceGetP2PAttribute", func(e *Emulator) cuapi.Result { return r1(e.DeviceGetP2PAttribute(1, 0, 1)) }, false},
		{"DevicePrimaryCtxRetain", func(e *Emulator) cuapi.Result { return r1(e.DevicePrimaryCtxRetain(0)) }, false},
		{"DevicePrimaryCtxRelease", func(e *Emulator) cuapi.Result { return e.DevicePrimaryCtxRelease(0) }, false},
		{"DevicePrimaryCtxGetState", func(e *Emulator) cuapi.Result { _, _, r := e.DevicePrimaryCtxGetState(0); return r }, false},
		{"CtxGetCurrent", func(e *Emulator) cuapi.Result { return r1(e.CtxGetCurrent()) }, false},
		{"CtxSetCurrent", func(e *Emulator) cuapi.Result { return e.CtxSetCurrent(0) }, false},
		{"DeviceGetDefaultMemPool", func(e *Emulator) cuapi.Result { return r1(e.DeviceGetDefaultMemPool(0)) }, false},
		{"MemPoolTrimTo", func(e *Emulator) cuapi.Result { return e.MemPoolTrimTo(0, 0) }, false},
		{"MemPoolGetAttribute", func(e *Emulator) cuapi.Result { return r1(e.MemPoolGetAttribute(0, 4)) }, false},
		{"MemPoolSetAttribute", func(e *Emulator) cuapi.Result { return e.MemPoolSetAttribute(0, 4, 0) }, false},
		{"MemPoolSetAccess", func(e *Emulator) cuapi.Result { return e.MemPoolSetAccess(0, 0, 3) }, false},

		{"CtxGetDevice", func(e *Emulator) cuapi.Result { return r1(e.CtxGetDevice()) }, true},
		{"CtxSynchronize", func(e *Emulator) cuapi.Result { return e.CtxSynchronize() }, true},
		{"CtxGetStreamPriorityRange", func(e *Emulator) cuapi.Result { _, _, r := e.CtxGetStreamPriorityRange(); return r }, true},
		{"CtxGetLimit", func(e *Emulator) cuapi.Result { return r1(e.CtxGetLimit(0)) }, true},
		{"CtxSetLimit", func(e *Emulator) cuapi.Result { return e.CtxSetLimit(0, 2048) }, true},
		{"CtxEnablePeerAccess", func(e *Emulator) cuapi.Result { return e.CtxEnablePeerAccess(0, 0) }, true},
		{"CtxDisablePeerAccess", func(e *Emulator) cuapi.Result { return e.CtxDisablePeerAccess(0) }, true},
		{"ModuleLoadDataEx", func(e *Emulator) cuapi.Result { return r1(e.ModuleLoadDataEx(b, nil)) }, true},
		{"ModuleUnload", func(e *Emulator) cuapi.Result { return e.ModuleUnload(0) }, true},
		{"ModuleGetFunction", func(e *Emulator) cuapi.Result { return r1(e.ModuleGetFunction(0, "k")) }, true},
		{"ModuleGetGlobal", func(e *Emulator) cuapi.Result { _, _, r := e.ModuleGetGlobal(0, "v"); return r }, true},
		{"FuncGetAttribute", func(e *Emulator) cuapi.Result { return r1(e.FuncGetAttribute(0, 0)) }, true},
		{"FuncSetAttribute", func(e *Emulator) cuapi.Result { return e.FuncSetAttribute(0, 8, 0) }, true},
		{"OccupancyMaxActiveBlocks", func(e *Emulator) cuapi.Result { return r1(e.OccupancyMaxActiveBlocks(0, 32, 0)) }, true},
		{"OccupancyMaxPotentialBlockSize", func(e *Emulator) cuapi.Result { _, _, r := e.OccupancyMaxPotentialBlockSize(0, 0, 0); return r }, true},
		{"LaunchKernel", func(e *Emulator) cuapi.Result { return e.LaunchKernel(0, cuapi.D1(1), cuapi.D1(1), 0, 0, nil) }, true},
		{"StreamCreateWithPriority", func(e *Emulator) cuapi.Result { return r1(e.StreamCreateWithPriority(0, 0)) }, true},
		{"StreamDestroy", func(e *Emulator) cuapi.Result { return e.StreamDestroy(0) }, true},
		{"StreamSynchronize", func(e *Emulator) cuapi.Result { return e.StreamSynchronize(0) }, true},
		{"StreamQuery", func(e *Emulator) cuapi.Result { return e.StreamQuery(0) }, true},
		{"StreamWaitEvent", func(e *Emulator) cuapi.Result { return e.StreamWaitEvent(0, 0, 0) }, true},
		{"StreamGetPriority", func(e *Emulator) cuapi.Result { return r1(e.StreamGetPriority(0)) }, true},
		{"EventCreate", func(e *Emulator) cuapi.Result { return r1(e.EventCreate(0)) }, true},
		{"EventDestroy", func(e *Emulator) cuapi.Result { return e.EventDestroy(0) }, true},
		{"EventRecord", func(e *Emulator) cuapi.Result { return e.EventRecord(0, 0) }, true},
		{"EventQuery", func(e *Emulator) cuapi.Result { return e.EventQuery(0) }, true},
		{"EventSynchronize", func(e *Emulator) cuapi.Result { return e.EventSynchronize(0) }, true},
		{"EventElapsedTime", func(e *Emulator) cuapi.Result { return r1(e.EventElapsedTime(0, 0)) }, true},
		{"MemAlloc", func(e *Emulator) cuapi.Result { return r1(e.MemAlloc(8)) }, true},
		{"MemFree", func(e *Emulator) cuapi.Result { return e.MemFree(0) }, true},
		{"MemAllocAsync", func(e *Emulator) cuapi.Result { return r1(e.MemAllocAsync(8, 0)) }, true},
		{"MemFreeAsync", func(e *Emulator) cuapi.Result { return e.MemFreeAsync(0, 0) }, true},
		{"MemGetInfo", func(e *Emulator) cuapi.Result { _, _, r := e.MemGetInfo(); return r }, true},
		{"MemGetAddressRange", func(e *Emulator) cuapi.Result { _, _, r := e.MemGetAddressRange(0); return r }, true},
		{"MemHostAlloc", func(e *Emulator) cuapi.Result { return r1(e.MemHostAlloc(8, 0)) }, true},
		{"MemFreeHost", func(e *Emulator) cuapi.Result { return e.MemFreeHost(b) }, true},
		{"MemHostRegister", func(e *Emulator) cuapi.Result { return e.MemHostRegister(b, 0) }, true},
		{"MemHostUnregister", func(e *Emulator) cuapi.Result { return e.MemHostUnregister(b) }, true},
		{"PointerGetInfo", func(e *Emulator) cuapi.Result { return r1(e.PointerGetInfo(0)) }, true},
		{"MemcpyHtoD", func(e *Emulator) cuapi.Result { return e.MemcpyHtoD(0, b) }, true},
		{"MemcpyDtoH", func(e *Emulator) cuapi.Result { return e.MemcpyDtoH(b, 0) }, true},
		{"MemcpyDtoD", func(e *Emulator) cuapi.Result { return e.MemcpyDtoD(0, 0, 8) }, true},
		{"MemcpyHtoDAsync", func(e *Emulator) cuapi.Result { return e.MemcpyHtoDAsync(0, b, 0) }, true},
		{"MemcpyDtoHAsync", func(e *Emulator) cuapi.Result { return e.MemcpyDtoHAsync(b, 0, 0) }, true},
		{"MemcpyDtoDAsync", func(e *Emulator) cuapi.Result { return e.MemcpyDtoDAsync(0, 0, 8, 0) }, true},
		{"MemcpyPeer", func(e *Emulator) cuapi.Result { return e.MemcpyPeer(0, 0, 0, 0, 8) }, true},
		{"MemcpyPeerAsync", func(e *Emulator) cuapi.Result { return e.MemcpyPeerAsync(0, 0, 0, 0, 8, 0) }, true},
		{"MemsetD8", func(e *Emulator) cuapi.Result { return e.MemsetD8(0, 0, 8) }, true},
		{"MemsetD8Async", func(e *Emulator) cuapi.Result { return e.MemsetD8Async(0, 0, 8, 0) }, true},
		{"MemsetD32", func(e *Emulator) cuapi.Result { return e.MemsetD32(0, 0, 8) }, true},
		{"MemsetD32Async", func(e *Emulator) cuapi.Result { return e.MemsetD32Async(0, 0, 8, 0) }, true},
	}
}

func TestBeforeInitEveryCallAnswersNotInitialized(t *testing.T) {
	e, err := New(2)
	require.NoError(t, err)
	for _, c := range calls() {
		assert.Equal(t, cuapi.ErrorNotInitialized, c.do(e), c.name)
	}
	assert.Equal(t, cuapi.ErrorInvalidValue, e.Init(1))
	v, r := e.DriverGetVersion()
	ok(t, r)
	assert.Equal(t, 12080, v)
}

func TestWithoutContextCallsAnswerInvalidContext(t *testing.T) {
	e := newEmu(t, 2)
	for _, c := range calls() {
		if c.context {
			assert.Equal(t, cuapi.ErrorInvalidContext, c.do(e), c.name)
		}
	}
}

func TestDestroyedContextIsRefused(t *testing.T) {
	e := newEmu(t, 2)
	h := retain(t, e, 0)
	ok(t, e.DevicePrimaryCtxRelease(0))
	for _, c := range calls() {
		if c.context {
			assert.Equal(t, cuapi.ErrorContextIsDestroyed, c.do(e), c.name)
		}
	}
	assert.Equal(t, cuapi.ErrorInvalidContext, e.CtxSetCurrent(h))
	assert.Equal(t, h, must(e.CtxGetCurrent())(t))
	again := retain(t, e, 0)
	assert.NotEqual(t, h, again)
	ok(t, e.CtxSynchronize())
}

func TestLostDeviceAnswersTheStickyCodeEverywhere(t *testing.T) {
	e := newEmu(t, 2)
	retain(t, e, 0)
	s, v := newTestStream(t, e), newTestEvent(t, e)
	e.KillDevice(0)
	e.KillDevice(0)
	e.KillDevice(7)
	for _, c := range calls() {
		if c.context {
			assert.Equal(t, cuapi.ErrorLaunchFailed, c.do(e), c.name)
		}
	}
	assert.Equal(t, cuapi.ErrorLaunchFailed, e.StreamSynchronize(s))
	assert.Equal(t, cuapi.ErrorLaunchFailed, e.EventQuery(v))
	_, r := e.DevicePrimaryCtxRetain(0)
	assert.Equal(t, cuapi.ErrorLaunchFailed, r)

	// The other device lives on, and what it asks about the lost one fails.
	retain(t, e, 1)
	ok(t, e.MemcpyHtoD(must(e.MemAlloc(4))(t), []byte{1, 2, 3, 4}))
	ok(t, e.CtxSynchronize())
	assert.Equal(t, cuapi.ErrorLaunchFailed, e.StreamQuery(s))
	assert.Equal(t, cuapi.ErrorLaunchFailed, e.EventSynchronize(v))
	ok(t, e.DevicePrimaryCtxRelease(0))
}

func TestOptionsAreValidated(t *testing.T) {
	for name, c := range map[string]struct {
		n    int
		opts []Option
		arg  string
	}{
		"no device":   {0, nil, "n"},
		"65 devices":  {65, nil, "n"},
		"no memory":   {1, []Option{WithMemory(0)}, "WithMemory"},
		"much memory": {1, []Option{WithMemory(1 << 40)}, "WithMemory"},
		"no workers":  {1, []Option{WithWorkers(0)}, "WithWorkers"},
		"no SMs":      {1, []Option{WithSMs(0)}, "WithSMs"},
	} {
		e, err := New(c.n, c.opts...)
		assert.Nil(t, e, name)
		var arg *ArgumentError
		if assert.ErrorAs(t, err, &arg, name) {
			assert.Equal(t, c.arg, arg.Arg, name)
		}
	}
	_, err := New(0)
	assert.EqualError(t, err, "emu: New: n: 0 devices asked for, 1 to 64 are possible")
}

func TestDeviceQueries(t *testing.T) {
	e := newEmu(t, 64, WithMemory(3<<20), WithSMs(13),
		WithName(func(d int) string { return string(rune('a' + d%26)) }),
		WithCapability(func(d int) (int, int) { return 7 + d%3, d % 7 }),
		WithPeerAccess(func(a, b int) bool { return a < b }))
	assert.Equal(t, 64, must(e.DeviceGetCount())(t))
	uuids, buses := map[[16]byte]bool{}, map[string]bool{}
	for i := range 64 {
		d := must(e.DeviceGet(i))(t)
		assert.Equal(t, string(rune('a'+i%26)), must(e.DeviceGetName(d))(t))
		assert.EqualValues(t, 3<<20, must(e.DeviceTotalMem(d))(t))
		uuids[must(e.DeviceGetUUID(d))(t)] = true
		buses[must(e.DeviceGetPCIBusID(d))(t)] = true
		for a, want := range map[cuapi.DeviceAttribute]int{
			cuapi.AttrMultiprocessorCount:    13,
			cuapi.AttrComputeCapabilityMajor: 7 + i%3,
			cuapi.AttrComputeCapabilityMinor: i % 7,
			cuapi.AttrWarpSize:               32,
			cuapi.AttrUnifiedAddressing:      1,
			cuapi.AttrManagedMemory:          0,
		} {
			assert.Equal(t, want, must(e.DeviceGetAttribute(a, d))(t), "attribute %d of device %d", a, i)
		}
		for j := range 64 {
			assert.Equal(t, i < j, must(e.DeviceCanAccessPeer(d, cuapi.Device(j)))(t))
		}
	}
	assert.Len(t, uuids, 64)
	assert.Len(t, buses, 64)

	for _, d := range []cuapi.Device{-1, 64} {
		_, r := e.DeviceGet(int(d))
		assert.Equal(t, cuapi.ErrorInvalidDevice, r)
		_, r = e.DeviceGetName(d)
		assert.Equal(t, cuapi.ErrorInvalidDevice, r)
		_, r = e.DevicePrimaryCtxRetain(d)
		assert.Equal(t, cuapi.ErrorInvalidDevice, r)
	}
	for _, a := range []cuapi.DeviceAttribute{0, -1, 10000} {
		_, r := e.DeviceGetAttribute(a, 0)
		assert.Equal(t, cuapi.ErrorInvalidValue, r)
	}
	assert.Equal(t, 1, must(e.DeviceGetP2PAttribute(cuapi.P2PAccessSupported, 0, 1))(t))
	assert.Equal(t, 0, must(e.DeviceGetP2PAttribute(cuapi.P2PAccessSupported, 1, 0))(t))
	_, r := e.DeviceGetP2PAttribute(cuapi.P2PAccessSupported, 1, 1)
	assert.Equal(t, cuapi.ErrorInvalidDevice, r)
	_, r = e.DeviceGetP2PAttribute(99, 0, 1)
	assert.Equal(t, cuapi.ErrorInvalidValue, r)
}

func TestPrimaryContextIsCounted(t *testing.T) {
	e := newEmu(t, 1)
	active := func() bool { _, a, r := e.DevicePrimaryCtxGetState(0); ok(t, r); return a }
	assert.False(t, active())
	a, b := retain(t, e, 0), retain(t, e, 0)
	assert.Equal(t, a, b)
	p := must(e.MemAlloc(100))(t)
	ok(t, e.DevicePrimaryCtxRelease(0))
	assert.True(t, active())
	assert.Equal(t, p, cuapi.DevicePtr(must(e.PointerGetInfo(p))(t).RangeStart))
	ok(t, e.DevicePrimaryCtxRelease(0))
	assert.False(t, active())
	assert.Equal(t, cuapi.ErrorInvalidContext, e.DevicePrimaryCtxRelease(0))

	// The end of the context freed its memory.
	retain(t, e, 0)
	free, total, r := e.MemGetInfo()
	ok(t, r)
	assert.Equal(t, total, free)
	assert.Equal(t, cuapi.ErrorInvalidValue, e.MemFree(p))
}

func TestCurrentContextBelongsToTheThread(t *testing.T) {
	e := newEmu(t, 3)
	want := retain(t, e, 0)
	var wg sync.WaitGroup
	for i := 1; i < 3; i++ {
		wg.Go(func() {
			// A goroutine with a locked thread of its own: t stays on another.
			done := make(chan cuapi.Context)
			go func() {
				lockForever()
				cur, _ := e.CtxGetCurrent()
				done <- cur
				c, _ := e.DevicePrimaryCtxRetain(cuapi.Device(i))
				e.CtxSetCurrent(c)
				cur, _ = e.CtxGetCurrent()
				if cur == c {
					done <- c
				}
				close(done)
			}()
			assert.Zero(t, <-done)
			assert.NotZero(t, <-done)
			<-done
		})
	}
	wg.Wait()
	assert.Equal(t, want, must(e.CtxGetCurrent())(t))
	ok(t, e.CtxSetCurrent(0))
	assert.Zero(t, must(e.CtxGetCurrent())(t))
}

func TestHandlesAreNeverMixedUp(t *testing.T) {
	e, other := newEmu(t, 2), newEmu(t, 2)
	retain(t, e, 0)
	retain(t, other, 0)
	s, v := newTestStream(t, e), newTestEvent(t, e)
	gone, goneEvent := newTestStream(t, e), newTestEvent(t, e)
	ok(t, e.StreamDestroy(gone))
	ok(t, e.EventDestroy(goneEvent))
	foreign, foreignEvent := newTestStream(t, other), newTestEvent(t, other)

	for name, h := range map[string]cuapi.Stream{"destroyed": gone, "event": cuapi.Stream(v), "foreign": foreign, "number": 12345} {
		assert.Equal(t, cuapi.ErrorInvalidHandle, e.StreamSynchronize(h), name)
		assert.Equal(t, cuapi.ErrorInvalidHandle, e.StreamQuery(h), name)
		assert.Equal(t, cuapi.ErrorInvalidHandle, e.StreamDestroy(h), name)
		assert.Equal(t, cuapi.ErrorInvalidHandle, e.EventRecord(v, h), name)
		assert.Equal(t, cuapi.ErrorInvalidHandle, e.StreamWaitEvent(h, v, 0), name)
	}
	for name, h := range map[string]cuapi.Event{"destroyed": goneEvent, "stream": cuapi.Event(s), "foreign": foreignEvent, "zero": 0} {
		assert.Equal(t, cuapi.ErrorInvalidHandle, e.EventQuery(h), name)
		assert.Equal(t, cuapi.ErrorInvalidHandle, e.EventSynchronize(h), name)
		assert.Equal(t, cuapi.ErrorInvalidHandle, e.EventDestroy(h), name)
		assert.Equal(t, cuapi.ErrorInvalidHandle, e.EventRecord(h, s), name)
		assert.Equal(t, cuapi.ErrorInvalidHandle, e.StreamWaitEvent(s, h, 0), name)
	}
	seen := map[cuapi.Event]bool{}
	for range 100 {
		h := newTestEvent(t, e)
		assert.False(t, seen[h])
		seen[h] = true
		ok(t, e.EventDestroy(h))
	}

	// Handles of another context are live, but cannot be combined.
	retain(t, e, 1)
	s1, v1 := newTestStream(t, e), newTestEvent(t, e)
	assert.Equal(t, cuapi.ErrorInvalidHandle, e.EventRecord(v, s1))
	assert.Equal(t, cuapi.ErrorInvalidHandle, e.EventRecord(v1, s))
	ok(t, e.EventRecord(v, s))
	ok(t, e.StreamWaitEvent(s1, v, 0))
	_, r := e.EventElapsedTime(v, v1)
	assert.Equal(t, cuapi.ErrorInvalidHandle, r)
	assert.Equal(t, cuapi.ErrorInvalidHandle, e.StreamDestroy(0))
}

func TestLimitsAndPriorities(t *testing.T) {
	e := one(t)
	ok(t, e.CtxSetLimit(cuapi.LimitStackSize, 4096))
	assert.EqualValues(t, 4096, must(e.CtxGetLimit(cuapi.LimitStackSize))(t))
	assert.Equal(t, cuapi.ErrorUnsupportedLimit, e.CtxSetLimit(99, 1))
	_, r := e.CtxGetLimit(99)
	assert.Equal(t, cuapi.ErrorUnsupportedLimit, r)

	least, greatest, r := e.CtxGetStreamPriorityRange()
	ok(t, r)
	assert.Less(t, greatest, least)
	for asked, want := range map[int]int{100: least, -100: greatest, greatest: greatest, least: least} {
		s := must(e.StreamCreateWithPriority(cuapi.StreamNonBlocking, asked))(t)
		assert.Equal(t, want, must(e.StreamGetPriority(s))(t))
	}
	_, r = e.StreamCreateWithPriority(7, 0)
	assert.Equal(t, cuapi.ErrorInvalidValue, r)
	_, r = e.EventCreate(64)
	assert.Equal(t, cuapi.ErrorInvalidValue, r)
	_, r = e.EventCreate(cuapi.EventInterprocess | cuapi.EventDisableTiming)
	assert.Equal(t, cuapi.ErrorNotSupported, r)
	assert.Equal(t, cuapi.ErrorInvalidValue, e.StreamWaitEvent(0, newTestEvent(t, e), 1))
	assert.Equal(t, "emulator", e.Name())
	assert.Equal(t, "illegal address", must(e.GetErrorText(700))(t))
	assert.Equal(t, "no error", must(e.GetErrorText(0))(t))
	for _, bad := range []cuapi.Result{-5, 4711} {
		_, r = e.GetErrorText(bad)
		assert.Equal(t, cuapi.ErrorInvalidValue, r)
	}
}
