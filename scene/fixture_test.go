package scene_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

var (
	background = context.Background()
	inf        = float32(math.Inf(1))
	nan        = float32(math.NaN())
)

type vec = [3]float32

// Meshes of the test cases.
func meshT() scene.Mesh { return triangles(vec{0, 0, 0}, vec{1, 0, 0}, vec{0, 1, 0}) }
func meshQ() scene.Mesh {
	return scene.Mesh{
		Vertices: []float32{0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0},
		Faces:    []int32{0, 1, 2, 0, 2, 3},
	}
}
func meshS() scene.Mesh {
	return triangles(vec{0, 0, 0}, vec{1, 0, 0}, vec{0, 1, 0}, vec{0, 0, .5}, vec{1, 0, .5}, vec{0, 1, .5})
}
func meshW() scene.Mesh { return triangles(vec{1, 0, 0}, vec{0, 2, 0}, vec{0, 0, 3}) }

// triangles is a mesh of unshared corners.
func triangles(corners ...vec) scene.Mesh {
	var m scene.Mesh
	for i, c := range corners {
		m.Vertices = append(m.Vertices, c[:]...)
		m.Faces = append(m.Faces, int32(i))
	}
	return m
}

func moved(m scene.Mesh, by vec) scene.Mesh {
	v := make([]float32, len(m.Vertices))
	for i := range v {
		v[i] = m.Vertices[i] + by[i%3]
	}
	m.Vertices = v
	return m
}

func scaled(m scene.Mesh, by float32) scene.Mesh {
	v := make([]float32, len(m.Vertices))
	for i := range v {
		v[i] = m.Vertices[i] * by
	}
	m.Vertices = v
	return m
}

func dynamic(m scene.Mesh) scene.Mesh {
	m.Dynamic = true
	return m
}

// rig is one scene on one device.
type rig struct {
	testing.TB
	*scene.Scene
}

// Context is the scene's; the test has a method of that name, too.
func (r *rig) Context() *cuda.Context { return r.Scene.Context() }

// inside makes the context current.
func (r *rig) inside() cuda.Scope {
	r.Helper()
	sc, err := r.Context().Enter()
	require.NoError(r, err)
	return sc
}

// open makes an empty scene.
func open(t testing.TB) *rig {
	t.Helper()
	return openOn(t, gputest.Open(t, 1, nil).Context(t, 0))
}

func openOn(t testing.TB, c *cuda.Context) *rig {
	t.Helper()
	s, err := scene.New(c, scene.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &rig{t, s}
}

// build makes a scene of the meshes.
func build(t testing.TB, meshes ...scene.Mesh) *rig {
	t.Helper()
	r := open(t)
	r.add(meshes...)
	require.NoError(t, r.Build(background))
	return r
}

// traced is build with the calls of the driver counted.
func traced(t testing.TB, meshes ...scene.Mesh) (r *rig, calls *wrap.Trace) {
	t.Helper()
	devices := gputest.Open(t, 1, func(api cuapi.API) cuapi.API {
		calls = wrap.NewTrace(api)
		return calls
	})
	r = openOn(t, devices.Context(t, 0))
	r.add(meshes...)
	require.NoError(t, r.Build(background))
	return r, calls
}

func (r *rig) add(meshes ...scene.Mesh) {
	r.Helper()
	for _, m := range meshes {
		_, err := r.AddMesh(m)
		require.NoError(r, err)
	}
}

// batch is rays on the host.
type batch struct {
	o, d   []float32
	tmax   []float32
	active []uint8
}

func ray(o, d vec) batch { return batch{o: o[:], d: d[:]} }

func (b batch) until(tmax ...float32) batch {
	b.tmax = tmax
	return b
}

func (b *batch) add(o, d vec) {
	b.o, b.d = append(b.o, o[:]...), append(b.d, d[:]...)
}

func (b batch) rows() int { return len(b.o) / 3 }

func (b batch) ray(i int) (o, d vec, tmax float32) {
	tmax = inf
	if b.tmax != nil {
		tmax = b.tmax[i]
	}
	return vec(b.o[3*i:]), vec(b.d[3*i:]), tmax
}

// part is rows [i,j).
func (b batch) part(i, j int) batch {
	p := batch{o: b.o[3*i : 3*j], d: b.d[3*i : 3*j]}
	if b.tmax != nil {
		p.tmax = b.tmax[i:j]
	}
	if b.active != nil {
		p.active = b.active[i:j]
	}
	return p
}

// upload copies the batch to the scene's device until the test ends.
func (r *rig) upload(b batch) scene.Rays {
	r.Helper()
	rays := scene.Rays{O: toDevice(r, b.o), D: toDevice(r, b.d)}
	if b.tmax != nil {
		rays.TMax = toDevice(r, b.tmax)
	}
	if b.active != nil {
		rays.Active = toDevice(r, b.active)
	}
	return rays
}

func toDevice[T cuda.Scalar](r *rig, v []T) cuda.Slice[T] {
	r.Helper()
	s, err := cuda.Upload(background, r.Stream(), v)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, cuda.Free(s)) })
	return s
}

