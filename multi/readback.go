package multi

import (
	"context"
	"slices"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// GlobalGeometry copies the tables of the committed scene from the master; see
// scene.Scene.GlobalGeometry. It waits for the copy.
func (s *Scene) GlobalGeometry(ctx context.Context) (*scene.Geometry, error) {
	return alone(ctx, s, "GlobalGeometry", func(m *scene.Scene) (*scene.Geometry, error) { return m.GlobalGeometry(ctx) })
}

// EdgeRecords lists the edges of the committed scene with their end points; see
// scene.Scene.EdgeRecords.
func (s *Scene) EdgeRecords(ctx context.Context) (*scene.EdgeRecords, error) {
	return alone(ctx, s, "EdgeRecords", func(m *scene.Scene) (*scene.EdgeRecords, error) { return m.EdgeRecords(ctx) })
}

// EdgeMask copies the edge mask, one value per edge.
func (s *Scene) EdgeMask() ([]bool, error) {
	return alone(context.Background(), s, "EdgeMask", (*scene.Scene).EdgeMask)
}

// IsReady reports whether the scene answers queries.
func (s *Scene) IsReady() bool {
	return !s.closed.Load() && s.diverged.Load() == nil && s.master().scene.IsReady()
}

// HasPendingUpdates reports whether staged vertices wait for Sync.
func (s *Scene) HasPendingUpdates() bool { return s.master().scene.HasPendingUpdates() }

// Version counts builds, commits and mask changes.
func (s *Scene) Version() int64 { return s.master().scene.Version() }

// GeometryVersion counts builds and commits of geometry.
func (s *Scene) GeometryVersion() int64 { return s.master().scene.GeometryVersion() }

// EdgeMaskVersion counts builds and mask changes.
func (s *Scene) EdgeMaskVersion() int64 { return s.master().scene.EdgeMaskVersion() }

// NumShapes is the number of meshes and instances, added ones included.
func (s *Scene) NumShapes() int { return s.master().scene.NumShapes() }

// NumMeshes is the number of meshes, added ones included, without instances.
func (s *Scene) NumMeshes() int { return s.master().scene.NumMeshes() }

// NumEdges is the number of edges of the committed scene.
func (s *Scene) NumEdges() int { return s.master().scene.NumEdges() }

// Bounds is the box around the committed scene, in metres.
func (s *Scene) Bounds() (lo, hi [3]float32) { return s.master().scene.Bounds() }

// Backend is the triangle tracer that Build chose for every device.
func (s *Scene) Backend() scene.Backend { return s.master().scene.Backend() }

// BackendReason says in words why Build chose it.
func (s *Scene) BackendReason() string { return s.master().scene.BackendReason() }

// Master is the scene on the first device, for schedulers and tests. Mutate
// through s, never through it.
func (s *Scene) Master() *scene.Scene { return s.master().scene }

// Context is the master's context, in which the buffers of a call live.
func (s *Scene) Context() *cuda.Context { return s.master().ctx }

// Contexts are those of the devices, the master's first. Their pools count what calls take.
func (s *Scene) Contexts() []*cuda.Context { return slices.Clone(s.ctxs) }

// Stream is the master's own stream, which orders calls that name none.
func (s *Scene) Stream() *cuda.Stream { return s.master().scene.Stream() }

// Devices are the ordinals, the master first.
func (s *Scene) Devices() []int { return append([]int(nil), s.devices...) }

// Links are the results of the peer self-tests, empty for one device.
func (s *Scene) Links() []Link { return append([]Link(nil), s.links...) }

// Transport is how remote rows travel: Direct, Copy or Host.
func (s *Scene) Transport() chunked.Transport { return s.transport }
