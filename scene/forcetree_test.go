package scene

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
)

// What tests of the public package may do to search trees.

// TreeKinds are the builders of trees.
var TreeKinds = []string{"sah", "bits", "nearness"}

// UseTree chooses the builder of a scene that has no tree yet.
func (s *Scene) UseTree(kind string) {
	switch kind {
	case "sah":
		s.builder = BuilderSAH
	case "bits":
		s.device.least, s.device.tree = 1, treeByBits
	case "nearness":
		s.device.least, s.device.tree = 1, treeByNearness
	default:
		panic("no builder is called " + kind)
	}
}

// TreePlan identifies the tree: it is the same as long as the tree is only refitted.
func (s *Scene) TreePlan() any { return s.tables.search.(*treeSearch).plan }

// TreeCost is the cost of the tree when it was built.
func (s *Scene) TreeCost() float64 { return s.tables.search.(*treeSearch).plan.cost }

// AlterTree changes nodes in place. pick is asked about every node, in no order, whether
// to shrink it; the upper planes of its children along x go down to the lower ones
// then. It returns how many were shrunk.
func (s *Scene) AlterTree(t *testing.T, pick func(level int, leaves bool) bool) (shrunk int) {
	t.Helper()
	ctx := context.Background()
	x := s.tables.search.(*treeSearch)
	p := newPoolTree(t, download(t, s, x.pool))
	var visit func(slot uint32, level int)
	visit = func(slot uint32, level int) {
		w := p.slot(slot)
		inner, leaves := w[0]&255, w[1]&255
		if pick(level, leaves != 0) {
			w[6], w[7] = w[4], w[5]
			shrunk++
		}
		next := w[3]
		for place := range treeWidth {
			if inner>>place&1 != 0 {
				visit(next, level+1)
			}
			if (inner|leaves)>>place&1 != 0 {
				next++
			}
		}
	}
	visit(rootSlot, 0)
	changed, err := cuda.Upload(ctx, s.stream, p.words)
	require.NoError(t, err)
	require.NoError(t, cuda.CopyAsync(s.stream, x.pool, changed))
	require.NoError(t, s.stream.Synchronize(ctx))
	require.NoError(t, cuda.Free(changed))
	return shrunk
}
