package multi

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
)

// Methods that only read the set may be called by somebody who does not know that
// it was closed, also while it is being closed.
func TestReadingAClosedSet(t *testing.T) {
	drv, _, _ := emulator(t, 2)
	s, err := New(drv, []int{0, 1}, anyFloor())
	require.NoError(t, err)
	build(t, s, soup(rand.New(rand.NewPCG(1, 8)), 5))
	read := func() {
		s.IsReady()
		s.HasPendingUpdates()
		s.Version()
		s.GeometryVersion()
		s.EdgeMaskVersion()
		s.Master()
		s.Context()
		s.Stream()
		s.Devices()
		s.Links()
		s.Transport()
		_, err := s.Plan(IntersectOp(scene.All, 24), 100)
		require.NoError(t, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for s.IsReady() {
			read()
		}
	})
	require.NoError(t, s.Close())
	wg.Wait()
	read()
	require.False(t, s.IsReady())
	require.Equal(t, int64(1), s.Version())
	_, err = s.Master().Intersect(bg, scene.Rays{}, scene.All)
	require.ErrorIs(t, err, cuda.ErrClosed)
	_, err = s.Context().NewStream(cuda.StreamOptions{})
	require.ErrorIs(t, err, cuda.ErrClosed)
}

// Every Close returns what the first returned.
func TestCloseRepeatsItsError(t *testing.T) {
	drv, _, _ := emulator(t, 2)
	s, err := New(drv, []int{0, 1}, anyFloor())
	require.NoError(t, err)
	var left []cuda.Slice[float32]
	for k, c := range s.Contexts() {
		for range k + 1 {
			v, err := cuda.Alloc[float32](c, 1)
			require.NoError(t, err)
			left = append(left, v)
		}
	}
	first := s.Close()
	var leak *cuda.LeakError
	require.ErrorAs(t, first, &leak)
	require.Equal(t, first, s.Close())
	require.Regexp(t, `(?s)device 0.*1 device buffer .*device 1.*2 device buffers`, first.Error(), "of every device")
	for _, v := range left {
		require.NoError(t, cuda.Free(v))
	}
}

// A RebuildWithout that fails before it has closed the set leaves one that can be calibrated.
func TestRebuildThatChangesNothing(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	fault := wrap.NewFault(e)
	drv, err := cuda.OpenAPI(fault)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drv.Close()) })
	s := quickScene(t, drv, 2, Options{})
	build(t, s, soup(rngOf(190), 9))
	rays, free := randomBatch(rngOf(191), 5).rays(t, s.Stream())
	defer free()
	h, err := s.Intersect(bg, rays, scene.None, Info(&CallInfo{Timing: true})) // whose times nobody reads
	require.NoError(t, err)
	require.NoError(t, h.Close())
	require.NoError(t, fault.FailCall("EventDestroy", 1, cuapi.ErrorInvalidValue))
	_, err = s.RebuildWithout(bg, 1)
	require.ErrorIs(t, err, cuapi.ErrorInvalidValue)
	fault.Reset()
	_, err = s.CalibrateDevices(bg, Probe{Rays: 5, Repeats: 1, NoLadder: true})
	require.NoError(t, err)
}

// A Sync that fails before the master has committed anything leaves a set that
// answers for the old vertices and commits the staged ones later.
func TestSyncThatChangesNothing(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	fault := wrap.NewFault(e)
	drv, err := cuda.OpenAPI(fault)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drv.Close()) })
	s := newScene(t, drv, []int{0, 1}, anyFloor())
	rng := rand.New(rand.NewPCG(2, 8))
	m := soup(rng, 20)
	build(t, s, m)
	b := randomBatch(rng, 40)
	old := answer(t, s, b, scene.All)
	moved := append([]float32(nil), m.Vertices...)
	for i := range moved {
		moved[i] += .25
	}
	require.NoError(t, s.UpdateMeshVertices(0, moved))

	ended, cancel := context.WithCancel(bg)
	cancel()
	require.ErrorIs(t, s.Sync(ended), context.Canceled)
	require.True(t, s.IsReady() && s.HasPendingUpdates())

	// Upload tries once more after it has emptied the pool.
	for k := range 2 {
		require.NoError(t, fault.FailCall("MemAlloc", k+1, cuapi.ErrorOutOfMemory))
	}
	require.NoError(t, s.Context().Pool().Trim())
	err = s.Sync(bg)
	fault.Reset()
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	require.True(t, s.IsReady() && s.HasPendingUpdates())
	require.Equal(t, old, answer(t, s, b, scene.All))

	require.NoError(t, s.Sync(bg))
	fresh := newScene(t, drv, []int{0}, Options{})
	m.Vertices = moved
	build(t, fresh, m)
	require.Equal(t, answer(t, fresh, b, scene.All), answer(t, s, b, scene.All))
}

// endsAt is a context that ends when it is asked for the k-th time.
type endsAt struct {
	context.Context
	mu   sync.Mutex
	left int
	done chan struct{}
}

func newEndsAt(k int) *endsAt { return &endsAt{Context: bg, left: k, done: make(chan struct{})} }

func (c *endsAt) Done() <-chan struct{} { return c.done }

func (c *endsAt) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left > 0 {
		if c.left--; c.left == 0 {
			close(c.done)
		}
	}
	if c.left == 0 {
		return context.Canceled
	}
	return nil
}

func (c *endsAt) Deadline() (time.Time, bool) { return time.Time{}, false }

// Wherever its context ends, a mutation happens on all devices or on none.
func TestMultiResilienceCancelledMutations(t *testing.T) {
	drv, _, _ := emulator(t, 2)
	s := newScene(t, drv, []int{0, 1}, anyFloor())
	rng := rand.New(rand.NewPCG(3, 8))
	m, still, place := soup(rng, 20), soup(rng, 10), turned(rng)
	still.Dynamic = false
	build(t, s, m, still)
	_, err := s.AddInstance(1, place, true)
	require.NoError(t, err)
	require.NoError(t, s.Build(bg))
	b := randomBatch(rng, 40)
	want := answer(t, s, b, scene.All)
	for name, mutate := range map[string]func(context.Context) error{
		"Build": s.Build,
		"Sync": func(ctx context.Context) error {
			require.NoError(t, s.UpdateMeshVertices(0, m.Vertices)) // the same ones
			require.NoError(t, s.SetInstanceTransform(2, place))
			return s.Sync(ctx)
		},
	} {
		failed := 0
		for k := 1; ; k++ {
			before := s.Version()
			ctx := newEndsAt(k)
			err := mutate(ctx)
			require.True(t, s.IsReady(), "%s, k = %d: %v", name, k, err)
			require.Equal(t, want, answer(t, s, b, scene.All), "%s, k = %d", name, k)
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, before, s.Version())
				failed++
				continue
			}
			require.Equal(t, before+1, s.Version())
			if ctx.left > 0 {
				break
			}
		}
		require.Positive(t, failed, name)
	}
}
