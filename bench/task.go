package main

import (
	"errors"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// task is one operation of a configuration.
type task struct {
	*trial
	op         operation
	where      string // prefix of failed checks
	sides      []side // the set in each mode; empty with one device
	contenders []contender
	again      bool // the result of one device was checked and shown with other rows
	found      checked
}

// side is the device set under the options of one mode.
type side struct {
	mode   record.Mode
	set    deviceSet
	plan   chunked.Plan
	reused bool // the plan is that of the forced mode, whose times and results count here too
	// calibration is what chose the weights of the plan, in calibrated mode.
	calibration *record.Calibration
}

// task prepares an operation.
func (s *trial) task(op operation) (*task, error) {
	t := &task{trial: s, op: op, where: s.config.Name + " " + op.name, contenders: s.contenders(op)}
	if s.forced == nil {
		return t, nil
	}
	forced, err := s.plan(op, record.Forced)
	if err != nil {
		return nil, err
	}
	policy, err := s.plan(op, record.Policy)
	if err != nil {
		return nil, err
	}
	t.sides = []side{
		{mode: record.Forced, set: s.forced, plan: forced},
		{mode: record.Policy, set: s.policy, plan: policy, reused: samePlan(forced, policy)},
	}
	return t, nil
}

// run measures, checks, records and prints.
func (s *task) run() error {
	times, err := s.time()
	if err != nil {
		return err
	}
	if s.found, err = s.check(); err != nil {
		return err
	}
	rows, tracers := s.rows(times, s.found), s.recordTracers(times)
	s.store(rows, tracers)
	s.report(rows, s.found)
	s.printTracers(tracers)
	return nil
}

// remeasure is part of repeatable: the rows with new times, without the other tracers of the master.
func (s *task) remeasure() ([]record.Row, error) {
	s.contenders = nil
	times, err := s.time()
	if err != nil {
		return nil, err
	}
	return s.rows(times, s.found), nil
}

// tracers returns the scene on the master and then every set with a plan of its own, in the order of the timed variants.
func (s *task) tracers() []tracer {
	list := []tracer{s.single}
	for _, side := range s.sides {
		if !side.reused {
			list = append(list, side.set)
		}
	}
	return list
}

// time measures every tracer on the whole batch: those of tracers, then the contenders.
func (s *task) time() ([]samples, error) {
	var variants []variant
	for _, t := range s.tracers() {
		variants = append(variants, s.op.timed(t, s.batch))
	}
	for _, c := range s.contenders {
		variants = append(variants, c.variant)
	}
	times, err := s.host.stopwatch(s.host.contexts).measure(variants, s.warmup, s.repeat)
	if err != nil {
		return nil, err
	}
	for i, t := range times {
		if t.allocs > 0 {
			s.fail(s.where, "%d driver allocations inside the samples of variant %d; result buffers must come from the pool", t.allocs, i)
		}
	}
	return times, nil
}

// checked is the outcome of the correctness checks: the master's result, and how each side differs from it.
type checked struct {
	digests  digests
	rowBytes float64
	// wireBytes is the width of the winner column, which is all that a remote row sends back.
	wireBytes float64
	hits      int64
	bounces   []int64 // rows that have each bounce; of chains alone
	elements  int64
	differ    []int64 // values that differ, by tracer; the first is 0
}

// prefixRows are the leading rows whose digests are pinned too, because emulated devices can trace that many.
var prefixRows = map[string]int64{workload.Light: 1 << 16, workload.Compute: 1 << 12}

// check calls once more on every side and compares every column value by value, one column at a time.
func (s *task) check() (c checked, err error) {
	tracers := s.tracers()
	c.differ = make([]int64, len(tracers))
	results := make([][]column, len(tracers))
	var held []func() error
	defer func() {
		for _, release := range held {
			err = errors.Join(err, release())
		}
	}()
	for i, t := range tracers {
		out, err := s.op.call(t, s.batch)
		if err != nil {
			return c, err
		}
		held = append(held, out.close)
		if results[i], err = out.columns(); err != nil {
			return c, err
		}
	}
	if err := idle(s.host.contexts)(); err != nil {
		return c, err
	}
	if err := s.compare(results[0]); err != nil {
		return c, err
	}
	var known answers
	bytes := int64(0)
	for at, column := range results[0] {
		reference, err := column.download(background, s.stream)
		if err != nil {
			return c, err
		}
		bytes += int64(len(reference))
		c.elements += int64(len(reference) / column.size)
		c.digests.add(column.name, reference, s.rowCount(), prefixRows[s.config.Name])
		known.take(column.name, reference)
		for i := range results[1:] {
			other, err := results[i+1][at].download(background, s.stream)
			if err != nil {
				return c, err
			}
			c.differ[i+1] += mismatches(reference, other, column.size)
		}
	}
	c.rowBytes = float64(bytes) / float64(s.rowCount())
	if c.wireBytes, err = s.op.wireBytes(s.single, s.batch); err != nil {
		return c, err
	}
	c.hits = known.hits()
	if known.valid != nil {
		c.bounces = bouncesOf(known.valid, len(known.valid)/int(s.rowCount()))
		c.hits = c.bounces[0]
	}
	s.judge(c, known)
	return c, nil
}

// judge turns what was found into failed checks.
func (s *task) judge(c checked, known answers) {
	for _, problem := range s.op.verify(s.trial, known) {
		s.fail(s.where, "%s", problem)
	}
	at := 0
	for _, side := range s.sides {
		if !side.reused {
			at++
			if c.differ[at] > 0 {
				s.fail(s.where, "mode %s: %d of %d values differ from the one-device result", side.mode, c.differ[at], c.elements)
			}
		}
		if side.mode == record.Forced && !usesEveryDevice(side.plan) {
			s.fail(s.where, "the forced call did not use every device: %s", side.plan.Reason)
		}
	}
	if declared := s.op.plan.Record; c.rowBytes != float64(declared) {
		s.fail(s.where, "a row has %g record bytes, declared are %d", c.rowBytes, declared)
	}
	if declared := s.op.plan.Wire; c.wireBytes != float64(declared) {
		s.fail(s.where, "a remote row sends %g bytes back, declared are %d", c.wireBytes, declared)
	}
	if s.again {
		return
	}
	s.pinned(s.rowCount(), c.digests.all)
	if c.digests.prefix != nil {
		s.pinned(prefixRows[s.config.Name], c.digests.prefix)
	}
}

// usesEveryDevice reports whether each device has rows, as far as there are enough.
func usesEveryDevice(p chunked.Plan) bool {
	used := int64(0)
	for _, shard := range p.Shards {
		if shard.Len() > 0 {
			used++
		}
	}
	return used == min(p.Rows, int64(len(p.Shards)))
}

// canonical reports whether every column is that of the canonical triangle test. OptiX may name another triangle where a
// ray meets an edge, so its digests are nobody's business.
func (s *trial) canonical() bool { return s.single == nil || s.single.Backend() != scene.OptiX }

// pinned compares column digests with the committed ones and keeps them for --pin.
func (s *task) pinned(rows int64, columns []record.Column) {
	if !s.canonical() {
		return
	}
	fresh := pin{Config: s.config.Name, Operation: s.op.name, Rows: rows, Columns: columns}
	s.fresh = append(s.fresh, fresh)
	if p, ok := s.pins.find(fresh); ok {
		for _, problem := range p.differ(columns) {
			s.fail(s.where, "%s", problem)
		}
	}
}
