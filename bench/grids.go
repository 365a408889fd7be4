package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

// tally is what became of the lanes of a call: how many count, how many something hides, how many are rejected for
// another reason; and wedge events, of which a lane may have several, and what was wrong with contributions.
type tally struct {
	counted, hidden, rejected, events int64
	status                            scene.ReflGridStatus
}

// gridOutcome is the result of a call on a grid or on paths.
type gridOutcome struct {
	outcome
	tally func() (tally, error)
}

// gridCase is one operation of the study in one configuration.
type gridCase struct {
	operation, config string
	lanes, cells      int64
	call              func(s *stage, opts ...scene.CallOption) (gridOutcome, error)
	// expect says what is wrong with the counts, or nothing.
	expect func(t tally) string
	// least is the work that the call cannot do without; nil where none is stated.
	least func(t tally) work
}

// field is a geometry on the master alone and on the set, for the cases that run there. What it is given is on the
// master.
type field struct {
	*run
	mesh   scene.Mesh
	media  scene.Materials
	single *stage
	plain  *scene.Scene // of single
	set    *stage       // nil with one device
	stream *cuda.Stream
	opened
}

// openField builds the geometry. The operations trace with the tree of the library whatever the backend is.
func (r *run) openField(mesh scene.Mesh, media scene.Materials) (f *field, err error) {
	f = &field{run: r, mesh: mesh, media: media}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	master := r.host.contexts[0]
	if f.stream, err = master.NewStream(cuda.StreamOptions{}); err != nil {
		return f, err
	}
	f.later(f.stream.Close)
	if f.plain, err = scene.New(master, scene.Options{Backend: scene.CUDA, Builder: r.host.builder()}); err != nil {
		return f, err
	}
	if f.single, err = openStage(f.plain, mesh, media); err != nil {
		return f, err
	}
	f.later(f.single.close)
	if len(r.host.devices) == 1 {
		return f, nil
	}
	o := r.options
	o.backend = scene.CUDA
	set, err := openSet(r.host, o, record.Forced, 0, r.warnings)
	if err != nil {
		return f, err
	}
	if f.set, err = openStage(set.(radio), mesh, media); err != nil {
		return f, err
	}
	f.later(f.set.close)
	return f, nil
}

func (f *field) close() error { return f.release(f.host.contexts...) }

// stages are the geometry on one device and, if there are several, on the set.
func (f *field) stages() []*stage {
	if f.set == nil {
		return []*stage{f.single}
	}
	return []*stage{f.single, f.set}
}

// use uploads states to every device.
func (f *field) use(states scene.DfrStates) error {
	for _, s := range f.stages() {
		if err := s.use(states); err != nil {
			return err
		}
	}
	return nil
}

// uploaded brings an input to the master until the field is closed, and waits for it.
func uploaded[T cuda.Scalar](f *field, values []T) (cuda.Slice[T], error) {
	s, err := cuda.Upload(background, f.stream, values)
	if err != nil {
		return s, err
	}
	f.later(func() error { return cuda.Free(s) })
	return s, f.stream.Synchronize(background)
}

// rays brings a batch to the master.
func (f *field) rays(rays workload.Rays) (batch scene.Rays, err error) {
	if batch.O, err = uploaded(f, rays.Origins); err != nil {
		return batch, err
	}
	batch.D, err = uploaded(f, rays.Directions)
	return batch, err
}

// gridStudy times the operations on grids and paths on one device and on the set.
func (r *run) gridStudy() ([]record.Study, error) {
	table := record.Study{
		ID: studyGrids, SourceSection: "bench --study grids",
		Description: "operations on grids and paths on one device" + r.ifDivided(" and divided equally among %d", len(r.host.devices)) +
			", the fastest of interleaved rounds; counted are lanes that are added, or paths and contributions that were found" +
			r.ifDivided("; differing_values of all words, counters and columns of the two") +
			"; floors as docs/grids.md derives them from the counts",
		Columns: columns("operation", "-", "config", "-", "lanes", "-", "cells", "-", "one_device", "ms", "per_lane", "ns",
			"bytes_floor", "ms", "operations_floor", "ms", "counted", "-", "hidden", "-", "events", "-",
			"divided", "ms", "speedup", "-", "differing_values", "-"),
	}
	e := gridExtentOn(r.host.driver.Emulated())
	if r.options.rays > 0 {
		e.rays = int(r.options.rays)
	}
	if r.options.accumSamples > 0 {
		e.samples = r.options.accumSamples
	}
	for _, make := range []func(*run, gridExtent) (*field, []gridCase, error){fixtureCases, boxCases, townCases, cityCases} {
		rows, err := r.gridRows(make, e)
		if err != nil {
			return nil, err
		}
		table.Rows = append(table.Rows, rows...)
	}
	return []record.Study{table}, nil
}

