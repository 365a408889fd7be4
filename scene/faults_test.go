package scene_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// life is everything that a scene does with the driver, step by step. A triangle and
// three metres beside it an instance of another one rise together.
type life struct {
	c      *cuda.Context
	s      *scene.Scene
	st     *cuda.Stream
	o, d   cuda.Slice[float32]
	mesh   scene.Mesh // on the device until a Build has copied it
	height float32    // of the triangles by the last successful step
	trying float32    // by the step in progress
	ending bool
}

func (l *life) steps() []func() error {
	sync := func(z float32, device bool) func() error {
		return func() error {
			l.trying = z
			v := up(meshT(), z).Vertices
			if err := l.s.SetInstanceTransform(2, shiftBy(vec{13, 0, z})); err != nil {
				return err
			}
			if err := l.s.UpdateMeshVertices(0, v); err != nil {
				return err
			}
			if device {
				moved, err := cuda.Upload(background, l.s.Stream(), v)
				if err != nil {
					return err
				}
				err = errors.Join(l.s.UpdateMeshVerticesDevice(background, 0, moved), cuda.Free(moved))
				if err != nil {
					return err
				}
			}
			if err := l.s.Sync(background); err != nil {
				return err
			}
			l.height = z
			return nil
		}
	}
	return []func() error{
		func() (err error) { l.s, err = scene.New(l.c, scene.Options{}); return err },
		func() (err error) { l.st, err = l.c.NewStream(cuda.StreamOptions{}); return err },
		func() error {
			_, first := l.s.AddMesh(dynamic(meshT()))
			_, second := l.s.AddMesh(moved(meshT(), vec{-10, 0, 0}))
			_, third := l.s.AddInstance(1, shiftBy(vec{13, 0, 0}), true)
			return errors.Join(first, second, third)
		},
		l.build,
		func() (err error) { l.o, err = cuda.Upload(background, l.st, below.o); return err },
		func() (err error) { l.d, err = cuda.Upload(background, l.st, below.d); return err },
		l.query,
		sync(1, false),
		l.query,
		sync(2, true),
		func() error {
			m := scene.Mesh{}
			var err error
			if m.DeviceVertices, err = cuda.Upload(background, l.s.Stream(), up(meshT(), 90).Vertices); err != nil {
				return err
			}
			if m.DeviceFaces, err = cuda.Upload(background, l.s.Stream(), meshT().Faces); err != nil {
				return errors.Join(err, cuda.Free(m.DeviceVertices))
			}
			_, err = l.s.AddMesh(m)
			l.mesh = m
			return errors.Join(err, l.build())
		},
		l.query,
		func() error { l.ending = true; return cuda.Free(l.o) },
		func() error { return cuda.Free(l.d) },
		func() error { return errors.Join(cuda.Free(l.mesh.DeviceVertices), cuda.Free(l.mesh.DeviceFaces)) },
		func() error { return l.st.Close() },
		func() error { return l.s.Close() },
	}
}

// below is a ray up at each of the two triangles.
var below = batch{o: []float32{.25, .25, -1, 3.25, .25, -1}, d: []float32{0, 0, 1, 0, 0, 1}}

func (l *life) build() error { return l.s.Build(background) }

// query checks the height of the triangles on the other stream.
func (l *life) query() error {
	h, err := l.s.Intersect(background, scene.Rays{O: l.o, D: l.d}, scene.All, scene.OnStream(l.st))
	if err != nil {
		return err
	}
	got, err := cuda.Download(background, l.st, h.T)
	if err := errors.Join(err, h.Close()); err != nil {
		return err
	}
	if got[0] != got[1] || got[0] != 1+l.height && got[0] != 1+l.trying {
		return fmt.Errorf("the triangles are at %v and %v, not at %v or %v", got[0]-1, got[1]-1, l.height, l.trying)
	}
	return nil
}

// end releases what the steps have left.
func (l *life) end() {
	_, _ = cuda.Free(l.o), cuda.Free(l.d)
	_, _ = cuda.Free(l.mesh.DeviceVertices), cuda.Free(l.mesh.DeviceFaces)
	if l.st != nil {
		_ = l.st.Close()
	}
	if l.s != nil {
		_ = l.s.Close()
	}
}

// run lives one life in which the k-th call of a method fails with code, or no
// call if k is 0. It returns how often each method was called.
func run(t *testing.T, method string, k int, code cuapi.Result) map[string]int64 {
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
	fault.Reset()
	trace.Reset()
	if k > 0 {
		require.NoError(t, fault.FailCall(method, k, code))
	}
	l := &life{c: c}
	for _, step := range l.steps() {
		if err = step(); err != nil {
			break
		}
	}
	calls := trace.Counts()
	// Waits poll, so that lives differ in length and the last calls may be missing.
	if err != nil || k == 0 {
		require.Equal(t, k > 0, fault.Fired() == 1, err)
	}
	fault.Reset()
	if err != nil {
		require.ErrorIs(t, err, code)
	}
	l.requireRecovery(t)
	l.end()
	require.NoError(t, c.Close())
	if err := ledger.Check(); err != nil {
		// What the driver refuses to release stays, and nothing else.
		require.Contains(t, releasing, method, "%v", err)
	}
	return calls
}

