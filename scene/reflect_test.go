package scene_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// Scenes of the tables of test cases.
func meshFloor() scene.Mesh {
	return quads(vec{-10, -10, 0}, vec{10, -10, 0}, vec{10, 10, 0}, vec{-10, 10, 0})
}

func meshTwo() scene.Mesh { return join(meshFloor(), moved(meshFloor(), vec{0, 0, 2})) }

func meshCorner() scene.Mesh {
	return quads(
		vec{0, 0, 0}, vec{4, 0, 0}, vec{4, 4, 0}, vec{0, 4, 0},
		vec{0, 0, 0}, vec{4, 0, 0}, vec{4, 0, 4}, vec{0, 0, 4},
		vec{0, 0, 0}, vec{0, 4, 0}, vec{0, 4, 4}, vec{0, 0, 4})
}

// quads is a mesh of quads without shared corners.
func quads(corners ...vec) scene.Mesh {
	var m scene.Mesh
	for i, c := range corners {
		m.Vertices = append(m.Vertices, c[:]...)
		if k := int32(i); i%4 == 0 {
			m.Faces = append(m.Faces, k, k+1, k+2, k, k+2, k+3)
		}
	}
	return m
}

// join is the faces of a followed by those of b.
func join(a, b scene.Mesh) scene.Mesh {
	out := scene.Mesh{Vertices: append(append([]float32{}, a.Vertices...), b.Vertices...), Faces: append([]int32{}, a.Faces...)}
	for _, i := range b.Faces {
		out.Faces = append(out.Faces, i+int32(len(a.Vertices)/3))
	}
	return out
}

// chains is a result of TraceReflections on the host.
type chains struct {
	bounces                       int
	valid                         []uint8
	t, image, point, normal, bary []float32
	prim                          []int32
}

// slot is one bounce of one row.
type slot struct {
	t           float32
	prim        int32
	p, n, image vec
	b1, b2      float32
	skipBary    bool // a table of cases does not give b1 and b2
}

var emptySlot = slot{t: inf, prim: -1}

func (c chains) rows() int { return len(c.valid) / c.bounces }

func (c chains) slot(row, bounce int) slot {
	i := row*c.bounces + bounce
	return slot{
		t: c.t[i], prim: c.prim[i], p: vec(c.point[3*i:]), n: vec(c.normal[3*i:]), image: vec(c.image[3*i:]),
		b1: c.bary[2*i], b2: c.bary[2*i+1],
	}
}

// length is the number of bounces of a row.
func (c chains) length(row int) (n int) {
	for n < c.bounces && c.valid[row*c.bounces+n] != 0 {
		n++
	}
	return n
}

func (c chains) exact() [7]any {
	return [7]any{c.valid, bits(c.t), c.prim, bits(c.image), bits(c.point), bits(c.normal), bits(c.bary)}
}

// readChains waits for a result and closes it.
func (r *rig) readChains(c *scene.Chains) chains {
	r.Helper()
	out := chains{
		bounces: c.Bounces, valid: toHost(r, c.Valid), t: toHost(r, c.T), prim: toHost(r, c.PrimIDs),
		image: toHost(r, c.ImageSources), point: toHost(r, c.HitPoints),
		normal: toHost(r, c.Normals), bary: toHost(r, c.Barycentric),
	}
	require.NoError(r, c.Close())
	return out
}

// reflect answers a batch on the scene's stream, in memory full of other values.
func (r *rig) reflect(b batch, bounces int, fields scene.ChainFields) chains {
	r.Helper()
	rays := r.upload(b)
	dirty, err := r.TraceReflections(background, rays, bounces, fields)
	require.NoError(r, err)
	poison(r, dirty.Valid)
	for _, v := range []cuda.Slice[float32]{dirty.T, dirty.ImageSources, dirty.HitPoints, dirty.Normals, dirty.Barycentric} {
		poison(r, v)
	}
	poison(r, dirty.PrimIDs)
	c, err := r.TraceReflections(background, rays, bounces, fields, scene.Into(dirty))
	require.NoError(r, err)
	require.Equal(r, b.rows(), c.Rows())
	require.Equal(r, [2]any{bounces, fields}, [2]any{c.Bounces, c.Fields})
	return r.readChains(c)
}

