package multi

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// keptSet is a set without a floor, with states and materials.
func keptSet(t *testing.T, drv *cuda.Driver, devices []int) (*Scene, radioTables) {
	t.Helper()
	s := quick(t, drv, devices, Options{Options: chunked.Options{MinLanesPerDevice: 1}})
	m := room(rngOf(140))
	build(t, s, m)
	faces := len(m.Faces) / 3
	tables := newTables(t, s, wedgeStates(rngOf(141), 2, faces), faces)
	t.Cleanup(func() { tables.close(t) })
	return s, tables
}

// cellsOf is a grid of n x n cells.
func cellsOf(n int32) scene.Grid {
	g := floorPlan
	g.Res0, g.Res1 = n, n
	return g
}

// What a divided call costs in driver calls, once everything exists: a launch per device,
// and one for the result where that is not in the last of these, and per remote the edge to
// the master; the context is changed to that of each device in turn, and back once. Each of them is host time
// during which the devices wait; whoever adds one has to say here why.
func TestMultiGridDriverCalls(t *testing.T) {
	for _, devices := range []int{2, 3} {
		n := int64(devices)
		rig, trace := traced(t, devices)
		s, tables := keptSet(t, rig.Driver, ordinals(rig, devices))
		active := upload(t, s.Stream(), []uint8{1, 1})
		defer func() { require.NoError(t, cuda.Free(active)) }()
		for _, c := range []struct {
			name   string
			cells  int32
			active cuda.Slice[uint8]
			budget int64
			want   map[string]int64
		}{
			{"small", 4, cuda.Slice[uint8]{}, 0, map[string]int64{
				"LaunchKernel": n, "StreamWaitEvent": n - 1, "EventRecord": n, "CtxGetCurrent": 1, "CtxSetCurrent": n + 1,
			}},
			// Accumulators are summed, in the launch that reads the result out.
			{"of more cells than devices join", 17, cuda.Slice[uint8]{}, 0, map[string]int64{
				"LaunchKernel": n + 1, "StreamWaitEvent": n - 1, "EventRecord": n, "CtxGetCurrent": 1, "CtxSetCurrent": n + 1,
			}},
			// It is not read out in that launch.
			{"of more cells than one launch reads out", 65, cuda.Slice[uint8]{}, 0, map[string]int64{
				"LaunchKernel": n + 2, "StreamWaitEvent": n - 1, "EventRecord": n, "CtxGetCurrent": 1, "CtxSetCurrent": n + 1,
			}},
			// Remotes wait for inputs that the caller's stream writes.
			{"with inputs", 4, active, 0, map[string]int64{
				"LaunchKernel": n, "StreamWaitEvent": 2 * (n - 1), "EventRecord": n + 1, "CtxGetCurrent": 1, "CtxSetCurrent": n + 2,
			}},
			// Accumulators are leased, set to zero and given back behind what reads them.
			{"large", 80, cuda.Slice[uint8]{}, 0, map[string]int64{
				"LaunchKernel": n + 2, "MemsetD32Async": n, "StreamWaitEvent": 2 * (n - 1), "EventRecord": 2*n - 1, "CtxGetCurrent": 3*n - 1, "CtxSetCurrent": 5*n - 3,
			}},
			{"with a budget", 4, cuda.Slice[uint8]{}, 1 << 20, map[string]int64{
				"LaunchKernel": n + 1, "MemsetD32Async": n, "StreamWaitEvent": 2 * (n - 1), "EventRecord": 2*n - 1, "CtxGetCurrent": 3*n - 1, "CtxSetCurrent": 5*n - 3,
			}},
		} {
			s.opts.MemoryBudget = c.budget
			var r *scene.DfrAccum
			call := func() {
				var err error
				r, err = s.AccumDfrDirect(bg, tables.states, cellsOf(c.cells), scene.DfrDirectOptions{
					Wavelength: 1, DirectSamples: 64, Materials: tables.materials, Active: c.active, AllowPartialCoverage: true,
				}, scene.Into(r))
				require.NoError(t, err)
			}
			call()
			call() // the first one makes what is missing
			trace.Reset()
			call()
			counts := trace.Counts()
			if gputest.Native() {
				delete(counts, "CtxGetCurrent") // depends on what the thread did before
				delete(counts, "CtxSetCurrent")
				delete(c.want, "CtxGetCurrent")
				delete(c.want, "CtxSetCurrent")
			}
			require.Equal(t, c.want, counts, "%s, %d devices", c.name, devices)
			require.NoError(t, r.Close())
		}
	}
}

