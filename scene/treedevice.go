package scene

import (
	"context"
	"errors"
	"fmt"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

// buildKernels build trees on the device. They are loaded when that is first done.
type buildKernels struct {
	module                                   *cuda.Module
	triangleBounds, makeLeaves, seedClusters *cuda.Function
	buildByBits, buildByNearness, widen      *cuda.Function
}

func loadBuildKernels(c *cuda.Context) (*buildKernels, error) {
	k := &buildKernels{}
	var err error
	if k.module, err = loadModule(c, widenKernel.Module); err != nil {
		return nil, err
	}
	err = functions(k.module, map[string]**cuda.Function{
		triangleBoundsKernel.Name: &k.triangleBounds, makeLeavesKernel.Name: &k.makeLeaves,
		seedClustersKernel.Name: &k.seedClusters, buildByBitsKernel.Name: &k.buildByBits,
		buildByNearnessKernel.Name: &k.buildByNearness, widenKernel.Name: &k.widen,
	})
	if err != nil {
		return nil, firstError(err, k.module.Close())
	}
	return k, nil
}

// unfitError says why a tree that the device has built cannot be used.
type unfitError struct{ reason string }

func (e *unfitError) Error() string { return "scene: tree of the device: " + e.reason }

const (
	// boundsThreads is the most threads that look for the box of all triangles.
	boundsThreads = 1 << 18
	// widenNodes is the number of nodes that a block of widen works on at a time.
	widenNodes = 16
	// widenBlocks is the number of blocks of widen per multiprocessor.
	widenBlocks = 16
)

// buildOnDevice makes the shape of a tree over the tables. What it asks of the host
// is one look at the number of nodes per level, two for a tree of unusual depth.
// The error is an *unfitError if the host has to build.
func (x *treeSearch) buildOnDevice(ctx context.Context) (err error) {
	s, n := x.s, x.t.faceCount
	k, err := s.kernels.build.get(func() (*buildKernels, error) { return loadBuildKernels(s.ctx) })
	if err != nil {
		return err
	}
	m, err := newTreeScratch(s, n)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, m.free(s)) }()
	if err := allocate(s, &x.slots, n); err != nil {
		return err
	}
	if err := s.ctxDo(func(sc cuda.Scope) error { return x.growForest(sc, k, m) }); err != nil {
		return err
	}
	if x.plan, err = x.widen(ctx, k, m); err != nil {
		return err
	}
	nodes := x.plan.levels[len(x.plan.levels)-1]
	shapes, err := m.shapes.Sub(0, shapeWords*nodes)
	if err != nil {
		return err
	}
	if err := x.allocate(rootSlot+nodes+n, nodes); err != nil {
		return err
	}
	if err := allocate(s, &x.shapes, shapeWords*nodes); err != nil {
		return err
	}
	return cuda.CopyAsync(s.stream, x.shapes, shapes)
}