type chainCase struct {
	id      string
	mesh    func() scene.Mesh
	ray     batch
	bounces int
	size    float64 // of the scene; absolute tolerances are relative to it
	want    []slot  // the hits
}

func chainCases() []chainCase {
	down, up := vec{0, 0, -1}, vec{0, 0, 1}
	tiny := func() scene.Mesh { return scaled(meshFloor(), 3e-5) }
	flat := func() scene.Mesh { return triangles(vec{0, 0, 0}, vec{1, 0, 0}, vec{2, 0, 0}) }
	r1 := ray(vec{1, -2, 3}, down)
	r1Hit := slot{t: 3, prim: 0, p: vec{1, -2, 0}, n: up, image: vec{1, -2, -3}, b1: .15, b2: .4}
	r2Hit := slot{t: 1, prim: 0, p: vec{3, -1, 0}, n: up, image: vec{1, -2, -3}, b1: .2, b2: .45}
	r3Hit := r2Hit
	r3Hit.t = .1
	r4Hit := slot{t: 3, prim: 0, p: vec{1, -2, 0}, n: down, image: vec{1, -2, 3}, b1: .15, b2: .4}
	r5 := ray(vec{.3, -.2, .5}, vec{.25, 0, -1})
	var r5Hits []slot
	for i, z := range []float32{-.5, 4.5, -4.5, 8.5} {
		h := slot{t: 2, prim: 0, p: vec{.425 + .5*float32(i), -.2, 0}, n: up, image: vec{.3, -.2, z}, skipBary: true}
		if i == 0 {
			h.t = .5
		}
		if i%2 == 1 {
			h.prim, h.p[2], h.n = 2, 2, down
		}
		r5Hits = append(r5Hits, h)
	}
	r6Hits := []slot{
		{t: 1.5, prim: 0, p: vec{1.5, .5, 0}, n: up, image: vec{3, 2, -1.5}, skipBary: true},
		{t: .5, prim: 2, p: vec{1, 0, .5}, n: vec{0, 1, 0}, image: vec{3, -2, -1.5}, skipBary: true},
		{t: 1, prim: 5, p: vec{0, 1, 1.5}, n: vec{1, 0, 0}, image: vec{-3, -2, -1.5}, skipBary: true},
	}
	r9Hit := slot{t: 1, prim: 0, p: vec{1.5, -.25, 0}, n: up, image: vec{.5, -.25, -1e-3}, skipBary: true}
	r11Hit := slot{t: 9e-5, prim: 0, p: vec{3e-5, -6e-5, 0}, n: up, image: vec{3e-5, -6e-5, -9e-5}, b1: .15, b2: .4}
	inactive := r1
	inactive.active = []uint8{0}
	return []chainCase{
		{"R1", meshFloor, r1, 2, 1, []slot{r1Hit}},
		{"R2", meshFloor, ray(vec{1, -2, 3}, vec{2, 1, -3}), 1, 1, []slot{r2Hit}},
		{"R3", meshFloor, ray(vec{1, -2, 3}, vec{20, 10, -30}), 1, 1, []slot{r3Hit}},
		{"R4", meshFloor, ray(vec{1, -2, -3}, up), 1, 1, []slot{r4Hit}},
		{"R5", meshTwo, r5, 4, 1, r5Hits},
		{"R6", meshCorner, ray(vec{3, 2, 1.5}, vec{-1, -1, -1}), 5, 1, r6Hits},
		{"R7 2.5", meshFloor, r1.until(2.5), 2, 1, nil},
		{"R7 3.5", meshFloor, r1.until(3.5), 2, 1, []slot{r1Hit}},
		{"R7 +inf", meshFloor, r1.until(inf), 2, 1, []slot{r1Hit}},
		{"R7 NaN", meshFloor, r1.until(nan), 2, 1, nil},
		{"R7 -inf", meshFloor, r1.until(-inf), 2, 1, nil},
		{"R7 0", meshFloor, r1.until(0), 2, 1, nil},
		{"R8 .6", meshTwo, r5.until(.6), 4, 1, r5Hits},
		{"R8 .4", meshTwo, r5.until(.4), 4, 1, nil},
		{"R9", meshFloor, ray(vec{.5, -.25, 1e-3}, vec{1, 0, -1e-3}), 3, 1, []slot{r9Hit}},
		{"R11", tiny, ray(vec{3e-5, -6e-5, 9e-5}, down), 1, 3e-5, []slot{r11Hit}},
		{"R13 inactive", meshFloor, inactive, 2, 1, nil},
		{"R13 d", meshFloor, ray(vec{1, -2, 3}, vec{}), 2, 1, nil},
		{"R13 o", meshFloor, ray(vec{nan, -2, 3}, down), 2, 1, nil},
		{"no area", flat, ray(vec{1, 0, 1}, down), 2, 1, nil},
	}
}

