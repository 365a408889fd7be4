package scene_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

var i1 = ray(vec{.25, .25, -1}, vec{0, 0, 1})

// t1 is the t of ray I1.
func (r *rig) t1() float32 {
	r.Helper()
	return r.intersect(i1, scene.None).t[0]
}

func (r *rig) update(id int, m scene.Mesh) {
	r.Helper()
	require.NoError(r, r.UpdateMeshVertices(id, m.Vertices))
}

func (r *rig) sync() {
	r.Helper()
	require.NoError(r, r.Sync(background))
}

func (r *rig) requireVersions(version, geometry, mask int64) {
	r.Helper()
	require.Equal(r, [3]int64{version, geometry, mask},
		[3]int64{r.Version(), r.GeometryVersion(), r.EdgeMaskVersion()}, "version, geometry version, mask version")
}

func up(m scene.Mesh, z float32) scene.Mesh { return moved(m, vec{0, 0, z}) }

// What a failed call returns may be closed by a defer that does not look.
func TestCloseOfNil(t *testing.T) {
	closers := map[string]interface{ Close() error }{}
	for _, c := range [...]interface{ Close() error }{
		(*scene.Scene)(nil), (*scene.MaterialTable)(nil), (*scene.StateTable)(nil), (*scene.SurfaceGroupTable)(nil),
		(*scene.Hits)(nil), (*scene.Chains)(nil), (*scene.UniqueChains)(nil), (*scene.Visibility)(nil), (*scene.PairVisibility)(nil),
		(*scene.EdgeVisibility)(nil), (*scene.ChainVisibility)(nil), (*scene.DfrAccum)(nil), (*scene.DfrCoherentAccum)(nil),
		(*scene.DfrPaths)(nil), (*scene.ReflGrids)(nil), (*scene.EPCPaths)(nil), (*scene.EPCFields)(nil),
	} {
		closers[reflect.TypeOf(c).Elem().Name()] = c
	}
	require.ElementsMatch(t, typesThatClose(t), slices.Collect(maps.Keys(closers)))
	for name, c := range closers {
		require.NotPanics(t, func() { require.NoError(t, c.Close(), name) }, name)
	}
}

// typesThatClose are the exported types of the package that declare Close.
func typesThatClose(t *testing.T) (names []string) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Close" {
				continue
			}
			if of, ok := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident); ok && of.IsExported() {
				names = append(names, of.Name)
			}
		}
	}
	return names
}

func TestL1NothingWorksBeforeBuild(t *testing.T) {
	r := open(t)
	_, err := r.Intersect(background, r.upload(i1), scene.All)
	require.ErrorIs(t, err, scene.ErrNotReady)
	require.ErrorIs(t, r.Build(background), scene.ErrNoMesh)
	require.ErrorIs(t, r.UpdateMeshVertices(0, nil), scene.ErrNotReady)
	require.ErrorIs(t, r.Sync(background), scene.ErrNotReady)
	require.ErrorIs(t, r.SetEdgeMask(nil), scene.ErrNotReady)
	_, err = r.EdgeMask()
	require.ErrorIs(t, err, scene.ErrNotReady)
	_, err = r.GlobalGeometry(background)
	require.ErrorIs(t, err, scene.ErrNotReady)
	_, err = r.EdgeRecords(background)
	require.ErrorIs(t, err, scene.ErrNotReady)
	assert.False(t, r.IsReady())
	r.requireVersions(0, 0, 0)
	r.add(meshT())
	_, err = r.Intersect(background, r.upload(i1), scene.All)
	require.Equal(t, scene.ErrNotReady, err)
	require.NoError(t, r.Build(background))
	r.add(meshT())
	_, err = r.Intersect(background, r.upload(i1), scene.All)
	require.ErrorIs(t, err, scene.ErrNotReady)
	require.EqualError(t, err, "scene: not ready: call Build first: meshes were added since the last one")
	require.ErrorIs(t, r.Sync(background), scene.ErrNotReady)
	require.NoError(t, r.Build(background))
	assert.True(t, r.IsReady())
}

func TestL2FirstVersions(t *testing.T) {
	r := build(t, meshT())
	r.requireVersions(1, 1, 1)
	assert.True(t, r.IsReady())
	assert.False(t, r.HasPendingUpdates())
	assert.Equal(t, scene.CUDA, r.Backend())
	assert.NotEmpty(t, r.BackendReason())
}

