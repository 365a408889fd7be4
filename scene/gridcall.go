package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// accumulatorSize is what an accumulator holds, in this order: integer sums of 64 and of
// 32 bits, and maxima of 32 bits. All of it begins at zero, and parts of a call are put
// together by Add, so that how a call is divided leaves no trace.
type accumulatorSize struct{ sums64, sums32, maxima32 int64 }

func (a accumulatorSize) bytes() int64 { return 8*a.sums64 + 4*(a.sums32+a.maxima32) }

// gridQuery is an operation whose result is a sum over lanes or rays. Its methods are
// called by the holder of a turn.
type gridQuery interface {
	// columns are inputs of every lane or of the call, and what accumulate stores for
	// every lane, on the device of the caller.
	columns() (in, out []RowColumn)
	accumulator() accumulatorSize
	// copies is how many accumulators one accumulate may hold beside the one it is given.
	copies() int64
	// cut says at which lanes, in ascending order, launches begin; the first is that of
	// the call.
	cut(at []int64) error
	// accumulate enqueues on st the work of lanes [begin, begin+count), which are lanes
	// of the whole call, and adds to acc, on the device of on. Row 0 of in and out is
	// that of lane begin.
	accumulate(on *Scene, sc cuda.Scope, st *cuda.Stream, in, out []RowColumn, acc cuda.Slice[uint8], begin, count int64) error
	// result is what the caller gets, layout the bytes of each of its columns; zero is an
	// absent column. place points the columns into the result's memory, behind which lies
	// the accumulator.
	result() Reusable
	layout() []int64
	place(starts []int64, acc cuda.Slice[uint8]) error
	// readout enqueues the result from its accumulator, on the device of the caller.
	readout(s *Scene, sc cuda.Scope, st *cuda.Stream) error
}

// fusedQuery is a gridQuery that does all of a call on one device in fewer launches.
type fusedQuery interface {
	// fused enqueues the whole call, or says that it does not.
	fused(s *Scene, sc cuda.Scope, st *cuda.Stream, begin, count int64) (bool, error)
}

// collectQuery is a gridQuery that sums accumulators in the launch that reads the result.
type collectQuery interface {
	// collect enqueues the result from the sum of accumulators, or says that it does not.
	collect(s *Scene, sc cuda.Scope, st *cuda.Stream, parts []cuda.Slice[uint8]) (bool, error)
}

// joinedQuery is a gridQuery whose launches on all devices may add to one accumulator, and the
// last of them reads the result.
type joinedQuery interface {
	// joins says whether they do, if none has more lanes.
	joins(s *Scene, lanes int64) bool
	// join enqueues one of so many launches, which adds to sum; own is an accumulator on the
	// device of on, for what a launch needs itself.
	join(on *Scene, sc cuda.Scope, st *cuda.Stream, in []RowColumn, sum, own cuda.Slice[uint8], launches int, begin, count int64) error
}

// GridCall is a call over lanes or rays that was validated, but of which nothing is
// enqueued. For schedulers: an accumulator on every device is set to zero, every lane is
// accumulated once by any replica, the accumulators are added on the device of the caller
// and the sum is finished there; or where Joins says so all lanes are added to one, by Join.
// All of it are sums of integers, so that any division of the lanes gives the same bits.
type GridCall struct {
	Stream       *cuda.Stream // the caller's stream
	Begin, Lanes int64        // lanes [Begin, Begin+Lanes) of the whole call
	Carried      []any        // by Carry, in the order of the options

	scene *Scene
	op    string
	query gridQuery
	fresh bool // the result is not one of the caller's
	later bool // the result gets its memory by Allocate
	acc   cuda.Slice[uint8]
}

// gridCall turns a call into one over lanes [begin, begin+c.Rows).
func (c *Call) gridCall(q gridQuery, begin int64) (*GridCall, error) {
	if err := q.cut([]int64{begin}); err != nil {
		return nil, err
	}
	return &GridCall{
		Stream: c.Stream, Begin: begin, Lanes: c.Rows, Carried: c.Carried, scene: c.scene, op: c.op, query: q, fresh: c.fresh, later: c.later,
	}, nil
}

// Allocate gives the result of the call its memory, if it is not large enough yet.
func (c *GridCall) Allocate() error {
	b := c.query.result().memory()
	sizes := append(c.query.layout(), c.AccumulatorBytes())
	starts, err := b.reserveColumns(c.scene, c.Stream, c.Lanes, sizes)
	if err != nil {
		return err
	}
	last := len(sizes) - 1
	if c.acc, err = b.memory.Sub(int(starts[last]), int(starts[last]+sizes[last])); err != nil {
		return err
	}
	return c.query.place(starts[:last], c.acc)
}

// Reuses reports whether the result is one of the caller's, by Into.
func (c *GridCall) Reuses() bool { return !c.fresh }

