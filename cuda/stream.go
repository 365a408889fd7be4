package cuda

import (
	"context"
	"runtime"

	"github.com/raymux/raymux/cuda/cuapi"
)

// StreamOptions are the options of Context.NewStream. The zero value is a
// stream of normal priority that runs beside the legacy default stream.
type StreamOptions struct {
	Priority int  // lower runs first; the driver clamps it to the range of the device
	Blocking bool // wait for, and hold up, work on the legacy default stream
}

// Stream is a queue of device work that runs in the order of submission.
type Stream struct {
	c       *Context
	h       cuapi.Stream
	id      uint64 // never reused, unlike the handle
	gate    gate
	child   child
	cleanup runtime.Cleanup
}

// NewStream makes a stream. Cost: one driver call.
func (c *Context) NewStream(o StreamOptions) (*Stream, error) {
	s := &Stream{c: c}
	s.gate.init()
	flags := cuapi.StreamNonBlocking
	if o.Blocking {
		flags = cuapi.StreamDefault
	}
	err := c.create(func() error {
		var r cuapi.Result
		s.h, r = c.api().StreamCreateWithPriority(flags, o.Priority)
		return c.dev.check("cuStreamCreateWithPriority", r, "")
	}, s.destroy)
	if err != nil {
		return nil, err
	}
	s.id = c.dev.drv.streams.Add(1)
	s.child = c.adopt(kindStream, 0)
	s.cleanup = runtime.AddCleanup(s, abandoned.report, abandoned{c.dev.drv, "stream", c.dev.ordinal})
	return s, nil
}

func (s *Stream) destroy() error {
	return s.c.dev.checkDestroy("cuStreamDestroy_v2", s.c.api().StreamDestroy(s.h), "")
}

// Context is the context of the stream.
func (s *Stream) Context() *Context { return s.c }

// Handle is the driver's handle, for libraries that enqueue work themselves.
func (s *Stream) Handle() cuapi.Stream { return s.h }

// Synchronize waits until everything enqueued so far has run, and returns the
// failure of that work if there was one. When ctx ends first it stops waiting
// and returns the error of ctx; the work goes on. Cost: polls without sleeping
// for the first 5 ms, then at intervals of a sixteenth of the time
// waited, at most 2 ms.
func (s *Stream) Synchronize(ctx context.Context) error { return poll(ctx, s.Query) }

// Query reports whether everything enqueued so far has run. Cost: one driver
// call.
func (s *Stream) Query() (bool, error) {
	sc, err := s.begin("Stream.Query")
	if err != nil {
		return false, err
	}
	r := s.c.api().StreamQuery(s.h)
	ready, err := s.c.ready("cuStreamQuery", r)
	return ready, s.end(sc, err)
}

// Wait holds up the work that is enqueued on s from now on until the last
// recording of e has been reached. The event may belong to any device. Waiting
// for an event that was never recorded is no wait. Cost: one driver call.
func (s *Stream) Wait(e *Event) error {
	if err := s.checkWait(e); err != nil {
		return err
	}
	sc, err := s.begin("Stream.Wait")
	if err != nil {
		return err
	}
	return s.end(sc, s.wait(e))
}

// Wait is Stream.Wait inside a scope of the stream's device. Cost: one driver
// call; no allocation.
func (sc Scope) Wait(s *Stream, e *Event) error {
	if err := sc.checkStream("Scope.Wait", s); err != nil {
		return err
	}
	if err := s.checkWait(e); err != nil {
		return err
	}
	if !s.gate.enter() {
		return errClosed("stream")
	}
	defer s.gate.exit()
	return s.wait(e)
}

func (s *Stream) checkWait(e *Event) error {
	switch {
	case s == nil:
		return badArg("Stream.Wait", "s", "is a nil stream")
	case e == nil:
		return badArg("Stream.Wait", "e", "is nil")
	case e.c.dev.drv != s.c.dev.drv:
		return badArg("Stream.Wait", "e", "belongs to another driver")
	}
	return nil
}

