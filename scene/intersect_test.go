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
)

// hit is an expected row of the only face of the only mesh.
func hit(t float32, p, n, bary vec) row {
	return row{t: t, p: p, n: n, bary: bary, uv: [2]float32{bary[1], bary[2]}}
}

func (r row) of(shape, prim, local int32) row {
	r.shape, r.prim, r.local, r.global = shape, prim, local, prim
	return r
}

var hitI1 = hit(1, vec{.25, .25, 0}, vec{0, 0, 1}, vec{.5, .25, .25})

var hitI14 = hit(6./11, vec{6. / 11, 6. / 11, 6. / 11}, vec{6. / 7, 3. / 7, 2. / 7}, vec{6. / 11, 3. / 11, 2. / 11})

func at(r row, t float32) row {
	r.t = t
	return r
}

func atZ(r row, z float32) row {
	r.p[2] = z
	return r
}

type closedForm struct {
	id   string
	mesh func() scene.Mesh
	ray  batch
	want row
}

func closedForms() []closedForm {
	down, up := vec{0, 0, -1}, vec{0, 0, 1}
	i1 := ray(vec{.25, .25, -1}, up)
	i3 := hit(.5, vec{.25, .25, 0}, vec{0, 0, 1}, vec{.5, .25, .25})
	const l = 4.0620192
	collinear := func() scene.Mesh { return triangles(vec{0, 0, 0}, vec{1, 0, 0}, vec{2, 0, 0}) }
	far := func() scene.Mesh { return moved(meshT(), vec{1e6, 1e6, 1e6}) }
	twice := func() scene.Mesh {
		return triangles(vec{0, 0, 0}, vec{1, 0, 0}, vec{0, 1, 0}, vec{0, 0, 0}, vec{1, 0, 0}, vec{0, 1, 0})
	}
	cases := []closedForm{
		{"I1", meshT, i1, hitI1},
		{"I2", meshT, ray(vec{.25, .25, 1}, down), hitI1},
		{"I3", meshT, ray(vec{0, 0, 2}, vec{.5, .5, -4}), i3},
		{"I4", meshT, ray(vec{0, 0, 2}, vec{.5 / l, .5 / l, -4 / l}), at(i3, 2.0310096)},
		{"I5", meshT, ray(vec{2, 2, -1}, up), miss},
		{"I6 .5", meshT, i1.until(.5), miss},
		{"I6 10", meshT, i1.until(10), hitI1},
		{"I6 inf", meshT, i1.until(inf), hitI1},
		{"I7", meshT, i1.until(1), hitI1},
		{"I9", meshT, ray(vec{.25, .25, -1}, vec{0, 0, 0}), miss},
		{"I11", meshS, i1, hitI1},
		{"I12", meshS, ray(vec{.25, .25, 0}, up), atZ(at(hitI1, .5), .5).of(0, 1, 1)},
		{"I13", meshS, ray(vec{.25, .25, 0}, down), miss},
		{"I14", meshW, ray(vec{0, 0, 0}, vec{1, 1, 1}), hitI14},
		{"I16", meshW, ray(vec{0, 0, 0}, vec{1000, 1000, 1000}), at(hitI14, 6./11000)},
		{"I17", meshQ, ray(vec{.5, .5, -1}, up), hit(1, vec{.5, .5, 0}, vec{0, 0, 1}, vec{.5, 0, .5})},
		{"I20", collinear, ray(vec{1, 0, -1}, up), miss},
		{"I21", far, ray(vec{1000000.25, 1000000.25, 999999}, up),
			hit(1, vec{1000000.25, 1000000.25, 1000000}, vec{0, 0, 1}, vec{.5, .25, .25})},
		{"I23", twice, i1, hitI1},
	}
	for _, tmax := range []float32{nan, 0, -1, -inf, 1e-7} {
		cases = append(cases, closedForm{fmt.Sprint("I8 ", tmax), meshT, i1.until(tmax), miss})
	}
	for _, bad := range []float32{nan, inf, -inf} {
		for k := range 6 {
			r := batch{o: []float32{.25, .25, -1}, d: []float32{0, 0, 1}}
			if k < 3 {
				r.o[k] = bad
			} else {
				r.d[k-3] = bad
			}
			cases = append(cases, closedForm{fmt.Sprintf("I10 component %d %v", k, bad), meshT, r, miss})
		}
	}
	return cases
}

