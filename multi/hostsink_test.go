package multi

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
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
		for name, v := range h.floats {
			var out []byte
			for _, x := range v {
				out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
			}
			require.Equal(t, v, h.Floats(name))
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
	small, err := NewHostSink[*scene.Hits](sets[0], 59)
	require.NoError(t, err)
	_, err = qs[0].whole(sets[0], small.Offload())
	require.ErrorContains(t, err, "was 59, want as many as the batch has")
	require.NoError(t, small.Close())
	_, err = NewHostSink[*scene.Hits](sets[0], -1)
	require.Error(t, err)
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
