package main

import (
	"fmt"
	"slices"

	"github.com/raymux/raymux/bench/record"
)

// sweepSamples are the sizes of the sweep; an emulated device is a thousand times slower.
func sweepSamples(emulated bool) []int64 {
	if emulated {
		return []int64{64, 256, 1024}
	}
	return []int64{65536, 1048576, 2097152, 4194304, 16777216, 33554432, 67108864}
}

// sweep accumulates more and more samples of the fixture on one device and divided equally, and says from where on
// dividing pays.
func (r *run) sweep() (err error) {
	sizes := sweepSamples(r.host.driver.Emulated())
	t, err := r.openAccum("", slices.Max(sizes), record.Forced)
	if err != nil {
		return err
	}
	defer closing(t.close, &err)
	table := record.Study{
		ID: "accum_sample_sweep", SourceSection: "bench --accum-sweep",
		Description: "AccumDfrDirect on the accumulation fixture, on one device" + r.ifDivided(" and divided equally among %d", len(r.host.devices)) +
			", the fastest of interleaved rounds" + r.ifDivided("; differing_values of the words, counters and cells of the two") +
			"; float_atomics are the same sums on one device, with their relative error",
		Columns: columns("samples", "-", "one_device", "ms", "divided", "ms", "speedup", "-", "differing_values", "-", "float_atomics", "ms", "float_error", "-"),
	}
	for _, n := range sizes {
		if err := t.resize(n); err != nil {
			return err
		}
		times, err := t.time()
		if err != nil {
			return err
		}
		found, err := t.check()
		if err != nil {
			return err
		}
		relative, _, err := t.inexact.errors(n, found.grids[0])
		if err != nil {
			return err
		}
		inexact, err := t.inexact.time(r, n)
		if err != nil {
			return err
		}
		row := []any{float64(n), float64(slices.Min(times[0].ns)) / 1e6, nil, nil, nil, inexact / 1e6, relative}
		if len(t.sides) > 0 {
			set := float64(slices.Min(times[1].ns))
			row[2], row[3], row[4] = set/1e6, float64(slices.Min(times[0].ns))/set, float64(found.differ[1])
		}
		table.Rows = append(table.Rows, row)
	}
	r.record.Studies = append(r.record.Studies, table)
	return printStudy(r.out, table)
}

// resize changes the number of samples.
func (t *accumTask) resize(samples int64) (err error) {
	t.samples = samples
	t.where = fmt.Sprintf("%s of %d samples", record.OperationAccumDirect, samples)
	for i := range t.sides {
		s := &t.sides[i]
		if s.plan, err = planOf(t.sides[0].set.radio.(deviceSet), t.options, s.mode, t.single.op(samples), samples); err != nil {
			return err
		}
	}
	return nil
}
