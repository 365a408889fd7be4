package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
)

// callCost predicts the time of a call of any size from a few measured numbers, in ns.
type callCost struct {
	line             // on one device, by its rows
	finalize float64 // of the cost per row, what only the master spends
	divide   float64 // what dividing a call costs, whatever the rows
}

// one is the predicted time of so many rows on one device.
func (c callCost) one(rows int) float64 { return c.fixed + c.perRow*float64(rows) }

// divided is the predicted time on the set, with perfect overlap of transfers and computation.
func (c callCost) divided(m overlapModel) float64 {
	rows := float64(m.rows)
	m.oneDevice, m.finalize = c.perRow*rows, c.finalize*rows
	for i := range m.remotes {
		remote := &m.remotes[i]
		if remote.toward == 0 || remote.back == 0 { // not measured: no limit
			remote.toward, remote.back = math.Inf(1), math.Inf(1)
		}
	}
	_, perfect := m.bounds()
	return c.fixed + c.divide + perfect
}

// scalingStudy times leading parts of the batches on one device and on the set, and sets the speed-up beside what the
// model says.
func (r *run) scalingStudy() ([]record.Study, error) {
	if r.alone(studyScaling) {
		return nil, nil
	}
	e := extentOn(r.host.driver.Emulated())
	curve := record.Study{
		ID: studyScaling, SourceSection: "bench --study scaling",
		Description: fmt.Sprintf("the first rows of a configuration on one device and divided equally among %d, the fastest of interleaved rounds; model is the speed-up that scaling_model predicts", len(r.host.devices)),
		Columns:     columns("config", "-", "operation", "-", "rows", "-", "one_device", "ms", "divided", "ms", "speedup", "-", "model", "-"),
	}
	model := record.Study{
		ID: "scaling_model", SourceSection: "bench --study scaling",
		Description: "what the model of the study scaling knows: a line through the times of one device, the part of its cost per row that only the master spends, and the cost of dividing a call, by the smallest one; beside them the link rates of the record",
		Columns:     columns("config", "-", "operation", "-", "per_call", "us", "per_row", "ns", "finalize", "ns", "divide", "us", "largest_deviation", "%"),
	}
	for _, name := range e.configs {
		config, err := workload.Find(name)
		if err != nil {
			return nil, err
		}
		if err := r.scale(config, e.batches, &curve, &model); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return []record.Study{curve, model}, nil
}

// smallest is the number of rows of the call that shows what dividing costs. It is no point of the curve.
const smallest = 32

// scale adds the rows of one configuration.
func (r *run) scale(config workload.Config, sizes []int, curve, model *record.Study) (err error) {
	p, err := r.openPairing(config, slices.Max(sizes))
	if err != nil {
		return err
	}
	defer closing(p.close, &err)
	for _, op := range operations(config) {
		var one, set []float64
		for _, n := range sizes {
			a, b, err := p.time(op, n)
			if err != nil {
				return err
			}
			one, set = append(one, float64(slices.Min(a.ns))), append(set, float64(slices.Min(b.ns)))
		}
		cost, err := p.cost(op, sizes, one)
		if err != nil {
			return err
		}
		for i, n := range sizes {
			plan, err := planOf(p.forced, r.options, record.Forced, op.plan, int64(n))
			if err != nil {
				return err
			}
			curve.Rows = append(curve.Rows, p.point(op, cost, plan, n, one[i], set[i]))
		}
		model.Rows = append(model.Rows, []any{config.Name, op.name, cost.fixed / 1e3, cost.perRow, cost.finalize, cost.divide / 1e3, 100 * cost.worst})
	}
	return nil
}

// point is a row of the curve.
func (p *pairing) point(op operation, cost callCost, plan chunked.Plan, n int, one, set float64) []any {
	predicted := cost.one(n) / cost.divided(p.modelOf(plan, 0))
	return []any{p.config.Name, op.name, float64(n), one / 1e6, set / 1e6, one / set, predicted}
}

// cost measures what the model needs beside the times of one device.
func (p *pairing) cost(op operation, sizes []int, one []float64) (callCost, error) {
	c := callCost{line: fitLine(sizes, one)}
	c.fixed = max(0, c.fixed) // noise may put the line below
	a, b, err := p.time(op, smallest)
	if err != nil {
		return c, err
	}
	c.divide = max(0, float64(slices.Min(b.ns)-slices.Min(a.ns)))
	most := slices.Max(sizes)
	search, err := p.search(op, most)
	if err != nil {
		return c, err
	}
	c.finalize = min(max(0, (one[slices.Index(sizes, most)]-search)/float64(most)), c.perRow)
	return c, nil
}
