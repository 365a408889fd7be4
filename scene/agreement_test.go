package scene_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// agreementScene is a mesh, its vertices after a change that structures are refitted for,
// and where rays and segments start and end.
type agreementScene struct {
	name  string
	mesh  scene.Mesh
	moved []float32
	point func(rng *rand.Rand) vec
	// ambiguous is the part of rays and of segments that float64 may be unsure of.
	ambiguous float64
	closed    bool
}

// agreementScenes are small on emulated devices, where each row is compared with every
// triangle on the host.
func agreementScenes() []agreementScene {
	cells, triangles, walls := 6, 80, 2
	if gputest.Native() {
		cells, triangles, walls = 191, 1<<21, 8
	}
	rng := rand.New(rand.NewPCG(80, 1))
	jolted := func(m scene.Mesh, by vec) []float32 {
		v := make([]float32, len(m.Vertices))
		for i := range v {
			v[i] = m.Vertices[i] + by[i%3]*(rng.Float32()-.5)
		}
		return v
	}
	within := func(centre vec, size float32) func(*rand.Rand) vec {
		return func(rng *rand.Rand) (p vec) {
			for k := range p {
				p[k] = centre[k] + size*(rng.Float32()-.5)
			}
			return p
		}
	}
	cell := float32(workload.Span / float64(cells))
	// As many hits per ray for every number of triangles.
	half := float32(.0025 * math.Sqrt((1<<21)/float64(triangles)))
	centre := vec{1000.1, -1000.3, 1000.7}
	grid := ofWorkload(workload.Grid(cells, workload.Span))
	soup := ofWorkload(workload.Cloud(workload.SceneSeed, triangles, half, 1))
	room := closedBox(centre, 800, walls)
	return []agreementScene{
		{"plane grid", grid, jolted(grid, vec{0, 0, .1 * cell}), within(vec{}, workload.Span), .001, false},
		{"soup in a unit cube", soup, jolted(soup, vec{.1 * half, .1 * half, .1 * half}), within(vec{}, 1), .01, false},
		{"closed mesh at 1000 m", room, jolted(room, vec{4, 4, 4}), within(centre, 1000), .001, true},
	}
}

func ofWorkload(m workload.Mesh) scene.Mesh {
	return scene.Mesh{Vertices: m.Vertices, Faces: m.Faces, NoEdges: true, Dynamic: true}
}

// closedBox is a cube of so many squares along each edge, closed because its sides share
// their border.
func closedBox(centre vec, size float32, n int) scene.Mesh {
	m := scene.Mesh{NoEdges: true, Dynamic: true}
	ids := map[[3]int]int32{}
	at := func(c [3]int) int32 {
		id, ok := ids[c]
		if !ok {
			id = int32(len(ids))
			ids[c] = id
			for k := range c {
				m.Vertices = append(m.Vertices, centre[k]+size*(float32(c[k])/float32(n)-.5))
			}
		}
		return id
	}
	for axis := range 3 {
		for _, side := range []int{0, n} {
			for i := range n {
				for j := range n {
					corner := func(u, v int) int32 {
						c := [3]int{}
						c[axis], c[(axis+1)%3], c[(axis+2)%3] = side, i+u, j+v
						return at(c)
					}
					a, b, c, d := corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 1)
					m.Faces = append(m.Faces, a, b, c, a, c, d)
				}
			}
		}
	}
	return m
}

// agreement compares the backends over one state of a scene.
type agreement struct {
	*testing.T
	scene    agreementScene
	mesh     scene.Mesh
	own, opt *rig
	exact    *oracle.Oracle
	rng      *rand.Rand
}

// verdict is what float64 says of a row: whether it is unsure, and, where it is sure, what
// is wrong with the answer.
type verdict struct {
	ambiguous bool
	err       error
}

const (
	judgedRows = 4096 // random rows of a batch that float64 judges
	fewJudged  = 1024 // of the batches that are searched in much the same way
	mostDiffer = 100  // one row of so many may differ before it is not worth a judgement
)

// see is Visible in memory full of other values.
func (r *rig) see(b segments) []uint8 {
	r.Helper()
	v, c, err := r.PrepareVisible(background, b.upload(r))
	require.NoError(r, err)
	defer func() { require.NoError(r, v.Close()) }()
	poison(r, v.Visible)
	require.NoError(r, c.Run())
	return toHost(r, v.Visible)
}

// follow is VisibleChain, likewise.
func (r *rig) follow(b polylines) []oracle.Polyline {
	r.Helper()
	v, c, err := r.PrepareVisibleChain(background, b.upload(r))
	require.NoError(r, err)
	defer func() { require.NoError(r, v.Close()) }()
	poison(r, v.AllVisible)
	poison(r, v.FirstBlockedSegment)
	poison(r, v.FirstBlockedPrim)
	require.NoError(r, c.Run())
	all, segment, prim := toHost(r, v.AllVisible), toHost(r, v.FirstBlockedSegment), toHost(r, v.FirstBlockedPrim)
	out := make([]oracle.Polyline, len(all))
	for i := range out {
		out[i] = oracle.Polyline{AllVisible: all[i] == 1, Segment: int(segment[i]), Prim: int(prim[i])}
	}
	return out
}

