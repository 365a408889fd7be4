package cuda_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/tests/gputest"
)

func TestHardwareMemory(t *testing.T) {
	api, us := units(t, 2)
	const size = 64<<20 + 100
	for _, u := range us {
		u.in(func() {
			before, total, r := api.MemGetInfo()
			require.Equal(t, cuapi.Success, r)
			assert.LessOrEqual(t, before, total)
			assert.LessOrEqual(t, total, u.dev.TotalMem())
			p, r := api.MemAlloc(size)
			require.Equal(t, cuapi.Success, r)
			assert.Zero(t, p%256, "allocations are aligned")
			after, _, r := api.MemGetInfo()
			require.Equal(t, cuapi.Success, r)
			assert.LessOrEqual(t, after, before-size)
			for _, at := range []cuapi.DevicePtr{p, p + 1, p + size - 1} {
				base, n, r := api.MemGetAddressRange(at)
				require.Equal(t, cuapi.Success, r)
				assert.Equal(t, p, base)
				assert.GreaterOrEqual(t, n, uint64(size))
				info, r := api.PointerGetInfo(at)
				require.Equal(t, cuapi.Success, r)
				assert.Equal(t, cuapi.PointerInfo{
					MemoryType: cuapi.MemoryTypeDevice, Context: u.c.Handle(), Ordinal: u.dev.Ordinal(), RangeStart: p, RangeSize: n,
				}, info)
			}
			assert.Equal(t, cuapi.ErrorInvalidValue, api.MemFree(p+256), "not the start")
			assert.Equal(t, cuapi.Success, api.MemFree(p))
			_, r = api.MemAlloc(0)
			assert.Equal(t, cuapi.ErrorInvalidValue, r)
			info, r := api.PointerGetInfo(0x10)
			if r == cuapi.Success {
				assert.Zero(t, info.MemoryType, "unknown to the driver")
			} else {
				assert.Equal(t, cuapi.ErrorInvalidValue, r)
			}
		})
		free, total, err := u.c.MemInfo()
		require.NoError(t, err)
		assert.Positive(t, free)
		assert.Less(t, free, total)
	}
}

func TestHardwareOutOfMemory(t *testing.T) {
	api, us := units(t, 1)
	u := us[0]
	u.in(func() {
		_, r := api.MemAlloc(1 << 50)
		assert.Equal(t, cuapi.ErrorOutOfMemory, r)
		_, r = api.MemAllocAsync(1<<50, u.s.Handle())
		assert.Equal(t, cuapi.ErrorOutOfMemory, r)
	})
	_, err := cuda.Alloc[uint8](u.c, 1<<47)
	assert.ErrorIs(t, err, cuda.ErrOutOfMemory)
	var failed *cuda.Error
	if assert.ErrorAs(t, err, &failed) {
		assert.Equal(t, u.dev.Ordinal(), failed.Device)
	}
	var bad *cuda.ArgumentError
	assert.ErrorAs(t, second(cuda.Alloc[uint8](u.c, 1<<50)), &bad, "beyond any device")
	if gputest.Native() { // the emulator's memory is the host's
		free, _, err := u.c.MemInfo()
		require.NoError(t, err)
		cached, err := cuda.Alloc[uint8](u.c, int(free/10*6))
		require.NoError(t, err)
		require.NoError(t, cuda.PoolFree(u.c.Pool(), u.s, cached))
		more, err := cuda.Alloc[uint8](u.c, int(free/10*7))
		require.NoError(t, err, "the cache makes room")
		require.NoError(t, cuda.Free(more))
		require.NoError(t, u.c.Pool().Trim())
	}
	x := newSlice[uint32](u, 1000)
	require.NoError(t, u.fillWords(u.s, x, 8, 2, 64))
	assert.Equal(t, patterns(1000, 8), download(u, x), "the context works afterwards")
	assert.NoError(t, u.c.Lost())
}

