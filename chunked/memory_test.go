package chunked_test

import (
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

// budgeted is a call under a budget; shared options: a hook, a size.
func budgeted(op chunked.Op, rows int64, devices int, budget int64, hook bool) chunked.Input {
	in := input(op, rows, devices)
	in.Options.MemoryBudget, in.Hook = budget, hook
	return in
}

func TestChunkedBudgets(t *testing.T) {
	t.Run("result held whole", func(t *testing.T) {
		p := plan(t, budgeted(intersect(), 4194304, 2, 1<<30, false))
		require.Equal(t, int64(318767104), p.PerDevice[0].Fixed)
		require.Equal(t, int64(318767104), p.PerDevice[0].Peak)
		require.Equal(t, int64(12782640), p.PerDevice[1].Bound)
		require.Equal(t, []int64{4194304, 4194304}, p.ChunkRows)
		require.Equal(t, chunked.SourceBudget, p.Source)
	})
	t.Run("streamed", func(t *testing.T) {
		p := plan(t, budgeted(intersect(), 4194304, 2, 64<<20, true))
		require.Equal(t, int64(294337), p.PerDevice[0].Bound)
		require.Equal(t, int64(798915), p.PerDevice[1].Bound)
		require.Equal(t, []int64{294337, 294337}, p.ChunkRows)
		require.Equal(t, int64(3*76*294337), p.PerDevice[0].Peak)
		require.Equal(t, int64(3*28*294337), p.PerDevice[1].Peak)
	})
	t.Run("one device, streamed", func(t *testing.T) {
		p := plan(t, budgeted(intersect(), 250000, 1, 16<<20, true))
		require.Equal(t, []int64{73584}, p.ChunkRows)
		require.Len(t, p.Chunks, 4)
	})
	t.Run("nothing to spare", func(t *testing.T) {
		p := plan(t, budgeted(chains(2), 33, 1, 594, false))
		require.Equal(t, []int64{33}, p.ChunkRows)
		require.Len(t, p.Chunks, 1)
	})
	t.Run("the remote decides", func(t *testing.T) {
		p := plan(t, budgeted(chains(2), 33, 2, 700, false))
		require.Equal(t, int64(594), p.PerDevice[0].Fixed)
		require.Equal(t, int64(7), p.PerDevice[1].Bound)
		require.Equal(t, []int64{7, 7}, p.ChunkRows)
		require.Equal(t, []int{3, 3}, perDevice(p))
	})
	t.Run("a size that fits exactly", func(t *testing.T) {
		in := budgeted(intersect(), 33, 1, 1596, true)
		in.Options.ChunkRays = 7
		require.Equal(t, []int64{7}, plan(t, in).ChunkRows)
	})
	t.Run("lanes", func(t *testing.T) {
		p := plan(t, budgeted(direct(100, 0), 1<<20, 1, 5248, false))
		require.Equal(t, []int64{1 << 20}, p.ChunkRows)
		require.Len(t, p.Chunks, 1)
		require.Equal(t, int64(5248), p.PerDevice[0].Peak)
	})
	t.Run("lanes on two devices", func(t *testing.T) {
		const states, materials = 2 * 96, 17
		p := plan(t, input(direct(100, states+materials), 1<<20, 2))
		require.Equal(t, int64(10096), p.PerDevice[0].Peak)
		require.Equal(t, int64(5057), p.PerDevice[1].Peak)
	})
	t.Run("a tape of lanes is a bit each", func(t *testing.T) {
		in := budgeted(direct(100, 0), 1001, 1, 5248+126, false)
		in.Tape = true
		require.Equal(t, int64(5248+126), plan(t, in).PerDevice[0].Peak)
	})
	t.Run("a tape of rows lies beside the result", func(t *testing.T) {
		in := input(perRay(12, 4, 32), 100, 2)
		in.Op.TapeBits, in.Tape = 32, true
		require.Equal(t, int64(3600), plan(t, in).PerDevice[0].Fixed)
	})
	t.Run("scratch", func(t *testing.T) {
		in := budgeted(perRay(24, 4, 29), 100, 5, 1<<20, true)
		in.Op.Scratch = 5
		p := plan(t, in)
		require.Equal(t, chunked.MemoryEstimate{RowBits: 8 * 34, Resident: 6, Bound: (1 << 20) / (34 * 6), Peak: 5 * 20 * 34}, p.PerDevice[0])
		require.Equal(t, chunked.MemoryEstimate{RowBits: 8 * 33, Resident: 3, Bound: (1 << 20) / (33 * 3), Peak: 20 * 33}, p.PerDevice[4])
	})
}

func TestChunkedBudgetErrors(t *testing.T) {
	for _, c := range []struct {
		name    string
		in      chunked.Input
		minimum int64
		device  int
		text    string
	}{
		{"result", budgeted(intersect(), 4194304, 2, 300000000, false), 318767104, 0,
			"chunked: intersect_full: MemoryBudget is 300000000 B, but the returned result does not fit on device 0 (position 0): " +
				"minimum 318767104 B. Raise it, or stream the result (Offload)"},
		{"result of one device", budgeted(chains(2), 33, 1, 593, false), 594, 0,
			"chunked: trace_reflections:2: MemoryBudget is 593 B, but the returned result does not fit on device 0 (position 0): " +
				"minimum 594 B. Raise it, or stream the result (Offload)"},
		{"one row of the master", budgeted(intersect(), 33, 1, 227, true), 228, 0,
			"chunked: intersect_full: MemoryBudget is 227 B, but chunks of one row do not fit on device 0 (position 0): minimum 228 B. Raise it"},
		{"one row of a remote", budgeted(perRay(24, 4, 1), 2, 2, 83, false), 84, 1,
			"chunked: intersect_full: MemoryBudget is 83 B, but chunks of one row do not fit on device 1 (position 1): minimum 84 B. Raise it"},
		{"the device that needs most", budgeted(perRay(24, 4, 1), 2, 2, 1, false), 84, 1, // the result of 2 B is beyond it, too
			"chunked: intersect_full: MemoryBudget is 1 B, but chunks of one row do not fit on device 1 (position 1): minimum 84 B. Raise it"},
		{"accumulators", budgeted(direct(100, 0), 1024, 1, 5247, false), 5248, 0,
			"chunked: accum_dfr_direct: MemoryBudget is 5247 B, but the accumulators do not fit on device 0 (position 0): " +
				"minimum 5248 B. Raise it, or use a grid of fewer cells"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := chunked.BuildPlan(c.in)
			var e *chunked.BudgetError
			require.ErrorAs(t, err, &e)
			require.EqualError(t, err, c.text)
			require.Equal(t, c.minimum, e.Minimum)
			require.Equal(t, c.device, e.Device)
			c.in.Options.MemoryBudget = e.Minimum
			_, err = chunked.BuildPlan(c.in)
			require.NoError(t, err, "the minimum is enough")
		})
	}
}

