package scene_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// accumulators makes n of them, with anything in them.
func (r *rig) accumulators(c *scene.GridCall, n int) []cuda.Slice[uint8] {
	out := make([]cuda.Slice[uint8], n)
	for i := range out {
		out[i] = toDevice(r, bytes.Repeat([]byte{0xA5}, int(c.AccumulatorBytes())))
	}
	return out
}

// Lanes that are divided over any number of accumulators give the words, the counters and
// the power of one launch: on grids that the launch that sums reads out, and on larger
// ones; with one accumulator, and with more than one launch sums. They stay as they were.
func TestGridCallCollect(t *testing.T) {
	r := build(t, farTriangle)
	states := r.states(stateA)
	rng := rand.New(rand.NewPCG(151, 152))
	for _, res := range []int32{1, 7, 64, 65} {
		g := gridOne
		g.Res0, g.Res1 = res, res
		for _, n := range []int{1, 2, 4, 5, 16, 17, 33} {
			for _, keller := range []bool{false, true} {
				lanes := 3*g.Cells() + 40
				o := scene.DfrDirectOptions{Wavelength: 1, Seed: 9, DirectSamples: lanes, KeepWords: true}
				if keller {
					o.DirectSamples, o.KellerSamples = 0, lanes
				}
				want := r.accumulateDfr(states, g, o)
				a, c, err := r.PrepareAccumDfrDirect(background, states, g, o)
				require.NoError(t, err)
				sc := r.inside()
				accs := r.accumulators(c, n)
				in, out := c.Columns()
				for i, at := 0, int64(0); i < n; i++ {
					require.NoError(t, c.Zero(r.Scene, r.Stream(), accs[i]))
					share := (lanes - at) / int64(n-i)
					end := at + (share+1)/2 + rng.Int64N(share/2+1) // all of them have lanes
					if i == n-1 {
						end = lanes
					}
					require.NoError(t, c.Accumulate(sc, r.Scene, r.Stream(), in, out, accs[i], at, end-at))
					at = end
				}
				var before [][]uint8
				for _, acc := range accs {
					before = append(before, toHost(r, acc))
				}
				require.NoError(t, c.Collect(sc, accs))
				require.Equal(t, want, r.fetch(a), "%d cells, %d accumulators", g.Cells(), n)
				for i, acc := range accs {
					require.Equal(t, before[i], toHost(r, acc))
				}
				short, err := accs[0].Sub(0, accs[0].Len()-8)
				require.NoError(t, err)
				var wrong *scene.ArgumentError
				require.ErrorAs(t, c.Collect(sc, []cuda.Slice[uint8]{short}), &wrong)
				require.NoError(t, sc.Exit())
				require.NoError(t, a.Close())
			}
		}
	}
}

// A scope of another device is refused before anything is launched.
func TestGridCallScopeOfAnotherDevice(t *testing.T) {
	if gputest.UpTo(2) < 2 {
		t.Skip("one device")
	}
	both := gputest.Open(t, 2, nil)
	r := openOn(t, both.Context(t, 0))
	r.add(farTriangle)
	require.NoError(t, r.Build(background))
	a, c, err := r.PrepareAccumDfrDirect(background, r.states(stateA), gridOne, scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 8})
	require.NoError(t, err)
	require.NoError(t, c.Zero(r.Scene, r.Stream(), c.Accumulator()))
	sc, err := both.Context(t, 1).Enter()
	require.NoError(t, err)
	in, out := c.Columns()
	own := []cuda.Slice[uint8]{c.Accumulator()}
	for _, err := range []error{
		c.Accumulate(sc, r.Scene, r.Stream(), in, out, own[0], 0, 8), c.Add(sc, r.Stream(), own[0], own[0]), c.Collect(sc, own),
	} {
		var wrong *cuda.WrongDeviceError
		require.ErrorAs(t, err, &wrong)
	}
	require.NoError(t, sc.Exit())
	require.NoError(t, a.Close())
}

// Launches that join one accumulator need no order, and the last one writes the result of all:
// what the call would find, and nothing before. Each of them has what it needs to itself.
func TestGridCallJoin(t *testing.T) {
	r := build(t, farTriangle)
	states := r.states(stateA)
	rng := rand.New(rand.NewPCG(153, 154))
	g := gridOne
	g.Res0, g.Res1 = 5, 3
	const lanes = 1000
	o := scene.DfrDirectOptions{Wavelength: 1, Seed: 9, DirectSamples: lanes, KeepWords: true}
	want := r.accumulateDfr(states, g, o)
	require.Positive(t, want.counts.EdgeUses)
	for _, n := range []int{1, 2, 5} {
		a, c, err := r.PrepareAccumDfrDirect(background, states, g, o)
		require.NoError(t, err)
		require.True(t, c.Joins(lanes))
		r.ForceRowsPerLaunch(lanes - 1)
		require.True(t, c.Joins(lanes-1))
		require.False(t, c.Joins(lanes), "which are two launches")
		r.ForceRowsPerLaunch(lanes)
		sc := r.inside()
		accs := r.accumulators(c, n+1)
		for _, acc := range accs {
			require.NoError(t, c.Zero(r.Scene, r.Stream(), acc))
		}
		poison(r, a.Power)
		before := toHost(r, a.Power)
		in, _ := c.Columns()
		parts := cuts(rng, lanes, n)
		for i, k := range rng.Perm(n) {
			require.Equal(t, before, toHost(r, a.Power), "%d of %d launches", i, n)
			require.NoError(t, c.Join(sc, r.Scene, r.Stream(), in, accs[n], accs[k], n, parts[k][0], parts[k][1]))
		}
		require.Equal(t, want, r.fetch(a), "%d launches", n)
		short, err := accs[0].Sub(0, accs[0].Len()-8)
		require.NoError(t, err)
		var wrong *scene.ArgumentError
		require.ErrorAs(t, c.Join(sc, r.Scene, r.Stream(), in, accs[0], short, 1, 0, lanes), &wrong)
		require.ErrorAs(t, c.Join(sc, r.Scene, r.Stream(), in, short, accs[0], 1, 0, lanes), &wrong)
		require.ErrorAs(t, c.Join(sc, r.Scene, r.Stream(), in, accs[0], accs[0], 0, 0, lanes), &wrong)
		require.ErrorAs(t, c.Join(sc, r.Scene, r.Stream(), in, accs[0], accs[0], 1, 0, 0), &wrong, "no launch")
		require.NoError(t, sc.Exit())
		require.NoError(t, a.Close())
	}
	for _, c := range []struct {
		res     int32
		options scene.DfrDirectOptions
	}{{5, scene.DfrDirectOptions{Wavelength: 1, KellerSamples: lanes}}, {17, o}} {
		g.Res0, g.Res1 = c.res, c.res
		a, call, err := r.PrepareAccumDfrDirect(background, states, g, c.options)
		require.NoError(t, err)
		require.False(t, call.Joins(lanes))
		var wrong *scene.ArgumentError
		in, _ := call.Columns()
		sc := r.inside()
		require.ErrorAs(t, call.Join(sc, r.Scene, r.Stream(), in, call.Accumulator(), call.Accumulator(), 1, 0, lanes), &wrong)
		require.NoError(t, sc.Exit())
		require.NoError(t, a.Close())
	}
}
