package main

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
)

// --accum-only has the rows of the accumulation and no others, and the sweep follows.
func TestAccumulationAlone(t *testing.T) {
	out, _, r := benchmark(t, exitDone, "--devices", "emu:2", "--accum-only", "--accum-samples", "130", "--accum-sweep")
	require.Contains(t, out, "agreement, mini accum_dfr_direct forced: 1.0 (0 of 118 words, counters and cells differ)") // 16 cells, 6 counters, 96 words
	require.True(t, r.Parameters.AccumOnly)
	require.EqualValues(t, 130, r.Configs["mini"].AccumSamples)
	rows := r.Configs["mini"].Rows
	require.Len(t, rows, 2)
	forced, policy := rows[0], rows[1]
	require.Equal(t, record.OperationAccumDirect, forced.Operation)
	require.Equal(t, record.Batch{Count: 130, Unit: record.UnitSamples}, forced.Batch)
	require.Equal(t, "lane-sharded", forced.Dispatch)
	require.Equal(t, []record.DevicePlan{{Device: 0, Rows: 65, Chunks: 1, ChunkRows: 65}, {Device: 1, Rows: 65, Chunks: 1, ChunkRows: 65}}, forced.Plan.PerDevice)
	require.Zero(t, *forced.GridDeviation.L1Relative)
	require.True(t, *forced.GridDeviation.CountersExact)
	require.Positive(t, forced.GridDeviation.Grids[0].ReferenceL1)
	require.Equal(t, "master", policy.Dispatch, "130 lanes are below the floor")
	require.Len(t, forced.Columns, 3)
	require.Equal(t, forced.Columns, policy.Columns)
	require.Len(t, r.Studies, 2)
	require.Equal(t, "accum_float", r.Studies[0].ID)
	require.Less(t, r.Studies[0].Rows[0][5], 1e-5, "float atomics sum other samples")
	require.Contains(t, out, "exactness, mini accum_dfr_direct: exact ")
	require.Equal(t, "accum_sample_sweep", r.Studies[1].ID)
	require.Len(t, r.Studies[1].Rows, 3)
	for _, row := range r.Studies[1].Rows {
		require.EqualValues(t, 0, row[4], "values differ")
		require.Less(t, row[6], 1e-4)
	}

	_, _, one := benchmark(t, exitDone, "--devices", "emu:1", "--accum-only", "--accum-samples", "130", "--accum-sweep")
	require.Equal(t, []string{record.FlagSingleDeviceOnly}, one.Configs["mini"].Rows[0].Flags)
	require.Equal(t, forced.Columns, one.Configs["mini"].Rows[0].Columns)
	require.Nil(t, one.Studies[1].Rows[0][2], "there is no set")
	require.NotContains(t, one.Studies[1].Description, "divided")
}

// openAccumOn makes an accumulation of 256 samples on two emulated devices.
func openAccumOn(t *testing.T, o ...emu.Option) *accumTask {
	t.Helper()
	emulator, err := emu.New(2, o...)
	require.NoError(t, err)
	driver, err := cuda.OpenAPI(emulator)
	require.NoError(t, err)
	h := &host{driver: driver, devices: []int{0, 1}, allocs: new(atomic.Uint64)}
	require.NoError(t, h.retain())
	t.Cleanup(func() { require.NoError(t, h.close()) })
	r := &run{options: options{transport: chunked.Copy}, host: h}
	a, err := r.openAccum(workload.Mini, 256, record.Forced, record.Policy)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.close()); require.NoError(t, a.close()) })
	return a
}

// An accumulator that is corrupted on its way to the master is found.
func TestCorruptAccumulatorIsFound(t *testing.T) {
	var armed atomic.Bool
	a := openAccumOn(t, emu.WithPeerCorruption(func(_, _ int, data []byte) {
		for i := 0; armed.Load() && i < len(data); i += 8 {
			data[i] ^= 1
		}
	}))
	_, err := a.check()
	require.NoError(t, err)
	require.Empty(t, a.failures)
	armed.Store(true)
	found, err := a.check()
	require.NoError(t, err)
	require.Positive(t, found.differ[1])
	require.Zero(t, found.differ[2], "the policy call runs on the master alone")
	require.NotEmpty(t, a.failures)
}

// A result that lost a sample, or whose power is off, contradicts what is known of the fixture.
func TestAccumulationIsVerified(t *testing.T) {
	power, variance := expectedPower()
	require.Len(t, power, 16)
	for c := range power {
		require.Positive(t, variance[c])
	}
	columns := func(counters []int64, scale float64) []hostColumn {
		list := []hostColumn{{name: "power", size: 4}, {name: "counters", size: 8}}
		for _, p := range power {
			list[0].data = binary.LittleEndian.AppendUint32(list[0].data, math.Float32bits(float32(p*scale)))
		}
		for _, n := range counters {
			list[1].data = binary.LittleEndian.AppendUint64(list[1].data, uint64(n))
		}
		return list
	}
	const n = 1 << 20
	all := []int64{n, 0, 0, 0, n, 0}
	for _, c := range []struct {
		counters []int64
		scale    float64
		wrong    int
	}{
		{all, 1, 0}, {all, 1.0005, 0}, {all, 1.1, 16}, {all, 0, 16},
		{[]int64{n - 1, 0, 1, 0, n - 1, 0}, 1, 1},
	} {
		a := &accumTask{run: &run{}, samples: n}
		a.verify(columns(c.counters, c.scale))
		require.Len(t, a.failures, c.wrong, "%+v", c)
	}
}

// The deviation of grids is that of the definition.
func TestGridDeviation(t *testing.T) {
	d := deviation(gridOf{1, -3, 0}, gridOf{1, -3.5, .5}, false)
	require.EqualValues(t, 2, d.Grids[0].Mismatches)
	require.InDelta(t, .25, *d.L1Relative, 1e-12)
	require.InDelta(t, .5, d.Grids[0].MaxAbs, 1e-12)
	require.False(t, *d.CountersExact)
	same := deviation(gridOf{2, 2}, gridOf{2, 2}, true)
	require.Zero(t, *same.L1Relative)
	require.Zero(t, same.Grids[0].Mismatches)
}
