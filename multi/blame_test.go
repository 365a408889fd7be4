package multi

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
)

// Whatever driver call fails below a call that the master answers alone, an upload, a read-back or a
// change of the scene, the error says on which device; one of an argument or of a context says none.
func TestMultiResilienceErrorsNameTheDevice(t *testing.T) {
	e, err := emu.New(3)
	require.NoError(t, err)
	trace := wrap.NewTrace(e)
	fault := wrap.NewFault(trace)
	drv, err := cuda.OpenAPI(fault)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drv.Close()) })
	s := quick(t, drv, []int{2, 0}, Options{})
	m := room(rngOf(180))
	m.Dynamic = true
	build(t, s, m)
	faces := len(m.Faces) / 3
	states := wedgeStates(rngOf(181), 2, faces)
	tables := newTables(t, s, states, faces)
	t.Cleanup(func() { tables.close(t) })
	rays, free := randomBatch(rngOf(182), 9).rays(t, s.Stream())
	t.Cleanup(free)
	vertices := upload(t, s.Stream(), m.Vertices)
	ids, keys := upload(t, s.Stream(), []int32{0, 1, -1}), upload(t, s.Stream(), []int32{0, 0, 0})
	t.Cleanup(func() {
		require.NoError(t, errors.Join(cuda.Free(vertices), cuda.Free(ids), cuda.Free(keys)))
	})

	var made []func() error // frees what a call has made
	closed := func(r interface{ Close() error }, err error) error {
		if err == nil {
			made = append(made, r.Close)
		}
		return err
	}
	direct := scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 8, Materials: tables.materials}
	for name, act := range map[string]func(ctx context.Context) error{
		"Intersect": func(ctx context.Context) error { return closed(s.Intersect(ctx, rays, scene.All)) },
		"AccumDfrDirect": func(ctx context.Context) error {
			return closed(s.AccumDfrDirect(ctx, tables.states, cellsOf(2), direct))
		},
		"AccumDfrDirect with a plan": func(ctx context.Context) error {
			return closed(s.AccumDfrDirect(ctx, tables.states, cellsOf(2), direct, Info(&CallInfo{})))
		},
		"DedupReflections": func(ctx context.Context) error {
			return closed(s.DedupReflections(ctx, scene.Paths{Bounces: 1, PrimIDs: ids, SourceKey: keys}))
		},
		"UploadStates":        func(ctx context.Context) error { return closed(s.UploadStates(ctx, states)) },
		"UploadMaterials":     func(ctx context.Context) error { return closed(s.UploadMaterials(ctx, glass(faces))) },
		"UploadSurfaceGroups": func(ctx context.Context) error { return closed(s.UploadSurfaceGroups(ctx, wallGroups(faces))) },
		"GlobalGeometry":      func(ctx context.Context) error { _, err := s.GlobalGeometry(ctx); return err },
		"EdgeRecords":         func(ctx context.Context) error { _, err := s.EdgeRecords(ctx); return err },
		"PlanarSurfaces":      func(ctx context.Context) error { _, err := s.PlanarSurfaces(ctx); return err },
		"DfrStates":           func(ctx context.Context) error { _, _, err := s.DfrStates(ctx, scene.DfrStateOptions{}); return err },
		"UpdateMeshVerticesDevice": func(ctx context.Context) error {
			return s.UpdateMeshVerticesDevice(ctx, 0, vertices)
		},
	} {
		try := func() error {
			err := act(bg)
			fault.Reset()
			for _, free := range made {
				require.NoError(t, free(), name)
			}
			made = made[:0]
			return err
		}
		trace.Reset()
		require.NoError(t, try(), name)
		calls, failed := trace.Counts(), 0
		for method := range calls {
			require.NoError(t, fault.FailCall(method, 1, cuapi.ErrorInvalidValue))
			err := try()
			if err == nil { // of what only gives memory back
				continue
			}
			failed++
			var at *DeviceError
			require.ErrorAs(t, err, &at, "%s, %s", name, method)
			require.Equal(t, cuapi.ErrorInvalidValue, at.Code, "%s, %s", name, method)
			require.Equal(t, []int{2, 0}[at.Position], at.Device, "%s, %s", name, method)
		}
		require.Positive(t, failed, "%s: %v", name, calls)
	}

	var at *DeviceError
	ended, cancel := context.WithCancel(bg)
	cancel()
	_, err = s.GlobalGeometry(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, errors.As(err, &at))
	_, err = s.UploadStates(bg, scene.DfrStates{EdgeIndex: []int32{0}})
	var wrong *scene.ArgumentError
	require.ErrorAs(t, err, &wrong)
	require.False(t, errors.As(err, &at))
}