func TestL3L4L5UpdatesWaitForSync(t *testing.T) {
	r := build(t, dynamic(meshT()))
	r.update(0, up(meshT(), 1))
	assert.Equal(t, float32(1), r.t1())
	assert.True(t, r.HasPendingUpdates())
	r.requireVersions(1, 1, 1)

	r.sync()
	assert.Equal(t, float32(2), r.t1())
	assert.False(t, r.HasPendingUpdates())
	r.requireVersions(2, 2, 1)
	lo, hi := r.Bounds()
	assert.Equal(t, [2]float32{1, 1}, [2]float32{lo[2], hi[2]})

	r.sync()
	r.requireVersions(2, 2, 1)
}

func TestL6OneSyncForTwoMeshes(t *testing.T) {
	r := build(t, dynamic(meshT()), dynamic(moved(meshT(), vec{3, 0, 0})), meshW())
	r.update(0, up(meshT(), 1))
	r.update(1, moved(meshT(), vec{3, 0, 2}))
	r.sync()
	r.requireVersions(2, 2, 1)
	b := i1
	b.add(vec{3.25, .25, -1}, vec{0, 0, 1})
	assert.Equal(t, []float32{2, 3}, r.intersect(b, scene.None).t)
}

func TestL7LastUpdateCounts(t *testing.T) {
	r := build(t, dynamic(meshT()))
	r.update(0, up(meshT(), 1))
	r.update(0, up(meshT(), 3))
	r.sync()
	assert.Equal(t, float32(4), r.t1())

	// Host and device updates replace each other.
	r.update(0, up(meshT(), 1))
	require.NoError(t, r.UpdateMeshVerticesDevice(background, 0, toDevice(r, up(meshT(), 5).Vertices)))
	r.sync()
	assert.Equal(t, float32(6), r.t1())
	require.NoError(t, r.UpdateMeshVerticesDevice(background, 0, toDevice(r, up(meshT(), 1).Vertices)))
	r.update(0, up(meshT(), 2))
	r.sync()
	assert.Equal(t, float32(3), r.t1())
}

func TestL8RefusedUpdatesChangeNothing(t *testing.T) {
	r := build(t, dynamic(meshT()), up(meshT(), 9))
	r.update(0, up(meshT(), 1))
	r.sync()
	bad := up(meshT(), 7)
	bad.Vertices[4] = nan
	for _, c := range []struct {
		name string
		id   int
		v    []float32
	}{
		{"static mesh", 1, up(meshT(), 7).Vertices},
		{"too few vertices", 0, make([]float32, 6)},
		{"too many vertices", 0, make([]float32, 12)},
		{"not finite", 0, bad.Vertices},
		{"negative id", -1, make([]float32, 9)},
		{"unknown id", 2, make([]float32, 9)},
	} {
		var arg *scene.ArgumentError
		require.ErrorAs(t, r.UpdateMeshVertices(c.id, c.v), &arg, c.name)
		require.ErrorAs(t, r.UpdateMeshVerticesDevice(background, c.id, toDevice(r, c.v)), &arg, c.name)
		require.False(t, r.HasPendingUpdates(), c.name)
		require.Equal(t, float32(2), r.t1(), c.name)
	}
	r.sync()
	r.requireVersions(2, 2, 1)
	require.NoError(t, r.Build(background))
	assert.Equal(t, float32(2), r.t1(), "the rebuild forgot the committed vertices")

	// Likewise when only the device has them.
	require.NoError(t, r.UpdateMeshVerticesDevice(background, 0, toDevice(r, up(meshT(), 3).Vertices)))
	r.sync()
	require.NoError(t, r.Build(background))
	assert.Equal(t, float32(4), r.t1())
}

func TestL9EdgeMask(t *testing.T) {
	r := build(t, dynamic(meshQ()))
	mask := []bool{true, false, true, true, false}
	want := append([]bool{}, mask...)
	require.NoError(t, r.SetEdgeMask(mask))
	mask[0] = false // it was copied
	r.requireVersions(2, 1, 2)
	r.update(0, up(meshQ(), 1))
	r.sync()
	r.requireVersions(3, 2, 2)
	got, err := r.EdgeMask()
	require.NoError(t, err)
	assert.Equal(t, want, got)

	var arg *scene.ArgumentError
	require.ErrorAs(t, r.SetEdgeMask(make([]bool, 4)), &arg)
	require.NoError(t, r.Build(background))
	r.requireVersions(4, 3, 3)
	got, err = r.EdgeMask()
	require.NoError(t, err)
	assert.Equal(t, []bool{true, true, true, true, true}, got)
}

