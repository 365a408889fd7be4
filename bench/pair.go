package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/scene"
)

// pairing is one configuration on the master alone and on the set with equal shares, for the studies of the set.
type pairing struct{ *trial }

// openPairing builds the scenes and uploads so many rows.
func (r *run) openPairing(config workload.Config, rows int) (p *pairing, err error) {
	s := &trial{run: r, config: config, meshes: config.Meshes(), rays: config.Rays(rows)}
	p = &pairing{s}
	if err := s.openMaster(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if s.forced, err = s.openSet(record.Forced); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return p, idle(s.host.contexts)()
}

// time measures an operation on the leading rows, on one device and on the set.
func (p *pairing) time(op operation, rows int) (one, set samples, err error) {
	batch, err := leading(p.batch, rows)
	if err != nil {
		return one, set, err
	}
	times, err := p.measure(op.timed(p.single, batch), op.timed(p.forced, batch))
	if err != nil {
		return one, set, fmt.Errorf("%s, %d rows: %w", op.name, rows, err)
	}
	return times[0], times[1], nil
}

// search measures the search of the leading rows alone, on one device.
func (p *pairing) search(op operation, rows int) (float64, error) {
	batch, err := leading(p.batch, rows)
	if err != nil {
		return 0, err
	}
	v := variant{run: func() (func() error, error) { return op.search(p.single, batch) }}
	times, err := p.measure(v)
	if err != nil {
		return 0, err
	}
	return float64(slices.Min(times[0].ns)), nil
}

func (p *pairing) measure(variants ...variant) ([]samples, error) {
	return p.host.stopwatch(p.host.contexts).measure(variants, p.warmup, p.repeat)
}

// search enqueues the search of an operation without the rest of it.
func (op operation) search(s *scene.Scene, batch scene.Rays) (func() error, error) {
	call, err := op.prepare(s, batch)
	if err != nil {
		return nil, err
	}
	in, out := call.Columns()
	if err := call.Search(s, call.Stream, in, out, 0, call.Rows); err != nil {
		return nil, errors.Join(err, call.Abandon())
	}
	return call.Abandon, nil
}

// alone says that a study of the set has no set.
func (r *run) alone(study string) bool {
	if len(r.host.devices) > 1 {
		return false
	}
	fmt.Fprintf(r.out, "study %s: NOT MEASURED, it needs several devices and the set has one\n", study)
	return true
}

// fewRows are the batches whose time is the cost of a call.
var fewRows = []int{64, 4096}

// dispatchStudy times calls that have hardly any rows on one device and divided among the set: what is left is the cost of
// dividing a call.
func (r *run) dispatchStudy() (tables []record.Study, err error) {
	if r.alone(studyDispatch) {
		return nil, nil
	}
	name := workload.Light
	if r.host.driver.Emulated() {
		name = workload.Mini
	}
	config, err := workload.Find(name)
	if err != nil {
		return nil, err
	}
	p, err := r.openPairing(config, slices.Max(fewRows))
	if err != nil {
		return nil, err
	}
	defer closing(p.close, &err)
	sizes := fewRows
	if r.host.driver.Emulated() {
		sizes = fewRows[:1]
	}
	table := record.Study{
		ID: studyDispatch, SourceSection: "bench --study dispatch",
		Description: fmt.Sprintf("calls with few rows on one device and divided equally among %d; the difference is the fixed cost of dividing a call, of the minima and of the medians of interleaved rounds", len(r.host.devices)),
		Columns:     columns("config", "-", "operation", "-", "rows", "-", "one_device", "us", "divided", "us", "fixed_cost", "us", "fixed_cost_median", "us"),
	}
	for _, op := range operations(config) {
		for _, n := range sizes {
			one, set, err := p.time(op, n)
			if err != nil {
				return nil, err
			}
			low, median, _ := record.Summary(one.ns)
			setLow, setMedian, _ := record.Summary(set.ns)
			table.Rows = append(table.Rows, []any{name, op.name, float64(n), float64(low) / 1e3, float64(setLow) / 1e3,
				float64(setLow-low) / 1e3, float64(setMedian-median) / 1e3})
		}
	}
	return []record.Study{table}, nil
}
