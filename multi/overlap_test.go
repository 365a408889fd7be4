package multi

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// precedence knows of every launch which ones come before it, by the order of streams and
// by events, however fast devices are.
type precedence struct {
	cuapi.API

	mu       sync.Mutex
	streams  map[cuapi.Stream][]int // launches that the next work on a stream comes behind; fills are -1, -2 ...
	events   map[cuapi.Event][]int
	launches []launched
	fills    int // of searches that share a counter among their blocks, and of marks
	clears   int // of the counters of several searches

	counts bool // fills of so many words are such, because nothing else here has their size
}

type launched struct {
	on     cuapi.Stream
	blocks uint32
	behind []int
}

func (p *precedence) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams, p.events, p.launches, p.fills = map[cuapi.Stream][]int{}, map[cuapi.Event][]int{}, nil, 0
	p.clears = 0
}

func (p *precedence) LaunchKernel(f cuapi.Function, grid, block cuapi.Dim3, shared uint32, s cuapi.Stream, params []byte) cuapi.Result {
	p.mu.Lock()
	p.launches = append(p.launches, launched{s, grid.X, slices.Clone(p.streams[s])})
	p.streams[s] = append(p.streams[s], len(p.launches)-1)
	p.mu.Unlock()
	return p.API.LaunchKernel(f, grid, block, shared, s, params)
}

func (p *precedence) MemsetD32Async(dst cuapi.DevicePtr, value uint32, n uint64, s cuapi.Stream) cuapi.Result {
	p.mu.Lock()
	if p.counts && n%scene.SearchCounters == 0 {
		p.clears++
		p.streams[s] = append(p.streams[s], cleared(p.clears))
	} else {
		p.fills++
		p.streams[s] = append(p.streams[s], -p.fills)
	}
	p.mu.Unlock()
	return p.API.MemsetD32Async(dst, value, n, s)
}

// cleared stands for the n-th clear among launches.
func cleared(n int) int { return -1000 - n }

func (p *precedence) EventRecord(e cuapi.Event, s cuapi.Stream) cuapi.Result {
	p.mu.Lock()
	p.events[e] = slices.Clone(p.streams[s])
	p.mu.Unlock()
	return p.API.EventRecord(e, s)
}

func (p *precedence) StreamWaitEvent(s cuapi.Stream, e cuapi.Event, flags uint32) cuapi.Result {
	p.mu.Lock()
	all := append(p.streams[s], p.events[e]...)
	slices.Sort(all)
	p.streams[s] = slices.Compact(all)
	p.mu.Unlock()
	return p.API.StreamWaitEvent(s, e, flags)
}

// The search of a chunk waits neither for that of the one before it on its device nor for
// its completion, so that one fills the device while the other runs out. What it does wait
// for is the room that the plan gives it.
func TestMultiSceneChunksOverlap(t *testing.T) {
	const rows, chunk = 8800, 1100 // more rows than threads that run at the same time
	for _, devices := range []int{1, 2, 3} {
		e, err := emu.New(devices, emu.WithSMs(1))
		require.NoError(t, err)
		p := &precedence{API: e, counts: true}
		p.clear()
		drv, err := cuda.OpenAPI(p)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, drv.Close()) })
		s := quick(t, drv, upToDevices(devices), anyFloor())
		build(t, s, soup(rngOf(12), 8))
		b := randomBatch(rngOf(13), rows)
		rays, free := b.rays(t, s.Stream())
		t.Cleanup(free)
		want := answer(t, s.Master(), b, scene.All)
		s.opts.ChunkRays = chunk
		for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
			for _, streamed := range []bool{true, false} {
				what := fmt.Sprintf("%d devices, %v, streamed %v", devices, s.transport, streamed)
				var info CallInfo
				call := func() {
					if !streamed {
						h, err := s.Intersect(bg, rays, scene.All, Info(&info))
						require.NoError(t, err, what)
						require.Equal(t, want, download(t, s.Stream(), h), what)
						require.NoError(t, h.Close())
						return
					}
					_, err := s.Intersect(bg, rays, scene.All, Info(&info), Offload(func(_ context.Context, start int64, c offload.Chunk[*scene.Hits]) error {
						for i, column := range download(t, s.Stream(), c.Result) {
							width := len(want[i]) / rows
							require.Equal(t, want[i][int(start)*width:][:len(column)], column, "%s, rows from %d", what, start)
						}
						return nil
					}))
					require.NoError(t, err, what)
				}
				call() // makes streams and fills pools
				p.clear()
				call()
				p.requireOverlap(t, s, info.Plan, what)
			}
		}
	}
}