// wait needs the context current and the stream's gate entered.
func (s *Stream) wait(e *Event) error {
	if !e.gate.enter() {
		return errClosed("event")
	}
	defer e.gate.exit()
	r := s.c.api().StreamWaitEvent(s.h, e.h, 0)
	if r.Sticky() && e.c.dev != s.c.dev {
		// One of the two devices is lost. The event's own device says whether it is it.
		err := e.c.with(func() error {
			_, err := e.c.ready("cuEventQuery", e.c.api().EventQuery(e.h))
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.c.check("cuStreamWaitEvent", r)
}

// Record marks the end of the work enqueued so far with e, which must be of the
// same device. Cost: one driver call.
func (s *Stream) Record(e *Event) error {
	if err := s.checkRecord(e); err != nil {
		return err
	}
	sc, err := s.begin("Stream.Record")
	if err != nil {
		return err
	}
	return s.end(sc, s.record(e))
}

// Record is Stream.Record inside a scope of the stream's device. Cost: one
// driver call; no allocation.
func (sc Scope) Record(s *Stream, e *Event) error {
	if err := sc.checkStream("Scope.Record", s); err != nil {
		return err
	}
	if err := s.checkRecord(e); err != nil {
		return err
	}
	if !s.gate.enter() {
		return errClosed("stream")
	}
	defer s.gate.exit()
	return s.record(e)
}

func (s *Stream) checkRecord(e *Event) error {
	switch {
	case s == nil:
		return badArg("Stream.Record", "s", "is a nil stream")
	case e == nil:
		return badArg("Stream.Record", "e", "is nil")
	case e.c.dev != s.c.dev:
		return wrongDevice("Stream.Record", "e", s.c.dev, e.c.dev)
	}
	return nil
}

// record needs the context current and the stream's gate entered.
func (s *Stream) record(e *Event) error {
	if !e.gate.enter() {
		return errClosed("event")
	}
	defer e.gate.exit()
	return s.c.check("cuEventRecord", s.c.api().EventRecord(e.h, s.h))
}

// Close destroys the stream once calls in progress have returned; work that is
// enqueued still runs. Later calls return what the first returned. Cost: one
// driver call.
func (s *Stream) Close() error {
	if s == nil {
		return nil
	}
	return s.gate.close(func() error {
		s.cleanup.Stop()
		return firstError(s.c.destroy(s.destroy), s.c.release(s.child))
	})
}

// begin enters a call on s: its context is current and s stays open until end.
func (s *Stream) begin(op string) (Scope, error) {
	if s == nil {
		return Scope{}, badArg(op, "s", "is a nil stream")
	}
	if !s.gate.enter() {
		return Scope{}, errClosed("stream")
	}
	sc, err := s.c.enter()
	if err != nil {
		s.gate.exit()
	}
	return sc, err
}

// end leaves the call that begin entered. The first error wins.
func (s *Stream) end(sc Scope, err error) error {
	if e := sc.exit(); err == nil {
		err = e
	}
	s.gate.exit()
	return err
}

// ready decodes the result of a query.
func (c *Context) ready(op string, r cuapi.Result) (bool, error) {
	if r == cuapi.ErrorNotReady {
		return false, nil
	}
	if err := c.dev.check(op, r, ""); err != nil {
		return false, err
	}
	return true, nil
}

// checkStream refuses a stream that does not belong to the scope's device, and
// every call on a lost device.
func (sc Scope) checkStream(op string, s *Stream) error {
	switch {
	case sc.c == nil:
		return badArg(op, "sc", "is the zero Scope; use Context.Enter")
	case s == nil:
		return badArg(op, "s", "is a nil stream")
	case s.c.dev != sc.c.dev:
		return wrongDevice(op, "s", sc.c.dev, s.c.dev)
	}
	return sc.c.dev.lostError()
}
