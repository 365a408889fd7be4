package multi

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// After an update and Sync every device answers like a freshly built scene,
// also when queries and updates follow each other without a wait.
func TestMultiSceneSync(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	rng := rand.New(rand.NewPCG(9, 9))
	s := newScene(t, rig.Driver, ordinals(rig, 2), anyFloor())
	m := soup(rng, 60)
	build(t, s, m)
	b := randomBatch(rng, 500)
	b.tmax, b.active = nil, nil
	rays, free := b.rays(t, s.Stream())
	defer free()
	for round := range 8 {
		s.transport = []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host}[round%3]
		next := scene.Mesh{Vertices: append([]float32(nil), m.Vertices...), Faces: m.Faces, Dynamic: true}
		for i := range next.Vertices {
			next.Vertices[i] += rng.Float32()*.2 - .1
		}
		// The query that is in flight answers for the old vertices.
		before, err := s.Intersect(bg, rays, scene.All)
		require.NoError(t, err)
		require.NoError(t, s.UpdateMeshVertices(0, next.Vertices))
		require.True(t, s.HasPendingUpdates())
		require.NoError(t, s.Sync(bg))
		after, err := s.Intersect(bg, rays, scene.All)
		require.NoError(t, err)
		for _, c := range []struct {
			mesh scene.Mesh
			hits *scene.Hits
		}{{m, before}, {next, after}} {
			fresh := newScene(t, rig.Driver, ordinals(rig, 1), Options{})
			build(t, fresh, c.mesh)
			require.Equal(t, answer(t, fresh, b, scene.All), download(t, s.Stream(), c.hits), "round %d", round)
			require.NoError(t, c.hits.Close())
		}
		m = next
	}
	require.Equal(t, int64(9), s.Version())
	require.NoError(t, s.Sync(bg))
	require.Equal(t, int64(9), s.Version(), "Sync without updates changes nothing")
}

func TestNotReadyAndClosed(t *testing.T) {
	drv, _, _ := emulator(t, 2)
	s, err := New(drv, []int{0, 1}, anyFloor())
	require.NoError(t, err)
	_, err = s.Intersect(bg, scene.Rays{}, scene.All)
	require.ErrorIs(t, err, scene.ErrNotReady)
	require.Equal(t, scene.ErrNoMesh, s.Build(bg), "of no device")
	rng := rand.New(rand.NewPCG(1, 3))
	build(t, s, soup(rng, 3))
	require.True(t, s.IsReady())
	_, err = s.AddMesh(soup(rng, 3))
	require.NoError(t, err)
	require.False(t, s.IsReady())
	require.NoError(t, s.Build(bg))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.False(t, s.IsReady())
	_, err = s.Intersect(bg, scene.Rays{}, scene.All)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.Build(bg), ErrClosed)
	require.ErrorIs(t, s.Build(bg), cuda.ErrClosed)
	require.ErrorIs(t, s.Sync(bg), ErrClosed)
	_, err = s.AddMesh(scene.Mesh{})
	require.ErrorIs(t, err, ErrClosed)
}

// Inputs on a remote device are refused for every kind of dispatch, and the
// scene stays usable.
func TestMultiSmokeForeignInputs(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	rng := rand.New(rand.NewPCG(4, 3))
	s := newScene(t, rig.Driver, ordinals(rig, 2), anyFloor())
	build(t, s, soup(rng, 20))
	b := randomBatch(rng, 50)
	b.tmax, b.active = nil, nil
	want := answer(t, s, b, scene.All)
	other := rig.Context(t, 1)
	st, err := other.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	home, freeHome := b.rays(t, s.Stream())
	defer freeHome()
	away, freeAway := b.rays(t, st)
	defer freeAway()
	bound, err := away.O.Sub(0, 50)
	require.NoError(t, err)
	for _, w := range [][]float64{{1, 1}, {1, 0}} {
		s.opts.Weights = w
		for name, rays := range map[string]scene.Rays{"origins": {O: away.O, D: home.D}, "directions": {O: home.O, D: away.D}, "TMax": {O: home.O, D: home.D, TMax: bound}} {
			_, err := s.Intersect(bg, rays, scene.All)
			require.ErrorIs(t, err, cuda.ErrWrongDevice, name)
		}
		_, err = s.Intersect(bg, home, scene.All, scene.OnStream(st))
		require.Error(t, err, "a stream of the other device")
	}
	require.Equal(t, want, answer(t, s, b, scene.All))
}

