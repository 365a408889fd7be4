package scene

import (
	"github.com/raymux/raymux/cuda"
)

// A search of many rows ends with a few long rays on an almost idle device. A call that
// has something to do after its search therefore searches the last part of its rows on a
// stream of its own: that part fills the end of the first, and the first is finalized
// while the last long rays of the second are on their way.

const (
	// tailRows is the fewest rows of a call that is done in two parts: on an H200 they
	// take a millisecond, and the longest rays a sixth of that.
	tailRows = 1 << 20
	// tailShare is which part of the rows comes last.
	tailShare = 8
)

// tail is a stream for the last part of a call. It serves one submission at a time.
type tail struct {
	stream       *cuda.Stream
	begun, ended *cuda.Event
}

// tailOf is how many rows of a call come last; 0: it is not worth it.
func (s *Scene) tailOf(c *Call) int64 {
	if !c.finalizes || c.Rows < s.tailRows || !s.tables.search.longRays() {
		return 0
	}
	return c.Rows / tailShare
}

// runInTwo is the whole query with its last rows on a stream of their own.
func (c *Call) runInTwo(sc cuda.Scope, last int64) error {
	s := c.scene
	t, err := s.takeTail()
	if err != nil {
		return err
	}
	defer s.leaveTail(t)
	in, out := c.query.columns()
	first := c.Rows - last
	if err := firstError(c.Stream.Record(t.begun), t.stream.Wait(t.begun)); err != nil {
		return err
	}
	if err := c.query.search(s, sc, c.Stream, in, out, 0, first); err != nil {
		return err
	}
	err = c.query.search(s, sc, t.stream, in, out, first, last)
	if err == nil {
		err = c.query.finalize(s, sc, c.Stream, 0, first)
	}
	// The caller's stream ends after the other one, also after an error.
	if err := firstError(err, t.stream.Record(t.ended), c.Stream.Wait(t.ended)); err != nil {
		return err
	}
	return c.query.finalize(s, sc, c.Stream, first, last)
}

// takeTail returns a tail that nobody submits with.
func (s *Scene) takeTail() (_ *tail, err error) {
	s.mu.Lock()
	if n := len(s.tails); n > 0 {
		t := s.tails[n-1]
		s.tails = s.tails[:n-1]
		s.mu.Unlock()
		return t, nil
	}
	s.mu.Unlock()
	t := &tail{}
	defer func() {
		if err != nil {
			err = firstError(err, t.close())
		}
	}()
	if t.stream, err = s.ctx.NewStream(cuda.StreamOptions{}); err != nil {
		return nil, err
	}
	if t.begun, err = s.ctx.NewEvent(cuda.EventOptions{}); err != nil {
		return nil, err
	}
	t.ended, err = s.ctx.NewEvent(cuda.EventOptions{})
	return t, err
}

func (s *Scene) leaveTail(t *tail) {
	s.mu.Lock()
	s.tails = append(s.tails, t)
	s.mu.Unlock()
}

// close needs the work on the tail to be over.
func (t *tail) close() error {
	var errs []error
	for _, e := range []*cuda.Event{t.begun, t.ended} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	if t.stream != nil {
		errs = append(errs, t.stream.Close())
	}
	return firstError(errs...)
}
