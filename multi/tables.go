package multi

import (
	"context"

	"github.com/raymux/raymux/scene"
)

// table is what calls read whole, with a copy on every device.
type table interface {
	CopyTo(ctx context.Context, s *scene.Scene) error
	Close() error
}

// UploadStates brings wedge states to every device of the set, so that a call moves none of
// them; see scene.Scene.UploadStates.
//
// Cost: an upload to each device, for which it waits.
func (s *Scene) UploadStates(ctx context.Context, states scene.DfrStates) (*scene.StateTable, error) {
	return everywhere(ctx, s, func(m *scene.Scene) (*scene.StateTable, error) { return m.UploadStates(ctx, states) })
}

// UploadMaterials brings materials to every device of the set; see
// scene.Scene.UploadMaterials. Cost: as for UploadStates.
func (s *Scene) UploadMaterials(ctx context.Context, materials scene.Materials) (*scene.MaterialTable, error) {
	return everywhere(ctx, s, func(m *scene.Scene) (*scene.MaterialTable, error) { return m.UploadMaterials(ctx, materials) })
}

// UploadSurfaceGroups brings groups of primitives to every device of the set; see
// scene.Scene.UploadSurfaceGroups. Cost: as for UploadStates.
func (s *Scene) UploadSurfaceGroups(ctx context.Context, groups scene.SurfaceGroups) (*scene.SurfaceGroupTable, error) {
	return everywhere(ctx, s, func(m *scene.Scene) (*scene.SurfaceGroupTable, error) { return m.UploadSurfaceGroups(ctx, groups) })
}

// everywhere uploads a table to the master, which validates it, and copies it to the others.
func everywhere[T table](ctx context.Context, s *Scene, upload func(master *scene.Scene) (T, error)) (none T, err error) {
	done, err := s.beginReady(ctx)
	if err != nil {
		return none, err
	}
	defer done()
	t, err := upload(s.master().scene)
	if err != nil {
		return none, s.master().blame("uploading a table", err)
	}
	for _, r := range s.replicas[1:] {
		if err := t.CopyTo(ctx, r.scene); err != nil {
			return none, attach(r.blame("uploading a table", err), t.Close())
		}
	}
	return t, nil
}

// tableBytes is what a remote has of tables, as far as they are given.
func tableBytes(states *scene.StateTable, materials *scene.MaterialTable) (n int64) {
	if states != nil {
		n += states.Bytes()
	}
	if materials != nil {
		n += materials.Bytes()
	}
	return n
}

// stateCount is how many states a call has, of which nil is refused later.
func stateCount(states *scene.StateTable) int64 {
	if states == nil {
		return 0
	}
	return int64(states.Count())
}

// DfrStates makes wedge states of the edges of the committed scene, as scene.DfrStates does,
// on the host.
func (s *Scene) DfrStates(ctx context.Context, opt scene.DfrStateOptions) (*scene.DfrStates, *scene.DfrStateReport, error) {
	done, err := s.beginReady(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	states, report, err := s.master().scene.DfrStates(ctx, opt)
	return states, report, s.master().blame("DfrStates", err)
}
