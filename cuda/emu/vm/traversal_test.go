package vm

import (
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// bvhNode is the node of testdata/traversal.cu.
type bvhNode struct {
	box   [12]float32 // child a: lo and hi of x, y; child b: the same; then z of a and of b
	child [4]int32
}

type testScene struct {
	vertices []float32
	faces    []int32
	nodes    []bvhNode
	org, dir []float32
}

// makeScene builds a random triangle soup with a median-split tree, and rays through it.
func makeScene(rng *rand.Rand, triangles, rays int) *testScene {
	s := &testScene{}
	type tri struct {
		v      [9]float32
		lo, hi [3]float32
	}
	tris := make([]tri, triangles)
	for i := range tris {
		t := &tris[i]
		var c [3]float32
		for k := range c {
			c[k] = rng.Float32()*20 - 10
		}
		for k := range t.v {
			t.v[k] = c[k%3] + 2*rng.Float32() - 1
		}
		for k := range 3 {
			t.lo[k] = min(t.v[k], t.v[k+3], t.v[k+6])
			t.hi[k] = max(t.v[k], t.v[k+3], t.v[k+6])
		}
	}
	var build func(ts []tri, depth int) (id int32, lo, hi [3]float32)
	build = func(ts []tri, depth int) (int32, [3]float32, [3]float32) {
		if len(ts) <= 4 {
			first := int32(len(s.faces) / 3)
			lo, hi := ts[0].lo, ts[0].hi
			for _, t := range ts {
				base := int32(len(s.vertices) / 3)
				s.vertices = append(s.vertices, t.v[:]...)
				s.faces = append(s.faces, base, base+1, base+2)
				for k := range 3 {
					lo[k], hi[k] = min(lo[k], t.lo[k]), max(hi[k], t.hi[k])
				}
			}
			return ^(first<<3 | int32(len(ts)-1)), lo, hi
		}
		axis := depth % 3
		quickSelect(len(ts), func(i, j int) bool { return ts[i].lo[axis] < ts[j].lo[axis] }, func(i, j int) { ts[i], ts[j] = ts[j], ts[i] })
		id := len(s.nodes)
		s.nodes = append(s.nodes, bvhNode{})
		a, alo, ahi := build(ts[:len(ts)/2], depth+1)
		b, blo, bhi := build(ts[len(ts)/2:], depth+1)
		s.nodes[id] = bvhNode{[12]float32{alo[0], ahi[0], alo[1], ahi[1], blo[0], bhi[0], blo[1], bhi[1], alo[2], ahi[2], blo[2], bhi[2]}, [4]int32{a, b}}
		for k := range 3 {
			alo[k], ahi[k] = min(alo[k], blo[k]), max(ahi[k], bhi[k])
		}
		return int32(id), alo, ahi
	}
	build(tris, 0)
	for i := range rays { // neighbours look in similar directions from one point
		s.org = append(s.org, -14, 1, 2)
		s.dir = append(s.dir, 1, float32(i%128)/128-0.5+rng.Float32()*0.01, float32(i/128)/128-0.5+rng.Float32()*0.01)
	}
	return s
}

// quickSelect sorts; trees of tests are small.
func quickSelect(n int, less func(i, j int) bool, swap func(i, j int)) {
	for i := 1; i < n; i++ {
		for j := i; j > 0 && less(j, j-1); j-- {
			swap(j, j-1)
		}
	}
}

// closest is the kernel's triangle loop in Go, over all triangles: the oracle.
func (s *testScene) closest(ray int) (float32, int32) {
	fma := func(a, b, c float32) float32 { // one rounding, by exact arithmetic on wide floats
		return float32FMA(a, b, c)
	}
	dop := func(a, b, c, d float32) float32 {
		cd := c * d
		return fma(a, b, -cd) + fma(-c, d, cd)
	}
	cross := func(a, b [3]float32) [3]float32 {
		return [3]float32{dop(a[1], b[2], a[2], b[1]), dop(a[2], b[0], a[0], b[2]), dop(a[0], b[1], a[1], b[0])}
	}
	dot := func(a, b [3]float32) float32 { return fma(a[0], b[0], fma(a[1], b[1], a[2]*b[2])) }
	sub := func(a, b [3]float32) [3]float32 { return [3]float32{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
	o, d := [3]float32(s.org[3*ray:]), [3]float32(s.dir[3*ray:])
	best, winner := float32(math.Inf(1)), int32(-1)
	for i := range int32(len(s.faces) / 3) {
		v0 := [3]float32(s.vertices[3*s.faces[3*i]:])
		v1 := [3]float32(s.vertices[3*s.faces[3*i+1]:])
		v2 := [3]float32(s.vertices[3*s.faces[3*i+2]:])
		e1, e2, r := sub(v1, v0), sub(v2, v0), sub(o, v0)
		p, q := cross(d, e2), cross(r, e1)
		det := dot(e1, p)
		if det == 0 {
			continue
		}
		u, v, t := dot(r, p)/det, dot(d, q)/det, dot(e2, q)/det
		if u < 0 || v < 0 || u+v > 1 || !(t > 0) {
			continue
		}
		if t < best || t == best && i < winner {
			best, winner = t, i
		}
	}
	return best, winner
}

func (s *testScene) upload(r *rig, rays int) []any {
	out, prim := r.alloc(uint64(4*rays), false), r.alloc(uint64(4*rays), false)
	return []any{upload(r, s.nodes), upload(r, s.vertices), upload(r, s.faces), upload(r, s.org), upload(r, s.dir), out, prim, uint32(rays)}
}

func TestTraversal(t *testing.T) {
	const rays = 200
	s := makeScene(rand.New(rand.NewSource(1)), 300, rays)
	r := rigFile(t, "traversal.ptx")
	args := s.upload(r, rays)
	r.mustRun(2, 128, args...)
	tout, prim := download[float32](r, args[5].(uint64), rays), download[int32](r, args[6].(uint64), rays)
	hits := 0
	for i := range rays {
		wt, wp := s.closest(i)
		require.Equal(t, wp, prim[i], "ray %d", i)
		require.Equal(t, math.Float32bits(wt), math.Float32bits(tout[i]), "ray %d", i)
		if wp >= 0 {
			hits++
		}
	}
	require.Greater(t, hits, 10)
}

// BenchmarkTraversal reports lane instructions per second, on all cores, and lanes per instruction.
func BenchmarkTraversal(b *testing.B) {
	const rays = 1 << 14
	s := makeScene(rand.New(rand.NewSource(1)), 4000, rays)
	r := rigFile(b, "traversal.ptx")
	args := s.upload(r, rays)
	var lanes, warps uint64
	b.ResetTimer()
	for range b.N {
		st := r.mustRun(rays/128, 128, args...)
		lanes += st.LaneInstructions
		warps += st.WarpInstructions
	}
	b.ReportMetric(float64(lanes)/b.Elapsed().Seconds()/1e6, "Mlane-instr/s")
	b.ReportMetric(float64(lanes)/float64(warps), "lanes/instr")
}
