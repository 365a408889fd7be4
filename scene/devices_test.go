package scene_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// pair is one empty scene on each of two devices.
func pair(t *testing.T) (a, b *rig) {
	t.Helper()
	g := gputest.Open(t, 2, nil)
	return openOn(t, g.Context(t, 0)), openOn(t, g.Context(t, 1))
}

func TestMultiSmokeWrongDevice(t *testing.T) {
	a, b := pair(t)
	for _, r := range []*rig{a, b} {
		r.add(dynamic(meshT()))
		require.NoError(t, r.Build(background))
	}
	two := i1.until(10)
	two.active = []uint8{1}
	local, remote := a.upload(two), b.upload(two)
	st, err := b.Context().NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	calls := map[string]func() error{
		"O": func() error {
			_, err := a.Intersect(background, scene.Rays{O: remote.O, D: local.D}, scene.All)
			return err
		},
		"D": func() error {
			_, err := a.Intersect(background, scene.Rays{O: local.O, D: remote.D}, scene.All)
			return err
		},
		"TMax": func() error {
			_, err := a.Intersect(background, scene.Rays{O: local.O, D: local.D, TMax: remote.TMax}, scene.All)
			return err
		},
		"Active": func() error {
			_, err := a.Intersect(background, scene.Rays{O: local.O, D: local.D, Active: remote.Active}, scene.All)
			return err
		},
		"OnStream": func() error {
			_, err := a.Intersect(background, local, scene.All, scene.OnStream(st))
			return err
		},
		"vertices": func() error {
			return a.UpdateMeshVerticesDevice(background, 0, toDevice(b, meshT().Vertices))
		},
		"DeviceVertices": func() error {
			_, err := a.AddMesh(scene.Mesh{DeviceVertices: toDevice(b, meshT().Vertices), DeviceFaces: toDevice(a, meshT().Faces)})
			return err
		},
		"DeviceFaces": func() error {
			_, err := a.AddMesh(scene.Mesh{DeviceVertices: toDevice(a, meshT().Vertices), DeviceFaces: toDevice(b, meshT().Faces)})
			return err
		},
		"Options.Stream": func() error {
			_, err := scene.New(a.Context(), scene.Options{Stream: st})
			return err
		},
	}
	for arg, call := range calls {
		var wrong *cuda.WrongDeviceError
		require.ErrorAs(t, call(), &wrong, arg)
		assert.Equal(t, cuda.WrongDeviceError{
			Arg: arg, Want: a.Context().Device().Ordinal(), Have: b.Context().Device().Ordinal(),
		}, *wrong)
		assert.ErrorIs(t, wrong, cuda.ErrWrongDevice)
		assert.True(t, a.IsReady(), arg)
	}
	assert.Equal(t, float32(1), a.t1())
}

func TestMultiSmokeTwoDevices(t *testing.T) {
	a, b := pair(t)
	rng := rand.New(rand.NewPCG(6, 1))
	m, rays := randomSoup(rng, 300, .3), randomBatch(rng, 500)
	var got [2]table
	for i, r := range []*rig{a, b} {
		r.add(m)
		require.NoError(t, r.Build(background))
		got[i] = r.intersect(rays, scene.All)
	}
	require.Equal(t, got[0].exact(), got[1].exact())
}

// versions is what a lock-step check compares.
func (r *rig) versions() [3]int64 {
	return [3]int64{r.Version(), r.GeometryVersion(), r.EdgeMaskVersion()}
}

// A replica follows builds, refits and rebuilds of its master, and stays what it
// is while the master changes.
func TestReplicaFollowsItsMaster(t *testing.T) {
	a, b := pair(t)
	rng := rand.New(rand.NewPCG(7, 1))
	rays := randomBatch(rng, 400)
	first := dynamic(randomSoup(rng, 300, .2))
	requireSame := func() {
		t.Helper()
		require.NoError(t, b.Replicate(background, a.Scene))
		require.Equal(t, a.intersect(rays, scene.All).exact(), b.intersect(rays, scene.All).exact())
		require.Equal(t, a.versions(), b.versions())
		require.Equal(t, a.geometry(), b.geometry())
		require.Equal(t, a.edges(), b.edges())
		require.Equal(t, [3]int{a.NumShapes(), a.NumMeshes(), a.NumEdges()}, [3]int{b.NumShapes(), b.NumMeshes(), b.NumEdges()})
		alo, ahi := a.Bounds()
		blo, bhi := b.Bounds()
		require.Equal(t, [2]vec{alo, ahi}, [2]vec{blo, bhi})
	}
	require.ErrorIs(t, b.Replicate(background, a.Scene), scene.ErrNotReady)
	a.add(first, meshQ())
	id := a.instance(1, randomTransform(rng), true)
	require.NoError(t, a.Build(background))
	requireSame()

	before := b.intersect(rays, scene.All)
	near := scene.Mesh{Vertices: append([]float32{}, first.Vertices...)}
	for i := range near.Vertices {
		near.Vertices[i] += .02 * (rng.Float32() - .5)
	}
	a.update(0, near)
	a.sync()
	require.Equal(t, before.exact(), b.intersect(rays, scene.All).exact(), "the replica changed by itself")
	requireSame() // refit
	require.NoError(t, a.SetInstanceTransform(id, randomTransform(rng)))
	a.sync()
	requireSame()
	a.update(0, randomSoup(rng, 300, .2))
	a.sync()
	requireSame() // rebuild
	require.NoError(t, a.SetEdgeMask(make([]bool, a.NumEdges())))
	requireSame()
	a.add(up(meshT(), .5))
	require.NoError(t, a.Build(background))
	requireSame()
	require.Error(t, b.Replicate(background, b.Scene))
}