func TestHardwareStreamOrderedMemory(t *testing.T) {
	api, us := units(t, 2)
	u, peer := us[0], us[1]
	supported, err := u.dev.Attribute(cuapi.AttrMemoryPoolsSupported)
	require.NoError(t, err)
	require.Equal(t, 1, supported)
	const words = 1 << 16
	u.in(func() {
		dev, r := api.DeviceGet(u.dev.Ordinal())
		require.Equal(t, cuapi.Success, r)
		pool, r := api.DeviceGetDefaultMemPool(dev)
		require.Equal(t, cuapi.Success, r)
		old, r := api.MemPoolGetAttribute(pool, cuapi.MemPoolReleaseThreshold)
		require.Equal(t, cuapi.Success, r)
		require.Equal(t, cuapi.Success, api.MemPoolSetAttribute(pool, cuapi.MemPoolReleaseThreshold, 1<<40))
		kept, r := api.MemPoolGetAttribute(pool, cuapi.MemPoolReleaseThreshold)
		require.Equal(t, cuapi.Success, r)
		assert.EqualValues(t, 1<<40, kept)
		reuse, r := api.MemPoolGetAttribute(pool, cuapi.MemPoolReuseFollowEventDependencies)
		require.Equal(t, cuapi.Success, r)
		assert.EqualValues(t, 1, reuse, "a 4-byte attribute")
		require.Equal(t, cuapi.Success, api.MemPoolSetAttribute(pool, cuapi.MemPoolReuseFollowEventDependencies, 1))

		s := u.s.Handle()
		used := func() uint64 {
			v, r := api.MemPoolGetAttribute(pool, cuapi.MemPoolUsedMemCurrent)
			require.Equal(t, cuapi.Success, r)
			return v
		}
		before := used()
		p, r := api.MemAllocAsync(4*words, s)
		require.Equal(t, cuapi.Success, r)
		assert.GreaterOrEqual(t, used(), before+4*words)
		require.Equal(t, cuapi.Success, api.StreamSynchronize(s))
		info, r := api.PointerGetInfo(p)
		require.Equal(t, cuapi.Success, r)
		assert.Equal(t, cuapi.MemoryTypeDevice, info.MemoryType)
		assert.Equal(t, u.dev.Ordinal(), info.Ordinal)
		x, err := cuda.Wrap[uint32](u.c, uint64(p), words, nil)
		require.NoError(t, err)
		require.NoError(t, u.fillWords(u.s, x, 77, 8, 128))
		assert.Zero(t, u.wrongWords(x, 77))

		// Access of the other device's kernels is granted to the pool.
		ok, err := peer.dev.CanAccessPeer(u.dev)
		require.NoError(t, err)
		other, r := api.DeviceGet(peer.dev.Ordinal())
		require.Equal(t, cuapi.Success, r)
		if ok {
			require.Equal(t, cuapi.Success, api.MemPoolSetAccess(pool, other, cuapi.MemAccessProtReadwrite))
			assert.Zero(t, peer.wrongWords(x, 77))
			require.NoError(t, peer.fillWords(peer.s, x, 78, 8, 128))
			peer.wait()
			assert.Zero(t, u.wrongWords(x, 78))
			require.Equal(t, cuapi.Success, api.MemPoolSetAccess(pool, other, cuapi.MemAccessProtNone))
		} else {
			assert.NotEqual(t, cuapi.Success, api.MemPoolSetAccess(pool, other, cuapi.MemAccessProtReadwrite))
		}
		require.NoError(t, cuda.Free(x))
		require.Equal(t, cuapi.Success, api.MemFreeAsync(p, s))
		require.Equal(t, cuapi.Success, api.StreamSynchronize(s))
		assert.Equal(t, before, used())
		reserved, r := api.MemPoolGetAttribute(pool, cuapi.MemPoolReservedMemCurrent)
		require.Equal(t, cuapi.Success, r)
		assert.GreaterOrEqual(t, reserved, uint64(4*words), "kept below the threshold")
		require.Equal(t, cuapi.Success, api.MemPoolTrimTo(pool, 0))
		trimmed, r := api.MemPoolGetAttribute(pool, cuapi.MemPoolReservedMemCurrent)
		require.Equal(t, cuapi.Success, r)
		assert.Less(t, trimmed, reserved)
		require.Equal(t, cuapi.Success, api.MemPoolSetAttribute(pool, cuapi.MemPoolReleaseThreshold, old))
	})
}

