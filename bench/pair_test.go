package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/multi"
)

// Calibrated and streamed rows, the spread of two runs and the studies of a set, in one run.
func TestRowsOfSeveralDevices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	out, _, r := benchmark(t, exitDone, "--devices", "emu:2", "--runs", "2", "--study", "dispatch,scaling")
	require.Equal(t, int64(16), *r.Parameters.CalibrationRows)
	require.Equal(t, 1, *r.Parameters.CalibrationRepeats)
	rows := r.Configs["mini"].Rows
	require.Len(t, rows, 9)

	for i, operation := range []string{record.OperationIntersect, record.OperationReflections} {
		row, forced := rows[4+i], rows[2*i]
		require.Equal(t, record.Calibrated, row.Mode)
		require.Equal(t, operation, row.Operation)
		require.Equal(t, forced.Columns, row.Columns)
		require.Equal(t, 1.0, *row.Agreement.Fraction)
		require.Equal(t, "master", row.Dispatch, "the floor of the shipped policy")
		c := row.Calibration
		require.Equal(t, int64(16), c.Rows)
		require.Contains(t, []int{9, 15, 25}, len(c.Pairs))
		require.Len(t, c.ThroughputSamplesNS, 2)
		require.Len(t, c.ThroughputSamplesNS[1], 1)
		require.GreaterOrEqual(t, len(c.Rungs), 4)
		if c.Verdict == record.VerdictShard {
			require.Contains(t, row.Flags, record.FlagBelowFloor)
			require.Positive(t, c.Rungs[*c.ChosenRung].Share)
		} else {
			require.NotContains(t, row.Flags, record.FlagBelowFloor)
			require.Zero(t, c.Rungs[*c.ChosenRung].Share)
			require.Equal(t, []float64{1, 0}, row.Weights)
		}
		require.Contains(t, out, "calibration, mini "+operation+": "+c.Verdict)
	}

	streamed := rows[6]
	require.Equal(t, record.Streamed, streamed.Mode)
	require.Equal(t, "chunked", streamed.Dispatch)
	require.Equal(t, "requested", streamed.Plan.Source)
	require.Equal(t, rows[0].Columns, streamed.Columns, "bit by bit the result of one device")
	require.Equal(t, rows[0].Hits, streamed.Hits)
	require.Equal(t, int64(96*19), *streamed.Agreement.Elements)
	p := streamed.PeakMemory
	require.Greater(t, *p.StreamedBytes, *p.BaselineBytes)
	require.GreaterOrEqual(t, *p.StreamedBytes-*p.BaselineBytes, int64(96*76), "both chunks are held")
	require.GreaterOrEqual(t, *p.ConcatenatedSingleBytes-*p.BaselineBytes, int64(96*76))
	require.Len(t, p.PerDeviceStreamed, 2)

	studies := map[string]record.Study{}
	for _, s := range r.Studies {
		studies[s.ID] = s
	}
	require.Len(t, studies["streaming"].Rows, 2, "one for each device")
	require.Len(t, studies["spread"].Rows, 9, "one for each row")
	for i := range rows {
		cells := byColumn(t, studies["spread"], i)
		require.Equal(t, string(rows[i].Mode), cells["mode"])
		require.Equal(t, 2.0, cells["runs"])
		require.LessOrEqual(t, cells["min"], *rows[i].Speedup)
		require.GreaterOrEqual(t, cells["max"], *rows[i].Speedup)
	}
	require.Contains(t, out, "speed-ups of emulated devices are not judged")
	require.Len(t, studies["dispatch"].Rows, 2)
	scaling := studies["scaling"]
	require.Len(t, scaling.Rows, 6)
	require.Equal(t, 128.0, byColumn(t, scaling, 1)["rows"])

	require.NoError(t, r.WriteFile(path))
	var svg, stderr bytes.Buffer
	require.Equal(t, exitDone, command([]string{"plot", path}, &svg, &stderr), stderr.String())
	require.Contains(t, svg.String(), "emulated: not a performance measurement")
	circles, lines := elements(t, svg.String())
	require.Equal(t, 6+2, circles, "a point for each measurement, and two in the legend")
	require.Equal(t, 4, lines, "measured and model, two operations")
}

