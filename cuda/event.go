package cuda

import (
	"context"
	"runtime"
	"time"

	"github.com/raymux/raymux/cuda/cuapi"
)

// EventOptions are the options of Context.NewEvent. The zero value is the
// cheapest event: it orders work and cannot measure time.
type EventOptions struct {
	Timing       bool // the event can be used with Since
	BlockingSync bool // threads of other libraries that wait for it sleep
}

// Event is a mark in a stream.
type Event struct {
	c       *Context
	h       cuapi.Event
	timing  bool
	gate    gate
	child   child
	cleanup runtime.Cleanup
}

// NewEvent makes an event. Cost: one driver call.
func (c *Context) NewEvent(o EventOptions) (*Event, error) {
	e := &Event{c: c, timing: o.Timing}
	e.gate.init()
	flags := cuapi.EventDisableTiming
	if o.Timing {
		flags = cuapi.EventDefault
	}
	if o.BlockingSync {
		flags |= cuapi.EventBlockingSync
	}
	err := c.create(func() error {
		var r cuapi.Result
		e.h, r = c.api().EventCreate(flags)
		return c.dev.check("cuEventCreate", r, "")
	}, e.destroy)
	if err != nil {
		return nil, err
	}
	e.child = c.adopt(kindEvent, 0)
	e.cleanup = runtime.AddCleanup(e, abandoned.report, abandoned{c.dev.drv, "event", c.dev.ordinal})
	return e, nil
}

func (e *Event) destroy() error {
	return e.c.dev.checkDestroy("cuEventDestroy_v2", e.c.api().EventDestroy(e.h), "")
}

// Context is the context of the event.
func (e *Event) Context() *Context { return e.c }

// Handle is the driver's handle.
func (e *Event) Handle() cuapi.Event { return e.h }

// Synchronize waits until the last recording of the event has been reached, and
// returns at once when there was none. Cancelling and cost are as for
// Stream.Synchronize.
func (e *Event) Synchronize(ctx context.Context) error { return poll(ctx, e.Query) }

// Query reports whether the last recording of the event has been reached. Cost:
// one driver call.
func (e *Event) Query() (bool, error) {
	if e == nil {
		return false, badArg("Event.Query", "e", "is nil")
	}
	if !e.gate.enter() {
		return false, errClosed("event")
	}
	defer e.gate.exit()
	var ready bool
	err := e.c.with(func() error {
		var err error
		ready, err = e.c.ready("cuEventQuery", e.c.api().EventQuery(e.h))
		return err
	})
	return ready, err
}

// Since is the device time from start to e, with a resolution of about half a
// microsecond. Both need Timing, the same device and to have been reached. Cost:
// one driver call.
func (e *Event) Since(start *Event) (time.Duration, error) {
	switch {
	case e == nil || start == nil:
		return 0, badArg("Event.Since", "start", "is nil, or the event itself is")
	case e.c.dev != start.c.dev:
		return 0, wrongDevice("Event.Since", "start", e.c.dev, start.c.dev)
	case !e.timing || !start.timing:
		return 0, badArg("Event.Since", "start", "both events must be made with EventOptions.Timing")
	}
	if !e.gate.enter() {
		return 0, errClosed("event")
	}
	defer e.gate.exit()
	if !start.gate.enter() {
		return 0, errClosed("event")
	}
	defer start.gate.exit()
	var ms float32
	err := e.c.with(func() error {
		var r cuapi.Result
		ms, r = e.c.api().EventElapsedTime(start.h, e.h)
		return e.c.dev.check("cuEventElapsedTime", r, "")
	})
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// Close destroys the event once calls in progress have returned. Work that
// waits for it is not disturbed. Later calls return what the first returned.
// Cost: one driver call.
func (e *Event) Close() error {
	if e == nil {
		return nil
	}
	return e.gate.close(func() error {
		e.cleanup.Stop()
		return firstError(e.c.destroy(e.destroy), e.c.release(e.child))
	})
}