// gridRows measures the cases of one geometry.
func (r *run) gridRows(make func(*run, gridExtent) (*field, []gridCase, error), e gridExtent) (rows [][]any, err error) {
	f, cases, err := make(r, e)
	if err != nil {
		return nil, err
	}
	defer closing(f.close, &err)
	for _, c := range cases {
		row, err := f.row(c)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", c.operation, c.config, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// row measures and checks one case.
func (f *field) row(c gridCase) ([]any, error) {
	times, err := f.time(c)
	if err != nil {
		return nil, err
	}
	t, differ, err := f.check(c)
	if err != nil {
		return nil, err
	}
	one := float64(slices.Min(times[0].ns))
	bytes, operations := f.floors(c, t)
	row := []any{c.operation, c.config, float64(c.lanes), float64(c.cells), one / 1e6, one / float64(c.lanes),
		bytes, operations, float64(t.counted), float64(t.hidden), float64(t.events), nil, nil, nil}
	if f.set != nil {
		set := float64(slices.Min(times[1].ns))
		row[11], row[12], row[13] = set/1e6, one/set, float64(differ)
	}
	return row, nil
}

// time measures a case on one device and on the set.
func (f *field) time(c gridCase) ([]samples, error) {
	var variants []variant
	for _, s := range f.stages() {
		variants = append(variants, variant{run: func() (func() error, error) {
			out, err := c.call(s)
			return out.close, err
		}})
	}
	times, err := f.host.stopwatch(f.host.contexts).measure(variants, f.warmup, f.repeat)
	if err != nil {
		return nil, err
	}
	for i, s := range times {
		if s.allocs > 0 {
			f.fail(c.where(), "%d driver allocations inside the samples of variant %d; results must come from the pool", s.allocs, i)
		}
	}
	return times, nil
}

func (c *gridCase) where() string { return c.operation + " " + c.config }

// poisonByte fills the memory of a result before the call that is checked.
const poisonByte = 0xa5

// check calls once more on one device and on the set, into memory full of other values, and compares the counts with
// what is expected and all columns with each other.
func (f *field) check(c gridCase) (t tally, differ int64, err error) {
	var first []hostColumn
	for i, s := range f.stages() {
		found, columns, err := f.answer(c, s)
		if err != nil {
			return t, 0, err
		}
		if i == 0 {
			t, first = found, columns
			f.judge(c, t)
			continue
		}
		values := int64(0)
		for k, column := range columns {
			values += int64(len(column.data) / column.size)
			differ += mismatches(first[k].data, column.data, column.size)
		}
		if differ > 0 || values == 0 {
			f.fail(c.where(), "%d of %d values of %d devices differ from those of one", differ, values, len(f.host.devices))
		}
	}
	return t, differ, nil
}

// answer is a call whose memory was poisoned. The columns are for comparison alone, and absent with one device.
func (f *field) answer(c gridCase, s *stage) (t tally, list []hostColumn, err error) {
	dirty, err := c.call(s)
	if err != nil {
		return t, nil, err
	}
	columns, err := dirty.columns()
	if err != nil {
		return t, nil, errors.Join(err, dirty.close())
	}
	for _, column := range columns {
		if err := cuda.Fill8(s.Stream(), column.data, poisonByte); err != nil {
			return t, nil, errors.Join(err, dirty.close())
		}
	}
	var info multi.CallInfo
	options := []scene.CallOption{scene.Into(dirty.result)}
	if s == f.set {
		options = append(options, multi.Info(&info))
	}
	out, err := c.call(s, options...)
	if err != nil {
		return t, nil, errors.Join(err, dirty.close())
	}
	defer closing(out.close, &err)
	if s == f.set && !usesEveryDevice(info.Plan) {
		f.fail(c.where(), "the divided call did not use every device: %s", info.Plan.Reason)
	}
	if t, err = out.tally(); err != nil || f.set == nil {
		return t, nil, err
	}
	if columns, err = out.columns(); err != nil {
		return t, nil, err
	}
	list, err = hostColumns(s.Stream(), columns)
	return t, list, err
}

// judge compares the counts of one device with what is known about the case.
func (f *field) judge(c gridCase, t tally) {
	if t.counted == 0 {
		f.fail(c.where(), "vacuous: nothing counts")
	}
	if wrong := c.expect(t); wrong != "" {
		f.fail(c.where(), "%s", wrong)
	}
}
