package scene_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/brute"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// bitsRows is the rows of batches of which every bit is compared.
func bitsRows() int {
	if gputest.Native() {
		return 1 << 20
	}
	return 1024
}

// searcher enqueues the search of a prepared call.
type searcher func(c *scene.Call, rays scene.Rays, in, out []scene.RowColumn)

// answer runs a search of the batch in memory full of other values, then finalize.
func (r *rig) answer(b batch, search searcher) table {
	r.Helper()
	rays := r.upload(b)
	h, c, err := r.PrepareIntersect(background, rays, scene.All)
	require.NoError(r, err)
	defer func() { require.NoError(r, h.Close()) }()
	for _, v := range []cuda.Slice[float32]{h.T, h.P, h.N, h.GeoN, h.UV, h.Barycentric} {
		poison(r, v)
	}
	for _, v := range []cuda.Slice[int32]{h.ShapeID, h.PrimID, h.LocalPrimID, h.GlobalPrimID} {
		poison(r, v)
	}
	in, out := c.Columns()
	search(c, rays, in, out)
	require.NoError(r, c.Finalize(0, c.Rows))
	return r.download(h)
}

// own is the search of the scene.
func (r *rig) own() searcher {
	return func(c *scene.Call, _ scene.Rays, in, out []scene.RowColumn) {
		r.Helper()
		require.NoError(r, c.Search(r.Scene, c.Stream, in, out, 0, c.Rows))
	}
}

// byBrute is the search of all triangles.
func byBrute(t testing.TB, m *brute.Mesh) searcher {
	return func(_ *scene.Call, rays scene.Rays, _, out []scene.RowColumn) {
		t.Helper()
		winners, err := cuda.Reinterpret[int32](out[0].Data)
		require.NoError(t, err)
		m.Closest(brute.Rays{O: rays.O, D: rays.D, TMax: rays.TMax, Active: rays.Active}, winners)
	}
}

// inPieces is the search of the scene, piece by piece in any order; other, if not nil, is
// a replica on another device that searches copies of some of the pieces.
func (r *rig) inPieces(rng *rand.Rand, b batch, other *rig) searcher {
	return func(c *scene.Call, _ scene.Rays, in, out []scene.RowColumn) {
		r.Helper()
		cuts := []int{0, b.rows()}
		for range 9 {
			cuts = append(cuts, rng.IntN(b.rows()+1))
		}
		slices.Sort(cuts)
		for _, k := range rng.Perm(len(cuts) - 1) {
			begin, end := cuts[k], cuts[k+1]
			if other == nil || k%2 == 0 || begin == end {
				require.NoError(r, c.Search(r.Scene, c.Stream, in, out, int64(begin), int64(end-begin)))
				continue
			}
			part := other.upload(b.part(begin, end))
			winners := toDevice(other, make([]uint8, 4*(end-begin)))
			local := []scene.RowColumn{column(r, part.O, 12), column(r, part.D, 12), {Width: 4}, {Width: 1}}
			require.NoError(r, c.Search(other.Scene, other.Stream(), local, []scene.RowColumn{{Data: winners, Width: 4}}, 0, int64(end-begin)))
			require.NoError(r, other.Stream().Synchronize(background))
			home, err := out[0].Data.Sub(4*begin, 4*end)
			require.NoError(r, err)
			require.NoError(r, cuda.CopyAsync(c.Stream, home, winners))
		}
	}
}

func column[T cuda.Scalar](r *rig, v cuda.Slice[T], width int) scene.RowColumn {
	r.Helper()
	data, err := cuda.Reinterpret[uint8](v)
	require.NoError(r, err)
	return scene.RowColumn{Data: data, Width: width}
}

// differing lists the rows of which any bit differs.
func (a table) differing(b table) (rows []int) {
	if len(a.t) != len(b.t) {
		return []int{-1}
	}
	same := func(x, y []float32, i, width int) bool {
		for k := width * i; k < width*(i+1); k++ {
			if math.Float32bits(x[k]) != math.Float32bits(y[k]) {
				return false
			}
		}
		return true
	}
	for i := range a.t {
		if !same(a.t, b.t, i, 1) || !same(a.p, b.p, i, 3) || !same(a.n, b.n, i, 3) || !same(a.geoN, b.geoN, i, 3) ||
			!same(a.uv, b.uv, i, 2) || !same(a.bary, b.bary, i, 3) || a.shape[i] != b.shape[i] ||
			a.prim[i] != b.prim[i] || a.local[i] != b.local[i] || a.global[i] != b.global[i] {
			rows = append(rows, i)
		}
	}
	return rows
}

