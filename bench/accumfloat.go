package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// floatSums are the sums of the accumulation fixture with float atomics, which exact ones are compared with.
type floatSums struct {
	scene  *scene.Scene
	states *scene.StateTable
	power  cuda.Slice[float32]
}

func newFloatSums(s *scene.Scene, states *scene.StateTable) (*floatSums, error) {
	power, err := cuda.Alloc[float32](s.Context(), int(fixtureGrid().Cells()))
	return &floatSums{s, states, power}, err
}

func (f *floatSums) close() error {
	if f == nil {
		return nil
	}
	return cuda.Free(f.power)
}

func (f *floatSums) accumulate(samples int64) error {
	return f.scene.AccumDfrFloat(f.scene.Stream(), f.states, fixtureGrid(), fixtureOptions(samples), f.power)
}

// timed is the call as a variant to time.
func (f *floatSums) timed(samples int64) variant {
	return variant{run: func() (func() error, error) { return func() error { return nil }, f.accumulate(samples) }}
}

// time is the fastest of the calls in ns. They take ten times as long as exact ones and have rounds of their own, because the
// rounds of exact calls would be the fewer for it.
func (f *floatSums) time(r *run, samples int64) (float64, error) {
	times, err := r.host.stopwatch(r.host.contexts).measure([]variant{f.timed(samples)}, r.warmup, r.repeat)
	if err != nil {
		return 0, err
	}
	return float64(slices.Min(times[0].ns)), nil
}

// errors is the error of the sums relative to exact ones, and the cells that differ between two calls.
func (f *floatSums) errors(samples int64, exact gridOf) (relative float64, cells int, err error) {
	var runs [2]gridOf
	for i := range runs {
		if err := f.accumulate(samples); err != nil {
			return 0, 0, err
		}
		if runs[i], err = cuda.Download(background, f.scene.Stream(), f.power); err != nil {
			return 0, 0, err
		}
	}
	difference := make(gridOf, len(exact))
	for c := range exact {
		difference[c] = runs[0][c] - exact[c]
		if math.Float32bits(runs[0][c]) != math.Float32bits(runs[1][c]) {
			cells++
		}
	}
	return norm(difference) / norm(exact), cells, nil
}

// floatTolerance is the largest error of float atomics that is put down to rounding: each of a few million additions
// loses half a unit of the last place.
const floatTolerance = 0.02

// compareFloats records what exactness costs, and how far float atomics are off.
func (t *accumTask) compareFloats(single samples) error {
	inexact, err := t.inexact.time(t.run, t.samples)
	if err != nil {
		return err
	}
	relative, cells, err := t.inexact.errors(t.samples, t.found.grids[0])
	if err != nil {
		return err
	}
	if !(relative <= floatTolerance) {
		t.fail(t.where, "float atomics are off by %g: they do not sum the same samples", relative)
	}
	exact := float64(slices.Min(single.ns))
	t.record.AddStudy(record.Study{
		ID: "accum_float", SourceSection: "bench",
		Description: "AccumDfrDirect on one device beside the same samples summed with float atomics, one thread for each; float_error is relative to the exact sums, unsteady_cells differ between two calls with float atomics; differing_words of two devices are in the rows",
		Columns:     columns("config", "-", "samples", "-", "exact", "ms", "float_atomics", "ms", "float_by_exact", "-", "float_error", "-", "unsteady_cells", "-"),
		Rows:        [][]any{{t.config, float64(t.samples), exact / 1e6, inexact / 1e6, inexact / exact, relative, float64(cells)}},
	})
	fmt.Fprintf(t.out, "exactness, %s: exact %.4f ms, float atomics %.4f ms (%.2fx), off by %.2g, %d of %d cells differ between two calls\n",
		t.where, exact/1e6, inexact/1e6, inexact/exact, relative, cells, len(t.found.grids[0]))
	return nil
}
