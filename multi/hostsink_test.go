package multi

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// sunk streams a question to a sink and compares the host's columns with the device's.
func sunk[R scene.Reusable](t *testing.T, s *Scene, q question, want map[string][]byte) {
	t.Helper()
	h, err := NewHostSink[R](s, q.rows)
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close()); require.NoError(t, h.Close()) }()
	for range 2 { // a sink serves again
		_, err = q.whole(s, h.Offload())
		require.NoError(t, err)
		require.NoError(t, h.Finish(bg))
		require.NoError(t, s.Stream().Synchronize(bg))
		got := map[string][]byte{}
		for name := range h.floats {
			var out []byte
			for _, x := range h.Floats(name) {
				out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
			}
			got[name] = out
		}
		for name := range h.ints {
			var out []byte
			for _, x := range h.Ints(name) {
				out = binary.LittleEndian.AppendUint32(out, uint32(x))
			}
			got[name] = out
		}
		for name := range h.bytes {
			got[name] = h.Bytes(name)
		}
		for name, v := range want {
			if v == nil {
				require.NotContains(t, got, name)
				continue
			}
			require.Equal(t, v, got[name], name)
		}
	}
}

// A sink receives on the host what a whole result holds on the device.
func TestMultiSceneStreamingHostSink(t *testing.T) {
	rng := rngOf(5)
	rig, sets, faces := fleet(t, rng)
	st, err := rig.Context(t, 0).NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	qs := questions(t, rng, st, 60, faces)
	for _, s := range sets[:2] {
		for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
			s.opts.ChunkRays = 0
			var want []map[string][]byte
			for _, q := range qs {
				want = append(want, q.answerOf(t, s))
			}
			s.opts.ChunkRays = 4
			t.Run(fmt.Sprint(len(s.devices), s.transport), func(t *testing.T) {
				sunk[*scene.Hits](t, s, qs[0], want[0])
				sunk[*scene.Chains](t, s, qs[1], want[1])
				sunk[*scene.Visibility](t, s, qs[2], want[2])
				sunk[*scene.PairVisibility](t, s, qs[3], want[3])
				sunk[*scene.EdgeVisibility](t, s, qs[4], want[4])
				sunk[*scene.ChainVisibility](t, s, qs[5], want[5])
			})
		}
	}
}

// What no sink can be made of is refused, and one that cannot be made leaves nothing behind.
func TestMultiSceneStreamingHostSinkNotMade(t *testing.T) {
	x := newBroken(t, 1, chunked.Direct)
	defer x.close(t)
	var wrong *scene.ArgumentError
	_, err := NewHostSink[*scene.Hits](x.Scene, -1)
	require.ErrorAs(t, err, &wrong)
	_, err = NewHostSink[*scene.Hits](nil, 5)
	require.ErrorAs(t, err, &wrong)
	before := x.ledger.Total()
	for failed := 0; ; failed++ {
		x.fault.FailAt(failed+1, cuapi.ErrorInvalidValue)
		h, err := NewHostSink[*scene.Hits](x.Scene, 33)
		x.fault.Reset()
		if err == nil {
			require.NoError(t, h.Close())
			require.Greater(t, failed, 3, "a stream and three events")
			break
		}
		require.ErrorIs(t, err, cuapi.ErrorInvalidValue)
		require.Nil(t, h)
		require.Equal(t, before, x.ledger.Total(), "call %d", failed+1)
	}

	// More rows than any memory has are not allocated before a call has them.
	h, err := NewHostSink[*scene.Hits](x.Scene, math.MaxInt64)
	require.NoError(t, err)
	_, err = x.Intersect(bg, x.rays, scene.All, h.Offload())
	require.ErrorAs(t, err, &wrong)
	require.NoError(t, h.Close())
}

// A sink that a call does not fit, or that is closed, refuses it before the driver hears of it.
func TestMultiSceneStreamingHostSinkRefusals(t *testing.T) {
	rig, trace := traced(t, 2)
	s := streamingOn(t, rig.Driver, 2, 7)
	other, err := create(rig.Driver, []int{1}, anyFloor(), 64)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	refused := func(on *Scene, rows int64, want string) {
		t.Helper()
		h, err := NewHostSink[*scene.Hits](on, rows)
		require.NoError(t, err)
		defer func() { require.NoError(t, h.Close()) }()
		trace.Reset()
		_, err = s.Intersect(bg, s.rays, scene.All, h.Offload())
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*scene.ArgumentError))
		require.Equal(t, err, h.Finish(bg))
		require.Zero(t, trace.Total())
	}
	refused(s.Scene, 32, "rows: was 32, the call has 33")
	refused(s.Scene, 34, "rows: was 34, the call has 33")
	refused(other, 33, "another master (device 1) than the scene of the call (device 0)")

	h, err := NewHostSink[*scene.Hits](s.Scene, 33)
	require.NoError(t, err)
	require.ErrorIs(t, h.Finish(bg), ErrNotStreamed, "of no call yet")
	_, err = s.Intersect(bg, s.rays, scene.None, h.Offload())
	require.NoError(t, err)
	require.NoError(t, h.Finish(bg))
	require.NoError(t, h.Close())
	require.Len(t, h.Floats("T"), 33, "complete columns outlive the sink")
	trace.Reset()
	_, err = s.Intersect(bg, s.rays, scene.All, h.Offload())
	require.Equal(t, ErrSinkClosed, err)
	require.ErrorIs(t, err, cuda.ErrClosed)
	require.Equal(t, ErrSinkClosed, h.Finish(bg))
	require.Nil(t, h.Floats("T"), "of the call before")
	require.Zero(t, trace.Total())

	unfinished, err := NewHostSink[*scene.Hits](s.Scene, 33)
	require.NoError(t, err)
	_, err = s.Intersect(bg, s.rays, scene.All, unfinished.Offload())
	require.NoError(t, err)
	require.NoError(t, unfinished.Close())
	require.Equal(t, ErrSinkClosed, unfinished.Finish(bg), "what was on its way is lost")
	require.Nil(t, unfinished.Floats("T"))
	s.requireHealthy(t, "refused")
}