// requireSameBits compares all columns of all rows.
func requireSameBits(t testing.TB, want, got table, what string) {
	t.Helper()
	if rows := want.differing(got); len(rows) > 0 {
		if i := rows[0]; i >= 0 {
			t.Logf("row %d: want %+v, have %+v", i, want.row(i), got.row(i))
		}
		require.Empty(t, rows[:min(len(rows), 10)], "%s: %d rows differ, these first", what, len(rows))
	}
}

// modelErrors compares rows with the brute force of the host, which shares no code with
// the kernels, and describes the differences.
func modelErrors(m scene.Mesh, b batch, got table, rows []int) (bad []string) {
	model := oracle.NewCanonical(m.Vertices, m.Faces)
	found := make([]string, len(rows))
	oracle.Each(len(rows), func(k int) {
		i := rows[k]
		o, d, tmax := b.ray(i)
		prim, t := model.Winner(o, d, tmax)
		r := got.row(i)
		if prim != int(r.global) || math.Float32bits(t) != math.Float32bits(r.t) {
			found[k] = fmt.Sprintf("row %d: triangle %d at %v, have %+v", i, prim, t, r)
			return
		}
		if prim < 0 {
			if r != miss {
				found[k] = fmt.Sprintf("row %d: a miss, have %+v", i, r)
			}
			return
		}
		h := model.Reflect(o, d, tmax, 1)[0] // its normal faces the ray
		flipped := vec{-h.N[0], -h.N[1], -h.N[2]}
		if h.P != r.p || h.B1 != r.uv[0] || h.B2 != r.uv[1] || h.B1 != r.bary[1] || h.B2 != r.bary[2] ||
			h.N != r.n && flipped != r.n {
			found[k] = fmt.Sprintf("row %d: %+v, have %+v", i, h, r)
		}
	})
	for _, s := range found {
		if s != "" {
			bad = append(bad, s)
		}
	}
	return bad
}

// some is so many random rows of n, all of them if there are no more.
func some(rng *rand.Rand, n, most int) []int {
	return rng.Perm(n)[:min(n, most)]
}

// cracks describes the rays that miss the surface they aim at, or hit it elsewhere.
func (l landscape) cracks(a targeted, got table, moved bool) (bad []string) {
	for i, certain := range a.certain {
		if !certain {
			continue
		}
		r := got.row(i)
		ok := r.global >= 0 && r.t <= 1+1e-3
		if l.flat && !moved {
			p := a.targets[i]
			ok = ok && r.t >= 1-1e-5 && max(abs(r.p[0]-p[0]), abs(r.p[1]-p[1]), abs(r.p[2]-p[2])) < 1e-5
		}
		if !ok {
			o, d, _ := a.ray(i)
			bad = append(bad, fmt.Sprintf("row %d: o %v d %v, have %+v", i, o, d, r))
		}
	}
	return bad
}

// aimedState is one position of the vertices, rays aimed at it, and their answers by
// brute force.
type aimedState struct {
	scene.Mesh
	targeted
	want table
}

// judge compares the brute force of the device with that of the host and with geometry.
func (s *aimedState) judge(t *testing.T, rng *rand.Rand, l landscape, moved bool) {
	t.Helper()
	require.Empty(t, modelErrors(s.Mesh, s.batch, s.want, some(rng, s.rows(), 2048)))
	bad := l.cracks(s.targeted, s.want, moved)
	require.Empty(t, bad[:min(len(bad), 5)], "%d rays go through the surface", len(bad))
	hits, certain := 0, 0
	for i, id := range s.want.global {
		if id >= 0 {
			hits++
		}
		if s.certain[i] {
			certain++
		}
	}
	require.Greater(t, hits, s.rows()/4)
	require.Greater(t, certain, s.rows()/50)
	t.Logf("%s: %d triangles, %d rays, %d hits, %d certain by geometry", l.name, len(s.Faces)/3, s.rows(), hits, certain)
}

