package cuda

import (
	"context"

	"github.com/raymux/raymux/cuda/cuapi"
)

const (
	// stagingChunk is the size in bytes of one page-locked buffer: large enough
	// for full link speed, small enough that filling one and copying the other
	// overlap.
	stagingChunk = 4 << 20
	// stagingLanes is how many copies between Go memory and one context can be
	// under way at a time. Others wait for their turn.
	stagingLanes = 2
)

// staging is the page-locked memory through which a context copies Go memory.
// It belongs to the context and not to a call, so a call that was cancelled
// leaves nothing that the device might still write to.
type staging struct {
	c      *Context
	lanes  chan *lane
	closed chan struct{}
}

// lane is a pair of buffers that are used in turn. An event tells when the
// device is done with a buffer.
type lane struct {
	c    *Context
	bufs [2]stagingBuffer
	next int
}

type stagingBuffer struct {
	mem   []byte
	event cuapi.Event
	busy  bool // the device may use mem until event
}

func newStaging(c *Context) *staging {
	st := &staging{c: c, lanes: make(chan *lane, stagingLanes), closed: make(chan struct{})}
	for range stagingLanes {
		st.lanes <- &lane{c: c}
	}
	return st
}

// acquire waits for a lane; give must follow.
func (st *staging) acquire(ctx context.Context) (*lane, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case l := <-st.lanes:
		return l, nil
	default:
	}
	select {
	case l := <-st.lanes:
		return l, nil
	case <-st.closed:
		return nil, errClosed("context")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (st *staging) give(l *lane) { st.lanes <- l }

// close frees the buffers once the calls in progress are done with them.
func (st *staging) close() error {
	close(st.closed)
	var errs []error
	for range stagingLanes {
		l := <-st.lanes
		for i := range l.bufs {
			errs = append(errs, l.free(&l.bufs[i]))
		}
	}
	return firstError(errs...)
}

// buffer returns the next buffer, free for use.
func (l *lane) buffer(ctx context.Context) (*stagingBuffer, error) {
	b := &l.bufs[l.next]
	l.next ^= 1
	if err := l.wait(ctx, b); err != nil {
		return nil, err
	}
	if b.mem != nil && b.event != 0 {
		return b, nil
	}
	err := l.c.with(func() error {
		var r cuapi.Result
		if b.event == 0 {
			if b.event, r = l.c.api().EventCreate(cuapi.EventDisableTiming); r != cuapi.Success {
				return l.c.check("cuEventCreate", r)
			}
		}
		if b.mem == nil {
			b.mem, r = l.c.api().MemHostAlloc(stagingChunk, 0)
		}
		return l.c.dev.check("cuMemHostAlloc", r, "staging buffer")
	})
	return b, err
}

// wait waits until the device is done with b.
func (l *lane) wait(ctx context.Context, b *stagingBuffer) error {
	if !b.busy {
		return ctx.Err()
	}
	err := poll(ctx, func() (ready bool, err error) {
		err = l.c.with(func() error {
			var e error
			ready, e = l.c.ready("cuEventQuery", l.c.api().EventQuery(b.event))
			return e
		})
		return ready, err
	})
	if err == nil {
		b.busy = false
	}
	return err
}

// submit enqueues one copy that uses b on s and marks its end.
func (l *lane) submit(op string, s *Stream, b *stagingBuffer, copyAsync func(cuapi.API) cuapi.Result) error {
	sc, err := s.begin(op)
	if err != nil {
		return err
	}
	api := l.c.api()
	if err := l.c.check(op, copyAsync(api)); err != nil {
		return s.end(sc, err)
	}
	b.busy = true
	r := api.EventRecord(b.event, s.h)
	err = l.c.check("cuEventRecord", r)
	if r != cuapi.Success && !r.Sticky() {
		// The copy is under way without a mark, so only the stream tells when
		// the buffer is free.
		if api.StreamSynchronize(s.h) == cuapi.Success {
			b.busy = false
		}
	}
	return s.end(sc, err)
}

// free gives the buffer back to the driver once the device is done with it.
func (l *lane) free(b *stagingBuffer) error {
	if l.c.dev.lostError() != nil {
		return nil
	}
	err := l.wait(context.Background(), b)
	return firstError(err, l.c.destroy(func() error {
		var errs []error
		if b.mem != nil {
			errs = append(errs, l.c.dev.checkDestroy("cuMemFreeHost", l.c.api().MemFreeHost(b.mem), "staging buffer"))
		}
		if b.event != 0 && l.c.dev.lostError() == nil {
			errs = append(errs, l.c.dev.checkDestroy("cuEventDestroy_v2", l.c.api().EventDestroy(b.event), ""))
		}
		return firstError(errs...)
	}))
}
