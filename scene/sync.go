package scene

import (
	"context"
	"slices"

	"github.com/raymux/raymux/cuda"
)

// UpdateMeshVertices stages new vertices, 3V finite values in metres, for a
// dynamic mesh. Queries see them after Sync; of several calls before it the last
// one counts. The scene is unchanged after an error. No driver call.
func (s *Scene) UpdateMeshVertices(id int, vertices []float32) error {
	const op = "UpdateMeshVertices"
	if err := s.excludeReady(context.Background()); err != nil {
		return err
	}
	defer s.turns.done(true)
	m, err := s.updatable(op, id, len(vertices))
	if err != nil {
		return err
	}
	if err := checkVertices(op, "vertices", vertices); err != nil {
		return err
	}
	if err := s.freeStaged(m); err != nil {
		return err
	}
	m.staged = slices.Clone(vertices)
	s.update(func(st *status) { st.pending = true })
	return nil
}

// UpdateMeshVerticesDevice is UpdateMeshVertices for vertices on the scene's
// device, in the order of the scene's stream. They are copied and may change
// after the call. It waits for one kernel that validates them.
func (s *Scene) UpdateMeshVerticesDevice(ctx context.Context, id int, vertices cuda.Slice[float32]) error {
	const op = "UpdateMeshVerticesDevice"
	if err := s.excludeReady(ctx); err != nil {
		return err
	}
	defer s.turns.done(true)
	m, err := s.updatable(op, id, vertices.Len())
	if err != nil {
		return err
	}
	if err := checkMemory(s, op, "vertices", vertices); err != nil {
		return err
	}
	if err := s.validateOnDevice(ctx, op, vertices, cuda.Slice[int32]{}); err != nil {
		return err
	}
	var copied cuda.Slice[float32]
	if err := allocate(s, &copied, vertices.Len()); err != nil {
		return err
	}
	if err := cuda.CopyAsync(s.stream, copied, vertices); err != nil {
		return firstError(err, release(s, &copied))
	}
	err = s.freeStaged(m)
	m.stagedDevice = copied
	s.update(func(st *status) { st.pending = true })
	return err
}

// updatable is the dynamic mesh id, if values is the size of its vertices.
func (s *Scene) updatable(op string, id, values int) (*mesh, error) {
	if id < 0 || id >= len(s.meshes) {
		return nil, badArg(op, "id", "is %d, want the id of one of %d shapes", id, len(s.meshes))
	}
	m := s.meshes[id]
	if m.instance != nil {
		return nil, badArg(op, "id", "shape %d is an instance, which SetInstanceTransform moves; want a mesh", id)
	}
	if !m.dynamic {
		return nil, badArg(op, "id", "mesh %d is static; add it with Dynamic set", id)
	}
	if values != 3*m.vertexCount {
		return nil, badArg(op, "vertices", "has %d values, want %d for the %d vertices of mesh %d",
			values, 3*m.vertexCount, m.vertexCount, id)
	}
	return m, nil
}

// freeStaged drops what is staged for m.
func (s *Scene) freeStaged(m *mesh) error {
	m.staged = nil
	if m.instance != nil {
		m.instance.staged = nil
	}
	return release(s, &m.stagedDevice)
}

// Sync commits all staged vertices and transforms at once. It changes no ids, no
// edge numbers and not the edge mask. When nothing is staged it does nothing.
//
// A transform that moves a vertex out of the range of float32 (*ArgumentError), the
// end of ctx and a lack of memory before anything was changed leave the scene as it
// was, with all that is staged; any other failure makes it failed. Cost: an upload
// of the staged vertices, one kernel for the vertices of each moved instance, and a
// refit of the tree; Sync waits for the device. When refitting has
// made the tree's cost a third larger than it was at its build, the tree is built
// anew as in Build.
func (s *Scene) Sync(ctx context.Context) error {
	if err := s.excludeReady(ctx); err != nil {
		return err
	}
	defer s.turns.done(true)
	var edited []int
	for i, m := range s.meshes {
		if m.pending() {
			edited = append(edited, i)
		}
	}
	if len(edited) == 0 {
		return nil
	}
	fresh, err := s.stageAll(ctx, edited)
	if err != nil {
		return s.fail("Sync", err)
	}
	// From here on the committed tables change, so the call no longer stops.
	box, err := s.commit(context.WithoutCancel(ctx), edited, fresh)
	if err != nil {
		return s.failed("Sync", err)
	}
	for _, i := range edited {
		m := s.meshes[i]
		if m.instance != nil {
			m.instance.transform = m.instance.current()
		} else {
			m.vertices = m.staged // nil when only the device has them
		}
		if err := s.freeStaged(m); err != nil {
			return s.failed("Sync", err)
		}
	}
	s.update(func(st *status) {
		st.pending = false
		st.version++
		st.geometry++
		st.lo, st.hi = box.lo, box.hi
	})
	return nil
}

// stageAll brings staged host vertices to the device, and moves instances. What
// it returns is beside the tables, so that everything may still be refused.
func (s *Scene) stageAll(ctx context.Context, edited []int) ([]cuda.Slice[float32], error) {
	fresh := make([]cuda.Slice[float32], len(edited))
	var moves []move
	for k, i := range edited {
		m := s.meshes[i]
		var err error
		switch {
		case m.instance != nil:
			err = allocate(s, &fresh[k], 3*m.vertexCount)
			moves = append(moves, move{i, fresh[k]})
		case m.staged != nil:
			err = upload(ctx, s, &fresh[k], m.staged)
		}
		if err != nil {
			return nil, firstError(err, releaseAll(s, fresh))
		}
	}
	if err := s.moveInstances(ctx, "Sync", s.tables, moves); err != nil {
		return nil, firstError(err, releaseAll(s, fresh))
	}
	return fresh, nil
}

func releaseAll(s *Scene, all []cuda.Slice[float32]) error {
	var first error
	for i := range all {
		first = firstError(first, release(s, &all[i]))
	}
	return first
}

// commit writes the vertices into the tables and updates the search.
func (s *Scene) commit(ctx context.Context, edited []int, fresh []cuda.Slice[float32]) (box bounds, err error) {
	defer func() { err = firstError(err, releaseAll(s, fresh)) }()
	if err := s.order.beginChange(); err != nil {
		return box, err
	}
	t := s.tables
	t.moved()
	for k, i := range edited {
		src := fresh[k]
		if src.IsNil() {
			src = s.meshes[i].stagedDevice
		}
		dst, err := t.vertexRange(i)
		if err != nil {
			return box, err
		}
		if err := cuda.CopyAsync(s.stream, dst, src); err != nil {
			return box, err
		}
	}
	if err := s.derive(t); err != nil {
		return box, err
	}
	if box, err = t.search.update(ctx, edited); err != nil {
		return box, err
	}
	return box, s.order.endChange()
}
