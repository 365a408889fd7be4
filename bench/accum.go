package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

// accumTask is one accumulation of the fixture, on the master alone and on the set in each mode.
type accumTask struct {
	*run
	config   string
	samples  int64
	where    string
	single   *fixture
	inexact  *floatSums  // the same on the master with float atomics
	sides    []accumSide // empty with one device
	backend  string
	found    accumulated
	released bool
}

// accumSide is the set under the options of one mode.
type accumSide struct {
	mode   record.Mode
	set    *fixture // nil: reused
	plan   chunked.Plan
	reused bool // the plan is that of the forced mode, whose times and results count here too
}

// op describes the call of so many samples.
func (f *fixture) op(samples int64) chunked.Op {
	return multi.AccumDfrDirectOp(fixtureGrid(), int64(f.states.Count()), f.states.Bytes()+f.materials.Bytes(), fixtureOptions(samples))
}

// openAccum builds the fixture on the master, and once per mode with a plan of its own on the set.
func (r *run) openAccum(config string, samples int64, modes ...record.Mode) (t *accumTask, err error) {
	t = &accumTask{run: r, config: config, samples: samples, where: config + " " + record.OperationAccumDirect}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	single, err := scene.New(r.host.contexts[0], scene.Options{Backend: r.backend, Builder: r.host.builder()})
	if err != nil {
		return t, err
	}
	if t.single, err = openFixture(single); err != nil {
		return t, err
	}
	t.backend = single.Backend().String()
	if t.inexact, err = newFloatSums(single, t.single.states); err != nil {
		return t, err
	}
	if len(r.host.devices) == 1 {
		return t, nil
	}
	for _, mode := range modes {
		set, err := openSet(r.host, r.options, mode, 0, r.warnings)
		if err != nil {
			return t, err
		}
		side := accumSide{mode: mode}
		if side.plan, err = planOf(set, r.options, mode, t.single.op(samples), samples); err != nil {
			return t, errors.Join(err, set.Close())
		}
		if len(t.sides) > 0 && samePlan(t.sides[0].plan, side.plan) {
			side.reused = true
			err = set.Close()
		} else {
			side.set, err = openFixture(set.(radio))
		}
		if err != nil {
			return t, err
		}
		t.sides = append(t.sides, side)
	}
	return t, idle(r.host.contexts)()
}

// close gives everything back, once.
func (t *accumTask) close() error {
	if t.released {
		return nil
	}
	t.released = true
	errs := []error{t.inexact.close()}
	for _, f := range t.fixtures() {
		errs = append(errs, f.close())
	}
	for _, c := range t.host.contexts {
		errs = append(errs, c.Pool().Trim())
	}
	return errors.Join(errs...)
}

// fixtures are the fixture on the master and on every set, in the order of the timed variants.
func (t *accumTask) fixtures() []*fixture {
	var list []*fixture
	if t.single != nil {
		list = append(list, t.single)
	}
	for _, side := range t.sides {
		if !side.reused {
			list = append(list, side.set)
		}
	}
	return list
}

// time measures the fixtures.
func (t *accumTask) time() ([]samples, error) {
	var variants []variant
	for _, f := range t.fixtures() {
		variants = append(variants, f.timed(t.samples))
	}
	times, err := t.host.stopwatch(t.host.contexts).measure(variants, t.warmup, t.repeat)
	if err != nil {
		return nil, err
	}
	for i, s := range times {
		if s.allocs > 0 {
			t.fail(t.where, "%d driver allocations inside the samples of variant %d; accumulators must come from the pool", s.allocs, i)
		}
	}
	return times, nil
}

// accumulated is the outcome of the checks.
type accumulated struct {
	elements int64           // words, counters and cells
	differ   []int64         // of them, by fixture; the first is 0
	counters []bool          // equal to those of one device, by fixture
	grids    []gridOf        // the power, by fixture
	columns  []record.Column // digests of one device
}

// gridOf is a grid on the host.
type gridOf []float32

