package multi

import (
	"testing"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/tests/gputest"
)

// tally is what a call did, by kind of driver call.
type tally struct{ launches, copies, waits, allocs int }

type tracer struct{ *wrap.Trace }

func (t tracer) counts() tally {
	sum := func(names ...string) (n int) {
		for _, name := range names {
			n += int(t.Count(name))
		}
		return n
	}
	return tally{
		launches: sum("LaunchKernel"),
		copies:   sum("MemcpyDtoDAsync", "MemcpyPeerAsync", "MemcpyHtoDAsync", "MemcpyDtoHAsync", "MemcpyPeer", "MemcpyDtoD", "MemcpyHtoD", "MemcpyDtoH"),
		waits:    sum("StreamSynchronize", "EventSynchronize", "CtxSynchronize", "StreamQuery", "EventQuery"),
		allocs:   sum("MemAlloc", "MemAllocAsync", "MemHostAlloc"),
	}
}

// traced opens n devices behind a wrapper that counts calls.
func traced(t testing.TB, n int) (*gputest.Rig, tracer) {
	t.Helper()
	var tr tracer
	rig := gputest.Open(t, n, func(api cuapi.API) cuapi.API {
		tr.Trace = wrap.NewTrace(api)
		return tr.Trace
	})
	return rig, tr
}

func cudaStream() cuda.StreamOptions { return cuda.StreamOptions{} }
