package brute

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
)

const (
	blockSize = 128 // CHECK_THREADS of check.cu
	// launchTests is about how many triangles one launch tests: some tenths of a second
	// of a large GPU, so that no driver takes a launch for one that hangs.
	launchTests = 1 << 36
)

// Mesh is a mesh on a device whose triangles are all tested for every row. Its methods
// enqueue on the stream that it was made with, and fail the test where they cannot.
// Cost: rows times triangles tests, of which a large GPU does 10^11 a second and the
// emulator 10^6.
type Mesh struct {
	t                         testing.TB
	stream                    *cuda.Stream
	vertices                  cuda.Slice[float32]
	faces                     cuda.Slice[int32]
	closest, segments, chains *cuda.Function
}

// Rays are the columns of a batch of rays; TMax and Active may be absent.
type Rays struct {
	O, D, TMax cuda.Slice[float32]
	Active     cuda.Slice[uint8]
}

// Segments are the columns of a batch of segments. Ignore holds the same number of ids
// for every row, and may be absent.
type Segments struct {
	Start, End cuda.Slice[float32]
	Ignore     cuda.Slice[int32]
}

// New uploads a mesh to the device of st; it stays there until the test ends.
func New(t testing.TB, st *cuda.Stream, vertices []float32, faces []int32) *Mesh {
	t.Helper()
	m := &Mesh{t: t, stream: st}
	text, err := ptx.Module(checkClosestKernel.Module)
	require.NoError(t, err)
	module, err := st.Context().LoadModule(text, cuda.JITOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, module.Close()) })
	m.closest, err = module.Function(checkClosestKernel.Name)
	require.NoError(t, err)
	m.segments, err = module.Function(checkSegmentsKernel.Name)
	require.NoError(t, err)
	m.chains, err = module.Function(checkChainsKernel.Name)
	require.NoError(t, err)
	m.vertices, err = cuda.Upload(context.Background(), st, vertices)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cuda.Free(m.vertices)) })
	m.faces, err = cuda.Upload(context.Background(), st, faces)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cuda.Free(m.faces)) })
	return m
}

// Closest stores the closest triangle of every ray, -1 for none.
func (m *Mesh) Closest(rays Rays, winners cuda.Slice[int32]) {
	m.t.Helper()
	m.launch(m.closest, winners.Len(), 1, func(begin, count int64) []byte {
		return cuda.ParamBytes(&checkClosestParams{
			Geometry: m.geometry(), Rays: rays.columns(), Winners: winners.Addr(), RowBegin: begin, Count: count,
		})
	})
}

// Segments stores of every segment whether it is visible, and the closest triangle that
// blocks it, -1 for none.
func (m *Mesh) Segments(s Segments, visible cuda.Slice[uint8], blockers cuda.Slice[int32]) {
	m.t.Helper()
	rows := visible.Len()
	m.launch(m.segments, rows, 1, func(begin, count int64) []byte {
		return cuda.ParamBytes(&checkSegmentsParams{
			Geometry: m.geometry(), Start: s.Start.Addr(), End: s.End.Addr(),
			Ignore: s.Ignore.Addr(), IgnoreWidth: int32(s.Ignore.Len() / rows),
			Visible: visible.Addr(), Blockers: blockers.Addr(), RowBegin: begin, Count: count,
		})
	})
}

// Chains stores the triangles of at most so many specular reflections of every ray,
// then -1.
func (m *Mesh) Chains(rays Rays, bounces int, primIDs cuda.Slice[int32]) {
	m.t.Helper()
	m.launch(m.chains, primIDs.Len()/bounces, bounces, func(begin, count int64) []byte {
		return cuda.ParamBytes(&checkChainsParams{
			Geometry: m.geometry(), Rays: rays.columns(), PrimIDs: primIDs.Addr(), Bounces: int32(bounces),
			RowBegin: begin, Count: count,
		})
	})
}

func (m *Mesh) geometry() geometry {
	return geometry{surfaces{m.vertices.Addr(), m.faces.Addr()}, int64(m.faces.Len() / 3)}
}

func (r Rays) columns() rayColumns {
	return rayColumns{r.O.Addr(), r.D.Addr(), r.TMax.Addr(), r.Active.Addr()}
}

// launch covers all rows, each of which is searched so many times.
func (m *Mesh) launch(f *cuda.Function, rows, searches int, params func(begin, count int64) []byte) {
	m.t.Helper()
	step := max(1, launchTests/(blockSize*searches*max(1, m.faces.Len()/3))) * blockSize
	for begin := 0; begin < rows; begin += step {
		count := min(step, rows-begin)
		err := f.Launch(m.stream, cuapi.D1(uint32((count+blockSize-1)/blockSize)), cuapi.D1(blockSize), 0,
			params(int64(begin), int64(count)))
		require.NoError(m.t, err)
	}
}
