package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// streamedTask is the closest hits of the batch through a hook, chunk by chunk.
type streamedTask struct {
	*trial
	op    operation
	where string
	set   deviceSet
	plan  chunked.Plan
	kept  cuda.Slice[float32] // the distances, which is all that the hook of the timed calls keeps
	rows  int64               // that this hook got in a call
	found checked
	peaks peaks
}

// streamed measures the streamed row.
func (s *trial) streamed() error {
	set, err := s.openSet(record.Streamed)
	if err != nil {
		return err
	}
	t := &streamedTask{trial: s, op: intersect(), set: set}
	t.where = s.config.Name + " " + t.op.name + " streamed"
	if t.plan, err = set.PlanStream(t.op.plan, s.rowCount()); err != nil {
		return err
	}
	if t.kept, err = cuda.Alloc[float32](s.host.contexts[0], int(s.rowCount())); err != nil {
		return err
	}
	s.later(func() error { return cuda.Free(t.kept) })
	times, err := t.time()
	if err != nil {
		return fmt.Errorf("%s: %w", t.where, err)
	}
	if err := t.check(); err != nil {
		return fmt.Errorf("%s: %w", t.where, err)
	}
	t.report(t.row(times), times[1])
	s.repeated = append(s.repeated, t)
	return nil
}

// remeasure is part of repeatable.
func (s *streamedTask) remeasure() ([]record.Row, error) {
	times, err := s.time()
	if err != nil {
		return nil, err
	}
	return []record.Row{s.row(times)}, nil
}

// time measures one device, the set that returns the result whole, and the set that streams it.
func (s *streamedTask) time() ([]samples, error) {
	variants := []variant{
		s.op.timed(s.single, s.batch),
		s.op.timed(s.forced, s.batch),
		{run: func() (func() error, error) { return func() error { return nil }, s.stream(multi.Offload(s.keep)) }},
	}
	times, err := s.host.stopwatch(s.host.contexts).measure(variants, s.warmup, s.repeat)
	if err == nil && times[2].allocs > 0 {
		s.fail(s.where, "%d driver allocations inside the samples; the slots must come from the pool", times[2].allocs)
	}
	return times, err
}

// stream makes the call and counts what the hook was given.
func (s *streamedTask) stream(hook scene.CallOption) error {
	s.rows = 0
	_, err := s.op.call(s.set, s.batch, hook)
	if err == nil && s.rows != s.rowCount() {
		s.fail(s.where, "the hook got %d of %d rows", s.rows, s.rowCount())
	}
	return err
}

// keep is the hook of the timed calls.
func (s *streamedTask) keep(_ context.Context, start int64, chunk offload.Chunk[*scene.Hits]) error {
	s.rows += chunk.Rows
	to, err := s.kept.Sub(int(start), int(start+chunk.Rows))
	if err != nil {
		return err
	}
	return cuda.CopyAsync(s.set.Stream(), to, chunk.Result.T)
}

// assembly puts a streamed result together, on the host.
type assembly struct {
	stream    *cuda.Stream
	want      [][]byte // columns of one device
	got       [][]byte
	delivered []uint8 // how often each row came
	rows      *int64
}

func newAssembly(stream *cuda.Stream, want [][]byte, n int64, rows *int64) *assembly {
	a := &assembly{stream: stream, want: want, delivered: make([]uint8, n), rows: rows}
	for _, c := range want {
		a.got = append(a.got, bytes.Repeat([]byte{0xa5}, len(c)))
	}
	return a
}

// take is the hook.
func (a *assembly) take(ctx context.Context, start int64, chunk offload.Chunk[*scene.Hits]) error {
	*a.rows += chunk.Rows
	list, err := hitColumns(chunk.Result)
	if err != nil {
		return err
	}
	for i, c := range list {
		part, err := c.download(ctx, a.stream)
		if err != nil {
			return err
		}
		width := int64(len(a.want[i]) / len(a.delivered))
		if int64(len(part)) != width*chunk.Rows {
			return fmt.Errorf("column %s of a chunk of %d rows has %d bytes, not %d", c.name, chunk.Rows, len(part), width*chunk.Rows)
		}
		copy(a.got[i][start*width:], part)
	}
	for row := start; row < start+chunk.Rows; row++ {
		a.delivered[row]++
	}
	return nil
}

// amiss counts the rows that did not come exactly once.
func (a *assembly) amiss() int {
	n := 0
	for _, times := range a.delivered {
		if times != 1 {
			n++
		}
	}
	return n
}

