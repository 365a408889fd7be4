package scene_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// requireFailingCallsToBeNoticed fails each driver call of a query in turn, on a scene of
// one mesh: the query fails with it, nothing is left behind, and the next query works.
func requireFailingCallsToBeNoticed(t *testing.T, mesh scene.Mesh, prepare func(*rig) func(scene.CallOption) (scene.Reusable, error)) {
	t.Helper()
	var ledger *wrap.Ledger
	var fault *wrap.Fault
	var trace *wrap.Trace
	g := gputest.Open(t, 1, func(api cuapi.API) cuapi.API {
		ledger = wrap.NewLedger(api)
		fault = wrap.NewFault(ledger)
		trace = wrap.NewTrace(fault)
		return trace
	})
	t.Cleanup(func() { require.NoError(t, ledger.Check()) }) // after all that follows
	r := openOn(t, g.Context(t, 0))
	r.add(mesh)
	require.NoError(t, r.Build(background))
	ask := prepare(r)
	other, err := r.Context().NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	require.NoError(t, r.Stream().Synchronize(background))
	once := func() error {
		v, err := ask(scene.OnStream(other))
		if err != nil {
			return err
		}
		return errors.Join(other.Synchronize(background), v.Close())
	}
	require.NoError(t, once())
	trace.Reset()
	require.NoError(t, once())
	failed := 0
	for method, n := range trace.Counts() {
		for k := 1; k <= int(n); k++ {
			fault.Reset()
			require.NoError(t, fault.FailCall(method, k, cuapi.ErrorInvalidValue))
			err := once()
			fired := fault.Fired()
			fault.Reset()
			if fired == 0 {
				continue // waits poll, so that their number differs
			}
			failed++
			require.ErrorIs(t, err, cuapi.ErrorInvalidValue, "call %d of %s", k, method)
			require.NoError(t, once(), "after call %d of %s", k, method)
		}
	}
	require.NotZero(t, failed, "no call failed")
}
