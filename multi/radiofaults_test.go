package multi

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
)

// brokenGrid is a set whose driver calls can be made to fail, with inputs for accumulations.
type brokenGrid struct {
	*Scene
	ledger *wrap.Ledger
	fault  *wrap.Fault
	drv    *cuda.Driver
	faces  int
	states scene.DfrStates
	tables radioTables
	all    []accumulation
	want   []map[string][]byte
	free   func()
}

func newBrokenGrid(t testing.TB) *brokenGrid {
	t.Helper()
	e, err := emu.New(2)
	require.NoError(t, err)
	x := &brokenGrid{ledger: wrap.NewLedger(e)}
	x.fault = wrap.NewFault(x.ledger)
	x.drv, err = cuda.OpenAPI(x.fault)
	require.NoError(t, err)
	rng := rngOf(96)
	x.Scene, err = create(x.drv, []int{0, 1}, Options{Options: chunked.Options{MinRaysPerDevice: 1, MinLanesPerDevice: 1}}, 16)
	require.NoError(t, err)
	m := room(rng)
	build(t, x, m)
	x.faces = len(m.Faces) / 3
	x.states = wedgeStates(rng, 2, x.faces)
	x.tables = newTables(t, x.Scene, x.states, x.faces)
	in, free := newRadioInputs(t, rng, x.Stream(), 6, 2)
	x.all, x.free = accumulations(in, 6, 16), free
	for _, a := range x.all {
		x.want = append(x.want, a.answer(t, x.Scene, x.tables, nil))
	}
	return x
}

func (x *brokenGrid) close(t testing.TB) {
	t.Helper()
	x.tables.close(t)
	x.free()
	require.NoError(t, x.Close())
	require.NoError(t, x.drv.Close())
	require.NoError(t, x.ledger.Check())
}

// requireCleared requires that there are no lanes in what devices keep for later calls.
func (x *brokenGrid) requireCleared(t testing.TB, what string) {
	t.Helper()
	m := x.master().exchange
	for k, r := range x.replicas {
		if r.exchange.cleared != m.lap {
			continue // which the next call clears
		}
		const reach = 1 << 16 // several times what a call of these tests takes
		ahead, err := r.exchange.sums.Sub(int(m.at), min(int(m.at)+reach, keptLap))
		require.NoError(t, err)
		kept, err := cuda.Download(bg, r.scene.Stream(), ahead)
		require.NoError(t, err)
		require.Empty(t, bytes.Trim(kept, "\x00"), "%s: device %d", what, k)
	}
}

// Whatever call of whichever device fails during an accumulation, the first error is kept
// and names the device, nothing is left behind, and the set works on.
func TestMultiGridFaults(t *testing.T) {
	x := newBrokenGrid(t)
	failed := map[string]int{}
	for i, a := range x.all {
		if a.name == "keller" || a.name == "coherent words" {
			continue // the calls of others
		}
		for _, x.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
			x.opts.ChunkRays = int64(i) // with and without
			for device := range 2 {
				for k := 1; ; k++ {
					what := fmt.Sprintf("%s, %v, device %d, call %d", a.name, x.transport, device, k)
					before := poolUse(x.Scene)
					x.fault.FailDevice(cuapi.Device(device), k, cuapi.ErrorInvalidValue)
					r, err := a.ask(bg, x.Scene, x.tables, nil)
					fired := x.fault.Fired() > 0
					x.fault.Reset()
					if err == nil {
						_ = r.Close() // which may have met the failure
					} else {
						require.True(t, fired, "%s: %v", what, err)
						require.ErrorIs(t, err, cuapi.ErrorInvalidValue, what)
						failed[fmt.Sprint(a.name, x.transport, device)]++
					}
					require.Equal(t, before, poolUse(x.Scene), what)
					require.True(t, x.IsReady(), what)
					x.requireCleared(t, what)
					if !fired {
						break
					}
				}
			}
			require.Equal(t, x.want[i], a.answer(t, x.Scene, x.tables, nil), "%s, %v", a.name, x.transport)
		}
	}
	require.Len(t, failed, 4*3*2, "every operation fails on both devices by every transport")
	x.close(t)
}

