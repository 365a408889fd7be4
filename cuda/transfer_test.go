package cuda_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
)

const part = 4 << 20 // bytes of one staging buffer

func TestUploadDownloadRoundTrip(t *testing.T) {
	v := newEnv(t)
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 1000, part - 1, part, part + 1, 2*part - 1, 2 * part, 2*part + 1, 5*part + 12345} {
		src := make([]uint8, n)
		for i := range src {
			src[i] = uint8(r.Uint32())
		}
		s, err := cuda.Upload(bg, v.s[0], src)
		require.NoError(t, err)
		assert.Equal(t, n, s.Len())
		got, err := cuda.Download(bg, v.s[0], s)
		require.NoError(t, err)
		require.Equal(t, src, got, "%d bytes", n)
		require.NoError(t, cuda.Free(s))
	}
	require.NoError(t, v.close())
	assert.Empty(t, v.api.live())
}

func TestRoundTripOfOtherTypes(t *testing.T) {
	v := newEnv(t)
	type id int64
	f := []float64{1.5, -0.25, 1e300}
	s, err := cuda.Upload(bg, v.s[0], f)
	require.NoError(t, err)
	got, err := cuda.Download(bg, v.s[0], s)
	require.NoError(t, err)
	assert.Equal(t, f, got)
	i, err := cuda.Reinterpret[id](s)
	require.NoError(t, err)
	bits, err := cuda.Download(bg, v.s[0], i)
	require.NoError(t, err)
	assert.Equal(t, []id{0x3ff8000000000000, -0x4030000000000000, 0x7e37e43c8800759c}, bits)
	mid, err := s.Sub(1, 2)
	require.NoError(t, err)
	require.NoError(t, cuda.CopyIn(bg, v.s[0], mid, []float64{7}))
	got, err = cuda.Download(bg, v.s[0], s)
	require.NoError(t, err)
	assert.Equal(t, []float64{1.5, 7, 1e300}, got)
	require.NoError(t, cuda.Free(i), "the same memory under another type")
	require.NoError(t, v.close())
}

func TestSourceMayChangeWhenCopyInReturns(t *testing.T) {
	v := newEnv(t)
	v.api.hold(v.s[0])
	src := []int32{1, 2, 3, 4, 5, 6, 7, 8}
	require.NoError(t, cuda.CopyIn(bg, v.s[0], v.a[0], src))
	clear(src)
	v.api.letGo(v.s[0])
	got, err := cuda.Download(bg, v.s[0], v.a[0])
	require.NoError(t, err)
	assert.Equal(t, []int32{1, 2, 3, 4, 5, 6, 7, 8}, got)
	require.NoError(t, v.close())
}

func TestCancelledCopyOutLeavesDstAlone(t *testing.T) {
	v := newEnv(t)
	require.NoError(t, cuda.CopyIn(bg, v.s[0], v.a[0], []int32{1, 2, 3, 4, 5, 6, 7, 8}))
	v.api.hold(v.s[0])
	ctx, cancel := context.WithTimeout(bg, 5*time.Millisecond)
	defer cancel()
	dst := make([]int32, 8)
	start := time.Now()
	assert.ErrorIs(t, cuda.CopyOut(ctx, v.s[0], dst, v.a[0]), context.DeadlineExceeded)
	assert.Less(t, time.Since(start), time.Second)
	v.api.letGo(v.s[0])
	assert.Equal(t, make([]int32, 8), dst, "the copy went to the context's buffer")
	require.NoError(t, cuda.CopyOut(bg, v.s[0], dst, v.a[0]), "the buffers are usable again")
	assert.Equal(t, []int32{1, 2, 3, 4, 5, 6, 7, 8}, dst)
	require.NoError(t, v.close())
	assert.Empty(t, v.api.live())
}

func TestCancelledUploadGivesItsMemoryBack(t *testing.T) {
	v := newEnv(t)
	v.api.hold(v.s[0])
	before := v.c[0].Pool().Stats().BytesInUse
	ctx, cancel := context.WithTimeout(bg, 5*time.Millisecond)
	defer cancel()
	_, err := cuda.Upload(ctx, v.s[0], make([]uint8, 3*part)) // two buffers; the third part waits
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, before, v.c[0].Pool().Stats().BytesInUse)
	v.api.letGo(v.s[0])
	require.NoError(t, v.close())
	assert.Empty(t, v.api.live())
}

func TestCopiesWaitForTheirTurn(t *testing.T) {
	v := newEnv(t)
	v.api.hold(v.s[0])
	var wg sync.WaitGroup
	for range 2 { // occupy both lanes
		wg.Go(func() { assert.NoError(t, second(cuda.Download(bg, v.s[0], v.a[0]))) })
	}
	require.Eventually(t, func() bool { return v.api.live()["host"] == 3 }, time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(bg, 5*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, cuda.CopyIn(ctx, v.s[0], v.a[0], make([]int32, 8)), context.DeadlineExceeded)
	v.api.letGo(v.s[0])
	wg.Wait()
	require.NoError(t, v.close())
	assert.Empty(t, v.api.live())
}

func TestConcurrentTransfers(t *testing.T) {
	v := newEnv(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			st, err := v.c[g%2].NewStream(cuda.StreamOptions{})
			if !assert.NoError(t, err) {
				return
			}
			for range 20 {
				src := make([]uint32, 1+r.IntN(50000))
				for i := range src {
					src[i] = r.Uint32()
				}
				s, err := cuda.Upload(bg, st, src)
				if !assert.NoError(t, err) {
					return
				}
				got, err := cuda.Download(bg, st, s)
				assert.NoError(t, err)
				assert.Equal(t, src, got)
				assert.NoError(t, cuda.PoolFree(v.c[g%2].Pool(), st, s))
			}
			assert.NoError(t, st.Close())
		})
	}
	wg.Wait()
	require.NoError(t, v.close())
	assert.Empty(t, v.api.live())
}

