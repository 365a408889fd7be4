package scene

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// treeOf builds a scene of one dynamic mesh on the CUDA backend.
func treeOf(t *testing.T, c *cuda.Context, vertices []float32, faces []int32, change ...func(*Scene)) (*Scene, *treeSearch) {
	t.Helper()
	s, err := New(c, Options{Backend: CUDA})
	require.NoError(t, err)
	for _, f := range change {
		f(s)
	}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err = s.AddMesh(Mesh{Vertices: vertices, Faces: faces, NoEdges: true, Dynamic: true})
	require.NoError(t, err)
	require.NoError(t, s.Build(context.Background()))
	return s, s.tables.search.(*treeSearch)
}

func download[T cuda.Scalar](t *testing.T, s *Scene, v cuda.Slice[T]) []T {
	t.Helper()
	out, err := cuda.Download(context.Background(), s.stream, v)
	require.NoError(t, err)
	return out
}

// poolTree reads a tree as the device holds it.
type poolTree struct {
	t      *testing.T
	words  []uint32
	origin [3]float64
	size   float64
	nodes  int
	leaves int
}

func newPoolTree(t *testing.T, words []uint32) *poolTree {
	p := &poolTree{t: t, words: words}
	for k := range 3 {
		p.origin[k] = float64(math.Float32frombits(words[k]))
	}
	p.size = float64(math.Float32frombits(words[3]))
	return p
}

func (p *poolTree) slot(i uint32) []uint32 { return p.words[slotWords*i : slotWords*(i+1)] }

func (p *poolTree) triangle(i uint32) (box bounds) {
	box = emptyBounds()
	w := p.slot(i)
	for corner := range 3 {
		var v [3]float32
		for k := range v {
			v[k] = math.Float32frombits(w[4*corner+k])
		}
		box.add(&v, &v)
	}
	p.leaves++
	return box
}

// node checks the planes of a node and of all below, and returns its exact box.
func (p *poolTree) node(i uint32) (box bounds) {
	p.nodes++
	w := p.slot(i)
	inner, leaves := w[0]&255, w[1]&255
	require.Zero(p.t, inner&leaves)
	type child struct {
		place int
		box   bounds
	}
	var all []child
	box = emptyBounds()
	next := w[3]
	for place := range treeWidth {
		var b bounds
		switch {
		case inner>>place&1 != 0:
			b = p.node(next)
		case leaves>>place&1 != 0:
			b = p.triangle(next)
		default:
			continue
		}
		next++
		box.add(&b.lo, &b.hi)
		all = append(all, child{place, b})
	}
	cell := p.size * 0x1p-19
	for k := range 3 {
		head := w[k]
		step := p.size * math.Ldexp(1, int(head>>8&31)-31)
		extent := float64(box.hi[k]) - float64(box.lo[k])
		require.LessOrEqual(p.t, step, max(2*(extent+2*cell)/252, p.size*0x1p-30), "axis %d: a finer step would do", k)
		at := p.origin[k] + float64(head>>9)*p.size*0x1p-23
		plane := func(word, place int) float64 {
			return at + float64(w[word+place/4]>>(8*(place%4))&255)*step
		}
		for _, c := range all {
			lower, upper := plane(4+4*k, c.place), plane(6+4*k, c.place)
			lo, hi := float64(c.box.lo[k]), float64(c.box.hi[k])
			// A search evaluates planes to within 2^-8 step.
			require.LessOrEqual(p.t, lower, lo-step/256, "axis %d", k)
			require.GreaterOrEqual(p.t, upper, hi+step/256, "axis %d", k)
			require.Greater(p.t, lower, lo-1.02*step, "axis %d: the plane is farther than it need be", k)
			require.Less(p.t, upper, hi+1.02*step, "axis %d: the plane is farther than it need be", k)
		}
	}
	return box
}