// elements counts the circles and the curves of a drawing, which has to be XML.
func elements(t *testing.T, svg string) (circles, curves int) {
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return circles, curves
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			switch e.Name.Local {
			case "circle":
				circles++
			case "polyline":
				curves++
			}
		}
	}
}

func TestPlotRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.json")
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{nil, exitUsage, "one argument"},
		{[]string{"absent.json"}, exitFailed, "absent.json"},
		{[]string{path}, exitRecord, "bad.json"},
		{[]string{t.TempDir()}, exitFailed, "not a regular file"},
		{[]string{filepath.Join("evidence", "historical_20260727.json")}, exitFailed, "no study scaling"},
	} {
		var out, stderr bytes.Buffer
		require.Equal(t, c.status, command(append([]string{"plot"}, c.args...), &out, &stderr))
		require.Contains(t, stderr.String(), c.says)
		require.Empty(t, out.String())
	}
}

// A drawing whose places can be computed by hand: two sizes, speed-ups up to 2.
func TestDrawCurves(t *testing.T) {
	c := curve{name: "a < b", rows: []float64{1 << 14, 1 << 24}, measured: []float64{1, 2}, model: []float64{0.5, 2}}
	svg := drawCurves("title", []curve{c})
	require.Contains(t, svg, `points="60.0,175.0 740.0,40.0"`)
	require.Contains(t, svg, `points="60.0,242.5 740.0,40.0"`)
	require.Contains(t, svg, "a &lt; b")
	require.Contains(t, svg, `<text x="740.0" y="258.5" text-anchor="end">below 1.0: `)
	elements(t, svg)
}

// The cost of a call by hand: 100 rows, 10 ns each, of which the master spends 2; 5 ns per call and 7 for dividing it.
func TestCallCost(t *testing.T) {
	c := callCost{line: line{fixed: 5, perRow: 10}, finalize: 2, divide: 7}
	require.InDelta(t, 1005, c.one(100), 1e-9)
	half := overlapModel{rows: 100, masterRows: 50, in: 24, out: 4, direct: true, remotes: []share{{chunkRows: 50, chunks: 1}}}
	require.InDelta(t, 5+7+8*50+2*100, c.divided(half), 1e-9)
	half.remotes[0].toward, half.remotes[0].back = 1e9, 1e9 // 1200 ns to scatter
	require.InDelta(t, 5+7+1200, c.divided(half), 1e-9)
}

func TestSpreadLimit(t *testing.T) {
	for _, c := range []struct {
		mode  record.Mode
		low   float64
		fails bool
	}{
		{record.Policy, 0.969, true}, {record.Policy, 0.97, false}, {record.Calibrated, 0.5, true},
		{record.Forced, 0.5, false}, {record.Streamed, 0.5, false},
	} {
		l := speedups{mode: c.mode, values: []float64{1.8, c.low, 1.9}}
		require.Equal(t, c.fails, l.loses(), "%v", c)
	}
	low, median, high := record.SummaryOf([]float64{3, 1, 2, 4})
	require.Equal(t, [3]float64{1, 2.5, 4}, [3]float64{low, median, high})
}

