package multi

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// CallInfo tells the plan that ran, what a row is in bytes, and where time went.
func TestMultiSceneCallInfo(t *testing.T) {
	s := newStreaming(t, 2, 0)
	ask := func(flags scene.Flags, info *CallInfo) {
		h, err := s.Intersect(bg, s.rays, flags, Info(info))
		require.NoError(t, err)
		require.NoError(t, h.Close())
	}
	for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
		info := CallInfo{Timing: true}
		ask(scene.All, &info)
		plan, err := s.Plan(IntersectOp(scene.All, 24), 33)
		require.NoError(t, err)
		require.Equal(t, plan, info.Plan)
		require.Equal(t, []int64{76, 28}, []int64{info.MeasuredRowBytes, info.MeasuredWireBytes})
		require.Equal(t, []int64{17 * 24, 17 * 4}, []int64{info.FromMaster, info.ToMaster})
		require.Positive(t, info.Submit)
		times, err := info.Times(bg)
		require.NoError(t, err)
		require.Len(t, times, len(plan.Chunks))
		for i, c := range times {
			require.Equal(t, plan.Chunks[i], c.Chunk)
			require.Positive(t, c.Traverse)
			require.Positive(t, c.Finalize)
			remote := s.transport != chunked.Direct && c.Chunk.Position > 0
			require.Equal(t, remote, c.Scatter > 0 && c.Gather > 0, "%v %+v", s.transport, c)
		}
		_, err = info.Times(bg)
		require.ErrorContains(t, err, "once")
		require.Contains(t, info.String(), plan.String())
		require.Contains(t, info.String(), "a row: 76 B of the result, 28 B over the link; 408 B from the master, 68 B to it\n")
		require.Contains(t, info.String(), fmt.Sprintf("held: %v B", info.HighWater))
	}
	var info CallInfo
	ask(scene.None, &info)
	require.Equal(t, int64(4), info.MeasuredRowBytes)
	_, err := info.Times(bg)
	require.ErrorContains(t, err, "Timing")
	s.opts.MinRaysPerDevice = 0
	info.Timing = true
	ask(scene.All, &info)
	require.Equal(t, chunked.KindMaster, info.Plan.Kind)
	require.Contains(t, info.Plan.Reason, "floor")
	require.Zero(t, info.FromMaster)
	times, err := info.Times(bg) // of the master alone: one time for everything
	require.NoError(t, err)
	require.Equal(t, info.Plan.Chunks[0], times[0].Chunk)
	require.Positive(t, times[0].Traverse)
	require.Zero(t, times[0].Finalize)
	info.Timing = false

	s.opts.ChunkRays = 10
	_, err = s.TraceReflections(bg, s.rays, 3, scene.ChainCore, Info(&info), Offload(func(context.Context, int64, offload.Chunk[*scene.Chains]) error {
		time.Sleep(time.Millisecond)
		return nil
	}))
	require.NoError(t, err)
	require.Equal(t, []int64{27, 36}, []int64{info.MeasuredRowBytes, info.MeasuredWireBytes})
	require.Greater(t, info.Submit, 4*time.Millisecond)

	// Events that nobody asks for are released with the set.
	unread := CallInfo{Timing: true}
	ask(scene.All, &unread)
}

// A set over one device without a knob never enters the executor, and makes the calls to
// the driver that the plain scene makes, in the same number.
func TestMultiSceneOneDeviceIsPlain(t *testing.T) {
	rig, trace := traced(t, 1)
	plain := quick(t, rig.Driver, ordinals(rig, 1), Options{}) // a set; its master is the scene
	m := room(rngOf(1))
	build(t, plain, m)
	b := randomBatch(rngOf(2), 50)
	rays, free := b.rays(t, plain.Stream())
	defer free()
	count := func(s intersector) map[string]int64 {
		var hits *scene.Hits
		for range 2 { // the second one is warm
			trace.Reset()
			h, err := s.Intersect(bg, rays, scene.All, scene.Into(hits))
			require.NoError(t, err)
			hits = h
		}
		counts := trace.Counts()
		require.NoError(t, hits.Close())
		return counts
	}
	alone, set := count(plain.Master()), count(plain)
	require.Equal(t, alone, set)
	require.Equal(t, answer(t, plain.Master(), b, scene.All), answer(t, plain, b, scene.All))
	require.Zero(t, plain.executions.Load())
	require.Nil(t, plain.master().entry)
	require.Nil(t, plain.master().pipe)

	// Kind master of a set is the plain call, too.
	if rig2, trace2 := traced(t, 2); true {
		s := quick(t, rig2.Driver, ordinals(rig2, 2), Options{})
		build(t, s, m)
		rays, free := b.rays(t, s.Stream())
		defer free()
		for range 2 {
			trace2.Reset()
			h, err := s.Intersect(bg, rays, scene.All)
			require.NoError(t, err)
			require.NoError(t, h.Close())
		}
		require.Equal(t, int64(2), trace2.Counts()["LaunchKernel"])
		require.Zero(t, trace2.Counts()["StreamWaitEvent"])
		require.Zero(t, s.executions.Load())
		require.Nil(t, s.replicas[1].pipe)
	}
}