// requireRecovery requires the right answer, or a refusal until the next Build.
func (l *life) requireRecovery(t *testing.T) {
	t.Helper()
	if l.ending || l.o.IsNil() || l.d.IsNil() {
		return
	}
	if !l.s.IsReady() {
		err := l.query()
		require.True(t, errors.Is(err, scene.ErrFailed) || errors.Is(err, scene.ErrNotReady), "%v", err)
		require.NoError(t, l.build())
	}
	require.NoError(t, l.query())
}

var releasing = []string{"EventDestroy", "StreamDestroy", "ModuleUnload", "MemFree", "MemFreeHost"}

// frequent calls surround the others; a sample of them is enough.
var frequent = []string{"CtxGetCurrent", "CtxSetCurrent", "EventQuery", "StreamQuery"}

// Whatever call fails, nothing is left behind, and the scene answers again after
// at most one Build.
func TestEveryFailingCallLeavesNothingBehind(t *testing.T) {
	codes := []cuapi.Result{cuapi.ErrorInvalidValue, cuapi.ErrorOutOfMemory}
	calls := run(t, "", 0, 0)
	require.Contains(t, calls, "LaunchKernel")
	for method, n := range calls {
		step := 1
		if slices.Contains(frequent, method) {
			step = 16
		}
		if gputest.Native() { // where every life creates the context anew
			step *= 8
		}
		for k := 1; k <= int(n); k += step {
			t.Run(fmt.Sprint(method, " ", k), func(t *testing.T) { run(t, method, k, codes[k/step%2]) })
		}
	}
}

// faulty is a built scene whose driver calls can be made to fail.
func faulty(t *testing.T) (*rig, *wrap.Fault) {
	t.Helper()
	var fault *wrap.Fault
	g := gputest.Open(t, 1, func(api cuapi.API) cuapi.API {
		fault = wrap.NewFault(api)
		return fault
	})
	r := openOn(t, g.Context(t, 0))
	r.add(dynamic(meshT()))
	require.NoError(t, r.Build(background))
	return r, fault
}

func TestFailedSyncNeedsABuild(t *testing.T) {
	r, fault := faulty(t)
	r.update(0, up(meshT(), 3))
	require.NoError(t, fault.FailCall("LaunchKernel", 2, cuapi.ErrorLaunchOutOfResources))
	require.ErrorIs(t, r.Sync(background), cuapi.ErrorLaunchOutOfResources)
	assert.False(t, r.IsReady())
	assert.False(t, r.HasPendingUpdates())
	_, err := r.Intersect(background, r.upload(i1), scene.None)
	require.ErrorIs(t, err, scene.ErrFailed)
	require.ErrorIs(t, err, cuapi.ErrorLaunchOutOfResources, "the cause is lost")
	require.ErrorIs(t, r.Sync(background), scene.ErrFailed)
	require.ErrorIs(t, r.UpdateMeshVertices(0, meshT().Vertices), scene.ErrFailed)
	r.add(up(meshT(), 9)) // legal, and no recovery
	require.ErrorIs(t, r.Sync(background), scene.ErrFailed)
	require.NoError(t, r.Build(background))
	assert.Equal(t, float32(4), r.t1(), "the staged vertices were lost")
	r.requireVersions(2, 2, 2)
}

func TestEndedContextsChangeNothing(t *testing.T) {
	r := build(t, dynamic(meshT()))
	ended, cancel := context.WithCancel(background)
	cancel()
	r.update(0, up(meshT(), 3))
	require.ErrorIs(t, r.Sync(ended), context.Canceled)
	require.ErrorIs(t, r.Build(ended), context.Canceled)
	_, err := r.Intersect(ended, r.upload(i1), scene.None)
	require.ErrorIs(t, err, context.Canceled)
	assert.True(t, r.HasPendingUpdates())
	assert.Equal(t, float32(1), r.t1())
	r.requireVersions(1, 1, 1)
	r.sync()
	assert.Equal(t, float32(4), r.t1())
}

func TestLackOfMemoryChangesNothing(t *testing.T) {
	r, fault := faulty(t)
	r.update(0, up(meshT(), 3))
	r.add(meshQ())
	// The pool tries a second time with its cache emptied.
	for k := 1; k <= 20; k++ {
		require.NoError(t, fault.FailCall("MemAlloc", k, cuapi.ErrorOutOfMemory))
	}
	require.ErrorIs(t, r.Build(background), cuda.ErrOutOfMemory)
	fault.Reset()
	r.requireVersions(1, 1, 1)
	_, err := r.Intersect(background, r.upload(i1), scene.None)
	require.ErrorIs(t, err, scene.ErrNotReady)
	require.NoError(t, r.Build(background))
	assert.Equal(t, float32(1), r.t1()) // Q lies at z = 0
}
