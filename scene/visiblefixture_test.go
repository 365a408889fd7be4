package scene_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/oracle"
)

// onBackends runs f with both backends, on emulated devices or GPUs.
func onBackends(t *testing.T, f func(t *testing.T, open func(meshes ...scene.Mesh) *rig)) {
	for _, backend := range []scene.Backend{scene.CUDA, scene.OptiX} {
		t.Run(backend.String(), func(t *testing.T) {
			devices, _ := optixDevices(t, 1)
			f(t, func(meshes ...scene.Mesh) *rig {
				r := sceneOn(t, devices[0], backend)
				r.add(meshes...)
				require.NoError(t, r.Build(background))
				return r
			})
		})
	}
}

// flat is points as a column.
func flat(points []vec) []float32 {
	var v []float32
	for _, p := range points {
		v = append(v, p[:]...)
	}
	return v
}

// absent uploads a column unless there is none.
func absent[T cuda.Scalar](r *rig, v []T) cuda.Slice[T] {
	if v == nil {
		return cuda.Slice[T]{}
	}
	return toDevice(r, v)
}

// poison fills a column of a result, so that rows that are not written show.
func poison[T cuda.Scalar](r *rig, v cuda.Slice[T]) {
	r.Helper()
	if v.Len() > 0 {
		require.NoError(r, cuda.Fill8(r.Stream(), v, 0x5a))
	}
}

// segments is a batch of Segments, or of SegmentPairs if there are other ends, on the
// host.
type segments struct {
	s, e, other []vec
	ignore      []int32
	active      []uint8
}

func (b *segments) add(s, e vec) { b.s, b.e = append(b.s, s), append(b.e, e) }

// part is rows [i,j) of segments without other ends.
func (b segments) part(i, j int) segments {
	p := segments{s: b.s[i:j], e: b.e[i:j]}
	if k := len(b.ignore) / len(b.s); k > 0 {
		p.ignore = b.ignore[k*i : k*j]
	}
	if b.active != nil {
		p.active = b.active[i:j]
	}
	return p
}

// list is the ignore list of a row.
func (b segments) list(row int) []int32 {
	k := len(b.ignore) / len(b.s)
	return b.ignore[k*row : k*(row+1)]
}

func (b segments) on(row int) bool { return b.active == nil || b.active[row] != 0 }

func (b segments) upload(r *rig) scene.Segments {
	return scene.Segments{Start: toDevice(r, flat(b.s)), End: toDevice(r, flat(b.e)), Ignore: absent(r, b.ignore), Active: absent(r, b.active)}
}

func (r *rig) visible(b segments) []uint8 {
	r.Helper()
	in := b.upload(r)
	v, err := r.Visible(background, in)
	require.NoError(r, err)
	poison(r, v.Visible)
	v, err = r.Visible(background, in, scene.Into(v))
	require.NoError(r, err)
	defer func() { require.NoError(r, v.Close()) }()
	require.Equal(r, len(b.s), v.Rows())
	return toHost(r, v.Visible)
}

func (r *rig) visiblePair(b segments) (first, second []uint8) {
	r.Helper()
	in := scene.SegmentPairs{
		Start: toDevice(r, flat(b.s)), EndA: toDevice(r, flat(b.e)), EndB: toDevice(r, flat(b.other)),
		Ignore: absent(r, b.ignore), Active: absent(r, b.active),
	}
	v, err := r.VisiblePair(background, in)
	require.NoError(r, err)
	poison(r, v.VisibleA)
	poison(r, v.VisibleB)
	v, err = r.VisiblePair(background, in, scene.Into(v))
	require.NoError(r, err)
	defer func() { require.NoError(r, v.Close()) }()
	require.Equal(r, len(b.s), v.Rows())
	return toHost(r, v.VisibleA), toHost(r, v.VisibleB)
}

// edges is a batch of EdgeSamples on the host.
type edges struct {
	rows      []oracle.EdgeRow
	active    []uint8
	fractions []float32
}

func (b edges) upload(r *rig) scene.EdgeSamples {
	var source, position, direction []vec
	var tMin, tMax []float32
	for _, e := range b.rows {
		source, position, direction = append(source, e.Source), append(position, e.Position), append(direction, e.Direction)
		tMin, tMax = append(tMin, e.TMin), append(tMax, e.TMax)
	}
	return scene.EdgeSamples{
		Source: toDevice(r, flat(source)), Position: toDevice(r, flat(position)), Direction: toDevice(r, flat(direction)),
		TMin: toDevice(r, tMin), TMax: toDevice(r, tMax), Active: absent(r, b.active), Fractions: b.fractions,
	}
}

func (r *rig) visibleEdge(b edges) []uint8 {
	r.Helper()
	in := b.upload(r)
	v, err := r.VisibleEdge(background, in)
	require.NoError(r, err)
	poison(r, v.AnyVisible)
	v, err = r.VisibleEdge(background, in, scene.Into(v))
	require.NoError(r, err)
	defer func() { require.NoError(r, v.Close()) }()
	require.Equal(r, len(b.rows), v.Rows())
	return toHost(r, v.AnyVisible)
}

// polylines is a batch of Polylines on the host: segments+1 points per row, and as
// many ignored ids for each of the segments.
type polylines struct {
	segments int
	points   []vec
	length   []int32
	ignore   []int32
	active   []uint8
}

func (b polylines) upload(r *rig) scene.Polylines {
	return scene.Polylines{
		Points: toDevice(r, flat(b.points)), Length: toDevice(r, b.length), Segments: b.segments,
		Ignore: absent(r, b.ignore), Active: absent(r, b.active),
	}
}

// row is what the oracle takes.
func (b polylines) row(i int) (points []vec, length int, ignore [][]int32) {
	k := len(b.ignore) / (b.segments * len(b.length))
	for s := range b.segments {
		at := i*b.segments + s
		ignore = append(ignore, b.ignore[k*at:k*(at+1)])
	}
	return b.points[i*(b.segments+1) : (i+1)*(b.segments+1)], int(b.length[i]), ignore
}

func (r *rig) visibleChain(b polylines) []oracle.Polyline {
	r.Helper()
	in := b.upload(r)
	v, err := r.VisibleChain(background, in)
	require.NoError(r, err)
	poison(r, v.AllVisible)
	poison(r, v.FirstBlockedSegment)
	poison(r, v.FirstBlockedPrim)
	v, err = r.VisibleChain(background, in, scene.Into(v))
	require.NoError(r, err)
	defer func() { require.NoError(r, v.Close()) }()
	require.Equal(r, len(b.length), v.Rows())
	all, segment, prim := toHost(r, v.AllVisible), toHost(r, v.FirstBlockedSegment), toHost(r, v.FirstBlockedPrim)
	out := make([]oracle.Polyline, len(b.length))
	for i := range out {
		require.LessOrEqual(r, all[i], uint8(1), "row %d", i)
		out[i] = oracle.Polyline{AllVisible: all[i] == 1, Segment: int(segment[i]), Prim: int(prim[i])}
	}
	return out
}

// flag is a bool as a result has it.
func flag(v bool) uint8 {
	if v {
		return 1
	}
	return 0
}
