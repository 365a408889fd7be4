package multi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// What is answered without a plan would be the master's by any plan, and gives its bits; that calls
// were made is known to calibrations.
func TestMultiGridBelowTheFloor(t *testing.T) {
	drv, _, _ := emulator(t, 3)
	s, tables := keptSet(t, drv, []int{0, 1, 2})
	rng := rngOf(170)
	alone, planned := 0, 0
	for range 3000 {
		s.opts.Options = chunked.Options{
			MinLanesPerDevice: []int64{0, 1, 2, 1000, 1 << 20, 1 << 30}[rng.IntN(6)],
			NoPipeline:        rng.IntN(2) == 0,
		}
		if rng.IntN(2) == 0 {
			s.opts.Weights = []float64{rng.Float64(), rng.Float64(), rng.Float64()}
			s.opts.Weights[rng.IntN(3)] = 0
		}
		if rng.IntN(4) == 0 {
			s.opts.ChunkRays = 1 + rng.Int64N(1000)
		}
		if rng.IntN(4) == 0 {
			s.opts.MemoryBudget = 1 << 30
		}
		lanes := int64(1) << rng.IntN(31)
		lanes += rng.Int64N(lanes)
		grid := cellsOf(1 + rng.Int32N(100))
		direct, keller := scene.DfrDirectOptions{DirectSamples: lanes}, scene.DfrDirectOptions{KellerSamples: lanes}
		c := []struct {
			least int64
			op    chunked.Op
		}{
			{directFloor(direct), AccumDfrDirectOp(grid, 2, 0, direct)},
			{directFloor(keller), AccumDfrDirectOp(grid, 2, 0, keller)},
			{coherentLanes, AccumDfrCoherentDirectOp(grid, 2, 0, scene.DfrCoherentOptions{})},
			{rayLanes, AccumulateReflectionsOp(grid, 24, 0, scene.ReflGridOptions{MaxBounces: 2})},
		}[rng.IntN(4)]
		if !s.belowFloor(c.op.Key, c.least, &scene.GridCall{Lanes: lanes}) {
			planned++
			continue
		}
		alone++
		plan, err := chunked.BuildPlan(s.planInput(c.op, lanes))
		require.NoError(t, err)
		require.Equal(t, chunked.KindMaster, plan.Kind, "%s, %d lanes, %+v", c.op.Key, lanes, s.opts.Options)
	}
	require.Greater(t, alone, 500)
	require.Greater(t, planned, 500)

	s.opts.Options = chunked.Options{}
	call := func(by func(*scene.Scene) *scene.DfrAccum) map[string][]byte {
		r := by(s.Master())
		defer func() { require.NoError(t, r.Close()) }()
		return bytesOf(t, s.Stream(), r)
	}
	o := scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 777, Materials: tables.materials}
	want := call(func(m *scene.Scene) *scene.DfrAccum {
		r, err := m.AccumDfrDirect(bg, tables.states, cellsOf(4), o)
		require.NoError(t, err)
		return r
	})
	executions := s.executions.Load()
	require.Equal(t, want, call(func(*scene.Scene) *scene.DfrAccum {
		r, err := s.AccumDfrDirect(bg, tables.states, cellsOf(4), o)
		require.NoError(t, err)
		return r
	}))
	require.Equal(t, executions, s.executions.Load())
	require.EqualValues(t, 777, s.split.rows[keyDfrDirect])

	// Options of the call and a calibration of the operation need a plan.
	small := &scene.GridCall{Lanes: 777}
	require.True(t, s.belowFloor(keyDfrDirect, directLanes, small))
	require.False(t, s.belowFloor(keyDfrDirect, directLanes, &scene.GridCall{Lanes: 777, Carried: []any{&CallInfo{}}}))
	var info CallInfo
	r, err := s.AccumDfrDirect(bg, tables.states, cellsOf(4), o, Info(&info))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, chunked.KindMaster, info.Plan.Kind)
	s.split.mu.Lock()
	s.split.trial = &trial{key: keyDfrDirect, weights: []float64{1, 1, 1}}
	s.split.mu.Unlock()
	require.False(t, s.belowFloor(keyDfrDirect, directLanes, small))
	require.True(t, s.belowFloor(keyDfrCoherent, coherentLanes, small))
	r, err = s.AccumDfrDirect(bg, tables.states, cellsOf(4), o)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, executions+1, s.executions.Load(), "divided, as the calibration says")
	s.split.mu.Lock()
	s.split.trial = nil
	s.split.mu.Unlock()

	// Wrong arguments are refused as ever.
	require.NoError(t, s.Stream().Synchronize(bg))
	var wrong *scene.ArgumentError
	_, err = s.AccumDfrDirect(bg, nil, cellsOf(4), scene.DfrDirectOptions{Wavelength: -1, DirectSamples: 1})
	require.ErrorAs(t, err, &wrong)
}
