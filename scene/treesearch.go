package scene

import (
	"context"
	"errors"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

// treeSearch is the search of the CUDA backend: a triangle tree that our kernels
// walk.
type treeSearch struct {
	s *Scene
	t *tables

	from   string // origin
	plan   *treePlan
	shapes cuda.Slice[int32]
	slots  cuda.Slice[int32]
	pool   cuda.Slice[uint32]  // nodes and triangles
	boxes  cuda.Slice[float32] // of each node, exact

	shared    uint32 // bytes of search stacks per block
	residency *residency
}

// treePlan is what the host keeps of a tree. Trees with the same plan have the
// same shape and differ in their boxes only.
type treePlan struct {
	by     string // who built it
	levels []int
	cost   float64 // right after the build
}

const (
	boxWords = 6
	// stackBytes is the size of an entry of a search stack.
	stackBytes = 8
	// A warp of the search changes to triangles and new rays when fewer than
	// busyLanes lanes have a node, and fetches rays for idleLanes lanes at once.
	// Rays that visit many nodes want full warps, those that visit few want few
	// changes; manyVisits of the tree's cost is between the two.
	busyLanesMany, idleLanesMany = 22, 6
	busyLanesFew, idleLanesFew   = 12, 8
	manyVisits                   = 16
	// counters of a launch: of rows, and of what a sweep has taken and warps that have
	// ended.
	counters = 3
	// costParts is the number of partial sums of the tree's cost. It is fixed, so
	// that the sum is.
	costParts = 4096
	// rebuildAt is how much the cost may grow by refitting before update builds a
	// new tree. A build on the device takes about as long as a query of two
	// million rays, so that a third fewer visits soon pay for it.
	rebuildAt = 1.3
)

func (s *Scene) newTreeSearch(ctx context.Context, t *tables) (_ search, box bounds, err error) {
	x := &treeSearch{s: s, t: t, from: "built"}
	if box, err = x.build(ctx); err != nil {
		return nil, box, err
	}
	return x, box, nil
}

// build replaces the tree by a new one and waits for it. After an error the old
// tree is what it was.
func (x *treeSearch) build(ctx context.Context) (box bounds, err error) {
	fresh := &treeSearch{s: x.s, t: x.t, from: x.from}
	if box, err = fresh.construct(ctx); err != nil {
		return box, firstError(err, fresh.free())
	}
	old := *x
	*x = *fresh
	x.s.log.Debug("built search tree", "by", x.plan.by, "levels", len(x.plan.levels)-1, "cost", x.plan.cost)
	return box, old.free()
}

// construct makes a tree of an empty search and waits for it.
func (x *treeSearch) construct(ctx context.Context) (box bounds, err error) {
	if err := x.shape(ctx); err != nil {
		return box, err
	}
	if err := firstError(x.s.device.mark("shapes"), x.fit(), x.refit(), x.s.device.mark("refit")); err != nil {
		return box, err
	}
	box, x.plan.cost, err = x.measure(ctx)
	return box, err
}

// shape makes all of a tree but the boxes.
func (x *treeSearch) shape(ctx context.Context) error {
	s := x.s
	if s.builder == BuilderAuto && x.t.faceCount >= s.device.least {
		err := x.buildOnDevice(ctx)
		var unfit *unfitError
		if !errors.As(err, &unfit) && !outOfMemory(err) {
			return err
		}
		s.log.Debug("building the tree on the host", "why", err)
		if err := x.free(); err != nil {
			return err
		}
	}
	vertices, err := cuda.Download(ctx, s.stream, x.t.vertices)
	if err != nil {
		return err
	}
	faces, err := cuda.Download(ctx, s.stream, x.t.faces)
	if err != nil {
		return err
	}
	host, err := buildTree(ctx, vertices, faces)
	if err != nil {
		return err
	}
	return x.upload(ctx, host)
}

// upload moves a host tree to the device; its boxes are still undefined.
func (x *treeSearch) upload(ctx context.Context, h *hostTree) error {
	x.plan = &treePlan{by: byHostName, levels: h.levels}
	return firstError(
		upload(ctx, x.s, &x.shapes, h.shapes),
		upload(ctx, x.s, &x.slots, h.slots),
		x.allocate(h.size, h.nodeCount()))
}

// allocate makes room for the nodes and triangles of a tree.
func (x *treeSearch) allocate(slots, nodes int) error {
	return firstError(
		allocate(x.s, &x.pool, slotWords*slots),
		allocate(x.s, &x.boxes, boxWords*nodes))
}

// fit sizes the launches of the search.
func (x *treeSearch) fit() error {
	// A search keeps one entry for every level that it is below; at the last level
	// there is nothing to go down to.
	levels := len(x.plan.levels) - 1
	// One more is always empty, and triangles wait two above the top.
	x.shared = uint32((levels + 2) * stackBytes * blockSize)
	x.residency = &residency{blocks: map[*cuda.Function]int64{}}
	for _, f := range x.s.kernels.searches() {
		if _, err := x.resident(f); err != nil {
			return err
		}
	}
	return nil
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
	fresh, err := x.build(ctx)
	if outOfMemory(err) { // the old tree serves
		x.s.log.Debug("keeping the tree", "why", err)
		return box, nil
	}
	return fresh, err
}

func (x *treeSearch) copyTo(_ context.Context, s *Scene, t *tables) (search, error) {
	out := &treeSearch{s: s, t: t, from: "copied", plan: x.plan}
	return out, firstError(
		duplicate(s, &out.shapes, x.shapes),
		duplicate(s, &out.slots, x.slots),
		duplicate(s, &out.pool, x.pool),
		allocate(s, &out.boxes, x.boxes.Len()),
		out.fit())
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
	return firstError(release(x.s, &x.shapes), release(x.s, &x.slots), release(x.s, &x.pool), release(x.s, &x.boxes))
}

func (x *treeSearch) traverse(at site, st *cuda.Stream, rays rayColumns, winners uint64, begin, count int64) error {
	p := traverseParams{Rays: rays, Winners: winners}
	return x.searchRows(at, st, x.s.kernels.traverse, &p.Search, cuda.ParamBytes(&p), begin, count)
}

// traverseMarked is traverse for a marked call. It may finalize the rows of sweep.
func (x *treeSearch) traverseMarked(at site, st *cuda.Stream, rays rayColumns, winners uint64, sweep finalizeParams, begin, count int64) error {
	p := traverseMarkedParams{Traverse: traverseParams{Rays: rays, Winners: winners}, Sweep: sweep}
	return x.searchRows(at, st, x.s.kernels.traverseMarked, &p.Traverse.Search, cuda.ParamBytes(&p), begin, count)
}

// incoherent reports whether rays visit many nodes of the tree. Then a few take much longer
// than others, and neighbours end at triangles far apart.
func (x *treeSearch) incoherent() bool { return x.plan.cost >= manyVisits }

// searchRows launches a kernel over search_rows of search.cuh for rows [begin,
// begin+count). p is the part of its parameters that this method fills in.
func (x *treeSearch) searchRows(at site, st *cuda.Stream, f *cuda.Function, p *searchParams, params []byte, begin, count int64) error {
	p.Pool = x.pool.Addr()
	if p.IdleLanes == 0 { // a kernel may know better
		p.BusyLanes, p.IdleLanes = busyLanesFew, idleLanesFew
		if x.incoherent() {
			p.BusyLanes, p.IdleLanes = busyLanesMany, idleLanesMany
		}
	}
	launch := func(blocks int64) error {
		return at.Launch(f, st, cuapi.Dim3{X: uint32(blocks), Y: 1, Z: 1},
			cuapi.Dim3{X: blockSize, Y: 1, Z: 1}, x.shared, params)
	}
	resident, err := x.resident(f)
	if err != nil {
		return err
	}
	resident = max(resident/max(at.abreast, 1), 1)
	return x.s.eachLaunch(begin, count, func(begin, count int64) error {
		p.RowBegin, p.Count = begin, count
		blocks := (count + blockSize - 1) / blockSize
		if blocks <= resident {
			p.Next = 0
			return launch(blocks)
		}
		// Launches of several streams run at the same time, so each has counters of
		// its own; the pool orders its memory by stream.
		taken := false
		if p.Next, taken = at.takeCounters(); taken {
			return launch(resident)
		}
		pool := x.s.ctx.Pool()
		next, err := cuda.PoolAlloc[uint32](pool, st, counters)
		if err != nil {
			return err
		}
		p.Next = next.Addr()
		err = cuda.Fill32(st, next, 0)
		if err == nil {
			err = launch(resident)
		}
		return firstError(err, cuda.PoolFree(pool, st, next))
	})
}

// refit enqueues what follows from the vertices: triangles, boxes and nodes.
func (x *treeSearch) refit() error {
	return x.s.ctxDo(func(sc cuda.Scope) error {
		k, st := x.s.kernels, x.s.stream
		err := x.s.eachLaunch(0, int64(x.t.faceCount), func(begin, count int64) error {
			return launchRows(sc, k.placeTriangles, st, count, &placeTrianglesParams{
				Vertices: x.t.vertices.Addr(), Faces: x.t.faces.Addr(), Slots: x.slots.Addr(),
				Pool: x.pool.Addr(), RowBegin: begin, Count: count,
			})
		})
		if err != nil {
			return err
		}
		levels := x.plan.levels
		for l := len(levels) - 2; l >= 0; l-- {
			err := x.s.eachLaunch(int64(levels[l]), int64(levels[l+1]-levels[l]), func(begin, count int64) error {
				return launchRows(sc, k.nodeBoxes, st, count, &nodeBoxesParams{
					Shapes: x.shapes.Addr(), Pool: x.pool.Addr(), Boxes: x.boxes.Addr(), RowBegin: begin, Count: count,
				})
			})
			if err != nil {
				return err
			}
		}
		return x.s.eachLaunch(0, int64(levels[len(levels)-1]), func(begin, count int64) error {
			return launchRows(sc, k.writeNodes, st, count, &writeNodesParams{
				Shapes: x.shapes.Addr(), Pool: x.pool.Addr(), Boxes: x.boxes.Addr(), RowBegin: begin, Count: count,
			})
		})
	})
}

// measure waits for refit and returns the bounding box and the tree's cost: the
// expected number of nodes that a ray visits which meets the box.
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
			Boxes: x.boxes.Addr(), Parts: parts.Addr(), NodeCount: nodes, Count: n,
		})
	})
	if err != nil {
		return box, 0, err
	}
	sums, err := cuda.Download(ctx, x.s.stream, parts)
	if err != nil {
		return box, 0, err
	}
	first, err := x.boxes.Sub(0, boxWords)
	if err != nil {
		return box, 0, err
	}
	root, err := cuda.Download(ctx, x.s.stream, first)
	if err != nil {
		return box, 0, err
	}
	box = bounds{lo: [3]float32(root[:3]), hi: [3]float32(root[3:])}
	sum := 0.0
	for _, v := range sums {
		sum += v
	}
	if area := box.halfArea(); area > 0 {
		cost = sum / area
	}
	return box, cost, nil
}
