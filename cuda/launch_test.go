package cuda_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

type kernelParams struct {
	Out   uint64
	Count int32
	Scale [2]float32
	Inner struct{ A, B uint16 }
}

func TestParamBytesIsTheStructAsTheKernelReadsIt(t *testing.T) {
	p := kernelParams{Out: 0x1122334455667788, Count: -2, Scale: [2]float32{1.5, -0.25}}
	p.Inner.A, p.Inner.B = 7, 9
	var want bytes.Buffer
	require.NoError(t, binary.Write(&want, binary.LittleEndian, p))
	assert.Equal(t, want.Bytes(), cuda.ParamBytes(&p))
	p.Count = 5
	assert.Equal(t, byte(5), cuda.ParamBytes(&p)[8], "a view, not a copy")
}

func TestParamBytesRefusesWhatHasNoFixedMeaning(t *testing.T) {
	for name, call := range map[string]func(){
		"struct { N int }.N is a int":              func() { cuda.ParamBytes(&struct{ N int }{}) },
		"struct { P *int32 }.P is a ptr":           func() { cuda.ParamBytes(&struct{ P *int32 }{}) },
		"struct { S []int32 }.S is a slice":        func() { cuda.ParamBytes(&struct{ S []int32 }{}) },
		"struct { B bool }.B is a bool":            func() { cuda.ParamBytes(&struct{ B bool }{}) },
		"struct { A [2]uintptr }.A[] is a uintptr": func() { cuda.ParamBytes(&struct{ A [2]uintptr }{}) },
		"struct { S string }.S is a string":        func() { cuda.ParamBytes(&struct{ S string }{}) },
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				assert.ErrorContains(t, err, name)
			}()
			call()
		}()
	}
}

func TestLaunchPassesParametersAndAllocatesNothing(t *testing.T) {
	v := newEnv(t)
	want := kernelParams{Out: v.a[0].Addr(), Count: 41}
	v.api.quiet = true
	launch := func() error {
		p := want // a local: it must not move to the heap either
		return v.f[0].Launch(v.s[0], cuapi.D1(4), cuapi.D1(128), 64, cuda.ParamBytes(&p))
	}
	require.NoError(t, launch())
	assert.Equal(t, cuda.ParamBytes(&want), v.api.params)
	for _, ambient := range []cuapi.Context{0, fakeContext, fakeContext + 1} {
		pinned(v.api, ambient, func() {
			assert.Zero(t, testing.AllocsPerRun(200, func() { _ = launch() }))
		})
	}
	assert.Zero(t, testing.AllocsPerRun(200, func() {
		sc, _ := v.c[0].Enter()
		p := want
		_ = sc.Launch(v.f[0], v.s[0], cuapi.D1(4), cuapi.D1(128), 0, cuda.ParamBytes(&p))
		_ = sc.Record(v.s[0], v.e[0])
		_ = sc.Wait(v.s[0], v.e[1])
		_ = sc.Exit()
	}))
	long := bytes.Repeat([]byte{3}, 5000)
	require.NoError(t, v.f[0].Launch(v.s[0], cuapi.D1(1), cuapi.D1(1), 0, long))
	assert.Equal(t, long, v.api.params)
	require.NoError(t, v.close())
}

func TestDriverCallsOfALaunch(t *testing.T) {
	v := newEnv(t)
	launch := func() error { return v.f[0].Launch(v.s[0], cuapi.D1(1), cuapi.D1(1), 0, nil) }
	v.api.takeCalls()
	pinned(v.api, fakeContext, func() { assert.NoError(t, launch()) })
	assert.Equal(t, []string{"CtxGetCurrent", "LaunchKernel"}, v.api.takeCalls())
	pinned(v.api, fakeContext+1, func() { assert.NoError(t, launch()) })
	assert.Equal(t, []string{"CtxGetCurrent", "CtxSetCurrent", "LaunchKernel", "CtxSetCurrent"}, v.api.takeCalls())
	sc, err := v.c[0].Enter()
	require.NoError(t, err)
	v.api.takeCalls()
	require.NoError(t, sc.Launch(v.f[0], v.s[0], cuapi.D1(1), cuapi.D1(1), 0, nil))
	require.NoError(t, cuda.CopyAsyncIn(sc, v.s[0], v.a[0], v.a[1]))
	assert.Equal(t, []string{"LaunchKernel", "MemcpyPeerAsync"}, v.api.takeCalls())
	require.NoError(t, sc.Exit())
}

