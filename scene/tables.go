package scene

import (
	"context"
	"math"

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
	tree        deviceTree
}

// shape is the place of one mesh in the tables.
type shape struct {
	vertexOffset, vertexCount int
	faceOffset, faceCount     int
	edgeOffset                int
	topology                  *topology
}

// deviceTree is a triangle tree on the device.
type deviceTree struct {
	plan      *treePlan
	nodes     cuda.Slice[int32]
	order     cuda.Slice[int32]
	triangles cuda.Slice[float32]
}

// treePlan is what the host keeps of a tree. Trees with the same plan have the
// same links and differ in their boxes only.
type treePlan struct {
	levels []int
	cost   float64 // right after the build
}

const (
	triangleWords = 12
	// costParts is the number of partial sums of the tree's cost. It is fixed, so
	// that the sum is.
	costParts = 4096
)

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
	return firstError(
		release(s, &t.vertices), release(s, &t.faces), release(s, &t.normals),
		release(s, &t.shapeIDs), release(s, &t.faceOffsets), s.freeTree(&t.tree))
}

func (s *Scene) freeTree(t *deviceTree) error {
	return firstError(release(s, &t.nodes), release(s, &t.order), release(s, &t.triangles))
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

// uploadTree moves a host tree to the device; its boxes are still undefined.
func (s *Scene) uploadTree(ctx context.Context, h *hostTree) (t deviceTree, err error) {
	t.plan = &treePlan{levels: h.levels}
	err = firstError(
		upload(ctx, s, &t.nodes, h.nodes),
		upload(ctx, s, &t.order, h.order),
		allocate(s, &t.triangles, triangleWords*len(h.order)))
	if err != nil {
		return deviceTree{}, firstError(err, s.freeTree(&t))
	}
	return t, nil
}

// derive enqueues everything that follows from the vertices: normals, leaf
// triangles and boxes.
func (s *Scene) derive(t *tables) error {
	return s.ctxDo(func(sc cuda.Scope) error {
		k, st := s.kernels, s.stream
		err := s.eachLaunch(0, int64(t.faceCount), func(begin, count int64) error {
			return firstError(
				launchRows(sc, k.faceNormals, st, count, &faceNormalsParams{
					Vertices: t.vertices.Addr(), Faces: t.faces.Addr(), Normals: t.normals.Addr(),
					RowBegin: begin, Count: count,
				}),
				launchRows(sc, k.gatherTriangles, st, count, &gatherTrianglesParams{
					Vertices: t.vertices.Addr(), Faces: t.faces.Addr(), Order: t.tree.order.Addr(),
					Triangles: t.tree.triangles.Addr(), RowBegin: begin, Count: count,
				}))
		})
		if err != nil {
			return err
		}
		levels := t.tree.plan.levels
		for l := len(levels) - 2; l >= 0; l-- {
			err := s.eachLaunch(int64(levels[l]), int64(levels[l+1]-levels[l]), func(begin, count int64) error {
				return launchRows(sc, k.refitLevel, st, count, &refitLevelParams{
					Nodes: t.tree.nodes.Addr(), Triangles: t.tree.triangles.Addr(), RowBegin: begin, Count: count,
				})
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// measure waits for derive and returns the bounding box and the tree's cost: the
// expected number of box and triangle tests of a ray that meets the box.
func (s *Scene) measure(ctx context.Context, t *tables) (box bounds, cost float64, err error) {
	levels := t.tree.plan.levels
	nodes := int64(levels[len(levels)-1])
	n := min(nodes, costParts)
	var parts cuda.Slice[float64]
	if err := allocate(s, &parts, int(n)); err != nil {
		return box, 0, err
	}
	defer func() { err = firstError(err, release(s, &parts)) }()
	err = s.ctxDo(func(sc cuda.Scope) error {
		return launchRows(sc, s.kernels.treeCost, s.stream, n, &treeCostParams{
			Nodes: t.tree.nodes.Addr(), Parts: parts.Addr(), NodeCount: nodes, Count: n,
		})
	})
	if err != nil {
		return box, 0, err
	}
	sums, err := cuda.Download(ctx, s.stream, parts)
	if err != nil {
		return box, 0, err
	}
	first, err := t.tree.nodes.Sub(0, nodeWords)
	if err != nil {
		return box, 0, err
	}
	root, err := cuda.Download(ctx, s.stream, first)
	if err != nil {
		return box, 0, err
	}
	box = rootBounds(root)
	sum := 0.0
	for _, x := range sums {
		sum += x
	}
	if area := box.halfArea(); area > 0 {
		cost = 1 + sum/area
	}
	return box, cost, nil
}

// rootBounds joins the two boxes of a node.
func rootBounds(words []int32) bounds {
	f := func(i int) float32 { return math.Float32frombits(uint32(words[i])) }
	box := emptyBounds()
	for c := range 2 {
		lo := [3]float32{f(4 * c), f(4*c + 2), f(8 + 2*c)}
		hi := [3]float32{f(4*c + 1), f(4*c + 3), f(9 + 2*c)}
		box.add(&lo, &hi)
	}
	return box
}

// ctxDo runs f in a scope of the scene's context.
func (s *Scene) ctxDo(f func(cuda.Scope) error) error {
	sc, err := s.ctx.Enter()
	if err != nil {
		return err
	}
	return firstError(f(sc), sc.Exit())
}