// requireChain compares a row with the hits that it has to have.
func requireChain(t testing.TB, c chains, row int, want []slot, size float64) {
	t.Helper()
	require.Equal(t, len(want), c.length(row))
	for k := range c.bounces {
		got := c.slot(row, k)
		if k >= len(want) {
			require.Zero(t, c.valid[row*c.bounces+k], "bounce %d", k)
			require.Equal(t, emptySlot, got, "bounce %d", k)
			continue
		}
		w := want[k]
		require.EqualValues(t, 1, c.valid[row*c.bounces+k], "bounce %d", k)
		require.Equal(t, w.prim, got.prim, "bounce %d", k)
		near := func(what string, want, have float32, size float64) {
			t.Helper()
			require.InDelta(t, want, have, 1e-5*math.Max(size, math.Abs(float64(want))), "bounce %d: %s", k, what)
		}
		near("t", w.t, got.t, size)
		for i := range 3 {
			near("p", w.p[i], got.p[i], size)
			near("image", w.image[i], got.image[i], size)
			near("n", w.n[i], got.n[i], 1)
		}
		if !w.skipBary {
			near("b1", w.b1, got.b1, 1)
			near("b2", w.b2, got.b2, 1)
		}
	}
}

func TestReflectClosedForms(t *testing.T) {
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		for _, c := range chainCases() {
			t.Run(c.id, func(t *testing.T) {
				got := open(c.mesh()).reflect(c.ray, c.bounces, scene.ChainAll)
				requireChain(t, got, 0, c.want, c.size)
			})
		}
	})
}

// R10: the grazing reflection at large coordinates, rotated, does not meet its own
// plane again; nor do those off planes of many sizes at many places.
func TestR10GrazingFarOff(t *testing.T) {
	place := func(p [3]float64, angle float64, scale float64, by [3]float64) (q vec) {
		axis := [3]float64{1 / math.Sqrt(14), 2 / math.Sqrt(14), 3 / math.Sqrt(14)}
		along := p[0]*axis[0] + p[1]*axis[1] + p[2]*axis[2]
		for k := range q {
			cross := axis[(k+1)%3]*p[(k+2)%3] - axis[(k+2)%3]*p[(k+1)%3]
			q[k] = float32(scale*(p[k]*math.Cos(angle)+cross*math.Sin(angle)+axis[k]*along*(1-math.Cos(angle))) + by[k])
		}
		return q
	}
	far := [3]float64{300, -200, 500}
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		for i, scale := range []float64{1, 1, 30, 1000} {
			angle := 1 + .37*float64(i)
			mesh := meshFloor()
			for k := 0; k < len(mesh.Vertices); k += 3 {
				v := place([3]float64{float64(mesh.Vertices[k]), float64(mesh.Vertices[k+1]), 0}, angle, scale, far)
				copy(mesh.Vertices[k:], v[:])
			}
			b := batch{}
			b.add(place([3]float64{.5, -.25, 1e-3}, angle, scale, far), place([3]float64{1, 0, -1e-3}, angle, 1, [3]float64{}))
			got := open(mesh).reflect(b, 3, scene.ChainCore)
			require.Equal(t, []uint8{1, 0, 0}, got.valid, "scale %v", scale)
		}
	})
}

