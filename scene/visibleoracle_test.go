package scene_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// judge compares rows with both brute forces: the one in single precision, whose
// answer the tree search must give for every row, and the one in float64, whose answer
// every backend must give for the rows that it is sure of.
type judge struct {
	*rig
	canonical *oracle.Canonical
	exact     *oracle.Oracle
}

func (j judge) everyRow() bool { return j.Backend() == scene.CUDA || !gputest.Native() }

// sight is what a segment sees, and whether that is certain.
func (j judge) sight(s, e vec, ignore []int32) (canonical, exact, certain bool) {
	x := j.exact.Segment(s, e, ignore...)
	return j.canonical.Visible(s, e, ignore...), x.Visible, !x.Ambiguous
}

// requireSight compares one flag.
func (j judge) requireSight(row int, got uint8, canonical, exact, certain bool) {
	j.Helper()
	if j.everyRow() {
		require.Equal(j, flag(canonical), got, "row %d", row)
	}
	if certain {
		require.Equal(j, flag(exact), got, "row %d in float64", row)
	}
}

// onJudgedBackends runs f with both backends over the meshes.
func onJudgedBackends(t *testing.T, meshes []scene.Mesh, f func(j judge)) {
	m := joined(meshes)
	canonical, exact := oracle.NewCanonical(m.Vertices, m.Faces), oracle.New(m.Vertices, m.Faces)
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		f(judge{open(meshes...), canonical, exact})
	})
}

// visibleScenes are meshes, the points between which to look, and the part of the
// segments that float64 must be sure of.
var visibleScenes = map[string]struct {
	meshes  func(rng *rand.Rand) []scene.Mesh
	point   func(rng *rand.Rand, meshes []scene.Mesh) vec
	certain float64
}{
	"soup": {
		func(rng *rand.Rand) []scene.Mesh { return []scene.Mesh{randomSoup(rng, 200, .2)} },
		func(rng *rand.Rand, _ []scene.Mesh) vec { return randomPoint(rng, 1) }, .95,
	},
	"several meshes": {
		func(rng *rand.Rand) []scene.Mesh {
			return []scene.Mesh{randomSoup(rng, 50, .3), dynamic(randomSoup(rng, 80, .2)), randomSoup(rng, 30, .4)}
		},
		func(rng *rand.Rand, _ []scene.Mesh) vec { return randomPoint(rng, 1) }, .95,
	},
	// Segments end on surfaces and go through vertices and along edges.
	"lattice": {
		func(rng *rand.Rand) []scene.Mesh { return []scene.Mesh{lattice(rng, 8, .1)} },
		func(rng *rand.Rand, meshes []scene.Mesh) vec {
			v := meshes[0].Vertices
			p := vec(v[3*rng.IntN(len(v)/3):])
			switch rng.IntN(3) {
			case 0:
				p[2] += rng.Float32() - .5
			case 1:
				p = randomPoint(rng, 1)
			}
			return p
		}, 0,
	},
	"far from the origin": {
		func(rng *rand.Rand) []scene.Mesh {
			return []scene.Mesh{moved(randomSoup(rng, 100, .5), vec{1000.1, -2000.3, 500.7})}
		},
		func(rng *rand.Rand, _ []scene.Mesh) vec {
			p := randomPoint(rng, 1)
			return vec{p[0] + 1000.1, p[1] - 2000.3, p[2] + 500.7}
		}, 0,
	},
}

// visibleRows is how many rows the random tests have.
func visibleRows() int {
	if gputest.Native() {
		return 20_000
	}
	return 400
}

// onVisibleScenes runs f with every scene and backend. point is a random point, which
// sometimes is not finite.
func onVisibleScenes(t *testing.T, f func(j judge, rng *rand.Rand, point func() vec, faces int, certain float64)) {
	for name, c := range visibleScenes {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(31, 1))
			meshes := c.meshes(rng)
			faces := len(joined(meshes).Faces) / 3
			point := func() vec {
				p := c.point(rng, meshes)
				if rng.IntN(100) == 0 {
					p[rng.IntN(3)] = []float32{nan, inf, -inf}[rng.IntN(3)]
				}
				return p
			}
			onJudgedBackends(t, meshes, func(j judge) { f(j, rng, point, faces, c.certain) })
		})
	}
}

// randomIds are ids of an ignore list: faces, and some that do not exist.
func randomIds(rng *rand.Rand, n, faces int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(rng.IntN(faces+4) - 2)
	}
	return ids
}

func randomMask(rng *rand.Rand, n int) []uint8 {
	mask := make([]uint8, n)
	for i := range mask {
		mask[i] = uint8(min(rng.IntN(10), 1) * (1 + rng.IntN(255)))
	}
	return mask
}

