package record

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each case makes one number of a valid record contradict the others; the rule that notices names the place.
func TestCheckRefuses(t *testing.T) {
	row := func(r *Record, i int) *Row { return &r.Configs["mini"].Rows[i] }
	rows := "configs.mini.rows"
	for _, c := range []struct {
		name   string
		where  string
		mutate func(r *Record)
	}{
		{"missing ordered pair", "machine.peer_access.pairs", func(r *Record) {
			r.Machine.PeerAccess.Pairs = append(r.Machine.PeerAccess.Pairs[:1], PeerPair{Source: 0, Destination: 1, CanAccess: true})
		}},
		{"all pairs not the AND", "machine.peer_access.all_pairs_accessible", func(r *Record) { r.Machine.PeerAccess.Pairs[1].CanAccess = false }},
		{"weights length", rows + "[0].weights", func(r *Record) { row(r, 0).Weights = []float64{1} }},
		{"chunk count", rows + "[0].plan.chunk_count", func(r *Record) { row(r, 0).Plan.ChunkCount = 3 }},
		{"fraction", rows + "[0].agreement.fraction", func(r *Record) { row(r, 0).Agreement.Mismatches = ptr(int64(1)) }},
		{"flag not following", rows + "[1].flags", func(r *Record) { row(r, 1).Flags = []string{FlagNearCrossover} }},
		{"speedup", rows + "[0].speedup", func(r *Record) { row(r, 0).Speedup = ptr(1.2500001) }},
		{"passed with failures", "checks.passed", func(r *Record) { r.Checks.Failures = []string{"x"} }},

		{"failed without failures", "checks.passed", func(r *Record) { r.Checks.Passed = false }},
		{"mismatch in a passed record", rows + "[0].agreement.mismatches", func(r *Record) {
			row(r, 0).Agreement.Mismatches, row(r, 0).Agreement.Fraction = ptr(int64(38)), ptr(0.75)
		}},
		{"live agreement of one field", rows + "[0].agreement.scope", func(r *Record) { row(r, 0).Agreement.Scope = ScopeHitDistance }},
		{"device count", "machine.device_count", func(r *Record) { r.Machine.DeviceCount = 3 }},
		{"device twice", "machine.devices[1].index", func(r *Record) { r.Machine.Devices[1].Index = 0 }},
		{"pair with itself", "machine.peer_access.pairs[1]", func(r *Record) {
			r.Machine.PeerAccess.Pairs[1].Source = 0
			r.Machine.PeerAccess.Pairs[1].Destination = 0
		}},
		{"link rate", "machine.links[0].bytes_per_second", func(r *Record) { r.Machine.Links[0].BytesPerSecond = 1e9 }},
		{"missing link", "machine.links", func(r *Record) { r.Machine.Links = r.Machine.Links[:2] }},
		{"link without time", "machine.links[0].min_ns", func(r *Record) { r.Machine.Links[0].MinNS = 0 }},
		{"no links on real devices", "machine.links", func(r *Record) { r.Machine.Links = nil }},
		{"usage of a stranger", "machine.contention", func(r *Record) { r.Machine.Contention.Before[0].Device = 4 }},
		{"generated in month 13", "provenance.generated_at", func(r *Record) { r.Provenance.GeneratedAt = "2026-13-29T12:00:00Z" }},
		{"selected configuration without rows", "parameters.selected_configs", func(r *Record) { r.Parameters.SelectedConfigs = []string{"mini", "light"} }},
		{"batch", rows + "[0].batch.count", func(r *Record) { row(r, 0).Batch.Count = 9 }},
		{"min not a sample", rows + "[0].single.min_ns", func(r *Record) { row(r, 0).Single.MinNS = 999 }},
		{"median", rows + "[0].single.median_ns", func(r *Record) { row(r, 0).Single.MedianNS = ptr(int64(1200)) }},
		{"max", rows + "[0].multi.max_ns", func(r *Record) { row(r, 0).Multi.MaxNS = ptr(int64(951)) }},
		{"sample count", rows + "[0].single.samples_ns", func(r *Record) { r.Parameters.Repeat = 4 }},
		{"fewer samples than rounds", rows + "[0].single.samples_ns", func(r *Record) { row(r, 0).Rounds = 4 }},
		{"fewer samples of the set", rows + "[3].multi.samples_ns", func(r *Record) { row(r, 3).Multi.SamplesNS = row(r, 3).Multi.SamplesNS[:3] }},
		{"fewer rounds than asked for", rows + "[3].rounds", func(r *Record) { r.Parameters.Repeat = 5 }},
		{"samples of a tracer", "configs.mini.tracers[1].single.samples_ns", func(r *Record) { r.Configs["mini"].Tracers[1].Rounds = 5 }},
		{"live resolution", rows + "[0].single.resolution_ns", func(r *Record) { row(r, 0).Single.ResolutionNS = 10000 }},
		{"no multi on two devices", rows + "[0].multi", func(r *Record) { row(r, 0).Multi = nil }},
		{"printed live speedup", rows + "[0].speedup_source", func(r *Record) { row(r, 0).SpeedupSource = SpeedupAsPrinted }},
		{"rows not the batch", rows + "[0].plan.per_device", func(r *Record) { row(r, 0).Plan.PerDevice[1].Rows = 5 }},
		{"rows without chunks", rows + "[0].plan.per_device[1]", func(r *Record) { row(r, 0).Plan.PerDevice[1].Chunks = 0 }},
		{"largest chunk", rows + "[0].plan.chunk_rows", func(r *Record) { row(r, 0).Plan.ChunkRows = 8 }},
		{"plan of a stranger", rows + "[0].plan.per_device[1].device", func(r *Record) { row(r, 0).Plan.PerDevice[1].Device = 7 }},
		{"record bytes", rows + "[0].row_bytes.measured_out", func(r *Record) { row(r, 0).RowBytes.MeasuredOut = ptr(75.0) }},
		{"wire bytes", rows + "[0].row_bytes.measured_wire_out", func(r *Record) { row(r, 0).RowBytes.MeasuredWireOut = Number(8) }},
		{"more hits than rows", rows + "[0].hits", func(r *Record) { row(r, 0).Hits = ptr(int64(9)) }},
		{"column twice", rows + "[0].columns[1]", func(r *Record) { row(r, 0).Columns[1].Name = "t" }},
		{"residual", rows + "[0].overlap.residual_ns", func(r *Record) { row(r, 0).Overlap.ResidualNS = 101 }},
		{"imported model", rows + "[0].overlap.model", func(r *Record) { row(r, 0).Overlap.Model = ModelImport }},
		{"grid mismatch in a passed record", rows + "[2].grid_deviation.grids[0].mismatches", func(r *Record) { row(r, 2).GridDeviation.Grids[0].Mismatches = 1 }},
		{"no grids", rows + "[2].grid_deviation", func(r *Record) { row(r, 2).GridDeviation.Grids = nil }},
		{"peak of another master", rows + "[3].peak_memory.master_device", func(r *Record) { row(r, 3).PeakMemory.MasterDevice = ptr(1) }},
		{"peak of one device", rows + "[3].peak_memory.per_device_streamed", func(r *Record) { row(r, 3).PeakMemory.PerDeviceStreamed = row(r, 3).PeakMemory.PerDeviceStreamed[:1] }},
		{"verdict", rows + "[1].calibration.verdict", func(r *Record) { row(r, 1).Calibration.Verdict = VerdictMaster }},
		{"interval", rows + "[1].calibration.interval", func(r *Record) { row(r, 1).Calibration.Interval.High = 0.6 }},
		{"interval order", rows + "[1].calibration.interval.order", func(r *Record) { row(r, 1).Calibration.Interval.Order = 3 }},
		{"chosen rung", rows + "[1].calibration.chosen_rung", func(r *Record) { row(r, 1).Calibration.ChosenRung = ptr(2) }},
		{"throughput of one device", rows + "[1].calibration.throughput_ns", func(r *Record) { row(r, 1).Calibration.ThroughputNS = []int64{1} }},
		{"study row too short", "studies[0].rows[0]", func(r *Record) {
			r.Studies = []Study{{ID: "a", SourceSection: "1", Description: "d", Columns: []StudyColumn{{"x", "-"}, {"y", "-"}}, Rows: [][]any{{1.0}}}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := liveRecord()
			require.NoError(t, Check(r), "the record is consistent before the edit")
			c.mutate(r)
			err := Check(r)
			require.ErrorIs(t, err, ErrRule)
			require.Contains(t, places(err), c.where)
			_, err = r.Encode()
			require.Error(t, err, "a contradicting record is not written")
		})
	}
}

// places returns the location of every broken rule.
func places(err error) []string {
	var found []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var rule *RuleError
		if errors.As(e, &rule) {
			found = append(found, rule.Where)
		}
	}
	return found
}

