package multi

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
)

// occupier makes a stream busy for much longer than a small call takes.
func occupier(t *testing.T, st *cuda.Stream) func() {
	t.Helper()
	from, err := cuda.Alloc[float32](st.Context(), 1<<20)
	require.NoError(t, err)
	to, err := cuda.Alloc[float32](st.Context(), 1<<20)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, st.Synchronize(bg))
		require.NoError(t, cuda.Free(from))
		require.NoError(t, cuda.Free(to))
	})
	return func() {
		t.Helper()
		for range 30 {
			require.NoError(t, cuda.CopyAsync(st, to, from))
		}
	}
}

// requireIdle requires that a stream has done everything.
func requireIdle(t *testing.T, st *cuda.Stream, what string) {
	t.Helper()
	idle, err := st.Query()
	require.NoError(t, err)
	require.True(t, idle, what)
}

// endingGrid is a set of two devices whose driver calls are counted and can be made to fail.
func endingGrid(t *testing.T) (*Scene, radioTables, *precedence, *wrap.Fault) {
	t.Helper()
	e, err := emu.New(2)
	require.NoError(t, err)
	p := &precedence{API: e}
	p.clear()
	fault := wrap.NewFault(p)
	drv, err := cuda.OpenAPI(fault)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drv.Close()) })
	s, tables := keptSet(t, drv, []int{0, 1})
	r, err := smallGrid(bg, s, tables) // loads kernels, fills memory
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, s.Stream().Synchronize(bg))
	return s, tables, p, fault
}

func smallGrid(ctx context.Context, s *Scene, tables radioTables, opts ...scene.CallOption) (*scene.DfrAccum, error) {
	return s.AccumDfrDirect(ctx, tables.states, cellsOf(4), scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 64, Materials: tables.materials}, opts...)
}

// A call that fails before remotes know that memory of the master is zero leaves nothing to the
// next one, which sets it to zero again.
func TestMultiGridZeroIsKnownToRemotes(t *testing.T) {
	s, tables, p, fault := endingGrid(t)
	s.master().exchange.at = keptLap // the next call turns
	fills := p.fills
	require.NoError(t, fault.FailCall("EventRecord", 1, cuapi.ErrorInvalidValue))
	_, err := smallGrid(bg, s, tables)
	require.ErrorIs(t, err, cuapi.ErrorInvalidValue)
	fault.Reset()
	require.Equal(t, fills+1, p.fills)
	first := len(p.launches)
	r, err := smallGrid(bg, s, tables)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, fills+3, p.fills, "the master's once more, and the remote's")
	require.Contains(t, p.launches[first].behind, -fills-2, "the launch of the remote")
}

// When a call fails that a remote has begun, the host waits for the remote. When it is
// cancelled it does not, but the caller's stream comes behind the remote all the same.
func TestMultiGridFailuresWaitForRemotes(t *testing.T) {
	s, tables, p, fault := endingGrid(t)
	remote := s.replicas[1].stream
	occupy := occupier(t, remote)

	occupy()
	require.NoError(t, fault.FailCall("LaunchKernel", 2, cuapi.ErrorInvalidValue)) // that of the master
	_, err := smallGrid(bg, s, tables)
	require.ErrorIs(t, err, cuapi.ErrorInvalidValue)
	fault.Reset()
	requireIdle(t, remote, "a call that failed")

	at := 0
	for p.clear(); len(p.launches) == 0; {
		at++
		_, err := smallGrid(newEndsAt(at), s, tables)
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Len(t, p.launches, 1, "of the remote alone")
	require.NoError(t, s.Stream().Synchronize(bg))
	occupy()
	_, err = smallGrid(newEndsAt(at), s, tables)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Stream().Synchronize(bg))
	requireIdle(t, remote, "a call that was cancelled")
}

// Where the end of a call cannot be marked, nobody can come behind it: the host waits.
func TestMultiGridWaitsForAnUnmarkedEnd(t *testing.T) {
	s, tables, _, fault := endingGrid(t)
	r, err := smallGrid(bg, s, tables)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	occupier(t, s.Stream())()
	require.NoError(t, fault.FailCall("EventRecord", 2, cuapi.ErrorInvalidValue)) // the first is that of the remote
	_, err = smallGrid(bg, s, tables, scene.Into(r))                              // whose memory is not given back behind it
	require.ErrorIs(t, err, cuapi.ErrorInvalidValue)
	fault.Reset()
	requireIdle(t, s.Stream(), "which adds what remotes keep")
}

// Inputs that the caller's stream has not written when it makes a call have reached every
// remote when it reads them, by every transport.
func TestMultiGridInputsAreLate(t *testing.T) {
	drv, _, _ := emulator(t, 2)
	s, tables := keptSet(t, drv, []int{0, 1})
	own := s.Stream()
	in, free := newRadioInputs(t, rngOf(143), own, 24, 2)
	defer free()
	late := upload(t, own, make([]float32, 72))
	defer func() { require.NoError(t, cuda.Free(late)) }()
	occupy := occupier(t, own)
	ask := func(d cuda.Slice[float32]) map[string][]byte {
		r, err := s.AccumulateReflections(bg, scene.Rays{O: in.rays.O, D: d}, floorPlan, scene.ReflGridOptions{
			Wavelength: .1, SolidAnglePerRay: .01, MaxBounces: 3, Materials: tables.materials, TxPosition: in.tx, IncludeLOS: true,
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		return bytesOf(t, own, r)
	}
	s.opts.MinRaysPerDevice = 1
	for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
		want := ask(in.rays.D)
		require.NotEqual(t, want, ask(late), "%v: rays without a direction", s.transport)
		occupy()
		require.NoError(t, cuda.CopyAsync(own, late, in.rays.D))
		require.Equal(t, want, ask(late), "%v", s.transport)
		require.NoError(t, cuda.Fill32(own, late, 0))
	}
}