// Every column of every row has the bits of a search of all triangles, half of the rays
// aimed at vertices and edges: by three trees, refitted and back, in pieces, and on
// other devices.
func TestBitsOfAimedRays(t *testing.T) {
	for _, l := range landscapes() {
		t.Run(l.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(72, 1))
			g := gputest.Open(t, min(2, gputest.Count()), nil)
			var states [2]aimedState
			for i, v := range [][]float32{l.mesh.Vertices, l.moved} {
				states[i].Mesh = scene.Mesh{Vertices: v, Faces: l.mesh.Faces}
				states[i].targeted = l.aim(rng, states[i].Mesh, bitsRows())
			}
			var costs []float64
			for _, kind := range scene.TreeKinds {
				r := openOn(t, g.Context(t, 0))
				r.UseTree(kind)
				r.add(l.mesh)
				require.NoError(t, r.Build(background))
				costs = append(costs, r.TreeCost())
				plan := r.TreePlan()
				for step, i := range []int{0, 1, 0} {
					what := fmt.Sprintf("%s tree, step %d", kind, step)
					s := &states[i]
					if step > 0 {
						r.update(0, s.Mesh)
						r.sync()
						require.Same(t, plan, r.TreePlan(), "%s was built anew", what)
					}
					if s.want.t == nil {
						s.want = r.answer(s.batch, byBrute(t, brute.New(t, r.Stream(), s.Vertices, s.Faces)))
						s.judge(t, rng, l, i == 1)
					}
					requireSameBits(t, s.want, r.answer(s.batch, r.own()), what)
					if step < 2 {
						requireSameBits(t, s.want, r.answer(s.batch, r.inPieces(rng, s.batch, nil)), what+", in pieces")
					}
				}
				if len(g.Devices) > 1 {
					other := openOn(t, g.Context(t, 1))
					require.NoError(t, other.Replicate(background, r.Scene))
					s := &states[0]
					requireSameBits(t, s.want, other.answer(s.batch, other.own()), kind+" tree, replica")
					requireSameBits(t, s.want, r.answer(s.batch, r.inPieces(rng, s.batch, other)), kind+" tree, on two devices")
				}
			}
			slices.Sort(costs)
			assert.Len(t, slices.Compact(costs), len(scene.TreeKinds), "trees of the same shape")
		})
	}
}

// The comparisons see a single winner that is another one, and trees with a box that
// is too small.
func TestBitsComparisonNotices(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 1))
	l := plane(8)
	c := gputest.Open(t, 1, nil).Context(t, 0)
	a := l.aim(rng, l.mesh, 512)
	tree := func(kind string) *rig {
		r := openOn(t, c)
		r.UseTree(kind)
		r.add(l.mesh)
		require.NoError(t, r.Build(background))
		return r
	}
	r := tree("bits")
	all := byBrute(t, brute.New(t, r.Stream(), l.mesh.Vertices, l.mesh.Faces))
	want := r.answer(a.batch, all)
	require.Empty(t, want.differing(r.answer(a.batch, r.own())))

	at := slices.IndexFunc(a.certain, func(c bool) bool { return c })
	for name, id := range map[string]int32{"another triangle": want.global[at] ^ 1, "none": -1} {
		got := r.answer(a.batch, func(c *scene.Call, rays scene.Rays, in, out []scene.RowColumn) {
			all(c, rays, in, out)
			one, err := out[0].Data.Sub(4*at, 4*at+4)
			require.NoError(t, err)
			require.NoError(t, cuda.CopyAsync(c.Stream, one, toDevice(r, []uint8{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})))
		})
		assert.Equal(t, []int{at}, want.differing(got), name)
		assert.Len(t, modelErrors(l.mesh, a.batch, got, []int{at}), 1, name)
		if id < 0 {
			assert.Len(t, l.cracks(a, got, false), 1, name)
		}
	}
	for _, kind := range scene.TreeKinds {
		for name, pick := range map[string]func() func(level int, leaves bool) bool{
			"root": func() func(int, bool) bool { return func(level int, _ bool) bool { return level == 0 } },
			"one above triangles": func() func(int, bool) bool {
				done := false
				return func(_ int, leaves bool) bool {
					first := leaves && !done
					done = done || leaves
					return first
				}
			},
		} {
			r := tree(kind)
			require.Equal(t, 1, r.AlterTree(t, pick()))
			got := r.answer(a.batch, r.own())
			assert.NotEmpty(t, want.differing(got), "%s tree, %s", kind, name)
			assert.NotEmpty(t, l.cracks(a, got, false), "%s tree, %s", kind, name)
		}
	}
}