// What a call has left in a sink is not taken for the result of the next one, whether that
// fails, is refused, asks for less, or is not finished yet.
func TestMultiSceneStreamingHostSinkServesAgain(t *testing.T) {
	s := newStreaming(t, 2, 7)
	h, err := NewHostSink[*scene.Hits](s.Scene, 33)
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close()) }()
	requireT := func(what string) {
		t.Helper()
		require.NoError(t, h.Finish(bg), what)
		require.Len(t, h.Floats("T"), 33, what)
		for i, v := range h.Floats("T") {
			require.Equal(t, s.want[0][i], math.Float32bits(v), "%s: row %d", what, i)
		}
	}
	again := h.Offload() // serves as often as it is given
	for range 2 {
		_, err = s.Intersect(bg, s.rays, scene.All, again)
		require.NoError(t, err)
		require.Nil(t, h.Floats("T"), "before Finish")
		requireT("whole")
		require.Len(t, h.Floats("P"), 99)
	}
	_, err = s.Intersect(bg, s.rays, scene.None, h.Offload())
	require.NoError(t, err)
	requireT("reduced")
	require.Nil(t, h.Floats("P"), "of the call before")

	// A call whose context ends when the sink has so many chunks.
	_, call, err := s.Master().PrepareIntersect(bg, s.rays, scene.All, scene.Unallocated(), again)
	require.NoError(t, err)
	for chunks := range 5 {
		ctx, cancel := context.WithCancel(bg)
		c := *call.Carried[0].(*consumer)
		seen, take := 0, c.consume
		c.consume = func(ctx context.Context, rows chunked.Range, part *scene.Call) error {
			err := take(ctx, rows, part)
			if seen++; seen > chunks {
				cancel()
			}
			return err
		}
		_, err = s.Intersect(ctx, s.rays, scene.All, scene.Carry(&c))
		var told *offload.StreamError
		require.ErrorAs(t, err, &told)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, told.Delivered, chunks+1)
		require.Equal(t, err, h.Finish(bg), "the error of the call")
		require.Nil(t, h.Floats("T"))
	}
	_, err = s.Intersect(bg, s.rays, scene.All, h.Offload())
	require.NoError(t, err)
	requireT("after failures")

	ended, cancel := context.WithCancel(bg)
	cancel()
	_, err = s.Intersect(ended, s.rays, scene.All, h.Offload())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, h.Finish(bg), ErrNotStreamed, "ended before it came to stream")
	require.Nil(t, h.Floats("T"))
}

// A column that no such result has is a mistake that a sink does not answer with nothing.
func TestMultiSceneStreamingHostSinkColumns(t *testing.T) {
	s := newStreaming(t, 1, 17)
	h, err := NewHostSink[*scene.Hits](s.Scene, 33)
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close()) }()
	_, err = s.Intersect(bg, s.rays, scene.None, h.Offload())
	require.NoError(t, err)
	require.NoError(t, h.Finish(bg))
	require.Len(t, h.Floats("T"), 33)
	require.Nil(t, h.Floats("P"), "not asked for")
	for name, ask := range map[string]func(){
		`HostSink.Floats("nope")`: func() { h.Floats("nope") },
		`HostSink.Ints("T")`:      func() { h.Ints("T") },
		`HostSink.Bytes("Valid")`: func() { h.Bytes("Valid") },
	} {
		func() {
			defer func() { require.Contains(t, recover(), name) }()
			ask()
		}()
	}
	require.PanicsWithValue(t, `multi: HostSink.Ints("T") of *scene.Hits: such columns are [GlobalPrimID LocalPrimID PrimID ShapeID]`,
		func() { h.Ints("T") })
}

// The memory of chunks is not used again before a sink that lags behind has read it.
func TestMultiSceneStreamingHostSinkLags(t *testing.T) {
	s := newStreaming(t, 1, 17)
	h, err := NewHostSink[*scene.Hits](s.Scene, 33)
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close()) }()
	var frees []func() error
	up := uploads{t, h.stream, &frees}
	heavy, other := column(up, make([]float32, 1<<20)), column(up, make([]float32, 1<<20))
	for range 20 {
		require.NoError(t, cuda.CopyAsync(h.stream, heavy, other))
	}
	_, err = s.Intersect(bg, s.rays, scene.All, h.Offload())
	require.NoError(t, err)
	_, call, err := s.Master().PrepareIntersect(bg, s.rays, scene.All, scene.Unallocated())
	require.NoError(t, err)
	pool := s.Context().Pool()
	for range 2 { // whoever gets the memory of the chunks next
		m, err := cuda.PoolAlloc[uint8](pool, s.Stream(), int(call.PartBytes(17)))
		require.NoError(t, err)
		require.NoError(t, cuda.Fill8(s.Stream(), m, 0xEE))
		require.NoError(t, cuda.PoolFree(pool, s.Stream(), m))
	}
	require.NoError(t, h.Finish(bg))
	for i, v := range h.Floats("T") {
		require.Equal(t, s.want[0][i], math.Float32bits(v), "row %d", i)
	}
	for _, free := range frees {
		require.NoError(t, free())
	}
}