// requireOverlap requires it of the one call that was made since clear.
func (p *precedence) requireOverlap(t *testing.T, s *Scene, plan chunked.Plan, what string) {
	t.Helper()
	clears, fills := 0, 0
	clearOf := map[int]int{} // a device
	for k, shard := range plan.Shards {
		if n := (shard.Len() + plan.ChunkRows[k] - 1) / plan.ChunkRows[k]; counted(&plan, plan.RecordSlots > 0, k, n) {
			clears++
			clearOf[k] = clears
		} else {
			fills += int(n)
		}
	}
	require.Equal(t, clears, p.clears, what)
	require.Equal(t, fills, p.fills, "%s: searches without counters clear their own", what)
	require.Len(t, p.launches, 2*len(plan.Chunks), what)
	finalizing := s.Stream()
	if plan.RecordSlots > 0 {
		finalizing = s.master().pipe.finalize
	}
	var searches, finalizes []int
	for i, l := range p.launches {
		if l.on == finalizing.Handle() {
			finalizes = append(finalizes, i)
		} else {
			searches = append(searches, i)
		}
	}
	require.Len(t, finalizes, len(plan.Chunks), "%s: nothing is searched on the stream that finalizes", what)
	search, counts := map[chunked.Range]int{}, make([]int, len(plan.Devices))
	for i, c := range plan.Chunks {
		search[c.Range()] = searches[i]
		counts[c.Position]++
	}
	for i, c := range plan.Chunks { // five blocks run at the same time
		part := uint32(1)
		switch {
		case c.Position > 0 && plan.Transport != chunked.Direct:
			part = 5
		case c.Seq == 0 || c.Seq == counts[c.Position]-1:
			part = 2
		}
		require.Equal(t, part, p.launches[searches[i]].blocks, "%s: chunk %d", what, i)
	}
	order := plan.Retirement()
	last := make([]*chunked.Chunk, len(plan.Devices)) // of each device
	slots := map[[2]int]int{}                         // who had a slot of a remote
	users, behind := map[int]int{}, 0
	for i, c := range order {
		own := p.launches[search[c.Range()]].behind
		require.Contains(t, p.launches[finalizes[i]].behind, search[c.Range()], "%s: finalize of chunk %d", what, i)
		if n := clearOf[c.Position]; n > 0 {
			require.Contains(t, own, cleared(n), "%s: the counters of chunk %d", what, i)
		}
		if before := last[c.Position]; before != nil {
			require.NotContains(t, own, search[before.Range()], "%s: chunk %d is searched behind the search before it", what, i)
			require.NotContains(t, own, finalizes[before.Retire], "%s: chunk %d is searched behind the finalize before it", what, i)
		}
		last[c.Position] = &order[i]
		if c.Seq < chunked.RemoteSlots {
			for j, f := range finalizes {
				require.NotContains(t, own, f, "%s: chunk %d is searched behind the finalize of chunk %d, although there is a slot", what, i, j)
			}
		}
		// Winners stay in their slot until they are finalized.
		if user, ok := slots[[2]int{c.Position, c.Slot}]; ok && c.Position > 0 && plan.RecordSlots > 0 && plan.Transport == chunked.Direct {
			require.Contains(t, own, finalizes[user], "%s: chunk %d has a slot of its own", what, i)
		}
		slots[[2]int{c.Position, c.Slot}] = i
		if user, ok := users[c.Record]; ok && c.Position == 0 && plan.RecordSlots > 0 {
			require.Contains(t, own, finalizes[user], "%s: chunk %d has a place of its own", what, i)
			behind++
		}
		users[c.Record] = i
	}
	if own := len(order) / len(plan.Devices); plan.RecordSlots > 0 && own > chunked.RemoteSlots {
		require.Positive(t, behind, what)
	}
}

// With one search per device in a scene where some rays take long, the fill that says that no
// row is searched comes before all searches, and the rows are those of one device.
func TestMultiSceneMarksRows(t *testing.T) {
	const rows = 6000 // more than threads run at the same time
	e, err := emu.New(2, emu.WithSMs(1))
	require.NoError(t, err)
	p := &precedence{API: e}
	p.clear()
	drv, err := cuda.OpenAPI(p)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drv.Close()) })
	s := quick(t, drv, upToDevices(2), anyFloor())
	rng := rngOf(14)
	m := scene.Mesh{NoEdges: true}
	for i := range int32(600) { // every one through the whole scene: each ray visits many nodes
		for range 9 {
			m.Vertices = append(m.Vertices, 4*rng.Float32()-2)
		}
		m.Faces = append(m.Faces, 3*i, 3*i+1, 3*i+2)
	}
	build(t, s, m)
	b := randomBatch(rngOf(15), rows)
	rays, free := b.rays(t, s.Stream())
	t.Cleanup(free)
	for _, flags := range []scene.Flags{scene.All, scene.None} {
		want := answer(t, s.Master(), b, flags)
		for range 2 {
			p.clear()
			var info CallInfo
			h, err := s.Intersect(bg, rays, flags, Info(&info))
			require.NoError(t, err)
			require.Equal(t, chunked.KindDirect, info.Plan.Kind)
			require.Len(t, p.launches, 4)
			require.Equal(t, 3, p.fills, "marks, and the counters of two searches")
			all := 0
			for _, l := range p.launches {
				require.Contains(t, l.behind, -1)
				if l.blocks == (rows+127)/128 {
					all++
				}
			}
			require.Equal(t, 1, all, "the first launch of finalize covers what is there of other devices")
			require.Equal(t, want, download(t, s.Stream(), h))
			require.NoError(t, h.Close())
		}
	}
}
