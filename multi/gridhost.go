package multi

import (
	"context"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// exchange is the events, and for the Host transport the stream and the page-locked memory,
// by which one remote exchanges rows and accumulators with the master. It is made when it
// is first needed and kept: a wait captures the recording of its event when it is enqueued,
// and calls submit one after the other.
type exchange struct {
	// done is how far the stream of the device has come: of a remote, with its lanes; of the
	// master the stream of the caller, at the end of a call, and where lanes have inputs,
	// also at its beginning. last is that stream.
	done *cuda.Event
	last *cuda.Stream

	// sums is for accumulators of up to keptBytes, which the Direct transport does not
	// lease. Calls take one piece after the other, up to at, and in every lap from the
	// beginning; the lap and the place in it are the master's. A device sets all of it to
	// zero in its first call of a lap: cleared is that lap.
	sums         cuda.Slice[uint8]
	lap, cleared int
	at           int64
	read         *cuda.Event // done of the master

	// Of the Host transport. up is a stream of the master, the other side is the remote's
	// stream. One buffer in each direction is enough for work that takes longer than its
	// copies; events say when it may be filled again.
	up             *cuda.Stream
	staged, copied *cuda.Event // inputs are in host memory, and have left it
	sent, landed   *cuda.Event // outputs are in host memory, and have left it
	end            *cuda.Event // of up, in a call that failed
	in, out        *cuda.Pinned[uint8]
}

// Accumulators of up to keptBytes, in which there is room for 5460 cells of AccumDfrDirect,
// take less time to add up than to lease and clear. Every device keeps keptLap for them: it
// clears them, and waits for what the master has read, once in several calls.
const (
	keptBytes = 256 << 10
	keptLap   = 4 * keptBytes
)

// keeps reports whether the accumulators of a call that is divided are those of the devices.
// What they keep is not given back, so that it is not for calls with a budget.
func keeps(p *chunked.Plan, call *scene.GridCall) bool {
	return p.Transport == chunked.Direct && p.Budget == 0 && call.AccumulatorBytes() <= keptBytes
}

// exchanged is the exchange of the device.
func (r *replica) exchanged() *exchange {
	if r.exchange == nil {
		r.exchange = &exchange{}
	}
	return r.exchange
}

// turnTo goes on, on the master, to a piece for an accumulator.
func (e *exchange) turnTo(bytes int64) {
	if e.at += aligned(bytes); e.lap == 0 || e.at > keptLap {
		e.lap++
		e.at = aligned(bytes)
	}
}

// keep takes the piece that the master has turned to for the accumulator of a device.
func (x *gridExecution) keep(p *gridPart) (err error) {
	e, master, bytes := p.exchange, x.parts[0].exchange, x.call.AccumulatorBytes()
	if e.sums.IsNil() {
		if e.sums, err = cuda.Alloc[uint8](p.r.ctx, keptLap); err != nil {
			return err
		}
		e.read = master.done
	}
	if e.cleared != master.lap {
		p.dirty = e.sums
	}
	begin := master.at - aligned(bytes)
	p.acc, err = e.sums.Sub(int(begin), int(begin+bytes))
	return err
}

// prepare makes what a transport needs and does not exist yet.
func (e *exchange) prepare(r, master *replica, t chunked.Transport) error {
	if err := one(r.ctx, &e.done); err != nil || t != chunked.Host {
		return err
	}
	return firstError([]error{
		stream(master.ctx, &e.up), one(master.ctx, &e.staged), one(r.ctx, &e.copied),
		one(r.ctx, &e.sent), one(master.ctx, &e.landed), one(master.ctx, &e.end),
	})
}

// lease makes the host memory at least so large.
func (e *exchange) lease(r *replica, in, out int64) error {
	return firstError([]error{pin(&e.in, r.ctx, in, e.up, r.stream), pin(&e.out, r.ctx, out, e.up, r.stream)})
}

// exitOf is the event that marks the end of one of the streams after a failure.
func (e *exchange) exitOf(st *cuda.Stream) *cuda.Event {
	if st == e.up {
		return e.end
	}
	return e.done
}

// toRemote enqueues on st, the remote's stream, the arrival of inputs of a chunk.
func (e *exchange) toRemote(x *gridExecution, st *cuda.Stream, c chunked.Chunk, to, from []scene.RowColumn) error {
	whole := int64(0)
	if c.Seq == 0 {
		if err := e.up.Wait(x.s.master().exchange.done); err != nil {
			return err
		}
		whole = wholeBytes(from)
	}
	if whole+rowBytes(from) == 0 {
		return nil
	}
	if err := e.up.Wait(e.copied); err != nil {
		return err
	}
	if whole > 0 {
		if err := toHost(e.up, e.in, 0, from, true); err != nil {
			return err
		}
	}
	if err := toHost(e.up, e.in, whole, from, false); err != nil {
		return err
	}
	if err := pass(e.up, st, e.staged); err != nil {
		return err
	}
	if whole > 0 {
		if err := fromHost(st, to, e.in, 0, true); err != nil {
			return err
		}
	}
	if err := fromHost(st, to, e.in, whole, false); err != nil {
		return err
	}
	return st.Record(e.copied)
}

// toMaster enqueues on st the departure of outputs of a chunk, and on a stream of the
// master their arrival.
func (e *exchange) toMaster(st *cuda.Stream, to, from []scene.RowColumn) error {
	if err := st.Wait(e.landed); err != nil {
		return err
	}
	if err := toHost(st, e.out, 0, from, false); err != nil {
		return err
	}
	if err := pass(st, e.up, e.sent); err != nil {
		return err
	}
	if err := fromHost(e.up, to, e.out, 0, false); err != nil {
		return err
	}
	return e.up.Record(e.landed)
}

// accumulator enqueues the way of an accumulator to the master, where callers goes on
// behind it and behind all outputs.
func (e *exchange) accumulator(st, callers *cuda.Stream, to, from cuda.Slice[uint8]) error {
	for _, waits := range []*cuda.Stream{st, callers} { // for outputs of chunks
		if err := waits.Wait(e.landed); err != nil {
			return err
		}
	}
	if err := cuda.CopyOutPinned(st, e.out, 0, from); err != nil {
		return err
	}
	if err := pass(st, callers, e.sent); err != nil {
		return err
	}
	if err := cuda.CopyInPinned(callers, to, e.out, 0); err != nil {
		return err
	}
	return callers.Record(e.landed)
}

// pass makes one stream wait for the work of another so far.
func pass(from, to *cuda.Stream, e *cuda.Event) error {
	if err := from.Record(e); err != nil {
		return err
	}
	return to.Wait(e)
}

func (e *exchange) close(r *replica) error {
	if e == nil {
		return nil
	}
	var errs []error
	if !e.sums.IsNil() {
		errs = append(errs, e.read.Synchronize(context.Background()), cuda.Free(e.sums))
	}
	if e.up != nil { // its memory must not be freed under a copy
		errs = append(errs, e.up.Synchronize(context.Background()), r.stream.Synchronize(context.Background()), e.up.Close())
	}
	for _, event := range []*cuda.Event{e.done, e.staged, e.copied, e.sent, e.landed, e.end} {
		errs = append(errs, event.Close())
	}
	return firstError(append(errs, e.in.Close(), e.out.Close()))
}