// check compares the streamed result with that of one device, and takes the peaks of memory meanwhile.
func (s *streamedTask) check() (err error) {
	var names []string
	var sizes []int
	var want [][]byte
	s.peaks.rays = int64(s.host.contexts[0].Pool().Stats().BytesInUse)
	s.peaks.single, err = s.peak(s.host.contexts[:1], func() error {
		return s.whole(s.single, func(list []column) error {
			for _, c := range list {
				data, err := c.download(background, s.single.Stream())
				if err != nil {
					return err
				}
				names, sizes, want = append(names, c.name), append(sizes, c.size), append(want, data)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if s.peaks.multi, err = s.peak(s.forced.Contexts(), func() error { return s.whole(s.forced, nil) }); err != nil {
		return err
	}
	a := newAssembly(s.set.Stream(), want, s.rowCount(), &s.rows)
	var info multi.CallInfo
	s.peaks.streamed, err = s.peak(s.set.Contexts(), func() error {
		s.rows = 0
		_, err := s.op.call(s.set, s.batch, multi.Offload(a.take), multi.Info(&info))
		return err
	})
	if err != nil {
		return err
	}
	c := &s.found
	for i, data := range a.got {
		c.digests.all = append(c.digests.all, record.Column{Name: names[i], SHA256: digestBytes(data)})
		c.differ = []int64{c.of(0) + mismatches(want[i], data, sizes[i])}
		c.elements += int64(len(data) / sizes[i])
		if names[i] == "t" {
			known := answers{t: floats(data)}
			c.hits = known.hits()
		}
	}
	c.rowBytes = float64(info.MeasuredRowBytes)
	c.wireBytes = float64(info.MeasuredWireBytes - s.op.plan.In)
	s.judge(a.amiss(), info)
	return nil
}

// of is the number of values that differ in a tracer's result.
func (c *checked) of(i int) int64 {
	if i < len(c.differ) {
		return c.differ[i]
	}
	return 0
}

// whole makes the call that returns its result, and shows it to use, which may be nil.
func (s *streamedTask) whole(t tracer, use func([]column) error) error {
	out, err := s.op.call(t, s.batch)
	if err != nil {
		return err
	}
	list, err := out.columns()
	if err == nil && use != nil {
		err = use(list)
	}
	return errors.Join(err, idle(s.host.contexts)(), out.close())
}

// judge turns what was found into failed checks.
func (s *streamedTask) judge(amiss int, info multi.CallInfo) {
	c := &s.found
	if amiss > 0 {
		s.fail(s.where, "%d of %d rows did not come exactly once", amiss, s.rowCount())
	}
	if c.of(0) > 0 {
		s.fail(s.where, "%d of %d values differ from the one-device result", c.of(0), c.elements)
	}
	if declared := s.op.plan.Record; c.rowBytes != float64(declared) {
		s.fail(s.where, "a row has %g record bytes, declared are %d", c.rowBytes, declared)
	}
	if declared := s.op.plan.Wire; c.wireBytes != float64(declared) {
		s.fail(s.where, "a remote row sends %g bytes back, declared are %d", c.wireBytes, declared)
	}
	for k, m := range s.plan.PerDevice {
		// Columns start at multiples of 256 bytes, and a chunk has some twenty columns on the master, two on a remote.
		slack := int64(m.Resident) * 20 * 256
		if held := info.HighWater[k]; float64(held) > peakTolerance*float64(m.Peak)+float64(slack) {
			s.fail(s.where, "position %d: the call held %d bytes, the plan allows %d", k, held, m.Peak)
		}
		if grown := s.peaks.streamed.grown(k); float64(grown) > peakTolerance*float64(m.Peak)+float64(slack) {
			s.fail(s.where, "position %d: the pool grew by %d bytes, the plan allows %d", k, grown, m.Peak)
		}
	}
}

// row makes the record's row.
func (s *streamedTask) row(times []samples) record.Row {
	t := &task{trial: s.trial, op: s.op}
	row := t.row(record.Streamed, times[0], s.found)
	several := times[2].timing()
	speedup := float64(row.Single.MinNS) / float64(several.MinNS)
	row.Multi, row.Speedup, row.SpeedupSource = &several, &speedup, record.SpeedupComputed
	row.TimingSource = record.TimingMeasured
	row.Dispatch, row.Transport, row.Weights = string(s.plan.Kind), s.plan.Transport.String(), s.plan.Weights
	row.Plan = recordPlan(s.plan)
	row.RowBytes.MeasuredWireOut = record.Number(s.found.wireBytes)
	differ, fraction := s.found.of(0), record.Fraction(s.found.elements, s.found.of(0))
	row.Agreement = &record.Agreement{
		Status: record.StatusMeasured, Scope: record.ScopeAllFields,
		Elements: &s.found.elements, Mismatches: &differ, Fraction: &fraction,
	}
	row.Overlap = s.overlap(s.plan, row)
	saving := s.rowCount()*s.op.plan.Record - s.plan.PerDevice[0].Peak
	row.PeakMemory = s.peaks.record(s.plan.Devices, max(saving, 0))
	return row
}