// A run whose checks failed still gives a valid record, with the failure in it.
func TestCheckAcceptsRecordedFailure(t *testing.T) {
	r := liveRecord()
	row := &r.Configs["mini"].Rows[0]
	row.Agreement.Mismatches, row.Agreement.Fraction = ptr(int64(38)), ptr(0.75)
	row.RowBytes.MeasuredOut = ptr(75.0)
	r.Checks = &Checks{Passed: false, Failures: []string{"38 words differ"}}
	_, err := r.Encode()
	require.NoError(t, err)
}

// The same rules on rounded numbers, on the published record.
func TestCheckImport(t *testing.T) {
	for _, c := range []struct {
		name, where string
		mutate      func(light []Row)
	}{
		{"printed speedup out of rounding", "configs.light.rows[0].speedup", func(r []Row) { r[0].Speedup = ptr(0.29) }},
		{"residual out of rounding", "configs.light.rows[0].overlap.residual_ns", func(r []Row) { r[0].Overlap.ResidualNS += 20000 }},
		{"margin out of rounding", "configs.light.rows[2].calibration.margin_percent", func(r []Row) { r[2].Calibration.MarginPercent = ptr(-160.0) }},
		{"verdict of a kept remote", "configs.light.rows[2].calibration.verdict", func(r []Row) { r[2].Weights[1] = 0.25 }},
		{"all fields claimed", "configs.light.rows[0].agreement.scope", func(r []Row) { r[0].Agreement.Scope = ScopeAllFields }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Decode(historical(t))
			require.NoError(t, err)
			c.mutate(r.Configs["light"].Rows)
			err = Check(r)
			require.ErrorIs(t, err, ErrRule)
			require.Contains(t, places(err), c.where)
		})
	}
}