// TestHardwarePool runs a loop that allocates and frees on two streams: from
// the second round on the driver is not asked for memory.
func TestHardwarePool(t *testing.T) {
	_, us := units(t, 1)
	u := us[0]
	other, err := u.c.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, other.Close()) }()
	pool := u.c.Pool()
	n := slowWords()
	out := newSlice[uint32](u, n)
	round := func(seed uint32) (driverAllocs uint64) {
		before := pool.Stats().DriverAllocs
		x, err := cuda.PoolAlloc[uint32](pool, u.s, n)
		require.NoError(t, err)
		u.slow(u.s, x, seed)
		require.NoError(t, cuda.CopyAsync(u.s, out, x))
		require.NoError(t, cuda.PoolFree(pool, u.s, x))
		// Handed out again at once, behind the work above.
		y, err := cuda.PoolAlloc[uint32](pool, other, n)
		require.NoError(t, err)
		driverAllocs = pool.Stats().DriverAllocs - before
		assert.Equal(t, x.Addr(), y.Addr())
		require.NoError(t, cuda.Fill8(other, y, 0xff))
		require.NoError(t, cuda.PoolFree(pool, other, y))
		assert.Zero(t, u.wrongWords(out, seed), "the second stream waited for the first")
		return driverAllocs
	}
	assert.EqualValues(t, 1, round(1))
	for seed := range uint32(5) {
		assert.Zero(t, round(seed+2))
	}
	require.NoError(t, other.Synchronize(bg))
}

func TestHardwareHostMemory(t *testing.T) {
	api, us := units(t, 2)
	u := us[0]
	const n = 1<<20 + 13
	want := randomBytes(n, 5)
	u.in(func() {
		s := u.s.Handle()
		p, r := api.MemAlloc(n)
		require.Equal(t, cuapi.Success, r)
		defer func() { assert.Equal(t, cuapi.Success, api.MemFree(p)) }()
		through := func(host []byte) {
			require.Len(t, host, n)
			copy(host, want)
			require.Equal(t, cuapi.Success, api.MemcpyHtoDAsync(p, host, s))
			require.Equal(t, cuapi.Success, api.StreamSynchronize(s))
			clear(host)
			require.Equal(t, cuapi.Success, api.MemcpyDtoHAsync(host, p, s))
			require.Equal(t, cuapi.Success, api.StreamSynchronize(s))
			assert.True(t, bytes.Equal(want, host))
		}
		for _, flags := range []cuapi.MemHostAllocFlags{0, cuapi.MemHostAllocPortable, cuapi.MemHostAllocPortable | cuapi.MemHostAllocDeviceMap, cuapi.MemHostAllocWriteCombined} {
			host, r := api.MemHostAlloc(n, flags)
			require.Equal(t, cuapi.Success, r)
			through(host)
			assert.Equal(t, cuapi.Success, api.MemFreeHost(host))
		}
		host := make([]byte, n)
		var pin runtime.Pinner
		pin.Pin(&host[0])
		defer pin.Unpin()
		require.Equal(t, cuapi.Success, api.MemHostRegister(host, 0))
		through(host)
		assert.Equal(t, cuapi.ErrorHostMemoryAlreadyRegistered, api.MemHostRegister(host, 0))
		assert.Equal(t, cuapi.Success, api.MemHostUnregister(host))
		assert.Equal(t, cuapi.ErrorHostMemoryNotRegistered, api.MemHostUnregister(host))
	})
	// One portable buffer serves both devices, in parts.
	pinned, err := cuda.AllocPinned[uint32](u.c, 3000)
	require.NoError(t, err)
	for i, u := range us {
		x := newSlice[uint32](u, 1000)
		copy(pinned.Slice()[1000:], patterns(1000, uint32(i)))
		require.NoError(t, cuda.CopyInPinned(u.s, x, pinned, 1000))
		assert.Zero(t, u.wrongWords(x, uint32(i)))
		require.NoError(t, cuda.CopyOutPinned(u.s, pinned, 2000, x))
		u.wait()
		assert.Equal(t, patterns(1000, uint32(i)), pinned.Slice()[2000:])
	}
	require.NoError(t, pinned.Close())
}

