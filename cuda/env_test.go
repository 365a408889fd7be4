package cuda_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

var bg = context.Background()

// env is two devices of a fake driver with one of everything on each.
type env struct {
	api *fake
	drv *cuda.Driver
	c   [2]*cuda.Context
	s   [2]*cuda.Stream
	e   [2]*cuda.Event
	m   [2]*cuda.Module
	f   [2]*cuda.Function
	a   [2]cuda.Slice[int32]
	pin *cuda.Pinned[int32]
}

func newEnv(t testing.TB, opts ...cuda.Option) *env {
	t.Helper()
	v := &env{api: newFake(2)}
	var err error
	v.drv, err = cuda.OpenAPI(v.api, opts...)
	require.NoError(t, err)
	for i := range v.c {
		d, err := v.drv.Device(i)
		require.NoError(t, err)
		v.c[i], err = d.Retain()
		require.NoError(t, err)
		v.s[i], err = v.c[i].NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		v.e[i], err = v.c[i].NewEvent(cuda.EventOptions{Timing: true})
		require.NoError(t, err)
		v.m[i], err = v.c[i].LoadModule([]byte("ptx"), cuda.JITOptions{})
		require.NoError(t, err)
		v.f[i], err = v.m[i].Function("k")
		require.NoError(t, err)
		v.a[i], err = cuda.Alloc[int32](v.c[i], 8)
		require.NoError(t, err)
	}
	v.pin, err = cuda.AllocPinned[int32](v.c[0], 8)
	require.NoError(t, err)
	return v
}

// close closes everything, children first, and returns what failed.
func (v *env) close() error {
	errs := []error{v.pin.Close()}
	for i := range v.c {
		errs = append(errs, cuda.Free(v.a[i]), v.e[i].Close(), v.m[i].Close(), v.s[i].Close(), v.c[i].Close())
	}
	return errors.Join(append(errs, v.drv.Close())...)
}

// op is one public operation on device 0 that cleans up after itself.
type op struct {
	name string
	run  func(v *env) error
}

func closing[C interface{ Close() error }](c C, err error) error {
	if err != nil {
		return err
	}
	return c.Close()
}

func freeing(s cuda.Slice[int32], err error) error {
	if err != nil {
		return err
	}
	return cuda.Free(s)
}

