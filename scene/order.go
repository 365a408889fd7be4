package scene

import (
	"sync"

	"github.com/raymux/raymux/cuda"
)

// order keeps queries on any stream and changes of the scene apart on the device.
// Changes run on the scene's own stream: before one begins, that stream waits for
// the queries on every other stream; before a query on another stream begins,
// that stream waits for the last change. Work on the scene's own stream needs
// neither.
type order struct {
	own     *cuda.Stream
	changed *cuda.Event // recorded on own after every change

	mu      sync.Mutex
	changes int64 // how often changed was recorded
	lanes   map[*cuda.Stream]*lane
	sweepAt int // how many lanes make enter look for idle ones
}

// sweepMin is the least number of other streams worth a look for idle ones.
const sweepMin = 64

// lane is what is known about one other stream.
type lane struct {
	done  *cuda.Event // recorded after every query on the stream
	seen  int64       // changes that the stream has waited for
	used  bool        // queries were enqueued since the last change
	calls int         // queries being submitted; the lane is kept while there are any
}

// enter makes st ready for a query; leave must follow unless it fails. The caller
// holds a turn, and sc is a scope of the stream's device.
func (o *order) enter(sc cuda.Scope, st *cuda.Stream) error {
	if st == o.own {
		return nil
	}
	l, behind, err := o.lane(st)
	if err == nil && behind {
		err = sc.Wait(st, o.changed)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		l.seen = o.changes
	} else if l != nil {
		l.calls--
	}
	return err
}

// lane is the lane of st with one more call, and whether the stream has yet to
// wait for a change.
func (o *order) lane(st *cuda.Stream) (l *lane, behind bool, err error) {
	join := func() bool { // needs mu
		if l = o.lanes[st]; l != nil {
			l.calls++
			behind = l.seen < o.changes
		}
		return l != nil
	}
	o.mu.Lock()
	found, sweep := join(), len(o.lanes) >= max(o.sweepAt, sweepMin)
	o.mu.Unlock()
	if found {
		return l, behind, nil
	}
	if sweep {
		if err := o.sweep(); err != nil {
			return nil, false, err
		}
	}
	e, err := st.Context().NewEvent(cuda.EventOptions{})
	if err != nil {
		return nil, false, err
	}
	o.mu.Lock()
	found = join()
	if !found {
		l, behind = &lane{done: e, calls: 1}, true
		o.lanes[st] = l
	}
	o.mu.Unlock()
	if found { // another goroutine was faster
		err = e.Close()
	}
	return l, behind, err
}

// sweep forgets streams whose queries have run. Without it a scene that never
// changes would keep an event for every stream that was ever used, for callers
// that make a stream per request.
func (o *order) sweep() error {
	o.mu.Lock()
	idle := make(map[*cuda.Stream]*lane)
	for st, l := range o.lanes {
		if l.calls == 0 {
			l.calls++ // so that nobody else drops it
			idle[st] = l
		}
	}
	o.mu.Unlock()
	var ended []*cuda.Event
	for st, l := range idle {
		// A failing query means a failing device, which other calls report.
		ready, err := l.done.Query()
		o.mu.Lock()
		l.calls--
		if ready && err == nil && l.calls == 0 && o.lanes[st] == l {
			delete(o.lanes, st)
			ended = append(ended, l.done)
		}
		o.mu.Unlock()
	}
	o.mu.Lock()
	o.sweepAt = 2 * len(o.lanes)
	o.mu.Unlock()
	var first error
	for _, e := range ended {
		first = firstError(first, e.Close())
	}
	return first
}

// leave marks the end of a query on st, also of one that failed half-way.
func (o *order) leave(sc cuda.Scope, st *cuda.Stream) error {
	if st == o.own {
		return nil
	}
	o.mu.Lock()
	l := o.lanes[st]
	l.used = true
	o.mu.Unlock()
	err := sc.Record(st, l.done)
	o.mu.Lock()
	l.calls--
	o.mu.Unlock()
	return err
}

// beginChange makes the scene's stream wait for every earlier query. The caller
// holds an exclusive turn, so no query is being submitted.
func (o *order) beginChange() error {
	for st, l := range o.lanes {
		if l.used && st.Context().Lost() == nil {
			err := o.own.Wait(l.done)
			if err == nil {
				l.used = false
				continue
			}
			if st.Context().Lost() == nil {
				return err
			}
		}
		// On a lost device, which does nothing any more, or idle since the last change,
		// which waited for it: forget the stream, it may have been closed long ago.
		delete(o.lanes, st)
		if err := l.done.Close(); err != nil {
			return err
		}
	}
	return nil
}

// endChange publishes what the scene's stream holds by now.
func (o *order) endChange() error {
	if err := o.own.Record(o.changed); err != nil {
		return err
	}
	o.mu.Lock()
	o.changes++
	o.mu.Unlock()
	return nil
}

// forget drops a stream on which all work has ended.
func (o *order) forget(st *cuda.Stream) error {
	o.mu.Lock()
	l := o.lanes[st]
	delete(o.lanes, st)
	o.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.done.Close()
}

// close releases the events. The caller has waited for the streams.
func (o *order) close() error {
	var first error
	for _, l := range o.lanes {
		if err := l.done.Close(); first == nil {
			first = err
		}
	}
	clear(o.lanes)
	if err := o.changed.Close(); first == nil {
		first = err
	}
	return first
}