func TestCopyAsyncChoosesByDevice(t *testing.T) {
	v := newEnv(t)
	require.NoError(t, cuda.CopyIn(bg, v.s[0], v.a[0], []int32{1, 2, 3, 4, 5, 6, 7, 8}))
	again, err := v.c[0].Device().Retain()
	require.NoError(t, err)
	near, err := cuda.Alloc[int32](again, 8) // same device through another handle
	require.NoError(t, err)
	for _, c := range []struct {
		s    *cuda.Stream
		dst  cuda.Slice[int32]
		call string
	}{{v.s[0], v.a[1], "MemcpyPeerAsync"}, {v.s[1], v.a[1], "MemcpyPeerAsync"}, {v.s[0], near, "MemcpyDtoDAsync"}} {
		v.api.takeCalls()
		require.NoError(t, cuda.CopyAsync(c.s, c.dst, v.a[0]))
		assert.Contains(t, v.api.takeCalls(), c.call)
	}
	for i, s := range []cuda.Slice[int32]{near, v.a[1]} {
		got, err := cuda.Download(bg, v.s[i], s)
		require.NoError(t, err)
		assert.Equal(t, []int32{1, 2, 3, 4, 5, 6, 7, 8}, got)
	}
	require.NoError(t, cuda.Free(near))
	require.NoError(t, again.Close())
	require.NoError(t, v.close())
	assert.Empty(t, v.api.live())
}

func TestFills(t *testing.T) {
	v := newEnv(t)
	require.NoError(t, cuda.Fill32(v.s[0], v.a[0], 0x01020304))
	tail, err := v.a[0].Sub(6, 8)
	require.NoError(t, err)
	require.NoError(t, cuda.Fill8(v.s[0], tail, 0xff))
	got, err := cuda.Download(bg, v.s[0], v.a[0])
	require.NoError(t, err)
	assert.Equal(t, []int32{0x01020304, 0x01020304, 0x01020304, 0x01020304, 0x01020304, 0x01020304, -1, -1}, got)
	require.NoError(t, v.close())
}

func TestPinnedCopies(t *testing.T) {
	v := newEnv(t)
	copy(v.pin.Slice(), []int32{0, 1, 2, 3, 4, 5, 6, 7})
	dst, err := v.a[1].Sub(0, 3)
	require.NoError(t, err)
	require.NoError(t, cuda.CopyInPinned(v.s[1], dst, v.pin, 5), "memory of one context serves all devices")
	require.NoError(t, cuda.CopyOutPinned(v.s[1], v.pin, 1, dst))
	require.NoError(t, v.s[1].Synchronize(bg))
	assert.Equal(t, []int32{0, 5, 6, 7, 4, 5, 6, 7}, v.pin.Slice())
	require.NoError(t, v.close())
}

func TestSub(t *testing.T) {
	v := newEnv(t)
	for i := range 9 {
		for j := range 9 {
			s, err := v.a[0].Sub(i, j)
			if i > j {
				assert.ErrorContains(t, err, fmt.Sprintf("%d to %d given, the slice has length 8", i, j))
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, j-i, s.Len())
			if i < j {
				assert.Equal(t, v.a[0].Addr()+uint64(4*i), s.Addr())
			}
		}
	}
	for _, c := range [][2]int{{-1, 2}, {0, 9}, {9, 9}} {
		assert.Error(t, second(v.a[0].Sub(c[0], c[1])))
	}
	require.NoError(t, v.close())
}

func TestWrapReleasesOnce(t *testing.T) {
	v := newEnv(t)
	released := 0
	s, err := cuda.Wrap[int32](v.c[0], v.a[0].Addr()+8, 4, func() { released++ })
	require.NoError(t, err)
	require.NoError(t, cuda.Fill32(v.s[0], s, 9))
	got, err := cuda.Download(bg, v.s[0], v.a[0])
	require.NoError(t, err)
	assert.Equal(t, []int32{9, 9, 9, 9}, got[2:6])
	require.NoError(t, cuda.Free(s))
	assert.ErrorIs(t, cuda.Free(s), cuda.ErrClosed)
	assert.Equal(t, 1, released)

	_, err = cuda.Wrap[int32](v.c[1], v.a[0].Addr(), 4, nil)
	assert.Equal(t, &cuda.WrongDeviceError{Arg: "addr", Want: 1, Have: 0}, err)
	_, err = cuda.Wrap[int32](v.c[0], v.a[0].Addr()+504, 4, nil)
	assert.ErrorContains(t, err, "outside their allocation")
	_, err = cuda.Wrap[int32](v.c[0], 64, 4, nil)
	assert.ErrorContains(t, err, "no device memory at 0x40")
	require.NoError(t, v.close())
}
