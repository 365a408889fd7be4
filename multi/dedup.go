package multi

import (
	"context"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// DedupReflections groups rows that took the same path, as scene.DedupReflections does,
// on the master: groups depend on all rows.
func (s *Scene) DedupReflections(ctx context.Context, in scene.Paths, opts ...scene.CallOption) (*scene.UniqueChains, error) {
	return alone(ctx, s, "DedupReflections", func(m *scene.Scene) (*scene.UniqueChains, error) {
		return m.DedupReflections(ctx, in, opts...)
	})
}

// MergeUnique merges the groups of several batches, as scene.MergeUnique does. The result
// is on the master.
func (s *Scene) MergeUnique(ctx context.Context, canonical cuda.Slice[int32], parts ...*scene.UniqueChains) (*scene.UniqueChains, error) {
	return alone(ctx, s, "MergeUnique", func(m *scene.Scene) (*scene.UniqueChains, error) {
		return m.MergeUnique(ctx, canonical, parts...)
	})
}

// PlanarSurfaces tells which faces are parts of one plane surface, as
// scene.PlanarSurfaces does.
func (s *Scene) PlanarSurfaces(ctx context.Context) ([]int32, error) {
	return alone(ctx, s, "PlanarSurfaces", func(m *scene.Scene) ([]int32, error) { return m.PlanarSurfaces(ctx) })
}
