package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// search finds the first triangle of every ray in the committed geometry of one
// scene. Every backend has one, and nothing else in the package knows which. A
// search belongs to one set of tables, whose vertices it reads; its methods are
// called by the holder of an exclusive turn, those that enqueue a search by the holder
// of any.
type search interface {
	// update follows the vertices of the edited shapes, which have changed in the
	// tables. It may rebuild, and waits for the device. It returns the box around
	// all triangles.
	update(ctx context.Context, edited []int) (bounds, error)
	// copyTo makes a search of s over t, a copy of the tables, that answers like
	// this one. It enqueues work on the stream of s.
	copyTo(ctx context.Context, s *Scene, t *tables) (search, error)
	// follow does to a copy of original what update did to original since the
	// copy; false when a new copy is needed. The vertices of the
	// tables are up to date.
	follow(ctx context.Context, original search) (bool, error)
	// traverse enqueues the search of rows [begin, begin+count) on st and stores a
	// primitive id or -1 in the same rows of winners.
	traverse(at site, st *cuda.Stream, rays rayColumns, winners uint64, begin, count int64) error
	// reflect enqueues the search of chains of at most so many bounces for rows
	// [begin, begin+count) on st and stores bounces values per row at the same rows of
	// primIDs: the primitives, then -1.
	reflect(at site, st *cuda.Stream, rays rayColumns, primIDs uint64, bounces int32, begin, count int64) error
	// visible enqueues the search of rows [begin, begin+count) on st and stores their
	// results.
	visible(at site, st *cuda.Stream, rows visibleRows, begin, count int64) error
	// timed builds the structures once more, refits them and throws them away, with
	// marks before, between and behind the two, and waits.
	timed(ctx context.Context, marks [3]*cuda.Event) error
	// mirrors is where triangles lie in one piece, as tree.cuh says: a pool, and the slot
	// of each face in it; zeros where there is no such thing.
	mirrors() (pool, slots uint64)
	// origin says where the structures come from: built, copied, relocated or
	// rebuilt.
	origin() string
	// free returns the memory, for work that follows on the scene's stream. It
	// works on a search whose construction failed.
	free() error
}

// newSearch builds the search of a backend over t and waits until it is complete.
func (s *Scene) newSearch(ctx context.Context, backend Backend, t *tables) (search, bounds, error) {
	if backend == OptiX {
		return s.newOptixSearch(ctx, t)
	}
	return s.newTreeSearch(ctx, t)
}