func TestIntersectClosedForms(t *testing.T) {
	for _, c := range closedForms() {
		t.Run(c.id, func(t *testing.T) {
			got := build(t, c.mesh()).intersect(c.ray, scene.All)
			requireRow(t, c.want, got.row(0))
			assert.Equal(t, bits(got.geoN), bits(got.n), "N repeats GeoN")
			for _, v := range [][]float32{got.t, got.p, got.geoN, got.uv, got.bary} {
				for _, x := range v {
					assert.False(t, x == 0 && math.Signbit(float64(x)), "a zero is negative")
				}
			}
		})
	}
}

// The scale rule for every magnitude, also of subnormal directions.
func TestIntersectAnyLengthOfDirection(t *testing.T) {
	r := build(t, meshW())
	for e := -127; e <= 22; e++ {
		d := float32(math.Ldexp(1, e))
		want := at(hitI14, float32(6./11/float64(d)))
		if want.t < 1e-6 { // the lower end is in units of d
			want = miss
		}
		requireRow(t, want, r.intersect(ray(vec{0, 0, 0}, vec{d, d, d}), scene.All).row(0), fmt.Sprint("length 2^", e))
	}
}

func TestI18NoRayOfAGridIsLost(t *testing.T) {
	var b batch
	for i := range 40 {
		for j := range 40 {
			b.add(vec{(float32(i) + .5) / 40, (float32(j) + .5) / 40, -1}, vec{0, 0, 1})
		}
	}
	got := build(t, meshQ()).intersect(b, scene.None)
	require.Len(t, got.t, 1600)
	for i, x := range got.t {
		require.Equal(t, float32(1), x, "ray %d", i)
	}
}

func TestI22ClosedMeshHasNoCracks(t *testing.T) {
	n := 20000
	if gputest.Native() {
		n = 1000000
	}
	shift := vec{1000.1, -2000.3, 500.7}
	cube := moved(unitCube(), shift)
	rng := rand.New(rand.NewPCG(22, 1))
	b := batch{}
	for range n {
		b.add(vec{shift[0] + .5, shift[1] + .5, shift[2] + .5}, randomDirection(rng))
	}
	got := build(t, cube).intersect(b, scene.None)
	for i, x := range got.t {
		require.Less(t, x, inf, "ray %d escapes along %v", i, b.d[3*i:3*i+3])
	}
}

func unitCube() scene.Mesh {
	var m scene.Mesh
	for i := range 8 {
		m.Vertices = append(m.Vertices, float32(i&1), float32(i>>1&1), float32(i>>2&1))
	}
	for _, q := range [6][4]int32{{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}} {
		m.Faces = append(m.Faces, q[0], q[1], q[2], q[0], q[2], q[3])
	}
	return m
}

func randomDirection(rng *rand.Rand) vec {
	return vec{float32(rng.NormFloat64()), float32(rng.NormFloat64()), float32(rng.NormFloat64())}
}

func TestI24FlagsSelectColumns(t *testing.T) {
	r := build(t, meshT())
	b := ray(vec{.25, .25, -1}, vec{0, 0, 1})
	all := r.intersect(b, scene.All)
	bytes := []int64{4, 56, 16, 68, 12, 64, 24, 76}
	for f := scene.None; f <= scene.All; f++ {
		assert.Equal(t, bytes[f], scene.RowBytes(f), "%v", f)
		h, err := r.Intersect(background, r.upload(b), f)
		require.NoError(t, err)
		floats := []int{h.T.Len(), h.P.Len(), h.N.Len(), h.GeoN.Len(), h.UV.Len(), h.Barycentric.Len(),
			h.ShapeID.Len(), h.PrimID.Len(), h.LocalPrimID.Len(), h.GlobalPrimID.Len()}
		sum := 0
		for _, n := range floats {
			sum += n
		}
		assert.EqualValues(t, bytes[f], 4*sum, "%v", f)
		got := r.download(h)
		assert.Equal(t, bits(all.t), bits(got.t), "%v", f)
		if f&scene.UV != 0 {
			assert.Equal(t, bits(all.uv), bits(got.uv))
		}
		if f&scene.ShadingN != 0 {
			assert.Equal(t, bits(all.n), bits(got.n))
		}
		if f&scene.Geometric != 0 {
			assert.Equal(t, all.global, got.global)
			assert.Equal(t, bits(all.p), bits(got.p))
		}
		require.NoError(t, h.Close())
	}
}