// A replica that fails in Build or Sync makes the set diverged until Build; a
// refused argument does not.
func TestMultiResilienceDiverged(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	fault := wrap.NewFault(e)
	drv, err := cuda.OpenAPI(fault)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drv.Close()) })
	s := newScene(t, drv, []int{0, 1}, anyFloor())
	rng := rand.New(rand.NewPCG(6, 6))
	m := soup(rng, 20)
	build(t, s, m)
	b := randomBatch(rng, 40)
	want := answer(t, s, b, scene.All)
	require.Error(t, s.UpdateMeshVertices(7, m.Vertices))
	require.Error(t, s.SetEdgeMask(make([]bool, 1)))
	require.Equal(t, want, answer(t, s, b, scene.All))

	for name, mutate := range map[string]func() error{
		"Build": func() error { return s.Build(bg) },
		"Sync": func() error {
			require.NoError(t, s.UpdateMeshVertices(0, m.Vertices))
			return s.Sync(bg)
		},
	} {
		fault.FailDevice(1, 1, cuapi.ErrorOutOfMemory)
		fault.FailDevice(1, 2, cuapi.ErrorOutOfMemory)
		fault.FailDevice(1, 3, cuapi.ErrorOutOfMemory)
		err := mutate()
		fault.Reset()
		require.ErrorIs(t, err, ErrDiverged, name)
		var de *DeviceError
		require.ErrorAs(t, err, &de)
		require.Equal(t, 1, de.Position)
		require.False(t, s.IsReady())
		_, err = s.Intersect(bg, scene.Rays{}, scene.All)
		require.ErrorIs(t, err, ErrDiverged)
		require.Contains(t, err.Error(), "call Build")
		require.NoError(t, s.Build(bg))
		require.Equal(t, want, answer(t, s, b, scene.All), name)
	}
}

// A remote device that dies during a call is named, the call returns, and
// the master can still be closed.
func TestMultiResilienceLostRemote(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	drv, err := cuda.OpenAPI(e)
	require.NoError(t, err)
	s, err := New(drv, []int{0, 1}, anyFloor())
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(8, 6))
	build(t, s, soup(rng, 20))
	rays, _ := randomBatch(rng, 40).rays(t, s.Stream())
	e.KillDevice(1)
	begin := time.Now()
	var lost error
	for range 3 { // the loss shows at the latest in the second call
		var h *scene.Hits
		if h, err = s.Intersect(bg, rays, scene.All); err != nil {
			lost = err
			break
		}
		require.NoError(t, h.Close())
	}
	require.Error(t, lost)
	require.Less(t, time.Since(begin), 2*time.Second)
	var de *DeviceError
	require.True(t, errors.As(lost, &de), "%v", lost)
	require.Equal(t, 1, de.Device)
	require.ErrorIs(t, lost, cuda.ErrDeviceLost)
	s.Close()
}

// 16 goroutines query, and one updates, the same set.
func TestMultiStressConcurrentUse(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	rng := rand.New(rand.NewPCG(10, 6))
	s := newScene(t, rig.Driver, ordinals(rig, 2), anyFloor())
	m := soup(rng, 30)
	build(t, s, m)
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	b := randomBatch(rng, 100)
	b.tmax, b.active = nil, nil
	want := answer(t, s, b, scene.All)
	var wg sync.WaitGroup
	for range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range rounds {
				if got := answer(t, s, b, scene.All); !equal(want, got) {
					t.Error("a concurrent query got other bits")
				}
			}
		}()
	}
	for range rounds {
		require.NoError(t, s.UpdateMeshVertices(0, m.Vertices)) // the same vertices: answers stay
		require.NoError(t, s.Sync(bg))
	}
	wg.Wait()
}

func equal(a, b words) bool {
	for i := range a {
		if len(a[i]) != len(b[i]) {
			return false
		}
		for j := range a[i] {
			if a[i][j] != b[i][j] {
				return false
			}
		}
	}
	return true
}

