package multi

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// The driver calls of a warm call on two devices, which are most of its fixed cost.
func TestMultiSceneDriverCalls(t *testing.T) {
	rig, trace := traced(t, 2)
	rng := rand.New(rand.NewPCG(91, 1))
	if os.Getenv(gputest.CurrentVariable) != "" {
		t.Skip("the number of changes depends on the context that is current")
	}
	s := quick(t, rig.Driver, ordinals(rig, 2), anyFloor())
	build(t, s, soup(rng, 30))
	rays, free := batch{o: make([]float32, 90), d: make([]float32, 90)}.rays(t, s.Stream())
	defer free()
	var hits *scene.Hits
	for range 3 {
		trace.Reset()
		h, err := s.Intersect(bg, rays, scene.All, scene.Into(hits))
		require.NoError(t, err)
		hits = h
	}
	// An event and a wait at the start and at the end of the remote's part; one search on
	// each device and one finalize of each part; the context changed to the master's, to
	// the remote's and back from both.
	require.Equal(t, map[string]int64{
		"EventRecord": 2, "StreamWaitEvent": 2, "LaunchKernel": 4, "CtxSetCurrent": 4, "CtxGetCurrent": 1,
	}, trace.Counts())
	require.NoError(t, hits.Close())
}

// Those of a streamed call of n chunks on two devices, n/2 on each.
func TestMultiStreamDriverCalls(t *testing.T) {
	const chunks = 8
	rig, trace := traced(t, 2)
	if os.Getenv(gputest.CurrentVariable) != "" {
		t.Skip("the number of changes depends on the context that is current")
	}
	rng := rand.New(rand.NewPCG(92, 1))
	s := quick(t, rig.Driver, ordinals(rig, 2), anyFloor())
	build(t, s, soup(rng, 30))
	s.transport, s.opts.ChunkRays = chunked.Direct, 10
	rays, free := batch{o: make([]float32, 30*chunks), d: make([]float32, 30*chunks)}.rays(t, s.Stream())
	defer free()
	hook := Offload(func(context.Context, int64, offload.Chunk[*scene.Hits]) error { return nil })
	for range 3 {
		trace.Reset()
		_, err := s.Intersect(bg, rays, scene.All, hook)
		require.NoError(t, err)
	}
	// The context is changed to the master's at the start and behind every hook but the last,
	// back before each hook, to the remote's and back for each of its searches and for clearing
	// its counters; at the end for the edge behind what the master reads there, and for the
	// arrays that are returned. It is asked for where one is entered, and at the master's fill.
	//
	// Events mark the end of every search and finalize, for the chunk and for changes of the
	// scene; five hooks behind which a place for a result is used again, and a slot of the
	// remote that is; the entry, the slots, the end of what the master reads, and four arrays
	// that are returned. Waits are for the entry by the first on each stream, for the slots by
	// those of the remote, for every search and finalize, and for each event of the second kind.
	require.Equal(t, map[string]int64{
		"CtxSetCurrent": 2*chunks + chunks + 2 + 4 + 8, "CtxGetCurrent": chunks + 2 + 2 + 4,
		"LaunchKernel": 2 * chunks, "MemsetD32Async": 2,
		"EventRecord": 4*chunks + 5 + 1 + 1 + 1 + 1 + 4, "StreamWaitEvent": 3 + 1 + 3 + 2*chunks + 5 + 1 + 1,
	}, trace.Counts())
}

// A batch that the master answers alone makes the driver calls of the plain scene, and allocates what that does: its plan
// is the one of the call before.
func TestMultiSceneMasterAloneIsPlain(t *testing.T) {
	rig, trace := traced(t, 2)
	s := quick(t, rig.Driver, ordinals(rig, 2), Options{})
	build(t, s, soup(rngOf(96), 30))
	rays, free := batch{o: make([]float32, 90), d: make([]float32, 90)}.rays(t, s.Stream())
	defer free()
	call := func(s interface {
		Intersect(context.Context, scene.Rays, scene.Flags, ...scene.CallOption) (*scene.Hits, error)
	}) {
		h, err := s.Intersect(bg, rays, scene.All)
		if err == nil {
			err = h.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cost := func(f func()) (map[string]int64, float64) {
		f()
		trace.Reset()
		f()
		counts := trace.Counts()
		return counts, testing.AllocsPerRun(20, f)
	}
	plainCalls, plain := cost(func() { call(s.Master()) })
	calls, allocs := cost(func() { call(s) })
	require.Equal(t, plainCalls, calls)
	require.LessOrEqual(t, allocs, plain+1) // the count itself may be off by one
}

// Calls that alternate, of which some are streamed, each run the plan that Plan tells, whatever callers do to what they are
// told.
func TestMultiSceneToldPlansAreCopies(t *testing.T) {
	s := newStreaming(t, 2, 0)
	hook := Offload(func(context.Context, int64, offload.Chunk[*scene.Hits]) error { return nil })
	for range 2 {
		for _, streamed := range []bool{false, true} {
			var info CallInfo
			opts := []scene.CallOption{Info(&info)}
			plan := s.Plan
			if streamed {
				opts, plan = append(opts, hook), s.PlanStream
			}
			want, err := plan(IntersectOp(scene.All, 24), 33)
			require.NoError(t, err)
			h, err := s.Intersect(bg, s.rays, scene.All, opts...)
			require.NoError(t, err)
			require.NoError(t, h.Close())
			require.Equal(t, want, info.Plan, "streamed: %t", streamed)
			clear(info.Plan.Chunks)
			clear(info.Plan.Shards)
			clear(info.Plan.PerDevice)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	rig, _ := traced(b, 2)
	s := quick(b, rig.Driver, ordinals(rig, 2), Options{})
	op := IntersectOp(scene.All, 24)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Plan(op, 1<<22); err != nil {
			b.Fatal(err)
		}
	}
}

func rngOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 99)) }