func TestI25UnknownFlag(t *testing.T) {
	r := build(t, meshT())
	_, err := r.Intersect(background, r.upload(ray(vec{}, vec{0, 0, 1})), 8)
	var arg *scene.ArgumentError
	require.ErrorAs(t, err, &arg)
	assert.Equal(t, "flags", arg.Arg)
}

func TestI26ActiveMask(t *testing.T) {
	b := batch{}
	b.add(vec{.25, .25, -1}, vec{0, 0, 1})
	b.add(vec{.25, .25, -1}, vec{0, 0, 1})
	b.active = []uint8{255, 0} // any non-zero byte is true
	got := build(t, meshT()).intersect(b, scene.All)
	requireRow(t, hitI1, got.row(0))
	assert.Equal(t, miss, got.row(1))
}

func TestI27EmptyBatch(t *testing.T) {
	r := build(t, meshT())
	for _, rays := range []scene.Rays{{}, {O: toDevice(r, []float32{}), D: toDevice(r, []float32{})}} {
		h, err := r.Intersect(background, rays, scene.All)
		require.NoError(t, err)
		assert.Zero(t, h.Rows())
		assert.Zero(t, h.T.Len()+h.P.Len()+h.GlobalPrimID.Len())
		require.NoError(t, h.Close())
	}
	requireRow(t, hitI1, r.intersect(ray(vec{.25, .25, -1}, vec{0, 0, 1}), scene.All).row(0))
}

// randomBatch has rows of every kind: hits, misses, bounds, masks, invalid rows.
func randomBatch(rng *rand.Rand, n int) batch {
	b := batch{tmax: make([]float32, n), active: make([]uint8, n)}
	for i := range n {
		o := vec{rng.Float32(), rng.Float32(), rng.Float32()}
		b.add(o, randomDirection(rng))
		b.tmax[i], b.active[i] = inf, 1
		switch rng.IntN(8) {
		case 0:
			b.tmax[i] = 0.2 * rng.Float32()
		case 1:
			b.active[i] = 0
		case 2:
			b.o[3*i+rng.IntN(3)] = nan
		}
	}
	return b
}

func randomSoup(rng *rand.Rand, n int, size float32) scene.Mesh {
	var corners []vec
	for range n {
		c := vec{rng.Float32(), rng.Float32(), rng.Float32()}
		for range 3 {
			corners = append(corners, vec{
				c[0] + size*(rng.Float32()-.5), c[1] + size*(rng.Float32()-.5), c[2] + size*(rng.Float32()-.5)})
		}
	}
	return triangles(corners...)
}

func TestI28SplitsConcatenate(t *testing.T) {
	rng := rand.New(rand.NewPCG(28, 1))
	r := build(t, randomSoup(rng, 300, .3))
	const n = 1000
	b := randomBatch(rng, n)
	whole := r.intersect(b, scene.All)
	require.Contains(t, whole.global, int32(-1))
	for _, cut := range []int{1, 7, 500, 1 + rng.IntN(n-1), 1 + rng.IntN(n-1)} {
		parts := r.intersect(b.part(0, cut), scene.All).join(r.intersect(b.part(cut, n), scene.All))
		require.Equal(t, whole.exact(), parts.exact(), "cut at %d", cut)
	}
}

// Rounding in the frame of a ray may give a face without area a little of it. A ray
// through such a face still hits the wall behind.
func TestFacesWithoutAreaAreNeverHit(t *testing.T) {
	rng := rand.New(rand.NewPCG(40, 1))
	const n = 200
	wall := []vec{{-1e4, -1e4, 8}, {1e4, -1e4, 8}, {0, 2e4, 8}}
	var corners []vec
	var middles []vec
	for range n {
		// Sixteenths: the sides are exact and exactly parallel.
		var v0, v1, v2 vec
		for k := range 3 {
			p, e := float32(rng.IntN(64))/16, float32(rng.IntN(15)-7)/16
			v0[k], v1[k], v2[k] = p, p+2*e, p+e
		}
		corners = append(corners, v0, v1, v2)
		middles = append(middles, v2)
	}
	r := build(t, triangles(append(corners, wall...)...))
	b := batch{}
	for range 3000 {
		m := middles[rng.IntN(n)]
		o := vec{4 * rng.Float32(), 4 * rng.Float32(), -8 - rng.Float32()}
		b.add(o, vec{m[0] - o[0], m[1] - o[1], m[2] - o[2]})
	}
	for i, id := range r.intersect(b, scene.All).global {
		require.EqualValues(t, n, id, "ray %d", i)
	}
}

