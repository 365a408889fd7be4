package multi

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

var bg = context.Background()

// anyFloor lifts the row floor, so that tiny batches are divided too.
func anyFloor(w ...float64) Options {
	return Options{Options: chunked.Options{MinRaysPerDevice: 1, Weights: w}}
}

// ordinals are the first n devices of the rig.
func ordinals(r *gputest.Rig, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = r.Devices[i].Ordinal()
	}
	return out
}

// newScene makes a set that closes with the test.
func newScene(t testing.TB, drv *cuda.Driver, devices []int, opts Options) *Scene {
	t.Helper()
	s, err := New(drv, devices, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// soup is n random triangles in the unit cube, some of them degenerate, some
// sharing vertices and planes so that ties occur.
func soup(rng *rand.Rand, n int) scene.Mesh {
	m := scene.Mesh{Dynamic: true}
	for range n {
		for range 3 {
			m.Vertices = append(m.Vertices, float32(rng.IntN(9)-4)/4, float32(rng.IntN(9)-4)/4, rng.Float32()*2-1)
		}
	}
	for range n {
		for range 3 {
			m.Faces = append(m.Faces, int32(rng.IntN(3*n)))
		}
	}
	return m
}

func build(t testing.TB, s interface {
	AddMesh(scene.Mesh) (int, error)
	Build(context.Context) error
}, meshes ...scene.Mesh) {
	t.Helper()
	for _, m := range meshes {
		_, err := s.AddMesh(m)
		require.NoError(t, err)
	}
	require.NoError(t, s.Build(bg))
}

// batch is rays on the host.
type batch struct {
	o, d, tmax []float32
	active     []uint8
}

// randomBatch mixes ordinary rays, rays aimed at lattice points, and rows
// that must miss; TMax and Active are there at random.
func randomBatch(rng *rand.Rand, n int) batch {
	b := batch{o: make([]float32, 3*n), d: make([]float32, 3*n)}
	for i := range b.o {
		b.o[i] = rng.Float32()*4 - 2
		b.d[i] = rng.Float32()*2 - 1
	}
	for i := range n {
		switch rng.IntN(12) {
		case 0: // exactly at a lattice point
			b.o[3*i], b.o[3*i+1], b.o[3*i+2] = float32(rng.IntN(9)-4)/4, float32(rng.IntN(9)-4)/4, -3
			b.d[3*i], b.d[3*i+1], b.d[3*i+2] = 0, 0, 1
		case 1:
			b.d[3*i], b.d[3*i+1], b.d[3*i+2] = 0, 0, 0
		case 2:
			b.o[3*i+rng.IntN(3)] = float32(math.NaN())
		}
	}
	if rng.IntN(2) == 0 {
		b.tmax = make([]float32, n)
		for i := range b.tmax {
			b.tmax[i] = rng.Float32() * 4
		}
	}
	if rng.IntN(2) == 0 {
		b.active = make([]uint8, n)
		for i := range b.active {
			b.active[i] = uint8(rng.IntN(3))
		}
	}
	return b
}

func upload[T cuda.Scalar](t testing.TB, st *cuda.Stream, v []T) cuda.Slice[T] {
	t.Helper()
	if v == nil {
		return cuda.Slice[T]{}
	}
	s, err := cuda.Upload(bg, st, v)
	require.NoError(t, err)
	return s
}

// rays uploads a batch; the returned function frees it.
func (b batch) rays(t testing.TB, st *cuda.Stream) (scene.Rays, func()) {
	t.Helper()
	r := scene.Rays{O: upload(t, st, b.o), D: upload(t, st, b.d), TMax: upload(t, st, b.tmax), Active: upload(t, st, b.active)}
	return r, func() {
		for _, s := range []cuda.Slice[float32]{r.O, r.D, r.TMax} {
			if !s.IsNil() {
				require.NoError(t, cuda.Free(s))
			}
		}
		if !r.Active.IsNil() {
			require.NoError(t, cuda.Free(r.Active))
		}
	}
}

// words are the columns of a result as raw words, in the order of a record.
type words [10][]uint32

func download(t testing.TB, st *cuda.Stream, h *scene.Hits) (w words) {
	t.Helper()
	for i, c := range []cuda.Slice[float32]{h.T, h.P, h.N, h.GeoN, h.UV, h.Barycentric} {
		w[i] = raw(t, st, c)
	}
	for i, c := range []cuda.Slice[int32]{h.ShapeID, h.PrimID, h.LocalPrimID, h.GlobalPrimID} {
		w[6+i] = raw(t, st, c)
	}
	return w
}

func raw[T cuda.Scalar](t testing.TB, st *cuda.Stream, c cuda.Slice[T]) []uint32 {
	t.Helper()
	if c.Len() == 0 {
		return nil
	}
	v, err := cuda.Reinterpret[uint32](c)
	require.NoError(t, err)
	out, err := cuda.Download(bg, st, v)
	require.NoError(t, err)
	return out
}

type intersector interface {
	Intersect(context.Context, scene.Rays, scene.Flags, ...scene.CallOption) (*scene.Hits, error)
	Stream() *cuda.Stream
}

// answer intersects a host batch and returns every column.
func answer(t testing.TB, s intersector, b batch, flags scene.Flags) words {
	t.Helper()
	rays, free := b.rays(t, s.Stream())
	defer free()
	h, err := s.Intersect(bg, rays, flags)
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close()) }()
	return download(t, s.Stream(), h)
}