// check calls once more on every fixture, with words, and compares everything.
func (t *accumTask) check() (a accumulated, err error) {
	var first []hostColumn
	for i, f := range t.fixtures() {
		r, err := f.accumulate(t.samples, true)
		if err != nil {
			return a, err
		}
		list, err := accumColumns(f.Stream(), r)
		if err := errors.Join(err, r.Close()); err != nil {
			return a, err
		}
		a.grids = append(a.grids, floats(list[powerColumn].data))
		differ, counters := int64(0), true
		if i == 0 {
			first = list
		}
		for k, c := range list {
			if i == 0 {
				a.elements += int64(len(c.data) / c.size)
				a.columns = append(a.columns, record.Column{Name: c.name, SHA256: digestBytes(c.data)})
			}
			d := mismatches(first[k].data, c.data, c.size)
			differ += d
			counters = counters && (k != countersColumn || d == 0)
		}
		a.differ, a.counters = append(a.differ, differ), append(a.counters, counters)
		t.verify(list)
	}
	t.judge(a)
	return a, nil
}

// verify compares a result with what is known about the fixture: every sample counts, and the power is the integral
// within six standard errors.
func (t *accumTask) verify(list []hostColumn) {
	counters := longs(list[countersColumn].data)
	if want := []int64{t.samples, 0, 0, 0, t.samples, 0}; fmt.Sprint(counters) != fmt.Sprint(want) {
		t.fail(t.where, "counters (direct, Keller, rejected by visibility, rejected, edge uses, inactive) are %v, expected %v", counters, want)
	}
	power, variance := expectedPower()
	perPair := float64(t.samples) / float64(2*len(power))
	if perPair < 2 {
		return // too few to estimate anything
	}
	for c, got := range floats(list[powerColumn].data) {
		if bound := 6*math.Sqrt(variance[c]/math.Floor(perPair)) + 1e-6*power[c]; math.Abs(float64(got)-power[c]) > bound {
			t.fail(t.where, "the power of cell %d is %g, the integral %g, further apart than %g", c, got, power[c], bound)
		}
	}
}

func (t *accumTask) judge(a accumulated) {
	if norm(a.grids[0]) == 0 {
		t.fail(t.where, "vacuous: the power of every cell is 0")
	}
	at := 0
	for _, side := range t.sides {
		if !side.reused {
			at++
			if a.differ[at] > 0 {
				t.fail(t.where, "mode %s: %d of %d words, counters and cells differ from the one-device result", side.mode, a.differ[at], a.elements)
			}
		}
		if side.mode == record.Forced && !usesEveryDevice(side.plan) {
			t.fail(t.where, "the forced call did not use every device: %s", side.plan.Reason)
		}
	}
	if t.config == "" { // of a sweep
		return
	}
	fresh := pin{Config: t.config, Operation: record.OperationAccumDirect, Rows: t.samples, Columns: a.columns}
	t.fresh = append(t.fresh, fresh)
	if p, ok := t.pins.find(fresh); ok {
		for _, problem := range p.differ(a.columns) {
			t.fail(t.where, "%s", problem)
		}
	}
}

// norm is the sum of absolute values.
func norm(g gridOf) float64 {
	sum := 0.0
	for _, v := range g {
		sum += math.Abs(float64(v))
	}
	return sum
}

// rows makes the record's rows.
func (t *accumTask) rows(times []samples) []record.Row {
	row := record.Row{
		Operation: record.OperationAccumDirect, Mode: record.Forced, Backend: t.backend,
		Batch:  record.Batch{Count: t.samples, Unit: record.UnitSamples},
		Rounds: len(times[0].ns), Calls: times[0].calls, Single: times[0].timing(), Columns: t.found.columns,
	}
	if len(t.sides) == 0 {
		plan := wholePlan(t.host.devices[0], t.samples)
		plan.Source = chunked.SourceLanes
		row.Dispatch, row.Plan, row.Flags = "single", recordPlan(plan), []string{record.FlagSingleDeviceOnly}
		return []record.Row{row}
	}
	var rows []record.Row
	at := 0
	for _, side := range t.sides {
		next := row
		next.Mode, next.TimingSource = side.mode, record.TimingForcedRow
		if !side.reused {
			at++
			next.TimingSource = record.TimingMeasured
		}
		several := times[at].timing()
		speedup := float64(row.Single.MinNS) / float64(several.MinNS)
		next.Multi, next.Speedup, next.SpeedupSource = &several, &speedup, record.SpeedupComputed
		next.Dispatch, next.Transport = string(side.plan.Kind), side.plan.Transport.String()
		next.Weights, next.Plan = side.plan.Weights, recordPlan(side.plan)
		differ, fraction := t.found.differ[at], record.Fraction(t.found.elements, t.found.differ[at])
		next.Agreement = &record.Agreement{
			Status: record.StatusMeasured, Scope: record.ScopeAllFields,
			Elements: &t.found.elements, Mismatches: &differ, Fraction: &fraction,
		}
		next.GridDeviation = deviation(t.found.grids[0], t.found.grids[at], t.found.counters[at])
		rows = append(rows, next)
	}
	return rows
}

