package scene

import (
	"fmt"
	"math/bits"
)

const (
	// treeStack is the most levels of nodes that a tree may have. A search keeps
	// eight bytes per level and thread in shared memory, so that this many fit any
	// device. 2^29 faces halved at every level of a binary tree need 29, and a wide
	// tree is never deeper than the binary one that it comes from.
	treeStack = 40
	// treeWidth is the most children of a node.
	treeWidth = 8
	// rootSlot is the slot of the root; the slot before it describes the grid.
	rootSlot = 1
	// slotWords is the size of a slot in 4-byte words.
	slotWords = 16
	// shapeWords is the size of Shape of geometry.cu in 4-byte words: slot, slot of
	// the first child, number of the first inner child, masks of places.
	shapeWords = 4
)

// hostTree is the shape of a triangle tree: everything but the boxes, which the
// device computes from the triangles and recomputes when vertices move.
type hostTree struct {
	// shapes holds shapeWords words per node, level by level from the root.
	shapes []int32
	// levels[k] is the first node of level k; the last entry is the number of
	// nodes.
	levels []int
	// slots is the slot of each triangle.
	slots []int32
	// size is the number of slots.
	size int
}

func (t *hostTree) nodeCount() int { return len(t.shapes) / shapeWords }

// split is an inner node of the binary tree: the triangles [begin,mid) and
// [mid,end) become its halves. Every split has a different mid, which therefore
// serves as its number: subtrees are built in parallel into one array.
type split struct {
	begin, mid, end int32
	child           [2]int32 // number of the split of each half, 0 for a single triangle
}

// flatten numbers the nodes by level and gives every node and triangle its slot.
// Children of a node lie next to each other in order of their places.
func flatten(b *builder) (*hostTree, error) {
	c := newCollapser(b)
	t := &hostTree{slots: make([]int32, len(c.refs))}
	level, at := []branch{c.root()}, []int32{rootSlot}
	next := int32(rootSlot + 1)
	for first := 0; len(level) > 0; {
		t.levels = append(t.levels, first)
		after := first + len(level) // number of the next level's first node
		all := make([]children, len(level))
		parallel(len(level), func(begin, end int) {
			for i := begin; i < end; i++ {
				all[i] = c.children(level[i])
			}
		})
		var below []branch
		var belowAt []int32
		for i := range level {
			masks := int32(0)
			firstInner := after + len(below)
			base := next
			for place, b := range all[i].at {
				if all[i].used>>place&1 == 0 {
					continue
				}
				if b.isTriangle() {
					masks |= 1 << (8 + place)
					t.slots[c.triangle(b).id] = next
				} else {
					masks |= 1 << place
					below, belowAt = append(below, b), append(belowAt, next)
				}
				next++
			}
			t.shapes = append(t.shapes, at[i], base, int32(firstInner), masks)
		}
		first, level, at = after, below, belowAt
	}
	t.levels = append(t.levels, t.nodeCount())
	t.size = int(next)
	if depth := len(t.levels) - 1; depth > treeStack {
		return nil, fmt.Errorf("scene: the search tree has %d levels, the search accepts %d", depth, treeStack)
	}
	return t, nil
}

// levelsFor is the least number of levels of splits that n triangles need when
// every range is halved down to single triangles.
func levelsFor(n int) int {
	if n <= 1 {
		return 0
	}
	return bits.Len(uint(n - 1))
}
