package multi

import (
	"context"
	"sync"
)

// turn lets calls submit one after the other in the order in which they
// asked. No lock is held while a call has its turn; waiting for it respects
// the context.
type turn struct {
	mu   sync.Mutex
	tail chan struct{} // closed when the last call in the queue is done
}

// take waits for the caller's turn and returns the function that ends it.
func (t *turn) take(ctx context.Context) (done func(), err error) {
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
