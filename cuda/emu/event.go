package emu

import (
	"sync"
	"time"

	"github.com/raymux/raymux/cuda/cuapi"
)

// event names the point of a stream at which it was recorded last.
type event struct {
	ctx    *context
	timing bool

	mu   sync.Mutex
	last *recording // nil: never recorded
}

// recording is one EventRecord: later ones replace it and leave those who
// wait for it alone.
type recording struct {
	at  ticket
	now time.Time // valid when at is reached
}

func (r *recording) run(*context) { r.now = time.Now() }

func (v *event) recording() *recording {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last
}

// enterEvent is the start of calls that name an event.
func (e *Emulator) enterEvent(h cuapi.Event) (*event, cuapi.Result) {
	if _, r := e.enter(); r != cuapi.Success {
		return nil, r
	}
	v := e.events.get(h)
	if v == nil {
		return nil, cuapi.ErrorInvalidHandle
	}
	return v, v.ctx.status()
}

// EventCreate accepts EventBlockingSync and EventDisableTiming; an
// inter-process event is not supported (801).
func (e *Emulator) EventCreate(flags cuapi.EventFlags) (cuapi.Event, cuapi.Result) {
	c, r := e.enter()
	if r != cuapi.Success {
		return 0, r
	}
	switch {
	case flags&^(cuapi.EventBlockingSync|cuapi.EventDisableTiming|cuapi.EventInterprocess) != 0:
		return 0, cuapi.ErrorInvalidValue
	case flags&cuapi.EventInterprocess != 0:
		return 0, cuapi.ErrorNotSupported
	}
	v := &event{ctx: c, timing: flags&cuapi.EventDisableTiming == 0}
	return e.events.add(v, nil), cuapi.Success
}

// EventDestroy returns at once; streams that wait for the event still do.
func (e *Emulator) EventDestroy(h cuapi.Event) cuapi.Result {
	if _, r := e.enterEvent(h); r != cuapi.Success {
		return r
	}
	if e.events.remove(h) == nil {
		return cuapi.ErrorInvalidHandle
	}
	return cuapi.Success
}

// EventRecord moves the event to the end of a stream of its own context; a
// stream of another context is an invalid handle (400).
func (e *Emulator) EventRecord(h cuapi.Event, sh cuapi.Stream) cuapi.Result {
	_, s, r := e.enterStream(sh)
	if r != cuapi.Success {
		return r
	}
	v, r := e.enterEvent(h)
	if r != cuapi.Success {
		return r
	}
	if v.ctx != s.ctx {
		return cuapi.ErrorInvalidHandle
	}
	// Under v.mu two concurrent records of one event cannot end up in another
	// order than their places in the stream.
	v.mu.Lock()
	defer v.mu.Unlock()
	rec := &recording{}
	rec.at = s.ctx.enqueue(s, rec)
	v.last = rec
	return cuapi.Success
}

// EventQuery answers 600 until the recorded point is reached. An event that was
// never recorded is complete.
func (e *Emulator) EventQuery(h cuapi.Event) cuapi.Result {
	v, r := e.enterEvent(h)
	if r != cuapi.Success {
		return r
	}
	if rec := v.recording(); rec != nil && !rec.at.reached() {
		return cuapi.ErrorNotReady
	}
	return v.ctx.status()
}

// EventSynchronize waits for the recorded point; not at all when there is none.
func (e *Emulator) EventSynchronize(h cuapi.Event) cuapi.Result {
	v, r := e.enterEvent(h)
	if r != cuapi.Success {
		return r
	}
	if rec := v.recording(); rec != nil {
		rec.at.wait()
	}
	return v.ctx.status()
}

// EventElapsedTime is in milliseconds. Both events need timing, a recording and
// the same context (400), and must be complete (600).
func (e *Emulator) EventElapsedTime(start, end cuapi.Event) (float32, cuapi.Result) {
	a, r := e.enterEvent(start)
	if r != cuapi.Success {
		return 0, r
	}
	b, r := e.enterEvent(end)
	if r != cuapi.Success {
		return 0, r
	}
	ra, rb := a.recording(), b.recording()
	if a.ctx != b.ctx || !a.timing || !b.timing || ra == nil || rb == nil {
		return 0, cuapi.ErrorInvalidHandle
	}
	if !ra.at.reached() || !rb.at.reached() {
		return 0, cuapi.ErrorNotReady
	}
	return float32(rb.now.Sub(ra.now).Seconds() * 1e3), cuapi.Success
}

// StreamWaitEvent makes later work of the stream wait for the point at which
// the event is recorded now; for a never recorded event it does nothing. Event
// and stream may belong to different devices. flags must be 0.
func (e *Emulator) StreamWaitEvent(sh cuapi.Stream, h cuapi.Event, flags uint32) cuapi.Result {
	_, s, r := e.enterStream(sh)
	if r != cuapi.Success {
		return r
	}
	if flags != 0 {
		return cuapi.ErrorInvalidValue
	}
	v, r := e.enterEvent(h)
	if r != cuapi.Success {
		return r
	}
	if rec := v.recording(); rec != nil && !rec.at.reached() {
		s.ctx.enqueue(s, waitFor{rec.at})
	}
	return cuapi.Success
}
