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
func copyColumns(st *cuda.Stream, to, from []scene.RowColumn, whole bool) error {
	for i, c := range to {
		if c.Data.IsNil() || c.Whole() != whole {
			continue
		}
		if err := cuda.CopyAsync(st, c.Data, from[i].Data); err != nil {
			return err
		}
	}
	return nil
}

// passage is a chunk on its way to a remote and back.
type passage struct {
	c             chunked.Chunk
	slot          slot              // its rows in a slot of the remote; of a fetched chunk the winners only
	in, out       []scene.RowColumn // the same rows on the master
	previousInput *cuda.Event       // after which the slot's inputs are free; nil: they are
	previousSend  *cuda.Event       // after which its winners are
}

func (x *execution) passage(l *lane, c chunked.Chunk) (p passage, err error) {
	p.c = c
	s := l.slots[c.Slot]
	if p.slot.out, err = rows(s.out, 0, c.Len()); err != nil {
		return p, err
	}
	call, begin := x.target(c)
	in, out := call.Columns()
	if p.in, err = rows(in, begin, c.Len()); err != nil {
		return p, err
	}
	if p.out, err = rows(out, begin, c.Len()); err != nil {
		return p, err
	}
	if p.slot.in = p.in; !x.fetch {
		if p.slot.in, err = rows(s.in, 0, c.Len()); err != nil {
			return p, err
		}
	}
	if before := c.Seq - chunked.RemoteSlots; before >= 0 {
		p.previousInput = ring(l.r.pipe.computed, before)
		p.previousSend = ring(l.r.pipe.sent, before)
	}
	return p, nil
}

// copied searches a copy of the rows on the remote, by copy engines. Streams for each way
// let a chunk arrive while others are computed and another one leaves. Of a chunk that is
// fetched only the winners are copied.
func (x *execution) copied(l *lane, c chunked.Chunk) error {
	p, err := x.passage(l, c)
	if err != nil {
		return err
	}
	to, back := l.r.pipe.in, l.r.pipe.out
	if c.Seq == 0 {
		if err := to.Wait(x.s.master().entry); err != nil {
			return err
		}
	}
	if !x.fetch {
		if err := x.scatter(to, p); err != nil {
			return err
		}
	}
	if err := x.compute(l, p); err != nil {
		return err
	}
	if err := x.waitConsumed(back, c); err != nil {
		return err
	}
	mark := x.info.begin(c, gather, back)
	if err := mark.end(copyColumns(back, p.out, p.slot.out, false)); err != nil {
		return err
	}
	return back.Record(ring(l.r.pipe.sent, c.Seq))
}

// scatter enqueues the copies of the inputs of a chunk.
func (x *execution) scatter(st *cuda.Stream, p passage) error {
	if err := wait(st, p.previousInput); err != nil {
		return err
	}
	mark := x.info.begin(p.c, scatter, st)
	if p.c.Seq == 0 {
		if err := copyColumns(st, p.slot.in, p.in, true); err != nil {
			return err
		}
	}
	return mark.end(copyColumns(st, p.slot.in, p.in, false))
}

// compute searches a slot whose inputs arrive on the stream of copies to the remote, and
// makes that of copies from the remote wait.
func (x *execution) compute(l *lane, p passage) error {
	pipe, st := l.r.pipe, l.stream(p.c)
	arrived, computed := ring(pipe.copied, p.c.Seq), ring(pipe.computed, p.c.Seq)
	if err := pipe.in.Record(arrived); err != nil {
		return err
	}
	if err := st.Wait(arrived); err != nil {
		return err
	}
	if err := wait(st, p.previousSend); err != nil {
		return err
	}
	mark := x.info.begin(p.c, traverse, st)
	if err := mark.end(x.call.SearchPart(l.r.scene, st, p.slot.in, p.slot.out, p.c.Begin, p.c.Len())); err != nil {
		return err
	}
	if err := st.Record(computed); err != nil {
		return err
	}
	return pipe.out.Wait(computed)
}

// staged is copied by way of page-locked host memory, in two steps each way.
func (x *execution) staged(l *lane, c chunked.Chunk) error {
	p, err := x.passage(l, c)
	if err != nil {
		return err
	}
	pipe, h := l.r.pipe, l.r.pipe.host
	per := min(x.plan.ChunkRows[c.Position], x.plan.Shards[c.Position].Len())
	inAt := wholeBytes(p.in) + int64(c.Seq%hostSlots)*per*x.plan.Op.In
	outAt := int64(c.Seq%hostSlots) * per * x.plan.Op.Wire
	if c.Seq == 0 {
		if err := h.up.Wait(x.s.master().entry); err != nil {
			return err
		}
	}
	before := c.Seq - hostSlots // who used the host memory
	if before >= 0 {
		if err := h.up.Wait(ring(pipe.copied, before)); err != nil {
			return err
		}
	}
	mark := x.info.begin(c, scatter, h.up)
	if c.Seq == 0 {
		if err := toHost(h.up, h.in, 0, p.in, true); err != nil {
			return err
		}
	}
	if err := mark.end(toHost(h.up, h.in, inAt, p.in, false)); err != nil {
		return err
	}
	staged := ring(h.staged, c.Seq)
	if err := h.up.Record(staged); err != nil {
		return err
	}
	if err := pipe.in.Wait(staged); err != nil {
		return err
	}
	if err := wait(pipe.in, p.previousInput); err != nil {
		return err
	}
	if c.Seq == 0 {
		if err := fromHost(pipe.in, p.slot.in, h.in, 0, true); err != nil {
			return err
		}
	}
	if err := fromHost(pipe.in, p.slot.in, h.in, inAt, false); err != nil {
		return err
	}
	if err := x.compute(l, p); err != nil {
		return err
	}
	if before >= 0 {
		if err := pipe.out.Wait(ring(h.landed, before)); err != nil {
			return err
		}
	}
	if err := toHost(pipe.out, h.out, outAt, p.slot.out, false); err != nil {
		return err
	}
	sent := ring(pipe.sent, c.Seq)
	if err := pipe.out.Record(sent); err != nil {
		return err
	}
	if err := h.down.Wait(sent); err != nil {
		return err
	}
	if err := x.waitConsumed(h.down, c); err != nil {
		return err
	}
	mark = x.info.begin(c, gather, h.down)
	if err := mark.end(fromHost(h.down, p.out, h.out, outAt, false)); err != nil {
		return err
	}
	return h.down.Record(ring(h.landed, c.Seq))
}

// wait is Wait for an event that may be missing.
func wait(st *cuda.Stream, e *cuda.Event) error {
	if e == nil {
		return nil
	}
	return st.Wait(e)
}
