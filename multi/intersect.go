package multi

import (
	"context"

	"github.com/raymux/raymux/scene"
)

// Intersect finds the closest hit of every ray, as scene.Intersect does, on
// all devices of the set. Rays and results are on the master; the call
// returns when the work is enqueued on the caller's stream.
//
// Cost, per remote device with rows: one launch, one launch of finalize on
// the master, five event operations; with the Copy transport also one copy
// per ray column and one of winners; without copies, in a scene where rays
// visit many nodes, a fill of four bytes per row. No wait, and no driver
// allocation once the pools are warm.
func (s *Scene) Intersect(ctx context.Context, rays scene.Rays, flags scene.Flags, opts ...scene.CallOption) (*scene.Hits, error) {
	return ask(ctx, s, intersectOperation(flags), opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.Hits, *scene.Call, error) {
		return m.PrepareIntersect(ctx, rays, flags, opts...)
	})
}
