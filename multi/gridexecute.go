package multi

import (
	"context"
	"slices"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// gridExecution carries out the plan of one accumulation: every device with lanes sets an
// accumulator to zero and adds its chunks to it, in ascending order on one stream; the
// accumulators are added on the master, which reads the result out once. All of it are
// sums of integers, so that the plan leaves no trace in the result.
type gridExecution struct {
	s    *Scene
	ctx  context.Context
	call *scene.GridCall
	plan *chunked.Plan
	info *recorder // nil: nobody wants to know

	in, out []scene.RowColumn // of the call, as far as it has them
	parts   []gridPart        // by position
	arrival cuda.Slice[uint8] // on the master: an accumulator that was copied; not for Direct
}

// gridPart is what one device does in a call. The master's accumulator is that of the call.
type gridPart struct {
	r        *replica
	chunks   []chunked.Chunk // ascending
	acc      cuda.Slice[uint8]
	memory   cuda.Slice[uint8] // of the slot
	slot     slot              // copied inputs and outputs; not for Direct
	entered  bool              // something was enqueued
	exchange *exchange         // of a remote
}

// accumulate enqueues the work of a plan. When it returns, the caller's stream is behind
// all of it, also after a failure.
func (s *Scene) accumulate(ctx context.Context, call *scene.GridCall, plan *chunked.Plan, info *recorder) error {
	s.executions.Add(1)
	x := &gridExecution{s: s, ctx: ctx, call: call, plan: plan, info: info}
	return x.run()
}

func (x *gridExecution) run() (err error) {
	m := x.s.master()
	sc, err := m.ctx.Enter()
	if err != nil {
		return m.fail("making its context current", err)
	}
	defer func() {
		if e := sc.Exit(); err == nil {
			err = m.fail("restoring the current context", e)
		}
	}()
	defer func() { err = x.release(err) }()
	if err := x.prepare(); err != nil {
		return err
	}
	if err := x.call.Stream.Record(m.entry); err != nil {
		return m.fail("recording the entry event", err)
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

// prepare makes streams and events that are missing, and leases memory.
func (x *gridExecution) prepare() error {
	m := x.s.master()
	in, out := x.call.Columns()
	x.in, x.out = given(in), given(out)
	x.parts = make([]gridPart, len(x.s.replicas))
	for k, r := range x.s.replicas {
		x.parts[k].r = r
	}
	for _, c := range x.plan.Chunks {
		p := &x.parts[c.Position]
		p.chunks = append(p.chunks, c)
	}
	if err := m.fail("creating an event", one(m.ctx, &m.entry)); err != nil {
		return err
	}
	x.parts[0].acc = x.call.Accumulator()
	if err := m.fail("zeroing its accumulator", x.call.Zero(m.scene, x.call.Stream, x.parts[0].acc)); err != nil {
		return err
	}
	remotes := false
	for k := range x.parts[1:] {
		p := &x.parts[k+1]
		if len(p.chunks) == 0 {
			continue
		}
		remotes = true
		if err := p.r.fail("allocating its accumulator", x.lease(p)); err != nil {
			return err
		}
	}
	if !remotes || x.plan.Transport == chunked.Direct {
		return nil
	}
	var err error
	x.arrival, err = cuda.PoolAlloc[uint8](m.ctx.Pool(), x.call.Stream, int(x.call.AccumulatorBytes()))
	return m.fail("allocating a place for accumulators", err)
}

// lease allocates what a remote needs.
func (x *gridExecution) lease(p *gridPart) (err error) {
	r, m := p.r, x.s.master()
	if r.exchange == nil {
		r.exchange = &exchange{}
	}
	p.exchange = r.exchange
	if err := p.exchange.prepare(r, m, x.plan.Transport); err != nil {
		return err
	}
	p.entered = true // the pool may make its stream wait
	if p.acc, err = cuda.PoolAlloc[uint8](r.ctx.Pool(), r.stream, int(x.call.AccumulatorBytes())); err != nil {
		return err
	}
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

// submit enqueues a chunk.
func (x *gridExecution) submit(p *gridPart, c chunked.Chunk) (err error) {
	in, err := rows(x.in, c.Begin-x.plan.Begin, c.Len())
	if err != nil {
		return err
	}
	out, err := rows(x.out, c.Begin-x.plan.Begin, c.Len())
	if err != nil {
		return err
	}
	if c.Position == 0 {
		return x.launch(p, c, x.call.Stream, in, out)
	}
	sc, err := p.r.ctx.Enter()
	if err != nil {
		return err
	}
	defer func() { err = firstError([]error{err, sc.Exit()}) }()
	st := p.r.stream
	if c.Seq == 0 {
		if err := st.Wait(x.s.master().entry); err != nil {
			return err
		}
		if err := x.call.Zero(p.r.scene, st, p.acc); err != nil {
			return err
		}
	}
	if x.plan.Transport == chunked.Direct {
		return x.launch(p, c, st, in, out)
	}
	return x.copied(p, c, in, out)
}

func (x *gridExecution) launch(p *gridPart, c chunked.Chunk, st *cuda.Stream, in, out []scene.RowColumn) error {
	mark := x.info.begin(c, traverse, st)
	return mark.end(x.call.Accumulate(p.r.scene, st, in, out, p.acc, c.Begin, c.Len()))
}

// copied accumulates copies of the rows in the only slot of the remote: copies take a
// fraction of the time of the rows, and lanes have none.
func (x *gridExecution) copied(p *gridPart, c chunked.Chunk, in, out []scene.RowColumn) error {
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
			err = copyColumns(st, here.in, in, true)
		}
		if err == nil {
			err = copyColumns(st, here.in, in, false)
		}
	}
	if err := mark.end(err); err != nil {
		return err
	}
	if err := x.launch(p, c, st, here.in, here.out); err != nil {
		return err
	}
	if widths(here.out) == 0 {
		return nil
	}
	mark = x.info.begin(c, gather, st)
	if host {
		return mark.end(p.exchange.toMaster(st, out, here.out))
	}
	return mark.end(copyColumns(st, out, here.out, false))
}

// collect adds the accumulators of the remotes to the master's and enqueues the result.
func (x *gridExecution) collect() error {
	m, st := x.s.master(), x.call.Stream
	for k := range x.parts[1:] {
		p := &x.parts[k+1]
		if len(p.chunks) == 0 {
			continue
		}
		last := p.chunks[len(p.chunks)-1]
		acc, err := x.arrive(p)
		if err != nil {
			return p.r.failChunk("sending its accumulator", last, err)
		}
		mark := x.info.begin(last, finalize, st)
		if err := mark.end(x.call.Add(st, x.parts[0].acc, acc)); err != nil {
			return m.failChunk("adding an accumulator", last, err)
		}
	}
	return m.fail("finishing the grid", x.call.Finish(x.parts[0].acc))
}

// arrive puts the caller's stream behind the work of a remote and brings its accumulator
// to where the master reads it.
func (x *gridExecution) arrive(p *gridPart) (cuda.Slice[uint8], error) {
	st, e := x.call.Stream, p.exchange
	if x.plan.Transport == chunked.Host {
		return x.arrival, e.accumulator(p.r.stream, st, x.arrival, p.acc)
	}
	if err := p.r.stream.Record(e.done); err != nil {
		return p.acc, err
	}
	if err := st.Wait(e.done); err != nil || x.plan.Transport == chunked.Direct {
		return p.acc, err
	}
	return x.arrival, cuda.CopyAsync(st, x.arrival, p.acc)
}

// release ends the call: after a failure the caller's stream is put behind everything that
// was enqueued and the host waits for it; in any case memory is given back behind what uses
// it.
func (x *gridExecution) release(err error) error {
	m := x.s.master()
	remotes := slices.ContainsFunc(x.parts, func(p gridPart) bool { return p.entered })
	if err != nil {
		for k := range x.parts {
			err = x.abort(&x.parts[k], err)
		}
	}
	// The master may read accumulators of remotes until here.
	read := error(nil)
	if remotes {
		read = x.call.Stream.Record(m.entry) // for which nobody waits any more
	}
	for k := range x.parts {
		p := &x.parts[k]
		if p.entered && p.r.ctx.Lost() == nil {
			e := read
			if e == nil {
				e = p.r.stream.Wait(m.entry)
			}
			if e != nil { // a stream that is known to be idle needs no edge
				err = attach(attach(err, p.r.fail("waiting for the master", e)), x.call.Stream.Synchronize(context.Background()))
			}
		}
		for _, memory := range []cuda.Slice[uint8]{p.memory, p.acc} {
			if k > 0 && !memory.IsNil() {
				err = attach(err, p.r.fail("freeing its accumulator", cuda.PoolFree(p.r.ctx.Pool(), p.r.stream, memory)))
			}
		}
	}
	if !x.arrival.IsNil() {
		err = attach(err, m.fail("freeing a place for accumulators", cuda.PoolFree(m.ctx.Pool(), x.call.Stream, x.arrival)))
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
