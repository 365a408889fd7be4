package multi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

func grid(res int32) scene.Grid {
	return scene.Grid{Max0: 1, Max1: 1, Res0: res, Res1: res}
}

// Memory, floors and chunks of the operations on grids and paths, as computed by hand.
func TestRadioPlans(t *testing.T) {
	plan := func(op chunked.Op, rows int64, devices int, o chunked.Options) (chunked.Plan, error) {
		in := chunked.Input{Op: op, Rows: rows, Options: o, Transport: chunked.Direct}
		for k := range devices {
			in.Devices = append(in.Devices, k)
		}
		return chunked.BuildPlan(in)
	}
	direct := AccumDfrDirectOp(grid(10), 0, 0, scene.DfrDirectOptions{})
	_, err := plan(direct, 1024, 1, chunked.Options{MemoryBudget: 5247})
	var short *chunked.BudgetError
	require.ErrorAs(t, err, &short)
	require.EqualValues(t, 5248, short.Minimum, "48 per cell, 48, and 4 per cell")
	p, err := plan(direct, 1024, 1, chunked.Options{MemoryBudget: 5248})
	require.NoError(t, err)
	require.Len(t, p.Chunks, 1)
	p, err = plan(AccumDfrDirectOp(grid(10), 0, 2*96+17, scene.DfrDirectOptions{}), 1024, 2, chunked.Options{MinLanesPerDevice: 1})
	require.NoError(t, err)
	require.Equal(t, []int64{10096, 5057}, []int64{p.PerDevice[0].Fixed, p.PerDevice[1].Fixed})
	p, err = plan(direct, 1024, 1, chunked.Options{ChunkRays: 100})
	require.NoError(t, err)
	require.Len(t, p.Chunks, 11)
	require.EqualValues(t, 24, p.Chunks[10].Len())

	coherent := AccumDfrCoherentDirectOp(grid(10), 2, 0, scene.DfrCoherentOptions{})
	p, err = plan(coherent, 1024, 1, chunked.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 36*100+600, p.PerDevice[0].Fixed)

	rays := AccumulateReflectionsOp(grid(1000), 24, 0, scene.ReflGridOptions{})
	p, err = plan(rays, 1<<20, 2, chunked.Options{MinLanesPerDevice: 262144})
	require.NoError(t, err)
	require.EqualValues(t, 405002, p.Floor.Rows)
	require.Equal(t, chunked.KindLaneSharded, p.Kind)
	p, err = plan(rays, 1<<19, 2, chunked.Options{MinLanesPerDevice: 262144})
	require.NoError(t, err)
	require.Equal(t, chunked.KindMaster, p.Kind)
	events := AccumulateReflectionsOp(grid(1), 24, 0, scene.ReflGridOptions{CollectWedges: true, WedgeCapacity: 10, MaxBounces: 1})
	require.EqualValues(t, 800, events.Grid.Events)
	require.EqualValues(t, 1, events.Scratch)
	for _, capacity := range []int{-1, 1 << 60, 1<<62 + 1} { // of which 80 times as much wraps around
		op := AccumulateReflectionsOp(grid(1), 24, 0, scene.ReflGridOptions{CollectWedges: true, WedgeCapacity: capacity})
		var refused *chunked.OptionError
		_, err = plan(op, 1024, 1, chunked.Options{})
		require.ErrorAs(t, err, &refused, "capacity %d", capacity)
		require.Equal(t, "Op.Grid.Events", refused.Option)
	}

	for lanes, kind := range map[int64]chunked.Kind{2*262144 - 2: chunked.KindMaster, 2 * 262144: chunked.KindLaneSharded} {
		p, err = plan(direct, lanes, 2, chunked.Options{MinLanesPerDevice: 262144})
		require.NoError(t, err)
		require.Equal(t, kind, p.Kind, "%d lanes", lanes)
	}

	// By default every operation has a floor of its own.
	for _, c := range []struct {
		op    chunked.Op
		floor int64
	}{
		{direct, 1048576},
		{AccumDfrDirectOp(grid(10), 0, 0, scene.DfrDirectOptions{KellerSamples: 1}), 1048576 + 808}, // 4848 bytes
		{coherent, 2097152},
		{AccumDfrCoherentDirectOp(grid(1000), 2, 0, scene.DfrCoherentOptions{}), 2097152},
		{rays, 262144 + 142858}, // 4000008 bytes
		{AccumulateReflectionsOp(grid(1), 24, 0, scene.ReflGridOptions{}), 262144 + 1},
	} {
		for rows, kind := range map[int64]chunked.Kind{2*c.floor - 2: chunked.KindMaster, 2 * c.floor: chunked.KindLaneSharded} {
			p, err = plan(c.op, rows, 2, chunked.Options{})
			require.NoError(t, err)
			require.Equal(t, c.floor, p.Floor.Rows, c.op.Key)
			require.Equal(t, kind, p.Kind, "%s, %d lanes", c.op.Key, rows)
		}
	}

	// 5 transmitters, 2 receivers, 2 states: whole transmitters, 8 rows and 12.
	paths := DfrPathsOp(4)
	p, err = plan(paths, 20, 2, chunked.Options{MinRaysPerDevice: 1})
	require.NoError(t, err)
	require.Equal(t, []chunked.Range{{Begin: 0, End: 8}, {Begin: 8, End: 20}}, p.Shards)
	p, err = plan(DfrPathsOp(1), 1<<20, 2, chunked.Options{MinRaysPerDevice: 262144})
	require.NoError(t, err)
	require.EqualValues(t, 383854, p.Floor.Rows)
}
