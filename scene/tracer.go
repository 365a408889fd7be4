package scene

import (
	"context"
	"sync"

	"github.com/raymux/raymux/cuda"
)

// tracer is the tree that the operations on grids and paths trace with inside their
// kernels, on both backends. Where the scene's search is another one, the first call
// after a change of the geometry builds or refits a tree and waits for the device. The
// caller holds a turn.
func (s *Scene) tracer(ctx context.Context) (*treeSearch, error) {
	t := s.tables
	if x, ok := t.search.(*treeSearch); ok {
		return x, nil
	}
	return t.tree.get(func() (*treeSearch, error) {
		if x := t.staleTree; x != nil {
			if _, err := x.update(ctx, nil); err != nil {
				return nil, err
			}
			t.staleTree = nil
			return x, nil
		}
		x := &treeSearch{s: s, t: t, from: "built"}
		if _, err := x.build(ctx); err != nil {
			return nil, err
		}
		return x, nil
	})
}

// moved tells that the vertices of the tables have changed, by the holder of an exclusive
// turn: the tree of tracer has to follow before it is used again.
func (t *tables) moved() {
	if x, made := t.tree.take(); made {
		t.staleTree = x
	}
}

// freeTree returns the memory of tracer's tree.
func (t *tables) freeTree() error {
	t.moved()
	x := t.staleTree
	t.staleTree = nil
	if x == nil {
		return nil
	}
	return x.free()
}

// residency is how many blocks of each kernel that searches a tree run at the same time
// on its device.
type residency struct {
	mu     sync.Mutex
	blocks map[*cuda.Function]int64
}

// resident is how many blocks of f, a kernel that searches, run at the same time. Cost:
// one driver call the first time.
func (x *treeSearch) resident(f *cuda.Function) (int64, error) {
	r := x.residency
	r.mu.Lock()
	n, known := r.blocks[f]
	r.mu.Unlock()
	if known {
		return n, nil
	}
	perSM, err := f.Occupancy(blockSize, uint64(x.shared))
	if err != nil {
		return 0, err
	}
	n = int64(perSM) * int64(x.s.ctx.Device().Multiprocessors())
	r.mu.Lock()
	r.blocks[f] = n
	r.mu.Unlock()
	return n, nil
}
