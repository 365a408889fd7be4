package cuda_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
)

func TestSteadyLoopMakesNoDriverAllocation(t *testing.T) {
	v := newEnv(t)
	p := v.c[0].Pool()
	other, err := v.c[0].NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	round := func() {
		a, err := cuda.PoolAlloc[float32](p, v.s[0], 1000)
		require.NoError(t, err)
		b, err := cuda.PoolAlloc[float32](p, other, 1000)
		require.NoError(t, err)
		c, err := cuda.PoolAlloc[uint8](p, v.s[0], 70001)
		require.NoError(t, err)
		require.NoError(t, cuda.PoolFree(p, other, a))
		require.NoError(t, cuda.PoolFree(p, v.s[0], b))
		require.NoError(t, cuda.PoolFree(p, other, c))
	}
	round()
	warm, events := p.Stats(), v.api.live()["event"]
	v.api.takeCalls()
	for range 1000 {
		round()
	}
	assert.Equal(t, warm, p.Stats())
	assert.Equal(t, events, v.api.live()["event"])
	calls := v.api.takeCalls()
	assert.NotContains(t, calls, "MemAlloc")
	assert.NotContains(t, calls, "MemFree")
	assert.NotContains(t, calls, "EventCreate")
	require.NoError(t, other.Close())
	require.NoError(t, v.close())
	assert.Empty(t, v.api.live())
}

func TestReuseOnTheSameStreamMakesNoDriverCall(t *testing.T) {
	v := newEnv(t)
	p := v.c[0].Pool()
	v.api.hold(v.s[0])
	a, err := cuda.PoolAlloc[int32](p, v.s[0], 100)
	require.NoError(t, err)
	require.NoError(t, cuda.PoolFree(p, v.s[0], a))
	v.api.takeCalls()
	b, err := cuda.PoolAlloc[int32](p, v.s[0], 100)
	require.NoError(t, err)
	assert.Empty(t, v.api.takeCalls())
	assert.Equal(t, a.Addr(), b.Addr())
	assert.ErrorIs(t, cuda.Fill8(v.s[0], a, 0), cuda.ErrClosed, "the stale slice is refused although its memory is in use again")
	require.NoError(t, cuda.Fill8(v.s[0], b, 0))
	v.api.letGo(v.s[0])
	require.NoError(t, cuda.Free(b))
	require.NoError(t, v.close())
}

func TestOwnMemoryIsPreferred(t *testing.T) {
	v := newEnv(t)
	p := v.c[0].Pool()
	other, err := v.c[0].NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	own, err := cuda.PoolAlloc[int32](p, v.s[0], 1000)
	require.NoError(t, err)
	foreign, err := cuda.PoolAlloc[int32](p, v.s[0], 1000)
	require.NoError(t, err)
	require.NoError(t, cuda.PoolFree(p, v.s[0], own))
	require.NoError(t, cuda.PoolFree(p, other, foreign))
	got, err := cuda.PoolAlloc[int32](p, v.s[0], 1000)
	require.NoError(t, err)
	assert.Equal(t, own.Addr(), got.Addr(), "the other one, although freed later, would need a wait")
	require.NoError(t, cuda.Free(got))
	require.NoError(t, other.Close())
	require.NoError(t, v.close())
}

// A small block stays with its stream instead of making another one wait, until there are many.
func TestSmallBlocksMakeNoStreamWait(t *testing.T) {
	v := newEnv(t)
	p := v.c[0].Pool()
	var streams []*cuda.Stream
	for range 20 {
		s, err := v.c[0].NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		streams = append(streams, s)
	}
	waits := func(bytes int) int {
		v.api.takeCalls()
		for _, s := range streams {
			b, err := cuda.PoolAlloc[uint8](p, s, bytes)
			require.NoError(t, err)
			require.NoError(t, cuda.PoolFree(p, s, b))
		}
		return countCalls(v.api.takeCalls(), "StreamWaitEvent")
	}
	before := p.Stats().DriverAllocs
	assert.Equal(t, 4, waits(4))
	assert.Equal(t, before+16, p.Stats().DriverAllocs)
	waits(4)
	assert.Equal(t, before+16, p.Stats().DriverAllocs, "there are enough")
	for range 3 { // one that goes from stream to stream goes on
		b, err := cuda.PoolAlloc[uint8](p, streams[0], 600)
		require.NoError(t, err)
		require.NoError(t, cuda.PoolFree(p, streams[1], b))
	}
	assert.Equal(t, before+17, p.Stats().DriverAllocs)
	assert.Equal(t, 19, waits(5000), "large memory is not to be had twice")
	for _, s := range streams {
		require.NoError(t, s.Close())
	}
	require.NoError(t, v.close())
}

