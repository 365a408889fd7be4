package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// CallOption changes one call of a query.
type CallOption func(*callOptions)

type callOptions struct {
	stream  *cuda.Stream
	into    Reusable
	later   bool // the result gets its memory later
	carried []any
}

// Reusable is a result of a query, such as *Hits, *Chains or *EPCPaths.
type Reusable interface {
	// Rows is the number of rows.
	Rows() int
	// Close returns the memory.
	Close() error

	memory() *block // nil for a nil result
}

// OnStream enqueues the query on st instead of the scene's stream. st must be of
// the scene's device.
func OnStream(st *cuda.Stream) CallOption {
	return func(o *callOptions) { o.stream = st }
}

// Into fills r, which an earlier call of the same operation returned, and returns
// it: its memory is used again if it is large enough and replaced if not. Work on the
// old contents must have been joined to the stream of the call, and no input of the
// call may be a column of r. A call that fails returns nil, and r has still to be
// closed. With nil it is as if Into were not given, so that the first pass of a loop
// needs no case of its own. The result of a chunk of a streamed call cannot be filled,
// but what it was detached to can.
func Into(r Reusable) CallOption {
	return func(o *callOptions) { o.into = r }
}

// Unallocated leaves the result of a prepared call without memory. Call.Allocate makes
// up for it; Call.Part needs no result. For schedulers.
func Unallocated() CallOption {
	return func(o *callOptions) { o.later = true }
}

// Carry hands v to the scheduler that prepares the call, which finds it in Call.Carried.
// Methods of Scene refuse it, because nobody would look at it. For schedulers, which make
// options of their own of it.
func Carry(v any) CallOption {
	return func(o *callOptions) { o.carried = append(o.carried, v) }
}

// RowColumn is a column as schedulers see it: Width bytes for each row of a batch.
// An absent column has no data. A column of width 0 that has data is whole: all rows
// read all of it, and a device that gets a part of the batch gets it undivided.
type RowColumn struct {
	Data  cuda.Slice[uint8]
	Width int
}

// Whole reports whether the column is the same for all rows.
func (c RowColumn) Whole() bool { return c.Width == 0 && !c.Data.IsNil() }

func rowColumn[T cuda.Scalar](v cuda.Slice[T], width int) RowColumn {
	if v.IsNil() {
		return RowColumn{Width: width}
	}
	// Any memory is a whole number of aligned bytes.
	data, _ := cuda.Reinterpret[uint8](v)
	return RowColumn{data, width}
}

// query is what an operation does with a batch. All of its methods but columns are
// called by the holder of a turn.
type query interface {
	// columns are what a search reads and writes of every row, in a fixed order, and
	// where they are on the device of the caller.
	columns() (in, out []RowColumn)
	// result is what the caller gets, and layout the bytes per row of each of its
	// columns; zero is an absent column. place points the columns into the result's
	// memory.
	result() Reusable
	layout() []int
	place(starts []int64) error
	// over is the same question about the rows of in, which stands for the inputs of
	// columns(). Its result is new and without memory.
	over(in []RowColumn) query
	// search enqueues the search of rows [begin, begin+count) on st, by the structures
	// of any scene with the same geometry. in and out stand for columns().
	search(on *Scene, at site, st *cuda.Stream, in, out []RowColumn, begin, count int64) error
	// finalize enqueues what is left to be done for these rows on the device of the
	// caller, in place.
	finalize(s *Scene, sc cuda.Scope, st *cuda.Stream, begin, count int64) error
}

// site is where a search is enqueued, on what part of its device, as Call.Abreast says, what
// its outputs hold, as Call.Filled does, and Call.Counters.
type site struct {
	cuda.Scope
	abreast  int64
	filled   bool
	counters *cuda.Slice[uint32] // nil: there are none
}

// takeCounters takes the address of a launch's counters, if there are any left.
func (s site) takeCounters() (at uint64, ok bool) {
	if s.counters == nil || s.counters.Len() < SearchCounters {
		return 0, false
	}
	at = s.counters.Addr()
	*s.counters, _ = s.counters.Sub(SearchCounters, s.counters.Len())
	return at, true
}

// SearchCounters is how many words of Call.Counters one launch takes: more than it needs, so
// that searches that run at the same time do not count in the same cache line.
const SearchCounters = 64

// distant is a query whose winners finalize reads once, wherever they are: out stands for
// those of columns(), which are only written.
type distant interface {
	finalizeFrom(s *Scene, sc cuda.Scope, st *cuda.Stream, out []RowColumn, begin, count int64) error
}