// Result is what the caller gets. Its columns are absent before Allocate.
func (c *GridCall) Result() Reusable { return c.query.result() }

// Columns are the columns of rows that Accumulate reads and writes, on the caller's
// device. They must not be changed.
func (c *GridCall) Columns() (in, out []RowColumn) { return c.query.columns() }

// AccumulatorBytes is the size of an accumulator, which starts at a multiple of 256 bytes.
func (c *GridCall) AccumulatorBytes() int64 { return c.query.accumulator().bytes() }

// ResultBytes is how much memory the result takes, its accumulator included.
func (c *GridCall) ResultBytes() (n int64) {
	for _, bytes := range append(c.query.layout(), c.AccumulatorBytes()) {
		n += (bytes + columnAlign - 1) / columnAlign * columnAlign
	}
	return n
}

// Accumulator is one that belongs to the result, on the caller's device. Absent before
// Allocate.
func (c *GridCall) Accumulator() cuda.Slice[uint8] { return c.acc }

// Copies is how many accumulators one Accumulate may allocate for its own time.
func (c *GridCall) Copies() int64 { return c.query.copies() }

// DfrDirectMemory is AccumulatorBytes and Copies of an AccumDfrDirect of so many states, without
// a call. Options that a call refuses count as those of one that it does not.
func DfrDirectMemory(states int64, grid Grid, o DfrDirectOptions) (accumulator, copies int64) {
	q := dfrQuery{grid: grid, options: o}
	total := o.DirectSamples + o.KellerSamples
	_, n, err := o.Window.resolve("", total)
	if err != nil {
		n = total
	}
	if states > 0 {
		q.lanes = n
	}
	return dfrAccumulator(grid.Cells(), chunkCounters(states, grid.Cells(), q.azimuths())).bytes(), q.copies()
}

// DfrCoherentMemory is AccumulatorBytes of an AccumDfrCoherentDirect of so many states, without
// a call and before Cut. Cut adds CutBytes for each of the cells that launches divide, of which
// there are at most so many.
func DfrCoherentMemory(states int64, grid Grid, o DfrCoherentOptions) (accumulator, cut int64) {
	q := coherentQuery{grid: grid, options: o, states: states}
	total := states * grid.Cells()
	begin, n, err := o.Window.resolve("", total)
	if err != nil {
		begin, n = 0, total
	}
	q.begin, q.end = begin, begin+n
	if o.KeepWords || q.divides() {
		return q.accumulator().bytes(), 0
	}
	return q.accumulator().bytes(), q.touched()
}

// Cut says at which lanes, in ascending order and beginning with Begin, calls of
// Accumulate begin. Without it there is one, of all lanes. It precedes Allocate and Zero.
func (c *GridCall) Cut(at []int64) error {
	if len(at) == 0 || at[0] != c.Begin {
		return badArg(c.op, "at", "is %v, want ascending lanes from %d on", at, c.Begin)
	}
	for i, lane := range at {
		if i > 0 && lane < at[i-1] || lane > c.Begin+c.Lanes {
			return badArg(c.op, "at", "is %v, want ascending lanes from %d to %d", at, c.Begin, c.Begin+c.Lanes)
		}
	}
	return c.query.cut(at)
}

// Zero enqueues on st, a stream of on's device, an accumulator of no lanes.
func (c *GridCall) Zero(on *Scene, st *cuda.Stream, acc cuda.Slice[uint8]) error {
	if err := c.checkAccumulator(acc); err != nil {
		return err
	}
	return cuda.Fill32(st, acc, 0)
}

func (c *GridCall) checkAccumulator(acc cuda.Slice[uint8]) error {
	if want := c.AccumulatorBytes(); int64(acc.Len()) != want {
		return badArg(c.op, "acc", "has %d bytes, want %d", acc.Len(), want)
	}
	return nil
}

// Accumulate enqueues on st, a stream of on's device, the lanes [begin, begin+count) of
// the whole call by a scene with the geometry of the call's, and adds them to acc, on on's
// device, after all other work on acc. in and out stand for these rows of Columns, or
// copies of them that on can access. The scope is one of that device, as for Add and
// Collect of the caller's: a call on several devices has one anyway.
func (c *GridCall) Accumulate(sc cuda.Scope, on *Scene, st *cuda.Stream, in, out []RowColumn, acc cuda.Slice[uint8], begin, count int64) error {
	if err := c.checkAccumulator(acc); err != nil {
		return err
	}
	return on.enqueueRowsIn(sc, "Accumulate", st, c.Lanes, begin-c.Begin, count, func(sc cuda.Scope) error {
		return c.query.accumulate(on, sc, st, in, out, acc, begin, count)
	})
}

// Joins reports whether Join does this call, if it is given at most so many lanes at once.
func (c *GridCall) Joins(lanes int64) bool {
	q, ok := c.query.(joinedQuery)
	return ok && q.joins(c.scene, lanes)
}

