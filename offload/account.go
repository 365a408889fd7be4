package offload

import (
	"context"
	"runtime/debug"

	"github.com/raymux/raymux/chunked"
)

// Account keeps the books of one streamed call: which chunks are delivered, and which
// comes next. For schedulers. The zero value but for Op is ready for use.
type Account struct {
	Op string // key of the operation

	delivered []chunked.Range
}

// Deliver calls the consumer for the rows, unless ctx has ended. It reports every way in
// which the consumer may fail as a *StreamError.
func (a *Account) Deliver(ctx context.Context, rows chunked.Range, consume func() error) error {
	if err := context.Cause(ctx); err != nil {
		return a.Fail(rows.Begin, err)
	}
	if err := guarded(consume); err != nil {
		return a.Fail(rows.Begin, err)
	}
	a.delivered = append(a.delivered, rows)
	return nil
}

// Fail is the error of a call that ends before the chunk that starts at next, for a reason
// that may not be the consumer's.
func (a *Account) Fail(next int64, err error) error {
	return &StreamError{Op: a.Op, FailedStart: next, Delivered: a.delivered, Err: err}
}

// guarded turns a panic into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
