package scene

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
)

// The builder splits triangles by the surface-area heuristic: a node costs one
// box test, a triangle one triangle test, and a child is entered with a
// probability proportional to the area of its box. Candidate planes come from
// equal bins of the boxes' centres along each axis. Where that finds nothing, or
// would leave too few levels to finish, a range is halved.

const (
	binCount = 16
	// parallelMin is the least number of triangles worth a goroutine.
	parallelMin = 4096
)

// ref is the box of one triangle.
type ref struct {
	lo, hi [3]float32
	id     int32
}

// centre halves first, so that it cannot overflow.
func (r *ref) centre(axis int) float32 { return 0.5*r.lo[axis] + 0.5*r.hi[axis] }

type bounds struct {
	lo, hi [3]float32
}

func emptyBounds() bounds {
	const m = math.MaxFloat32
	return bounds{lo: [3]float32{m, m, m}, hi: [3]float32{-m, -m, -m}}
}

// add grows the box. Comparisons, not min and max: those order zeros and NaN too,
// which costs half of the build.
func (b *bounds) add(lo, hi *[3]float32) {
	for k := range 3 {
		if lo[k] < b.lo[k] {
			b.lo[k] = lo[k]
		}
		if hi[k] > b.hi[k] {
			b.hi[k] = hi[k]
		}
	}
}

// halfArea is half the surface of the box, in f64 because squares of large f32
// extents overflow.
func (b *bounds) halfArea() float64 {
	x := float64(b.hi[0]) - float64(b.lo[0])
	y := float64(b.hi[1]) - float64(b.lo[1])
	z := float64(b.hi[2]) - float64(b.lo[2])
	return x*y + y*z + z*x
}

type builder struct {
	ctx    context.Context
	refs   []ref
	splits []split       // by mid
	root   int32         // mid of the root, 0 if there is one triangle
	spare  chan struct{} // one token per idle processor
	wg     sync.WaitGroup
}

// buildTree builds the tree over faces (vertex numbers) of vertices. It stops
// early when ctx ends.
func buildTree(ctx context.Context, vertices []float32, faces []int32) (*hostTree, error) {
	b, err := newBuilder(ctx, vertices, faces)
	if err != nil {
		return nil, err
	}
	return flatten(b)
}

// newBuilder builds the binary tree.
func newBuilder(ctx context.Context, vertices []float32, faces []int32) (*builder, error) {
	n := len(faces) / 3
	b := &builder{
		ctx:    ctx,
		refs:   make([]ref, n),
		splits: make([]split, n),
		spare:  make(chan struct{}, runtime.GOMAXPROCS(0)-1),
	}
	for range cap(b.spare) {
		b.spare <- struct{}{}
	}
	parallel(n, func(begin, end int) {
		for i := begin; i < end; i++ {
			r := ref{id: int32(i)}
			box := emptyBounds()
			for _, v := range faces[3*i : 3*i+3] {
				p := (*[3]float32)(vertices[3*int(v):])
				box.add(p, p)
			}
			r.lo, r.hi = box.lo, box.hi
			b.refs[i] = r
		}
	})
	b.node(0, int32(n), 0, &b.root)
	b.wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b, nil
}

// parallel runs f on pieces of [0,n) on all processors.
func parallel(n int, f func(begin, end int)) {
	pieces := min(runtime.GOMAXPROCS(0), 1+n/parallelMin)
	var wg sync.WaitGroup
	for i := range pieces {
		wg.Go(func() { f(i*n/pieces, (i+1)*n/pieces) })
	}
	wg.Wait()
}

// node splits the triangles [begin,end) at the given level and writes the number
// of the split, or 0 for a single triangle.
func (b *builder) node(begin, end int32, level int, out *int32) {
	for {
		n := int(end - begin)
		if b.ctx.Err() != nil && n >= parallelMin {
			return
		}
		mid, ok := b.divide(begin, end, level)
		if !ok {
			return
		}
		*out = mid
		s := &b.splits[mid]
		*s = split{begin: begin, mid: mid, end: end}
		level++
		if n < parallelMin || !b.fork(begin, mid, level, &s.child[0]) {
			b.node(begin, mid, level, &s.child[0])
		}
		begin, out = mid, &s.child[1]
	}
}