func TestHardwareMemoryMisuse(t *testing.T) {
	_, us := units(t, 2)
	a, b := us[0], us[1]
	x, y := newSlice[uint32](a, 100), newSlice[uint32](b, 100)
	assert.ErrorIs(t, a.fillWords(b.s, x, 1, 1, 32), cuda.ErrWrongDevice)
	assert.ErrorIs(t, cuda.Fill8(a.s, y, 1), cuda.ErrWrongDevice)
	assert.ErrorIs(t, cuda.CopyIn(bg, a.s, y, make([]uint32, 100)), cuda.ErrWrongDevice)
	assert.ErrorIs(t, second(cuda.Download(bg, b.s, x)), cuda.ErrWrongDevice)
	assert.ErrorIs(t, second(cuda.Wrap[uint32](b.c, x.Addr(), 100, nil)), cuda.ErrWrongDevice)
	var bad *cuda.ArgumentError
	assert.ErrorAs(t, second(cuda.Wrap[uint32](a.c, 0x1000, 100, nil)), &bad, "no device memory")
	part, err := x.Sub(1, 50)
	require.NoError(t, err)
	assert.ErrorAs(t, cuda.Free(part), &bad)
	assert.ErrorAs(t, cuda.CopyAsync(a.s, part, x), &bad)
	gone, err := cuda.Alloc[uint32](a.c, 100)
	require.NoError(t, err)
	require.NoError(t, cuda.Free(gone))
	assert.ErrorIs(t, cuda.Free(gone), cuda.ErrClosed)
	assert.ErrorIs(t, cuda.Fill8(a.s, gone, 1), cuda.ErrClosed)
	a.wait()
	b.wait()
}

// TestHardwareConcurrency uses both devices from 16 goroutines at once.
func TestHardwareConcurrency(t *testing.T) {
	_, us := units(t, 2)
	errs := make(chan error, 16)
	for g := range 16 {
		go func() { errs <- worker(us[g%2], us[(g+1)%2], uint64(g)) }()
	}
	for range 16 {
		assert.NoError(t, <-errs)
	}
}

// worker moves patterns about on a stream of its own and compares them.
func worker(u, other *unit, id uint64) (err error) {
	s, err := u.c.NewStream(cuda.StreamOptions{})
	if err != nil {
		return err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	r := rand.New(rand.NewPCG(id, 1))
	for range 4 {
		if err := workerRound(u, other, s, 1+r.IntN(20000), r.Uint32()); err != nil {
			return err
		}
	}
	return nil
}

func workerRound(u, other *unit, s *cuda.Stream, n int, seed uint32) (err error) {
	free := func(x cuda.Slice[uint32]) {
		if e := cuda.PoolFree(x.Context().Pool(), nil, x); err == nil {
			err = e
		}
	}
	x, err := cuda.PoolAlloc[uint32](u.c.Pool(), s, n)
	if err != nil {
		return err
	}
	defer free(x)
	y, err := cuda.Alloc[uint32](other.c, n)
	if err != nil {
		return err
	}
	defer free(y)
	z, err := cuda.Upload(bg, s, make([]uint32, n))
	if err != nil {
		return err
	}
	defer free(z)
	for _, step := range []func() error{
		func() error { return u.fillWords(s, x, seed, 5, 64) },
		func() error { return cuda.CopyAsync(s, y, x) },
		func() error { return cuda.CopyAsync(s, z, y) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	got, err := cuda.Download(bg, s, z)
	if err != nil {
		return err
	}
	for i, v := range got {
		if v != pattern(uint64(i), seed) {
			return &wrongWord{i, v}
		}
	}
	return nil
}

// wrongWord is the first word that is not as the pattern wants it.
type wrongWord struct {
	at  int
	got uint32
}

func (e *wrongWord) Error() string {
	return fmt.Sprintf("word %d is %#x, not as the pattern has it", e.at, e.got)
}