func TestTurn(t *testing.T) {
	var q turn
	first, err := q.take(bg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(bg)
	gave := make(chan error)
	go func() { _, err := q.take(ctx); gave <- err }()
	why := errors.New("no patience")
	time.Sleep(10 * time.Millisecond)
	cancel(why)
	require.ErrorIs(t, <-gave, why)
	got := make(chan func())
	go func() {
		done, err := q.take(bg)
		require.NoError(t, err)
		got <- done
	}()
	select {
	case <-got:
		t.Fatal("two calls have the turn")
	case <-time.After(10 * time.Millisecond):
	}
	first()
	(<-got)()
}

func TestCancelledBeforeSubmission(t *testing.T) {
	drv, _, _ := emulator(t, 2)
	s := newScene(t, drv, []int{0, 1}, anyFloor())
	rng := rand.New(rand.NewPCG(2, 6))
	build(t, s, soup(rng, 5))
	rays, free := randomBatch(rng, 40).rays(t, s.Stream())
	defer free()
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err := s.Intersect(ctx, rays, scene.All)
	require.ErrorIs(t, err, context.Canceled)
}

// Every driver call of Intersect that fails is reported, leaves nothing
// behind, and the next call works.
func TestMultiResilienceIntersectFailsCleanly(t *testing.T) {
	for _, tr := range []chunked.Transport{chunked.Direct, chunked.Copy} {
		t.Run(tr.String(), func(t *testing.T) {
			e, err := emu.New(2)
			require.NoError(t, err)
			ledger := wrap.NewLedger(e)
			fault := wrap.NewFault(ledger)
			drv, err := cuda.OpenAPI(fault)
			require.NoError(t, err)
			s, err := New(drv, []int{0, 1}, anyFloor())
			require.NoError(t, err)
			s.transport = tr
			rng := rand.New(rand.NewPCG(12, 6))
			build(t, s, soup(rng, 20))
			b := randomBatch(rng, 60)
			want := answer(t, s, b, scene.All)
			rays, free := b.rays(t, s.Stream())
			failed := 0
			for k := 1; ; k++ {
				fault.FailAt(k, cuapi.ErrorInvalidValue)
				h, err := s.Intersect(bg, rays, scene.All)
				fired := fault.Fired() > 0
				fault.Reset()
				if err == nil {
					require.NoError(t, h.Close())
				} else {
					failed++
				}
				if errors.Is(err, ErrDiverged) {
					require.NoError(t, s.Build(bg))
				}
				require.Equal(t, want, answer(t, s, b, scene.All), "after call %d failed: %v", k, err)
				if !fired {
					break
				}
			}
			require.Greater(t, failed, 5)
			free()
			require.NoError(t, s.Close())
			require.NoError(t, drv.Close())
			require.NoError(t, ledger.Check())
		})
	}
}

// What can be read back is the master's, and equal to the plain scene's.
func TestReadBack(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	rng := rand.New(rand.NewPCG(3, 14))
	m := soup(rng, 12)
	s := newScene(t, rig.Driver, ordinals(rig, 2), anyFloor())
	build(t, s, m)
	plain := newScene(t, rig.Driver, ordinals(rig, 1), Options{})
	build(t, plain, m)
	want, err := plain.GlobalGeometry(bg)
	require.NoError(t, err)
	have, err := s.GlobalGeometry(bg)
	require.NoError(t, err)
	require.Equal(t, want, have)
	require.Equal(t, m.Vertices, have.Vertices)
	edges, err := s.EdgeRecords(bg)
	require.NoError(t, err)
	require.Len(t, edges.V0, s.NumEdges())
	mask, err := s.EdgeMask()
	require.NoError(t, err)
	require.Len(t, mask, s.NumEdges())
	require.NotContains(t, mask, false)
	lo, hi := s.Bounds()
	for k := range 3 {
		require.LessOrEqual(t, lo[k], hi[k])
	}
	require.Equal(t, []int{1, 1}, []int{s.NumShapes(), s.NumMeshes()})
	require.Equal(t, scene.CUDA, s.Backend())
	require.NotEmpty(t, s.BackendReason())

	moved, err := cuda.Upload(bg, s.Stream(), m.Vertices)
	require.NoError(t, err)
	require.NoError(t, s.UpdateMeshVerticesDevice(bg, 0, moved))
	require.NoError(t, s.Sync(bg))
	require.NoError(t, cuda.Free(moved))
	require.Equal(t, int64(2), s.GeometryVersion())
	require.NoError(t, (*Scene)(nil).Close())
}
