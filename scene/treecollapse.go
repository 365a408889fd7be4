package scene

import "math"

// A wide node is a split with some of the splits below it taken in; what is left
// below those becomes its children, at most treeWidth. Which ones are taken in is
// chosen so that the sum of the areas of all nodes is the least possible: the
// number of nodes that a ray visits is proportional to it. The choice is made
// bottom up: for every subtree and every number of children that it may become,
// the least cost of all nodes inside is known.

// branch is a subtree of the binary tree: the number of a split, or ^i for the
// triangle i of the builder.
type branch int32

func (b branch) isTriangle() bool { return b < 0 }

// collapser makes wide nodes.
type collapser struct {
	*builder
	box   []bounds                 // of each split
	least [][treeWidth - 1]float32 // least[b][n-1]: cost of split b as at most n children
}

func newCollapser(b *builder) *collapser {
	c := &collapser{builder: b, box: make([]bounds, len(b.refs)), least: make([][treeWidth - 1]float32, len(b.refs))}
	if root := c.root(); !root.isTriangle() {
		c.weigh(root)
	}
	return c
}

// root is the whole tree.
func (c *collapser) root() branch {
	if c.builder.root == 0 {
		return ^branch(0) // the only triangle
	}
	return branch(c.builder.root)
}

func (c *collapser) halves(b branch) (left, right branch) {
	s := &c.splits[b]
	left, right = branch(s.child[0]), branch(s.child[1])
	if left == 0 {
		left = ^branch(s.begin)
	}
	if right == 0 {
		right = ^branch(s.mid)
	}
	return left, right
}

func (c *collapser) triangle(b branch) *ref { return &c.refs[^b] }

func (c *collapser) boxOf(b branch) bounds {
	if b.isTriangle() {
		r := c.triangle(b)
		return bounds{r.lo, r.hi}
	}
	return c.box[b]
}

// cost is the least cost of a subtree as at most n < treeWidth children. Triangles
// cost the same in every tree.
func (c *collapser) cost(b branch, n int) float32 {
	if b.isTriangle() {
		return 0
	}
	return c.least[b][n-1]
}

// weigh computes boxes and costs of a split and all splits below.
func (c *collapser) weigh(b branch) {
	left, right := c.halves(b)
	wait := func() {}
	if !left.isTriangle() {
		wait = c.weighAside(left)
	}
	if !right.isTriangle() {
		c.weigh(right)
	}
	wait()
	box, other := c.boxOf(left), c.boxOf(right)
	box.add(&other.lo, &other.hi)
	c.box[b] = box
	least := &c.least[b]
	_, below := c.distribute(b, treeWidth)
	least[0] = float32(box.halfArea()) + below
	for n := 2; n < treeWidth; n++ {
		_, divided := c.distribute(b, n)
		least[n-1] = min(divided, least[n-2])
	}
}

// weighAside is weigh on an idle processor, if there is one and it is worth it; the
// caller waits for it with the function returned.
func (c *collapser) weighAside(b branch) (wait func()) {
	if s := &c.splits[b]; s.end-s.begin >= parallelMin {
		select {
		case <-c.spare:
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.weigh(b)
				c.spare <- struct{}{}
			}()
			return func() { <-done }
		default:
		}
	}
	c.weigh(b)
	return func() {}
}

// distribute finds how many of n children the left half of a split should become,
// and what both halves cost then.
func (c *collapser) distribute(b branch, n int) (left int, cost float32) {
	l, r := c.halves(b)
	left, cost = 1, c.cost(l, 1)+c.cost(r, n-1)
	for i := 2; i < n; i++ {
		if v := c.cost(l, i) + c.cost(r, n-i); v < cost {
			left, cost = i, v
		}
	}
	return left, cost
}

// open appends to out what the halves of a split become as n children.
func (c *collapser) open(b branch, n int, out []branch) []branch {
	left, _ := c.distribute(b, n)
	l, r := c.halves(b)
	return c.become(r, n-left, c.become(l, left, out))
}

// become appends to out what a subtree becomes as at most n children.
func (c *collapser) become(b branch, n int, out []branch) []branch {
	if b.isTriangle() {
		return append(out, b)
	}
	for ; n > 1; n-- {
		// Fewer children are as good: a later opening has nothing to add.
		if _, divided := c.distribute(b, n); divided < c.cost(b, n-1) {
			return c.open(b, n, out)
		}
	}
	return append(out, b)
}

// children of a node, by place.
type children struct {
	at   [treeWidth]branch
	used uint32 // mask of the places in use
}

// children chooses the children of a node and their places. Bit k of a place means
// the upper side along axis k, so that a search may take the signs of a direction
// for the order in which it meets the children. The child that lies farthest
// towards a corner gets the place of that corner, then the others what is free.
func (c *collapser) children(b branch) (out children) {
	if b.isTriangle() {
		out.at[0], out.used = b, 1
		return out
	}
	var store [treeWidth]branch
	list := c.open(b, treeWidth, store[:0])
	var offset [treeWidth][3]float32 // of each centre from the node's
	middle := centreOf(c.boxOf(b))
	for i, child := range list {
		offset[i] = centreOf(c.boxOf(child))
		for k := range 3 {
			offset[i][k] -= middle[k]
		}
	}
	placed := uint32(0)
	for range list {
		farthest, child, place := float32(math.Inf(-1)), -1, -1
		for i := range list {
			if placed>>i&1 != 0 {
				continue
			}
			for p := range treeWidth {
				if out.used>>p&1 != 0 {
					continue
				}
				// Not even NaN may leave a child without a place.
				if d := towards(&offset[i], p); d > farthest || child < 0 {
					farthest, child, place = d, i, p
				}
			}
		}
		out.at[place] = list[child]
		out.used |= 1 << place
		placed |= 1 << child
	}
	return out
}

func centreOf(b bounds) (c [3]float32) {
	for k := range 3 {
		c[k] = 0.5*b.lo[k] + 0.5*b.hi[k]
	}
	return c
}

// towards is how far an offset goes towards the corner of a place.
func towards(offset *[3]float32, place int) (d float32) {
	for k, v := range offset {
		if place>>k&1 != 0 {
			d += v
		} else {
			d -= v
		}
	}
	return d
}
