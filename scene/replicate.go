package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// source is the geometry that a replica copied last.
type source struct {
	master *Scene
	tables *tables
}

// Replicate makes s answer like master, a built scene of the same driver: it
// copies tables and finished search, or, when only vertices have changed since the
// last copy, the vertices, and updates its own copy of the search in the same way.
// OptiX structures that cannot be moved are built anew. Versions become the master's.
// Meshes added to s are dropped. For schedulers.
//
// The copies are enqueued on the scene's stream, after earlier queries of s; later
// changes of master wait for them. Replicate does not wait for the device, except to
// learn the size of an OptiX structure that it builds anew.
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
	if s.source.master != nil && s.source.master != master {
		if err := s.stream.Synchronize(ctx); err != nil {
			return err
		}
		if err := s.unfollow(); err != nil {
			return err
		}
	}
	if err := master.shareReady(ctx); err != nil {
		return err
	}
	defer master.turns.done(false)

	if err := s.follow(ctx, master); err != nil {
		return s.failed(op, err)
	}
	of := master.current()
	of.pending, of.origin = false, s.tables.search.origin()
	s.update(func(st *status) { *st = of })
	s.mask = append([]bool(nil), master.mask...)
	s.source = source{master, master.tables}
	return nil
}

// unfollow makes the last master forget the stream of s, on which all work has
// ended. A closed master has forgotten it.
func (s *Scene) unfollow() error {
	m := s.source.master
	s.source = source{}
	if m == nil || m.turns.share(context.Background()) != nil {
		return nil
	}
	defer m.turns.done(false)
	return m.order.forget(s.stream)
}

func (s *Scene) follow(ctx context.Context, master *Scene) error {
	for _, m := range s.meshes {
		if err := s.freeStaged(m); err != nil {
			return err
		}
	}
	s.meshes = nil
	// Kept when the copy fails: the master's stream knows this one from here on.
	last := s.source
	s.source = source{master: master}
	return s.ctxDo(func(sc cuda.Scope) error { return s.followIn(ctx, sc, master, last) })
}

// followIn is the part of follow that enqueues, behind the master's last change and before
// its next. last is the master that the tables are copies of, and its tables then.
func (s *Scene) followIn(ctx context.Context, sc cuda.Scope, master *Scene, last source) error {
	if err := master.order.enter(sc, s.stream); err != nil {
		return err
	}
	if err := s.order.beginChange(); err != nil {
		return err
	}
	followed, err := false, error(nil)
	if s.tables != nil && last == (source{master, master.tables}) {
		followed, err = s.followVertices(ctx, master.tables)
	}
	if err == nil && !followed {
		old := s.tables
		s.tables, err = s.copyTables(ctx, master.tables)
		err = firstError(err, s.freeTables(old))
	}
	return firstError(err, master.order.leave(sc, s.stream), s.order.endChange())
}

// followVertices copies the vertices alone; false when the search of t cannot be
// followed.
func (s *Scene) followVertices(ctx context.Context, t *tables) (bool, error) {
	s.tables.moved()
	if err := cuda.CopyAsync(s.stream, s.tables.vertices, t.vertices); err != nil {
		return false, err
	}
	if err := s.derive(s.tables); err != nil {
		return false, err
	}
	return s.tables.search.follow(ctx, t.search)
}

// copyTables enqueues a copy of t. After an error the copy is incomplete.
func (s *Scene) copyTables(ctx context.Context, t *tables) (*tables, error) {
	out := &tables{
		shapes: t.shapes, vertexCount: t.vertexCount, faceCount: t.faceCount, edgeCount: t.edgeCount,
	}
	err := firstError(
		duplicate(s, &out.vertices, t.vertices), duplicate(s, &out.faces, t.faces),
		duplicate(s, &out.normals, t.normals), duplicate(s, &out.shapeIDs, t.shapeIDs),
		duplicate(s, &out.faceOffsets, t.faceOffsets))
	if err == nil {
		out.search, err = t.search.copyTo(ctx, s, out)
	}
	return out, err
}

func duplicate[T cuda.Scalar](s *Scene, dst *cuda.Slice[T], src cuda.Slice[T]) error {
	if err := allocate(s, dst, src.Len()); err != nil {
		return err
	}
	return cuda.CopyAsync(s.stream, *dst, src)
}
