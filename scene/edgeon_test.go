package scene_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/oracle"
)

// A triangle that a ray lies in the plane of is hit or not by a rounding. Either
// way the row has a result: what wins the search is never taken back, so nothing
// can hide the wall behind it.
func TestEdgeOnTrianglesHideNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	corner := func() vec {
		return vec{float32(rng.IntN(9) - 4), float32(rng.IntN(9) - 4), float32(rng.IntN(9) - 4)}
	}
	m := triangles(vec{-100, -1e4, -1e4}, vec{-100, 1e4, -1e4}, vec{-100, 0, 1e4}, // the wall
		vec{-3, 2, 2}, vec{-1, 3, -1}, vec{-2, -2, -2})
	b := ray(vec{0, -1, -5}, vec{-4, 7, 11})
	for range 300 {
		// The ray starts at a point of the triangle's plane and runs in it.
		a, c, d := corner(), corner(), corner()
		m2 := triangles(a, c, d)
		first := int32(len(m.Vertices) / 3)
		m.Vertices = append(m.Vertices, m2.Vertices...)
		m.Faces = append(m.Faces, first, first+1, first+2)
		i, j := float32(rng.IntN(7)-3), float32(rng.IntN(7)-3)
		var o, dir vec
		for k := range 3 {
			o[k] = a[k] + 3*(c[k]-a[k])
			dir[k] = i*(c[k]-a[k]) + j*(d[k]-a[k])
		}
		if dir == (vec{}) || dir[0] >= 0 {
			continue
		}
		b.add(o, dir)
	}
	got := build(t, m).intersect(b, scene.All)
	wall := oracle.NewCanonical(m.Vertices[:9], m.Faces[:3])
	facing := 0
	for i, want := range oracle.NewCanonical(m.Vertices, m.Faces).Winners(b.rows(), b.ray) {
		r := got.row(i)
		require.EqualValues(t, want.Prim, r.global, "row %d", i)
		require.Equal(t, math.Float32bits(want.T), math.Float32bits(r.t), "row %d", i)
		if prim, _ := wall.Winner(b.ray(i)); prim == 0 {
			facing++
			require.GreaterOrEqual(t, r.global, int32(0), "row %d flies through the wall", i)
		}
	}
	require.Greater(t, facing, 50)
}

// Every ray from inside a closed box hits, on a lattice where rays run along
// faces, edges and through corners of what stands in the box.
func TestClosedBoxOnALattice(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 11))
	m := unitCube()
	for i := range m.Vertices {
		m.Vertices[i] = 4*m.Vertices[i] - 2
	}
	point := func() vec {
		return vec{float32(rng.IntN(33)-16) / 16, float32(rng.IntN(33)-16) / 16, float32(rng.IntN(33)-16) / 16}
	}
	for range 60 {
		first := int32(len(m.Vertices) / 3)
		for range 3 {
			p := point()
			m.Vertices = append(m.Vertices, p[:]...)
		}
		m.Faces = append(m.Faces, first, first+1, first+2)
	}
	b := batch{}
	for b.rows() < 8000 {
		// Between two points of one triangle's plane.
		f := 3 * (12 + rng.IntN(60))
		at := func(u, v int) (p vec) {
			for k := range 3 {
				a := m.Vertices[3*int(m.Faces[f])+k]
				p[k] = a + float32(u)/4*(m.Vertices[3*int(m.Faces[f+1])+k]-a) + float32(v)/4*(m.Vertices[3*int(m.Faces[f+2])+k]-a)
			}
			return p
		}
		o, p := at(rng.IntN(9)-4, rng.IntN(9)-4), at(rng.IntN(9)-4, rng.IntN(9)-4)
		d := vec{p[0] - o[0], p[1] - o[1], p[2] - o[2]}
		if d == (vec{}) || max(abs(o[0]), abs(o[1]), abs(o[2])) >= 2 {
			continue
		}
		b.add(o, d)
	}
	got := build(t, m).intersect(b, scene.All)
	for i := range b.rows() {
		r := got.row(i)
		require.GreaterOrEqual(t, r.global, int32(0), "row %d leaves the box", i)
		require.GreaterOrEqual(t, r.t, float32(1e-6))
		for k, w := range r.bary {
			require.True(t, w >= 0 && w <= 1, "row %d: weight %d is %g", i, k, w)
		}
	}
}

// The t of a hit as bound of the same ray finds the same hit; the next smaller
// number does not.
func TestReturnedTIsTheBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 11))
	b := batch{}
	for range 3000 {
		b.add(vec{rng.Float32(), rng.Float32(), rng.Float32()}, randomDirection(rng))
	}
	r := build(t, randomSoup(rng, 500, .4))
	first := r.intersect(b, scene.All)
	hits := 0
	at, below := make([]float32, b.rows()), make([]float32, b.rows())
	for i := range at {
		at[i] = first.row(i).t
		below[i] = math.Nextafter32(at[i], 0)
		if first.row(i).global >= 0 {
			hits++
		}
	}
	require.Greater(t, hits, 1000)
	require.Equal(t, first, r.intersect(b.until(at...), scene.All))
	shorter := r.intersect(b.until(below...), scene.All)
	for i := range at {
		if first.row(i).global >= 0 {
			require.NotEqual(t, first.row(i).global, shorter.row(i).global, "row %d", i)
		}
	}
}

func abs(v float32) float32 { return float32(math.Abs(float64(v))) }
