package cuda_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
)

// session does one of everything on two devices of api, and closes all of it
// whatever fails on the way.
func session(api cuapi.API) (result []float32, err error) {
	var cleanup []func() error
	defer func() {
		for _, f := range slices.Backward(cleanup) {
			if e := f(); err == nil {
				err = e
			}
		}
	}()
	drv, err := cuda.OpenAPI(api)
	if err != nil {
		return nil, err
	}
	cleanup = append(cleanup, drv.Close)
	var c [2]*cuda.Context
	var s [2]*cuda.Stream
	for i := range c {
		if c[i], err = drv.Devices()[i].Retain(); err != nil {
			return nil, err
		}
		cleanup = append(cleanup, c[i].Close)
		if s[i], err = c[i].NewStream(cuda.StreamOptions{Priority: -1}); err != nil {
			return nil, err
		}
		cleanup = append(cleanup, s[i].Close)
	}
	e, err := c[0].NewEvent(cuda.EventOptions{Timing: true})
	if err != nil {
		return nil, err
	}
	cleanup = append(cleanup, e.Close)
	m, err := c[1].LoadModule([]byte(scalePTX), cuda.JITOptions{})
	if err != nil {
		return nil, err
	}
	cleanup = append(cleanup, m.Close)
	scale, err := m.Function("scale")
	if err != nil {
		return nil, err
	}
	x, err := cuda.Upload(bg, s[0], []float32{1, 2, 3, 4})
	if err != nil {
		return nil, err
	}
	cleanup = append(cleanup, func() error { return cuda.PoolFree(c[0].Pool(), s[0], x) })
	y, err := cuda.PoolAlloc[float32](c[1].Pool(), s[1], 4)
	if err != nil {
		return nil, err
	}
	cleanup = append(cleanup, func() error { return cuda.Free(y) })
	p := scaleParams{X: y.Addr(), N: 4, By: 10}
	for _, step := range []func() error{
		func() error { return s[0].Record(e) },
		func() error { return s[1].Wait(e) },
		func() error { return cuda.CopyAsync(s[1], y, x) },
		func() error { return scale.Launch(s[1], cuapi.D1(1), cuapi.D1(32), 0, cuda.ParamBytes(&p)) },
		func() error { return s[1].Synchronize(bg) },
		func() error { return e.Synchronize(bg) },
		func() error { result, err = cuda.Download(bg, s[1], y); return err },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	pin, err := cuda.AllocPinned[float32](c[0], 4)
	if err != nil {
		return nil, err
	}
	return result, pin.Close()
}

func TestSessionOnTheEmulator(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	ledger := wrap.NewLedger(e)
	got, err := session(ledger)
	require.NoError(t, err)
	assert.Equal(t, []float32{10, 20, 30, 40}, got)
	assert.NoError(t, ledger.Check())
}

// TestSessionSurvivesEveryFailingCall fails each driver call of a session in
// turn. Only what a failed destroy itself was to destroy may be left.
func TestSessionSurvivesEveryFailingCall(t *testing.T) {
	destroys := []string{"StreamDestroy", "EventDestroy", "ModuleUnload", "MemFree", "MemFreeHost", "DevicePrimaryCtxRelease"}
	for k := 1; ; k++ {
		e, err := emu.New(2)
		require.NoError(t, err)
		ledger := wrap.NewLedger(e)
		fault := wrap.NewFault(ledger)
		trace := wrap.NewTrace(fault)
		trace.Record(k)
		fault.FailAt(k, cuapi.ErrorInvalidValue)
		_, err = session(trace)
		if fault.Fired() == 0 {
			require.NoError(t, err)
			require.Greater(t, k, 50)
			return
		}
		name := trace.Sequence()[k-1].String()
		assert.ErrorIs(t, err, cuapi.ErrorInvalidValue, "call %d, %s", k, name)
		if !slices.Contains(destroys, name) {
			assert.NoError(t, ledger.Check(), "call %d, %s", k, name)
		}
	}
}

func TestSessionSurvivesOutOfMemoryAtEveryCall(t *testing.T) {
	for _, name := range []string{"MemAlloc", "ModuleLoadDataEx"} {
		for k := 1; ; k++ {
			e, err := emu.New(2)
			require.NoError(t, err)
			ledger := wrap.NewLedger(e)
			fault := wrap.NewFault(ledger)
			require.NoError(t, fault.FailCall(name, k, cuapi.ErrorOutOfMemory))
			got, err := session(fault)
			require.NoError(t, err, "%s %d: one failure is retried", name, k)
			assert.Equal(t, []float32{10, 20, 30, 40}, got)
			assert.NoError(t, ledger.Check())
			if fault.Fired() == 0 {
				require.Greater(t, k, 1)
				break
			}
		}
	}
}

func TestAKernelFaultLosesItsDeviceOnly(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	drv, err := cuda.OpenAPI(e)
	require.NoError(t, err)
	c, err := drv.Devices()[0].Retain()
	require.NoError(t, err)
	s, err := c.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(scalePTX), cuda.JITOptions{})
	require.NoError(t, err)
	f, err := m.Function("scale")
	require.NoError(t, err)
	x, err := cuda.Upload(bg, s, make([]float32, 4))
	require.NoError(t, err)
	p := scaleParams{X: x.Addr(), N: 5, By: 1} // one more than there is
	require.NoError(t, f.Launch(s, cuapi.D1(1), cuapi.D1(32), 0, cuda.ParamBytes(&p)))
	err = s.Synchronize(bg)
	assert.ErrorIs(t, err, cuda.ErrDeviceLost)
	assert.ErrorIs(t, err, cuapi.ErrorIllegalAddress)
	require.NotNil(t, e.LastFault())
	assert.Equal(t, "scale", e.LastFault().Kernel)
	assert.Equal(t, x.Addr()+16, uint64(e.LastFault().Address), "sizes are exact on the emulator")
	assert.ErrorIs(t, second(drv.Devices()[0].Retain()), cuda.ErrDeviceLost)
	assert.NoError(t, errors.Join(cuda.Free(x), m.Close(), s.Close(), c.Close()))
	other, err := drv.Devices()[1].Retain()
	require.NoError(t, err)
	assert.NoError(t, other.Synchronize())
	assert.NoError(t, other.Close())
}

