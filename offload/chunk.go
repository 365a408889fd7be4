package offload

import (
	"context"
	"errors"

	"github.com/raymux/raymux/chunked"
)

// ErrZeroChunk: the zero Chunk, which no call delivers, has no result to detach.
var ErrZeroChunk = errors.New("offload: the zero Chunk has no result to detach")

// Chunk is the complete result of an operation for some rows of a batch. It is valid
// until the consumer returns, or the loop goes on, and for work that was enqueued on the
// stream of the call by then.
type Chunk[R any] struct {
	Start  int64 // the row of the batch that row 0 of Result stands for
	Rows   int64 // of Result
	Result R

	detach func() (R, error)
}

// NewChunk makes a chunk for the rows. detach makes a copy of the result that outlives
// the chunk. For schedulers.
func NewChunk[R any](rows chunked.Range, result R, detach func() (R, error)) Chunk[R] {
	return Chunk[R]{Start: rows.Begin, Rows: rows.Len(), Result: result, detach: detach}
}

// Range is the rows.
func (c Chunk[R]) Range() chunked.Range { return chunked.Range{Begin: c.Start, End: c.Start + c.Rows} }

// Detach copies the result, in the order of the stream of the call. The copy belongs to
// the caller, who closes it. It must be called while the chunk is valid. Cost: memory for
// the rows, which no budget counts, and a copy on the device.
func (c Chunk[R]) Detach() (r R, err error) {
	if c.detach == nil {
		return r, ErrZeroChunk
	}
	return c.detach()
}

// Func consumes a chunk. ctx is that of the call. The scene that produces the chunks must
// not be called from it.
type Func[R any] func(ctx context.Context, start int64, chunk Chunk[R]) error