// Every box of every node holds what is below it, and no more than rounding takes.
func TestNodesHoldTheirChildren(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	base, faces := soup(40, 700, 0.1)
	shaped := func(f func(i int, v float32) float32) []float32 {
		out := make([]float32, len(base))
		for i, v := range base {
			out[i] = f(i, v)
		}
		return out
	}
	for name, v := range map[string][]float32{
		"soup":        base,
		"far away":    shaped(func(_ int, v float32) float32 { return v + 1e6 }),
		"flat":        shaped(func(i int, v float32) float32 { return v * float32(i%3&1) }),
		"a point":     shaped(func(int, float32) float32 { return -3 }),
		"tiny":        shaped(func(_ int, v float32) float32 { return v * 0x1p-70 }),
		"huge":        shaped(func(_ int, v float32) float32 { return (v - 0.5) * 0x1p58 }),
		"two scales":  shaped(func(i int, v float32) float32 { return v*1e-4 + float32(i/6000)*1e4 }),
		"needle":      shaped(func(i int, v float32) float32 { return v * []float32{1e3, 1, 1e-3}[i%3] }),
		"one":         base[:9],
		"many scales": shaped(func(i int, v float32) float32 { return v * float32(math.Exp2(float64(i/90))) * 1e-9 }),
	} {
		t.Run(name, func(t *testing.T) {
			s, x := treeOf(t, c, v, faces[:len(v)/3])
			for _, refitted := range []bool{false, true} {
				if refitted {
					moved := make([]float32, len(v))
					for i := range v {
						moved[i] = v[(i+9)%len(v)]
					}
					require.NoError(t, s.UpdateMeshVertices(0, moved))
					require.NoError(t, s.Sync(context.Background()))
					x = s.tables.search.(*treeSearch)
				}
				p := newPoolTree(t, download(t, s, x.pool))
				box := p.node(rootSlot)
				lo, hi := s.Bounds()
				require.Equal(t, bounds{lo, hi}, box)
				require.Equal(t, len(v)/9, p.leaves)
				require.Equal(t, x.plan.levels[len(x.plan.levels)-1], p.nodes)
			}
		})
	}
}

func TestReplicasHaveTheSameBytes(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	v, f := soup(41, 900, 0.1)
	master, a := treeOf(t, rig.Context(t, 0), v, f)
	replica, err := New(rig.Context(t, 1), Options{Backend: CUDA})
	require.NoError(t, err)
	defer func() { require.NoError(t, replica.Close()) }()
	for round := range 3 {
		require.NoError(t, replica.Replicate(context.Background(), master))
		b := replica.tables.search.(*treeSearch)
		require.Equal(t, download(t, master, a.pool), download(t, replica, b.pool), "round %d", round)
		for i := range v {
			v[i] += 0.01 * float32(i%7)
		}
		require.NoError(t, master.UpdateMeshVertices(0, v))
		require.NoError(t, master.Sync(context.Background()))
		a = master.tables.search.(*treeSearch)
	}
}

// With more rows than threads the rows are handed out, on every stream by itself.
func TestRowsAreHandedOut(t *testing.T) {
	const rows = 3000
	c := gputest.Open(t, 1, nil).Context(t, 0)
	ctx := context.Background()
	v, f := soup(42, 500, 0.2)
	s, x := treeOf(t, c, v, f)
	x.residency.blocks[s.kernels.traverse] = 2
	rng := rand.New(rand.NewPCG(43, 1))
	o, d := make([]float32, 3*rows), make([]float32, 3*rows)
	for i := range o {
		o[i], d[i] = rng.Float32(), rng.Float32()-0.5
	}
	active := make([]uint8, rows)
	for i := range active {
		active[i] = uint8(i % 5)
	}
	var rays Rays
	var err error
	rays.O, err = cuda.Upload(ctx, s.stream, o)
	require.NoError(t, err)
	rays.D, err = cuda.Upload(ctx, s.stream, d)
	require.NoError(t, err)
	rays.Active, err = cuda.Upload(ctx, s.stream, active)
	require.NoError(t, err)
	brute := oracle.NewCanonical(v, f)
	want := brute.Winners(rows, func(i int) (ro, rd [3]float32, tmax float32) {
		if active[i] == 0 {
			return ro, rd, 0
		}
		return [3]float32(o[3*i:]), [3]float32(d[3*i:]), math.MaxFloat32
	})
	var streams [3]*cuda.Stream
	var hits [len(streams)][4]*Hits
	for k := range streams {
		streams[k], err = c.NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
	}
	for round := range hits[0] {
		for k, st := range streams {
			hits[k][round], err = s.Intersect(ctx, rays, Geometric, OnStream(st))
			require.NoError(t, err)
		}
	}
	found := 0
	for k, st := range streams {
		require.NoError(t, st.Synchronize(ctx))
		for _, h := range hits[k] {
			got := download(t, s, h.GlobalPrimID)
			for i := range rows {
				require.EqualValues(t, want[i].Prim, got[i], "row %d", i)
				if got[i] >= 0 {
					found++
				}
			}
			require.NoError(t, h.Close())
		}
		require.NoError(t, st.Synchronize(ctx))
	}
	assert.Greater(t, found, rows)
	require.NoError(t, s.Close())
	require.NoError(t, cuda.Free(rays.O))
	require.NoError(t, cuda.Free(rays.D))
	require.NoError(t, cuda.Free(rays.Active))
	for _, st := range streams {
		require.NoError(t, st.Close())
	}
}