func TestOneDeviceRecord(t *testing.T) {
	r := liveRecord()
	m := &r.Machine
	m.DeviceCount, m.Devices, m.Links = 1, m.Devices[:1], []Link{}
	m.PeerAccess = PeerAccess{Status: PeerNotApplicable, Pairs: []PeerPair{}}
	m.Contention.After = nil
	row := r.Configs["mini"].Rows[0]
	row.Multi, row.Speedup, row.SpeedupSource, row.Transport = nil, nil, "", ""
	row.Dispatch, row.Weights, row.Overlap, row.Agreement = "single", nil, nil, nil
	row.Plan = &Plan{Source: "shard", ChunkRows: 8, ChunkCount: 1, PerDevice: []DevicePlan{{0, 8, 1, 8}}}
	row.RowBytes.MeasuredWireOut = Null()
	row.Flags = []string{FlagSingleDeviceOnly}
	r.Configs["mini"] = Config{Note: "one", MaxBounces: 1, AccumSamples: 1, Geometry: r.Configs["mini"].Geometry, Rays: r.Configs["mini"].Rays, Rows: []Row{row}}
	_, err := r.Encode()
	require.NoError(t, err)

	r.Machine.PeerAccess.Status = PeerMeasured
	require.Contains(t, places(Check(r)), "machine.peer_access.status")
}