// finisher is a query with something left to do when all of its rows are finalized, such
// as counting them. It has it to do for a batch without rows too.
type finisher interface {
	finish(s *Scene, sc cuda.Scope, st *cuda.Stream) error
}

// marker is a query whose rows can say by themselves how far they are, if sweeps says that
// it is worth it. mark enqueues on st, the stream of the caller, that none of them has been
// searched; searches come behind it.
type marker interface {
	sweeps(s *Scene) bool
	mark(s *Scene, st *cuda.Stream) error
	marked() bool
}

// filler is a query most of whose rows come to nothing, and then hold the same values in all
// outputs but the first. fill enqueues these values on st, the stream of the caller; a search
// of filled outputs stores no others of such a row than the first.
type filler interface {
	fill(st *cuda.Stream, begin, count int64) error
}

// tailed is a query whose result has values that belong to no row: so many bytes, which
// place gets as one more column.
type tailed interface {
	tail() int64
}

// numbered is a query that knows its rows by their numbers, not by columns alone.
type numbered interface {
	// from is the same question, with the same result, whose row 0 is row first of this.
	from(first int64) query
}

// startingAt is q with row first as its row 0.
func startingAt(q query, first int64) query {
	if n, ok := q.(numbered); ok {
		return n.from(first)
	}
	return q
}

// Call is a query that was validated, but of which nothing is enqueued. For schedulers:
// every row is searched once, on any replica, and then finalized on the device of the
// caller.
type Call struct {
	Stream  *cuda.Stream // the caller's stream
	Rows    int64        // of the batch
	Carried []any        // by Carry, in the order of the options
	// Abreast is of how many equal parts of a device the next search gets one, because others
	// run at the same time; 0 for all of it.
	Abreast int64
	// Filled says that the outputs of the next Search were filled, by Fill.
	Filled bool
	// Counters are words of zeros on the device of the next Search, in the order of its stream,
	// which takes SearchCounters for each of its launches. A launch for which none are left takes
	// some from the pool, clears them and gives them back: two driver calls more.
	Counters cuda.Slice[uint32]
	// Scope is one of the device of the next Search or Finalize, or zero: then that makes its
	// context current itself. A call on several devices has one anyway.
	Scope cuda.Scope

	scene *Scene
	op    string
	query query
	fresh bool // the result is not one of the caller's
	later bool // the result gets its memory by Allocate
}

// begin validates what calls of all operations have in common and resolves the
// stream. columns are the inputs.
func (s *Scene) begin(op string, rows int64, opts []CallOption) (*Call, callOptions, error) {
	var o callOptions
	for i, f := range opts {
		if f == nil {
			return nil, o, badArg(op, "opts", "option %d is nil; leave it out", i)
		}
		f(&o)
	}
	c := &Call{Stream: o.stream, Rows: rows, Carried: o.carried, scene: s, op: op, later: o.later}
	if c.Stream == nil {
		c.Stream = s.stream
	} else if err := s.checkDevice(op, "OnStream", c.Stream.Context().Device()); err != nil {
		return nil, o, err
	}
	return c, o, nil
}

// resultFor is the result to fill: that of Into, or a new one.
func resultFor[R any, P interface {
	*R
	Reusable
}](op string, c *Call, o callOptions, in []RowColumn) (P, error) {
	var out P
	if o.into != nil {
		var ok bool
		if out, ok = o.into.(P); !ok {
			return nil, badArg(op, "Into", "is a %T, want a %T", o.into, out)
		}
	}
	if out == nil {
		c.fresh = true
		return new(R), nil
	}
	switch b := out.memory(); {
	case b.borrowed:
		return nil, badArg(op, "Into", "is the result of a chunk, whose memory is used again for others; give its Detach")
	case b.memory.Freed():
		return nil, badArg(op, "Into", "has memory that was freed before the call, but not by Close; fill another result")
	case b.holds(in):
		return nil, badArg(op, "Into", "holds an input of the call, which would be overwritten while it is read; fill another result")
	}
	return out, nil
}

// Allocate gives the result of the call its memory, if it is not large enough yet.
func (c *Call) Allocate() error {
	b := c.query.result().memory()
	starts, err := b.reserveColumns(c.scene, c.Stream, c.Rows, c.sizes(c.Rows))
	if err != nil {
		return err
	}
	return c.query.place(starts)
}