func TestChunkedChunkErrors(t *testing.T) {
	in := budgeted(intersect(), 33, 1, 1595, true)
	in.Devices, in.Options.ChunkRays = []int{5}, 7
	_, err := chunked.BuildPlan(in)
	require.EqualError(t, err, "chunked: intersect_full: ChunkRays of 7 rows need 1596 B on device 5 (position 0), which holds 3 chunks at once, "+
		"and MemoryBudget is 1595 B: use chunks of at most 6 rows, or leave ChunkRays at 0")
	var e *chunked.ChunkError
	require.ErrorAs(t, err, &e)
	require.Equal(t, chunked.ChunkError{Operation: "intersect_full", Device: 5, Rows: 7, Resident: 3, Bytes: 1596, Budget: 1595, Largest: 6}, *e)

	// The master holds 3 chunks of 76 B a row, a remote 3 of 84 B with what it copies back: its 252 B a row decide.
	in = budgeted(perRay(80, 4, 76), 33, 2, 1511, true)
	in.Options.ChunkRays = 7
	_, err = chunked.BuildPlan(in)
	require.ErrorAs(t, err, &e)
	require.Equal(t, []int64{1, 5}, []int64{int64(e.Position), e.Largest}, "%v", err)
	in.Options.ChunkRays = e.Largest
	_, err = chunked.BuildPlan(in)
	require.NoError(t, err, "the largest fits")
}

// A tape that is returned is that of the whole batch. Under a budget it is
// refused for several chunks of a device, but not with a hook, which takes the
// derivatives of each chunk.
func TestChunkedTapeErrors(t *testing.T) {
	for _, c := range []struct {
		op     chunked.Op
		budget int64
	}{{intersect(), 76*33 + 3*28*7}, {direct(1, 0), 1 << 20}} {
		in := budgeted(c.op, 33, 2, c.budget, false)
		in.Op.TapeBits, in.Options.ChunkRays = 0, 7
		require.Equal(t, []int{3, 3}, perDevice(plan(t, in)))
		in.Tape = true
		_, err := chunked.BuildPlan(in)
		var e *chunked.TapeError
		require.ErrorAs(t, err, &e)
		require.Equal(t, chunked.TapeError{Operation: c.op.Key, Class: c.op.Class, Chunks: 3, Budget: c.budget}, *e)
		require.ErrorContains(t, err, map[chunked.Class]string{
			chunked.PerRay: "stream the chunks (Offload)", chunked.GridReduce: "divide the window"}[c.op.Class])

		fine := in
		fine.Options.ChunkRays = 17
		require.Equal(t, []int{1, 1}, perDevice(plan(t, fine)), "one chunk each is the sharded call")
		fine = in
		fine.Options.MemoryBudget = 0
		plan(t, fine)
		if in.Op.Class == chunked.PerRay {
			in.Hook = true
			plan(t, in)
		}
	}
}

func TestChunkedHookErrors(t *testing.T) {
	in := input(direct(1, 0), 33, 2)
	in.Hook = true
	_, err := chunked.BuildPlan(in)
	var e *chunked.UnsupportedError
	require.ErrorAs(t, err, &e)
	require.EqualError(t, err, "chunked: accum_dfr_direct does not support Offload: its result is one reduced grid, which has no rows to stream")
}

// A list of too many chunks is refused before it is made.
func TestChunkedTooManyChunks(t *testing.T) {
	many := map[string]func(*chunked.Input){
		"ChunkRays":      func(in *chunked.Input) { in.Options.ChunkRays = 1 },
		"MemoryBudget":   func(in *chunked.Input) { in.Options.MemoryBudget, in.Hook = 300, true },
		"PipelineChunks": func(in *chunked.Input) { in.Options.PipelineChunks = 1 << 30 },
	}
	for option, set := range many {
		in := input(intersect(), 1<<30, 2)
		set(&in)
		_, err := chunked.BuildPlan(in)
		var e *chunked.OptionError
		require.ErrorAs(t, err, &e, option)
		require.Equal(t, option, e.Option)
		require.ErrorContains(t, err, "a plan has at most 1048576")
	}
}
