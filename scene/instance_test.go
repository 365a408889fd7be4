package scene_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/optixtest"
)

type transform = [16]float32

func shiftBy(v vec) transform {
	return transform{1, 0, 0, v[0], 0, 1, 0, v[1], 0, 0, 1, v[2], 0, 0, 0, 1}
}

func stretch(x, y, z float32) transform {
	return transform{0: x, 5: y, 10: z, 15: 1}
}

// randomTransform is not near a singular one, and mirrors half of the time.
func randomTransform(rng *rand.Rand) transform {
	var m transform
	for i := range 12 {
		m[i] = .4 * (rng.Float32() - .5)
	}
	m[0], m[5], m[10] = m[0]+1, m[5]-1, m[10]+1
	if rng.IntN(2) == 0 {
		m[5] += 2
	}
	m[15] = 1
	return m
}

// fused is a*b + c rounded once.
func fused(a, b, c float32) float32 {
	exact := func() *big.Float { return new(big.Float).SetPrec(1000) }
	x := exact().Mul(exact().SetFloat64(float64(a)), exact().SetFloat64(float64(b)))
	r, _ := x.Add(x, exact().SetFloat64(float64(c))).Float32()
	return r
}

// transformed is m with the vertices that an instance of it has.
func transformed(m scene.Mesh, by transform) scene.Mesh {
	v := make([]float32, len(m.Vertices))
	for i := range v {
		row, at := by[4*(i%3):], m.Vertices[i/3*3:]
		v[i] = fused(row[0], at[0], fused(row[1], at[1], fused(row[2], at[2], row[3])))
	}
	m.Vertices = v
	return m
}

func (r *rig) instance(owner int, by transform, dynamic bool) int {
	r.Helper()
	id, err := r.AddInstance(owner, by, dynamic)
	require.NoError(r, err)
	return id
}

// onBothTracers runs f with an empty scene of each backend.
func onBothTracers(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Run("cuda", func(t *testing.T) { f(t, open(t)) })
	t.Run("optix", func(t *testing.T) {
		r := optixtest.Open(t, 1, fakeoptix.Config{})
		f(t, sceneOn(t, r.Driver.Devices()[0], scene.OptiX))
	})
}

func TestL11L12Instance(t *testing.T) {
	onBothTracers(t, func(t *testing.T, r *rig) {
		r.add(meshT())
		require.Equal(t, 1, r.instance(0, shiftBy(vec{3, 0, 0}), true))
		require.NoError(t, r.Build(background))
		assert.Equal(t, [2]int{2, 1}, [2]int{r.NumShapes(), r.NumMeshes()})
		assert.Equal(t, 6, r.NumEdges())
		var b batch
		for _, x := range []float32{.25, 3.25, 5.25} {
			b.add(vec{x, .25, -1}, vec{0, 0, 1})
		}
		got := r.intersect(b, scene.All)
		assert.Equal(t, []float32{1, 1, inf}, got.t)
		assert.Equal(t, []int32{0, 1, -1}, got.shape)
		assert.Equal(t, []int32{0, 0, -1}, got.local)
		assert.Equal(t, []int32{0, 1, -1}, got.global)
		r.requireVersions(1, 1, 1)
		edges, geometry := r.edges(), r.geometry()
		assert.Equal(t, []int32{0, 0, 1, 3, 3, 4}, edges.V0)
		assert.Equal(t, []int32{1, 2, 2, 4, 5, 5}, edges.V1)
		assert.Equal(t, []int32{0, 0, 0, 1, 1, 1}, edges.Face0)
		assert.Equal(t, []int32{0, 0, 0, 1, 1, 1}, edges.ShapeID)
		assert.Equal(t, []int32{0, 1, 2, 0, 1, 2}, edges.EdgeID)
		assert.Equal(t, []int32{0, 1, 2, 3, 4, 5}, geometry.Faces)

		require.NoError(t, r.SetInstanceTransform(1, shiftBy(vec{5, 0, 0})))
		assert.True(t, r.HasPendingUpdates())
		assert.Equal(t, []int32{0, 1, -1}, r.intersect(b, scene.All).global, "moved before Sync")
		r.sync()
		got = r.intersect(b, scene.All)
		assert.Equal(t, []float32{1, inf, 1}, got.t)
		assert.Equal(t, []int32{0, -1, 1}, got.shape)
		assert.Equal(t, []int32{0, -1, 1}, got.global)
		assert.False(t, r.HasPendingUpdates())
		r.requireVersions(2, 2, 1)
		lo, hi := r.Bounds()
		assert.Equal(t, [2]vec{{0, 0, 0}, {6, 1, 0}}, [2]vec{lo, hi})
		after := r.edges()
		assert.Equal(t, edges.V1, after.V1)
		assert.Equal(t, []float32{5, 0, 0}, after.A[9:12])
		r.sync()
		r.requireVersions(2, 2, 1)
	})
}