// requireModel compares all slots with the model bit by bit, and those that are certain
// with float64. It returns how many of the bounces were.
func requireModel(t *testing.T, got chains, m scene.Mesh, b batch) (bounces, certain int) {
	t.Helper()
	wide, single := oracle.New(m.Vertices, m.Faces), oracle.NewCanonical(m.Vertices, m.Faces)
	n := b.rows()
	require.Equal(t, n, got.rows())
	model, exact := make([][]oracle.Reflection, n), make([][]oracle.Bounce, n)
	oracle.Each(n, func(i int) {
		if b.active != nil && b.active[i] == 0 {
			return
		}
		o, d, tmax := b.ray(i)
		model[i], exact[i] = single.Reflect(o, d, tmax, got.bounces), wide.Reflect(o, d, tmax, got.bounces)
	})
	for i := range n {
		chain := make([]oracle.Reflection, got.length(i))
		for k := range got.bounces {
			s := got.slot(i, k)
			want := emptySlot
			if k < len(model[i]) {
				w := model[i][k]
				want = slot{t: w.T, prim: int32(w.Prim), p: w.P, n: w.N, image: w.Image, b1: w.B1, b2: w.B2}
			}
			require.Equal(t, want.bits(), s.bits(), "row %d, bounce %d: want %v, have %v", i, k, want, s)
			if k < len(chain) {
				chain[k] = oracle.Reflection{Prim: int(s.prim), T: s.t, B1: s.b1, B2: s.b2, P: s.p, N: s.n, Image: s.image}
			}
		}
		c, err := oracle.CheckChain(exact[i], chain)
		require.NoError(t, err, "row %d", i)
		bounces, certain = bounces+len(exact[i]), certain+c
	}
	return bounces, certain
}

func (s slot) bits() [13]uint32 {
	f := math.Float32bits
	return [13]uint32{
		uint32(s.prim), f(s.t), f(s.p[0]), f(s.p[1]), f(s.p[2]), f(s.n[0]), f(s.n[1]), f(s.n[2]),
		f(s.image[0]), f(s.image[1]), f(s.image[2]), f(s.b1), f(s.b2),
	}
}

// requireInvariants checks what holds for every chain up to rounding: to 1e-5 of the
// lengths, or where the model in float64 says that rounding does more, because a surface
// is seen nearly edge-on, to that. Where a surface is as close to another as a leg starts
// from it, so that T may be cut off at zero, the model is not sure. Few chains need it.
func requireInvariants(t *testing.T, got chains, m scene.Mesh, b batch) {
	t.Helper()
	length := func(v vec) float64 {
		return math.Sqrt(float64(v[0])*float64(v[0]) + float64(v[1])*float64(v[1]) + float64(v[2])*float64(v[2]))
	}
	apart := func(a, b vec) float64 { return length(vec{a[0] - b[0], a[1] - b[1], a[2] - b[2]}) }
	model, asked := oracle.New(m.Vertices, m.Faces), 0
	for i := range b.rows() {
		o, d, tmax := b.ray(i)
		path, from := 0.0, o
		for k := range got.length(i) {
			s := got.slot(i, k)
			path += float64(s.t) * length(d)
			scale := math.Max(1, math.Max(path, length(s.image)))
			arriving := vec{s.p[0] - from[0], s.p[1] - from[1], s.p[2] - from[2]}
			facing := float64(arriving[0]*s.n[0]) + float64(arriving[1]*s.n[1]) + float64(arriving[2]*s.n[2])
			off := max(math.Abs(path-apart(s.image, s.p)), math.Abs(apart(from, s.p)-float64(s.t)*length(d)), facing)
			if off > 1e-5*scale {
				asked++
				limit := 1e-5*scale + roundingOf(model.Reflect(o, d, tmax, k+1))
				require.LessOrEqual(t, off, limit, "row %d, bounce %d", i, k)
			}
			require.InDelta(t, 1, length(s.n), 1e-6, "row %d, bounce %d", i, k)
			from = s.p
		}
	}
	require.LessOrEqual(t, asked, b.rows()/1000)
}

