package multi

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// randomPlanInput is one of a few hundred calls, some of which no plan can serve.
func randomPlanInput(rng *rand.Rand) chunked.Input {
	in := chunked.Input{
		Op: AccumDfrDirectOp(grid(1+rng.Int32N(2)), 3, 0, scene.DfrDirectOptions{}), Begin: rng.Int64N(2), Rows: []int64{0, 100, 8 << 20}[rng.IntN(3)],
		Devices: []int{0, 1, 2}[:1+rng.IntN(3)], Transport: chunked.Direct, Hook: rng.IntN(20) == 0,
	}
	in.Options.MinLanesPerDevice = rng.Int64N(2)
	in.Options.ChunkRays = []int64{0, 0, 1, 1 << 20}[rng.IntN(4)]
	if rng.IntN(3) == 0 {
		in.Options.Weights = []float64{1, 1, float64(1 + rng.IntN(2))}
	}
	return in
}

// What is remembered is what BuildPlan decides, also when more calls alternate than are
// remembered, or a call is refused.
func TestMultiRememberedPlans(t *testing.T) {
	var p plans
	rng, hits, refused := rngOf(131), 0, 0
	last := randomPlanInput(rng)
	for range 3000 {
		in := randomPlanInput(rng)
		if rng.IntN(2) == 0 {
			in = last
		}
		last = in
		in = in.Clone()
		before := p.next
		want, wantErr := chunked.BuildPlan(in)
		got, err := p.build(&in)
		require.Equal(t, wantErr, err)
		if err != nil {
			refused++
			continue
		}
		require.Equal(t, want, *got)
		if p.next == before && len(got.Chunks) <= rememberedChunks {
			hits++
		}
		if again, _ := p.build(&in); len(got.Chunks) <= rememberedChunks {
			require.Same(t, got, again)
		}
		in.Devices[0] = 9 // a plan does not depend on what becomes of its input
	}
	require.Greater(t, hits, 500)
	require.Positive(t, refused)
}

// Plans of more chunks than that take longer to run than to plan, and take no memory.
func TestMultiLongPlansAreNotRemembered(t *testing.T) {
	for chunks, kept := range map[int64]bool{rememberedChunks: true, rememberedChunks + 1: false} {
		var p plans
		in := chunked.Input{Op: AccumDfrDirectOp(grid(1), 1, 0, scene.DfrDirectOptions{}), Rows: chunks, Devices: []int{0}, Transport: chunked.Direct}
		in.Options.ChunkRays = 1
		first, err := p.build(&in)
		require.NoError(t, err)
		require.Len(t, first.Chunks, int(chunks))
		second, err := p.build(&in)
		require.NoError(t, err)
		require.Equal(t, kept, first == second, "%d chunks", chunks)
		require.Equal(t, kept, len(p.known) == 1)
	}
}

// What a caller does to the plan that it was told does not matter to later calls.
func TestMultiToldPlansAreCopies(t *testing.T) {
	x := newBrokenGrid(t)
	for range 2 {
		var info CallInfo
		require.Equal(t, x.want[0], x.all[0].answer(t, x.Scene, x.tables, nil, Info(&info)))
		require.Len(t, info.Plan.Chunks, 2)
		clear(info.Plan.Chunks)
		clear(info.Plan.Shards)
		clear(info.Plan.ChunkRows)
	}
	x.close(t)
}

// A call that the master answers alone makes the driver calls of the plain scene, and
// next to nothing else: no plan, no list of lanes.
func TestMultiMasterAloneIsPlain(t *testing.T) {
	rig, trace := traced(t, 2)
	s := quick(t, rig.Driver, ordinals(rig, 2), Options{})
	m := room(rngOf(132))
	build(t, s, m)
	faces := len(m.Faces) / 3
	tables := newTables(t, s, wedgeStates(rngOf(133), 2, faces), faces)
	defer tables.close(t)
	type accumulator interface {
		AccumDfrDirect(ctx context.Context, states *scene.StateTable, g scene.Grid, o scene.DfrDirectOptions, opts ...scene.CallOption) (*scene.DfrAccum, error)
	}
	call := func(s accumulator) {
		r, err := s.AccumDfrDirect(bg, tables.states, floorPlan, scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 64, Materials: tables.materials})
		if err == nil {
			err = r.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	counts := func(s accumulator) map[string]int64 {
		call(s)
		trace.Reset()
		call(s)
		return trace.Counts()
	}
	require.Equal(t, counts(s.Master()), counts(s))
	plain := testing.AllocsPerRun(20, func() { call(s.Master()) })
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() { call(s) }), plain+5)
}
