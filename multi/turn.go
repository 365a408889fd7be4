package multi

import (
	"context"
	"errors"
	"slices"
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
	mu    sync.Mutex
	taken bool
	queue []chan struct{} // of calls that wait, each closed when it has the turn
	end   func()          // done, as a value that is made once

	lent atomic.Uintptr // goroutine that runs the consumer of the call; 0: none does
	over atomic.Int64   // turns that have ended: the number of the one that is taken
}

// take waits for the caller's turn and returns the function that ends it. It allocates
// nothing when nobody else has the turn.
func (t *turn) take(ctx context.Context) (done func(), err error) {
	if t.inside(ctx) {
		return nil, ErrReentrant // it would wait for itself
	}
	t.mu.Lock()
	if t.end == nil {
		t.end = t.done
	}
	done = t.end
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		return done, nil
	}
	mine := make(chan struct{})
	t.queue = append(t.queue, mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return done, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.queue, mine)
	if i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // it had the turn in the meantime
		done()
	}
	return nil, context.Cause(ctx)
}

// inside reports whether the caller is the consumer of the call that has the turn.
func (t *turn) inside(ctx context.Context) bool {
	g := t.lent.Load()
	return g != 0 && (ctx.Value(t) == t.over.Load() || g == goroutine())
}

// done passes the turn on.
func (t *turn) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over.Add(1)
	if len(t.queue) == 0 {
		t.taken = false
		return
	}
	close(t.queue[0])
	t.queue = slices.Delete(t.queue, 0, 1)
}

// lend marks what runs until leave, on this goroutine and under the context, as the
// consumer of the call that has the turn. The context may outlive the call, whose number it has.
func (t *turn) lend(ctx context.Context) (inside context.Context, leave func()) {
	t.lent.Store(goroutine())
	return context.WithValue(ctx, t, t.over.Load()), func() { t.lent.Store(0) }
}