// A block serves requests that are up to an eighth smaller, and gives way to a larger one.
func TestSimilarSizesShareABlock(t *testing.T) {
	v := newEnv(t)
	p := v.c[0].Pool()
	base := p.Stats()
	ask := func(bytes int) cuda.Slice[uint8] {
		s, err := cuda.PoolAlloc[uint8](p, v.s[0], bytes)
		require.NoError(t, err)
		return s
	}
	for n := 1<<20 + 1; n < 1<<20+1<<17; n += 5000 {
		require.NoError(t, cuda.PoolFree(p, v.s[0], ask(n)))
		have := p.Stats()
		require.InEpsilon(t, n, have.BytesCached-base.BytesCached, .01, "one block, of the last size")
	}
	grown := p.Stats().DriverAllocs
	require.NoError(t, cuda.PoolFree(p, v.s[0], ask(1<<20+9000)))
	require.Equal(t, grown, p.Stats().DriverAllocs)

	v.api.hold(v.s[0])
	busy := ask(2 << 20)
	require.NoError(t, cuda.PoolFree(p, v.s[0], busy))
	other, err := v.c[0].NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	large, err := cuda.PoolAlloc[uint8](p, other, 2<<20+1<<16)
	require.NoError(t, err)
	require.NotZero(t, p.Stats().BytesCached-base.BytesCached, "a block that is in use is kept")
	v.api.letGo(v.s[0])
	require.NoError(t, cuda.Free(large))
	require.NoError(t, other.Close())
	require.NoError(t, v.close())
	require.Empty(t, v.api.live())
}

func TestMemoryForAnyStreamIsIdle(t *testing.T) {
	v := newEnv(t)
	p := v.c[0].Pool()
	a, err := cuda.PoolAlloc[int32](p, v.s[0], 100)
	require.NoError(t, err)
	v.api.hold(v.s[0])
	require.NoError(t, cuda.PoolFree(p, v.s[0], a))
	b, err := cuda.Alloc[int32](v.c[0], 100)
	require.NoError(t, err)
	assert.NotEqual(t, a.Addr(), b.Addr(), "work on a is still pending")
	v.api.letGo(v.s[0])
	c, err := cuda.Alloc[int32](v.c[0], 100)
	require.NoError(t, err)
	assert.Equal(t, a.Addr(), c.Addr())
	require.NoError(t, cuda.Free(b))
	require.NoError(t, cuda.Free(c))
	require.NoError(t, v.close())
}

// TestReuseIsOrdered lets random streams run late. Each array is filled with a
// tag and read back when freed; an array handed on too early would be read with
// the tag of its next owner.
func TestReuseIsOrdered(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 7))
		v := newEnv(t)
		p := v.c[0].Pool()
		var streams []*cuda.Stream
		for range 3 {
			s, err := v.c[0].NewStream(cuda.StreamOptions{})
			require.NoError(t, err)
			streams = append(streams, s)
		}
		const rounds, longest = 200, 300
		back, err := cuda.AllocPinned[uint32](v.c[0], rounds*longest)
		require.NoError(t, err)
		type owned struct {
			s   cuda.Slice[uint32]
			st  *cuda.Stream
			tag uint32
		}
		var live []owned
		want := map[int]owned{} // by offset in back
		used := 0
		release := func(i int) {
			o := live[i]
			live = slices.Delete(live, i, i+1)
			require.NoError(t, cuda.CopyOutPinned(o.st, back, used, o.s))
			want[used] = o
			used += o.s.Len()
			require.NoError(t, cuda.PoolFree(p, o.st, o.s))
		}
		for tag := range uint32(rounds) {
			switch st := streams[r.IntN(3)]; r.IntN(3) {
			case 0:
				v.api.hold(st)
			case 1:
				v.api.letGo(st)
			}
			st := streams[r.IntN(3)]
			s, err := cuda.PoolAlloc[uint32](p, st, []int{3, 100, 128, longest}[r.IntN(4)])
			require.NoError(t, err)
			require.NoError(t, cuda.Fill32(st, s, tag))
			live = append(live, owned{s, st, tag})
			for len(live) > r.IntN(6) {
				release(r.IntN(len(live)))
			}
		}
		for len(live) > 0 {
			release(0)
		}
		for _, s := range streams {
			v.api.letGo(s)
		}
		for at, o := range want {
			for _, x := range back.Slice()[at : at+o.s.Len()] {
				require.Equal(t, o.tag, x, "seed %d", seed)
			}
		}
		require.NoError(t, back.Close())
		for _, s := range streams {
			require.NoError(t, s.Close())
		}
		assert.Less(t, p.Stats().DriverAllocs, uint64(rounds/2), "memory is reused")
		require.NoError(t, v.close())
		require.Empty(t, v.api.live())
	}
}

