package multi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// Calls over so many pairs that devices get whole ones have the bits of one device: windows that
// begin anywhere, states that are switched off, both kinds of samples, whatever the shares, the
// chunks, the budget and the transport are. Windows of a call add up to it, divided or not.
func TestMultiGridWholePairs(t *testing.T) {
	n := gputest.UpTo(3)
	rig := gputest.Open(t, n, nil)
	s := quick(t, rig.Driver, ordinals(rig, n), Options{Options: chunked.Options{MinLanesPerDevice: 1}})
	rng := rngOf(151)
	m := room(rng)
	build(t, s, m)
	faces := len(m.Faces) / 3
	few, many := newTables(t, s, wedgeStates(rng, 2, faces), faces), newTables(t, s, wedgeStates(rng, 2100, faces), faces)
	defer few.close(t)
	defer many.close(t)
	switches := make([]uint8, 2100)
	for i := range switches {
		switches[i] = uint8(rng.IntN(3))
	}
	active := upload(t, s.Stream(), switches)
	defer func() { require.NoError(t, cuda.Free(active)) }()
	both, err := active.Sub(0, 2)
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		tables radioTables
		cells  int32
		o      scene.DfrDirectOptions
	}{
		{"direct", few, 33, scene.DfrDirectOptions{DirectSamples: 7000, Active: both}}, // of 2178 pairs
		{"keller", many, 5, scene.DfrDirectOptions{KellerSamples: 6900, Active: active}},
	} {
		o := c.o
		o.Wavelength, o.Materials, o.Seed, o.KeepWords = 1, c.tables.materials, 7, true
		all, err := s.Master().AccumDfrDirect(bg, c.tables.states, cellsOf(c.cells), o)
		require.NoError(t, err)
		want := bytesOf(t, s.Stream(), all)
		for _, transport := range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
			for range 4 {
				cut := 10 + rng.Int64N(1500)
				s.transport, s.opts.Weights = transport, randomWeights(rng, n)
				s.opts.ChunkRays = []int64{0, 300 + rng.Int64N(3000)}[rng.IntN(2)]
				s.opts.MemoryBudget = []int64{0, 1 << 22}[rng.IntN(2)]
				what := fmt.Sprintf("%s, %v, cut at %d, weights %v, chunks of %d", c.name, transport, cut, s.opts.Weights, s.opts.ChunkRays)
				var parts [2]*scene.DfrAccum
				for i, w := range [2]scene.Window{{Offset: 0, Count: cut}, {Offset: cut, Count: -1}} {
					o.Window = &w
					parts[i], err = s.AccumDfrDirect(bg, c.tables.states, cellsOf(c.cells), o)
					require.NoError(t, err, what)
				}
				require.NoError(t, parts[1].Merge(parts[0]))
				require.NoError(t, parts[1].Read())
				require.Equal(t, want, bytesOf(t, s.Stream(), parts[1]), what)
				require.NoError(t, parts[0].Close())
				require.NoError(t, parts[1].Close())
			}
		}
		require.NoError(t, all.Close())
	}
}