// Reuses reports whether the result is one of the caller's, by Into.
func (c *Call) Reuses() bool { return !c.fresh }

// Result is what the caller gets. Its columns are absent before Allocate.
func (c *Call) Result() Reusable { return c.query.result() }

// RowBytes is the size of a row of the result.
func (c *Call) RowBytes() (n int64) {
	for _, w := range c.query.layout() {
		n += int64(w)
	}
	return n
}

// PartBytes is how much memory Part needs for so many rows.
func (c *Call) PartBytes(rows int64) int64 {
	_, bytes := sizedStarts(c.sizes(rows))
	return bytes
}

// sizes is the bytes of the columns of a result of so many rows.
func (c *Call) sizes(rows int64) []int64 {
	sizes := columnSizes(rows, c.query.layout())
	if t, ok := c.query.(tailed); ok {
		sizes = append(sizes, t.tail())
	}
	return sizes
}

// Part is the call for rows [begin, begin+count) of c alone: row 0 of its columns is row
// begin of c. Its result lies in memory of the scheduler's, of at least PartBytes(count)
// bytes at an address that is a multiple of 256, and is undefined once that memory is used
// again; closing it does nothing.
func (c *Call) Part(memory cuda.Slice[uint8], begin, count int64) (*Call, error) {
	if begin < 0 || count < 1 || begin > c.Rows-count {
		return nil, badArg(c.op, "begin, count", "are %d, %d, want a part of %d rows", begin, count, c.Rows)
	}
	starts, need := sizedStarts(c.sizes(count))
	if int64(memory.Len()) < need {
		return nil, badArg(c.op, "memory", "has %d bytes, want %d for %d rows", memory.Len(), need, count)
	}
	if err := c.scene.checkDevice(c.op, "memory", memory.Device()); err != nil {
		return nil, err
	}
	all, _ := c.query.columns()
	in := make([]RowColumn, len(all))
	for i, col := range all {
		var err error
		if in[i], err = col.rows(begin, count); err != nil {
			return nil, err
		}
	}
	p := &Call{Stream: c.Stream, Rows: count, scene: c.scene, op: c.op, query: startingAt(c.query.over(in), begin)}
	b := p.query.result().memory()
	b.memory, b.borrowed, b.rows, b.stream = memory, true, count, c.Stream
	return p, p.query.place(starts)
}

// Detach copies the result of a part to memory of the pool, in the order of the caller's
// stream. The copy belongs to the caller.
//
// Cost: one copy on the device where the rows are a multiple of 256, else up to one per
// column.
func (c *Call) Detach() (Reusable, error) {
	in, _ := c.query.columns()
	d := &Call{Stream: c.Stream, Rows: c.Rows, scene: c.scene, op: c.op, query: c.query.over(in), fresh: true}
	if err := d.Allocate(); err != nil {
		return nil, err
	}
	to, from := d.query.result(), c.query.result()
	if err := copyColumns(c.Stream, to.memory().memory, from.memory().memory, c.sizes(c.Rows)); err != nil {
		return nil, firstError(err, to.Close())
	}
	return to, nil
}

// rows is rows [begin, begin+count) of the column.
func (c RowColumn) rows(begin, count int64) (RowColumn, error) {
	if c.Data.IsNil() || c.Whole() {
		return c, nil
	}
	w := int64(c.Width)
	data, err := c.Data.Sub(int(begin*w), int((begin+count)*w))
	return RowColumn{data, c.Width}, err
}

// Columns are the columns that Search reads and writes, on the caller's device.
// They must not be changed.
func (c *Call) Columns() (in, out []RowColumn) { return c.query.columns() }

// Abandon returns the result's memory, unless the caller had brought it, once the
// work on the caller's stream so far has run.
func (c *Call) Abandon() error {
	if !c.fresh {
		return nil
	}
	return c.query.result().Close()
}

// Mark tells the call that all of its rows will be searched in place, each once, and behind
// what it enqueues on the caller's stream: a fill of the winners. Then a search on the
// caller's device may go on, when it has run out of rows of its own, to finalize rows that
// are ready, those of other devices among them. Every row has to be finalized all the same.
func (c *Call) Mark() error {
	m, ok := c.query.(marker)
	if !ok || c.Rows == 0 {
		return nil
	}
	if err := c.scene.shareReady(context.Background()); err != nil {
		return err
	}
	defer c.scene.turns.done(false)
	if !m.sweeps(c.scene) {
		return nil
	}
	return c.scene.submit(c.Stream, func(cuda.Scope) error { return m.mark(c.scene, c.Stream) })
}

