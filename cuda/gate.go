package cuda

import (
	"sync/atomic"
)

// closing is the bit of a gate that is set when its handle begins to close.
const closing = int64(1) << 62

// gate counts the calls in progress on one handle, so that closing it can
// refuse new calls and wait for those under way. It is not a lock: calls never
// exclude each other.
type gate struct {
	state atomic.Int64  // calls in progress, plus closing
	idle  chan struct{} // closed when the last call leaves a closing gate
	done  chan struct{} // closed when the handle is destroyed
	err   error         // outcome of the destroy; read after done
}

func (g *gate) init() {
	g.idle = make(chan struct{})
	g.done = make(chan struct{})
}

// enter reports whether a call may proceed; exit must follow.
func (g *gate) enter() bool {
	for {
		n := g.state.Load()
		if n&closing != 0 {
			return false
		}
		if g.state.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (g *gate) exit() {
	// enter refuses once closing is set, so the count reaches zero once.
	if g.state.Add(-1) == closing {
		close(g.idle)
	}
}

func (g *gate) closed() bool { return g.state.Load()&closing != 0 }

// close refuses new calls, waits for those under way and runs destroy once.
// Every caller gets the outcome of that one destroy.
func (g *gate) close(destroy func() error) error {
	before := g.state.Or(closing)
	if before&closing != 0 {
		<-g.done
		return g.err
	}
	if before != 0 {
		<-g.idle
	}
	defer close(g.done)
	g.err = destroy()
	return g.err
}
