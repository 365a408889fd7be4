package scene

import (
	"context"
	"slices"
	"sync"

	"github.com/raymux/raymux/cuda"
)

// turns orders the calls on one scene: queries share a turn, calls that change
// the scene have one alone, and nobody overtakes. A turn is held while work is
// submitted; the mutex only protects the bookkeeping and is never held across a
// driver call.
type turns struct {
	mu      sync.Mutex
	sharing int  // holders of a shared turn
	alone   bool // the turn is held exclusively
	closed  bool
	queue   []*waiter
}

type waiter struct {
	alone   bool
	granted chan struct{}
}

// share waits for a shared turn. done must be called with the same argument that
// acquired the turn: t.done(false).
func (t *turns) share(ctx context.Context) error { return t.take(ctx, false) }

// exclude waits for an exclusive turn; release it with t.done(true).
func (t *turns) exclude(ctx context.Context) error { return t.take(ctx, true) }

func (t *turns) take(ctx context.Context, alone bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return closedError{}
	}
	return t.wait(ctx, alone) // unlocks
}

// close refuses later calls, and waits for the calls that came before. It reports
// false when somebody closed earlier. A closed scene stays held.
func (t *turns) close() bool {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return false
	}
	t.closed = true
	_ = t.wait(context.Background(), true) // cannot be cancelled
	return true
}

// wait takes a turn now or in order of arrival. It unlocks t.mu.
func (t *turns) wait(ctx context.Context, alone bool) error {
	if len(t.queue) == 0 && t.free(alone) {
		t.grant(alone)
		t.mu.Unlock()
		return nil
	}
	w := &waiter{alone: alone, granted: make(chan struct{})}
	t.queue = append(t.queue, w)
	t.mu.Unlock()

	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.queue, w)
	if i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
		t.admit() // those behind may not have to wait any more
	}
	t.mu.Unlock()
	if i < 0 { // granted in the meantime
		t.done(alone)
	}
	return ctx.Err()
}

func (t *turns) done(alone bool) {
	t.mu.Lock()
	if alone {
		t.alone = false
	} else {
		t.sharing--
	}
	t.admit()
	t.mu.Unlock()
}

func (t *turns) free(alone bool) bool {
	return !t.alone && (!alone || t.sharing == 0)
}

func (t *turns) grant(alone bool) {
	if alone {
		t.alone = true
	} else {
		t.sharing++
	}
}

func (t *turns) admit() {
	for len(t.queue) > 0 && t.free(t.queue[0].alone) {
		t.grant(t.queue[0].alone)
		close(t.queue[0].granted)
		t.queue = slices.Delete(t.queue, 0, 1)
	}
}

// closedError is what a closed scene returns; it matches cuda.ErrClosed.
type closedError struct{}

func (closedError) Error() string { return "scene: the scene is closed" }

func (closedError) Is(target error) bool { return target == cuda.ErrClosed }