// Marked reports whether the call is marked: Finalize leaves rows alone that have not been
// searched yet, or are finalized.
func (c *Call) Marked() bool {
	m, ok := c.query.(marker)
	return ok && m.marked()
}

// Fill enqueues on the caller's stream what rows [begin, begin+count) hold that come to nothing,
// as far as that is known before they are searched, so that a search behind it, with Filled set,
// has less to store: for outputs on the other side of a link. Most operations know nothing.
func (c *Call) Fill(begin, count int64) error {
	f, ok := c.query.(filler)
	if !ok {
		return nil
	}
	return c.scene.enqueueRows("Fill", c.Stream, c.Rows, begin, count, func(cuda.Scope) error {
		return f.fill(c.Stream, begin, count)
	})
}

// Search enqueues on st, a stream of on's device, the search of rows [begin,
// begin+count) by a scene with the geometry of the call's. in and out are Columns,
// or copies of them on another device in the same order; absent columns stay
// absent. They may be on any device whose memory that of on may access, which is not
// checked.
func (c *Call) Search(on *Scene, st *cuda.Stream, in, out []RowColumn, begin, count int64) error {
	return c.search(c.query, on, st, in, out, begin, count, c.Filled)
}

// SearchPart is Search for rows [first, first+count) with columns that hold no other rows:
// their row 0 is row first of the call. They are not filled.
func (c *Call) SearchPart(on *Scene, st *cuda.Stream, in, out []RowColumn, first, count int64) error {
	return c.search(startingAt(c.query, first), on, st, in, out, 0, count, false)
}

func (c *Call) search(q query, on *Scene, st *cuda.Stream, in, out []RowColumn, begin, count int64, filled bool) error {
	rows := c.Rows
	for _, columns := range [...][]RowColumn{in, out} {
		for _, col := range columns {
			if !col.Data.IsNil() && !col.Whole() {
				rows = min(rows, int64(col.Data.Len()/col.Width))
			}
		}
	}
	if err := on.checkDevice(c.op, "Counters", c.Counters.Device()); err != nil {
		return err
	}
	return c.enqueue(on, "Search", st, rows, begin, count, func(sc cuda.Scope) error {
		return q.search(on, site{sc, c.Abreast, filled, &c.Counters}, st, in, out, begin, count)
	})
}

// Finalize enqueues on the caller's stream the rest of rows [begin, begin+count),
// whose search comes before it in the order of that stream.
func (c *Call) Finalize(begin, count int64) error {
	return c.enqueue(c.scene, "Finalize", c.Stream, c.Rows, begin, count, func(sc cuda.Scope) error {
		return c.query.finalize(c.scene, sc, c.Stream, begin, count)
	})
}

// Distant reports whether FinalizeFrom does this call. Of most operations winners are columns of
// the result.
func (c *Call) Distant() bool {
	_, ok := c.query.(distant)
	return ok
}

// FinalizeFrom is Finalize for winners that were not searched, or copied, into Columns, but are
// in the same rows of out, on a device whose memory that of the caller may access.
func (c *Call) FinalizeFrom(out []RowColumn, begin, count int64) error {
	q, ok := c.query.(distant)
	if !ok {
		return badArg(c.op, "out", "is elsewhere, but winners of this operation are columns of its result")
	}
	for _, col := range out {
		if rows := int64(col.Data.Len() / col.Width); begin > rows-count {
			return badArg(c.op, "out", "has %d rows, want %d from row %d", rows, count, begin)
		}
	}
	return c.enqueue(c.scene, "FinalizeFrom", c.Stream, c.Rows, begin, count, func(sc cuda.Scope) error {
		return q.finalizeFrom(c.scene, sc, c.Stream, out, begin, count)
	})
}

func (c *Call) enqueue(on *Scene, op string, st *cuda.Stream, rows, begin, count int64, f func(cuda.Scope) error) error {
	if c.Scope.Context() == nil {
		return on.enqueueRows(op, st, rows, begin, count, f)
	}
	return on.enqueueRowsIn(c.Scope, op, st, rows, begin, count, f)
}

// Finish enqueues on the caller's stream what is left to be done once every row of the
// call is finalized; for most operations that is nothing.
func (c *Call) Finish() error {
	f, ok := c.query.(finisher)
	if !ok {
		return nil
	}
	if err := c.scene.shareReady(context.Background()); err != nil {
		return err
	}
	defer c.scene.turns.done(false)
	return c.scene.submit(c.Stream, func(sc cuda.Scope) error { return f.finish(c.scene, sc, c.Stream) })
}