func TestStats(t *testing.T) {
	v := newEnv(t)
	p := v.c[0].Pool()
	require.NoError(t, cuda.Free(v.a[0]))
	require.NoError(t, p.Trim())
	base := p.Stats()
	assert.Zero(t, base.BytesInUse)
	assert.Zero(t, base.BytesCached)
	a, err := cuda.Alloc[float64](v.c[0], 64) // 512 bytes
	require.NoError(t, err)
	b, err := cuda.Alloc[uint8](v.c[0], 513) // 1024 bytes
	require.NoError(t, err)
	require.NoError(t, cuda.PoolFree(p, v.s[0], a))
	got := p.Stats()
	assert.Equal(t, cuda.Stats{DriverAllocs: base.DriverAllocs + 2, DriverFrees: base.DriverFrees, BytesInUse: 1024, BytesCached: 512, HighWater: 1536}, got)
	p.ResetHighWater()
	assert.Equal(t, uint64(1024), p.Stats().HighWater)
	require.NoError(t, cuda.Free(b))
	require.NoError(t, p.Trim())
	assert.Equal(t, cuda.Stats{DriverAllocs: base.DriverAllocs + 2, DriverFrees: base.DriverFrees + 2, HighWater: 1024}, p.Stats())
	v.a[0] = cuda.Slice[int32]{}
	require.NoError(t, v.close())
}

func TestOutOfMemoryTrimsAndRetriesOnce(t *testing.T) {
	v := newEnv(t)
	p := v.c[0].Pool()
	v.api.limit = 1 << 20
	a, err := cuda.Alloc[uint8](v.c[0], 600<<10)
	require.NoError(t, err)
	require.NoError(t, cuda.PoolFree(p, v.s[0], a))
	v.api.takeCalls()
	b, err := cuda.Alloc[uint8](v.c[0], 700<<10)
	require.NoError(t, err, "the cached block makes room")
	assert.Equal(t, 2, countCalls(v.api.takeCalls(), "MemAlloc"))
	_, err = cuda.Alloc[uint8](v.c[0], 800<<10)
	assert.ErrorIs(t, err, cuda.ErrOutOfMemory)
	assert.ErrorContains(t, err, "819200 bytes wanted")
	assert.Equal(t, 2, countCalls(v.api.takeCalls(), "MemAlloc"), "exactly one retry")
	_, err = cuda.Upload(bg, v.s[0], make([]uint8, 800<<10))
	assert.ErrorIs(t, err, cuda.ErrOutOfMemory)
	require.NoError(t, cuda.Free(b))
	require.NoError(t, v.close())
	assert.Empty(t, v.api.live())
}

func TestOutOfMemoryWaitsForPendingFrees(t *testing.T) {
	v := newEnv(t)
	p := v.c[0].Pool()
	v.api.limit = 1 << 20
	a, err := cuda.Alloc[uint8](v.c[0], 600<<10)
	require.NoError(t, err)
	v.api.hold(v.s[0])
	require.NoError(t, cuda.PoolFree(p, v.s[0], a))
	time.AfterFunc(20*time.Millisecond, func() { v.api.letGo(v.s[0]) })
	start := time.Now()
	b, err := cuda.Alloc[uint8](v.c[0], 700<<10)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(start), 15*time.Millisecond)
	require.NoError(t, cuda.Free(b))
	require.NoError(t, v.close())
}