func TestScopesNest(t *testing.T) {
	v := newEnv(t)
	left := pinned(v.api, 0x99, func() {
		outer, err := v.c[0].Enter()
		require.NoError(t, err)
		inner, err := v.c[1].Enter()
		require.NoError(t, err)
		same, err := v.c[1].Enter()
		require.NoError(t, err)
		assert.Equal(t, v.c[1].Handle(), v.api.current[threadID()])
		require.NoError(t, same.Exit())
		require.NoError(t, inner.Exit())
		assert.Equal(t, v.c[0].Handle(), v.api.current[threadID()])
		require.NoError(t, outer.Exit())
	})
	assert.Equal(t, cuapi.Context(0x99), left)
}

// A scope that is switched from device to device goes back to what was current before it.
func TestScopesSwitch(t *testing.T) {
	v := newEnv(t)
	left := pinned(v.api, 0x99, func() {
		sc, err := v.c[0].Enter()
		require.NoError(t, err)
		v.api.takeCalls()
		sc, err = sc.Switch(v.c[1])
		require.NoError(t, err)
		assert.Equal(t, v.c[1], sc.Context())
		assert.Equal(t, v.c[1].Handle(), v.api.current[threadID()])
		var wrong *cuda.WrongDeviceError
		require.ErrorAs(t, sc.Launch(v.f[0], v.s[0], cuapi.D1(1), cuapi.D1(1), 0, nil), &wrong)
		sc, err = sc.Switch(v.c[1])
		require.NoError(t, err)
		require.Equal(t, []string{"CtxSetCurrent"}, v.api.takeCalls())
		require.NoError(t, sc.Exit())
		require.Equal(t, []string{"CtxSetCurrent"}, v.api.takeCalls())
	})
	assert.Equal(t, cuapi.Context(0x99), left)

	// Whatever fails, the scope that is returned is the one to leave.
	left = pinned(v.api, 0x99, func() {
		sc, err := v.c[0].Enter()
		require.NoError(t, err)
		sc, err = sc.Switch(nil)
		require.ErrorContains(t, err, "nil")
		v.api.failNth(1, "CtxSetCurrent", cuapi.ErrorInvalidValue)
		sc, err = sc.Switch(v.c[1])
		require.ErrorIs(t, err, cuapi.ErrorInvalidValue)
		assert.Equal(t, v.c[0], sc.Context())
		require.NoError(t, sc.Exit())
	})
	assert.Equal(t, cuapi.Context(0x99), left)
	sc, err := v.c[0].Enter()
	require.NoError(t, err)
	sc, err = sc.Switch(v.c[1])
	require.NoError(t, err)
	require.NoError(t, sc.Exit())
	require.NoError(t, v.close(), "a switch keeps nothing alive")
	assert.Empty(t, v.api.live())
}

func TestDoRestoresAfterErrorAndPanic(t *testing.T) {
	v := newEnv(t)
	boom := errors.New("boom")
	left := pinned(v.api, 0x99, func() { assert.Equal(t, boom, v.c[0].Do(func() error { return boom })) })
	assert.Equal(t, cuapi.Context(0x99), left)
	left = pinned(v.api, 0x99, func() {
		assert.PanicsWithValue(t, "boom", func() { _ = v.c[0].Do(func() error { panic("boom") }) })
	})
	assert.Equal(t, cuapi.Context(0x99), left)
	require.NoError(t, v.close(), "a panic inside Do keeps nothing alive")
	assert.Empty(t, v.api.live())
}

func TestModuleErrorCarriesTheCompilersLog(t *testing.T) {
	v := newEnv(t)
	_, err := v.c[0].LoadModule([]byte("bad"), cuda.JITOptions{})
	var me *cuda.ModuleError
	require.ErrorAs(t, err, &me)
	assert.Equal(t, "line 7: no such instruction", me.Log)
	assert.ErrorIs(t, err, cuapi.ErrorInvalidPTX)
	_, err = v.m[0].Function("absent")
	assert.ErrorIs(t, err, cuapi.ErrorNotFound)
	assert.ErrorContains(t, err, `"absent"`)
}

func BenchmarkLaunch(b *testing.B) {
	v := newEnv(b)
	v.api.quiet = true
	p := kernelParams{Count: 1}
	b.ReportAllocs()
	for b.Loop() {
		_ = v.f[0].Launch(v.s[0], cuapi.D1(4), cuapi.D1(128), 0, cuda.ParamBytes(&p))
	}
}