// judge requires that rows that differ are ambiguous, and that those of a random part of
// all rows which are not ambiguous are right. It logs a line of a table.
func (a *agreement) judge(op string, rows, hits, most int, limit float64, same func(i int) bool, judge func(i int) verdict) {
	a.Helper()
	var differ []int
	for i := range rows {
		if !same(i) {
			differ = append(differ, i)
		}
	}
	require.LessOrEqual(a, len(differ), rows/mostDiffer, "%s: too many rows differ, such as %v", op, differ[:min(10, len(differ))])
	sample := some(a.rng, rows, most)
	verdicts := make([]verdict, len(differ)+len(sample))
	oracle.Each(len(verdicts), func(k int) {
		if k < len(differ) {
			verdicts[k] = judge(differ[k])
		} else {
			verdicts[k] = judge(sample[k-len(differ)])
		}
	})
	ambiguous := 0
	for k, v := range verdicts {
		if k < len(differ) {
			require.True(a, v.ambiguous, "%s, row %d: the answers differ: %v", op, differ[k], v.err)
			continue
		}
		require.NoError(a, v.err, "%s, row %d", op, sample[k-len(differ)])
		if v.ambiguous {
			ambiguous++
		}
	}
	part := float64(ambiguous) / float64(len(sample))
	a.Logf("%-24s %8d rows %8d hits %5d differ %7.3f %% ambiguous of %d", op, rows, hits, len(differ), 100*part, len(sample))
	require.LessOrEqual(a, part, limit, "%s: ambiguous rows", op)
	require.Greater(a, hits, rows/50, "%s: too few hits to mean anything", op)
	if !gputest.Native() {
		require.Empty(a, differ, "%s: the stand-in knows the canonical answer", op)
	}
}

// limit allows for the few rows of a sample: three deviations above the limit.
func (a *agreement) limit(sample int) float64 {
	p := a.scene.ambiguous
	return p + 3*math.Sqrt(p/float64(sample))
}

func (a *agreement) rays(n int) (b batch) {
	for range n {
		b.add(a.scene.point(a.rng), randomDirection(a.rng))
	}
	return b
}

func count[T any](values []T, is func(T) bool) (n int) {
	for _, v := range values {
		if is(v) {
			n++
		}
	}
	return n
}

func (a *agreement) intersect(n int) {
	a.Helper()
	b := a.rays(n)
	own, opt := a.own.answer(b, a.own.own()), a.opt.answer(b, a.opt.own())
	differ := make([]bool, n)
	for _, i := range own.differing(opt) {
		differ[i] = true
		require.NotEqual(a, own.global[i], opt.global[i], "row %d: the same winner, other bits: %+v, %+v", i, own.row(i), opt.row(i))
	}
	hits := count(own.global, func(id int32) bool { return id >= 0 })
	a.judge("intersect", n, hits, judgedRows, a.limit(judgedRows), func(i int) bool { return !differ[i] }, func(i int) verdict {
		o, d, tmax := b.ray(i)
		h := a.exact.Intersect(o, d, tmax)
		for _, r := range []row{own.row(i), opt.row(i)} {
			if err := h.Check(oracle.Answer{Prim: int(r.global), T: r.t, B1: r.uv[0], B2: r.uv[1], N: r.n}); err != nil {
				return verdict{err: err}
			}
		}
		return verdict{ambiguous: h.Ambiguous}
	})
}

// visible compares segments without lists, with lists of which half name what blocks the
// segment, and, by our own search in a closed mesh, there and back (V21).
func (a *agreement) visible(n int) {
	a.Helper()
	var b segments
	for range n {
		b.add(a.scene.point(a.rng), a.scene.point(a.rng))
	}
	compare := func(op string, sample int, b segments, own, opt []uint8) {
		a.Helper()
		blocked := count(own, func(v uint8) bool { return v == 0 })
		a.judge(op, n, blocked, sample, a.limit(sample), func(i int) bool { return own[i] == opt[i] }, func(i int) verdict {
			s := a.exact.Segment(b.s[i], b.e[i], b.list(i)...)
			if !s.Ambiguous && own[i] != flag(s.Visible) {
				return verdict{err: fmt.Errorf("visible %d, float64 says %v", own[i], s.Visible)}
			}
			return verdict{ambiguous: s.Ambiguous}
		})
	}
	free := a.own.see(b)
	compare("visible", judgedRows, b, free, a.opt.see(b))
	if a.scene.closed {
		compare("visible, back", fewJudged, b, free, a.own.see(segments{s: b.e, e: b.s}))
	}

	single := polylines{segments: 1, length: make([]int32, n)}
	for i := range n {
		single.points = append(single.points, b.s[i], b.e[i])
		single.length[i] = 1
	}
	faces := len(a.mesh.Faces) / 3
	for i, p := range a.own.follow(single) {
		id := int32(a.rng.IntN(faces))
		if i%2 == 0 {
			id = int32(p.Prim)
		}
		b.ignore = append(b.ignore, int32(a.rng.IntN(faces)), id)
	}
	compare("visible, ignoring", fewJudged, b, a.own.see(b), a.opt.see(b))
}