// Rays cost the same, and the caller's stream an edge to each remote and the fill of counters: the
// launch that reads the result sums accumulators of any size.
func TestMultiReflectionsDriverCalls(t *testing.T) {
	for _, devices := range []int{2, 3} {
		n := int64(devices)
		rig, trace := traced(t, devices)
		s, tables := keptSet(t, rig.Driver, ordinals(rig, devices))
		o := upload(t, s.Stream(), make([]float32, 3*64))
		defer func() { require.NoError(t, cuda.Free(o)) }()
		for _, c := range []struct {
			name  string
			cells int32
			want  map[string]int64
		}{
			{"small", 40, map[string]int64{"LaunchKernel": n + 1, "MemsetD32Async": 1, "StreamWaitEvent": 2 * (n - 1), "EventRecord": n + 1}},
			// Accumulators are leased, set to zero and given back behind what reads them.
			{"large", 80, map[string]int64{"LaunchKernel": n + 1, "MemsetD32Async": n + 1, "StreamWaitEvent": 3 * (n - 1), "EventRecord": 2 * n}},
		} {
			var r *scene.ReflGrids
			call := func() {
				var err error
				r, err = s.AccumulateReflections(bg, scene.Rays{O: o, D: o}, cellsOf(c.cells), scene.ReflGridOptions{
					Wavelength: 1, SolidAnglePerRay: .1, MaxBounces: 1, Materials: tables.materials, TxPosition: o,
				}, scene.Into(r))
				require.NoError(t, err)
			}
			call()
			call() // the first one makes what is missing
			trace.Reset()
			call()
			counts := trace.Counts()
			delete(counts, "CtxGetCurrent") // as for other accumulations
			delete(counts, "CtxSetCurrent")
			require.Equal(t, c.want, counts, "%s, %d devices", c.name, devices)
			require.NoError(t, r.Close())
		}
	}
}

