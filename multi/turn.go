package multi

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// ErrReentrant: the consumer of a streamed call called the scene that streams, which is
// busy until the consumer returns.
var ErrReentrant = errors.New("multi: the scene was called from the consumer of its own stream")

// turn lets calls submit one after the other in the order in which they
// asked. No lock is held while a call has its turn; waiting for it respects
// the context.
type turn struct {
	mu   sync.Mutex
	tail chan struct{} // closed when the last call in the queue is done

	lent atomic.Int64 // goroutine that runs the consumer of the call; 0: none does
}

// take waits for the caller's turn and returns the function that ends it.
func (t *turn) take(ctx context.Context) (done func(), err error) {
	if g := t.lent.Load(); g != 0 && (ctx.Value(t) != nil || g == goroutine()) {
		return nil, ErrReentrant // it would wait for itself
	}
	mine := make(chan struct{})
	t.mu.Lock()
	prev := t.tail
	t.tail = mine
	t.mu.Unlock()
	done = func() { close(mine) }
	if prev == nil {
		return done, nil
	}
	select {
	case <-prev:
		return done, nil
	case <-ctx.Done():
		// The place in the queue is taken: pass the turn on when it comes.
		go func() { <-prev; close(mine) }()
		return nil, context.Cause(ctx)
	}
}

// lend marks what runs until leave, on this goroutine and under the context, as the
// consumer of the call that has the turn.
func (t *turn) lend(ctx context.Context) (inside context.Context, leave func()) {
	t.lent.Store(goroutine())
	return context.WithValue(ctx, t, true), func() { t.lent.Store(0) }
}

// goroutine is the number of the calling goroutine. The runtime tells it in stack traces
// only, which takes about a microsecond.
func goroutine() int64 {
	var b [64]byte
	text := bytes.TrimPrefix(b[:runtime.Stack(b[:], false)], []byte("goroutine "))
	number, _, _ := bytes.Cut(text, []byte(" "))
	n, _ := strconv.ParseInt(string(number), 10, 64)
	return n
}