// roundingOf bounds what rounding does to the lengths of a chain, without bound where
// float64 is not sure of the chain.
func roundingOf(chain []oracle.Bounce) (off float64) {
	for _, b := range chain {
		if b.Ambiguous {
			return math.Inf(1)
		}
		off += b.PTol
	}
	return off + chain[len(chain)-1].ImageTol
}

func scatteredRays(rng *rand.Rand, n int) (b batch) {
	for range n {
		b.add(vec{rng.Float32(), rng.Float32(), rng.Float32()}, randomDirection(rng))
	}
	return b
}

// R12: random chains in several scenes.
func TestR12RandomScenes(t *testing.T) {
	n := 1500
	if gputest.Native() {
		n = 100000
	}
	rng := rand.New(rand.NewPCG(12, 1))
	room := scaled(unitCube(), 1.25)
	for name, c := range map[string]struct {
		mesh    scene.Mesh
		bounces int
		certain float64
		long    int // rows that use all bounces
	}{
		"soup": {randomSoup(rng, 500, .5), 4, .98, n / 20},
		"room": {moved(room, vec{-.125, -.125, -.125}), 9, .95, n * 9 / 10},
		"full": {join(moved(room, vec{-.125, -.125, -.125}), randomSoup(rng, 100, .2)), 4, .95, n * 9 / 10},
	} {
		t.Run(name, func(t *testing.T) {
			b := scatteredRays(rng, n)
			r := build(t, c.mesh)
			got := r.reflect(b, c.bounces, scene.ChainAll)
			if !gputest.Native() { // brute force in float64 takes minutes for so many rows
				bounces, certain := requireModel(t, got, c.mesh, b)
				require.Greater(t, float64(certain), c.certain*float64(bounces))
			}
			requireInvariants(t, got, c.mesh, b)
			first := r.intersect(b, scene.All)
			long := 0
			for i := range b.rows() {
				s := got.slot(i, 0)
				require.Equal(t, first.global[i], s.prim, "row %d", i)
				require.Equal(t, math.Float32bits(first.t[i]), math.Float32bits(s.t), "row %d", i)
				ended := false
				for k := range c.bounces {
					valid := got.valid[i*c.bounces+k]
					require.Equal(t, got.prim[i*c.bounces+k] >= 0, valid == 1)
					require.False(t, ended && valid == 1, "row %d: the chain has a gap", i)
					ended = ended || valid == 0
				}
				if !ended {
					long++
				}
			}
			require.Greater(t, long, c.long)
		})
	}
}

// Rays that must not be traced, and their neighbours.
func TestReflectOddRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	m := join(randomSoup(rng, 60, .5), moved(scaled(unitCube(), 1.5), vec{-.25, -.25, -.25}))
	b := oddBatch(rng, 400)
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		requireModel(t, open(m).reflect(b, 3, scene.ChainAll), m, b)
	})
}

// R5 with the most bounces: the pattern goes on, images move away by four metres a
// round.
func TestReflectSixtyFourBounces(t *testing.T) {
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		got := open(meshTwo()).reflect(ray(vec{.3, -.2, .5}, vec{.05, 0, -1}), 64, scene.ChainAll)
		require.Equal(t, 64, got.length(0))
		for k := range 64 {
			s := got.slot(0, k)
			image := float32(-.5 - 2*float32(k))
			if k%2 == 1 {
				image = .5 + 2*float32(k+1)
			}
			require.InDelta(t, image, s.image[2], 1e-4, "bounce %d", k)
			require.InDelta(t, .325+.1*float32(k), s.p[0], 1e-4, "bounce %d", k)
			require.Equal(t, float32(2*(k%2)), s.p[2])
		}
	})
}

