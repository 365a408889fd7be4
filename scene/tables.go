package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// tables are the committed geometry on the device. Build makes new ones; Sync
// writes into them.
type tables struct {
	shapes                            []shape
	vertexCount, faceCount, edgeCount int

	vertices    cuda.Slice[float32] // [vertexCount,3]
	faces       cuda.Slice[int32]   // global vertex ids, [faceCount,3]
	normals     cuda.Slice[float32] // [faceCount,3]
	shapeIDs    cuda.Slice[int32]   // [faceCount]
	faceOffsets cuda.Slice[int32]   // first face of each shape
	search      search              // over these tables; nil until they are complete

	// Where search is no tree: that of Scene.tracer, and the one to make it of when the
	// vertices have changed.
	tree      once[*treeSearch]
	staleTree *treeSearch
}

// shape is the place of one mesh in the tables.
type shape struct {
	vertexOffset, vertexCount int
	faceOffset, faceCount     int
	edgeOffset                int
	topology                  *topology
}

func release[T cuda.Scalar](s *Scene, v *cuda.Slice[T]) error {
	if v.IsNil() {
		return nil
	}
	old := *v
	*v = cuda.Slice[T]{}
	return cuda.PoolFree(s.ctx.Pool(), s.stream, old)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// freeTables returns the memory of t, which may be nil or incomplete, for work
// that follows on the scene's stream.
func (s *Scene) freeTables(t *tables) error {
	if t == nil {
		return nil
	}
	var searching error
	if t.search != nil {
		searching = t.search.free()
	}
	return firstError(searching, t.freeTree(),
		release(s, &t.vertices), release(s, &t.faces), release(s, &t.normals),
		release(s, &t.shapeIDs), release(s, &t.faceOffsets))
}

// upload fills *dst with src on the scene's stream.
func upload[T cuda.Scalar](ctx context.Context, s *Scene, dst *cuda.Slice[T], src []T) (err error) {
	*dst, err = cuda.Upload(ctx, s.stream, src)
	return err
}

// allocate makes *dst an array of n values with undefined contents.
func allocate[T cuda.Scalar](s *Scene, dst *cuda.Slice[T], n int) (err error) {
	*dst, err = cuda.PoolAlloc[T](s.ctx.Pool(), s.stream, n)
	return err
}

// derive enqueues what follows from the vertices and belongs to no search.
func (s *Scene) derive(t *tables) error {
	return s.ctxDo(func(sc cuda.Scope) error {
		return s.eachLaunch(0, int64(t.faceCount), func(begin, count int64) error {
			return launchRows(sc, s.kernels.faceNormals, s.stream, count, &faceNormalsParams{
				Vertices: t.vertices.Addr(), Faces: t.faces.Addr(), Normals: t.normals.Addr(),
				RowBegin: begin, Count: count,
			})
		})
	})
}

// ctxDo runs f in a scope of the scene's context.
func (s *Scene) ctxDo(f func(cuda.Scope) error) error {
	sc, err := s.ctx.Enter()
	if err != nil {
		return err
	}
	return firstError(f(sc), sc.Exit())
}
