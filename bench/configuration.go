package main

import (
	"errors"
	"slices"
	"time"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// trial holds what one configuration needs on the devices.
type trial struct {
	*run
	config workload.Config
	where  string // prefix of failed checks
	meshes []workload.Mesh
	rays   workload.Rays
	stream *cuda.Stream // of the master, for the ray buffers
	batch  scene.Rays   // the rays on the master
	single *scene.Scene
	sides  []side // the set in each mode; empty with one device

	contenders []contender // other tracers on the master
	alone      error       // why there are none
	undo       []func() error
}

// side is the device set under the options of one mode.
type side struct {
	mode   record.Mode
	set    deviceSet // nil where the plan equals that of the forced mode
	plan   chunked.Plan
	reused bool // the times are those of the forced side
}

// configuration runs one configuration: generate, build, time, check, record. Device memory is free again afterwards.
func (r *run) configuration(c workload.Config) (err error) {
	s := &trial{run: r, config: c, where: c.Name + " intersect"}
	defer func() { err = errors.Join(err, s.close()) }()
	found := s.generate()
	if err := s.open(); err != nil {
		return err
	}
	times, err := s.time()
	if err != nil {
		return err
	}
	checked, err := s.check()
	if err != nil {
		return err
	}
	rows := s.rows(times, checked)
	tracers := s.recordTracers(times)
	s.store(found, rows, tracers)
	s.report(rows, checked)
	s.printTracers(tracers)
	return nil
}

// close releases everything in reverse order and gives cached memory back to the driver.
func (s *trial) close() error {
	var errs []error
	for _, f := range slices.Backward(s.undo) {
		errs = append(errs, f())
	}
	for _, c := range s.host.contexts {
		errs = append(errs, c.Pool().Trim())
	}
	return errors.Join(errs...)
}

// generate makes the workload and compares its digests with the pinned ones.
func (s *trial) generate() workload.Digests {
	n := int64(s.config.RayCount)
	if s.options.rays > 0 {
		n = s.options.rays
	}
	s.meshes, s.rays = s.config.Meshes(), s.config.Rays(int(n))
	found, want := workload.DigestOf(s.meshes, s.rays), s.config.Digests
	if n != int64(s.config.RayCount) { // another batch, the same scene
		want.Origins, want.Directions = found.Origins, found.Directions
	}
	if found != want {
		s.fail(s.config.Name, "the workload is not the pinned one: %+v, expected %+v", found, want)
	}
	return found
}

// rowCount is the number of rows of the batch.
func (s *trial) rowCount() int64 { return int64(s.rays.Len()) }

// later registers the release of something, in reverse order.
func (s *trial) later(f func() error) { s.undo = append(s.undo, f) }

// open uploads the rays and builds the scene on the master, and the set once per mode with a plan of its own.
func (s *trial) open() (err error) {
	master := s.host.contexts[0]
	if s.stream, err = master.NewStream(cuda.StreamOptions{}); err != nil {
		return err
	}
	s.later(s.stream.Close)
	if s.batch.O, err = cuda.Upload(background, s.stream, s.rays.Origins); err != nil {
		return err
	}
	s.later(func() error { return cuda.Free(s.batch.O) })
	if s.batch.D, err = cuda.Upload(background, s.stream, s.rays.Directions); err != nil {
		return err
	}
	s.later(func() error { return cuda.Free(s.batch.D) })
	if s.single, err = scene.New(master, scene.Options{Backend: s.backend}); err != nil {
		return err
	}
	s.later(s.single.Close)
	if err := load(s.single, s.meshes); err != nil {
		return err
	}
	if len(s.host.devices) > 1 {
		if err := s.openSides(); err != nil {
			return err
		}
	}
	if err := s.openContenders(); err != nil {
		return err
	}
	return idle(s.host.contexts)()
}

func (s *trial) openSides() error {
	for _, mode := range []record.Mode{record.Forced, record.Policy} {
		next := side{mode: mode}
		if len(s.sides) > 0 {
			forced := s.sides[0]
			plan, err := intersectPlan(forced.set, s.options, mode, s.rowCount())
			if err != nil {
				return err
			}
			if plan.Kind == forced.plan.Kind && slices.Equal(plan.Shards, forced.plan.Shards) {
				s.sides = append(s.sides, side{mode: mode, plan: plan, reused: true})
				continue
			}
		}
		var err error
		if next.set, err = openSet(s.host, s.options, mode, s.warnings); err != nil {
			return err
		}
		s.later(next.set.Close)
		if err := load(next.set, s.meshes); err != nil {
			return err
		}
		if next.plan, err = intersectPlan(next.set, s.options, mode, s.rowCount()); err != nil {
			return err
		}
		s.sides = append(s.sides, next)
	}
	return nil
}

// tracers returns the scene on the master and then every set of its own, in the order of the timed variants.
func (s *trial) tracers() []tracer {
	list := []tracer{s.single}
	for _, side := range s.sides {
		if !side.reused {
			list = append(list, side.set)
		}
	}
	return list
}

// time measures every tracer on the whole batch: those of tracers, then the contenders.
func (s *trial) time() ([]samples, error) {
	var variants []variant
	for _, t := range s.tracers() {
		variants = append(variants, variant{run: calls(t, s.batch)})
	}
	for _, c := range s.contenders {
		variants = append(variants, variant{run: c.run})
	}
	w := stopwatch{sync: idle(s.host.contexts), allocs: s.host.allocs.Load, now: time.Now}
	times, err := w.measure(variants, s.warmup, s.repeat)
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
	elements  int64
	differ    []int64 // words that differ, by tracer; the first is 0
}

// prefixRows are the leading rows whose digests are pinned too, because emulated devices can trace that many.
var prefixRows = map[string]int64{workload.Light: 1 << 16, workload.Compute: 1 << 12}

// check traces once more on every side and compares every column word by word, one column at a time.
func (s *trial) check() (c checked, err error) {
	tracers := s.tracers()
	c.differ = make([]int64, len(tracers))
	results := make([][]words, len(tracers))
	var held []*scene.Hits
	defer func() {
		for _, hits := range held {
			err = errors.Join(err, hits.Close())
		}
	}()
	for i, t := range tracers {
		hits, err := t.Intersect(background, s.batch, scene.All)
		if err != nil {
			return c, err
		}
		held = append(held, hits)
		if results[i], err = hitWords(hits); err != nil {
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
	for at, column := range results[0] {
		reference, err := column.download(background, s.stream)
		if err != nil {
			return c, err
		}
		c.elements += int64(len(reference))
		c.digests.add(column.name, column.width, reference, s.rowCount(), prefixRows[s.config.Name])
		known.take(column.name, reference)
		for i := range results[1:] {
			other, err := results[i+1][at].download(background, s.stream)
			if err != nil {
				return c, err
			}
			c.differ[i+1] += mismatches(reference, other)
		}
	}
	c.rowBytes = 4 * float64(c.elements) / float64(s.rowCount())
	if c.wireBytes, err = s.measureWire(); err != nil {
		return c, err
	}
	c.hits = known.hits()
	s.judge(c, known)
	return c, nil
}

// measureWire is the size of what a search writes for one row, which is what a remote row sends back.
func (s *trial) measureWire() (float64, error) {
	_, call, err := s.single.PrepareIntersect(background, s.batch, scene.All)
	if err != nil {
		return 0, err
	}
	_, out := call.Columns()
	var bytes uint64
	for _, column := range out {
		bytes += column.Data.Bytes()
	}
	return float64(bytes) / float64(call.Rows), call.Abandon()
}

// judge turns what was found into failed checks.
func (s *trial) judge(c checked, known answers) {
	for _, problem := range expectations[s.config.Name].verify(known, s.rays) {
		s.fail(s.where, "%s", problem)
	}
	at := 0
	for _, side := range s.sides {
		if !side.reused {
			at++
			if c.differ[at] > 0 {
				s.fail(s.where, "mode %s: %d of %d words differ from the one-device result", side.mode, c.differ[at], c.elements)
			}
		}
		if side.mode == record.Forced && !usesEveryDevice(side.plan) {
			s.fail(s.where, "the forced call did not use every device: %s", side.plan.Reason)
		}
	}
	if declared := intersectOp().Record; c.rowBytes != float64(declared) {
		s.fail(s.where, "a row has %g record bytes, declared are %d", c.rowBytes, declared)
	}
	if declared := intersectOp().Wire; c.wireBytes != float64(declared) {
		s.fail(s.where, "a remote row sends %g bytes back, declared are %d", c.wireBytes, declared)
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
func (s *trial) pinned(rows int64, columns []record.Column) {
	if !s.canonical() {
		return
	}
	s.fresh = append(s.fresh, pin{s.config.Name, rows, columns})
	if p, ok := s.pins.find(s.config.Name, rows); ok {
		for _, problem := range p.differ(columns) {
			s.fail(s.where, "%s", problem)
		}
	}
}
