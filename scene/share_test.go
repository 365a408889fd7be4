package scene

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/brute"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// sheets are triangles across the x axis, one behind the other, each of which every ray
// along x from within the unit square crosses.
func sheets(n int) (vertices []float32, faces []int32) {
	for i := range n {
		x := float32(i+1) / float32(n)
		vertices = append(vertices, x, -1, -1, x, 4, -1, x, -1, 4)
		faces = append(faces, int32(3*i), int32(3*i+1), int32(3*i+2))
	}
	return vertices, faces
}

// alongX are rays from the plane x = 0 of the unit square.
func alongX(rng *rand.Rand, rows int) (o, d []float32) {
	for range rows {
		o = append(o, 0, rng.Float32(), rng.Float32())
		d = append(d, 1, 0, 0)
	}
	return o, d
}

// Lanes take parts of the longest searches of their warp: no crossing is lost, none is met
// twice, and no lane meets all that the longest ray crosses.
func TestLanesShareSearches(t *testing.T) {
	const triangles = 3000
	c := gputest.Open(t, 1, nil).Context(t, 0)
	ctx := context.Background()
	v, f := sheets(triangles)
	s, x := treeOf(t, c, v, f)
	for _, rows := range []int{1, 2, 5, 15, 17, 31, 33, 131} {
		rng := rand.New(rand.NewPCG(64, uint64(rows)))
		o, d := alongX(rng, rows)
		want := make([]uint32, triangles)
		crossed := make([]uint32, rows)
		for i := range rows {
			behind := rng.IntN(triangles) // sheets, but for one ray of every warp
			if i%32 == 0 {
				behind = 0
			}
			o[3*i] = (float32(behind) + 0.5) / triangles
			for k := behind; k < triangles; k++ {
				want[k]++
			}
			crossed[i] = uint32(triangles - behind)
		}
		var rays brute.Rays
		var err error
		rays.O, err = cuda.Upload(ctx, s.stream, o)
		require.NoError(t, err)
		rays.D, err = cuda.Upload(ctx, s.stream, d)
		require.NoError(t, err)
		winners, err := cuda.Upload(ctx, s.stream, make([]int32, rows))
		require.NoError(t, err)
		threads := (rows + blockSize - 1) / blockSize * blockSize
		counts, err := cuda.Upload(ctx, s.stream, make([]uint32, triangles+threads))
		require.NoError(t, err)
		met, err := counts.Sub(0, triangles)
		require.NoError(t, err)
		by, err := counts.Sub(triangles, triangles+threads)
		require.NoError(t, err)
		brute.Crossings(t, s.stream, brute.Tree{Pool: x.pool.Addr(), Shared: x.shared}, rays, winners, met, by)
		require.Equal(t, want, download(t, s, met), "%d rows", rows)
		for i, w := range download(t, s, winners) {
			require.EqualValues(t, -1, w, "%d rows, row %d", rows, i)
		}
		lanes := download(t, s, by)
		for first := 0; first < threads; first += 32 {
			most, helpers := slices.Max(lanes[first:first+32]), 0
			for _, n := range lanes[min(max(first, rows), first+32) : first+32] {
				if n > 0 {
					helpers++
				}
			}
			if first >= rows {
				require.Zero(t, most, "%d rows, thread %d: lanes help their own warp", rows, first)
				continue
			}
			longest := slices.Max(crossed[first:min(first+32, rows)])
			require.Less(t, most, longest*9/10, "%d rows, thread %d", rows, first)
			if rows-first <= 16 {
				require.Greater(t, helpers, 8, "%d rows, thread %d: lanes without a row", rows, first)
			}
		}
		require.NoError(t, firstError(cuda.Free(rays.O), cuda.Free(rays.D), cuda.Free(winners), cuda.Free(counts)))
	}
}

// Whoever finds it, the winner is the least (t, id): of rays that meet very different
// numbers of triangles, of triangles at equal distances, of inactive rows and bounded ones,
// in warps that are partly without rows.
func TestSharedWinners(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	ctx := context.Background()
	v, f := soup(65, 700, 0.3)
	for i := range v {
		if i%3 == 0 {
			v[i] += 1.5
		}
	}
	wall, g := sheets(16) // in front of the soup, each of them sixteen times
	for range 16 {
		for _, i := range g {
			f = append(f, i+int32(len(v)/3))
		}
		v = append(v, wall...)
	}
	s, _ := treeOf(t, c, v, f)
	model := oracle.NewCanonical(v, f)
	found := 0
	for _, rows := range []int{1, 3, 16, 31, 32, 40, 127, 300} {
		rng := rand.New(rand.NewPCG(66, uint64(rows)))
		o, d := alongX(rng, rows)
		tmax, active := make([]float32, rows), make([]uint8, rows)
		for i := range rows {
			active[i], tmax[i] = uint8(i%5), math.MaxFloat32
			switch i % 3 {
			case 0: // behind the wall, through the soup
				o[3*i], d[3*i+1], d[3*i+2] = 1.01, rng.Float32()-0.5, rng.Float32()-0.5
			case 1:
				tmax[i] = rng.Float32()
			}
		}
		active[0] = 1
		want := model.Winners(rows, func(i int) (ro, rd [3]float32, bound float32) {
			if active[i] == 0 {
				return ro, rd, 0
			}
			return [3]float32(o[3*i:]), [3]float32(d[3*i:]), tmax[i]
		})
		rays := Rays{}
		var err error
		rays.O, err = cuda.Upload(ctx, s.stream, o)
		require.NoError(t, err)
		rays.D, err = cuda.Upload(ctx, s.stream, d)
		require.NoError(t, err)
		rays.TMax, err = cuda.Upload(ctx, s.stream, tmax)
		require.NoError(t, err)
		rays.Active, err = cuda.Upload(ctx, s.stream, active)
		require.NoError(t, err)
		h, call, err := s.PrepareIntersect(ctx, rays, Geometric)
		require.NoError(t, err)
		require.NoError(t, cuda.Fill32(s.stream, h.GlobalPrimID, 0x7f7f7f7f))
		in, out := call.Columns()
		require.NoError(t, call.Search(s, s.stream, in, out, 0, int64(rows)))
		require.NoError(t, call.Finalize(0, int64(rows)))
		for i, got := range download(t, s, h.GlobalPrimID) {
			require.EqualValues(t, want[i].Prim, got, "%d rows, row %d", rows, i)
			if got >= 0 {
				found++
			}
		}
		require.NoError(t, firstError(h.Close(), cuda.Free(rays.O), cuda.Free(rays.D), cuda.Free(rays.TMax), cuda.Free(rays.Active)))
	}
	require.Greater(t, found, 200)
}