// A calibration in numbers chosen by hand, as the record and the line show it.
func TestRecordCalibration(t *testing.T) {
	pairs := []multi.Pair{{Sharded: 100, Master: 110}, {Sharded: 100, Master: 120}, {Sharded: 100, Master: 130}}
	found := &multi.Calibration{
		Rows: 7, Pairs: pairs, Interval: multi.Interval{Low: math.Log(1.1), High: math.Log(1.3), Order: 1, Coverage: 0.75},
		Verdict: multi.VerdictShard, Candidate: 1, Weights: []float64{1, 0.5},
		Ladder: []multi.Rung{{Share: 0.5, Weights: []float64{1, 1}, Median: 2_000_000}, {Share: 1. / 3, Weights: []float64{1, 0.5}, Median: 1_000_000},
			{Weights: []float64{1, 0}, Median: 1_030_000}},
		Devices: []multi.CalibratedDevice{{Median: 5, Samples: []time.Duration{5}, Weight: 1}, {Median: 5, Samples: []time.Duration{5}, Weight: 1}},
	}
	c := recordCalibration(found, probeWorkload, 1)
	require.Equal(t, 1, *c.ChosenRung)
	require.InDelta(t, math.Log(1.02), *c.Threshold, 1e-15)
	require.Nil(t, c.PredictedShare)
	speedup := 1.19
	row := record.Row{Operation: "intersect", Multi: &record.Timing{}, Speedup: &speedup, Calibration: c}
	s := &task{trial: &trial{run: &run{record: &record.Record{}}}}
	alone := chunked.Plan{Kind: chunked.KindMaster}
	row.Flags = s.flags(side{calibration: c, plan: alone}, row)
	require.Equal(t, []string{record.FlagNearCrossover, record.FlagBelowFloor}, row.Flags, "2.9 percent are near")
	require.Equal(t, "calibration, x intersect: shard; gain 20.0% [10.0%, 30.0%] over 3 pairs of 7 rows; best sharded 1.00 ms, master only 1.03 ms (2.9% for sharding), re-timed 1.19x NEAR_CROSSOVER BELOW_FLOOR\n",
		calibrationLine("x", row))

	found.Verdict = multi.VerdictMaster
	require.Equal(t, 2, *recordCalibration(found, probeWorkload, 1).ChosenRung)
}

// What a streamed call could get wrong, one at a time.
func TestStreamedJudge(t *testing.T) {
	config, err := workload.Find(workload.Mini)
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		edit func(*streamedTask, *multi.CallInfo) (amiss int)
		want string
	}{
		{"all well", func(*streamedTask, *multi.CallInfo) int { return 0 }, ""},
		{"rows twice", func(*streamedTask, *multi.CallInfo) int { return 3 }, "3 of 96 rows did not come exactly once"},
		{"values", func(s *streamedTask, _ *multi.CallInfo) int { s.found.differ = []int64{2}; return 0 }, "2 of 1824 values differ"},
		{"record", func(s *streamedTask, _ *multi.CallInfo) int { s.found.rowBytes = 75; return 0 }, "75 record bytes"},
		{"wire", func(s *streamedTask, _ *multi.CallInfo) int { s.found.wireBytes = 5; return 0 }, "5 bytes back"},
		{"held", func(_ *streamedTask, i *multi.CallInfo) int { i.HighWater[0] = 1_040_000; return 0 }, "the call held 1040000 bytes"},
		{"pool", func(s *streamedTask, _ *multi.CallInfo) int { s.peaks.streamed.high[0] += 1_200_000; return 0 }, "the pool grew by 1200000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &streamedTask{trial: &trial{run: &run{host: &host{allocs: new(atomic.Uint64)}}, config: config, rays: config.Rays(96)}, op: intersect(), where: "x"}
			s.plan.PerDevice = []chunked.MemoryEstimate{{Peak: 1_000_000, Resident: 3}}
			s.peaks.streamed = peak{before: []int64{10}, high: []int64{10}}
			s.found = checked{rowBytes: 76, wireBytes: 4, elements: 1824, differ: []int64{0}}
			info := multi.CallInfo{HighWater: []int64{1_000_000}}
			s.judge(c.edit(s, &info), info)
			if c.want == "" {
				require.Empty(t, s.failures)
				return
			}
			require.Len(t, s.failures, 1)
			require.Contains(t, s.failures[0], c.want)
		})
	}
}

func TestAssemblyCountsRows(t *testing.T) {
	rows := int64(0)
	a := newAssembly(nil, [][]byte{make([]byte, 16)}, 4, &rows)
	require.Equal(t, 4, a.amiss(), "nothing has come")
	copy(a.delivered, []uint8{1, 1, 2, 0})
	require.Equal(t, 2, a.amiss())
	require.Equal(t, bytes.Repeat([]byte{0xa5}, 16), a.got[0], "what does not come is seen")
}