func TestR14Sizes(t *testing.T) {
	r := build(t, meshFloor())
	c, err := r.TraceReflections(background, r.upload(batch{}), 3, scene.ChainAll)
	require.NoError(t, err)
	require.Zero(t, c.Rows())
	require.Equal(t, 3, c.Bounces)
	require.NoError(t, c.Close())

	rays := r.upload(ray(vec{1, -2, 3}, vec{0, 0, -1}))
	hits, err := r.Intersect(background, rays, scene.None)
	require.NoError(t, err)
	defer func() { require.NoError(t, hits.Close()) }()
	short := rays
	short.D, err = rays.D.Sub(0, 2)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		rays    scene.Rays
		bounces int
		fields  scene.ChainFields
		opts    []scene.CallOption
		arg     string
	}{
		"no bounce":      {rays, 0, 0, nil, "maxBounces"},
		"negative":       {rays, -1, 0, nil, "maxBounces"},
		"too many":       {rays, 65, 0, nil, "maxBounces"},
		"fields":         {rays, 1, 16, nil, "fields"},
		"shape":          {short, 1, 0, nil, "D"},
		"another result": {rays, 1, 0, []scene.CallOption{scene.Into(hits)}, "Into"},
	} {
		_, err := r.TraceReflections(background, c.rays, c.bounces, c.fields, c.opts...)
		var bad *scene.ArgumentError
		require.ErrorAs(t, err, &bad, name)
		assert.Equal(t, [2]string{"TraceReflections", c.arg}, [2]string{bad.Op, bad.Arg}, name)
	}
	_, err = open(t).TraceReflections(background, rays, 1, 0)
	require.ErrorIs(t, err, scene.ErrNotReady)
}

// R15: every set of columns has its bytes, and common columns are the same.
func TestR15FieldsSelectColumns(t *testing.T) {
	r := build(t, meshCorner())
	b := ray(vec{3, 2, 1.5}, vec{-1, -1, -1})
	all := r.reflect(b, 5, scene.ChainAll)
	rays := r.upload(b)
	for f := scene.ChainCore; f <= scene.ChainAll; f++ {
		c, err := r.TraceReflections(background, rays, 5, f)
		require.NoError(t, err)
		bytes := c.Valid.Len() + 4*(c.T.Len()+c.PrimIDs.Len()+c.ImageSources.Len()+c.HitPoints.Len()+c.Normals.Len()+c.Barycentric.Len())
		want := 9
		for i, n := range []int{12, 12, 12, 8} {
			want += n * int(f>>i&1)
		}
		assert.Equal(t, 5*want, bytes, "%v", f)
		assert.EqualValues(t, bytes, scene.ChainRowBytes(5, f), "%v", f)
		got := r.readChains(c)
		for i, v := range got.exact() {
			if fmt.Sprint(v) != "[]" {
				assert.Equal(t, all.exact()[i], v, "%v", f)
			}
		}
	}
	_, call, err := r.PrepareReflections(background, rays, 5, scene.ChainAll)
	require.NoError(t, err)
	in, out := call.Columns()
	assert.Equal(t, 20, out[0].Width, "bytes of a row's winners")
	assert.Len(t, out, 1)
	assert.Len(t, in, 4)
	require.NoError(t, call.Abandon())
}

func TestChainFieldsHaveNames(t *testing.T) {
	for f, want := range map[scene.ChainFields]string{
		0: "ChainCore", 15: "ChainAll", 3: "ChainImages|ChainHits", 4: "ChainNormals", 8 | 32: "ChainBarycentric|0x20",
	} {
		assert.Equal(t, want, f.String())
	}
}
