package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

// Probes of a calibration, as the record calls them.
const (
	probeWorkload = "workload" // the calls of the rows
	probeDefault  = "default"  // that of package multi
)

// gainThreshold is the least ln(master/sharded) that CalibrateDevices calls a gain: two percent.
const gainThreshold = 0.0198026272961797

// calibrated measures the operations on a set with the shipped options and the weights that calibrations chose.
func (s *trial) calibrated() error {
	set, err := s.openSet(record.Calibrated)
	if err != nil {
		return err
	}
	probe, err := s.openProbe()
	if err != nil {
		return err
	}
	rows, repeats := probe.rows, s.calibrationRepeats
	s.record.Parameters.CalibrationRows, s.record.Parameters.CalibrationRepeats = &rows, &repeats
	for _, op := range operations(s.config) {
		t := &calibratedTask{task: &task{trial: s, op: op, where: s.config.Name + " " + op.name, again: true}, probe: probe}
		t.sides = []side{{mode: record.Calibrated, set: set}}
		if err := t.calibrate(); err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		if err := t.run(); err != nil {
			return fmt.Errorf("%s, calibrated: %w", op.name, err)
		}
		s.repeated = append(s.repeated, t)
	}
	return nil
}

// calibratedTask is a task whose set is calibrated before it is timed.
type calibratedTask struct {
	*task
	probe *workloadProbe
}

// calibrate has the set decide its weights, and plans the batch with them.
func (s *calibratedTask) calibrate() error {
	side := &s.sides[0]
	probe, done := s.probe.of(s.op, s.trial.run.probe, s.calibrationRepeats)
	found, err := side.set.CalibrateDevices(background, probe)
	if err = errors.Join(err, idle(s.host.contexts)(), done()); err != nil {
		return err
	}
	side.calibration = recordCalibration(found, s.trial.run.probe, s.calibrationRepeats)
	side.plan, err = side.set.Plan(s.op.plan, s.rowCount())
	return err
}

// remeasure is part of repeatable: a new decision each time.
func (s *calibratedTask) remeasure() ([]record.Row, error) {
	if err := s.calibrate(); err != nil {
		return nil, err
	}
	return s.task.remeasure()
}

// workloadProbe has the leading rows of the batch on every device.
type workloadProbe struct {
	rows    int64
	batches map[int]scene.Rays // by ordinal
}

// openProbe copies the rows of the probe to every device.
func (s *trial) openProbe() (*workloadProbe, error) {
	p := &workloadProbe{rows: s.rowCount(), batches: map[int]scene.Rays{}}
	if s.calibrationRows > 0 {
		p.rows = min(p.rows, s.calibrationRows)
	}
	for _, c := range s.host.contexts {
		st, err := c.NewStream(cuda.StreamOptions{})
		if err != nil {
			return nil, err
		}
		s.later(st.Close)
		o, err := cuda.Upload(background, st, s.rays.Origins[:3*p.rows])
		if err != nil {
			return nil, err
		}
		s.later(func() error { return cuda.Free(o) })
		d, err := cuda.Upload(background, st, s.rays.Directions[:3*p.rows])
		if err != nil {
			return nil, err
		}
		s.later(func() error { return cuda.Free(d) })
		p.batches[c.Device().Ordinal()] = scene.Rays{O: o, D: d}
	}
	return p, nil
}

// recordCalibration is the record's form of a calibration.
func recordCalibration(c *multi.Calibration, probe string, repeats int) *record.Calibration {
	threshold := gainThreshold
	r := &record.Calibration{
		Method: record.MethodPairedInterval, Verdict: string(c.Verdict), Threshold: &threshold,
		Interval: &record.Interval{Low: c.Interval.Low, High: c.Interval.High, Order: c.Interval.Order, Coverage: c.Interval.Coverage},
		Probe:    probe, Rows: c.Rows, Repeats: repeats,
	}
	for _, p := range c.Pairs {
		r.Pairs = append(r.Pairs, record.Pair{ShardedNS: p.Sharded.Nanoseconds(), MasterNS: p.Master.Nanoseconds()})
	}
	for _, g := range c.Ladder {
		r.Rungs = append(r.Rungs, record.Rung{Share: g.Share, Weights: g.Weights, MedianNS: g.Median.Nanoseconds()})
	}
	chosen := c.Candidate
	if c.Verdict != multi.VerdictShard {
		if at := slices.IndexFunc(c.Ladder, func(g multi.Rung) bool { return g.Share == 0 }); at >= 0 {
			chosen = at
		}
	}
	r.ChosenRung = &chosen
	for _, d := range c.Devices {
		var ns []int64
		for _, t := range d.Samples {
			ns = append(ns, t.Nanoseconds())
		}
		r.ThroughputNS = append(r.ThroughputNS, d.Median.Nanoseconds())
		r.ThroughputSamplesNS = append(r.ThroughputSamplesNS, ns)
		r.ThroughputWeights = append(r.ThroughputWeights, d.Weight)
	}
	if c.Model != nil {
		share := min(max(c.Model.Share, 0), 1)
		r.PredictedShare = &share
	}
	return r
}

// flags of a row: those that follow from its numbers, and whether the floors overrule what the calibration decided.
func (s *task) flags(side side, row record.Row) []string {
	list := record.Flags(row, s.record.Machine.Devices)
	if c := side.calibration; c != nil && c.Verdict == record.VerdictShard && side.plan.Kind.Whole() {
		list = append(list, record.FlagBelowFloor)
	}
	return list
}

// calibrationLine says how close a decision was.
func calibrationLine(config string, row record.Row) string {
	c := row.Calibration
	d := make([]float64, len(c.Pairs))
	for i, p := range c.Pairs {
		d[i] = math.Log(float64(p.MasterNS) / float64(p.ShardedNS))
	}
	slices.Sort(d)
	percent := func(x float64) float64 { return 100 * math.Expm1(x) }
	median := (d[(len(d)-1)/2] + d[len(d)/2]) / 2
	best, master := absent, absent
	if b, m, ok := c.BestSharded(); ok {
		best, master = milliseconds(b), milliseconds(m)
	}
	return fmt.Sprintf("calibration, %s %s: %s; gain %.1f%% [%.1f%%, %.1f%%] over %d pairs of %d rows; best sharded %s ms, master only %s ms (%.1f%% for sharding), re-timed %.2fx %s\n",
		config, row.Operation, c.Verdict, percent(median), percent(c.Interval.Low), percent(c.Interval.High), len(c.Pairs), c.Rows,
		best, master, c.Margin(), *row.Speedup, strings.Join(row.Flags, " "))
}
