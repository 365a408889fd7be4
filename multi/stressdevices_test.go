package multi

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// Two goroutines, each with a scene and a device of its own, get what each gets alone.
func TestMultiStressTwoThreads(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	const rounds = 24
	rng := rand.New(rand.NewPCG(2, 2))
	var batches [rounds]batch
	for i := range batches {
		batches[i] = randomBatch(rng, 30)
	}
	var scenes [2]*scene.Scene
	var serial, together [2][rounds]words
	for k := range scenes {
		var err error
		scenes[k], err = scene.New(rig.Context(t, k), scene.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, scenes[k].Close()) })
		build(t, scenes[k], soup(rand.New(rand.NewPCG(7, uint64(k))), 40))
		for i, b := range batches {
			serial[k][i] = answer(t, scenes[k], b, scene.All)
		}
	}
	var wg sync.WaitGroup
	for k := range scenes {
		wg.Go(func() {
			for i, b := range batches {
				together[k][i] = answer(t, scenes[k], b, scene.All)
			}
		})
	}
	wg.Wait()
	require.Equal(t, serial, together)
}

// A process whose first work is on the second device allocates nothing on the first.
func TestMultiStressColdDevice(t *testing.T) {
	if os.Getenv("RAYMUX_TEST_COLD") == "" {
		gputest.Need(t, 2)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMultiStressColdDevice$", "-test.v")
		cmd.Env = append(os.Environ(), "RAYMUX_TEST_COLD=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: TestMultiStressColdDevice")
		return
	}
	var trace *wrap.Trace
	rig := gputest.Open(t, 2, func(api cuapi.API) cuapi.API { trace = wrap.NewTrace(api); return trace })
	s := newScene(t, rig.Driver, []int{rig.Devices[1].Ordinal()}, Options{})
	build(t, s, soup(rand.New(rand.NewPCG(1, 1)), 20))
	answer(t, s, randomBatch(rand.New(rand.NewPCG(3, 3)), 20), scene.All)
	require.EqualValues(t, 1, trace.Count("DevicePrimaryCtxRetain"), "only the device that is used is started")
}

// Two devices work at the same time: together they are done well before one after the
// other. The only test that compares times, and so the only one that a busy host may fail.
func TestMultiStressOverlap(t *testing.T) {
	if !gputest.Native() {
		t.Skip("NOT VERIFIED: emulated devices share the processor")
	}
	rig := gputest.Open(t, 2, nil)
	rng := rand.New(rand.NewPCG(5, 5))
	mesh, rays := soup(rng, 20000), randomBatch(rng, 1<<20)
	var calls [2]func()
	var streams [2]*cuda.Stream
	for k := range calls {
		s, err := scene.New(rig.Context(t, k), scene.Options{Backend: scene.CUDA})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		build(t, s, mesh)
		r, free := rays.rays(t, s.Stream())
		t.Cleanup(free)
		var hits *scene.Hits
		t.Cleanup(func() { require.NoError(t, hits.Close()) })
		streams[k] = s.Stream()
		calls[k] = func() {
			for range 8 {
				hits, err = s.Intersect(bg, r, scene.None, scene.Into(hits))
				require.NoError(t, err)
			}
		}
	}
	wait := func(k int) { require.NoError(t, streams[k].Synchronize(bg)) }
	serial, concurrent := time.Hour, time.Hour
	for range 6 { // the first one warms up
		begin := time.Now()
		for k := range calls {
			calls[k]()
			wait(k)
		}
		serial = min(serial, time.Since(begin))
		begin = time.Now()
		calls[0]()
		calls[1]()
		wait(0)
		wait(1)
		concurrent = min(concurrent, time.Since(begin))
	}
	require.Less(t, concurrent.Seconds(), .8*serial.Seconds())
}
