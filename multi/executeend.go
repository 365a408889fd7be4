package multi

import (
	"context"
	"errors"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
)

// abort ends a call that failed with err: nothing more is submitted, the caller's stream
// and the memory of the lease are put behind what was, and the host waits for it unless
// the call's context has ended. A lost device is skipped: nothing runs there.
func (x *execution) abort(err error) error {
	for k := range x.lanes {
		l := &x.lanes[k]
		if !l.entered {
			continue
		}
		if l.r.ctx.Lost() == nil {
			for _, st := range l.r.pipe.streams(l.r) {
				err = x.exit(l, st, l.r.pipe.exit, err)
			}
		}
		// These streams are the master's: they may still write its memory when the
		// remote is lost.
		if h := l.r.pipe.host; k > 0 && h != nil && x.plan.Transport == chunked.Host && x.s.master().ctx.Lost() == nil {
			err = x.exit(l, h.up, h.exit, err)
			err = x.exit(l, h.down, h.exit, err)
		}
	}
	for k := range x.lanes {
		l := &x.lanes[k]
		if !l.entered || l.r.ctx.Lost() != nil {
			continue
		}
		for _, st := range l.r.pipe.streams(l.r) {
			if e := st.Synchronize(x.ctx); e != nil && x.ctx.Err() == nil {
				err = attach(err, l.r.fail("waiting for a call that failed", e))
			}
		}
	}
	return err
}

// exit makes the caller's stream, and the one in whose order the slots are freed, wait for
// the end of a private stream.
func (x *execution) exit(l *lane, st *cuda.Stream, e *cuda.Event, err error) error {
	edges := func() error {
		if err := st.Record(e); err != nil {
			return err
		}
		if err := x.call.Stream.Wait(e); err != nil {
			return err
		}
		if l.r.pipe.in == nil || st == l.r.pipe.in || l.r.ctx.Lost() != nil {
			return nil
		}
		return l.r.pipe.in.Wait(e)
	}
	failed := edges()
	if failed == nil {
		return err
	}
	// A stream that is known to be idle needs no edge.
	if e := st.Synchronize(context.Background()); e != nil && l.r.ctx.Lost() == nil {
		return x.s.diverge(x.plan.Op.Key, attach(err, l.r.fail("waiting for the end of its streams", e)))
	}
	return attach(err, l.r.fail("establishing the exit edge", failed))
}

// release gives the memory of the lease back, behind everything that uses it.
func (x *execution) release(err error) error {
	for k := range x.lanes {
		l := &x.lanes[k]
		if l.memory.IsNil() && l.counts.IsNil() {
			continue
		}
		st := x.call.Stream
		if k > 0 {
			// Winners leave last. After a failure the stream of the inputs waits for all.
			st = l.r.pipe.out
			if x.fetches || err != nil || x.retired < len(x.plan.Chunks) {
				st = l.r.pipe.in
			}
			if x.fetches {
				err = attach(err, l.r.fail("waiting for the master", x.joinFetches(st)))
			}
		}
		pool := l.r.ctx.Pool()
		err = attach(err, l.r.fail("freeing slots", firstError([]error{
			cuda.PoolFree(pool, st, l.memory), cuda.PoolFree(pool, st, l.counts),
		})))
	}
	m := x.s.master()
	err = attach(err, m.fail("waiting for the consumer", x.joinReader()))
	err = attach(err, m.fail("freeing the results of chunks", cuda.PoolFree(m.ctx.Pool(), x.call.Stream, x.results)))
	if x.hook != nil {
		err = x.hook.wrap(x, err)
	}
	return err
}

// joinFetches puts st, a stream of a remote, behind what the master has read of its memory.
func (x *execution) joinFetches(st *cuda.Stream) error {
	m := x.s.master()
	if m.ctx.Lost() != nil || st.Context().Lost() != nil {
		return nil
	}
	by := m.pipe.fetch
	if x.reads {
		by = m.pipe.finalize
	}
	err := by.Record(m.pipe.finalized)
	if err == nil {
		err = st.Wait(m.pipe.finalized)
	}
	if err != nil { // a stream that is known to be idle needs no edge
		return attach(err, by.Synchronize(context.Background()))
	}
	return nil
}

// joinReader puts the caller's stream behind the stream on which the consumer reads.
func (x *execution) joinReader() error {
	if x.hook == nil || x.hook.to.reader == nil || x.s.master().ctx.Lost() != nil {
		return nil
	}
	st, e := x.hook.to.reader, x.s.master().entry // which nobody waits for any more
	if e == nil {
		return nil
	}
	err := st.Record(e)
	if err == nil {
		err = x.call.Stream.Wait(e)
	}
	if err != nil { // a stream that is known to be idle needs no edge
		return attach(err, st.Synchronize(context.Background()))
	}
	return nil
}

// attach keeps the first error and adds later ones to it.
func attach(first, later error) error {
	switch {
	case later == nil:
		return first
	case first == nil:
		return later
	}
	return errors.Join(first, later)
}