func (a *agreement) chains(n int) {
	a.Helper()
	const legs = 3
	b := polylines{segments: legs}
	for range n {
		b.length = append(b.length, 1+int32(a.rng.IntN(legs)))
		for range legs + 1 {
			b.points = append(b.points, a.scene.point(a.rng))
		}
	}
	own, opt := a.own.follow(b), a.opt.follow(b)
	blocked := count(own, func(p oracle.Polyline) bool { return !p.AllVisible })
	a.judge("visible_chain", n, blocked, fewJudged/2, legs*a.limit(fewJudged/2), func(i int) bool { return own[i] == opt[i] }, func(i int) verdict {
		points, length, _ := b.row(i)
		want, ambiguous, blocker := a.exact.Chain(points, length, nil)
		for _, got := range []oracle.Polyline{own[i], opt[i]} {
			if blocker {
				got.Prim = want.Prim
			}
			if !ambiguous && got != want {
				return verdict{err: fmt.Errorf("%+v, float64 says %+v", got, want)}
			}
		}
		return verdict{ambiguous: ambiguous || blocker}
	})
}

// reflections compares bounce by bounce. Margins of float64 grow with every bounce, so
// that the part of rows that it is unsure of is reported, and not limited.
func (a *agreement) reflections(n int) {
	a.Helper()
	const bounces = 3
	b := a.rays(n)
	own, opt := a.own.answerChains(b, bounces, a.own.ownChains()), a.opt.answerChains(b, bounces, a.opt.ownChains())
	differ := make([]int, n) // the first bounce that does, plus one
	hits := 0
	for _, k := range own.differing(opt) {
		if i := k / bounces; differ[i] == 0 {
			differ[i] = 1 + k%bounces
			require.NotEqual(a, own.prim[k], opt.prim[k], "row %d: the same winner of bounce %d, other bits", i, k%bounces)
		}
	}
	for i := range n {
		hits += own.length(i)
	}
	list := func(c chains, i int) (out []oracle.Reflection) {
		for k := range c.length(i) {
			s := c.slot(i, k)
			out = append(out, oracle.Reflection{Prim: int(s.prim), T: s.t, B1: s.b1, B2: s.b2, P: s.p, N: s.n, Image: s.image})
		}
		return out
	}
	a.judge("trace_reflections", n, hits, fewJudged/4, 1, func(i int) bool { return differ[i] == 0 }, func(i int) verdict {
		o, d, tmax := b.ray(i)
		want := a.exact.Reflect(o, d, tmax, bounces)
		sure := len(want)
		for _, c := range []chains{own, opt} {
			var err error
			if sure, err = oracle.CheckChain(want, list(c, i)); err != nil {
				return verdict{err: err}
			}
		}
		if differ[i] > 0 && differ[i] <= sure {
			return verdict{err: fmt.Errorf("bounce %d is not ambiguous", differ[i]-1)}
		}
		return verdict{ambiguous: sure < len(want)}
	})
}

// Our own search and OptiX give the same answers to random queries, but where float64
// says that single precision may go either way.
func TestBackendsAgreeAtFullSize(t *testing.T) {
	rows, fewer := 16_384, 1024
	if gputest.Native() {
		rows, fewer = 1_000_000, 250_000
	}
	for _, s := range agreementScenes() {
		t.Run(s.name, func(t *testing.T) {
			devices, _ := optixDevices(t, 1)
			own, opt := sceneOn(t, devices[0], scene.CUDA), sceneOn(t, devices[0], scene.OptiX)
			for i, state := range []string{"built", "refitted"} {
				t.Run(state, func(t *testing.T) {
					m := s.mesh
					for _, r := range []*rig{{t, own.Scene}, {t, opt.Scene}} {
						if i == 0 {
							r.add(s.mesh)
							require.NoError(t, r.Build(background))
							continue
						}
						m.Vertices = s.moved
						r.update(0, m)
						r.sync()
					}
					a := &agreement{
						T: t, scene: s, mesh: m, own: &rig{t, own.Scene}, opt: &rig{t, opt.Scene},
						exact: oracle.New(m.Vertices, m.Faces), rng: rand.New(rand.NewPCG(81, uint64(i))),
					}
					t.Logf("%d triangles", len(m.Faces)/3)
					a.intersect(rows)
					a.visible(rows)
					a.chains(fewer)
					a.reflections(fewer)
				})
			}
		})
	}
}