// The search compares its own t with TMax, and finalize the one that is returned.
func TestNoHitBeyondTMax(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 1))
	r := build(t, randomSoup(rng, 20, 1))
	b := batch{}
	for range 3000 {
		b.add(vec{rng.Float32(), rng.Float32(), rng.Float32()}, randomDirection(rng))
	}
	free := r.intersect(b, scene.None).t
	b.tmax = make([]float32, len(free))
	for i, x := range free {
		b.tmax[i] = math.Nextafter32(x, 0)
	}
	hits := 0
	for i, x := range r.intersect(b, scene.None).t {
		if free[i] < inf {
			hits++
			require.Equal(t, inf, x, "ray %d: t is %v, TMax %v", i, x, b.tmax[i])
		}
	}
	require.Greater(t, hits, 300)
}

// The rays of a call cannot be columns of the result that it fills: winners are
// stored in T before TMax is read for the last time, and a result that is too
// small is freed first.
func TestRaysInTheirOwnResult(t *testing.T) {
	r := build(t, meshT())
	rays := r.upload(i1)
	h, err := r.Intersect(background, rays, scene.All)
	require.NoError(t, err)
	want := r.download(h)
	for name, own := range map[string]scene.Rays{
		"O":    {O: h.P, D: rays.D},
		"D":    {O: rays.O, D: h.GeoN},
		"TMax": {O: rays.O, D: rays.D, TMax: h.T},
	} {
		var bad *scene.ArgumentError
		_, err := r.Intersect(background, own, scene.None, scene.Into(h))
		require.ErrorAs(t, err, &bad, name)
		assert.Equal(t, "Into", bad.Arg)
	}
	assert.Equal(t, want.exact(), r.download(h).exact(), "a refused call changes nothing")

	// Columns of another result are fine.
	again, err := r.Intersect(background, scene.Rays{O: rays.O, D: rays.D, TMax: h.T}, scene.None)
	require.NoError(t, err)
	assert.Equal(t, want.t, r.download(again).t)
	again, err = r.Intersect(background, scene.Rays{O: rays.O, D: rays.D, TMax: h.T}, scene.None, scene.Into(again))
	require.NoError(t, err)
	assert.Equal(t, want.t, r.download(again).t)
	require.NoError(t, again.Close())
	require.NoError(t, h.Close())
}

// Memory that a result has no more is not written to.
func TestIntoFreedMemory(t *testing.T) {
	r := build(t, meshT())
	var rays batch
	for range 64 { // the distances are all of the memory
		rays.add(vec{.25, .25, -1}, vec{0, 0, 1})
	}
	in := r.upload(rays)
	h, err := r.Intersect(background, in, scene.None)
	require.NoError(t, err)
	require.NoError(t, cuda.Free(h.T))
	_, err = r.Intersect(background, in, scene.None, scene.Into(h))
	requireArgument(t, err, "Intersect", "Into")
	require.ErrorIs(t, h.Close(), cuda.ErrClosed)
}

// A result of another driver gives its memory back there, whatever it has in common with
// inputs here: their addresses may be equal.
func TestIntoResultOfAnotherDriver(t *testing.T) {
	if gputest.Native() {
		t.Skip("there is one driver")
	}
	r, other := build(t, meshT()), build(t, meshT())
	in := r.upload(i1)
	h, err := other.Intersect(background, other.upload(i1), scene.None)
	require.NoError(t, err)
	at, err := cuda.Alloc[float32](r.Context(), h.T.Len())
	require.NoError(t, err)
	require.Equal(t, h.T.Addr(), at.Addr(), "both did the same so far")
	require.NoError(t, cuda.CopyIn(background, r.Stream(), at, []float32{inf}))
	used := other.Context().Pool().Stats().BytesInUse
	again, err := r.Intersect(background, scene.Rays{O: in.O, D: in.D, TMax: at}, scene.None, scene.Into(h))
	require.NoError(t, err)
	require.Equal(t, []float32{1}, r.download(again).t)
	require.Less(t, other.Context().Pool().Stats().BytesInUse, used)
	require.NoError(t, again.Close())
	require.NoError(t, cuda.Free(at))
}
