package wrap

import (
	"sync/atomic"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Trace counts calls and, on request, keeps their order.
type Trace struct {
	*Hooked
	counts [NumCalls]atomic.Int64
	order  atomic.Pointer[sequence]
}

// sequence is a buffer of calls that is filled without a lock.
type sequence struct {
	next  atomic.Int64
	calls []CallID
}

// NewTrace counts the calls that pass to api.
func NewTrace(api cuapi.API) *Trace {
	t := &Trace{}
	t.Hooked = NewHooked(api, traceHook{t})
	return t
}

// traceHook keeps the methods of a hook out of the wrapper's own.
type traceHook struct{ *Trace }

func (t traceHook) Before(c Call) (cuapi.Result, bool) {
	t.counts[c.ID].Add(1)
	if seq := t.order.Load(); seq != nil {
		if i := seq.next.Add(1) - 1; i < int64(len(seq.calls)) {
			seq.calls[i] = c.ID
		}
	}
	return cuapi.Success, false
}

func (t traceHook) After(Call, cuapi.Result) {}

// Count is the number of calls of a method, 0 for a name that does not exist.
func (t *Trace) Count(name string) int64 {
	id, ok := callByName(name)
	if !ok {
		return 0
	}
	return t.counts[id].Load()
}

// Counts maps each method that was called to its number of calls.
func (t *Trace) Counts() map[string]int64 {
	m := map[string]int64{}
	for id := range t.counts {
		if n := t.counts[id].Load(); n != 0 {
			m[callNames[id]] = n
		}
	}
	return m
}

// Total is the number of calls of all methods.
func (t *Trace) Total() int64 {
	var sum int64
	for id := range t.counts {
		sum += t.counts[id].Load()
	}
	return sum
}

// Record keeps the order of the next limit calls, in place of what was
// recorded before.
func (t *Trace) Record(limit int) { t.order.Store(&sequence{calls: make([]CallID, limit)}) }

// Sequence is the order of the calls since Record. Read it while no call is
// under way.
func (t *Trace) Sequence() []CallID {
	seq := t.order.Load()
	if seq == nil {
		return nil
	}
	n := min(seq.next.Load(), int64(len(seq.calls)))
	return append([]CallID(nil), seq.calls[:n]...)
}

// Reset sets the counts to zero and ends recording.
func (t *Trace) Reset() {
	for id := range t.counts {
		t.counts[id].Store(0)
	}
	t.order.Store(nil)
}