// The seam that schedulers use, on rows of a batch that stay where they are.
func TestSearchAndFinalizePieces(t *testing.T) {
	a, b := pair(t)
	rng := rand.New(rand.NewPCG(8, 1))
	rays := randomBatch(rng, 300)
	a.add(randomSoup(rng, 200, .3))
	require.NoError(t, a.Build(background))
	require.NoError(t, b.Replicate(background, a.Scene))
	want := a.intersect(rays, scene.All)
	for _, flags := range []scene.Flags{scene.None, scene.All} {
		hits, call, err := a.PrepareIntersect(background, a.upload(rays), flags)
		require.NoError(t, err)
		require.Equal(t, a.Stream(), call.Stream)
		require.EqualValues(t, 300, call.Rows)
		in, out := call.Columns()
		require.Len(t, out, 1)
		require.Equal(t, 4*300, out[0].Data.Len())
		require.NoError(t, call.Search(a.Scene, call.Stream, in, out, 0, 120))
		// The other device searches a copy of its rows and returns the winners.
		part := b.upload(rays.part(120, 300))
		w := toDevice(b, make([]uint8, 4*180))
		local := []scene.RowColumn{bytesOf(t, part.O, 12), bytesOf(t, part.D, 12), bytesOf(t, part.TMax, 4), bytesOf(t, part.Active, 1)}
		require.NoError(t, call.Search(b.Scene, b.Stream(), local, []scene.RowColumn{{Data: w, Width: 4}}, 0, 180))
		require.NoError(t, b.Stream().Synchronize(background))
		home, err := out[0].Data.Sub(4*120, 4*300)
		require.NoError(t, err)
		require.NoError(t, cuda.CopyAsync(call.Stream, home, w))
		require.NoError(t, call.Finalize(0, 7))
		require.NoError(t, call.Finalize(7, 0))
		require.NoError(t, call.Finalize(7, 293))
		got := a.download(hits)
		require.Equal(t, bits(want.t), bits(got.t))
		if flags == scene.All {
			require.Equal(t, want.exact(), got.exact())
		}
		var arg *scene.ArgumentError
		require.ErrorAs(t, call.Search(a.Scene, call.Stream, in, out, 300, 1), &arg)
		require.ErrorAs(t, call.Search(b.Scene, b.Stream(), local, out, 0, 181), &arg)
		require.ErrorAs(t, call.Finalize(-1, 1), &arg)
		require.NoError(t, call.Abandon())
	}
}

func bytesOf[T cuda.Scalar](t *testing.T, v cuda.Slice[T], width int) scene.RowColumn {
	if v.IsNil() {
		return scene.RowColumn{Width: width}
	}
	data, err := cuda.Reinterpret[uint8](v)
	require.NoError(t, err)
	return scene.RowColumn{Data: data, Width: width}
}

// mayAccess lets kernels of one scene's device use the memory of the other's, where there is a link.
func mayAccess(t *testing.T, from, to *rig) {
	t.Helper()
	ok, err := from.Context().Device().CanAccessPeer(to.Context().Device())
	require.NoError(t, err)
	if !ok {
		t.Skip("the devices have no peer access")
	}
	require.NoError(t, from.Context().EnablePeer(to.Context()))
}

// Kernels of one device on the memory of the other, where the link allows it.
func TestSearchReadsAndWritesAPeer(t *testing.T) {
	a, b := pair(t)
	mayAccess(t, b, a)
	rng := rand.New(rand.NewPCG(9, 1))
	rays := randomBatch(rng, 300)
	a.add(randomSoup(rng, 200, .3))
	require.NoError(t, a.Build(background))
	require.NoError(t, b.Replicate(background, a.Scene))
	want := a.intersect(rays, scene.All)
	dev := a.upload(rays)
	hits, call, err := a.PrepareIntersect(background, dev, scene.All)
	require.NoError(t, err)
	require.NoError(t, a.Stream().Synchronize(background)) // the rays are there
	in, out := call.Columns()
	require.NoError(t, call.Search(b.Scene, b.Stream(), in, out, 0, 300))
	require.NoError(t, b.Stream().Synchronize(background))
	require.NoError(t, call.Finalize(0, 300))
	require.Equal(t, want.exact(), a.download(hits).exact())
	require.NoError(t, call.Abandon())
}

