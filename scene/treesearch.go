package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
)

// treeSearch is the search of the CUDA backend: a triangle tree that our kernels
// walk.
type treeSearch struct {
	s *Scene
	t *tables

	from      string // origin
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
	// rebuildAt is how much the cost may grow by refitting before update builds a
	// new tree.
	rebuildAt = 2
)

func (s *Scene) newTreeSearch(ctx context.Context, t *tables, vertices []float32, faces []int32) (_ search, box bounds, err error) {
	x := &treeSearch{s: s, t: t, from: "built"}
	if box, err = x.build(ctx, vertices, faces); err != nil {
		return nil, box, firstError(err, x.free())
	}
	return x, box, nil
}

// build replaces the tree by a new one and waits for it.
func (x *treeSearch) build(ctx context.Context, vertices []float32, faces []int32) (box bounds, err error) {
	host, err := buildTree(ctx, vertices, faces)
	if err != nil {
		return box, err
	}
	fresh := &treeSearch{s: x.s, t: x.t, from: x.from}
	if err := fresh.upload(ctx, host); err != nil {
		return box, firstError(err, fresh.free())
	}
	old := *x
	*x = *fresh
	if err := firstError(old.free(), x.refit()); err != nil {
		return box, err
	}
	box, x.plan.cost, err = x.measure(ctx)
	return box, err
}

// upload moves a host tree to the device; its boxes are still undefined.
func (x *treeSearch) upload(ctx context.Context, h *hostTree) error {
	x.plan = &treePlan{levels: h.levels}
	return firstError(
		upload(ctx, x.s, &x.nodes, h.nodes),
		upload(ctx, x.s, &x.order, h.order),
		allocate(x.s, &x.triangles, triangleWords*len(h.order)))
}

func (x *treeSearch) update(ctx context.Context, _ []int) (box bounds, err error) {
	if err := x.refit(); err != nil {
		return box, err
	}
	box, cost, err := x.measure(ctx)
	if err != nil || cost <= rebuildAt*x.plan.cost {
		return box, err
	}
	x.s.log.Debug("rebuilding tree", "cost", cost, "at build", x.plan.cost)
	vertices, err := cuda.Download(ctx, x.s.stream, x.t.vertices)
	if err != nil {
		return box, err
	}
	faces, err := cuda.Download(ctx, x.s.stream, x.t.faces)
	if err != nil {
		return box, err
	}
	return x.build(ctx, vertices, faces)
}

func (x *treeSearch) copyTo(_ context.Context, s *Scene, t *tables) (search, error) {
	out := &treeSearch{s: s, t: t, from: "copied", plan: x.plan}
	return out, firstError(
		duplicate(s, &out.nodes, x.nodes),
		duplicate(s, &out.order, x.order),
		duplicate(s, &out.triangles, x.triangles))
}

// follow refits the copy with the same kernels, unless the original was rebuilt.
func (x *treeSearch) follow(_ context.Context, original search) (bool, error) {
	if o, ok := original.(*treeSearch); !ok || o.plan != x.plan {
		return false, nil
	}
	return true, x.refit()
}

func (x *treeSearch) origin() string { return x.from }

func (x *treeSearch) free() error {
	return firstError(release(x.s, &x.nodes), release(x.s, &x.order), release(x.s, &x.triangles))
}

func (x *treeSearch) traverse(sc cuda.Scope, st *cuda.Stream, rays Rays, winners cuda.Slice[int32], begin, count int64) error {
	p := traverseParams{
		Rays: rays.columns(), Winners: winners.Addr(),
		Nodes: x.nodes.Addr(), Triangles: x.triangles.Addr(),
	}
	return x.s.eachLaunch(begin, count, func(begin, count int64) error {
		p.RowBegin, p.Count = begin, count
		return launchRows(sc, x.s.kernels.traverse, st, count, &p)
	})
}

// refit enqueues what follows from the vertices: leaf triangles and boxes.
func (x *treeSearch) refit() error {
	return x.s.ctxDo(func(sc cuda.Scope) error {
		k, st := x.s.kernels, x.s.stream
		err := x.s.eachLaunch(0, int64(x.t.faceCount), func(begin, count int64) error {
			return launchRows(sc, k.gatherTriangles, st, count, &gatherTrianglesParams{
				Vertices: x.t.vertices.Addr(), Faces: x.t.faces.Addr(), Order: x.order.Addr(),
				Triangles: x.triangles.Addr(), RowBegin: begin, Count: count,
			})
		})
		if err != nil {
			return err
		}
		levels := x.plan.levels
		for l := len(levels) - 2; l >= 0; l-- {
			err := x.s.eachLaunch(int64(levels[l]), int64(levels[l+1]-levels[l]), func(begin, count int64) error {
				return launchRows(sc, k.refitLevel, st, count, &refitLevelParams{
					Nodes: x.nodes.Addr(), Triangles: x.triangles.Addr(), RowBegin: begin, Count: count,
				})
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// measure waits for refit and returns the bounding box and the tree's cost: the
// expected number of box and triangle tests of a ray that meets the box.
func (x *treeSearch) measure(ctx context.Context) (box bounds, cost float64, err error) {
	nodes := int64(x.plan.levels[len(x.plan.levels)-1])
	n := min(nodes, costParts)
	var parts cuda.Slice[float64]
	if err := allocate(x.s, &parts, int(n)); err != nil {
		return box, 0, err
	}
	defer func() { err = firstError(err, release(x.s, &parts)) }()
	err = x.s.ctxDo(func(sc cuda.Scope) error {
		return launchRows(sc, x.s.kernels.treeCost, x.s.stream, n, &treeCostParams{
			Nodes: x.nodes.Addr(), Parts: parts.Addr(), NodeCount: nodes, Count: n,
		})
	})
	if err != nil {
		return box, 0, err
	}
	sums, err := cuda.Download(ctx, x.s.stream, parts)
	if err != nil {
		return box, 0, err
	}
	first, err := x.nodes.Sub(0, nodeWords)
	if err != nil {
		return box, 0, err
	}
	root, err := cuda.Download(ctx, x.s.stream, first)
	if err != nil {
		return box, 0, err
	}
	box = rootBounds(root)
	sum := 0.0
	for _, v := range sums {
		sum += v
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
