package multi

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
)

func TestWarmUp(t *testing.T) {
	api, err := emu.New(3)
	require.NoError(t, err)
	var trace *wrap.Trace
	var ledger *wrap.Ledger
	var fault *wrap.Fault
	drv, err := cuda.OpenAPI(api, cuda.WithAPI(func(api cuapi.API) cuapi.API {
		trace = wrap.NewTrace(api)
		ledger = wrap.NewLedger(trace)
		fault = wrap.NewFault(ledger)
		return fault
	}))
	require.NoError(t, err)
	ctx := context.Background()
	calls := fault.Calls()
	took, err := WarmUp(ctx, drv, nil)
	require.NoError(t, err)
	assert.Empty(t, took)
	for _, devices := range [][]int{{3}, {-1}, {0, 0}} {
		_, err = WarmUp(ctx, drv, devices)
		require.ErrorIs(t, err, ErrDeviceList)
	}
	_, err = WarmUp(ctx, drv, []int{0}, "surfels")
	require.ErrorIs(t, err, ErrOperation)
	_, err = WarmUp(ctx, drv, []int{0}, OpIntersect, OpIntersect)
	require.ErrorIs(t, err, ErrOperation)
	assert.Equal(t, calls, fault.Calls(), "a refused call reaches the driver")

	took, err = WarmUp(ctx, drv, []int{2, 0})
	require.NoError(t, err)
	require.Len(t, took, 2)
	assert.Positive(t, min(took[0], took[1]))
	require.NoError(t, ledger.Check())
	// Operations load their kernels; those that trace one ray after the other have theirs in all
	// scenes.
	loads := func(op string) int64 {
		before := trace.Count("ModuleLoadDataEx")
		_, err := WarmUp(ctx, drv, []int{2}, op)
		require.NoError(t, err, op)
		require.NoError(t, ledger.Check(), op)
		return trace.Count("ModuleLoadDataEx") - before
	}
	least := loads(OpIntersect)
	for op := range warmOps {
		if strings.HasPrefix(op, "visible") || op == OpTraceReflections || op == OpIntersect {
			assert.Equal(t, least, loads(op), op)
		} else {
			assert.Greater(t, loads(op), least, op)
		}
	}
	// Whatever can be divided has a name.
	for _, key := range probeKeys {
		family, _, _ := strings.Cut(key, ":")
		if f, ok := chunked.Family(key); ok {
			family = f
		}
		assert.Contains(t, warmOps, family)
	}
	// All devices are waited for, and the first of the list that fails is named.
	fault.FailDevice(1, 30, cuapi.ErrorInvalidValue)
	fault.FailDevice(2, 20, cuapi.ErrorInvalidValue)
	_, err = WarmUp(ctx, drv, []int{0, 2, 1})
	var failed *DeviceError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, 2, failed.Device)
	assert.Equal(t, 1, failed.Position)
	require.ErrorIs(t, err, cuapi.ErrorInvalidValue)
	require.NoError(t, ledger.Check())
	require.NoError(t, drv.Close())
}
