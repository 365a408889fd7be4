package multi

import (
	"context"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// DedupReflections groups rows that took the same path, as scene.DedupReflections does,
// on the master: groups depend on all rows.
func (s *Scene) DedupReflections(ctx context.Context, in scene.Paths, opts ...scene.CallOption) (*scene.UniqueChains, error) {
	done, err := s.beginReady(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.master().scene.DedupReflections(ctx, in, opts...)
}

// MergeUnique merges the groups of several batches, as scene.MergeUnique does. The result
// is on the master.
func (s *Scene) MergeUnique(ctx context.Context, canonical cuda.Slice[int32], parts ...*scene.UniqueChains) (*scene.UniqueChains, error) {
	done, err := s.beginReady(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.master().scene.MergeUnique(ctx, canonical, parts...)
}

// PlanarSurfaces tells which faces are parts of one plane surface, as
// scene.PlanarSurfaces does.
func (s *Scene) PlanarSurfaces(ctx context.Context) ([]int32, error) {
	done, err := s.beginReady(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.master().scene.PlanarSurfaces(ctx)
}
