package multi

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
)

// joinedCall is an accumulation that devices join.
func joinedCall(t *testing.T, s *Scene, tables radioTables, alone bool) *scene.DfrAccum {
	t.Helper()
	o := scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 4 * 1024, Seed: 3, Materials: tables.materials, KeepWords: true}
	accumulate := s.AccumDfrDirect
	if alone {
		accumulate = s.Master().AccumDfrDirect
	}
	r, err := accumulate(bg, tables.states, cellsOf(4), o)
	require.NoError(t, err)
	return r
}

// Whichever device is the last one, the result is there when the caller's stream has run, and has
// the words, sums and counters of one device.
func TestMultiGridJoinedByTheLast(t *testing.T) {
	for _, devices := range []int{2, 3} {
		drv, _, _ := emulator(t, devices)
		s, tables := keptSet(t, drv, upToDevices(devices))
		r := joinedCall(t, s, tables, true)
		want := bytesOf(t, s.Stream(), r)
		require.NoError(t, r.Close())
		for k := range devices {
			st := s.replicas[k].stream
			if k == 0 {
				st = s.Stream()
			}
			occupier(t, st)()
			r := joinedCall(t, s, tables, false)
			require.Equal(t, want, bytesOf(t, s.Stream(), r), "device %d of %d is the last one", k, devices)
			require.NoError(t, r.Close())
		}
	}
}

// withoutAtomics is a driver that offers none on memory of other devices.
type withoutAtomics struct{ cuapi.API }

func (w withoutAtomics) DeviceGetP2PAttribute(a cuapi.P2PAttribute, src, dst cuapi.Device) (int, cuapi.Result) {
	v, r := w.API.DeviceGetP2PAttribute(a, src, dst)
	if a == cuapi.P2PNativeAtomicSupported {
		v = 0
	}
	return v, r
}

// Without atomic operations over the link every device has an accumulator of its own, which
// the master sums with one launch more.
func TestMultiGridWithoutPeerAtomics(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	trace := wrap.NewTrace(withoutAtomics{e})
	drv, err := cuda.OpenAPI(trace)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drv.Close()) })
	s, tables := keptSet(t, drv, []int{0, 1})
	for _, l := range s.links {
		require.True(t, l.OK())
		require.False(t, l.Atomics)
	}
	r := joinedCall(t, s, tables, true)
	want := bytesOf(t, s.Stream(), r)
	require.NoError(t, r.Close())
	trace.Reset()
	r = joinedCall(t, s, tables, false)
	require.EqualValues(t, 3, trace.Counts()["LaunchKernel"])
	require.Equal(t, want, bytesOf(t, s.Stream(), r))
	require.NoError(t, r.Close())
}

// Shares of any size join, and so do several launches of one device.
func TestMultiGridJoinsAnyShares(t *testing.T) {
	drv, _, _ := emulator(t, 3)
	s, tables := keptSet(t, drv, []int{0, 1, 2})
	r := joinedCall(t, s, tables, true)
	want := bytesOf(t, s.Stream(), r)
	require.NoError(t, r.Close())
	rng := rand.New(rand.NewPCG(31, 32))
	for range 20 {
		s.opts.Weights = []float64{rng.Float64(), rng.Float64(), rng.Float64()}
		s.opts.ChunkRays = 0
		if rng.IntN(2) == 0 {
			s.opts.ChunkRays = 100 + rng.Int64N(2000)
		}
		r := joinedCall(t, s, tables, false)
		require.Equal(t, want, bytesOf(t, s.Stream(), r), "weights %v, chunks of %d", s.opts.Weights, s.opts.ChunkRays)
		require.NoError(t, r.Close())
	}
}

// Launches that end at about the same time touch nothing of each other but what they add to, which
// the race detector sees.
func TestMultiGridJoinsWithoutRaces(t *testing.T) {
	drv, _, _ := emulator(t, 2)
	s, tables := keptSet(t, drv, []int{0, 1})
	var want map[string][]byte
	for k := range 100 {
		r, err := smallGrid(bg, s, tables)
		require.NoError(t, err)
		got := bytesOf(t, s.Stream(), r)
		if k == 0 {
			want = got
		}
		require.Equal(t, want, got)
		require.NoError(t, r.Close())
	}
}

// Nothing of a result is written before the caller's stream has come to the call, also when
// the master has no lanes.
func TestMultiGridWritesBehindTheCaller(t *testing.T) {
	drv, _, _ := emulator(t, 2)
	s, tables := keptSet(t, drv, []int{0, 1})
	r, err := smallGrid(bg, s, tables)
	require.NoError(t, err)
	want := bytesOf(t, s.Stream(), r)
	busy := occupier(t, s.Stream())
	for _, s.opts.Weights = range [][]float64{{1, 1}, {0, 1}, {1, 0}} {
		busy()
		require.NoError(t, cuda.Fill8(s.Stream(), r.Power, 0x5a))
		require.NoError(t, cuda.Fill8(s.Stream(), r.Counts, 0x5a))
		r, err = smallGrid(bg, s, tables, scene.Into(r))
		require.NoError(t, err)
		require.Equal(t, want, bytesOf(t, s.Stream(), r), "weights %v", s.opts.Weights)
	}
	require.NoError(t, r.Close())
}
