package scene_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/optixtest"
)

// orderLog follows which work of a stream comes before which of another, on devices
// that claim to be busy.
type orderLog struct {
	cuapi.API
	busy atomic.Bool // no event has happened yet

	mu       sync.Mutex
	clock    int
	recorded map[cuapi.Event]mark                  // the last record of an event
	after    map[cuapi.Stream]map[cuapi.Stream]int // how far a stream has waited for others
	launches map[optixabi.Pipeline]mark            // the last launch of a pipeline
}

// mark is a place in a stream.
type mark struct {
	stream cuapi.Stream
	time   int
}

func (l *orderLog) now() int {
	l.clock++
	return l.clock
}

func (l *orderLog) EventQuery(e cuapi.Event) cuapi.Result {
	if l.busy.Load() {
		return cuapi.ErrorNotReady
	}
	return l.API.EventQuery(e)
}

func (l *orderLog) EventRecord(e cuapi.Event, s cuapi.Stream) cuapi.Result {
	l.mu.Lock()
	l.recorded[e] = mark{s, l.now()}
	l.mu.Unlock()
	return l.API.EventRecord(e, s)
}

func (l *orderLog) StreamWaitEvent(s cuapi.Stream, e cuapi.Event, flags uint32) cuapi.Result {
	l.mu.Lock()
	if l.after[s] == nil {
		l.after[s] = map[cuapi.Stream]int{}
	}
	r := l.recorded[e]
	l.after[s][r.stream] = max(l.after[s][r.stream], r.time)
	l.mu.Unlock()
	return l.API.StreamWaitEvent(s, e, flags)
}

// launch requires the launch of the same pipeline before to be over on the device.
func (l *orderLog) launch(p optixabi.Pipeline, s cuapi.Stream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, again := l.launches[p]
	l.launches[p] = mark{s, l.now()}
	return !again || last.stream == s || l.after[s][last.stream] > last.time
}

// Launches of one pipeline never overlap on a device where nothing ends, however many
// streams and goroutines there are, and the number of pipelines stays bounded.
func TestOptixLaunchesOfAPipelineNeverOverlap(t *testing.T) {
	const goroutines, streams, rounds = 4, 6, 3
	log := &orderLog{
		recorded: map[cuapi.Event]mark{}, after: map[cuapi.Stream]map[cuapi.Stream]int{},
		launches: map[optixabi.Pipeline]mark{},
	}
	var overlaps, launches atomic.Int64
	f := optixtest.NewFake(t, fakeoptix.Config{OnLaunch: func(l fakeoptix.Launch) optixabi.Result {
		launches.Add(1)
		if !log.launch(l.Pipeline, cuapi.Stream(l.Stream)) {
			overlaps.Add(1)
		}
		return optixabi.Success
	}})
	t.Cleanup(f.Close)
	api, err := emu.New(1)
	require.NoError(t, err)
	log.API = api
	drv, err := cuda.OpenAPI(log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drv.Close()) })
	require.NoError(t, scene.UseOptiX(drv, f.Library()))
	c, err := drv.Devices()[0].Retain()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	s, err := scene.New(c, scene.Options{Backend: scene.OptiX})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := &rig{t, s}
	r.add(meshQ())
	require.NoError(t, s.Build(background))
	rays := r.upload(oddBatch(rand.New(rand.NewPCG(32, 1)), 8))
	// The stand-in stores nothing, so the winners come from here.
	_, call, err := s.PrepareIntersect(background, rays, scene.All)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, call.Abandon()) })
	in, out := call.Columns()

	log.busy.Store(true)
	t.Cleanup(func() { log.busy.Store(false) })
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			var own []*cuda.Stream
			for range streams {
				st, err := c.NewStream(cuda.StreamOptions{})
				if !assert.NoError(t, err) {
					return
				}
				defer func() { assert.NoError(t, st.Close()) }()
				own = append(own, st)
			}
			for range rounds {
				for _, st := range own {
					assert.NoError(t, call.Search(s, st, in, out, 0, 8))
				}
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, goroutines*streams*rounds, launches.Load())
	assert.Zero(t, overlaps.Load())
	assert.Empty(t, f.Violations())
	made := f.Calls("optixPipelineCreate")
	assert.GreaterOrEqual(t, made, 16, "streams whose work does not end share a pipeline too early")
	assert.Less(t, made, 16+goroutines)
}
