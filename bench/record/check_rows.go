package record

import (
	"fmt"
	"math"
	"slices"
)

func (c *checker) config(name string, config Config) {
	for i, row := range config.Rows {
		where := fmt.Sprintf("configs.%s.rows[%d]", name, i)
		if config.Rays != nil && row.Batch.Unit == UnitRays {
			c.that(row.Batch.Count == config.Rays.Count, where+".batch.count",
				"is %d, the configuration has %d rays", row.Batch.Count, config.Rays.Count)
		}
		c.row(where, row)
	}
	for i, t := range config.Tracers {
		where := fmt.Sprintf("configs.%s.tracers[%d]", name, i)
		c.timing(where+".single", t.Single, c.rounds(where, t.Rounds))
		first := slices.IndexFunc(config.Tracers, func(other Tracer) bool { return other.Name == t.Name && other.Operation == t.Operation })
		c.that(first == i, where+".name", "%q occurs twice", t.Name)
	}
}

func (c *checker) row(where string, row Row) {
	n := len(c.r.Machine.Devices)
	rounds := c.rounds(where, row.Rounds)
	c.timing(where+".single", row.Single, rounds)
	if row.Multi != nil {
		c.timing(where+".multi", *row.Multi, rounds)
		c.speedup(where, row)
	}
	c.that((row.Multi != nil) == (n > 1), where+".multi", "present is %t with %d devices", row.Multi != nil, n)
	if row.Weights != nil {
		c.that(len(row.Weights) == n, where+".weights", "%d weights for %d devices", len(row.Weights), n)
	}
	if row.Plan != nil {
		c.plan(where+".plan", *row.Plan, row)
	}
	if row.RowBytes != nil {
		c.rowBytes(where+".row_bytes", *row.RowBytes)
	}
	if row.Agreement != nil {
		c.agreement(where+".agreement", *row.Agreement)
	}
	if row.GridDeviation != nil {
		c.gridDeviation(where+".grid_deviation", *row.GridDeviation)
	}
	if row.Hits != nil {
		c.that(*row.Hits <= row.Batch.Count, where+".hits", "%d hits in %d rows", *row.Hits, row.Batch.Count)
	}
	if row.Overlap != nil {
		c.overlap(where+".overlap", *row.Overlap, row.Single.ResolutionNS)
	}
	if row.PeakMemory != nil {
		c.peakMemory(where+".peak_memory", *row.PeakMemory)
	}
	if row.Calibration != nil {
		c.calibration(where+".calibration", *row.Calibration, row)
	}
	c.flags(where, row)
	c.columns(where, row)
}

// rounds returns in how many rounds a row was timed: those that were asked for, unless it says how many it was.
func (c *checker) rounds(where string, own int) int {
	asked := c.r.Parameters.Repeat
	if own == 0 {
		return asked
	}
	c.that(own >= asked, where+".rounds", "is %d, at least %d were asked for", own, asked)
	return own
}

func (c *checker) timing(where string, t Timing, rounds int) {
	if c.live() {
		c.that(t.ResolutionNS == 1, where+".resolution_ns", "a live time has resolution 1, not %d", t.ResolutionNS)
		c.that(len(t.SamplesNS) == rounds, where+".samples_ns", "%d samples of %d rounds", len(t.SamplesNS), rounds)
	}
	if len(t.SamplesNS) == 0 {
		return
	}
	low, median, high := Summary(t.SamplesNS)
	c.that(t.MinNS == low, where+".min_ns", "is %d, the smallest sample is %d", t.MinNS, low)
	c.that(t.MedianNS != nil && *t.MedianNS == median, where+".median_ns", "is not the median sample %d", median)
	c.that(t.MaxNS != nil && *t.MaxNS == high, where+".max_ns", "is not the largest sample %d", high)
}

// Summary returns the smallest, the median and the largest sample; the median of an even number is the mean of the two
// middle ones, rounded down. There must be at least one sample.
func Summary(samples []int64) (low, median, high int64) { return SummaryOf(samples) }