// Run enqueues the whole query on the caller's device. After an error the result is
// abandoned.
func (c *Call) Run() error {
	if err := c.scene.shareReady(context.Background()); err != nil {
		return firstError(err, c.Abandon())
	}
	defer c.scene.turns.done(false)
	return c.run()
}

// run is Run for the holder of a turn.
func (c *Call) run() error {
	last, unfinished := c.query.(finisher)
	if c.Rows == 0 && !unfinished {
		return nil
	}
	err := c.scene.submit(c.Stream, func(sc cuda.Scope) error {
		if c.Rows > 0 {
			in, out := c.query.columns()
			if err := c.query.search(c.scene, site{Scope: sc}, c.Stream, in, out, 0, c.Rows); err != nil {
				return err // there is nothing to finalize
			}
			if err := c.query.finalize(c.scene, sc, c.Stream, 0, c.Rows); err != nil {
				return err
			}
		}
		if !unfinished {
			return nil
		}
		return last.finish(c.scene, sc, c.Stream)
	})
	if err != nil {
		return firstError(err, c.Abandon())
	}
	return nil
}

// prepared is the public form of an operation's preparation: with a turn of its own.
func prepared[R any](ctx context.Context, s *Scene, prepare func() (*R, *Call, error)) (*R, *Call, error) {
	if err := s.shareReady(ctx); err != nil {
		return nil, nil, err
	}
	defer s.turns.done(false)
	r, c, err := prepare()
	if err == nil && !c.later {
		err = c.Allocate()
	}
	if err != nil {
		return nil, nil, err
	}
	return r, c, nil
}

// ask prepares and runs a query in one turn.
func ask[R any](ctx context.Context, s *Scene, prepare func() (*R, *Call, error)) (*R, error) {
	if err := s.shareReady(ctx); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	r, c, err := prepare()
	if err == nil {
		err = checkOwn(c.op, c.Carried, c.later)
	}
	if err == nil {
		err = c.Allocate()
	}
	if err == nil {
		err = c.run()
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// checkOwn refuses options that nobody would follow.
func checkOwn(op string, carried []any, later bool) error {
	if len(carried) > 0 {
		return badArg(op, "opts", "has an option of a scheduler (%T), which a scene on one device does not know; use package multi", carried[0])
	}
	if later {
		return badArg(op, "opts", "has Unallocated, which is for Prepare")
	}
	return nil
}

// submit enqueues a query on st, after the last change of the scene and before the
// next one. The caller holds a turn.
func (s *Scene) submit(st *cuda.Stream, enqueue func(cuda.Scope) error) error {
	return s.ctxDo(func(sc cuda.Scope) error { return s.submitIn(sc, st, enqueue) })
}

// submitIn is submit inside a scope of the scene's device.
func (s *Scene) submitIn(sc cuda.Scope, st *cuda.Stream, enqueue func(cuda.Scope) error) error {
	if err := s.order.enter(sc, st); err != nil {
		return err
	}
	return firstError(enqueue(sc), s.order.leave(sc, st))
}

// enqueueRows is submit for a part of a batch, with its own turn.
func (s *Scene) enqueueRows(op string, st *cuda.Stream, rows, begin, count int64, enqueue func(cuda.Scope) error) error {
	return s.checkedRows(op, st, rows, begin, count, func() error { return s.submit(st, enqueue) })
}

// enqueueRowsIn is enqueueRows inside a scope of the scene's device.
func (s *Scene) enqueueRowsIn(sc cuda.Scope, op string, st *cuda.Stream, rows, begin, count int64, enqueue func(cuda.Scope) error) error {
	return s.checkedRows(op, st, rows, begin, count, func() error { return s.submitIn(sc, st, enqueue) })
}

func (s *Scene) checkedRows(op string, st *cuda.Stream, rows, begin, count int64, submit func() error) error {
	if err := s.shareReady(context.Background()); err != nil {
		return err
	}
	defer s.turns.done(false)
	if begin < 0 || count < 0 || begin > rows-count {
		return badArg(op, "begin, count", "are %d, %d, want a part of %d rows", begin, count, rows)
	}
	if err := s.checkDevice(op, "st", st.Context().Device()); err != nil {
		return err
	}
	if count == 0 {
		return nil
	}
	return submit()
}
