package multi

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// ErrExpired: a chunk was detached after its consumer had returned.
var ErrExpired = errors.New("multi: the chunk has expired: detach it before the consumer returns")

// Offload streams the result of a query to f, chunk by chunk; the query itself returns a
// nil result. R is the type of the result: *scene.Hits for Intersect. ChunkRays and
// MemoryBudget of the options decide how large chunks are; without them the share of each
// device is one. See package offload for the order of chunks and for what becomes of
// errors.
//
// f runs on the goroutine of the call, which has the turn: calling the scene from it is
// ErrReentrant. The columns of a chunk are on the master, complete in the order of the
// stream of the call, and f enqueues its work there.
func Offload[R scene.Reusable](f offload.Func[R]) scene.CallOption {
	return scene.Carry(&consumer{
		kind:    reflect.TypeFor[R](),
		accepts: func(r scene.Reusable) bool { _, ok := r.(R); return ok },
		consume: func(ctx context.Context, rows chunked.Range, part *scene.Call) error {
			var expired atomic.Bool
			defer expired.Store(true)
			detach := func() (none R, err error) {
				if expired.Load() {
					return none, ErrExpired
				}
				r, err := part.Detach()
				if err != nil {
					return none, err
				}
				return r.(R), nil
			}
			return f(ctx, rows.Begin, offload.NewChunk(rows, part.Result().(R), detach))
		},
	})
}

// consumer is the argument of Offload without its type.
type consumer struct {
	kind    reflect.Type
	accepts func(scene.Reusable) bool
	begin   func(*scene.Call) error // refuses a call before anything is enqueued; nil: none
	consume func(ctx context.Context, rows chunked.Range, part *scene.Call) error
	end     func(error)  // hears what has become of a call; may be nil
	reader  *cuda.Stream // of the master, where the consumer reads; nil: the caller's
}

// check refuses a consumer of another operation's results.
func (c *consumer) check(call *scene.Call) error {
	switch {
	case !c.accepts(call.Result()):
		return badArg("Offload", "f", "takes %v, the operation makes %T", c.kind, call.Result())
	case call.Reuses():
		return badArg("Offload", "opts", "has Into as well, but a streamed call has no result to fill")
	case c.begin != nil:
		return c.begin(call)
	}
	return nil
}

// ended tells the consumer how the call ended.
func (c *consumer) ended(err error) {
	if c.end != nil {
		c.end(err)
	}
}

// delivery brings the chunks of one call to its consumer.
type delivery struct {
	to      *consumer
	turn    *turn
	account offload.Account
}

func (d *delivery) deliver(ctx context.Context, rows chunked.Range, part *scene.Call) error {
	return d.account.Deliver(ctx, rows, func() error {
		inside, leave := d.turn.lend(ctx)
		defer leave()
		return d.to.consume(inside, rows, part)
	})
}

// reader is the stream on which the consumer is done with a chunk.
func (d *delivery) reader(callers *cuda.Stream) *cuda.Stream {
	if d.to.reader != nil {
		return d.to.reader
	}
	return callers
}

// wrap says what was delivered before a failure that is not the consumer's.
func (d *delivery) wrap(x *execution, err error) error {
	var told *offload.StreamError
	if err == nil || errors.As(err, &told) {
		return err
	}
	next := int64(-1)
	if x.retired < len(x.order) {
		next = x.plan.Chunks[x.order[x.retired]].Begin
	}
	return d.account.Fail(next, err)
}
