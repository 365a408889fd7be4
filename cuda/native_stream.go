package cuda

import (
	"math"

	"github.com/raymux/raymux/cuda/cuapi"
)

func (n *native) StreamCreateWithPriority(flags cuapi.StreamFlags, priority int) (cuapi.Stream, cuapi.Result) {
	v, r := n.wordOf(symStreamCreateWithPriority, int32Word(int(flags)), int32Word(priority))
	return cuapi.Stream(v), r
}

func (n *native) StreamDestroy(s cuapi.Stream) cuapi.Result {
	return n.do(symStreamDestroy, uintptr(s))
}

func (n *native) StreamSynchronize(s cuapi.Stream) cuapi.Result {
	return n.do(symStreamSynchronize, uintptr(s))
}

func (n *native) StreamQuery(s cuapi.Stream) cuapi.Result {
	return n.do(symStreamQuery, uintptr(s))
}

func (n *native) StreamWaitEvent(s cuapi.Stream, e cuapi.Event, flags uint32) cuapi.Result {
	return n.do(symStreamWaitEvent, uintptr(s), uintptr(e), uintptr(flags))
}

func (n *native) StreamGetPriority(s cuapi.Stream) (int, cuapi.Result) {
	b := n.get()
	defer n.put(b)
	r := n.call(symStreamGetPriority, b, uintptr(s), b.ref(0))
	return b.i32(0), r
}

func (n *native) EventCreate(flags cuapi.EventFlags) (cuapi.Event, cuapi.Result) {
	v, r := n.wordOf(symEventCreate, int32Word(int(flags)))
	return cuapi.Event(v), r
}

func (n *native) EventDestroy(e cuapi.Event) cuapi.Result { return n.do(symEventDestroy, uintptr(e)) }

func (n *native) EventRecord(e cuapi.Event, s cuapi.Stream) cuapi.Result {
	return n.do(symEventRecord, uintptr(e), uintptr(s))
}

func (n *native) EventQuery(e cuapi.Event) cuapi.Result { return n.do(symEventQuery, uintptr(e)) }

func (n *native) EventSynchronize(e cuapi.Event) cuapi.Result {
	return n.do(symEventSynchronize, uintptr(e))
}

func (n *native) EventElapsedTime(start, end cuapi.Event) (float32, cuapi.Result) {
	v, r := n.wordOf(symEventElapsedTime, uintptr(start), uintptr(end))
	return math.Float32frombits(uint32(v)), r
}