func TestL13RefusedInstances(t *testing.T) {
	r := open(t)
	r.add(meshT(), dynamic(meshQ()))
	fixed, loose := r.instance(0, shiftBy(vec{3, 0, 0}), false), r.instance(0, shiftBy(vec{6, 0, 0}), true)
	require.NoError(t, r.Build(background))
	good := shiftBy(vec{1, 2, 3})
	with := func(i int, v float32) transform {
		m := good
		m[i] = v
		return m
	}
	bad := map[string]transform{
		"NaN":                    with(6, nan),
		"infinite shift":         with(3, inf),
		"infinite last row":      with(12, -inf),
		"last row 1 0 0 1":       with(12, 1),
		"last row 0 0 0 2":       with(15, 2),
		"last row 0":             with(15, 0),
		"transposed":             {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 2, 3, 1},
		"zero":                   {15: 1},
		"flat":                   stretch(1, 1, 0),
		"equal rows":             {1, 2, 3, 0, 1, 2, 3, 0, 0, 0, 1, 0, 0, 0, 0, 1},
		"too flat":               stretch(1, 1, 1e-12), // float32 rounds down
		"too flat at any scale":  stretch(1e30, 1e30, .999e18),
		"too flat and too small": stretch(1e-30, 1e-30, .999e-42),
	}
	for name, m := range bad {
		var arg *scene.ArgumentError
		id, err := r.AddInstance(0, m, true)
		require.ErrorAs(t, err, &arg, name)
		assert.Equal(t, [2]string{"AddInstance", "transform"}, [2]string{arg.Op, arg.Arg}, name)
		assert.Equal(t, -1, id, name)
		require.ErrorAs(t, r.SetInstanceTransform(loose, m), &arg, name)
		assert.Equal(t, [2]string{"SetInstanceTransform", "transform"}, [2]string{arg.Op, arg.Arg}, name)
	}
	for name, owner := range map[string]int{
		"negative": -1, "unknown": 4, "dynamic mesh": 1, "static instance": fixed, "dynamic instance": loose,
	} {
		var arg *scene.ArgumentError
		id, err := r.AddInstance(owner, good, false)
		require.ErrorAs(t, err, &arg, name)
		assert.Equal(t, "owner", arg.Arg, name)
		assert.Equal(t, -1, id, name)
	}
	for name, id := range map[string]int{
		"negative": -1, "unknown": 4, "static mesh": 0, "dynamic mesh": 1, "static instance": fixed,
	} {
		var arg *scene.ArgumentError
		require.ErrorAs(t, r.SetInstanceTransform(id, good), &arg, name)
		assert.Equal(t, "id", arg.Arg, name)
	}
	for _, id := range []int{fixed, loose} {
		var arg *scene.ArgumentError
		require.ErrorAs(t, r.UpdateMeshVertices(id, meshT().Vertices), &arg)
		assert.Equal(t, "id", arg.Arg)
		require.ErrorAs(t, r.UpdateMeshVerticesDevice(background, id, toDevice(r, meshT().Vertices)), &arg)
		assert.Equal(t, "id", arg.Arg)
	}
	assert.True(t, r.IsReady())
	assert.False(t, r.HasPendingUpdates())
	assert.Equal(t, [2]int{4, 2}, [2]int{r.NumShapes(), r.NumMeshes()})
	r.requireVersions(1, 1, 1)

	// Transforms that are just taken.
	for _, m := range []transform{
		stretch(1, 1, 1.001e-12), stretch(1e12, 1e12, 1.001), stretch(-1, 1, 1),
		{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, float32(0) * -1, 0, 0, 1},
	} {
		require.NoError(t, r.SetInstanceTransform(loose, m))
	}
	require.NoError(t, r.SetInstanceTransform(loose, good))
	r.sync()
	assert.Equal(t, transformed(meshT(), good).Vertices, r.geometry().Vertices[30:])
}