func TestModuleLoadRetriesAfterTrim(t *testing.T) {
	v := newEnv(t)
	require.NoError(t, cuda.PoolFree(v.c[0].Pool(), v.s[0], v.a[0]))
	v.a[0] = cuda.Slice[int32]{}
	v.api.takeCalls()
	v.api.failNth(1, "ModuleLoadDataEx", 2)
	m, err := v.c[0].LoadModule([]byte("ptx"), cuda.JITOptions{})
	require.NoError(t, err)
	calls := v.api.takeCalls()
	assert.Equal(t, 2, countCalls(calls, "ModuleLoadDataEx"))
	assert.Equal(t, 1, countCalls(calls, "MemFree"))
	require.NoError(t, m.Close())
	require.NoError(t, v.close())
}

func TestEmptyArraysNeedNoMemory(t *testing.T) {
	v := newEnv(t)
	v.api.takeCalls()
	s, err := cuda.Alloc[int32](v.c[0], 0)
	require.NoError(t, err)
	assert.False(t, s.IsNil())
	assert.Equal(t, v.c[0], s.Context())
	assert.Zero(t, s.Addr())
	got, err := cuda.Download(bg, v.s[0], s)
	require.NoError(t, err)
	assert.Empty(t, got)
	require.NoError(t, cuda.Fill8(v.s[0], s, 1))
	require.NoError(t, cuda.CopyAsync(v.s[0], s, s))
	require.NoError(t, cuda.Free(s))
	require.NoError(t, cuda.Free(cuda.Slice[int32]{}))
	assert.Empty(t, v.api.takeCalls())
	require.NoError(t, v.close())
}

func countCalls(calls []string, name string) int {
	return strings.Count(" "+strings.Join(calls, "  ")+" ", " "+name+" ")
}

// A slice knows that its memory is gone, also as a part, as another type, and
// when the pool has handed the block out again.
func TestFreedSlices(t *testing.T) {
	v := newEnv(t)
	s, err := cuda.Alloc[float32](v.c[0], 8)
	require.NoError(t, err)
	part, err := s.Sub(2, 4)
	require.NoError(t, err)
	retyped, err := cuda.Reinterpret[int32](s)
	require.NoError(t, err)
	assert.False(t, s.Freed() || part.Freed() || retyped.Freed())
	require.NoError(t, cuda.Free(s))
	again, err := cuda.Alloc[float32](v.c[0], 8)
	require.NoError(t, err)
	require.Equal(t, s.Addr(), again.Addr(), "the pool reuses the block")
	assert.True(t, s.Freed() && part.Freed() && retyped.Freed())
	assert.EqualError(t, cuda.Free(s), "cuda: the memory of s was freed")
	assert.False(t, again.Freed())
	require.NoError(t, cuda.Free(again))
	assert.False(t, cuda.Slice[float32]{}.Freed(), "an absent slice has no memory")
}

// Blocks that go from one goroutine to another through the pool are accounted for
// once: a leak report names the arrays that are alive and no others.
func TestPoolFromManyGoroutines(t *testing.T) {
	v := newEnv(t, cuda.WithLeakSites())
	c, err := v.c[0].Device().Retain()
	require.NoError(t, err)
	const goroutines = 8
	var held [goroutines]cuda.Slice[float32]
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range 2000 {
				s, err := cuda.Alloc[float32](c, 64)
				if !assert.NoError(t, err) || !assert.NoError(t, cuda.Free(s)) {
					return
				}
			}
			s, err := cuda.Alloc[float32](c, 64)
			assert.NoError(t, err)
			held[g] = s
		})
	}
	wg.Wait()
	var leak *cuda.LeakError
	require.ErrorAs(t, c.Close(), &leak)
	require.Len(t, leak.Leaks, 1)
	assert.Equal(t, goroutines, leak.Leaks[0].Count)
	assert.Len(t, leak.Leaks[0].Sites, goroutines)
	for _, s := range held {
		require.NoError(t, cuda.Free(s))
	}
}