// growForest enqueues everything up to the binary trees.
func (x *treeSearch) growForest(sc cuda.Scope, k *buildKernels, m *treeScratch) error {
	s, t, st := x.s, x.t, x.s.stream
	n := int64(t.faceCount)
	if err := cuda.Fill32(st, m.state, 0); err != nil {
		return err
	}
	err := launchRows(sc, k.triangleBounds, st, min(n, boundsThreads), &triangleBoundsParams{
		Vertices: t.vertices.Addr(), Faces: t.faces.Addr(), State: m.state.Addr(), FaceCount: n, Count: min(n, boundsThreads),
	})
	if err != nil {
		return err
	}
	if err := s.device.mark("bounds"); err != nil {
		return err
	}
	err = s.eachLaunch(0, n, func(begin, count int64) error {
		return launchRows(sc, k.makeLeaves, st, count, &makeLeavesParams{
			Vertices: t.vertices.Addr(), Faces: t.faces.Addr(), State: m.state.Addr(), Leaves: m.forest.Leaves,
			Keys: m.pairs.keys.Addr(), Values: m.pairs.values.Addr(), RowBegin: begin, Count: count,
		})
	})
	if err != nil {
		return err
	}
	if err := s.device.mark("leaves"); err != nil {
		return err
	}
	sorted := m.pairs
	if err := s.sortPairs(sc, st, &sorted, keyBits); err != nil {
		return err
	}
	if err := s.device.mark("sort"); err != nil {
		return err
	}
	err = s.eachLaunch(0, n, func(begin, count int64) error {
		return launchRows(sc, k.seedClusters, st, count, &seedClustersParams{
			Keys: sorted.keys.Addr(), Values: sorted.values.Addr(), Gaps: m.gaps, Meet: m.meet, Clusters: m.clusters,
			LeafCount: n, RowBegin: begin, Count: count,
		})
	})
	if err != nil {
		return err
	}
	if err := s.device.mark("clusters"); err != nil {
		return err
	}
	// In this order: the second replaces the clusters.
	for tree, f := range []*cuda.Function{treeByBits: k.buildByBits, treeByNearness: k.buildByNearness} {
		if s.device.tree != treeCheaper && s.device.tree != int64(tree) {
			continue
		}
		err := s.eachLaunch(0, n, func(begin, count int64) error {
			return launchRows(sc, f, st, count, &climbParams{
				Forest: m.forest, Gaps: m.gaps, Meet: m.meet, Clusters: m.clusters, State: m.state.Addr(),
				LeafCount: n, RowBegin: begin, Count: count,
			})
		})
		if err != nil {
			return err
		}
		if err := s.device.mark(f.Name()); err != nil {
			return err
		}
	}
	return nil
}

// widen makes wide nodes, level by level.
func (x *treeSearch) widen(ctx context.Context, k *buildKernels, m *treeScratch) (*treePlan, error) {
	s, n := x.s, x.t.faceCount
	p := widenParams{
		Forest: m.forest, State: m.state.Addr(), Queue: m.queue, Shapes: m.shapes.Addr(), Slots: x.slots.Addr(),
		Tree: s.device.tree,
	}
	blocks := min((n+widenNodes-1)/widenNodes, widenBlocks*s.ctx.Device().Multiprocessors())
	// Some more than a tree of full nodes would have: launches for levels that the
	// tree does not have are cheaper than another look.
	until := levelsFor(n)/3 + 6
	for {
		err := s.ctxDo(func(sc cuda.Scope) error {
			for ; p.Level < int64(min(until, s.device.levels)); p.Level++ {
				err := sc.Launch(k.widen, s.stream, cuapi.Dim3{X: uint32(blocks), Y: 1, Z: 1},
					cuapi.Dim3{X: 8 * widenNodes, Y: 1, Z: 1}, 0, cuda.ParamBytes(&p))
				if err != nil {
					return err
				}
			}
			return s.device.mark("widen")
		})
		if err != nil {
			return nil, err
		}
		state, err := cuda.Download(ctx, s.stream, m.state)
		if err != nil {
			return nil, err
		}
		levels, err := readLevels(state, int(p.Level), n)
		if err == nil {
			return &treePlan{by: s.device.chosen(state), levels: levels}, nil
		}
		if !errors.Is(err, errMoreLevels) {
			return nil, err
		}
		if int(p.Level) == s.device.levels {
			return nil, &unfitError{fmt.Sprintf("has more than %d levels", p.Level)}
		}
		until += 8
	}
}

// errMoreLevels asks for the levels below.
var errMoreLevels = errors.New("the tree has more levels")

// readLevels takes the first nodes of the levels made so far from the words of a
// build's state, and compares what must add up.
func readLevels(state []uint32, made, triangles int) ([]int, error) {
	levels, nodes, children := []int{0}, 1, 0
	for k := range made {
		levels = append(levels, nodes)
		inner, all := int(state[stateCounts+2*k]), int(state[stateCounts+2*k+1])
		children += all
		if inner == 0 {
			if children != nodes-1+triangles {
				return nil, &unfitError{fmt.Sprintf("has %d children of %d nodes and %d triangles", children, nodes, triangles)}
			}
			return levels, nil
		}
		nodes += inner
	}
	return nil, errMoreLevels
}
