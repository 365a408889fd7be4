package emu

import (
	"sync"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Stream priorities: lower numbers are more urgent.
const (
	leastPriority    = 0
	greatestPriority = -5
)

// operation is one entry of a stream. It runs on the stream's goroutine when
// everything before it has run, unless the device is lost by then.
type operation interface {
	run(c *context)
}

// stream runs its operations in order, on a goroutine that exists only while
// there are any.
type stream struct {
	ctx      *context
	handle   cuapi.Stream
	blocking bool // synchronises with the legacy stream
	priority int
	loop     func() // s.drain, bound once so that starting it allocates nothing

	mu                sync.Mutex // guards the following
	changed           sync.Cond  // completed grew
	queue             []operation
	head              int // of queue
	running           bool
	issued, completed uint64
}

func newStream(c *context, flags cuapi.StreamFlags, priority int) *stream {
	s := &stream{ctx: c, blocking: flags == cuapi.StreamDefault, priority: priority}
	s.changed.L = &s.mu
	s.loop = s.work
	return s
}

// ticket is a point in a stream: it is reached when the stream has completed n
// operations.
type ticket struct {
	s *stream
	n uint64
}

func (t ticket) reached() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.s.completed >= t.n
}

func (t ticket) wait() {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	for t.s.completed < t.n {
		t.s.changed.Wait()
	}
}

// push appends without regard to other streams; use context.enqueue.
func (s *stream) push(op operation) ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head > len(s.queue)/2 { // a stream that never gets idle must not grow
		s.queue = append(s.queue[:0], s.queue[s.head:]...)
		s.head = 0
	}
	s.queue = append(s.queue, op)
	s.issued++
	if !s.running {
		s.running = true
		go s.loop()
	}
	return ticket{s, s.issued}
}

// tail is the point at which everything enqueued so far has run.
func (s *stream) tail() ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ticket{s, s.issued}
}

// work runs until the queue is empty.
func (s *stream) work() {
	for {
		op := s.pop()
		if op == nil {
			return
		}
		if s.ctx.status() == cuapi.Success {
			op.run(s.ctx)
		}
		s.mu.Lock()
		s.completed++
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}

func (s *stream) pop() operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head == len(s.queue) {
		s.queue, s.head, s.running = s.queue[:0], 0, false
		return nil
	}
	op := s.queue[s.head]
	s.queue[s.head] = nil
	s.head++
	return op
}

// waitFor holds a stream until a point of another one is reached. It holds
// even when that stream's device is lost: what is left there is dropped soon.
type waitFor struct{ ticket }

func (w waitFor) run(*context) { w.wait() }

// marker does nothing; its ticket marks a point.
type marker struct{}

func (marker) run(*context) {}

// retiring takes a destroyed stream out of its context's set. It is the last
// operation: until then waiting for the context waits for the stream too.
type retiring struct{ s *stream }

func (t *retiring) run(c *context) {
	c.submit.Lock()
	defer c.submit.Unlock()
	delete(c.streams, t.s)
}

// enqueue appends op to s, one of c's streams, with the dependencies that the
// legacy stream has on the others.
func (c *context) enqueue(s *stream, op operation) ticket {
	c.submit.Lock()
	defer c.submit.Unlock()
	switch {
	case s == c.legacy:
		for b := range c.streams {
			if b.blocking {
				s.pushWait(b.tail())
			}
		}
	case s.blocking:
		s.pushWait(c.legacy.tail())
	}
	return s.push(op)
}

func (s *stream) pushWait(t ticket) {
	if !t.reached() {
		s.push(waitFor{t})
	}
}

// tails are the ends of all streams.
func (c *context) tails() []ticket {
	c.submit.Lock()
	defer c.submit.Unlock()
	ts := []ticket{c.legacy.tail()}
	for s := range c.streams {
		ts = append(ts, s.tail())
	}
	return ts
}

// drain waits until everything enqueued so far has run or was dropped.
func (c *context) drain() {
	for _, t := range c.tails() {
		t.wait()
	}
}

// synchronize is drain, and reports what went wrong meanwhile.
func (c *context) synchronize() cuapi.Result {
	c.drain()
	return c.status()
}

// enterStream is the start of calls that name a stream: the current context
// must be usable, and the stream be live (zero: the current context's legacy
// stream) and on a device that is not lost.
func (e *Emulator) enterStream(h cuapi.Stream) (*context, *stream, cuapi.Result) {
	c, r := e.enter()
	if r != cuapi.Success {
		return nil, nil, r
	}
	if h == 0 {
		return c, c.legacy, cuapi.Success
	}
	s := e.streams.get(h)
	if s == nil {
		return nil, nil, cuapi.ErrorInvalidHandle
	}
	return c, s, s.ctx.status()
}

// StreamCreateWithPriority clamps the priority to the supported range.
func (e *Emulator) StreamCreateWithPriority(flags cuapi.StreamFlags, priority int) (cuapi.Stream, cuapi.Result) {
	c, r := e.enter()
	if r != cuapi.Success {
		return 0, r
	}
	if flags != cuapi.StreamDefault && flags != cuapi.StreamNonBlocking {
		return 0, cuapi.ErrorInvalidValue
	}
	s := newStream(c, flags, max(greatestPriority, min(leastPriority, priority)))
	c.submit.Lock()
	c.streams[s] = struct{}{}
	c.submit.Unlock()
	return e.streams.add(s, func(h cuapi.Stream) { s.handle = h }), cuapi.Success
}

// StreamDestroy returns at once; work still enqueued runs to its end.
func (e *Emulator) StreamDestroy(h cuapi.Stream) cuapi.Result {
	_, s, r := e.enterStream(h)
	if r != cuapi.Success {
		return r
	}
	if h == 0 || e.streams.remove(h) == nil {
		return cuapi.ErrorInvalidHandle
	}
	s.ctx.enqueue(s, &retiring{s})
	return cuapi.Success
}

// StreamSynchronize waits for everything enqueued so far.
func (e *Emulator) StreamSynchronize(h cuapi.Stream) cuapi.Result {
	c, s, r := e.enterStream(h)
	if r != cuapi.Success {
		return r
	}
	end := s.tail()
	if s == c.legacy {
		end = c.enqueue(s, marker{})
	}
	end.wait()
	return s.ctx.status()
}

// StreamQuery answers 600 while there is work left.
func (e *Emulator) StreamQuery(h cuapi.Stream) cuapi.Result {
	c, s, r := e.enterStream(h)
	if r != cuapi.Success {
		return r
	}
	ends := []ticket{s.tail()}
	if s == c.legacy {
		ends = c.blockingTails()
	}
	for _, t := range ends {
		if !t.reached() {
			return cuapi.ErrorNotReady
		}
	}
	return s.ctx.status()
}

// blockingTails are the ends of the legacy stream and all that it waits for.
func (c *context) blockingTails() []ticket {
	c.submit.Lock()
	defer c.submit.Unlock()
	ts := []ticket{c.legacy.tail()}
	for s := range c.streams {
		if s.blocking {
			ts = append(ts, s.tail())
		}
	}
	return ts
}

// StreamGetPriority is the clamped priority.
func (e *Emulator) StreamGetPriority(h cuapi.Stream) (int, cuapi.Result) {
	_, s, r := e.enterStream(h)
	if r != cuapi.Success {
		return 0, r
	}
	return s.priority, cuapi.Success
}
