package scene_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// radioCall is a call of one of the operations on fields, about arrays of a scene.
type radioCall struct {
	name string
	ask  func(ctx context.Context, s *scene.Scene, opts ...scene.CallOption) (scene.Reusable, error)
}

// radioCalls are one of each, that find something.
func radioCalls(d *dfrScene) []radioCall {
	d.Helper()
	grid := scene.Grid{Position: -.1, Min0: .5, Max0: 1.5, Min1: .6, Max1: 1.6, Res0: 2, Res1: 2}
	below := grid // where Keller rays go
	below.Position = -1
	source := vec{-1.2, .8, -.1}
	copy(d.host.Src, source[:])
	d = d.rig.dfrScene(d.host, d.media, d.lambda)
	tx, rx, one := toDevice(d.rig, source[:]), toDevice(d.rig, []float32{1, 1.1, -.1}), toDevice(d.rig, []uint8{1})
	rays := d.upload(batch{o: []float32{1, 1, 0, 1, 1, 0}, d: []float32{.1, -1, -.0526, 0, 0, -1}})
	b := newEPCBatch(1, epcRow(vec{1, 1, 0}, vec{2, 1, 0}, 6), epcRow(vec{1, 1, 0}, vec{2, 1, 0}, 7))
	rows, media := b.upload(d.rig), d.materials
	direct := scene.DfrDirectOptions{Wavelength: d.lambda, DirectSamples: 40, Materials: media, Active: one}
	keller := scene.DfrDirectOptions{Wavelength: d.lambda, KellerSamples: 2000, Materials: media}
	return []radioCall{
		{"direct", func(ctx context.Context, s *scene.Scene, opts ...scene.CallOption) (scene.Reusable, error) {
			return s.AccumDfrDirect(ctx, d.states, grid, direct, opts...)
		}},
		{"keller", func(ctx context.Context, s *scene.Scene, opts ...scene.CallOption) (scene.Reusable, error) {
			return s.AccumDfrDirect(ctx, d.states, below, keller, opts...)
		}},
		{"coherent", func(ctx context.Context, s *scene.Scene, opts ...scene.CallOption) (scene.Reusable, error) {
			return s.AccumDfrCoherentDirect(ctx, d.states, grid, scene.DfrCoherentOptions{Wavelength: d.lambda, Materials: media}, opts...)
		}},
		{"paths", func(ctx context.Context, s *scene.Scene, opts ...scene.CallOption) (scene.Reusable, error) {
			o := scene.DfrPathOptions{Wavelength: d.lambda, Materials: media, Active: one, Layout: scene.Compact}
			return s.TraceDfrPaths(ctx, tx, rx, d.states, o, opts...)
		}},
		{"reflections", func(ctx context.Context, s *scene.Scene, opts ...scene.CallOption) (scene.Reusable, error) {
			return s.AccumulateReflections(ctx, rays, grid, scene.ReflGridOptions{
				Wavelength: d.lambda, SolidAnglePerRay: 1, MaxBounces: 2, Materials: media, TxPosition: tx, IncludeLOS: true,
				CollectWedges: true, CollectWedgePrefixes: true, WedgeCapacity: 5,
			}, opts...)
		}},
		{"equivalent paths", func(ctx context.Context, s *scene.Scene, opts ...scene.CallOption) (scene.Reusable, error) {
			return s.TraceReflEPC(ctx, rows, scene.EPCOptions{}, opts...)
		}},
		{"fields", func(ctx context.Context, s *scene.Scene, opts ...scene.CallOption) (scene.Reusable, error) {
			o := scene.EPCFieldOptions{Materials: media, Wavelength: d.lambda, IncludePaths: true}
			return s.TraceReflEPCField(ctx, rows, o, opts...)
		}},
	}
}

// columnsOf are the floats and integers of a result, by the names of their fields.
func columnsOf(r *rig, result scene.Reusable) map[string]any {
	r.Helper()
	out := map[string]any{}
	v := reflect.ValueOf(result).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		switch c := v.Field(i).Interface().(type) {
		case cuda.Slice[float32]:
			out[f.Name] = bits(toHost(r, c))
		case cuda.Slice[int32]:
			out[f.Name] = toHost(r, c)
		case cuda.Slice[int64]:
			out[f.Name] = toHost(r, c)
		case cuda.Slice[uint8]:
			out[f.Name] = toHost(r, c)
		}
	}
	return out
}