// fork is node on an idle processor; false if there is none.
func (b *builder) fork(begin, end int32, level int, out *int32) bool {
	select {
	case <-b.spare:
		b.wg.Go(func() {
			b.node(begin, end, level, out)
			b.spare <- struct{}{}
		})
		return true
	default:
		return false
	}
}

// divide reorders the triangles [begin,end) and returns where to split them; false
// for a single one.
func (b *builder) divide(begin, end int32, level int) (mid int32, ok bool) {
	refs := b.refs[begin:end]
	if len(refs) == 1 {
		return 0, false
	}
	centres := emptyBounds()
	for i := range refs {
		r := &refs[i]
		c := [3]float32{r.centre(0), r.centre(1), r.centre(2)}
		centres.add(&c, &c)
	}
	// The children start one level down and must be able to finish by halving.
	if level+levelsFor(len(refs)) < treeStack {
		if p, found := choosePlane(refs, &centres); found {
			return begin + int32(p.partition(refs)), true
		}
	}
	return begin + int32(halve(refs, &centres)), true
}

// plane sends a triangle left when its centre falls into a bin below split.
type plane struct {
	binning
	split int
	cost  float64 // sum over children of area times triangles
}

// binning maps centres along one axis to bins.
type binning struct {
	axis, last int
	lo, scale  float32
}

func (g *binning) of(r *ref) int {
	return min(int((r.centre(g.axis)-g.lo)*g.scale), g.last)
}

type bin struct {
	box bounds
	n   int
}

// choosePlane finds the cheapest plane; false when the centres coincide.
func choosePlane(refs []ref, centres *bounds) (best plane, found bool) {
	best.cost = math.Inf(1)
	// Most nodes are small, and more bins than this find nothing more in them.
	count := min(binCount, 2*len(refs))
	for axis := range 3 {
		extent := centres.hi[axis] - centres.lo[axis]
		scale := float32(count) / extent
		// Also false for extents that overflow or vanish.
		if !(extent > 0 && extent <= math.MaxFloat32 && scale <= math.MaxFloat32) {
			continue
		}
		g := binning{axis: axis, last: count - 1, lo: centres.lo[axis], scale: scale}
		var store [binCount]bin
		all := store[:count]
		for i := range all {
			all[i].box = emptyBounds()
		}
		for i := range refs {
			r := &refs[i]
			t := &all[g.of(r)]
			t.box.add(&r.lo, &r.hi)
			t.n++
		}
		if s, cost := cheapest(all); cost < best.cost {
			best, found = plane{binning: g, split: s, cost: cost}, true
		}
	}
	return best, found
}

// cheapest is the split of the bins with the least cost.
func cheapest(all []bin) (split int, cost float64) {
	var left [binCount]float64
	acc, n := emptyBounds(), 0
	for i := range len(all) - 1 {
		if all[i].n > 0 {
			acc.add(&all[i].box.lo, &all[i].box.hi)
			n += all[i].n
		}
		left[i+1] = math.Inf(1)
		if n > 0 {
			left[i+1] = float64(n) * acc.halfArea()
		}
	}
	cost = math.Inf(1)
	acc, n = emptyBounds(), 0
	for i := len(all) - 1; i > 0; i-- {
		if all[i].n > 0 {
			acc.add(&all[i].box.lo, &all[i].box.hi)
			n += all[i].n
		}
		if n == 0 {
			continue
		}
		if c := left[i] + float64(n)*acc.halfArea(); c < cost {
			split, cost = i, c
		}
	}
	return split, cost
}

// partition moves the triangles left of the plane to the front and returns their
// number. Both sides are non-empty: the first and the last bin hold a triangle.
func (p *plane) partition(refs []ref) int {
	i, j := 0, len(refs)
	for i < j {
		if p.of(&refs[i]) < p.split {
			i++
		} else {
			j--
			refs[i], refs[j] = refs[j], refs[i]
		}
	}
	return i
}

// halve orders the triangles along the longest axis of their centres and splits
// in the middle.
func halve(refs []ref, centres *bounds) int {
	axis := 0
	for k := 1; k < 3; k++ {
		if centres.hi[k]-centres.lo[k] > centres.hi[axis]-centres.lo[axis] {
			axis = k
		}
	}
	slices.SortFunc(refs, func(a, b ref) int { return cmp.Compare(a.centre(axis), b.centre(axis)) })
	return len(refs) / 2
}