// Coordinates beyond 2^60 m, where box tests would overflow, are searched too.
func TestSearchBeyondBoxTests(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	ctx := context.Background()
	v, f := soup(46, 100, 0.3)
	for i := 2; i < len(v); i += 3 {
		v[i] = 0x1p62 * (1 + float32(i/9%5))
	}
	s, _ := treeOf(t, c, v, f)
	const rows = 200
	rng := rand.New(rand.NewPCG(47, 1))
	o, d := make([]float32, 3*rows), make([]float32, 3*rows)
	for i := range rows {
		o[3*i], o[3*i+1], d[3*i+2] = rng.Float32(), rng.Float32(), 1
	}
	requireBrute(ctx, t, s, v, f, o, d)
}

// The search finds what a search of all triangles finds, at any scale of
// coordinates and directions, also when components of a direction are zero,
// subnormal or of very different size.
func TestSearchAtEveryScale(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	ctx := context.Background()
	base, f := soup(44, 300, 0.4)
	for _, scale := range []float32{0x1p-20, 1, 1000, 0x1p40} {
		v := make([]float32, len(base))
		for i := range v {
			v[i] = (base[i] - 0.25) * scale
		}
		s, _ := treeOf(t, c, v, f)
		rng := rand.New(rand.NewPCG(45, uint64(math.Float32bits(scale))))
		const rows = 1200
		o, d := make([]float32, 3*rows), make([]float32, 3*rows)
		lengths := []float32{1, 1e-3, 0x1p-100, 1e-42, 100 * scale}
		for i := range rows {
			for k := range 3 {
				o[3*i+k] = (rng.Float32() - 0.25) * scale
				d[3*i+k] = rng.Float32() - 0.5
				switch i % 4 {
				case 1: // towards a vertex
					d[3*i+k] = v[9*(i%300)+k]/scale - o[3*i+k]/scale
				case 2:
					d[3*i+k] *= []float32{0, 1, 1e-20, 1e-39}[rng.IntN(4)]
				}
			}
			m := float32(0)
			for k := range 3 {
				m = max(m, float32(math.Abs(float64(d[3*i+k]))))
			}
			if m == 0 {
				d[3*i], m = 1, 1
			}
			length := lengths[rng.IntN(len(lengths))]
			for k := range 3 {
				if i%8 == 7 {
					length = lengths[rng.IntN(len(lengths))]
				}
				d[3*i+k] = d[3*i+k] / m * length
			}
		}
		requireBrute(ctx, t, s, v, f, o, d)
	}
}

// requireBrute compares all rows with a search of all triangles and requires that
// a good part of them hits.
func requireBrute(ctx context.Context, t *testing.T, s *Scene, v []float32, f []int32, o, d []float32) {
	t.Helper()
	rows := len(o) / 3
	want := oracle.NewCanonical(v, f).Winners(rows, func(i int) (ro, rd [3]float32, tmax float32) {
		return [3]float32(o[3*i:]), [3]float32(d[3*i:]), math.MaxFloat32
	})
	var rays Rays
	var err error
	rays.O, err = cuda.Upload(ctx, s.stream, o)
	require.NoError(t, err)
	rays.D, err = cuda.Upload(ctx, s.stream, d)
	require.NoError(t, err)
	h, err := s.Intersect(ctx, rays, Geometric)
	require.NoError(t, err)
	found := 0
	for i, got := range download(t, s, h.GlobalPrimID) {
		assert.EqualValues(t, want[i].Prim, got, "row %d: o %v d %v", i, o[3*i:3*i+3], d[3*i:3*i+3])
		if got >= 0 {
			found++
		}
	}
	assert.Greater(t, found, rows/5)
	require.NoError(t, h.Close())
	require.NoError(t, cuda.Free(rays.O))
	require.NoError(t, cuda.Free(rays.D))
}
