package scene

import (
	"fmt"
	"math/bits"
	"slices"
)

const (
	// treeStack is TREE_STACK of tree.cuh: the most levels of inner nodes that
	// the search accepts. 2^29 faces halved at every level need 29.
	treeStack = 48
	// leafMax is the most triangles that a leaf link can count.
	leafMax = 4
	// nodeWords is the size of a node in 4-byte words; its links are the words
	// linkWord and linkWord+1.
	nodeWords = 16
	linkWord  = 12
)

// hostTree is the shape of a triangle tree: everything but the boxes, which the
// device computes from the triangles and recomputes when vertices move.
type hostTree struct {
	// nodes holds nodeWords words per inner node, level by level from the root.
	nodes []int32
	// levels[k] is the first node of level k; the last entry is the number of
	// nodes.
	levels []int
	// order is the primitive id of each triangle slot.
	order []int32
}

func (t *hostTree) nodeCount() int { return len(t.nodes) / nodeWords }

// leafLink is the link to n triangles from slot first.
func leafLink(first, n int) int32 { return ^int32(first<<2 | (n - 1)) }

// split is an inner node while the tree is built: the slots [begin,mid) and
// [mid,end) become its children. Every inner node has a different mid, which
// therefore serves as its number: subtrees are built in parallel into one array.
type split struct {
	begin, mid, end int32
	child           [2]int32 // number of the inner child, 0 for a leaf
}

// flatten numbers the nodes by level and turns splits into links.
func flatten(b *builder) (*hostTree, error) {
	t := &hostTree{order: make([]int32, len(b.refs))}
	for i := range b.refs {
		t.order[i] = b.refs[i].id
	}
	if b.root == 0 {
		// Few enough triangles for one leaf, but the search starts at an inner
		// node: both its children are that leaf. Testing a triangle twice is
		// harmless.
		t.nodes = make([]int32, nodeWords)
		leaf := leafLink(0, len(b.refs))
		t.nodes[linkWord], t.nodes[linkWord+1] = leaf, leaf
		t.levels = []int{0, 1}
		return t, nil
	}
	level := []int32{b.root}
	for first := 0; len(level) > 0; {
		t.levels = append(t.levels, first)
		after := first + len(level) // number of the next level's first node
		var next []int32
		for _, mid := range level {
			s := &b.splits[mid]
			at := len(t.nodes)
			t.nodes = slices.Grow(t.nodes, nodeWords)[:at+nodeWords]
			for side, r := range [2][2]int32{{s.begin, s.mid}, {s.mid, s.end}} {
				if s.child[side] == 0 {
					t.nodes[at+linkWord+side] = leafLink(int(r[0]), int(r[1]-r[0]))
					continue
				}
				t.nodes[at+linkWord+side] = int32(after + len(next))
				next = append(next, s.child[side])
			}
		}
		first, level = after, next
	}
	t.levels = append(t.levels, t.nodeCount())
	if depth := len(t.levels) - 1; depth > treeStack {
		return nil, fmt.Errorf("scene: the search tree has %d levels, the search accepts %d", depth, treeStack)
	}
	return t, nil
}

// levelsFor is the least number of levels of inner nodes that n triangles need
// when every node is halved down to single triangles.
func levelsFor(n int) int {
	if n <= 1 {
		return 0
	}
	return bits.Len(uint(n - 1))
}