func TestL10AddMeshNeedsABuild(t *testing.T) {
	r := build(t, up(dynamic(meshT()), 5))
	r.update(0, up(meshT(), 3)) // stays staged across AddMesh
	r.add(up(meshT(), 1))
	assert.False(t, r.IsReady())
	assert.False(t, r.HasPendingUpdates())
	_, err := r.Intersect(background, r.upload(i1), scene.All)
	require.ErrorIs(t, err, scene.ErrNotReady)
	require.NoError(t, r.Build(background))
	assert.Equal(t, float32(2), r.t1())
	down := ray(vec{.25, .25, 9}, vec{0, 0, -1})
	assert.Equal(t, float32(6), r.intersect(down, scene.None).t[0], "the staged vertices were lost")
	r.requireVersions(2, 2, 2)
}

func TestL15RefitEqualsAFreshBuild(t *testing.T) {
	for _, c := range closedForms() {
		t.Run(c.id, func(t *testing.T) {
			m := c.mesh()
			want := build(t, m).intersect(c.ray, scene.All)
			r := build(t, dynamic(m))
			r.update(0, up(m, 1000))
			r.sync()
			r.update(0, m)
			r.sync()
			require.Equal(t, want.exact(), r.intersect(c.ray, scene.All).exact())
		})
	}
}

// Refitted, rebuilt and fresh trees differ in shape and give the same bits.
func TestRefitEqualsAFreshBuildOnSoup(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 1))
	const n = 400
	b := randomBatch(rng, 500)
	shuffled := randomSoup(rng, n, .2)
	near := scene.Mesh{Vertices: append([]float32{}, shuffled.Vertices...), Faces: shuffled.Faces}
	for i := range near.Vertices {
		near.Vertices[i] += 0.01 * (rng.Float32() - .5)
	}
	unrelated := randomSoup(rng, n, .2)
	r := build(t, dynamic(shuffled), meshQ())
	for _, m := range []scene.Mesh{near, unrelated, shuffled, scaled(near, 3)} {
		r.update(0, m)
		r.sync()
		want := build(t, m, meshQ()).intersect(b, scene.All)
		require.Equal(t, want.exact(), r.intersect(b, scene.All).exact())
		require.Equal(t, m.Vertices, r.geometry().Vertices[:9*n])
		require.Equal(t, build(t, m, meshQ()).geometry().FaceNormals, r.geometry().FaceNormals)
	}
}

func TestDeviceMeshes(t *testing.T) {
	r := open(t)
	q, m := meshQ(), dynamic(scene.Mesh{})
	m.DeviceVertices, m.DeviceFaces = toDevice(r, q.Vertices), toDevice(r, q.Faces)
	r.add(meshT(), m)
	require.NoError(t, r.Build(background))
	g := r.geometry()
	assert.Equal(t, append(meshT().Vertices, q.Vertices...), g.Vertices)
	assert.Equal(t, []int32{0, 1, 2, 3, 4, 5, 3, 5, 6}, g.Faces)
	assert.Equal(t, 8, r.NumEdges())
	r.update(1, up(q, -.5))
	r.sync()
	require.NoError(t, r.Build(background))
	assert.Equal(t, float32(.5), r.t1())
}

func TestDeviceMeshesAreValidatedByBuild(t *testing.T) {
	bad := func(edit func(v []float32, f []int32)) scene.Mesh {
		q := meshQ()
		edit(q.Vertices, q.Faces)
		return q
	}
	for _, c := range []struct {
		name, arg, detail string
		mesh              scene.Mesh
	}{
		{"NaN", "DeviceVertices", "mesh 1: vertex 2", bad(func(v []float32, _ []int32) { v[7], v[11] = nan, inf })},
		{"infinity", "DeviceVertices", "mesh 1: vertex 3", bad(func(v []float32, _ []int32) { v[11] = -inf })},
		{"index too large", "DeviceFaces", "mesh 1: face 1", bad(func(_ []float32, f []int32) { f[5] = 4 })},
		{"negative index", "DeviceFaces", "mesh 1: face 0", bad(func(_ []float32, f []int32) { f[1], f[4] = -1, -1 })},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := open(t)
			m := scene.Mesh{DeviceVertices: toDevice(r, c.mesh.Vertices), DeviceFaces: toDevice(r, c.mesh.Faces)}
			r.add(meshT(), m)
			err := r.Build(background)
			var arg *scene.ArgumentError
			require.ErrorAs(t, err, &arg)
			assert.Equal(t, c.arg, arg.Arg)
			assert.Contains(t, arg.Detail, c.detail)
			assert.False(t, r.IsReady())
			r.requireVersions(0, 0, 0)
			// The scene is unchanged: with the data repaired it builds.
			q := meshQ()
			require.NoError(t, cuda.CopyIn(background, r.Stream(), m.DeviceVertices, q.Vertices))
			require.NoError(t, cuda.CopyIn(background, r.Stream(), m.DeviceFaces, q.Faces))
			require.NoError(t, r.Build(background))
		})
	}
}