func TestInstancesInEveryState(t *testing.T) {
	r := open(t)
	var arg *scene.ArgumentError
	_, err := r.AddInstance(0, shiftBy(vec{}), true)
	require.ErrorAs(t, err, &arg, "there is no mesh")
	r.add(meshT())
	r.instance(0, shiftBy(vec{3, 0, 0}), true)
	require.ErrorIs(t, r.SetInstanceTransform(1, shiftBy(vec{})), scene.ErrNotReady)
	require.NoError(t, r.Build(background))
	r.instance(0, shiftBy(vec{6, 0, 0}), true)
	assert.False(t, r.IsReady())
	require.ErrorIs(t, r.SetInstanceTransform(1, shiftBy(vec{})), scene.ErrNotReady)
	require.NoError(t, r.Build(background))
	require.NoError(t, r.Close())
	_, err = r.AddInstance(0, shiftBy(vec{}), true)
	require.ErrorContains(t, err, "closed")
	require.ErrorContains(t, r.SetInstanceTransform(1, shiftBy(vec{})), "closed")
}

// A transform that is staged when a shape is added is folded in by Build; of several
// the last one counts.
func TestStagedTransforms(t *testing.T) {
	r := open(t)
	r.add(meshT())
	id := r.instance(0, shiftBy(vec{3, 0, 0}), true)
	require.NoError(t, r.Build(background))
	require.NoError(t, r.SetInstanceTransform(id, shiftBy(vec{0, 0, 7})))
	require.NoError(t, r.SetInstanceTransform(id, shiftBy(vec{4, 0, 1})))
	r.add(up(meshQ(), 9))
	assert.False(t, r.HasPendingUpdates())
	require.NoError(t, r.Build(background))
	assert.False(t, r.HasPendingUpdates())
	at := func() []float32 { return r.geometry().Vertices[9:12] }
	assert.Equal(t, []float32{4, 0, 1}, at())
	require.NoError(t, r.Build(background))
	assert.Equal(t, []float32{4, 0, 1}, at(), "a rebuild forgot the committed transform")
	require.NoError(t, r.SetInstanceTransform(id, shiftBy(vec{1, 2, 3})))
	require.NoError(t, r.SetInstanceTransform(id, shiftBy(vec{5, 6, 7})))
	r.sync()
	assert.Equal(t, []float32{5, 6, 7}, at())
	require.NoError(t, r.Build(background))
	assert.Equal(t, []float32{5, 6, 7}, at())
	r.requireVersions(5, 5, 4)
}

