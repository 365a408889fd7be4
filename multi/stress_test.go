package multi

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// How long TestMultiStressMixedUse runs. Half an hour under the race detector, and five
// minutes on two GPUs:
//
//	go test -race ./multi -run TestMultiStressMixedUse -stress 30m -timeout 1h
//	RAYMUX_TEST_DEVICES=0,1 go test ./multi -run TestMultiStressMixedUse -stress 5m
var stressFor = flag.Duration("stress", time.Second, "how long to use a set from many goroutines")

// 16 goroutines ask whole and streamed questions of every operation, leave streams, cancel
// and fail, while another one updates the geometry and changes the transport. Every answer
// is right, and in the end nothing has grown.
func TestMultiStressMixedUse(t *testing.T) {
	rng := rngOf(7)
	n := gputest.UpTo(3)
	var ledger *wrap.Ledger
	rig := gputest.Open(t, n, func(api cuapi.API) cuapi.API {
		ledger = wrap.NewLedger(api)
		return ledger
	})
	m := room(rng)
	s := quick(t, rig.Driver, ordinals(rig, n), anyFloor([]float64{2, 1, 1}[:n]...))
	build(t, s, m)
	st, err := s.Context().NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	qs := questions(t, rng, st, 40, len(m.Faces)/3)
	var want []map[string][]byte
	for _, q := range qs {
		want = append(want, q.answerOf(t, s))
	}
	s.opts.ChunkRays = 6
	inUse := poolUse(s)
	fail := func(format string, args ...any) { t.Errorf(format, args...) }
	use := func(ctx context.Context, rng *rand.Rand) {
		k := rng.IntN(len(qs))
		q := qs[k]
		switch rng.IntN(4) {
		case 0:
			r, err := q.whole(s)
			if err != nil {
				fail("%s: %v", q.name, err)
				return
			}
			if got := contents(t, s.Stream(), r); !maps.EqualFunc(got, want[k], bytes.Equal) {
				fail("%s: other bits", q.name)
			}
			if err := r.Close(); err != nil {
				fail("%s: %v", q.name, err)
			}
		case 1:
			rows := 0
			err := q.streamed(s, func(_ int64, r scene.Reusable) error { rows += r.Rows(); return nil })
			if err != nil || rows != 40 {
				fail("%s: %d rows, %v", q.name, rows, err)
			}
		case 2: // a stream that is ended
			stop := fmt.Errorf("stop")
			n := rng.IntN(5)
			err := q.streamed(s, func(int64, scene.Reusable) error {
				if n--; n < 0 {
					return stop
				}
				return nil
			})
			var told *offload.StreamError
			if !asStream(err, &told) {
				fail("%s: %v", q.name, err)
			}
		case 3: // somebody without patience
			ctx, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(2000))*time.Microsecond)
			defer cancel()
			done, err := s.beginReady(ctx)
			if err == nil {
				done()
			}
		}
	}
	var wg sync.WaitGroup
	until := time.Now().Add(*stressFor)
	for g := range 16 {
		wg.Go(func() {
			rng := rngOf(uint64(100 + g))
			for time.Now().Before(until) {
				use(bg, rng)
			}
		})
	}
	for time.Now().Before(until) {
		require.NoError(t, s.UpdateMeshVertices(0, m.Vertices)) // the same: answers stay
		require.NoError(t, s.Sync(bg))
		done, err := s.begin(bg)
		require.NoError(t, err)
		s.transport = chunked.Transport(1 + rng.IntN(3))
		done()
	}
	wg.Wait()
	before := ledger.Total()
	use(bg, rng)
	require.LessOrEqual(t, ledger.Total().Events, before.Events+2)
	require.Equal(t, before.Streams, ledger.Total().Streams)
	require.Equal(t, inUse, poolUse(s))
}

func asStream(err error, told **offload.StreamError) bool {
	e, ok := err.(*offload.StreamError)
	*told = e
	return ok
}

// A slow consumer holds the call up: no more chunks are submitted than there are slots.
func TestMultiSceneStreamingBackPressure(t *testing.T) {
	rig, trace := traced(t, 2)
	s := quick(t, rig.Driver, ordinals(rig, 2), anyFloor())
	build(t, s, soup(rngOf(3), 20))
	b := randomBatch(rngOf(4), 60)
	rays, free := b.rays(t, s.Stream())
	defer free()
	for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
		s.opts.ChunkRays = 3
		trace.Reset()
		calls := int64(0)
		_, err := s.Intersect(bg, rays, scene.All, Offload(func(context.Context, int64, offload.Chunk[*scene.Hits]) error {
			calls++
			searches := trace.Count("LaunchKernel") - calls // each delivered chunk was finalized
			require.LessOrEqual(t, searches, calls-1+2*chunked.RemoteSlots, "%v", s.transport)
			return nil
		}))
		require.NoError(t, err)
		require.Equal(t, int64(20), calls)
	}
}
