package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// source is the geometry that a replica copied last.
type source struct {
	tables *tables
	plan   *treePlan
}

// Replicate makes s answer like master, a built scene of the same driver: it
// copies tables and finished tree, or, when only vertices have changed since the
// last copy, the vertices, and refits its own copy of the same tree with the same
// kernels. Versions become the master's. Meshes added to s are dropped. For
// schedulers.
//
// The copies are enqueued on the scene's stream, after earlier queries of s; later
// changes of master wait for them. Replicate does not wait for the device.
func (s *Scene) Replicate(ctx context.Context, master *Scene) error {
	const op = "Replicate"
	if master == s {
		return badArg(op, "master", "is the scene itself")
	}
	if master.ctx.Driver() != s.ctx.Driver() {
		return badArg(op, "master", "belongs to another driver")
	}
	if err := s.turns.exclude(ctx); err != nil {
		return err
	}
	defer s.turns.done(true)
	if err := master.shareReady(ctx); err != nil {
		return err
	}
	defer master.turns.done(false)

	if err := s.follow(master); err != nil {
		return s.failed(op, err)
	}
	of := master.current()
	of.pending = false
	s.update(func(st *status) { *st = of })
	s.mask = append([]bool(nil), master.mask...)
	s.source = source{master.tables, master.tables.tree.plan}
	return nil
}

func (s *Scene) follow(master *Scene) error {
	for _, m := range s.meshes {
		if err := s.freeStaged(m); err != nil {
			return err
		}
	}
	s.meshes = nil
	if err := master.order.enter(s.stream); err != nil {
		return err
	}
	if err := s.order.beginChange(); err != nil {
		return err
	}
	var err error
	if s.tables != nil && s.source == (source{master.tables, master.tables.tree.plan}) {
		err = cuda.CopyAsync(s.stream, s.tables.vertices, master.tables.vertices)
		if err == nil {
			err = s.derive(s.tables)
		}
	} else {
		old := s.tables
		s.source = source{}
		s.tables, err = s.copyTables(master.tables)
		err = firstError(err, s.freeTables(old))
	}
	return firstError(err, master.order.leave(s.stream), s.order.endChange())
}

// copyTables enqueues a copy of t. After an error the copy is incomplete.
func (s *Scene) copyTables(t *tables) (*tables, error) {
	out := &tables{
		shapes: t.shapes, vertexCount: t.vertexCount, faceCount: t.faceCount, edgeCount: t.edgeCount,
		tree: deviceTree{plan: t.tree.plan},
	}
	return out, firstError(
		duplicate(s, &out.vertices, t.vertices), duplicate(s, &out.faces, t.faces),
		duplicate(s, &out.normals, t.normals), duplicate(s, &out.shapeIDs, t.shapeIDs),
		duplicate(s, &out.faceOffsets, t.faceOffsets), duplicate(s, &out.tree.nodes, t.tree.nodes),
		duplicate(s, &out.tree.order, t.tree.order), duplicate(s, &out.tree.triangles, t.tree.triangles))
}

func duplicate[T cuda.Scalar](s *Scene, dst *cuda.Slice[T], src cuda.Slice[T]) error {
	if err := allocate(s, dst, src.Len()); err != nil {
		return err
	}
	return cuda.CopyAsync(s.stream, *dst, src)
}
