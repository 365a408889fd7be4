package multi

import (
	"context"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// execution carries out the plan of one call. It decides nothing: chunks, their order and
// their slots are the plan's. What it holds is released on every exit.
type execution struct {
	s    *Scene
	ctx  context.Context
	call *scene.Call
	plan *chunked.Plan
	hook *delivery // nil: the call has a result
	info *recorder // nil: nobody wants to know

	scope   cuda.Scope // of the device that was needed last, but for the time of a hook
	entered bool

	in, out  []scene.RowColumn // of the call, as far as it has them
	lanes    []lane            // by position
	apart    bool              // there are more chunks than records: winners of remotes wait in slots of theirs
	fetches  bool              // where the master may access them
	reads    bool              // and needs nothing but a look at them: it finalizes them from there
	order    []int32           // chunks by their number of retirement
	before   []int             // by the same number: the one of the chunk whose record it takes; -1: none
	followed []bool            // by the same number: another chunk takes its record
	retired  int               // how many are
	records  []record          // slots of results for a hook
	results  cuda.Slice[uint8] // their memory
}

// record is a place on the master for the result of a chunk.
type record struct {
	memory cuda.Slice[uint8]
	part   *scene.Call // the chunk that is there
}

// execute enqueues the work of a plan. When it returns, the caller's stream is behind all
// of it, also after a failure.
func (s *Scene) execute(ctx context.Context, call *scene.Call, plan *chunked.Plan, hook *delivery, info *recorder) error {
	s.executions.Add(1)
	x := &execution{s: s, ctx: ctx, call: call, plan: plan, hook: hook, info: info}
	return x.run()
}

func (x *execution) run() (err error) {
	m := x.s.master()
	sc, err := x.on(m)
	if err != nil {
		return m.fail("making its context current", err)
	}
	defer func() {
		if e := x.leave(); err == nil {
			err = e
		}
	}()
	complete := false
	defer func() { // also when the goroutine ends in a hook
		if !complete || err != nil {
			err = x.abort(err)
		}
		err = x.release(err)
	}()
	if err := x.prepare(); err != nil {
		return err
	}
	together := x.plan.Kind != chunked.KindDirect
	if !together {
		if err := m.fail("marking the rows", x.call.Mark()); err != nil {
			return err
		}
	}
	if x.fills() {
		if err := m.fail("filling rows of remotes", x.fill()); err != nil {
			return err
		}
	}
	if err := sc.Record(x.call.Stream, m.entry); err != nil {
		return m.fail("recording the entry event", err)
	}
	// With one launch per device the master's comes first: its device has the longest
	// way to go, because it finalizes the rows of all, and the others have time until
	// it has finalized its own.
	err = x.submitAll(func(c chunked.Chunk) bool { return together || c.Position == 0 })
	if err == nil && !together {
		err = x.submitAll(func(c chunked.Chunk) bool { return c.Position > 0 })
	}
	if err != nil {
		return err
	}
	err = x.retire(len(x.plan.Chunks))
	if err == nil && x.hook == nil {
		err = m.fail("finishing the result", x.call.Finish())
	}
	complete = true
	return err
}

// on makes the context of a device current, until that of another one is needed, a hook is
// called or the call ends: one change of the thread's context instead of one per driver call.
func (x *execution) on(r *replica) (sc cuda.Scope, err error) {
	if !x.entered {
		x.scope, err = r.ctx.Enter()
		x.entered = err == nil
	} else if x.scope.Context() != r.ctx {
		x.scope, err = x.scope.Switch(r.ctx)
	}
	return x.scope, err
}

// leave restores the context that was current before the call, or before what followed a hook.
func (x *execution) leave() error {
	if !x.entered {
		return nil
	}
	x.entered = false
	return x.s.master().fail("restoring the current context", x.scope.Exit())
}

// deliver gives a chunk to the hook, which is not to find another current context than its
// caller has.
func (x *execution) deliver(c chunked.Chunk, call *scene.Call) error {
	if err := x.leave(); err != nil {
		return err
	}
	return x.hook.deliver(x.ctx, c.Range(), call)
}

// submitAll submits, in the plan's order, the chunks that are picked.
func (x *execution) submitAll(pick func(chunked.Chunk) bool) error {
	for _, c := range x.plan.Chunks {
		if !pick(c) {
			continue
		}
		if err := x.makeRoom(c); err != nil {
			return err
		}
		if err := x.submit(c); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes streams and events that are missing, and leases memory.
func (x *execution) prepare() error {
	m, n := x.s.master(), len(x.s.replicas)
	in, out := x.call.Columns()
	x.in, x.out = given(in), out
	x.apart, x.fetches = apart(x.plan, x.hook != nil), fetched(x.plan, x.hook != nil)
	x.reads = x.fetches && x.call.Distant()
	counts := x.number(n)
	if err := m.fail("creating an event", one(m.ctx, &m.entry)); err != nil {
		return err
	}
	if err := x.leaseRecords(); err != nil {
		return m.fail("allocating the results of chunks", err)
	}
	for k := range x.lanes {
		l := &x.lanes[k]
		r := l.r
		if k == 0 && counts[k] < 2 && !x.apart || k > 0 && counts[k] == 0 {
			continue // the caller's stream serves
		}
		if r.pipe == nil {
			r.pipe = &pipe{}
		}
		need := x.needs(l, counts[k])
		if err := r.pipe.prepare(need); err != nil {
			return r.fail("creating streams and events", err)
		}
		if need.searches > 0 {
			l.turns = r.pipe.search[:need.searches]
		}
		if counted(x.plan, x.hook != nil, k, counts[k]) {
			st := x.call.Stream
			if k > 0 {
				st = r.pipe.in
			}
			l.entered = true // the pool may make its stream wait
			if err := l.count(st); err != nil {
				return r.fail("clearing counters", err)
			}
		}
		if k == 0 || x.plan.Transport == chunked.Direct && !x.apart {
			continue
		}
		if err := x.lease(l, min(counts[k], chunked.RemoteSlots)); err != nil {
			return r.fail("allocating slots", err)
		}
	}
	return nil
}

// number fills in what follows from the order of the chunks, and counts those of each of n
// devices.
func (x *execution) number(n int) (counts []int64) {
	x.order, x.before = make([]int32, len(x.plan.Chunks)), make([]int, len(x.plan.Chunks))
	x.followed = make([]bool, len(x.plan.Chunks))
	x.lanes, counts = make([]lane, n), make([]int64, n)
	for k, r := range x.s.replicas {
		x.lanes[k].r = r
	}
	for i, c := range x.plan.Chunks {
		x.order[c.Retire] = int32(i)
		counts[c.Position]++
		x.lanes[c.Position].retire = append(x.lanes[c.Position].retire, c.Retire)
	}
	last := make([]int, x.plan.RecordSlots)
	for i := range last {
		last[i] = -1
	}
	for retire, i := range x.order {
		x.before[retire] = -1
		if x.hook != nil {
			record := x.plan.Chunks[i].Record
			x.before[retire], last[record] = last[record], retire
		}
		if before := x.before[retire]; before >= 0 {
			x.followed[before] = true
		}
	}
	return counts
}

// apart reports whether remotes keep their winners until it is their turn in a record. If
// they were sent, or written, to it at once, the few results that the master holds for a
// consumer would hold up searches; the memory is what the plan counts for copies.
func apart(p *chunked.Plan, streamed bool) bool { return streamed && len(p.Chunks) > p.RecordSlots }

// fetched reports whether remotes have slots for winners only, and read rows in place.
func fetched(p *chunked.Plan, streamed bool) bool {
	return p.Transport == chunked.Direct && apart(p, streamed)
}

// counted reports whether counters of the searches of a device with so many chunks are cleared
// together: there is a stream that all of them come behind.
func counted(p *chunked.Plan, streamed bool, position int, chunks int64) bool {
	if position == 0 {
		return chunks > 1 || apart(p, streamed)
	}
	return chunks > 0 && (p.Transport != chunked.Direct || apart(p, streamed))
}

// needs is what a device with so many chunks needs of its pipe.
func (x *execution) needs(l *lane, chunks int64) needs {
	t := x.plan.Transport
	n := needs{
		of: l.r.ctx, master: x.s.master().ctx,
		copies:   l.r.position > 0 && (t != chunked.Direct || x.apart),
		fetches:  l.r.position > 0 && x.fetches,
		host:     l.r.position > 0 && t == chunked.Host,
		finalize: l.r.position == 0 && x.apart,
		fetch:    l.r.position == 0 && len(x.lanes) > 1 && x.fetches && !x.reads,
	}
	if chunks > 1 || n.finalize {
		n.searches = int(min(chunks, searchStreams))
	}
	return n
}

// lease allocates what the chunks of a remote need to be copied.
func (x *execution) lease(l *lane, slots int64) error {
	rows := min(x.plan.ChunkRows[l.r.position], x.plan.Shards[l.r.position].Len())
	l.entered = true // the pool may make its stream wait
	in := x.in
	if x.fetches {
		in = nil
	}
	if err := l.lease(l.r.pipe.in, in, x.out, rows, slots); err != nil {
		return err
	}
	if x.plan.Transport != chunked.Host {
		return nil
	}
	return l.r.pipe.host.lease(l.r, wholeBytes(x.in)+hostSlots*rows*x.plan.Op.In, hostSlots*rows*x.plan.Op.Wire)
}

// leaseRecords allocates the slots of results for a hook.
func (x *execution) leaseRecords() error {
	if x.hook == nil {
		return nil
	}
	m := x.s.master()
	if err := grow(m.ctx, &m.consumed, x.plan.RecordSlots); err != nil {
		return err
	}
	rows := int64(0)
	for _, c := range x.plan.Chunks {
		rows = max(rows, c.Len())
	}
	n, each := min(x.plan.RecordSlots, len(x.plan.Chunks)), int(aligned(x.call.PartBytes(rows)))
	var err error
	if x.results, err = cuda.PoolAlloc[uint8](m.ctx.Pool(), x.call.Stream, n*each); err != nil {
		return err
	}
	x.records = make([]record, n)
	for i := range x.records {
		if x.records[i].memory, err = x.results.Sub(i*each, (i+1)*each); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom retires chunks until c may be submitted: a device has as many chunks on their way
// as there are slots, and what takes a record comes after the chunk that had it.
func (x *execution) makeRoom(c chunked.Chunk) error {
	need := 0
	if before := c.Seq - chunked.RemoteSlots; before >= 0 {
		need = x.lanes[c.Position].retire[before] + 1
	}
	late := x.apart && c.Position > 0 // takes its record when it is retired
	if !late {
		need = max(need, x.before[c.Retire]+1)
	}
	if err := x.retire(need); err != nil {
		return err
	}
	if err := context.Cause(x.ctx); err != nil || late {
		return err
	}
	return x.takeRecord(c)
}

// takeRecord makes the record of a chunk its result.
func (x *execution) takeRecord(c chunked.Chunk) (err error) {
	if x.hook == nil {
		return nil
	}
	rec := &x.records[c.Record]
	rec.part, err = x.call.Part(rec.memory, c.Begin, c.Len())
	return x.s.master().failChunk("preparing a chunk", c, err)
}

// target is where the rows of a chunk are searched and finalized: in the result of the
// call, or in a slot for a hook.
func (x *execution) target(c chunked.Chunk) (call *scene.Call, begin int64) {
	if x.hook == nil {
		return x.call, c.Begin
	}
	return x.records[c.Record].part, 0
}

// submit enqueues the search of a chunk.
func (x *execution) submit(c chunked.Chunk) error {
	l := &x.lanes[c.Position]
	if c.Position == 0 && l.turns == nil {
		sc, err := x.on(l.r)
		if err == nil {
			err = x.searchInPlace(sc, l, x.call.Stream, c)
		}
		return l.r.failChunk("search", c, err)
	}
	l.entered = true
	if x.inPlace(c) {
		return l.r.failChunk("search", c, x.direct(l, c))
	}
	if err := x.send(l, c); err != nil {
		return l.r.failChunk("search of a slot", c, err)
	}
	if x.apart {
		return nil
	}
	return l.r.failChunk("copy of winners", c, x.bring(l, c))
}

// inPlace reports whether a chunk is searched where it is finalized.
func (x *execution) inPlace(c chunked.Chunk) bool {
	return c.Position == 0 || x.plan.Transport == chunked.Direct && !x.apart
}

// direct searches rows in place, on a stream of the device's: a remote reads and writes the
// memory of the master.
func (x *execution) direct(l *lane, c chunked.Chunk) error {
	sc, err := x.on(l.r)
	if err != nil {
		return err
	}
	st := l.stream(c)
	if c.Seq < max(len(l.turns), 1) { // the first on its stream
		if err := sc.Wait(st, x.s.master().entry); err != nil {
			return err
		}
	}
	if err := x.searchInPlace(sc, l, st, c); err != nil {
		return err
	}
	return sc.Record(st, ring(l.r.pipe.computed, c.Seq))
}

// searchInPlace enqueues the search of rows where they are and will be finalized.
func (x *execution) searchInPlace(sc cuda.Scope, l *lane, st *cuda.Stream, c chunked.Chunk) (err error) {
	if err := x.waitConsumed(sc, st, c); err != nil {
		return err
	}
	call, begin := x.target(c)
	in, out := call.Columns()
	mark := x.info.begin(c, traverse, st)
	if call.Counters, err = l.counters(c); err != nil {
		return err
	}
	call.Scope, call.Abreast, call.Filled = sc, l.abreast(x.plan.Transport, c), c.Position > 0 && x.fills()
	return mark.end(call.Search(l.r.scene, st, in, out, begin, c.Len()))
}

// fills reports whether the master fills rows of remotes, which are then searched in the result.
func (x *execution) fills() bool { return x.plan.Transport == chunked.Direct && x.hook == nil }

// fill enqueues it. The rows of the master are the first.
func (x *execution) fill() error {
	begin := x.plan.Shards[0].End
	return x.call.Fill(begin, x.plan.Begin+x.plan.Rows-begin)
}

// waitConsumed holds st up until the hook has the chunk whose place c takes.
func (x *execution) waitConsumed(sc cuda.Scope, st *cuda.Stream, c chunked.Chunk) error {
	if x.before[c.Retire] < 0 {
		return nil
	}
	return sc.Wait(st, x.s.master().consumed[c.Record])
}

// retire completes chunks, in their order, until n are.
func (x *execution) retire(n int) error {
	for x.retired < n {
		if err := x.complete(x.plan.Chunks[x.order[x.retired]]); err != nil {
			return err
		}
	}
	return nil
}

// complete finalizes a chunk and gives it to the hook. It is retired when the hook has it, whatever
// comes after.
func (x *execution) complete(c chunked.Chunk) error {
	m, l := x.s.master(), &x.lanes[c.Position]
	if x.apart && c.Position > 0 {
		if err := x.takeRecord(c); err != nil {
			return err
		}
		if !x.reads {
			if err := x.bring(l, c); err != nil {
				return l.r.failChunk("copy of winners", c, err)
			}
		}
	}
	sc, err := x.on(m)
	if err != nil {
		return m.fail("making its context current", err)
	}
	call, begin := x.target(c)
	call.Scope = sc
	// Where searches fill the device, a stream that goes first has what comes before the
	// consumer.
	st := x.call.Stream
	if x.apart {
		st = m.pipe.finalize
	}
	if c.Position > 0 || l.turns != nil {
		if err := sc.Wait(st, x.arrived(l.r, c)); err != nil {
			return l.r.failChunk("waiting for the winners", c, err)
		}
	}
	count := c.Len()
	if c.Position == 0 && call.Marked() { // with what there is of the others, who may not have ended
		begin, count = 0, call.Rows
	}
	if x.reads && c.Position > 0 {
		err = x.finalizeSlot(sc, call, st, c)
	} else {
		err = x.finalize(call, st, c, func() error { return call.Finalize(begin, count) })
	}
	if err != nil {
		return m.failChunk("finalize", c, err)
	}
	if x.hook == nil {
		x.retired++
		return nil
	}
	if x.apart {
		if err := sc.Record(st, m.pipe.finalized); err != nil {
			return m.failChunk("finalize", c, err)
		}
		if err := sc.Wait(x.call.Stream, m.pipe.finalized); err != nil {
			return m.failChunk("waiting for finalize", c, err)
		}
	}
	if err := x.deliver(c, call); err != nil {
		return err
	}
	x.retired++
	if !x.followed[c.Retire] {
		return nil
	}
	if sc, err = x.on(m); err != nil {
		return m.fail("making its context current", err)
	}
	return m.failChunk("recording that a chunk is consumed", c, sc.Record(x.hook.reader(x.call.Stream), m.consumed[c.Record]))
}

// finalize completes rows on st by f, for the sake of a chunk.
func (x *execution) finalize(call *scene.Call, st *cuda.Stream, c chunked.Chunk, f func() error) error {
	own := call.Stream
	call.Stream = st
	defer func() { call.Stream = own }() // of which the consumer makes use
	mark := x.info.begin(c, finalize, st)
	if err := mark.end(f()); err != nil || x.hook == nil {
		return err
	}
	return call.Finish()
}

// finalizeSlot completes a chunk whose winners stay in the slot of a remote.
func (x *execution) finalizeSlot(sc cuda.Scope, call *scene.Call, st *cuda.Stream, c chunked.Chunk) error {
	l := &x.lanes[c.Position]
	out, err := rows(l.slots[c.Slot].out, 0, c.Len())
	if err != nil {
		return err
	}
	if err := x.waitConsumed(sc, st, c); err != nil {
		return err
	}
	if err := x.finalize(call, st, c, func() error { return call.FinalizeFrom(out, 0, c.Len()) }); err != nil {
		return err
	}
	if c.Seq+chunked.RemoteSlots >= len(l.retire) { // nobody takes the slot
		return nil
	}
	return sc.Record(st, ring(l.r.pipe.fetched, c.Seq))
}

// arrived is the event after which the winners of a chunk are on the master.
func (x *execution) arrived(r *replica, c chunked.Chunk) *cuda.Event {
	switch {
	case x.inPlace(c) || x.reads:
		return ring(r.pipe.computed, c.Seq)
	case x.fetches:
		return ring(r.pipe.fetched, c.Seq)
	case x.plan.Transport == chunked.Host:
		return ring(r.pipe.host.landed, c.Seq)
	}
	return ring(r.pipe.sent, c.Seq)
}

// given are the columns that are present; others have no width, so that nothing is held
// for them.
func given(columns []scene.RowColumn) []scene.RowColumn {
	out := make([]scene.RowColumn, len(columns))
	for i, c := range columns {
		if !c.Data.IsNil() {
			out[i] = c
		}
	}
	return out
}