// table is a result on the host.
type table struct {
	t, p, n, geoN, uv, bary    []float32
	shape, prim, local, global []int32
}

func (r *rig) download(h *scene.Hits) table {
	r.Helper()
	require.NoError(r, r.Stream().Synchronize(background))
	return table{
		t: toHost(r, h.T), p: toHost(r, h.P), n: toHost(r, h.N), geoN: toHost(r, h.GeoN),
		uv: toHost(r, h.UV), bary: toHost(r, h.Barycentric),
		shape: toHost(r, h.ShapeID), prim: toHost(r, h.PrimID),
		local: toHost(r, h.LocalPrimID), global: toHost(r, h.GlobalPrimID),
	}
}

func toHost[T cuda.Scalar](r *rig, s cuda.Slice[T]) []T {
	r.Helper()
	if s.Len() == 0 {
		return nil
	}
	v, err := cuda.Download(background, r.Stream(), s)
	require.NoError(r, err)
	return v
}

// intersect answers a batch on the scene's stream.
func (r *rig) intersect(b batch, flags scene.Flags) table {
	r.Helper()
	h, err := r.Intersect(background, r.upload(b), flags)
	require.NoError(r, err)
	defer func() { require.NoError(r, h.Close()) }()
	require.Equal(r, b.rows(), h.Rows())
	return r.download(h)
}

// bits makes floats comparable exactly: also NaN, and -0 is not +0.
func bits(v []float32) []uint32 {
	var out []uint32
	for _, x := range v {
		out = append(out, math.Float32bits(x))
	}
	return out
}

// exact is the table with all floats as bits.
func (a table) exact() [10]any {
	return [10]any{
		bits(a.t), bits(a.p), bits(a.n), bits(a.geoN), bits(a.uv), bits(a.bary),
		a.shape, a.prim, a.local, a.global,
	}
}

// join is the rows of a followed by those of b.
func (a table) join(b table) table {
	return table{
		append(a.t, b.t...), append(a.p, b.p...), append(a.n, b.n...), append(a.geoN, b.geoN...),
		append(a.uv, b.uv...), append(a.bary, b.bary...), append(a.shape, b.shape...),
		append(a.prim, b.prim...), append(a.local, b.local...), append(a.global, b.global...),
	}
}

// row is one line of a result.
type row struct {
	t                          float32
	p, n, bary                 vec
	uv                         [2]float32
	shape, prim, local, global int32
}

var miss = row{t: inf, shape: -1, prim: -1, local: -1, global: -1}

func (a table) row(i int) row {
	return row{
		t: a.t[i], p: vec(a.p[3*i:]), n: vec(a.geoN[3*i:]), bary: vec(a.bary[3*i:]), uv: [2]float32(a.uv[2*i:]),
		shape: a.shape[i], prim: a.prim[i], local: a.local[i], global: a.global[i],
	}
}

// requireRow compares within 1e-6, relative for t and for large values.
func requireRow(t testing.TB, want, have row, msg ...string) {
	t.Helper()
	about := strings.Join(msg, " ")
	near := func(what string, want, have []float32) {
		t.Helper()
		for k := range want {
			tol := 1e-6 * math.Max(1, math.Abs(float64(want[k])))
			require.InDelta(t, want[k], have[k], tol, "%s %s", what, about)
		}
	}
	if want.t == inf {
		require.Equal(t, want.t, have.t, about)
	} else {
		require.InEpsilon(t, want.t, have.t, 1e-6, about)
	}
	near("p", want.p[:], have.p[:])
	near("n", want.n[:], have.n[:])
	near("barycentric", want.bary[:], have.bary[:])
	near("uv", want.uv[:], have.uv[:])
	require.Equal(t, [4]int32{want.shape, want.prim, want.local, want.global},
		[4]int32{have.shape, have.prim, have.local, have.global}, about)
}