// SummaryOf is Summary for other numbers; nothing is rounded where they are not integers.
func SummaryOf[T int64 | float64](samples []T) (low, median, high T) {
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	return sorted[0], (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[n-1]
}

// speedup compares a computed speedup with the quotient of the minima, and a printed one with the quotients that the
// rounding of the two printed times and of the printed speedup itself allow.
func (c *checker) speedup(where string, row Row) {
	where += ".speedup"
	if row.Speedup == nil {
		c.that(false, where, "is missing beside a multi column")
		return
	}
	single, multi := float64(row.Single.MinNS), float64(row.Multi.MinNS)
	got := *row.Speedup
	if row.SpeedupSource == SpeedupComputed {
		c.that(multi > 0 && close9(got, single/multi), where, "is %g, %g/%g is %g", got, single, multi, single/multi)
		return
	}
	c.that(!c.live(), where+"_source", "a live speedup is computed")
	const printed = 0.005 // half a unit of the last of two decimals
	a, b := float64(row.Single.ResolutionNS)/2, float64(row.Multi.ResolutionNS)/2
	low, high := (single-a)/(multi+b)-printed, (single+a)/math.Max(multi-b, 1)+printed
	c.that(low <= got && got <= high, where, "is %g, the rounded times allow %.3f to %.3f", got, low, high)
}

func (c *checker) plan(where string, p Plan, row Row) {
	if !c.live() && p.PerDevice == nil {
		return
	}
	chunks, rows, largest := 0, int64(0), int64(0)
	var devices []int
	for _, d := range c.r.Machine.Devices {
		devices = append(devices, d.Index)
	}
	for i, d := range p.PerDevice {
		chunks, rows, largest = chunks+d.Chunks, rows+d.Rows, max(largest, d.ChunkRows)
		at := fmt.Sprintf("%s.per_device[%d]", where, i)
		c.that(slices.Contains(devices, d.Device), at+".device", "%d is not in the set", d.Device)
		c.that((d.Rows == 0) == (d.Chunks == 0), at, "%d rows in %d chunks", d.Rows, d.Chunks)
		c.that(d.ChunkRows <= d.Rows, at+".chunk_rows", "%d of %d rows", d.ChunkRows, d.Rows)
	}
	c.that(p.ChunkCount == chunks, where+".chunk_count", "is %d, the devices have %d", p.ChunkCount, chunks)
	c.that(rows == row.Batch.Count, where+".per_device", "%d rows of a batch of %d", rows, row.Batch.Count)
	c.that(p.ChunkRows == largest, where+".chunk_rows", "is %d, the largest chunk has %d", p.ChunkRows, largest)
}

// rowBytes compares measured and declared bytes. A record whose checks failed may hold the failure.
func (c *checker) rowBytes(where string, b RowBytes) {
	if c.live() && !c.passed() {
		return
	}
	if b.MeasuredOut != nil {
		c.that(*b.MeasuredOut == float64(b.DeclaredOut), where+".measured_out", "is %g, declared are %d", *b.MeasuredOut, b.DeclaredOut)
	}
	if b.MeasuredWireOut.Value != nil && b.WireOut != nil {
		c.that(*b.MeasuredWireOut.Value == float64(*b.WireOut), where+".measured_wire_out",
			"is %g, declared are %d", *b.MeasuredWireOut.Value, *b.WireOut)
	}
}

func (c *checker) agreement(where string, a Agreement) {
	if a.Status != StatusMeasured {
		return
	}
	scope := ScopeHitDistance
	if c.live() {
		scope = ScopeAllFields
		c.that(a.Elements != nil && a.Mismatches != nil, where, "a live agreement has elements and mismatches")
	}
	c.that(a.Scope == scope, where+".scope", "is %s in a record of kind %s", a.Scope, c.r.Provenance.Kind)
	if a.Elements == nil || a.Mismatches == nil || a.Fraction == nil {
		return
	}
	c.that(*a.Elements > 0 && *a.Mismatches <= *a.Elements, where, "%d mismatches of %d elements", *a.Mismatches, *a.Elements)
	want := Fraction(*a.Elements, *a.Mismatches)
	c.that(*a.Fraction == want, where+".fraction", "is %g, 1 - %d/%d is %g", *a.Fraction, *a.Mismatches, *a.Elements, want)
	c.that(*a.Mismatches == 0 || !c.passed(), where+".mismatches", "%d in a record whose checks passed", *a.Mismatches)
}

// Fraction returns 1 - mismatches/elements, and 0 without elements: an empty comparison agrees on nothing.
func Fraction(elements, mismatches int64) float64 {
	if elements == 0 {
		return 0
	}
	return 1 - float64(mismatches)/float64(elements)
}

func (c *checker) gridDeviation(where string, g GridDeviation) {
	if g.Status != StatusMeasured || !c.live() {
		return
	}
	c.that(g.Scope == "all_grids" && len(g.Grids) > 0 && g.CountersExact != nil, where, "a live deviation covers every grid and the counters")
	for i, grid := range g.Grids {
		c.that(grid.Mismatches == 0 || !c.passed(), fmt.Sprintf("%s.grids[%d].mismatches", where, i),
			"%d in a record whose checks passed", grid.Mismatches)
	}
}

func (c *checker) peakMemory(where string, p PeakMemory) {
	if p.Status != StatusMeasured {
		return
	}
	devices := c.r.Machine.Devices
	c.that(p.MasterDevice != nil && *p.MasterDevice == devices[0].Index, where+".master_device", "is not device %d, the first of the set", devices[0].Index)
	c.that(len(p.PerDeviceStreamed) == len(devices), where+".per_device_streamed",
		"%d entries for %d devices", len(p.PerDeviceStreamed), len(devices))
}

// overlap checks the residual: exact in a live record, within the rounding of three printed numbers in an import.
func (c *checker) overlap(where string, o Overlap, resolution int64) {
	tolerance := int64(0)
	if !c.live() {
		tolerance = 3 * resolution / 2
	}
	want := o.MeasuredNS - o.PerfectOverlapNS
	c.that(max(o.ResidualNS-want, want-o.ResidualNS) <= tolerance, where+".residual_ns", "is %d, measured - perfect is %d", o.ResidualNS, want)
	c.that((o.Model == ModelImport) != c.live(), where+".model", "%s in a record of kind %s", o.Model, c.r.Provenance.Kind)
}

// columns checks that digests are listed once each.
func (c *checker) columns(where string, row Row) {
	seen := map[string]bool{}
	for i, column := range row.Columns {
		c.that(!seen[column.Name], fmt.Sprintf("%s.columns[%d]", where, i), "%q occurs twice", column.Name)
		seen[column.Name] = true
	}
}