// ops are all operations that call the driver.
func ops() []op {
	return []op{
		{"Retain", func(v *env) error { return closing(v.c[0].Device().Retain()) }},
		{"Do", func(v *env) error { return v.c[0].Do(func() error { return nil }) }},
		{"Enter", func(v *env) error {
			sc, err := v.c[0].Enter()
			if err != nil {
				return err
			}
			return sc.Exit()
		}},
		{"Scope", func(v *env) error {
			sc, err := v.c[0].Enter()
			if err != nil {
				return err
			}
			for _, f := range []func() error{
				func() error { return sc.Launch(v.f[0], v.s[0], cuapi.D1(1), cuapi.D1(32), 0, nil) },
				func() error { return sc.Record(v.s[0], v.e[0]) },
				func() error { return sc.Wait(v.s[0], v.e[0]) },
				func() error { return cuda.CopyAsyncIn(sc, v.s[0], v.a[0], v.a[1]) },
			} {
				if err == nil {
					err = f()
				}
			}
			if e := sc.Exit(); err == nil {
				err = e
			}
			return err
		}},
		{"NewStream", func(v *env) error { return closing(v.c[0].NewStream(cuda.StreamOptions{Blocking: true})) }},
		{"NewEvent", func(v *env) error { return closing(v.c[0].NewEvent(cuda.EventOptions{BlockingSync: true})) }},
		{"LoadModule", func(v *env) error { return closing(v.c[0].LoadModule([]byte("ptx"), cuda.JITOptions{})) }},
		{"EnablePeer", func(v *env) error { return v.c[0].EnablePeer(v.c[1]) }},
		{"MemInfo", func(v *env) error { _, _, err := v.c[0].MemInfo(); return err }},
		{"Context.Synchronize", func(v *env) error { return v.c[0].Synchronize() }},
		{"Stream.Synchronize", func(v *env) error { return v.s[0].Synchronize(bg) }},
		{"Stream.Query", func(v *env) error { _, err := v.s[0].Query(); return err }},
		{"Stream.Wait", func(v *env) error { return v.s[0].Wait(v.e[1]) }},
		{"Stream.Record", func(v *env) error { return v.s[0].Record(v.e[0]) }},
		{"Event.Synchronize", func(v *env) error { return v.e[0].Synchronize(bg) }},
		{"Event.Query", func(v *env) error { _, err := v.e[0].Query(); return err }},
		{"Event.Since", func(v *env) error { _, err := v.e[0].Since(v.e[0]); return err }},
		{"Module.Function", func(v *env) error { _, err := v.m[0].Function("k"); return err }},
		{"Module.Global", func(v *env) error { _, _, err := v.m[0].Global("g"); return err }},
		{"Launch", func(v *env) error { return v.f[0].Launch(v.s[0], cuapi.D1(1), cuapi.D1(32), 0, nil) }},
		{"Function.Attribute", func(v *env) error { _, err := v.f[0].Attribute(cuapi.FuncNumRegs); return err }},
		{"Function.Occupancy", func(v *env) error { _, err := v.f[0].Occupancy(128, 0); return err }},
		{"Alloc", func(v *env) error { return freeing(cuda.Alloc[int32](v.c[0], 100)) }},
		{"PoolAlloc", func(v *env) error {
			s, err := cuda.PoolAlloc[int32](v.c[0].Pool(), v.s[0], 200)
			if err != nil {
				return err
			}
			return cuda.PoolFree(v.c[0].Pool(), v.s[0], s)
		}},
		{"PoolAlloc of another stream's block", func(v *env) error {
			// One scenario: every failure inside must leave nothing behind.
			s, err := cuda.PoolAlloc[int32](v.c[0].Pool(), v.s[0], 300)
			if err != nil {
				return err
			}
			if err := cuda.PoolFree(v.c[0].Pool(), v.s[0], s); err != nil {
				return err
			}
			st, err := v.c[0].NewStream(cuda.StreamOptions{})
			if err != nil {
				return err
			}
			s, err = cuda.PoolAlloc[int32](v.c[0].Pool(), st, 300)
			if err == nil {
				err = cuda.PoolFree(v.c[0].Pool(), st, s)
			}
			if e := st.Close(); err == nil {
				err = e
			}
			return err
		}},
		{"Trim", func(v *env) error {
			s, err := cuda.PoolAlloc[int32](v.c[0].Pool(), v.s[0], 400)
			if err != nil {
				return err
			}
			if err := cuda.PoolFree(v.c[0].Pool(), v.s[0], s); err != nil {
				return err
			}
			return v.c[0].Pool().Trim()
		}},
		{"Wrap", func(v *env) error { return freeing(cuda.Wrap[int32](v.c[0], v.a[0].Addr(), 4, nil)) }},
		{"Upload", func(v *env) error { return freeing(cuda.Upload(bg, v.s[0], []int32{1, 2, 3})) }},
		{"Download", func(v *env) error { _, err := cuda.Download(bg, v.s[0], v.a[0]); return err }},
		{"CopyIn", func(v *env) error { return cuda.CopyIn(bg, v.s[0], v.a[0], make([]int32, 8)) }},
		{"CopyOut", func(v *env) error { return cuda.CopyOut(bg, v.s[0], make([]int32, 8), v.a[0]) }},
		{"CopyAsync on one device", func(v *env) error {
			dst, _ := v.a[0].Sub(0, 2)
			src, _ := v.a[0].Sub(2, 4)
			return cuda.CopyAsync(v.s[0], dst, src)
		}},
		{"CopyAsync between devices", func(v *env) error { return cuda.CopyAsync(v.s[0], v.a[0], v.a[1]) }},
		{"Fill8", func(v *env) error { return cuda.Fill8(v.s[0], v.a[0], 1) }},
		{"Fill32", func(v *env) error { return cuda.Fill32(v.s[0], v.a[0], 1) }},
		{"AllocPinned", func(v *env) error { return closing(cuda.AllocPinned[int32](v.c[0], 4)) }},
		{"CopyInPinned", func(v *env) error { return cuda.CopyInPinned(v.s[0], v.a[0], v.pin, 0) }},
		{"CopyOutPinned", func(v *env) error { return cuda.CopyOutPinned(v.s[0], v.pin, 0, v.a[0]) }},
	}
}

// pinned runs f on one OS thread whose current context is h, and returns the
// context that f leaves current.
func pinned(api *fake, h cuapi.Context, f func()) cuapi.Context {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	api.mu.Lock()
	before := api.current[threadID()]
	api.current[threadID()] = h
	api.mu.Unlock()
	f()
	api.mu.Lock()
	defer api.mu.Unlock()
	left := api.current[threadID()]
	api.current[threadID()] = before
	return left
}

