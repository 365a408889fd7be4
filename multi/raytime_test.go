package multi

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// rowQueries is what a scene and a set have in common.
type rowQueries interface {
	Intersect(context.Context, scene.Rays, scene.Flags, ...scene.CallOption) (*scene.Hits, error)
	TraceReflections(context.Context, scene.Rays, int, scene.ChainFields, ...scene.CallOption) (*scene.Chains, error)
	Visible(context.Context, scene.Segments, ...scene.CallOption) (*scene.Visibility, error)
	VisiblePair(context.Context, scene.SegmentPairs, ...scene.CallOption) (*scene.PairVisibility, error)
	VisibleEdge(context.Context, scene.EdgeSamples, ...scene.CallOption) (*scene.EdgeVisibility, error)
	VisibleChain(context.Context, scene.Polylines, ...scene.CallOption) (*scene.ChainVisibility, error)
	TraceReflEPC(context.Context, scene.EPCRows, scene.EPCOptions, ...scene.CallOption) (*scene.EPCPaths, error)
}

// TestMultiRayTimes compares queries of little work on one device and on two, and on GPUs prints
// what they take, for numbers of rows around the floor of the operation: what the default of
// MinRaysPerDevice rests on.
func TestMultiRayTimes(t *testing.T) {
	if gputest.UpTo(2) < 2 {
		t.Skip("times need two GPUs")
	}
	rig := gputest.Open(t, 2, nil)
	s := quick(t, rig.Driver, ordinals(rig, 2), Options{Options: chunked.Options{MinRaysPerDevice: 1}, Backend: scene.CUDA})
	name, most, floors := workload.Light, 1<<22, []int64{1 << 18, 1 << 19, 1 << 20}
	if !gputest.Native() {
		name, most, floors = workload.Mini, 200, []int64{1, 29}
	}
	config, err := workload.Find(name)
	require.NoError(t, err)
	var meshes []scene.Mesh
	for _, m := range config.Meshes() {
		meshes = append(meshes, scene.Mesh{Vertices: m.Vertices, Faces: m.Faces})
	}
	build(t, s, meshes...)

	// Of light: coherent rows that meet a plane, which lies between their ends.
	rays := config.Rays(most)
	const segments = 4
	ends, line, polyline := make([]float32, 3*most), make([]float32, 6*most), make([]float32, 3*(segments+1)*most)
	for i := range most {
		for a := range 3 {
			o, d := rays.Origins[3*i+a], rays.Directions[3*i+a]
			end := o + 2*d
			ends[3*i+a], line[6*i+a], line[6*i+3+a] = end, o, end
			for k := range segments {
				polyline[3*((segments+1)*i+k)+a] = o + float32(k)/8*d
			}
			polyline[3*((segments+1)*i+segments)+a] = end
		}
	}
	ids, lengths := make([]int32, 3*most), slices.Repeat([]int32{1}, most)
	for i := range ids {
		ids[i] = int32(i % config.Cells)
	}
	var frees []func() error
	up := uploads{t, s.Stream(), &frees}
	origins, directions, ending := column(up, rays.Origins), column(up, rays.Directions), column(up, ends)
	faces, single, several := column(up, ids), column(up, lengths), column(up, slices.Repeat([]int32{segments}, most))
	zeros, ones := column(up, make([]float32, most)), column(up, slices.Repeat([]float32{1}, most))
	lines, polylines := column(up, line), column(up, polyline)
	part := func(c cuda.Slice[float32], n int64) cuda.Slice[float32] { return sub(t, c, n) }

	for _, op := range []struct {
		name string
		op   chunked.Op
		call func(q rowQueries, n int64) (scene.Reusable, error)
	}{
		{"Intersect, t alone", IntersectOp(scene.None, 24), func(q rowQueries, n int64) (scene.Reusable, error) {
			return result(q.Intersect(bg, scene.Rays{O: part(origins, 3*n), D: part(directions, 3*n)}, scene.None))
		}},
		{"Intersect", IntersectOp(scene.All, 24), func(q rowQueries, n int64) (scene.Reusable, error) {
			return result(q.Intersect(bg, scene.Rays{O: part(origins, 3*n), D: part(directions, 3*n)}, scene.All))
		}},
		{"TraceReflections, 1 bounce", ReflectionsOp(1, scene.ChainCore, 24), func(q rowQueries, n int64) (scene.Reusable, error) {
			return result(q.TraceReflections(bg, scene.Rays{O: part(origins, 3*n), D: part(directions, 3*n)}, 1, scene.ChainCore))
		}},
		{"Visible", VisibleOp(0, false), func(q rowQueries, n int64) (scene.Reusable, error) {
			return result(q.Visible(bg, scene.Segments{Start: part(origins, 3*n), End: part(ending, 3*n)}))
		}},
		{"VisiblePair", VisiblePairOp(0, false), func(q rowQueries, n int64) (scene.Reusable, error) {
			return result(q.VisiblePair(bg, scene.SegmentPairs{Start: part(origins, 3*n), EndA: part(ending, 3*n), EndB: part(directions, 3*n)}))
		}},
		{"VisibleEdge, 5 samples", VisibleEdgeOp(false), func(q rowQueries, n int64) (scene.Reusable, error) {
			return result(q.VisibleEdge(bg, scene.EdgeSamples{Source: part(origins, 3*n), Position: part(ending, 3*n), Direction: part(directions, 3*n),
				TMin: part(zeros, n), TMax: part(ones, n)}))
		}},
		{"VisibleChain, 1 segment", VisibleChainOp(1, 0, false), func(q rowQueries, n int64) (scene.Reusable, error) {
			return result(q.VisibleChain(bg, scene.Polylines{Points: part(lines, 6*n), Length: sub(t, single, n), Segments: 1}))
		}},
		{"VisibleChain, 4 segments", VisibleChainOp(segments, 0, false), func(q rowQueries, n int64) (scene.Reusable, error) {
			return result(q.VisibleChain(bg, scene.Polylines{Points: part(polylines, 3*(segments+1)*n), Length: sub(t, several, n), Segments: segments}))
		}},
		{"TraceReflEPC, 1 bounce", ReflEPCOp(1, false, false), func(q rowQueries, n int64) (scene.Reusable, error) {
			return result(q.TraceReflEPC(bg, scene.EPCRows{Source: part(origins, 3*n), Receiver: part(directions, 3*n), Seq: sub(t, faces, n), Bounces: 1}, scene.EPCOptions{}))
		}},
		{"TraceReflEPC, 3 bounces", ReflEPCOp(3, false, false), func(q rowQueries, n int64) (scene.Reusable, error) {
			return result(q.TraceReflEPC(bg, scene.EPCRows{Source: part(origins, 3*n), Receiver: part(directions, 3*n), Seq: sub(t, faces, 3*n), Bounces: 3}, scene.EPCOptions{}))
		}},
	} {
		width := max(op.op.Width(), 28) // as floors are stated
		for _, floor := range floors {
			remote := floor * width / 28
			if 2*remote > int64(most) {
				continue
			}
			c := s.compare(t, func(alone bool) (scene.Reusable, error) {
				if alone {
					return op.call(s.Master(), 2*remote)
				}
				return op.call(s, 2*remote)
			})
			t.Logf("%-28s floor %8d, %2d bytes per row: %8d rows, %8d of the remote: %s", op.name, floor, width, 2*remote, remote, c)
		}
	}
	for _, free := range frees {
		require.NoError(t, free())
	}
}

// sub is the first n values of a column.
func sub[T cuda.Scalar](t testing.TB, c cuda.Slice[T], n int64) cuda.Slice[T] {
	t.Helper()
	s, err := c.Sub(0, int(n))
	require.NoError(t, err)
	return s
}