// Winners that stay on the device that has found them, where the link allows it.
func TestFinalizeReadsAPeer(t *testing.T) {
	a, b := pair(t)
	mayAccess(t, a, b)
	rng := rand.New(rand.NewPCG(10, 1))
	rays := randomBatch(rng, 300)
	a.add(randomSoup(rng, 200, .3))
	require.NoError(t, a.Build(background))
	require.NoError(t, b.Replicate(background, a.Scene))
	want := a.intersect(rays, scene.All)
	part := b.upload(rays)
	local := []scene.RowColumn{bytesOf(t, part.O, 12), bytesOf(t, part.D, 12), bytesOf(t, part.TMax, 4), bytesOf(t, part.Active, 1)}
	found := []scene.RowColumn{{Data: toDevice(b, make([]uint8, 4*300)), Width: 4}}
	for _, flags := range []scene.Flags{scene.None, scene.All} {
		hits, call, err := a.PrepareIntersect(background, a.upload(rays), flags)
		require.NoError(t, err)
		require.True(t, call.Distant())
		require.NoError(t, call.Search(b.Scene, b.Stream(), local, found, 0, 300))
		require.NoError(t, b.Stream().Synchronize(background))
		require.NoError(t, call.FinalizeFrom(found, 0, 170))
		require.NoError(t, call.FinalizeFrom(found, 170, 130))
		got := a.download(hits)
		require.Equal(t, bits(want.t), bits(got.t))
		if flags == scene.All {
			require.Equal(t, want.exact(), got.exact())
		}
		var arg *scene.ArgumentError
		require.ErrorAs(t, call.FinalizeFrom(found, 1, 300), &arg)
		short, err := found[0].Data.Sub(0, 4*299)
		require.NoError(t, err)
		require.ErrorAs(t, call.FinalizeFrom([]scene.RowColumn{{Data: short, Width: 4}}, 0, 300), &arg)
		require.NoError(t, call.Abandon())
	}
	_, call, err := a.PrepareReflections(background, a.upload(rays), 2, scene.ChainAll)
	require.NoError(t, err)
	require.False(t, call.Distant(), "its winners are columns of the result")
	_, out := call.Columns()
	var arg *scene.ArgumentError
	require.ErrorAs(t, call.FinalizeFrom(out, 0, 300), &arg)
	require.NoError(t, call.Abandon())
}

// Freed memory has an address still, and the pool may have given it to somebody
// else.
func TestFreedMemoryIsRefused(t *testing.T) {
	r := build(t, dynamic(meshT()))
	two := i1.until(10)
	two.active = []uint8{1}
	good := r.upload(two)
	freed := func(v []float32) cuda.Slice[float32] {
		s, err := cuda.Upload(background, r.Stream(), v)
		require.NoError(t, err)
		require.NoError(t, cuda.Free(s))
		return s
	}
	freedIDs, err := cuda.Upload(background, r.Stream(), []int32{0, 1, 2})
	require.NoError(t, err)
	require.NoError(t, cuda.Free(freedIDs))
	freedMask, err := cuda.Upload(background, r.Stream(), two.active)
	require.NoError(t, err)
	require.NoError(t, cuda.Free(freedMask))
	intersect := func(change func(*scene.Rays)) func() error {
		return func() error {
			rays := good
			change(&rays)
			_, err := r.Intersect(background, rays, scene.All)
			return err
		}
	}
	calls := map[string]func() error{
		"O":      intersect(func(x *scene.Rays) { x.O = freed(two.o) }),
		"D":      intersect(func(x *scene.Rays) { x.D = freed(two.d) }),
		"TMax":   intersect(func(x *scene.Rays) { x.TMax = freed(two.tmax) }),
		"Active": intersect(func(x *scene.Rays) { x.Active = freedMask }),
		"vertices": func() error {
			return r.UpdateMeshVerticesDevice(background, 0, freed(meshT().Vertices))
		},
		"DeviceVertices": func() error {
			_, err := r.AddMesh(scene.Mesh{DeviceVertices: freed(meshT().Vertices), DeviceFaces: toDevice(r, meshT().Faces)})
			return err
		},
		"DeviceFaces": func() error {
			_, err := r.AddMesh(scene.Mesh{DeviceVertices: toDevice(r, meshT().Vertices), DeviceFaces: freedIDs})
			return err
		},
	}
	for arg, call := range calls {
		var bad *scene.ArgumentError
		require.ErrorAs(t, call(), &bad, arg)
		assert.Equal(t, arg, bad.Arg)
		assert.True(t, r.IsReady(), arg)
	}
	assert.Equal(t, float32(1), r.t1())

	// The arrays of a mesh are needed until Build.
	vertices, err := cuda.Upload(background, r.Stream(), meshT().Vertices)
	require.NoError(t, err)
	_, err = r.AddMesh(scene.Mesh{DeviceVertices: vertices, DeviceFaces: toDevice(r, meshT().Faces)})
	require.NoError(t, err)
	require.NoError(t, cuda.Free(vertices))
	var bad *scene.ArgumentError
	require.ErrorAs(t, r.Build(background), &bad)
	assert.Equal(t, "DeviceVertices", bad.Arg)
}