// A lap begins with a call that fails before a device has cleared what it keeps, or in which
// the master has no lanes: a later call of the lap clears it.
func TestMultiGridLapBeginsWithout(t *testing.T) {
	x := newBrokenGrid(t)
	a, m := x.all[0], x.master().exchange
	works := func(what string) {
		for range 4 {
			require.Equal(t, x.want[0], a.answer(t, x.Scene, x.tables, nil), what)
			x.requireCleared(t, what)
		}
		for _, r := range x.replicas {
			require.Equal(t, m.lap, r.exchange.cleared, what)
		}
		m.at = keptLap
	}
	works("full of lanes")
	x.opts.Weights = []float64{0, 1}
	require.Equal(t, x.want[0], a.answer(t, x.Scene, x.tables, nil))
	x.opts.Weights = nil
	works("a master without lanes")
	for k := 1; ; k++ {
		ctx, before := newEndsAt(k), m.lap
		r, err := a.ask(ctx, x.Scene, x.tables, nil)
		if err == nil {
			require.NoError(t, r.Close())
			break
		}
		if m.lap > before {
			works(fmt.Sprintf("cancelled at %d", k))
		}
	}
	for device := range 2 {
		for k := 1; ; k++ {
			m.at = keptLap
			x.fault.FailDevice(cuapi.Device(device), k, cuapi.ErrorInvalidValue)
			r, err := a.ask(bg, x.Scene, x.tables, nil)
			fired := x.fault.Fired() > 0
			x.fault.Reset()
			if err == nil {
				require.NoError(t, r.Close())
			}
			if !fired {
				break
			}
			works(fmt.Sprintf("call %d of device %d failed", k, device))
		}
	}
	x.close(t)
}

// A device that is lost during an accumulation is named, with the lanes that it had.
func TestMultiGridLosesADevice(t *testing.T) {
	x := newBrokenGrid(t)
	a := x.all[0]
	require.NoError(t, x.fault.FailCall("LaunchKernel", 1, cuapi.ErrorLaunchFailed)) // remotes come first
	_, err := a.ask(bg, x.Scene, x.tables, nil)
	require.ErrorIs(t, err, cuda.ErrDeviceLost)
	var at *DeviceError
	require.ErrorAs(t, err, &at)
	require.Equal(t, 1, at.Position)
	require.Equal(t, chunked.Range{Begin: 8, End: 16}, at.Chunk)
	x.fault.Reset()
	_, err = a.ask(bg, x.Scene, x.tables, nil)
	require.ErrorIs(t, err, cuda.ErrDeviceLost)
	x.tables.close(t) // which have a copy on the device
	rest, err := x.RebuildWithout(bg, 1)
	require.NoError(t, err)
	x.tables = newTables(t, rest, x.states, x.faces)
	require.Equal(t, x.want[0], a.answer(t, rest, x.tables, nil))
	x.tables.close(t)
	x.free()
	require.NoError(t, rest.Close())
}

// A table that is open when a device leaves the set is named, and the rest works with new ones.
func TestMultiRebuildNamesOpenTables(t *testing.T) {
	rng := rngOf(115)
	drv, _, _ := emulator(t, 2)
	s, err := create(drv, []int{0, 1}, anyFloor(), 64)
	require.NoError(t, err)
	m := room(rng)
	faces := len(m.Faces) / 3
	build(t, s, m)
	open := newTables(t, s, wedgeStates(rng, 3, faces), faces)
	rest, err := s.RebuildWithout(bg, 1)
	var leak *cuda.LeakError
	require.ErrorAs(t, err, &leak)
	require.ErrorContains(t, err, "device 1")
	require.NotNil(t, rest)
	require.Equal(t, []int{0}, rest.Devices())
	open.close(t)
	again := newTables(t, rest, wedgeStates(rng, 3, faces), faces)
	again.close(t)
	require.NoError(t, rest.Close())
}
