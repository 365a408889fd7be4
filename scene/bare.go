package scene

import (
	"fmt"

	"github.com/raymux/raymux/cuda"
)

// TraverseBare enqueues on st the closest hits of rows [begin, begin+count) as OptiX
// alone answers them: four values per row, namely t, the bits of the face of the
// shape, and the weights of its second and third vertex, all by OptiX' own
// arithmetic. A miss has t = +inf and face -1. For benchmarks, which need something
// to refer to; results differ between devices and drivers. The scene's backend must
// be OptiX, and Active is ignored. The first call compiles the programs.
func (s *Scene) TraverseBare(st *cuda.Stream, rays Rays, hits cuda.Slice[float32], begin, count int64) error {
	rows := min(int64(hits.Len()/4), int64(rays.O.Len()/3))
	in := rays.rowColumns()
	return s.enqueueRows("TraverseBare", st, rows, begin, count, func(sc cuda.Scope) error {
		x, ok := s.tables.search.(*optixSearch)
		if !ok {
			return fmt.Errorf("%w: TraverseBare needs the OptiX backend, the scene uses %v", ErrBackendUnavailable, s.Backend())
		}
		return x.traverseBare(sc, st, rayColumnsOf(in[:]), hits, begin, count)
	})
}
