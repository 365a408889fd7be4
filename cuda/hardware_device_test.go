package cuda_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/tests/gputest"
)

func TestHardwareDriver(t *testing.T) {
	rig := gputest.Open(t, 1, nil)
	api := rig.Driver.API()
	assert.Equal(t, gputest.Native(), api.Name() == "native")
	assert.Equal(t, !gputest.Native(), rig.Driver.Emulated())
	assert.Equal(t, cuapi.Success, api.Init(0), "initialising again does nothing")
	version, r := api.DriverGetVersion()
	require.Equal(t, cuapi.Success, r)
	assert.GreaterOrEqual(t, version, cuda.MinDriverVersion)
	assert.Equal(t, version, rig.Driver.Version())
	for _, code := range []cuapi.Result{0, 1, 2, 100, 218, 700} {
		text, r := api.GetErrorText(code)
		assert.Equal(t, cuapi.Success, r, "%v", code)
		assert.NotEmpty(t, text, "%v", code)
	}
	_, r = api.GetErrorText(99999)
	assert.Equal(t, cuapi.ErrorInvalidValue, r)

	n, r := api.DeviceGetCount()
	require.Equal(t, cuapi.Success, r)
	assert.Equal(t, n, rig.Driver.DeviceCount())
	for _, i := range []int{-1, n, 99} {
		_, err := rig.Driver.Device(i)
		var bad *cuda.ArgumentError
		assert.ErrorAs(t, err, &bad, "device %d", i)
		_, r := api.DeviceGet(i)
		assert.Equal(t, cuapi.ErrorInvalidDevice, r, "device %d", i)
	}
}

func TestHardwareDeviceQueries(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	api := rig.Driver.API()
	seen := map[any]int{}
	for _, d := range rig.Devices {
		h, r := api.DeviceGet(d.Ordinal())
		require.Equal(t, cuapi.Success, r)
		name, r := api.DeviceGetName(h)
		require.Equal(t, cuapi.Success, r)
		assert.Equal(t, name, d.Name())
		assert.NotEmpty(t, name)
		assert.NotContains(t, name, "\x00")
		total, r := api.DeviceTotalMem(h)
		require.Equal(t, cuapi.Success, r)
		assert.Equal(t, total, d.TotalMem())
		assert.GreaterOrEqual(t, total, uint64(1<<30))
		uuid, r := api.DeviceGetUUID(h)
		require.Equal(t, cuapi.Success, r)
		assert.Equal(t, uuid, d.UUID())
		assert.NotEqual(t, [16]byte{}, uuid)
		bus, r := api.DeviceGetPCIBusID(h)
		require.Equal(t, cuapi.Success, r)
		assert.Equal(t, bus, d.PCIBusID())
		assert.Regexp(t, `^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]$`, bus)
		seen[uuid]++
		seen[bus]++

		attr := func(a cuapi.DeviceAttribute) int {
			v, err := d.Attribute(a)
			require.NoError(t, err, "attribute %d", a)
			return v
		}
		major, minor := d.Capability()
		assert.Equal(t, fmt.Sprintf("device %d: %s, compute capability %d.%d", d.Ordinal(), name, major, minor), d.String())
		assert.Equal(t, []int{major, minor}, []int{attr(cuapi.AttrComputeCapabilityMajor), attr(cuapi.AttrComputeCapabilityMinor)})
		assert.GreaterOrEqual(t, major*10+minor, 75, "the committed programs need compute_75")
		assert.Equal(t, 32, attr(cuapi.AttrWarpSize))
		assert.Equal(t, 1, attr(cuapi.AttrUnifiedAddressing))
		assert.Equal(t, d.Multiprocessors(), attr(cuapi.AttrMultiprocessorCount))
		assert.Positive(t, d.Multiprocessors())
		assert.Equal(t, 1024, attr(cuapi.AttrMaxThreadsPerBlock))
		assert.GreaterOrEqual(t, attr(cuapi.AttrMaxThreadsPerMultiprocessor), 1024)
		assert.Equal(t, []int{1024, 1024, 64}, []int{attr(cuapi.AttrMaxBlockDimX), attr(cuapi.AttrMaxBlockDimY), attr(cuapi.AttrMaxBlockDimZ)})
		assert.Equal(t, []int{1<<31 - 1, 65535, 65535}, []int{attr(cuapi.AttrMaxGridDimX), attr(cuapi.AttrMaxGridDimY), attr(cuapi.AttrMaxGridDimZ)})
		assert.GreaterOrEqual(t, attr(cuapi.AttrMaxSharedMemoryPerBlock), 48<<10)
		assert.GreaterOrEqual(t, attr(cuapi.AttrMaxSharedMemoryPerBlockOptin), attr(cuapi.AttrMaxSharedMemoryPerBlock))
		_, err := d.Attribute(9999)
		assert.ErrorIs(t, err, cuapi.ErrorInvalidValue)
	}
	assert.Len(t, seen, 4, "identities differ: %v", seen)
}