// Join is Accumulate for a call of so many of them which all add to one accumulator, on the
// caller's device, while other devices do: atomically, so that they need no order. The last one
// to end writes the result: nothing else does, and one of them is enqueued on the caller's
// stream. own is an accumulator on on's device, of which a launch uses a part for its own
// time. Both have no lanes before; of devices that have the same memory they are the same.
func (c *GridCall) Join(sc cuda.Scope, on *Scene, st *cuda.Stream, in []RowColumn, sum, own cuda.Slice[uint8], launches int, begin, count int64) error {
	q, ok := c.query.(joinedQuery)
	if !ok || !q.joins(c.scene, count) {
		return badArg(c.op, "count", "is %d lanes of a call that does not join accumulators", count)
	}
	if launches < 1 || count < 1 { // the last one would wait for others
		return badArg(c.op, "launches, count", "are %d, %d, want at least one launch, of at least one lane", launches, count)
	}
	if err := firstError(c.checkAccumulator(sum), c.checkAccumulator(own)); err != nil {
		return err
	}
	return on.enqueueRowsIn(sc, "Join", st, c.Lanes, begin-c.Begin, count, func(sc cuda.Scope) error {
		return q.join(on, sc, st, in, sum, own, launches, begin, count)
	})
}

// Add enqueues on st, a stream of the caller's device, dst += src, two accumulators on
// that device or on one whose memory it may access.
func (c *GridCall) Add(sc cuda.Scope, st *cuda.Stream, dst, src cuda.Slice[uint8]) error {
	if err := firstError(c.checkAccumulator(dst), c.checkAccumulator(src)); err != nil {
		return err
	}
	return c.scene.enqueueRowsIn(sc, "Add", st, 1, 0, 1, func(sc cuda.Scope) error {
		return c.scene.addAccumulators(sc, st, dst, src, c.query.accumulator())
	})
}

// Collect enqueues on the caller's stream the result from accumulators that have all lanes
// between them, on the caller's device or on ones whose memory it may access.
func (c *GridCall) Collect(sc cuda.Scope, parts []cuda.Slice[uint8]) error {
	for _, acc := range parts {
		if err := c.checkAccumulator(acc); err != nil {
			return err
		}
	}
	return c.scene.enqueueRowsIn(sc, "Collect", c.Stream, 1, 0, 1, func(sc cuda.Scope) error {
		own := len(parts) == 1 && parts[0].Addr() == c.acc.Addr()
		if q, ok := c.query.(collectQuery); ok && !own {
			if done, err := q.collect(c.scene, sc, c.Stream, parts); done || err != nil {
				return err
			}
		}
		if !own {
			if err := c.scene.sumAccumulators(sc, c.Stream, c.acc, parts, c.query.accumulator()); err != nil {
				return err
			}
		}
		return c.query.readout(c.scene, sc, c.Stream)
	})
}

// Abandon returns the result's memory, unless the caller had brought it, once the work on
// the caller's stream so far has run.
func (c *GridCall) Abandon() error {
	if !c.fresh {
		return nil
	}
	return c.query.result().Close()
}

// Run enqueues the whole call on the caller's device, also one without lanes. After an
// error the result is abandoned.
func (c *GridCall) Run() error {
	if err := c.scene.shareReady(context.Background()); err != nil {
		return firstError(err, c.Abandon())
	}
	defer c.scene.turns.done(false)
	return c.run(context.Background())
}

// run is Run for the holder of a turn.
func (c *GridCall) run(ctx context.Context) error {
	var err error
	if c.Lanes > 0 {
		_, err = c.scene.tracer(ctx) // which may wait, better outside of the order of queries
	}
	if err == nil {
		err = c.scene.submit(c.Stream, c.enqueue)
	}
	if err != nil {
		return firstError(err, c.Abandon())
	}
	return nil
}

func (c *GridCall) enqueue(sc cuda.Scope) error {
	q, s := c.query, c.scene
	if f, ok := q.(fusedQuery); ok {
		if done, err := f.fused(s, sc, c.Stream, c.Begin, c.Lanes); done || err != nil {
			return err
		}
	}
	if err := cuda.Fill32(c.Stream, c.acc, 0); err != nil {
		return err
	}
	if c.Lanes > 0 {
		in, out := q.columns()
		if err := q.accumulate(s, sc, c.Stream, in, out, c.acc, c.Begin, c.Lanes); err != nil {
			return err
		}
	}
	return q.readout(s, sc, c.Stream)
}

// preparedGrid is the public form of an operation's preparation: with a turn of its own.
func preparedGrid[R any](ctx context.Context, s *Scene, prepare func() (*R, *GridCall, error)) (*R, *GridCall, error) {
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

// askGrid prepares and runs a grid query in one turn.
func askGrid[R any](ctx context.Context, s *Scene, prepare func() (*R, *GridCall, error)) (*R, error) {
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
		err = c.run(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}
