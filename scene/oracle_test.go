package scene_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/oracle"
)

// The float64 brute force judges unambiguous rows, the single-precision one, which
// has no tree, the winner of every row.
func requireOracle(t *testing.T, m scene.Mesh, b batch, maxAmbiguous float64) {
	t.Helper()
	ambiguous := requireOracleTable(t, build(t, m).intersect(b, scene.All), m, b)
	require.LessOrEqual(t, float64(ambiguous), maxAmbiguous*float64(b.rows()))
}

// requireOracleTable judges an answer about a scene whose faces are those of m, and
// counts ambiguous rows.
func requireOracleTable(t *testing.T, got table, m scene.Mesh, b batch) (ambiguous int) {
	t.Helper()
	n := b.rows()
	exact := oracle.New(m.Vertices, m.Faces).IntersectAll(n, b.ray)
	winners := oracle.NewCanonical(m.Vertices, m.Faces).Winners(n, b.ray)
	hits := 0
	for i := range n {
		r := got.row(i)
		require.EqualValues(t, winners[i].Prim, r.global, "row %d", i)
		require.Equal(t, math.Float32bits(winners[i].T), math.Float32bits(r.t), "row %d: t", i)
		require.NoError(t, exact[i].Check(oracle.Answer{
			Prim: int(r.global), T: r.t, B1: r.uv[0], B2: r.uv[1], N: r.n,
		}), "row %d", i)
		if exact[i].Ambiguous {
			ambiguous++
		}
		if r.global >= 0 {
			hits++
		}
	}
	require.Greater(t, hits, n/20, "too few hits to mean anything")
	return ambiguous
}

func TestOracleSoup(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, size := range []float32{.05, .5} {
		b := batch{}
		for range 2000 {
			b.add(vec{rng.Float32(), rng.Float32(), rng.Float32()}, randomDirection(rng))
		}
		requireOracle(t, randomSoup(rng, 1000, size), b, .02)
	}
}

func TestOracleBoundedRays(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	b := batch{}
	for range 2000 {
		b.add(vec{rng.Float32(), rng.Float32(), rng.Float32()}, randomDirection(rng))
		b.tmax = append(b.tmax, .3*rng.Float32())
	}
	requireOracle(t, randomSoup(rng, 1000, .3), b, .02)
}

// lattice is a flat grid of n*n cells whose corners are jittered in height.
func lattice(rng *rand.Rand, n int, height float32) scene.Mesh {
	var m scene.Mesh
	for i := range n + 1 {
		for j := range n + 1 {
			m.Vertices = append(m.Vertices, float32(i)/float32(n), float32(j)/float32(n), height*rng.Float32())
		}
	}
	at := func(i, j int) int32 { return int32(i*(n+1) + j) }
	for i := range n {
		for j := range n {
			m.Faces = append(m.Faces, at(i, j), at(i+1, j), at(i+1, j+1), at(i, j), at(i+1, j+1), at(i, j+1))
		}
	}
	return m
}

// Rays at vertices and edges: the rows where a tree or a tie rule goes wrong.
func TestOracleLattice(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	const n = 24
	for _, height := range []float32{0, .02} {
		m := lattice(rng, n, height)
		b := batch{}
		for i := range 3000 {
			f := rng.IntN(len(m.Faces)/3) * 3
			v0, v1 := vec(m.Vertices[3*m.Faces[f]:]), vec(m.Vertices[3*m.Faces[f+1]:])
			target := v0
			if i%3 == 1 {
				u := rng.Float32()
				target = vec{v0[0] + u*(v1[0]-v0[0]), v0[1] + u*(v1[1]-v0[1]), v0[2] + u*(v1[2]-v0[2])}
			}
			o := vec{rng.Float32(), rng.Float32(), 1 + rng.Float32()}
			if i%2 == 0 {
				o = vec{target[0], target[1], 1} // straight down
			}
			b.add(o, vec{target[0] - o[0], target[1] - o[1], target[2] - o[2]})
		}
		requireOracle(t, m, b, 1)
	}
}

// Long triangles seen from close by: rounding is largest against the distance.
func TestOracleFanOfLongTriangles(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	var m scene.Mesh
	const n = 200
	m.Vertices = append(m.Vertices, 0, 0, 0)
	for i := range n + 1 {
		a := float32(i) / n
		m.Vertices = append(m.Vertices, 1000, 1000*a, 3*rng.Float32())
		if i > 0 {
			m.Faces = append(m.Faces, 0, int32(i), int32(i+1))
		}
	}
	b := batch{}
	for range 2000 {
		x := 1000 * rng.Float32()
		b.add(vec{x, x * float32(rng.IntN(n)) / n, 1 + 3*rng.Float32()}, randomDirection(rng))
		d := b.d[len(b.d)-3:]
		d[2] = -max(d[2], -d[2])
	}
	requireOracle(t, m, b, 1)
}

func TestOracleFarFromTheOrigin(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	shift := vec{1000.1, -2000.3, 500.7}
	b := batch{}
	for range 2000 {
		b.add(vec{shift[0] + rng.Float32(), shift[1] + rng.Float32(), shift[2] + rng.Float32()}, randomDirection(rng))
	}
	// At this distance the margins of the float64 judgement are wide; the
	// single-precision one judges every row.
	requireOracle(t, moved(randomSoup(rng, 500, .5), shift), b, 1)
}