func TestOperationsLeaveTheCurrentContextAsFound(t *testing.T) {
	for _, o := range ops() {
		for _, ambient := range []cuapi.Context{0, fakeContext, fakeContext + 1, 0x777} {
			v := newEnv(t)
			left := pinned(v.api, ambient, func() { assert.NoError(t, o.run(v), o.name) })
			assert.Equal(t, ambient, left, o.name)
			require.NoError(t, v.close(), o.name)
			assert.Empty(t, v.api.live(), o.name)
		}
	}
}

func TestEveryFailingCall(t *testing.T) {
	destroys := map[string]string{"StreamDestroy": "stream", "EventDestroy": "event", "ModuleUnload": "module",
		"MemFreeHost": "host", "DevicePrimaryCtxRelease": "context"}
	for _, o := range ops() {
		for k := int64(1); ; k++ {
			v := newEnv(t)
			var err error
			left := pinned(v.api, fakeContext+1, func() {
				v.api.failNth(k, "", cuapi.ErrorInvalidValue)
				err = o.run(v)
			})
			failed := v.api.failed
			v.api.failNth(0, "", 0)
			assert.Equal(t, cuapi.Context(fakeContext+1), left, "%s, call %d (%s)", o.name, k, failed)
			if failed == "" {
				assert.NoError(t, err, o.name)
				require.Greater(t, k, int64(1), "%s makes no driver call", o.name)
				break
			}
			var ce *cuda.Error
			if assert.ErrorAs(t, err, &ce, "%s, call %d (%s)", o.name, k, failed) {
				assert.Equal(t, cuapi.ErrorInvalidValue, ce.Code)
			}
			require.NoError(t, v.close(), "%s, call %d (%s)", o.name, k, failed)
			// Only what a failed destroy itself was to destroy may be left.
			want := map[string]int{}
			if kind, ok := destroys[failed]; ok {
				want[kind] = 1
			}
			assert.Equal(t, want, v.api.live(), "%s, call %d (%s)", o.name, k, failed)
		}
	}
}

func TestStickyCodesEndAllDriverCalls(t *testing.T) {
	codes := []cuapi.Result{700, 702, 710, 714, 715, 716, 717, 718, 719, 214, 220}
	for _, code := range codes {
		v := newEnv(t)
		v.api.failNth(1, "LaunchKernel", code)
		// Cached memory and staging buffers are gone with the device.
		require.NoError(t, freeing(cuda.Upload(bg, v.s[0], []int32{1})))
		launch := func() error { return v.f[0].Launch(v.s[0], cuapi.D1(1), cuapi.D1(32), 0, nil) }
		first := launch()
		require.ErrorIs(t, first, cuda.ErrDeviceLost)
		require.ErrorIs(t, first, code)
		v.api.takeCalls()
		for _, o := range ops() {
			err := o.run(v)
			assert.ErrorIs(t, err, cuda.ErrDeviceLost, "%v %s", code, o.name)
			assert.ErrorIs(t, err, code, "%v %s", code, o.name)
			assert.Empty(t, v.api.takeCalls(), "%v %s", code, o.name)
		}
		var lost *cuda.LostError
		require.ErrorAs(t, v.c[0].Lost(), &lost)
		assert.Equal(t, 0, lost.Device)
		assert.ErrorContains(t, lost.Cause, "cuLaunchKernel")
		assert.NoError(t, v.c[1].Lost(), "the other device works on")
		v.api.sticky = cuapi.Success
		v.api.takeCalls()
		for _, c := range []func() error{v.pin.Close, v.e[0].Close, v.m[0].Close, v.s[0].Close, func() error { return cuda.Free(v.a[0]) }, v.c[0].Close} {
			assert.NoError(t, c(), "destroying on a lost device does nothing")
		}
		assert.Empty(t, v.api.takeCalls())
	}
}

func TestDestroyAtProcessExitIsSilent(t *testing.T) {
	for _, name := range []string{"StreamDestroy", "EventDestroy", "ModuleUnload", "MemFreeHost", "MemFree", "DevicePrimaryCtxRelease"} {
		v := newEnv(t)
		v.api.failNth(1, name, cuapi.ErrorDeinitialized)
		assert.NoError(t, v.close(), name)
		assert.Equal(t, name, v.api.failed)
	}
}