// Calls follow each other on several streams of the caller, in pieces of what devices keep.
// Whoever uses a piece again is behind the launches that used it before, and a remote waits for
// nothing as long as there are others, also after a call that failed. Where all add to the
// piece of the master, they are behind what set it to zero.
func TestMultiGridLapsAreInOrder(t *testing.T) {
	const devices = 3
	e, err := emu.New(devices)
	require.NoError(t, err)
	p := &precedence{API: e}
	p.clear()
	drv, err := cuda.OpenAPI(p)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drv.Close()) })
	s, tables := keptSet(t, drv, upToDevices(devices))
	streams := []*cuda.Stream{s.Stream()}
	for range 2 {
		st, err := s.Context().NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		streams = append(streams, st)
	}
	call := func(st *cuda.Stream, cells int32) *scene.DfrAccum {
		r, err := s.AccumDfrDirect(bg, tables.states, cellsOf(cells), scene.DfrDirectOptions{
			Wavelength: 1, DirectSamples: 2 * int64(cells*cells), Materials: tables.materials,
		}, scene.OnStream(st))
		require.NoError(t, err)
		return r
	}
	want := map[int32]map[string][]byte{}
	sizes := []int32{4, 40, 60} // whose accumulators are of 808, 76840 and 172840 bytes
	for _, n := range sizes {
		r, err := s.Master().AccumDfrDirect(bg, tables.states, cellsOf(n), scene.DfrDirectOptions{
			Wavelength: 1, DirectSamples: 2 * int64(n*n), Materials: tables.materials,
		})
		require.NoError(t, err)
		want[n] = bytesOf(t, s.Stream(), r)
		require.NoError(t, r.Close())
	}
	require.NoError(t, call(s.Stream(), 4).Close()) // loads kernels, fills memory
	require.NoError(t, s.Stream().Synchronize(bg))
	rng := rngOf(142)
	type piece struct{ begin, end, first, last int } // and the launches that used it, the last on the caller's stream
	var used []piece
	waited, free, zeroed, laps := 0, 0, 0, s.master().exchange.lap
	zero := 0 // of the lap
	p.clear()
	for k := range 40 {
		n := sizes[rng.IntN(len(sizes))]
		st := streams[rng.IntN(len(streams))]
		if k%8 == 3 { // fails between two devices
			before := len(p.launches)
			for at := 1; len(p.launches) == before; at++ {
				_, err := s.AccumDfrDirect(newEndsAt(at), tables.states, cellsOf(4), scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 64}, scene.OnStream(st))
				require.ErrorIs(t, err, context.Canceled)
			}
		}
		first, fills, lap := len(p.launches), p.fills, s.master().exchange.lap
		r := call(st, n)
		last := first + devices - 1
		if joins := n == 4; !joins {
			last++
		} else if zero != 0 {
			zeroed++
		}
		require.Len(t, p.launches, last+1, "call %d", k)
		of := p.launches[first:]
		for i := range devices {
			require.Contains(t, p.streams[of[last-first].on], first+i, "the result of call %d is that of device %d, too", k, i)
		}
		if s.master().exchange.lap != lap {
			zero = -fills - 1 // the master is the first
		}
		size := int(aligned(48*int64(n*n) + 40))
		own := piece{int(s.master().exchange.at) - size, int(s.master().exchange.at), first, last}
		for i := range devices { // the remotes first, then the master
			if n == 4 && zero != 0 {
				require.Contains(t, of[i].behind, zero, "call %d, device %d", k, i)
			}
			for _, before := range used {
				if before.begin < own.end && before.end > own.begin {
					for launch := before.first; launch <= before.last; launch++ {
						require.Contains(t, of[i].behind, launch, "call %d, device %d", k, i)
					}
					waited++
				} else if i < devices-1 && k < 7 && s.master().exchange.lap == laps {
					require.NotContains(t, of[i].behind, before.last, "call %d, device %d: nobody has been there yet", k, i)
					free++
				}
			}
		}
		used = append(used, own)
		require.Equal(t, want[n], bytesOf(t, st, r), "call %d", k)
		require.NoError(t, r.Close())
	}
	require.Greater(t, s.master().exchange.lap, laps+2)
	require.Positive(t, waited)
	require.Positive(t, free)
	require.Positive(t, zeroed)
}

// What a remote keeps is given back when the master has read it, however late that is.
func TestMultiGridKeptIsReadBeforeItGoes(t *testing.T) {
	drv, _, _ := emulator(t, 2)
	s, tables := keptSet(t, drv, []int{0, 1})
	var frees []func() error
	up := uploads{t, s.Stream(), &frees}
	heavy, other := column(up, make([]float32, 1<<22)), column(up, make([]float32, 1<<22))
	for range 30 {
		require.NoError(t, cuda.CopyAsync(s.Stream(), heavy, other))
	}
	r, err := s.AccumDfrDirect(bg, tables.states, cellsOf(8), scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 128, Materials: tables.materials})
	require.NoError(t, err)
	remote := s.replicas[1]
	require.NoError(t, remote.exchange.close(remote))
	remote.exchange = nil
	next, err := cuda.Alloc[uint8](remote.ctx, keptLap) // the same memory
	require.NoError(t, err)
	require.NoError(t, cuda.Fill8(remote.stream, next, 0xEE))
	require.NoError(t, remote.stream.Synchronize(bg))
	got := bytesOf(t, s.Stream(), r)
	require.NoError(t, r.Close())
	r, err = s.Master().AccumDfrDirect(bg, tables.states, cellsOf(8), scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 128, Materials: tables.materials})
	require.NoError(t, err)
	require.Equal(t, bytesOf(t, s.Stream(), r), got)
	require.NoError(t, r.Close())
	require.NoError(t, cuda.Free(next))
	for _, free := range frees {
		require.NoError(t, free())
	}
}