func TestVisibleOracle(t *testing.T) {
	onVisibleScenes(t, func(j judge, rng *rand.Rand, point func() vec, faces int, least float64) {
		n := visibleRows()
		b := segments{active: randomMask(rng, n)}
		for range n {
			b.add(point(), point())
		}
		for _, width := range []int{0, 1, 40} {
			b.ignore = randomIds(rng, n*width, faces)
			if width == 40 {
				// What blocks the segment does not.
				for i := range n {
					if p := j.canonical.Blocker(b.s[i], b.e[i]); p >= 0 {
						b.ignore[width*i+rng.IntN(width)] = int32(p)
					}
				}
			}
			got := j.visible(b)
			sure, seen := 0, 0
			for i, v := range got {
				if !b.on(i) {
					require.Zero(j, v, "row %d is inactive", i)
					continue
				}
				canonical, exact, certain := j.sight(b.s[i], b.e[i], b.list(i))
				j.requireSight(i, v, canonical, exact, certain)
				seen += int(v)
				if certain {
					sure++
				}
			}
			require.GreaterOrEqual(j, float64(sure), least*.9*float64(n), "few rows are certain")
			require.Greater(j, seen, n/20)
			require.Less(j, seen, n*9/10)
		}
	})
}

func TestVisiblePairOracle(t *testing.T) {
	onVisibleScenes(t, func(j judge, rng *rand.Rand, point func() vec, faces int, _ float64) {
		n := visibleRows()
		b := segments{active: randomMask(rng, n), ignore: randomIds(rng, 7*n, faces)}
		for range n {
			b.add(point(), point())
			b.other = append(b.other, point())
		}
		first, second := j.visiblePair(b)
		for i := range n {
			if !b.on(i) || !finite(b.s[i]) || !finite(b.e[i]) || !finite(b.other[i]) {
				require.Zero(j, first[i]+second[i], "row %d", i)
				continue
			}
			canonical, exact, certain := j.sight(b.s[i], b.e[i], b.list(i))
			j.requireSight(i, first[i], canonical, exact, certain)
			canonical, exact, certain = j.sight(b.s[i], b.other[i], b.list(i))
			j.requireSight(i, second[i], canonical, exact, certain)
		}
		require.Subset(j, first, []uint8{0, 1})
		require.Subset(j, second, []uint8{0, 1})
	})
}

func finite(p vec) bool { return p[0]-p[0]+p[1]-p[1]+p[2]-p[2] == 0 }

func TestVisibleEdgeOracle(t *testing.T) {
	onVisibleScenes(t, func(j judge, rng *rand.Rand, point func() vec, _ int, _ float64) {
		n := visibleRows()
		for _, fractions := range [][]float32{nil, {.3}, {1.5, -.5, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1, 0, 2, -1, .05}} {
			b := edges{active: randomMask(rng, n), fractions: fractions}
			for range n {
				a, e := point(), point()
				row := oracle.EdgeRow{Source: point(), Position: a, TMin: 2 * rng.Float32(), TMax: 2 * rng.Float32()}
				row.Direction = vec{e[0] - a[0], e[1] - a[1], e[2] - a[2]}
				b.rows = append(b.rows, row)
			}
			if fractions == nil {
				fractions = []float32{0, .25, .5, .75, 1}
			}
			got := j.visibleEdge(b)
			for i, v := range got {
				if b.active[i] == 0 {
					require.Zero(j, v, "row %d is inactive", i)
					continue
				}
				exact, ambiguous := j.exact.Edge(b.rows[i], fractions)
				j.requireSight(i, v, j.canonical.VisibleEdge(b.rows[i], fractions), exact, !ambiguous)
			}
			require.Subset(j, got, []uint8{0, 1})
		}
	})
}

func TestVisibleChainOracle(t *testing.T) {
	onVisibleScenes(t, func(j judge, rng *rand.Rand, point func() vec, faces int, _ float64) {
		n := visibleRows()
		for _, c := range []struct{ segments, width int }{{1, 0}, {4, 2}, {4, 0}} {
			b := polylines{segments: c.segments, active: randomMask(rng, n), ignore: randomIds(rng, n*c.segments*c.width, faces)}
			for range n {
				for range c.segments + 1 {
					b.points = append(b.points, point())
				}
				b.length = append(b.length, int32(rng.IntN(c.segments+4)-1))
			}
			blocked, later := 0, 0
			for i, got := range j.visibleChain(b) {
				if b.active[i] == 0 {
					require.Equal(j, oracle.Polyline{Segment: -1, Prim: -1}, got, "row %d is inactive", i)
					continue
				}
				points, length, ignore := b.row(i)
				if j.everyRow() {
					require.Equal(j, j.canonical.VisibleChain(points, length, ignore), got, "row %d", i)
				}
				exact, ambiguous, blocker := j.exact.Chain(points, length, ignore)
				if ambiguous {
					continue
				}
				if blocker {
					exact.Prim = got.Prim
				}
				require.Equal(j, exact, got, "row %d in float64", i)
				if got.Prim >= 0 {
					blocked++
				}
				if got.Segment > 0 {
					later++
				}
			}
			require.Greater(j, blocked, n/20)
			if c.segments > 1 {
				require.Positive(j, later)
			}
		}
	})
}

// Rows do not know which others are in their batch.
func TestVisibleSplitsConcatenate(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 1))
	r := build(t, randomSoup(rng, 200, .2))
	const n = 500
	b := segments{active: randomMask(rng, n), ignore: randomIds(rng, 3*n, 200)}
	for range n {
		b.add(randomPoint(rng, 1), randomPoint(rng, 1))
	}
	whole := r.visible(b)
	for _, cut := range []int{1, 7, 250, 1 + rng.IntN(n-1)} {
		require.Equal(t, whole, append(r.visible(b.part(0, cut)), r.visible(b.part(cut, n))...), "cut at %d", cut)
	}
}