// A scene of instances is bit for bit one of meshes that have the moved vertices,
// and the float32 brute force agrees with its winners.
func TestInstancesAreMeshesOfMovedVertices(t *testing.T) {
	onBothTracers(t, func(t *testing.T, r *rig) {
		rng := rand.New(rand.NewPCG(11, 2))
		quiet := randomSoup(rng, 10, .3)
		quiet.NoEdges = true
		owners := []scene.Mesh{randomSoup(rng, 20, .3), lattice(rng, 3, .2), quiet, dynamic(randomSoup(rng, 10, .3))}
		// The second owner is on the device until Build copies it.
		onDevice := scene.Mesh{DeviceVertices: toDevice(r, owners[1].Vertices), DeviceFaces: toDevice(r, owners[1].Faces)}
		r.add(owners[0], onDevice)
		shapes := []scene.Mesh{owners[0], owners[1]}
		of := map[int]int{}
		add := func(owner int) {
			by := randomTransform(rng)
			id := r.instance(owner, by, len(of)%2 == 0)
			require.Equal(t, len(shapes), id)
			shapes = append(shapes, transformed(shapes[owner], by))
			of[id] = owner
		}
		add(1)
		add(0)
		r.add(owners[2], owners[3])
		shapes = append(shapes, owners[2], owners[3])
		for _, owner := range []int{0, 4, 4, 1, 1} {
			add(owner)
		}
		compare := func() {
			t.Helper()
			want := build(t, shapes...)
			all := joined(shapes)
			b := around(rng, all, 150)
			got := r.intersect(b, scene.All)
			require.Equal(t, want.geometry(), r.geometry())
			require.Equal(t, bits(want.geometry().Vertices), bits(r.geometry().Vertices))
			require.Equal(t, want.edges(), r.edges())
			require.Equal(t, want.intersect(b, scene.All).exact(), got.exact())
			lo, hi := want.Bounds()
			l, h := r.Bounds()
			require.Equal(t, [2]vec{lo, hi}, [2]vec{l, h})
			requireOracleTable(t, got, all, b)
			require.Equal(t, [2]int{len(shapes), 4}, [2]int{r.NumShapes(), r.NumMeshes()})
		}
		require.NoError(t, r.Build(background))
		compare()
		for range 2 {
			for id, owner := range of {
				by := randomTransform(rng)
				if r.SetInstanceTransform(id, by) == nil {
					shapes[id] = transformed(shapes[owner], by)
				}
			}
			r.update(5, moved(owners[3], vec{0, .1, 0}))
			shapes[5] = dynamic(moved(owners[3], vec{0, .1, 0}))
			r.sync()
			compare()
		}
		require.NoError(t, r.Build(background))
		compare()
		add(0)
		require.NoError(t, r.Build(background))
		compare()
	})
}

