package record

import (
	"math"
	"slices"
)

// Limits of the flags of a calibrated row.
const (
	nearCrossoverPercent = 5.0
	slowerThan           = 0.98
	contendedRatio       = 1.05
)

// Margin returns by how many percent of the master's time the best sharded split is faster, negative where it is slower.
func Margin(masterNS, bestShardedNS int64) float64 {
	return 100 * float64(masterNS-bestShardedNS) / float64(masterNS)
}

// BestSharded returns the smallest median over the rungs in which a remote has weight, and the master alone.
func (c Calibration) BestSharded() (best, master int64, ok bool) {
	best, master = math.MaxInt64, -1
	for _, r := range c.Rungs {
		switch {
		case r.Share > 0:
			best = min(best, r.MedianNS)
		default:
			master = r.MedianNS
		}
	}
	return best, master, best < math.MaxInt64 && master > 0
}

// Margin returns the margin that follows from a calibration, in percent: from the printed times of a ladder, or from the
// rungs. It is 0 where no rung was sharded.
func (c Calibration) Margin() float64 {
	if c.Method == MethodLadder {
		return *c.MarginPercent
	}
	best, master, ok := c.BestSharded()
	if !ok {
		return 0
	}
	return Margin(master, best)
}

func (c *checker) calibration(where string, cal Calibration, row Row) {
	if cal.Method == MethodLadder {
		c.ladder(where, cal, row)
		return
	}
	verdict := VerdictInconclusive
	switch {
	case cal.Interval.Low > *cal.Threshold:
		verdict = VerdictShard
	case cal.Interval.High < *cal.Threshold:
		verdict = VerdictMaster
	}
	c.that(cal.Verdict == verdict, where+".verdict", "is %s, interval [%g, %g] against %g gives %s",
		cal.Verdict, cal.Interval.Low, cal.Interval.High, *cal.Threshold, verdict)
	c.interval(where+".interval", cal)
	c.that(*cal.ChosenRung < len(cal.Rungs), where+".chosen_rung", "is %d of %d rungs", *cal.ChosenRung, len(cal.Rungs))
	n := len(c.r.Machine.Devices)
	c.that(len(cal.ThroughputNS) == n && len(cal.ThroughputWeights) == n, where+".throughput_ns",
		"%d times and %d weights for %d devices", len(cal.ThroughputNS), len(cal.ThroughputWeights), n)
	for _, r := range cal.Rungs {
		c.that(len(r.Weights) == n, where+".rungs", "%d weights for %d devices", len(r.Weights), n)
	}
}

// interval recomputes the bounds from the pairs: with d = ln(master/sharded) sorted, they are the order-th values from
// either end.
func (c *checker) interval(where string, cal Calibration) {
	n, j := len(cal.Pairs), cal.Interval.Order
	if 2*j > n+1 {
		c.that(false, where+".order", "%d of %d pairs", j, n)
		return
	}
	d := make([]float64, n)
	for i, p := range cal.Pairs {
		d[i] = math.Log(float64(p.MasterNS) / float64(p.ShardedNS))
	}
	slices.Sort(d)
	low, high := d[j-1], d[n-j]
	near := func(a, b float64) bool { return math.Abs(a-b) <= quotientTolerance*max(1, math.Abs(b)) }
	c.that(near(cal.Interval.Low, low) && near(cal.Interval.High, high), where,
		"is [%g, %g], the pairs give [%g, %g]", cal.Interval.Low, cal.Interval.High, low, high)
}

// ladder checks an imported decision: the margin within the rounding of the two printed times, and the verdict.
func (c *checker) ladder(where string, cal Calibration, row Row) {
	best, master := *cal.BestShardedNS, *cal.MasterOnlyNS
	half := row.Single.ResolutionNS / 2
	const printed = 0.05 // half a unit of the last of one decimal
	low, high := Margin(master-half, best+half)-printed, Margin(master+half, best-half)+printed
	m := *cal.MarginPercent
	c.that(low <= m && m <= high, where+".margin_percent", "is %g, the rounded times allow %.1f to %.1f", m, low, high)
	remote := false
	for _, w := range row.Weights[min(1, len(row.Weights)):] {
		remote = remote || w > 0
	}
	verdict := VerdictMasterAlone
	switch {
	case remote && m <= 0:
		verdict = VerdictOnTolerance
	case remote:
		verdict = VerdictMeasured
	}
	c.that(cal.Verdict == verdict, where+".verdict", "is %s, margin %g with a remote weight %t gives %s", cal.Verdict, m, remote, verdict)
}

// flags checks that the flag set follows from the numbers. Whether a decided split lies below the floors of the shipped
// policy does not follow from the record, so BELOW_FLOOR is only required to stand on a calibrated row.
func (c *checker) flags(where string, row Row) {
	want := Flags(row, c.r.Machine.Devices)
	got := slices.Clone(row.Flags)
	if row.Calibration != nil {
		got = slices.DeleteFunc(got, func(f string) bool { return f == FlagBelowFloor })
	}
	slices.Sort(got)
	slices.Sort(want)
	c.that(slices.Equal(got, want), where+".flags", "are %v, the numbers give %v", row.Flags, want)
}

// Flags returns the flags that follow from the numbers of a row, all but BELOW_FLOOR.
func Flags(row Row, devices []Device) []string {
	var flags []string
	if row.Multi == nil {
		flags = append(flags, FlagSingleDeviceOnly)
	}
	cal := row.Calibration
	if cal == nil {
		return flags
	}
	if m := cal.Margin(); cal.Verdict == VerdictInconclusive || math.Abs(m) <= nearCrossoverPercent {
		flags = append(flags, FlagNearCrossover)
	}
	if row.Speedup != nil && *row.Speedup < slowerThan {
		flags = append(flags, FlagSlower)
	}
	if cal.Verdict == VerdictOnTolerance {
		flags = append(flags, FlagKeptOnTolerance)
	}
	if contended(cal.ThroughputNS, devices) {
		flags = append(flags, FlagContended)
	}
	return flags
}

// contended reports whether two devices of one model differ by more than 5 % in the throughput stage.
func contended(ns []int64, devices []Device) bool {
	for i := range ns {
		for j := range i {
			if j < len(devices) && i < len(devices) && devices[i].Name == devices[j].Name &&
				float64(max(ns[i], ns[j])) > contendedRatio*float64(min(ns[i], ns[j])) {
				return true
			}
		}
	}
	return false
}
