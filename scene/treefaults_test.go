package scene

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/tests/gputest"
)

// Whatever call of a build on the device fails, its memory comes back and the next
// build works.
func TestEveryFailingCallOfADeviceBuild(t *testing.T) {
	const triangles = 40
	ctx := context.Background()
	v, f := soup(70, triangles, 0.2)
	var ledger *wrap.Ledger
	var fault *wrap.Fault
	var trace *wrap.Trace
	g := gputest.Open(t, 1, func(api cuapi.API) cuapi.API {
		ledger = wrap.NewLedger(api)
		fault = wrap.NewFault(ledger)
		trace = wrap.NewTrace(fault)
		return trace
	})
	c, err := g.Devices[0].Retain()
	require.NoError(t, err)
	s, err := New(c, Options{Backend: CUDA})
	require.NoError(t, err)
	s.device.least = 1
	_, err = s.AddMesh(Mesh{Vertices: v, Faces: f, NoEdges: true, Dynamic: true})
	require.NoError(t, err)
	require.NoError(t, s.Build(ctx))
	inUse := c.Pool().Stats().BytesInUse
	trace.Reset()
	require.NoError(t, s.Build(ctx))
	calls := trace.Counts()
	require.Greater(t, calls["LaunchKernel"], int64(30))
	for method, n := range calls {
		step := 1
		switch method {
		case "CtxGetCurrent", "CtxSetCurrent": // surround the others; a sample is enough
			step = 64
		case "EventQuery", "StreamQuery": // waits poll
			n = min(n, 3)
		case "LaunchKernel":
			step = 2
		}
		for k := 1; k <= int(n); k += step {
			require.NoError(t, fault.FailCall(method, k, cuapi.ErrorInvalidValue))
			if err := s.Build(ctx); err != nil {
				require.ErrorIs(t, err, cuapi.ErrorInvalidValue, "%s %d", method, k)
			} else {
				// An emulator is faster than the polls now and then.
				require.Zero(t, fault.Fired(), "%s %d failed unnoticed", method, k)
			}
			fault.Reset()
			require.NoError(t, s.Build(ctx), "after %s %d", method, k)
			require.Equal(t, inUse, c.Pool().Stats().BytesInUse, "%s %d leaves memory behind", method, k)
		}
	}
	checkTree(t, hostForm(t, s, s.tables.search.(*treeSearch)), triangles)
	require.NoError(t, s.Close())
	require.NoError(t, c.Close())
	require.NoError(t, ledger.Check())
}

// Where there is no memory to build on the device, the host builds; where there is
// none for the tree, the scene stays what it was.
func TestDeviceBuildWithoutMemory(t *testing.T) {
	const triangles = 40
	ctx := context.Background()
	v, f := soup(71, triangles, 0.2)
	var fault *wrap.Fault
	g := gputest.Open(t, 1, func(api cuapi.API) cuapi.API {
		fault = wrap.NewFault(api)
		return fault
	})
	byHost, failed := 0, 0
	for k := 1; ; k++ {
		c, err := g.Devices[0].Retain() // with an empty pool
		require.NoError(t, err)
		s, err := New(c, Options{Backend: CUDA})
		require.NoError(t, err)
		s.device.least = 1
		_, err = s.AddMesh(Mesh{Vertices: v, Faces: f, NoEdges: true})
		require.NoError(t, err)
		// The pool tries a second time.
		require.NoError(t, fault.FailCall("MemAlloc", k, cuapi.ErrorOutOfMemory))
		require.NoError(t, fault.FailCall("MemAlloc", k+1, cuapi.ErrorOutOfMemory))
		err = s.Build(ctx)
		fired := fault.Fired()
		fault.Reset()
		switch {
		case err != nil:
			require.ErrorIs(t, err, cuda.ErrOutOfMemory)
			require.False(t, s.IsReady())
			var broken *FailedError
			require.False(t, errors.As(s.checkReady(), &broken))
			require.NoError(t, s.Build(ctx))
			failed++
		case fired > 0 && s.tables.search.(*treeSearch).plan.by == byHostName:
			byHost++
		}
		checkTree(t, hostForm(t, s, s.tables.search.(*treeSearch)), triangles)
		require.NoError(t, s.Close())
		require.NoError(t, c.Close())
		if fired < 2 {
			break
		}
	}
	require.Positive(t, byHost)
	require.Positive(t, failed)
}