// The normal of a mirrored face follows the winding of the moved vertices.
func TestMirroredInstance(t *testing.T) {
	onBothTracers(t, func(t *testing.T, r *rig) {
		r.add(meshT())
		r.instance(0, transform{-1, 0, 0, -2, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, false)
		require.NoError(t, r.Build(background))
		assert.Equal(t, []float32{0, 0, 1, 0, 0, -1}, r.geometry().FaceNormals)
		got := r.intersect(ray(vec{-2.25, .25, -1}, vec{0, 0, 1}), scene.All)
		requireRow(t, row{
			t: 1, p: vec{-2.25, .25, 0}, n: vec{0, 0, -1}, bary: vec{.5, .25, .25}, uv: [2]float32{.25, .25},
			shape: 1, prim: 1, global: 1,
		}, got.row(0))
	})
}

// A transform may be finite and its result not. Then nothing is committed, neither
// of the instance nor of what is staged beside it.
func TestInstanceOutOfRange(t *testing.T) {
	onBothTracers(t, func(t *testing.T, r *rig) {
		huge := stretch(3e38, 3e38, 3e38) // 1 is in range, 2 is not
		r.add(meshT(), dynamic(meshQ()), scaled(meshQ(), 2))
		fine, wide := r.instance(0, huge, true), r.instance(2, shiftBy(vec{9, 0, 0}), true)
		require.NoError(t, r.Build(background))
		before, bit := r.geometry(), r.intersect(i1, scene.All)
		require.Equal(t, float32(3e38), before.Vertices[36])

		r.update(1, up(meshQ(), -.5))
		require.NoError(t, r.SetInstanceTransform(fine, shiftBy(vec{})))
		require.NoError(t, r.SetInstanceTransform(wide, huge))
		for range 2 {
			var arg *scene.ArgumentError
			require.ErrorAs(t, r.Sync(background), &arg)
			assert.Equal(t, scene.ArgumentError{
				Op: "Sync", Arg: "transform", Detail: "moves vertex 1 of instance 4 out of the range of float32",
			}, *arg)
			require.True(t, r.IsReady())
			require.True(t, r.HasPendingUpdates())
			r.requireVersions(1, 1, 1)
			require.Equal(t, before, r.geometry())
			require.Equal(t, bit.exact(), r.intersect(i1, scene.All).exact())
		}
		var arg *scene.ArgumentError
		require.ErrorAs(t, r.Build(background), &arg)
		assert.Equal(t, "Build", arg.Op)
		require.True(t, r.IsReady())
		require.Equal(t, before, r.geometry())

		require.NoError(t, r.SetInstanceTransform(wide, shiftBy(vec{0, 9, 0})))
		r.sync()
		assert.Equal(t, float32(.5), r.t1(), "the staged vertices were lost")
		assert.Equal(t, transformed(scaled(meshQ(), 2), shiftBy(vec{0, 9, 0})).Vertices, r.geometry().Vertices[42:])
		r.requireVersions(2, 2, 1)
	})
}

// The last vertex of a large mesh counts as well.
func TestInstanceOutOfRangeAnywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 3))
	m := randomSoup(rng, 150, .3)
	first := 3 + rng.IntN(400)
	m.Vertices[3*first+2], m.Vertices[3*449] = 30, -30
	r := open(t)
	r.add(m)
	r.instance(0, stretch(1, 1, 1), false)
	r.instance(0, stretch(2e37, 2e37, 2e37), false)
	r.instance(0, stretch(3e37, 3e37, 3e37), false)
	var arg *scene.ArgumentError
	require.ErrorAs(t, r.Build(background), &arg)
	assert.Equal(t, "transform", arg.Arg)
	assert.Contains(t, arg.Detail, "of instance 2 out")
	assert.Contains(t, arg.Detail, fmt.Sprintf("vertex %d ", first))
	require.ErrorIs(t, r.Sync(background), scene.ErrNotReady)
	r.requireVersions(0, 0, 0)
}

// bus counts the bytes that go to devices and come back.
type bus struct {
	cuapi.API
	bytes atomic.Int64
}

func (b *bus) MemcpyHtoDAsync(dst cuapi.DevicePtr, src []byte, s cuapi.Stream) cuapi.Result {
	b.bytes.Add(int64(len(src)))
	return b.API.MemcpyHtoDAsync(dst, src, s)
}

func (b *bus) MemcpyDtoHAsync(dst []byte, src cuapi.DevicePtr, s cuapi.Stream) cuapi.Result {
	b.bytes.Add(int64(len(dst)))
	return b.API.MemcpyDtoHAsync(dst, src, s)
}

// Vertices of a moved instance do not cross the bus.
func TestInstancesMoveOnTheDevice(t *testing.T) {
	count := &bus{}
	g := gputest.Open(t, 1, func(api cuapi.API) cuapi.API {
		count.API = api
		return count
	})
	r := openOn(t, g.Context(t, 0))
	rng := rand.New(rand.NewPCG(11, 4))
	m := randomSoup(rng, 2000, .1)
	r.add(m)
	id := r.instance(0, shiftBy(vec{1, 0, 0}), true)
	require.NoError(t, r.Build(background))
	vertices := int64(4 * len(m.Vertices))
	require.Greater(t, count.bytes.Load(), vertices, "nothing is counted")
	count.bytes.Store(0)
	require.NoError(t, r.SetInstanceTransform(id, shiftBy(vec{0, 1, 0})))
	r.sync()
	require.Less(t, count.bytes.Load(), vertices/4)
	require.Equal(t, transformed(m, shiftBy(vec{0, 1, 0})).Vertices, r.geometry().Vertices[len(m.Vertices):])
}