func TestEmulatorLaunchAllocatesNothing(t *testing.T) {
	c, s, f, done := demo()
	defer done()
	x, err := cuda.Upload(bg, s, make([]float32, 32))
	require.NoError(t, err)
	defer func() { assert.NoError(t, cuda.Free(x)) }()
	sc, err := c.Enter()
	require.NoError(t, err)
	allocs := testing.AllocsPerRun(100, func() {
		p := scaleParams{X: x.Addr(), N: 32, By: 1}
		_ = sc.Launch(f, s, cuapi.D1(1), cuapi.D1(32), 0, cuda.ParamBytes(&p))
	})
	require.NoError(t, sc.Exit())
	require.NoError(t, s.Synchronize(bg))
	t.Logf("%v allocations per launch, those of the emulator's own queue included", allocs)
	assert.LessOrEqual(t, allocs, 8.0)
}

func TestOpenEmulatorRefusesWhatNoEmulatorCanHave(t *testing.T) {
	_, err := cuda.OpenEmulator(0)
	assert.Equal(t, &cuda.ArgumentError{Op: "OpenEmulator", Arg: "n", Detail: "0 devices asked for, 1 to 64 are possible"}, err)
	_, err = cuda.OpenEmulator(1, emu.WithWorkers(0))
	var arg *cuda.ArgumentError
	require.ErrorAs(t, err, &arg)
	assert.Equal(t, "WithWorkers", arg.Arg)
}
