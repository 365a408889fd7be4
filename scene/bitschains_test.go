package scene_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/brute"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// chainSearcher enqueues the search of a prepared call of TraceReflections.
type chainSearcher func(c *scene.Call, rays scene.Rays, in, out []scene.RowColumn)

// answerChains runs a search of the batch in memory full of other values, then finalize.
func (r *rig) answerChains(b batch, bounces int, search chainSearcher) chains {
	r.Helper()
	rays := r.upload(b)
	h, c, err := r.PrepareReflections(background, rays, bounces, scene.ChainAll)
	require.NoError(r, err)
	poison(r, h.Valid)
	poison(r, h.PrimIDs)
	for _, v := range []cuda.Slice[float32]{h.T, h.ImageSources, h.HitPoints, h.Normals, h.Barycentric} {
		poison(r, v)
	}
	in, out := c.Columns()
	search(c, rays, in, out)
	require.NoError(r, c.Finalize(0, c.Rows))
	return r.readChains(h)
}

// ownChains is the search of the scene.
func (r *rig) ownChains() chainSearcher { return chainSearcher(r.own()) }

// differing lists the slots of which any bit differs.
func (c chains) differing(d chains) (slots []int) {
	same := func(x, y []float32, i, width int) bool {
		for k := width * i; k < width*(i+1); k++ {
			if math.Float32bits(x[k]) != math.Float32bits(y[k]) {
				return false
			}
		}
		return true
	}
	for i := range c.valid {
		if c.valid[i] != d.valid[i] || c.prim[i] != d.prim[i] || !same(c.t, d.t, i, 1) || !same(c.image, d.image, i, 3) ||
			!same(c.point, d.point, i, 3) || !same(c.normal, d.normal, i, 3) || !same(c.bary, d.bary, i, 2) {
			slots = append(slots, i)
		}
	}
	return slots
}

// R12 at full size: chains in a closed room with a soup in it have the bits of chains
// that are searched among all triangles, by three trees.
func TestBitsOfChains(t *testing.T) {
	const bounces = 4
	rows, triangles := 512, 100
	if gputest.Native() {
		rows, triangles = 100_000, 20_000
	}
	rng := rand.New(rand.NewPCG(74, 1))
	size := .2 * float32(math.Sqrt(100/float64(triangles)))
	m := join(closedBox(vec{.5, .5, .5}, 1.25, 2), randomSoup(rng, triangles, size))
	m.NoEdges = true
	b := scatteredRays(rng, rows)
	c := gputest.Open(t, 1, nil).Context(t, 0)
	var want chains
	for _, kind := range scene.TreeKinds {
		r := openOn(t, c)
		r.UseTree(kind)
		r.add(m)
		require.NoError(t, r.Build(background))
		if want.valid == nil {
			mesh := brute.New(t, r.Stream(), m.Vertices, m.Faces)
			want = r.answerChains(b, bounces, func(_ *scene.Call, rays scene.Rays, _, out []scene.RowColumn) {
				ids, err := cuda.Reinterpret[int32](out[0].Data)
				require.NoError(t, err)
				mesh.Chains(brute.Rays{O: rays.O, D: rays.D}, bounces, ids)
			})
			requireInvariants(t, want, m, b)
			requireChainModel(t, m, b, want, some(rng, rows, 1024))
		}
		got := r.answerChains(b, bounces, r.ownChains())
		slots := want.differing(got)
		require.Empty(t, slots[:min(len(slots), 10)], "%s tree: %d bounces differ, these first", kind, len(slots))
		first := r.answer(b, r.own())
		for i := range rows {
			s := got.slot(i, 0)
			if first.global[i] != s.prim || math.Float32bits(first.t[i]) != math.Float32bits(s.t) {
				t.Fatalf("row %d: bounce %+v, intersect %+v", i, s, first.row(i))
			}
		}
	}
	full := count(want.valid, func(v uint8) bool { return v == 1 })
	t.Logf("%d triangles, %d rays, %d bounces of %d", len(m.Faces)/3, rows, full, rows*bounces)
	assert.Greater(t, full, rows*bounces*9/10)
}

// requireChainModel compares rows with the brute force of the host.
func requireChainModel(t *testing.T, m scene.Mesh, b batch, got chains, rows []int) {
	t.Helper()
	model := oracle.NewCanonical(m.Vertices, m.Faces)
	want := make([][]oracle.Reflection, len(rows))
	oracle.Each(len(rows), func(k int) {
		o, d, tmax := b.ray(rows[k])
		want[k] = model.Reflect(o, d, tmax, got.bounces)
	})
	for k, i := range rows {
		require.Equal(t, len(want[k]), got.length(i), "row %d", i)
		for j, w := range want[k] {
			s := slot{t: w.T, prim: int32(w.Prim), p: w.P, n: w.N, image: w.Image, b1: w.B1, b2: w.B2}
			require.Equal(t, s.bits(), got.slot(i, j).bits(), "row %d, bounce %d", i, j)
		}
	}
}