func TestHardwarePeerQueries(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	api := rig.Driver.API()
	for i, a := range rig.Devices {
		b := rig.Devices[1-i]
		ok, err := a.CanAccessPeer(b)
		require.NoError(t, err)
		self, err := a.CanAccessPeer(a)
		require.NoError(t, err)
		assert.True(t, self)
		from, r := api.DeviceGet(a.Ordinal())
		require.Equal(t, cuapi.Success, r)
		to, r := api.DeviceGet(b.Ordinal())
		require.Equal(t, cuapi.Success, r)
		attr, r := api.DeviceGetP2PAttribute(cuapi.P2PAccessSupported, from, to)
		require.Equal(t, cuapi.Success, r)
		assert.Equal(t, ok, attr == 1)
		rank, r := api.DeviceGetP2PAttribute(cuapi.P2PPerformanceRank, from, to)
		require.Equal(t, cuapi.Success, r)
		assert.GreaterOrEqual(t, rank, 0)
	}
}

func TestHardwareContext(t *testing.T) {
	api, us := units(t, 2)
	for _, u := range us {
		h, r := api.DeviceGet(u.dev.Ordinal())
		require.Equal(t, cuapi.Success, r)
		_, active, r := api.DevicePrimaryCtxGetState(h)
		require.Equal(t, cuapi.Success, r)
		assert.True(t, active)
		again, err := u.dev.Retain()
		require.NoError(t, err)
		assert.Equal(t, u.c.Handle(), again.Handle(), "there is one primary context per device")
		require.NoError(t, again.Close())
		require.NoError(t, u.c.Synchronize())
		u.in(func() {
			now, r := api.CtxGetCurrent()
			assert.Equal(t, cuapi.Success, r)
			assert.Equal(t, u.c.Handle(), now)
			d, r := api.CtxGetDevice()
			assert.Equal(t, cuapi.Success, r)
			assert.Equal(t, h, d)
			assert.Equal(t, cuapi.Success, api.CtxSynchronize())
			least, greatest, r := api.CtxGetStreamPriorityRange()
			assert.Equal(t, cuapi.Success, r)
			assert.GreaterOrEqual(t, least, greatest, "the greater priority is the smaller number")
			stack, r := api.CtxGetLimit(cuapi.LimitStackSize)
			require.Equal(t, cuapi.Success, r)
			require.Equal(t, cuapi.Success, api.CtxSetLimit(cuapi.LimitStackSize, 8192))
			larger, r := api.CtxGetLimit(cuapi.LimitStackSize)
			assert.Equal(t, cuapi.Success, r)
			assert.GreaterOrEqual(t, larger, uint64(8192))
			assert.Equal(t, cuapi.Success, api.CtxSetLimit(cuapi.LimitStackSize, stack))
			_, r = api.CtxGetLimit(999)
			assert.NotEqual(t, cuapi.Success, r)
		})
	}
}

// TestHardwareContextIsRestored runs the same session whatever is current on
// the thread, and finds it current afterwards.
func TestHardwareContextIsRestored(t *testing.T) {
	api, us := units(t, 2)
	a, b := us[0], us[1]
	before, r := api.CtxGetCurrent()
	require.Equal(t, cuapi.Success, r)
	for _, outer := range []func(func()){func(f func()) { f() }, a.in, b.in, func(f func()) { a.in(func() { b.in(f) }) }} {
		outer(func() {
			ambient, r := api.CtxGetCurrent()
			require.Equal(t, cuapi.Success, r)
			for i, u := range us {
				x := newSlice[uint32](u, 1000)
				require.NoError(t, u.fillWords(u.s, x, uint32(i), 3, 64))
				assert.Zero(t, u.wrongWords(x, uint32(i)))
				assert.Equal(t, patterns(1000, uint32(i)), download(u, x))
				now, r := api.CtxGetCurrent()
				assert.Equal(t, cuapi.Success, r)
				assert.Equal(t, ambient, now)
			}
		})
	}
	after, r := api.CtxGetCurrent()
	require.Equal(t, cuapi.Success, r)
	assert.Equal(t, before, after)
}
