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
}

// lane is what is known about one other stream.
type lane struct {
	done *cuda.Event // recorded after every query on the stream
	seen int64       // changes that the stream has waited for
	used bool        // queries were enqueued since the last change
}

// enter makes st ready for a query. The caller holds a turn.
func (o *order) enter(st *cuda.Stream) error {
	if st == o.own {
		return nil
	}
	o.mu.Lock()
	l, changes := o.lanes[st], o.changes
	behind := l == nil || l.seen < changes
	o.mu.Unlock()
	if l == nil {
		e, err := st.Context().NewEvent(cuda.EventOptions{})
		if err != nil {
			return err
		}
		o.mu.Lock()
		if l = o.lanes[st]; l == nil {
			l = &lane{done: e}
			o.lanes[st] = l
			e = nil
		}
		o.mu.Unlock()
		if e != nil { // another goroutine was faster
			if err := e.Close(); err != nil {
				return err
			}
		}
	}
	if !behind {
		return nil
	}
	if err := st.Wait(o.changed); err != nil {
		return err
	}
	o.mu.Lock()
	l.seen = max(l.seen, changes)
	o.mu.Unlock()
	return nil
}

// leave marks the end of a query on st, also of one that failed half-way.
func (o *order) leave(st *cuda.Stream) error {
	if st == o.own {
		return nil
	}
	o.mu.Lock()
	l := o.lanes[st]
	l.used = true
	o.mu.Unlock()
	return st.Record(l.done)
}

// beginChange makes the scene's stream wait for every earlier query. The caller
// holds an exclusive turn, so no query is being submitted.
func (o *order) beginChange() error {
	for st, l := range o.lanes {
		if l.used {
			if err := o.own.Wait(l.done); err != nil {
				return err
			}
			l.used = false
			continue
		}
		// Idle since the last change, which waited for it: forget the stream, it
		// may have been closed long ago.
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
