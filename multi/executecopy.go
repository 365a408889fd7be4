package multi

import (
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// rows are rows [begin, begin+n) of the columns that are present, and the whole of those
// that all rows share.
func rows(columns []scene.RowColumn, begin, n int64) ([]scene.RowColumn, error) {
	out := make([]scene.RowColumn, len(columns))
	for i, c := range columns {
		out[i] = c
		if c.Data.IsNil() || c.Whole() {
			continue
		}
		w := int64(c.Width)
		var err error
		if out[i].Data, err = c.Data.Sub(int(begin*w), int((begin+n)*w)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// copyColumns enqueues copies of the columns that are present, of those that all rows
// share or of the others.
func copyColumns(sc cuda.Scope, st *cuda.Stream, to, from []scene.RowColumn, whole bool) error {
	for i, c := range to {
		if c.Data.IsNil() || c.Whole() != whole {
			continue
		}
		if err := cuda.CopyAsyncIn(sc, st, c.Data, from[i].Data); err != nil {
			return err
		}
	}
	return nil
}

// passage is a chunk on its way to a remote.
type passage struct {
	c             chunked.Chunk
	slot          slot              // its rows in a slot of the remote; inputs that are read in place, on the master
	in            []scene.RowColumn // the same rows on the master
	previousInput *cuda.Event       // after which the slot's inputs are free; nil: they are
	previousSend  *cuda.Event       // after which its winners are
}

func (x *execution) passage(l *lane, c chunked.Chunk) (p passage, err error) {
	p.c = c
	s := l.slots[c.Slot]
	if p.slot.out, err = rows(s.out, 0, c.Len()); err != nil {
		return p, err
	}
	in, _ := x.call.Columns()
	if p.in, err = rows(in, c.Begin, c.Len()); err != nil {
		return p, err
	}
	if p.slot.in = p.in; x.plan.Transport != chunked.Direct {
		if p.slot.in, err = rows(s.in, 0, c.Len()); err != nil {
			return p, err
		}
	}
	if before := c.Seq - chunked.RemoteSlots; before >= 0 {
		p.previousInput = ring(l.r.pipe.computed, before)
		if p.previousSend = ring(l.r.pipe.sent, before); x.fetches {
			p.previousSend = ring(l.r.pipe.fetched, before)
		}
	}
	return p, nil
}

// send enqueues the search of a slot, behind the way of the inputs into it. Streams for
// each way let a chunk arrive while others are computed and another one leaves.
func (x *execution) send(l *lane, c chunked.Chunk) error {
	p, err := x.passage(l, c)
	if err != nil {
		return err
	}
	pipe := l.r.pipe
	if x.plan.Transport == chunked.Host { // half of the way is on the master's streams
		if err := x.stage(l, p); err != nil {
			return err
		}
	}
	sc, err := x.on(l.r)
	if err != nil {
		return err
	}
	if c.Seq == 0 && x.plan.Transport != chunked.Host {
		if err := sc.Wait(pipe.in, x.s.master().entry); err != nil {
			return err
		}
	}
	if x.plan.Transport == chunked.Copy {
		if err := x.scatter(sc, pipe.in, p); err != nil {
			return err
		}
	}
	return x.compute(sc, l, p)
}

// bring enqueues the way of the winners of a chunk to where it is finalized. Where the master
// reads the memory of the remote, it fetches them: of all events on the way, one only is another
// device's, and the context stays what it is.
func (x *execution) bring(l *lane, c chunked.Chunk) error {
	from, err := rows(l.slots[c.Slot].out, 0, c.Len())
	if err != nil {
		return err
	}
	call, begin := x.target(c)
	_, out := call.Columns()
	to, err := rows(out, begin, c.Len())
	if err != nil {
		return err
	}
	pipe, by := l.r.pipe, l.r
	st, sent := pipe.out, pipe.sent
	if x.fetches {
		by = x.s.master()
		st, sent = by.pipe.fetch, pipe.fetched
	}
	sc, err := x.on(by)
	if err != nil {
		return err
	}
	if err := sc.Wait(st, ring(pipe.computed, c.Seq)); err != nil {
		return err
	}
	if x.plan.Transport == chunked.Host {
		return x.land(sc, l, c, to, from)
	}
	if err := x.waitConsumed(sc, st, c); err != nil {
		return err
	}
	mark := x.info.begin(c, gather, st)
	if err := mark.end(copyColumns(sc, st, to, from, false)); err != nil {
		return err
	}
	return sc.Record(st, ring(sent, c.Seq))
}

// scatter enqueues the copies of the inputs of a chunk.
func (x *execution) scatter(sc cuda.Scope, st *cuda.Stream, p passage) error {
	if err := wait(sc, st, p.previousInput); err != nil {
		return err
	}
	mark := x.info.begin(p.c, scatter, st)
	if p.c.Seq == 0 {
		if err := copyColumns(sc, st, p.slot.in, p.in, true); err != nil {
			return err
		}
	}
	return mark.end(copyColumns(sc, st, p.slot.in, p.in, false))
}

// compute searches a slot whose inputs arrive on the stream of copies to the remote, or are
// read where they are.
func (x *execution) compute(sc cuda.Scope, l *lane, p passage) error {
	pipe, st := l.r.pipe, l.stream(p.c)
	arrived, computed := ring(pipe.copied, p.c.Seq), ring(pipe.computed, p.c.Seq)
	// Where nothing is copied, the first on its stream waits for the slots themselves.
	copied := x.plan.Transport != chunked.Direct
	if !copied {
		arrived = pipe.copied[0]
	}
	if copied || p.c.Seq == 0 {
		if err := sc.Record(pipe.in, arrived); err != nil {
			return err
		}
	}
	if copied || p.c.Seq < max(len(l.turns), 1) {
		if err := sc.Wait(st, arrived); err != nil {
			return err
		}
	}
	if err := wait(sc, st, p.previousSend); err != nil {
		return err
	}
	mark := x.info.begin(p.c, traverse, st)
	var err error
	if x.call.Counters, err = l.counters(p.c); err != nil {
		return err
	}
	x.call.Scope, x.call.Abreast = sc, l.abreast(x.plan.Transport, p.c)
	if err := mark.end(x.call.SearchPart(l.r.scene, st, p.slot.in, p.slot.out, p.c.Begin, p.c.Len())); err != nil {
		return err
	}
	return sc.Record(st, computed)
}

// stage enqueues the way of the inputs of a chunk through page-locked host memory, in two
// steps.
func (x *execution) stage(l *lane, p passage) error {
	pipe, h, c := l.r.pipe, l.r.pipe.host, p.c
	at := wholeBytes(p.in) + int64(c.Seq%hostSlots)*x.widest(c)*x.plan.Op.In
	sc, err := x.on(x.s.master())
	if err != nil {
		return err
	}
	if c.Seq == 0 {
		if err := sc.Wait(h.up, x.s.master().entry); err != nil {
			return err
		}
	}
	if before := c.Seq - hostSlots; before >= 0 { // who used the host memory
		if err := sc.Wait(h.up, ring(pipe.copied, before)); err != nil {
			return err
		}
	}
	mark := x.info.begin(c, scatter, h.up)
	if c.Seq == 0 {
		if err := toHost(h.up, h.in, 0, p.in, true); err != nil {
			return err
		}
	}
	if err := mark.end(toHost(h.up, h.in, at, p.in, false)); err != nil {
		return err
	}
	staged := ring(h.staged, c.Seq)
	if err := sc.Record(h.up, staged); err != nil {
		return err
	}
	if sc, err = x.on(l.r); err != nil {
		return err
	}
	if err := sc.Wait(pipe.in, staged); err != nil {
		return err
	}
	if err := wait(sc, pipe.in, p.previousInput); err != nil {
		return err
	}
	if c.Seq == 0 {
		if err := fromHost(pipe.in, p.slot.in, h.in, 0, true); err != nil {
			return err
		}
	}
	return fromHost(pipe.in, p.slot.in, h.in, at, false)
}

// land is stage for the winners, in the other direction. The scope is one of the remote.
func (x *execution) land(sc cuda.Scope, l *lane, c chunked.Chunk, to, from []scene.RowColumn) error {
	pipe, h := l.r.pipe, l.r.pipe.host
	at := int64(c.Seq%hostSlots) * x.widest(c) * x.plan.Op.Wire
	if before := c.Seq - hostSlots; before >= 0 {
		if err := sc.Wait(pipe.out, ring(h.landed, before)); err != nil {
			return err
		}
	}
	if err := toHost(pipe.out, h.out, at, from, false); err != nil {
		return err
	}
	sent := ring(pipe.sent, c.Seq)
	if err := sc.Record(pipe.out, sent); err != nil {
		return err
	}
	sc, err := x.on(x.s.master())
	if err != nil {
		return err
	}
	if err := sc.Wait(h.down, sent); err != nil {
		return err
	}
	if err := x.waitConsumed(sc, h.down, c); err != nil {
		return err
	}
	mark := x.info.begin(c, gather, h.down)
	if err := mark.end(fromHost(h.down, to, h.out, at, false)); err != nil {
		return err
	}
	return sc.Record(h.down, ring(h.landed, c.Seq))
}

// widest is the rows of the largest chunk of the device of c.
func (x *execution) widest(c chunked.Chunk) int64 {
	return min(x.plan.ChunkRows[c.Position], x.plan.Shards[c.Position].Len())
}

// wait is Wait for an event that may be missing.
func wait(sc cuda.Scope, st *cuda.Stream, e *cuda.Event) error {
	if e == nil {
		return nil
	}
	return sc.Wait(st, e)
}