// deviation compares a power grid with that of one device.
func deviation(want, got gridOf, counters bool) *record.GridDeviation {
	g := record.GridAgreement{Name: "power", ReferenceL1: norm(want)}
	sum := 0.0
	for i := range want {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		sum += d
		g.MaxAbs = max(g.MaxAbs, d)
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			g.Mismatches++
		}
	}
	if g.ReferenceL1 > 0 {
		g.L1Relative = sum / g.ReferenceL1
	}
	return &record.GridDeviation{
		Status: record.StatusMeasured, Scope: "all_grids", L1Relative: &g.L1Relative, CountersExact: &counters, Grids: []record.GridAgreement{g},
	}
}

// accumulation measures the row of AccumDfrDirect of a configuration.
func (s *trial) accumulation() error {
	t, err := s.openAccum(s.config.Name, s.samples(), record.Forced, record.Policy)
	if err != nil {
		return err
	}
	s.later(t.close)
	times, err := t.time()
	if err != nil {
		return fmt.Errorf("%s: %w", t.where, err)
	}
	if t.found, err = t.check(); err != nil {
		return fmt.Errorf("%s: %w", t.where, err)
	}
	rows := t.rows(times)
	s.storeRows(rows)
	t.report(rows)
	if err := t.compareFloats(times[0]); err != nil {
		return fmt.Errorf("%s: %w", t.where, err)
	}
	s.repeated = append(s.repeated, t)
	return nil
}

// emulatedSamples is the most samples of an accumulation on emulated devices, unless more are asked for.
const emulatedSamples = 1 << 13

// samples is the number of samples of the configuration's accumulation.
func (s *trial) samples() int64 {
	if s.accumSamples > 0 {
		return s.accumSamples
	}
	if s.host.driver.Emulated() {
		return min(int64(s.config.AccumSamples), emulatedSamples)
	}
	return int64(s.config.AccumSamples)
}

// remeasure is part of repeatable.
func (t *accumTask) remeasure() ([]record.Row, error) {
	times, err := t.time()
	if err != nil {
		return nil, err
	}
	return t.rows(times), nil
}

// report prints the rows, the agreement of the set with one device, and the digests of the columns.
func (t *accumTask) report(rows []record.Row) {
	for _, row := range rows {
		fmt.Fprint(t.out, tableLine(t.config, row))
	}
	for _, row := range rows {
		if a := row.Agreement; a != nil {
			fmt.Fprintf(t.out, "agreement, %s %s %s: %s (%d of %d words, counters and cells differ)\n",
				t.config, row.Operation, row.Mode, agreementText(*a.Fraction), *a.Mismatches, *a.Elements)
		}
	}
	fmt.Fprintf(t.out, "SHA-256, %s, ", t.where)
	t.printColumns(pin{Config: t.config, Operation: record.OperationAccumDirect, Rows: t.samples}, t.found.columns, true)
}

// Columns of AccumDfrDirect.
const (
	powerColumn = iota
	countersColumn
)

// accumColumns brings all of a result with words to the host.
func accumColumns(st *cuda.Stream, r *scene.DfrAccum) ([]hostColumn, error) {
	list, err := directOutcome(r).columns()
	if err != nil {
		return nil, err
	}
	return hostColumns(st, list)
}