// Calls enqueue their work and return: a warm one waits for nothing, reads nothing back and
// allocates nothing; what is staged is not seen before Sync.
func TestRadioCallsOnlyEnqueue(t *testing.T) {
	mesh := wedgeBoxMesh()
	r, calls := traced(t, dynamic(mesh))
	d := r.wedgeBox()
	waits := []string{
		"MemcpyDtoH", "MemcpyDtoHAsync", "StreamSynchronize", "EventSynchronize", "CtxSynchronize", "MemAlloc", "MemFree",
	}
	before := map[string]map[string]any{}
	for _, c := range radioCalls(d) {
		first, err := c.ask(background, r.Scene)
		require.NoError(t, err, c.name)
		calls.Reset()
		again, err := c.ask(background, r.Scene, scene.Into(first))
		require.NoError(t, err, c.name)
		require.Positive(t, calls.Count("LaunchKernel"), c.name)
		for _, name := range waits {
			require.Zero(t, calls.Count(name), "%s: %s", c.name, name)
		}
		before[c.name] = columnsOf(r, again)
		require.NoError(t, first.Close())
	}
	require.NoError(t, r.UpdateMeshVertices(0, moved(mesh, vec{.05, .3, 0}).Vertices))
	for _, synced := range []bool{false, true} {
		if synced {
			require.NoError(t, r.Sync(background))
		}
		for _, c := range radioCalls(d) {
			got, err := c.ask(background, r.Scene)
			require.NoError(t, err, c.name)
			require.Equal(t, !synced, reflect.DeepEqual(before[c.name], columnsOf(r, got)), "%s, synced: %v", c.name, synced)
			require.NoError(t, got.Close())
		}
	}
}

// A scene that is not built and a context that has ended are told before any driver call.
func TestRadioCallsThatCannotBegin(t *testing.T) {
	r, calls := traced(t, wedgeBoxMesh())
	d := r.wedgeBox()
	empty := openOn(t, r.Context())
	ended, cancel := context.WithCancel(background)
	cancel()
	for _, c := range radioCalls(d) {
		calls.Reset()
		_, err := c.ask(background, empty.Scene)
		require.ErrorIs(t, err, scene.ErrNotReady, c.name)
		_, err = c.ask(ended, r.Scene)
		require.ErrorIs(t, err, context.Canceled, c.name)
		require.Empty(t, calls.Counts(), c.name)
	}
}

// A call that is refused leaves the result alone that it was to fill.
func TestRadioCallsRefusedLeaveResults(t *testing.T) {
	d := wedgeBox(t)
	copy(d.host.Src, []float32{-1.2, .8, -.1})
	d = d.rig.dfrScene(d.host, d.media, d.lambda)
	grid := scene.Grid{Position: -.1, Min0: .5, Max0: 1.5, Min1: .6, Max1: 1.6, Res0: 2, Res1: 2}
	large := grid
	large.Res0, large.Res1 = 100, 100
	o := scene.DfrDirectOptions{Wavelength: d.lambda, DirectSamples: 40, KeepWords: true, AllowPartialCoverage: true}
	co := scene.DfrCoherentOptions{Wavelength: d.lambda, KeepWords: true}
	points := toDevice(d.rig, []float32{-1.2, .8, -.1, 1, 1.1, -.1})
	po := scene.DfrPathOptions{Wavelength: d.lambda, Active: toDevice(d.rig, all(1))}

	a, err := d.AccumDfrDirect(background, d.states, grid, o)
	require.NoError(t, err)
	c, err := d.AccumDfrCoherentDirect(background, d.states, grid, co)
	require.NoError(t, err)
	p, err := d.TraceDfrPaths(background, mustSub(t, points, 0, 3), points, d.states, po)
	require.NoError(t, err)
	want := [3]map[string]any{columnsOf(d.rig, a), columnsOf(d.rig, c), columnsOf(d.rig, p)}

	_, err = d.AccumDfrDirect(background, d.states, large, o, scene.Into(a), scene.Carry(1))
	requireArgument(t, err, "AccumDfrDirect", "opts")
	_, err = d.AccumDfrCoherentDirect(background, d.states, large, co, scene.Into(c), scene.Carry(1))
	requireArgument(t, err, "AccumDfrCoherentDirect", "opts")
	po.Layout = scene.Compact
	_, err = d.TraceDfrPaths(background, points, points, d.states, po, scene.Into(p), scene.Carry(1))
	requireArgument(t, err, "TraceDfrPaths", "opts")

	require.Equal(t, [2]scene.Grid{grid, grid}, [2]scene.Grid{a.Grid, c.Grid})
	require.Equal(t, [4]any{1, 2, 1, scene.SourceLane}, [4]any{p.Transmitters, p.Receivers, p.States, p.Layout})
	require.NoError(t, errors.Join(a.Read(), c.Read()))
	require.Equal(t, want, [3]map[string]any{columnsOf(d.rig, a), columnsOf(d.rig, c), columnsOf(d.rig, p)})
	require.NoError(t, errors.Join(a.Close(), c.Close(), p.Close()))
}
