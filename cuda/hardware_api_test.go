package cuda_test

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/ptx"
	"github.com/raymux/raymux/tests/gputest"
)

// TestHardwareEveryEntryPoint makes each call of the driver interface once, by
// itself, and requires success. That none is left out is checked.
func TestHardwareEveryEntryPoint(t *testing.T) {
	var api *wrap.Trace
	rig := gputest.Open(t, 2, func(inner cuapi.API) cuapi.API {
		api = wrap.NewTrace(inner)
		return api
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, r := api.CtxGetCurrent()
	require.Equal(t, cuapi.Success, r)
	defer func() { require.Equal(t, cuapi.Success, api.CtxSetCurrent(before)) }()
	api.Reset()
	must := func(r cuapi.Result) {
		t.Helper()
		require.Equal(t, cuapi.Success, r)
	}

	must(api.Init(0))
	_, r = api.DriverGetVersion()
	must(r)
	_, r = api.GetErrorText(cuapi.ErrorIllegalAddress)
	must(r)
	_, r = api.DeviceGetCount()
	must(r)
	var dev [2]cuapi.Device
	var ctx [2]cuapi.Context
	for i, d := range rig.Devices {
		dev[i], r = api.DeviceGet(d.Ordinal())
		must(r)
		ctx[i], r = api.DevicePrimaryCtxRetain(dev[i])
		must(r)
		defer func() { must(api.DevicePrimaryCtxRelease(dev[i])) }()
	}
	_, active, r := api.DevicePrimaryCtxGetState(dev[0])
	must(r)
	assert.True(t, active)
	_, r = api.DeviceGetName(dev[0])
	must(r)
	_, r = api.DeviceGetUUID(dev[0])
	must(r)
	_, r = api.DeviceTotalMem(dev[0])
	must(r)
	_, r = api.DeviceGetPCIBusID(dev[0])
	must(r)
	warp, r := api.DeviceGetAttribute(cuapi.AttrWarpSize, dev[0])
	must(r)
	assert.Equal(t, 32, warp)
	linked, r := api.DeviceCanAccessPeer(dev[0], dev[1])
	must(r)
	p2p, r := api.DeviceGetP2PAttribute(cuapi.P2PAccessSupported, dev[0], dev[1])
	must(r)
	assert.Equal(t, linked, p2p == 1)

	must(api.CtxSetCurrent(ctx[1]))
	far, r := api.MemAlloc(4096)
	must(r)
	must(api.CtxSetCurrent(ctx[0]))
	now, r := api.CtxGetDevice()
	must(r)
	assert.Equal(t, dev[0], now)
	_, _, r = api.CtxGetStreamPriorityRange()
	must(r)
	stack, r := api.CtxGetLimit(cuapi.LimitStackSize)
	must(r)
	must(api.CtxSetLimit(cuapi.LimitStackSize, stack))
	if linked {
		must(api.CtxEnablePeerAccess(ctx[1], 0))
		must(api.CtxDisablePeerAccess(ctx[1]))
	} else {
		require.Equal(t, cuapi.ErrorPeerAccessUnsupported, api.CtxEnablePeerAccess(ctx[1], 0))
		require.Equal(t, cuapi.ErrorPeerAccessNotEnabled, api.CtxDisablePeerAccess(ctx[1]))
	}

	s, r := api.StreamCreateWithPriority(cuapi.StreamNonBlocking, 0)
	must(r)
	_, r = api.StreamGetPriority(s)
	must(r)
	start, r := api.EventCreate(cuapi.EventDefault)
	must(r)
	end, r := api.EventCreate(cuapi.EventDefault)
	must(r)
	must(api.EventRecord(start, s))

	// A pattern goes through every kind of memory and copy.
	const words, size = 512, 2048
	image, err := ptx.Module(fillKernel.Module)
	require.NoError(t, err)
	m, r := api.ModuleLoadDataEx(image, nil)
	must(r)
	fill, r := api.ModuleGetFunction(m, fillKernel.Name)
	must(r)
	threads, r := api.FuncGetAttribute(cuapi.FuncMaxThreadsPerBlock, fill)
	must(r)
	assert.GreaterOrEqual(t, threads, 64)
	must(api.FuncSetAttribute(fill, cuapi.FuncMaxDynamicSharedSizeBytes, 1024))
	_, r = api.OccupancyMaxActiveBlocks(fill, 64, 0)
	must(r)
	_, _, r = api.OccupancyMaxPotentialBlockSize(fill, 0, 0)
	must(r)
	a, r := api.MemAlloc(size)
	must(r)
	b, r := api.MemAllocAsync(size, s)
	must(r)
	p := peerFillParams{Dst: uint64(a), Count: words, Seed: 21}
	must(api.LaunchKernel(fill, cuapi.D1(2), cuapi.D1(64), 0, s, cuda.ParamBytes(&p)))
	must(api.MemcpyDtoDAsync(b, a, size, s))
	must(api.MemcpyPeerAsync(far, ctx[1], a, ctx[0], size, s))
	must(api.MemsetD8Async(a, 1, size, s))
	must(api.MemsetD32Async(b, 2, words, s))
	must(api.EventRecord(end, s))
	must(api.StreamWaitEvent(s, end, 0))
	must(api.EventSynchronize(end))
	must(api.EventQuery(end))
	_, r = api.EventElapsedTime(start, end)
	must(r)
	must(api.StreamSynchronize(s))
	must(api.StreamQuery(s))
	must(api.MemcpyPeer(a, ctx[0], far, ctx[1], size))
	must(api.CtxSynchronize())
	pinned, r := api.MemHostAlloc(size, cuapi.MemHostAllocPortable)
	must(r)
	must(api.MemcpyDtoHAsync(pinned, a, s))
	must(api.StreamSynchronize(s))
	must(api.MemsetD8(a, 3, size))
	must(api.MemsetD32(a, 4, words))
	must(api.CtxSynchronize())
	must(api.MemcpyHtoDAsync(a, pinned, s))
	must(api.StreamSynchronize(s))
	must(api.MemcpyDtoD(b, a, size))
	registered := make([]byte, size)
	var pin runtime.Pinner
	pin.Pin(&registered[0])
	defer pin.Unpin()
	must(api.MemHostRegister(registered, 0))
	must(api.MemcpyDtoH(registered, b))
	must(api.MemHostUnregister(registered))
	must(api.MemcpyHtoD(a, registered))
	got := make([]byte, size)
	must(api.MemcpyDtoH(got, a))
	for i, want := range patterns(words, 21) {
		w := got[4*i:]
		require.Equal(t, want, uint32(w[0])|uint32(w[1])<<8|uint32(w[2])<<16|uint32(w[3])<<24, "word %d", i)
	}

	_, _, r = api.MemGetInfo()
	must(r)
	base, _, r := api.MemGetAddressRange(a + 5)
	must(r)
	assert.Equal(t, a, base)
	info, r := api.PointerGetInfo(far)
	must(r)
	assert.Equal(t, rig.Devices[1].Ordinal(), info.Ordinal)
	pool, r := api.DeviceGetDefaultMemPool(dev[0])
	must(r)
	keep, r := api.MemPoolGetAttribute(pool, cuapi.MemPoolReleaseThreshold)
	must(r)
	must(api.MemPoolSetAttribute(pool, cuapi.MemPoolReleaseThreshold, keep))
	must(api.MemPoolSetAccess(pool, dev[0], cuapi.MemAccessProtReadwrite))
	must(api.MemFreeAsync(b, s))
	must(api.StreamSynchronize(s))
	must(api.MemPoolTrimTo(pool, 0))

	v, r := api.ModuleLoadDataEx([]byte(variablesPTX), nil)
	must(r)
	_, n, r := api.ModuleGetGlobal(v, "numbers")
	must(r)
	assert.EqualValues(t, 12, n)
	must(api.ModuleUnload(v))
	must(api.ModuleUnload(m))
	must(api.EventDestroy(start))
	must(api.EventDestroy(end))
	must(api.StreamDestroy(s))
	must(api.MemFreeHost(pinned))
	must(api.MemFree(a))
	must(api.CtxSetCurrent(ctx[1]))
	must(api.MemFree(far))
	_, r = api.CtxGetCurrent()
	must(r)
	for _, d := range dev { // the deferred releases balance these
		_, r = api.DevicePrimaryCtxRetain(d)
		must(r)
		must(api.DevicePrimaryCtxRelease(d))
	}

	for method := range reflect.TypeFor[cuapi.API]().Methods() {
		if method.Name != "Name" { // no call of the driver
			assert.NotZero(t, api.Count(method.Name), "%s is left out", method.Name)
		}
	}
}