func TestMargin(t *testing.T) {
	for _, c := range []struct {
		master, best int64
		want         float64
		near         bool
		imported     string // verdict of an imported ladder that kept a remote, empty for one that did not
	}{
		{16990, 9540, 43.85, false, VerdictMeasured},
		{1281, 1311, -2.34, true, VerdictOnTolerance},
		{1293, 1420, -9.82, false, ""},
		{1281, 1300, -1.48, true, VerdictOnTolerance},
	} {
		require.InDelta(t, c.want, Margin(c.master, c.best), 0.005)
		row := ladderRow(Margin(c.master, c.best), c.imported)
		require.Equal(t, c.near, contains(Flags(row, nil), FlagNearCrossover), "%d %d", c.master, c.best)
		require.Equal(t, c.imported == VerdictOnTolerance, contains(Flags(row, nil), FlagKeptOnTolerance))
	}
}

func ladderRow(margin float64, verdict string) Row {
	if verdict == "" {
		verdict = VerdictMasterAlone
	}
	return Row{Multi: &Timing{}, Speedup: ptr(1.0), Calibration: &Calibration{Method: MethodLadder, Verdict: verdict, MarginPercent: &margin}}
}

func contains(flags []string, flag string) bool {
	for _, f := range flags {
		if f == flag {
			return true
		}
	}
	return false
}

func TestFlagBoundaries(t *testing.T) {
	for _, c := range []struct {
		margin float64
		want   bool
	}{{5, true}, {-5, true}, {5.0001, false}, {-5.0001, false}} {
		require.Equal(t, c.want, contains(Flags(ladderRow(c.margin, ""), nil), FlagNearCrossover), "margin %g", c.margin)
	}
	for _, c := range []struct {
		speedup float64
		want    bool
	}{{0.98, false}, {0.9799, true}} {
		row := ladderRow(50, "")
		row.Speedup = &c.speedup
		require.Equal(t, c.want, contains(Flags(row, nil), FlagSlower), "speedup %g", c.speedup)
	}
	same := []Device{{Name: "A"}, {Name: "A"}}
	for _, c := range []struct {
		devices []Device
		ns      []int64
		want    bool
	}{{same, []int64{100, 105}, false}, {same, []int64{100, 106}, true}, {[]Device{{Name: "A"}, {Name: "B"}}, []int64{100, 200}, false}} {
		row := ladderRow(50, "")
		row.Calibration.ThroughputNS = c.ns
		require.Equal(t, c.want, contains(Flags(row, c.devices), FlagContended), "%v", c.ns)
	}
	inconclusive := Row{Multi: &Timing{}, Calibration: &Calibration{Method: MethodPairedInterval, Verdict: VerdictInconclusive,
		Rungs: []Rung{{Share: 1, MedianNS: 1}, {Share: 0, MedianNS: 100}}}}
	require.True(t, contains(Flags(inconclusive, nil), FlagNearCrossover))
	inconclusive.Calibration.Verdict = VerdictShard
	require.False(t, contains(Flags(inconclusive, nil), FlagNearCrossover))
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		samples           []int64
		low, median, high int64
	}{
		{[]int64{5}, 5, 5, 5},
		{[]int64{9, 1, 4}, 1, 4, 9},
		{[]int64{8, 1, 5, 2}, 1, 3, 8}, // (2 + 5) / 2 rounded down
	} {
		low, median, high := Summary(c.samples)
		require.Equal(t, [3]int64{c.low, c.median, c.high}, [3]int64{low, median, high}, fmt.Sprint(c.samples))
	}
}

func TestFraction(t *testing.T) {
	require.Equal(t, 1.0, Fraction(76, 0))
	require.Equal(t, 0.75, Fraction(4, 1))
	require.Zero(t, Fraction(0, 0), "comparing nothing is no agreement")
	require.False(t, math.IsNaN(Fraction(0, 0)))
}
