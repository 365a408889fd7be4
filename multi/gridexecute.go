package multi

import (
	"context"
	"slices"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// gridExecution carries out the plan of one accumulation: every device with lanes adds its
// chunks to an accumulator of no lanes, in ascending order on one stream; the master sums the
// accumulators and reads the result out once, or all add to one of few cells, and the last
// launch to end reads it. All of it are sums of integers, so that the plan leaves no trace in
// the result.
type gridExecution struct {
	s    *Scene
	ctx  context.Context
	call *scene.GridCall
	plan *chunked.Plan
	info *recorder // nil: nobody wants to know

	in, out []scene.RowColumn   // of the call, as far as it has them
	parts   []gridPart          // by position
	sums    []cuda.Slice[uint8] // accumulators whose sum the result is
	arrival cuda.Slice[uint8]   // on the master: an accumulator that was copied; not for Direct
	remotes bool                // some have lanes
	keeps   bool                // accumulators are those of the devices
	joins   bool                // all launches add to that of the master
	reads   bool                // lanes have inputs on the master
	inside  bool                // the context of a device is current
	scope   cuda.Scope          // then
	cuts    []int64             // for runGrid
}

// gridPart is what one device does in a call.
type gridPart struct {
	r        *replica
	exchange *exchange
	chunks   int
	last     chunked.Chunk     // of them
	acc      cuda.Slice[uint8] // of the master the call's, if it is not the device's
	dirty    cuda.Slice[uint8] // memory that has to be zero before the first chunk
	leased   bool              // acc is of the pool
	memory   cuda.Slice[uint8] // of the slot
	slot     slot              // copied inputs and outputs; not for Direct
	entered  bool              // something was enqueued
}

// accumulate enqueues the work of a plan. When it returns, the caller's stream is behind
// all of it, also after a failure.
func (s *Scene) accumulate(ctx context.Context, call *scene.GridCall, plan *chunked.Plan, info *recorder) error {
	s.executions.Add(1)
	x := &s.grid
	*x = gridExecution{s: s, ctx: ctx, call: call, plan: plan, info: info, parts: x.parts, sums: x.sums, cuts: x.cuts}
	err := x.run()
	// Lists serve the next call, but refer to nothing of this one.
	clear(x.parts)
	clear(x.sums)
	*x = gridExecution{parts: x.parts[:0], sums: x.sums[:0], cuts: x.cuts}
	return err
}

func (x *gridExecution) run() (err error) {
	m := x.s.master()
	defer func() {
		if !x.inside {
			return
		}
		if e := x.scope.Exit(); err == nil {
			err = m.fail("restoring the current context", e)
		}
	}()
	defer func() { err = x.release(err) }()
	x.scan()
	if err := x.prepare(); err != nil {
		return err
	}
	if err := m.fail("ordering the call behind the one before", x.follow()); err != nil {
		return err
	}
	// Remotes come first in the plan's order: what they have done has still to reach the
	// master, which meanwhile is busy with its own lanes.
	for _, c := range x.plan.Chunks {
		if err := context.Cause(x.ctx); err != nil {
			return err
		}
		p := &x.parts[c.Position]
		if err := p.r.failChunk("accumulate", c, x.submit(p, c)); err != nil {
			return err
		}
	}
	return x.collect()
}

// on makes the context of a device current, until that of another one is needed or the call
// ends.
func (x *gridExecution) on(r *replica) (cuda.Scope, error) {
	var err error
	if !x.inside {
		x.scope, err = r.ctx.Enter()
		x.inside = err == nil
	} else if x.scope.Context() != r.ctx {
		x.scope, err = x.scope.Switch(r.ctx)
	}
	return x.scope, err
}

func (x *gridExecution) master() (cuda.Scope, error) { return x.on(x.s.master()) }

// scan lists what the devices have to do.
func (x *gridExecution) scan() {
	in, out := x.call.Columns()
	x.in, x.out = given(in), given(out)
	x.reads = wholeBytes(x.in)+rowBytes(x.in)+widths(x.out) > 0
	for _, r := range x.s.replicas {
		x.parts = append(x.parts, gridPart{r: r})
	}
	most := int64(0)
	for _, c := range x.plan.Chunks {
		p := &x.parts[c.Position]
		p.chunks++
		p.last = c
		x.remotes = x.remotes || c.Position > 0
		most = max(most, c.Len())
	}
	x.keeps = x.remotes && keeps(x.plan, x.call)
	x.joins = x.keeps && x.s.atomics && x.parts[0].chunks > 0 && x.call.Joins(most)
}

// prepare makes streams and events that are missing, and leases memory.
func (x *gridExecution) prepare() error {
	m := &x.parts[0]
	if err := m.r.fail("allocating its accumulator", x.prepareMaster(m)); err != nil {
		return err
	}
	for k := range x.parts[1:] {
		p := &x.parts[k+1]
		if p.chunks == 0 {
			continue
		}
		if err := p.r.fail("allocating its accumulator", x.lease(p)); err != nil {
			return err
		}
	}
	if !x.remotes || x.plan.Transport == chunked.Direct {
		return nil
	}
	var err error
	x.arrival, err = cuda.PoolAlloc[uint8](m.r.ctx.Pool(), x.call.Stream, int(x.call.AccumulatorBytes()))
	return m.r.fail("allocating a place for accumulators", err)
}

func (x *gridExecution) prepareMaster(p *gridPart) error {
	if !x.remotes {
		p.acc = x.call.Accumulator()
		p.dirty = p.acc
		return nil
	}
	p.exchange = p.r.exchanged()
	if err := one(p.r.ctx, &p.exchange.done); err != nil {
		return err
	}
	if x.keeps {
		p.exchange.turnTo(x.call.AccumulatorBytes())
		return x.keep(p)
	}
	p.acc = x.call.Accumulator()
	p.dirty = p.acc
	return nil
}

// lease allocates what a remote needs.
func (x *gridExecution) lease(p *gridPart) (err error) {
	r, m := p.r, x.s.master()
	p.exchange = r.exchanged()
	if err := p.exchange.prepare(r, m, x.plan.Transport); err != nil {
		return err
	}
	p.entered = true // the pool may make its stream wait
	if x.keeps {
		return x.keep(p)
	}
	if p.acc, err = cuda.PoolAlloc[uint8](r.ctx.Pool(), r.stream, int(x.call.AccumulatorBytes())); err != nil {
		return err
	}
	p.dirty, p.leased = p.acc, true
	if x.plan.Transport == chunked.Direct {
		return nil
	}
	rows := min(x.plan.ChunkRows[r.position], x.plan.Shards[r.position].Len())
	bytes := slotBytes(x.in, rows) + slotBytes(x.out, rows) + alignedWhole(x.in)
	if bytes > 0 {
		if p.memory, err = cuda.PoolAlloc[uint8](r.ctx.Pool(), r.stream, int(bytes)); err != nil {
			return err
		}
	}
	if err := p.cut(x.in, x.out, rows); err != nil || x.plan.Transport != chunked.Host {
		return err
	}
	in := wholeBytes(x.in) + rows*rowBytes(x.in)
	return p.exchange.lease(r, in, max(rows*widths(x.out), x.call.AccumulatorBytes()))
}

// cut divides the slot's memory among its columns.
func (p *gridPart) cut(in, out []scene.RowColumn, rows int64) (err error) {
	at := int64(0)
	if p.slot.in, err = slotColumns(p.memory, &at, in, rows); err != nil {
		return err
	}
	if p.slot.out, err = slotColumns(p.memory, &at, out, rows); err != nil {
		return err
	}
	wholes, err := slotWholes(p.memory, &at, in)
	for i, c := range wholes {
		if c.Whole() {
			p.slot.in[i] = c
		}
	}
	return err
}

// follow puts the caller's stream behind the last call on another one, so that the end of a
// call is behind all calls before, and marks the point from which on inputs are there, and
// memory of the master that remotes may add to is zero.
func (x *gridExecution) follow() (err error) {
	m, st := &x.parts[0], x.call.Stream
	e, clears := m.exchange, x.keeps && !m.dirty.IsNil()
	if !x.remotes || e.last == st && !x.reads && !clears {
		return nil
	}
	sc, err := x.master()
	if err != nil {
		return err
	}
	if e.last != st {
		if err := sc.Wait(st, e.done); err != nil {
			return err
		}
	}
	if clears {
		defer func() {
			if err != nil { // no remote would know
				e.cleared = 0
			}
		}()
		if err := x.clear(m, st); err != nil {
			return err
		}
	}
	if !x.reads && !clears {
		return nil
	}
	return sc.Record(st, e.done)
}

// submit enqueues a chunk.
func (x *gridExecution) submit(p *gridPart, c chunked.Chunk) error {
	var err error
	in, out := x.in, x.out
	if x.reads {
		if in, err = rows(x.in, c.Begin-x.plan.Begin, c.Len()); err != nil {
			return err
		}
		if out, err = rows(x.out, c.Begin-x.plan.Begin, c.Len()); err != nil {
			return err
		}
	}
	if c.Position == 0 {
		sc, err := x.master()
		if err != nil {
			return err
		}
		if err := x.clear(p, x.call.Stream); err != nil {
			return err
		}
		return x.launch(sc, p, c, x.call.Stream, in, out)
	}
	sc, err := x.on(p.r)
	if err != nil {
		return err
	}
	st := p.r.stream
	// Without inputs, in memory that nobody reads any more, a remote depends on nobody.
	if c.Seq == 0 && (x.reads || x.keeps && !p.dirty.IsNil()) {
		if err := sc.Wait(st, x.parts[0].exchange.done); err != nil {
			return err
		}
	}
	if err := x.clear(p, st); err != nil {
		return err
	}
	if x.plan.Transport == chunked.Direct {
		err = x.launch(sc, p, c, st, in, out)
	} else {
		err = x.copied(sc, p, c, in, out)
	}
	if err != nil || c != p.last {
		return err
	}
	return sc.Record(st, p.exchange.done)
}

// clear enqueues that the accumulator has no lanes, where that is not known.
func (x *gridExecution) clear(p *gridPart, st *cuda.Stream) error {
	if p.dirty.IsNil() {
		return nil
	}
	if err := cuda.Fill32(st, p.dirty, 0); err != nil {
		return err
	}
	p.dirty = cuda.Slice[uint8]{}
	if x.keeps {
		p.exchange.cleared = x.parts[0].exchange.lap
	}
	return nil
}

func (x *gridExecution) launch(sc cuda.Scope, p *gridPart, c chunked.Chunk, st *cuda.Stream, in, out []scene.RowColumn) error {
	mark := x.info.begin(c, traverse, st)
	if x.joins {
		return mark.end(x.call.Join(sc, p.r.scene, st, in, x.parts[0].acc, p.acc, len(x.plan.Chunks), c.Begin, c.Len()))
	}
	return mark.end(x.call.Accumulate(sc, p.r.scene, st, in, out, p.acc, c.Begin, c.Len()))
}

// copied accumulates copies of the rows in the only slot of the remote: copies take a
// fraction of the time of the rows, and lanes have none.
func (x *gridExecution) copied(sc cuda.Scope, p *gridPart, c chunked.Chunk, in, out []scene.RowColumn) error {
	st := p.r.stream
	here := slot{}
	var err error
	if here.in, err = rows(p.slot.in, 0, c.Len()); err != nil {
		return err
	}
	if here.out, err = rows(p.slot.out, 0, c.Len()); err != nil {
		return err
	}
	host := x.plan.Transport == chunked.Host
	mark := x.info.begin(c, scatter, st)
	if host {
		err = p.exchange.toRemote(x, st, c, here.in, in)
	} else {
		if c.Seq == 0 {
			err = copyColumns(sc, st, here.in, in, true)
		}
		if err == nil {
			err = copyColumns(sc, st, here.in, in, false)
		}
	}
	if err := mark.end(err); err != nil {
		return err
	}
	if err := x.launch(sc, p, c, st, here.in, here.out); err != nil {
		return err
	}
	if widths(here.out) == 0 {
		return nil
	}
	mark = x.info.begin(c, gather, st)
	if host {
		return mark.end(p.exchange.toMaster(st, out, here.out))
	}
	return mark.end(copyColumns(sc, st, out, here.out, false))
}

// collect enqueues the result from the accumulators of all devices.
func (x *gridExecution) collect() error {
	m, st := &x.parts[0], x.call.Stream
	sc, err := x.master()
	if err != nil {
		return m.r.fail("making its context current", err)
	}
	direct := x.plan.Transport == chunked.Direct
	if m.chunks > 0 || !direct {
		if err := m.r.fail("zeroing its accumulator", x.clear(m, st)); err != nil { // which has no lanes
			return err
		}
		x.sums = append(x.sums, m.acc)
	}
	for k := range x.parts[1:] {
		p := &x.parts[k+1]
		if p.chunks == 0 {
			continue
		}
		if err := p.r.failChunk("sending its accumulator", p.last, x.arrive(sc, p)); err != nil {
			return err
		}
		if direct {
			x.sums = append(x.sums, p.acc)
			continue
		}
		mark := x.info.begin(p.last, finalize, st)
		if err := mark.end(x.call.Add(sc, st, m.acc, x.arrival)); err != nil {
			return m.r.failChunk("adding an accumulator", p.last, err)
		}
	}
	if x.joins {
		return nil // the last launch has finished it
	}
	return m.r.fail("finishing the grid", x.finish(sc, direct))
}

// finish enqueues the result from the sums. Where that adds the accumulators of remotes, it
// is the end of their chunks.
func (x *gridExecution) finish(sc cuda.Scope, adds bool) error {
	var marks []mark
	if adds && x.info != nil {
		for _, p := range x.parts[1:] {
			if p.chunks > 0 {
				marks = append(marks, x.info.begin(p.last, finalize, x.call.Stream))
			}
		}
	}
	err := x.call.Collect(sc, x.sums)
	for _, mark := range marks {
		err = mark.end(err)
	}
	return err
}

// arrive puts the caller's stream behind the work of a remote, and copies its accumulator
// where the master cannot read it.
func (x *gridExecution) arrive(sc cuda.Scope, p *gridPart) error {
	st, e := x.call.Stream, p.exchange
	if x.plan.Transport == chunked.Host {
		return e.accumulator(p.r.stream, st, x.arrival, p.acc)
	}
	if err := sc.Wait(st, e.done); err != nil || x.plan.Transport == chunked.Direct {
		return err
	}
	return cuda.CopyAsync(st, x.arrival, p.acc)
}

// release ends the call: after a failure the caller's stream is put behind everything that
// was enqueued and the host waits for it; in any case memory is given back behind what uses
// it.
func (x *gridExecution) release(err error) error {
	m, st := x.s.master(), x.call.Stream
	remotes := slices.ContainsFunc(x.parts, func(p gridPart) bool { return p.entered })
	if err != nil {
		for k := range x.parts {
			err = x.abort(&x.parts[k], err)
		}
	}
	// The master may read accumulators of remotes until here.
	read := error(nil)
	if remotes {
		read = x.leave()
	}
	for k := range x.parts {
		p := &x.parts[k]
		if p.entered && p.r.ctx.Lost() == nil {
			e := read
			if e == nil && p.leased {
				e = p.r.stream.Wait(m.exchange.done)
			}
			if e != nil { // a stream that is known to be idle needs no edge
				err = attach(attach(err, p.r.fail("waiting for the master", e)), st.Synchronize(context.Background()))
			}
		}
		for _, memory := range []cuda.Slice[uint8]{p.memory, p.acc} {
			if p.leased && !memory.IsNil() {
				err = attach(err, p.r.fail("freeing its accumulator", cuda.PoolFree(p.r.ctx.Pool(), p.r.stream, memory)))
			}
		}
	}
	if !x.arrival.IsNil() {
		err = attach(err, m.fail("freeing a place for accumulators", cuda.PoolFree(m.ctx.Pool(), st, x.arrival)))
	}
	return err
}

// leave marks the end of the call.
func (x *gridExecution) leave() error {
	e := x.parts[0].exchange
	e.last = nil
	sc, err := x.master()
	if err == nil {
		err = sc.Record(x.call.Stream, e.done)
	}
	if err == nil {
		e.last = x.call.Stream
	}
	return err
}

// abort puts the caller's stream behind a remote of a call that failed, and waits for it
// unless the call's context has ended. A lost device is skipped: nothing runs there.
func (x *gridExecution) abort(p *gridPart, err error) error {
	if !p.entered {
		return err
	}
	edge := func(from *cuda.Stream, r *replica) {
		failed := firstError([]error{from.Record(p.exchange.exitOf(from)), x.call.Stream.Wait(p.exchange.exitOf(from))})
		if failed == nil {
			return
		}
		if e := from.Synchronize(context.Background()); e != nil && r.ctx.Lost() == nil {
			err = x.s.diverge(x.plan.Op.Key, attach(err, r.fail("waiting for the end of its streams", e)))
			return
		}
		err = attach(err, r.fail("establishing the exit edge", failed))
	}
	if p.r.ctx.Lost() == nil {
		edge(p.r.stream, p.r)
	}
	// This stream is the master's, whose memory it may still write.
	if m := x.s.master(); p.exchange.up != nil && x.plan.Transport == chunked.Host && m.ctx.Lost() == nil {
		edge(p.exchange.up, m)
	}
	if p.r.ctx.Lost() != nil {
		return err
	}
	if e := p.r.stream.Synchronize(x.ctx); e != nil && x.ctx.Err() == nil {
		err = attach(err, p.r.fail("waiting for a call that failed", e))
	}
	return err
}
