package multi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// broken is a set whose driver calls can be made to fail.
type broken struct {
	*streaming
	ledger *wrap.Ledger
	fault  *wrap.Fault
	drv    *cuda.Driver
	free   func()
}

func newBroken(t testing.TB, devices int, tr chunked.Transport) *broken {
	t.Helper()
	e, err := emu.New(devices)
	require.NoError(t, err)
	x := &broken{ledger: wrap.NewLedger(e)}
	x.fault = wrap.NewFault(x.ledger)
	x.drv, err = cuda.OpenAPI(x.fault)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(83, 1))
	ids := []int{0, 1, 2}[:devices]
	s, err := create(x.drv, ids, anyFloor(), 16)
	require.NoError(t, err)
	s.transport = tr
	build(t, s, soup(rng, 12))
	b := randomBatch(rng, 33)
	b.tmax, b.active = nil, nil
	x.streaming = &streaming{Scene: s, want: answer(t, s, b, scene.All)}
	x.rays, x.free = b.rays(t, s.Stream())
	return x
}

// close closes everything and requires that nothing is left.
func (x *broken) close(t testing.TB) {
	t.Helper()
	x.free()
	require.NoError(t, x.Close())
	require.NoError(t, x.drv.Close())
	require.NoError(t, x.ledger.Check())
}

// acts are what a set does; each returns its first error.
var acts = map[string]func(x *broken) error{
	"intersect": func(x *broken) error {
		h, err := x.Intersect(bg, x.rays, scene.All)
		if err != nil {
			return err
		}
		return h.Close()
	},
	"stream": func(x *broken) error {
		x.opts.ChunkRays = 5
		defer func() { x.opts.ChunkRays = 0 }()
		_, err := x.Intersect(bg, x.rays, scene.All, Offload(func(context.Context, int64, offload.Chunk[*scene.Hits]) error { return nil }))
		return err
	},
	"build": func(x *broken) error { return x.Build(bg) },
}

// Whatever call of whichever device fails, the first error is kept, nothing is left
// behind, and the set works on, at the latest after a Build.
func TestMultiResilienceFaults(t *testing.T) {
	const devices = 2
	for name, act := range acts {
		for _, tr := range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
			if name == "build" && tr != chunked.Direct {
				continue
			}
			x := newBroken(t, devices, tr)
			for device := range devices {
				failed := 0
				for k := 1; ; k++ {
					what := fmt.Sprintf("%s, %v, device %d, call %d", name, tr, device, k)
					x.fault.FailDevice(cuapi.Device(device), k, cuapi.ErrorInvalidValue)
					err := act(x)
					fired := x.fault.Fired() > 0
					x.fault.Reset()
					if err != nil {
						require.True(t, fired, "%s: %v", what, err)
						require.ErrorIs(t, err, cuapi.ErrorInvalidValue, what)
						failed++
					}
					if !x.IsReady() {
						require.Equal(t, "build", name, "%s: %v", what, err)
						require.NoError(t, x.Build(bg), what)
					}
					x.requireHealthy(t, what)
					if !fired {
						break
					}
				}
				require.Positive(t, failed, "%s, %v, device %d", name, tr, device)
			}
			x.close(t)
		}
	}
}

// A Close whose calls fail returns the first failure and leaves no more than what the
// driver did not take.
func TestMultiResilienceFaultsOfClose(t *testing.T) {
	for k := 1; ; k += 53 {
		x := newBroken(t, 2, chunked.Copy)
		require.NoError(t, acts["stream"](x))
		x.free()
		x.fault.FailAt(k, cuapi.ErrorInvalidValue)
		err := x.Close()
		fired := x.fault.Fired() > 0
		x.fault.Reset()
		require.NoError(t, errors.Join(x.drv.Close()), "call %d: %v", k, err)
		if err == nil && !fired {
			require.NoError(t, x.ledger.Check())
			break
		}
		if err != nil {
			require.ErrorIs(t, err, cuapi.ErrorInvalidValue)
			require.Equal(t, err, x.Close())
		}
		if left := x.ledger.Total(); left != (wrap.Counts{}) {
			require.LessOrEqual(t, left.Streams+left.Modules+left.Events+left.Contexts, 1, "call %d: %v", k, x.ledger.Check())
		}
	}
}

// A device that is lost is named, also by the calls that follow, and a set of the others
// goes on.
func TestMultiResilienceFaultsThatLoseADevice(t *testing.T) {
	for name, act := range acts {
		for k := 3; k < 40; k += 12 {
			x := newBroken(t, 2, chunked.Copy)
			x.fault.FailDevice(1, k, cuapi.ErrorLaunchFailed)
			err := act(x)
			if x.fault.Fired() == 0 {
				require.NoError(t, err)
				x.close(t)
				continue
			}
			require.ErrorIs(t, err, cuda.ErrDeviceLost, "%s %d", name, k)
			var at *DeviceError
			require.ErrorAs(t, err, &at)
			require.Equal(t, 1, at.Position)
			err = act(x)
			require.ErrorIs(t, err, cuda.ErrDeviceLost)
			require.True(t, x.master().scene.IsReady(), "the loss of a remote is not the master's")
			rest, err := x.RebuildWithout(bg, 1)
			require.NoError(t, err)
			x.Scene = rest
			x.requireHealthy(t, name)
			x.free()
			require.NoError(t, rest.Close())
		}
	}
}

// A thousand calls that fail leave memory, handles and goroutines as they were.
func TestMultiResilienceManyFailures(t *testing.T) {
	x := newBroken(t, 2, chunked.Copy)
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	why := errors.New("no")
	fails := []func(){
		func() { require.Error(t, x.failing("intersect")) },
		func() { require.Error(t, x.failing("stream")) },
		func() {
			require.ErrorIs(t, x.stream(bg, func(int64, offload.Chunk[*scene.Hits]) error { return why }), why)
		},
		func() {
			ctx, cancel := context.WithCancel(bg)
			err := x.stream(ctx, func(int64, offload.Chunk[*scene.Hits]) error { cancel(); return nil })
			require.ErrorIs(t, err, context.Canceled)
		},
	}
	settle := func() (wrap.Counts, int) {
		for _, r := range x.replicas {
			require.NoError(t, r.scene.Stream().Synchronize(bg))
			require.NoError(t, r.ctx.Pool().Trim())
		}
		time.Sleep(50 * time.Millisecond) // the emulator's streams end their goroutines
		return x.ledger.Total(), runtime.NumGoroutine()
	}
	var before wrap.Counts
	var goroutines int
	for i := range rounds + 20 {
		if i == 20 { // whatever is made once has been made
			before, goroutines = settle()
		}
		x.transport = []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host}[i/4%3]
		x.opts.ChunkRays = int64(5 + i%3)
		fails[i%4]()
	}
	after, _ := settle()
	require.Equal(t, before, after)
	requireGoroutines(t, goroutines)
	x.requireHealthy(t, "after all")
	x.close(t)
}

// failing is an act of which a launch fails.
func (x *broken) failing(name string) error {
	chunk := x.opts.ChunkRays
	defer func() { x.opts.ChunkRays = chunk; x.fault.Reset() }()
	if err := x.fault.FailCall("LaunchKernel", 2, cuapi.ErrorLaunchOutOfResources); err != nil {
		return nil
	}
	return acts[name](x)
}