// A ray that is reflected by a plane does not meet it again, wherever on vertices and
// edges it was: no hit is found twice.
func TestPlanesAreHitOnce(t *testing.T) {
	cells := 12
	if gputest.Native() {
		cells = 191
	}
	l := plane(cells)
	c := gputest.Open(t, 1, nil).Context(t, 0)
	a := l.aim(rand.New(rand.NewPCG(75, 1)), l.mesh, bitsRows())
	for _, kind := range scene.TreeKinds {
		r := openOn(t, c)
		r.UseTree(kind)
		r.add(l.mesh)
		require.NoError(t, r.Build(background))
		got := r.answerChains(a.batch, 2, r.ownChains())
		for i, certain := range a.certain {
			if certain && got.valid[2*i] != 1 || got.valid[2*i+1] != 0 {
				o, d, _ := a.ray(i)
				t.Fatalf("%s tree, row %d: o %v d %v: %+v, %+v", kind, i, o, d, got.slot(i, 0), got.slot(i, 1))
			}
		}
	}
}

// What segments through vertices and edges see, and what blocks them, is what a test of
// all triangles says, with and without triangles to ignore, by three trees.
func TestBitsOfSegments(t *testing.T) {
	for _, l := range landscapes() {
		t.Run(l.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(76, 1))
			c := gputest.Open(t, 1, nil).Context(t, 0)
			n := bitsRows() / 2
			m := scene.Mesh{Vertices: l.moved, Faces: l.mesh.Faces, NoEdges: true}
			a := l.aim(rng, m, n)
			var b segments
			for i := range n {
				o, d, _ := a.ray(i)
				reach := []float32{1, 2, 1.5, .5}[rng.IntN(4)]
				b.add(o, vec{o[0] + reach*d[0], o[1] + reach*d[1], o[2] + reach*d[2]})
			}
			model := oracle.NewCanonical(m.Vertices, m.Faces)
			for _, width := range []int{0, 2} {
				var visible []uint8
				var blockers []int32
				for _, kind := range scene.TreeKinds {
					r := openOn(t, c)
					r.UseTree(kind)
					r.add(m)
					require.NoError(t, r.Build(background))
					if visible == nil {
						visible, blockers = r.bruteSegments(brute.New(t, r.Stream(), m.Vertices, m.Faces), b)
						for _, i := range some(rng, n, 1024) {
							require.EqualValues(t, model.Blocker(b.s[i], b.e[i], b.list(i)...), blockers[i], "row %d", i)
						}
					}
					require.Equal(t, visible, r.visible(b), "%s tree, %d ids to ignore", kind, width)
					chain := polylines{segments: 1, points: make([]vec, 2*n), length: make([]int32, n), ignore: b.ignore}
					for i := range n {
						chain.points[2*i], chain.points[2*i+1], chain.length[i] = b.s[i], b.e[i], 1
					}
					for i, p := range r.visibleChain(chain) {
						if p.AllVisible != (visible[i] == 1) || p.Prim != int(blockers[i]) {
							t.Fatalf("%s tree, %d ids to ignore, row %d: %+v, want blocker %d", kind, width, i, p, blockers[i])
						}
					}
				}
				blocked := count(visible, func(v uint8) bool { return v == 0 })
				t.Logf("%s, %d ids to ignore: %d segments, %d blocked", l.name, width, n, blocked)
				require.Greater(t, blocked, n/50)
				require.Less(t, blocked, n)
				// The next round ignores what blocked the segments of this one.
				for _, id := range blockers {
					b.ignore = append(b.ignore, int32(rng.IntN(len(m.Faces)/3)), id)
				}
			}
		})
	}
}

// bruteSegments tests all triangles.
func (r *rig) bruteSegments(m *brute.Mesh, b segments) (visible []uint8, blockers []int32) {
	r.Helper()
	flags, ids := toDevice(r, make([]uint8, len(b.s))), toDevice(r, make([]int32, len(b.s)))
	poison(r, flags)
	poison(r, ids)
	m.Segments(brute.Segments{Start: toDevice(r, flat(b.s)), End: toDevice(r, flat(b.e)), Ignore: absent(r, b.ignore)}, flags, ids)
	return toHost(r, flags), toHost(r, ids)
}