func TestAddMeshRefusesBadMeshes(t *testing.T) {
	r := build(t, meshT())
	device := toDevice(r, meshT().Vertices)
	for _, c := range []struct {
		name string
		mesh scene.Mesh
	}{
		{"empty", scene.Mesh{}},
		{"no faces", scene.Mesh{Vertices: meshT().Vertices}},
		{"no vertices", scene.Mesh{Faces: meshT().Faces}},
		{"vertices no multiple of 3", scene.Mesh{Vertices: make([]float32, 8), Faces: meshT().Faces}},
		{"faces no multiple of 3", scene.Mesh{Vertices: meshT().Vertices, Faces: []int32{0, 1, 2, 0}}},
		{"index too large", scene.Mesh{Vertices: meshT().Vertices, Faces: []int32{0, 1, 3}}},
		{"negative index", scene.Mesh{Vertices: meshT().Vertices, Faces: []int32{0, -1, 2}}},
		{"NaN", scene.Mesh{Vertices: []float32{0, 0, 0, nan, 0, 0, 0, 1, 0}, Faces: meshT().Faces}},
		{"infinity", scene.Mesh{Vertices: []float32{0, 0, 0, 1, 0, 0, 0, 1, inf}, Faces: meshT().Faces}},
		{"host and device", scene.Mesh{Vertices: meshT().Vertices, Faces: meshT().Faces, DeviceVertices: device}},
		{"device vertices only", scene.Mesh{DeviceVertices: device}},
	} {
		id, err := r.AddMesh(c.mesh)
		var arg *scene.ArgumentError
		require.ErrorAs(t, err, &arg, c.name)
		assert.Equal(t, -1, id, c.name)
		assert.True(t, r.IsReady(), c.name)
		assert.Equal(t, 1, r.NumShapes(), c.name)
	}
	assert.Equal(t, float32(1), r.t1())
}

// RAYMUX_NO_OPTIX makes it unavailable also where the library is there.
func TestOptiXIsAnErrorAtBuild(t *testing.T) {
	t.Setenv("RAYMUX_NO_OPTIX", "1")
	r := open(t)
	s, err := scene.New(r.Context(), scene.Options{Backend: scene.OptiX})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.AddMesh(meshT())
	require.NoError(t, err)
	require.ErrorIs(t, s.Build(background), scene.ErrBackendUnavailable)
	assert.False(t, s.IsReady())
}

func TestClosedScene(t *testing.T) {
	r := build(t, dynamic(meshT()))
	rays := r.upload(i1)
	h, err := r.Intersect(background, rays, scene.All)
	require.NoError(t, err)
	want := r.download(h)
	st, err := r.Context().NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	require.NoError(t, r.Scene.Close())
	require.NoError(t, r.Scene.Close())

	_, err = r.Intersect(background, rays, scene.All)
	require.ErrorIs(t, err, cuda.ErrClosed)
	_, err = r.AddMesh(meshT())
	require.ErrorIs(t, err, cuda.ErrClosed)
	require.ErrorIs(t, r.Build(background), cuda.ErrClosed)
	require.ErrorIs(t, r.UpdateMeshVertices(0, meshT().Vertices), cuda.ErrClosed)
	require.ErrorIs(t, r.Sync(background), cuda.ErrClosed)
	assert.False(t, r.IsReady())

	got, err := cuda.Download(background, st, h.T)
	require.NoError(t, err, "results outlive the scene")
	assert.Equal(t, want.t, got)
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())
}
