package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
)

// DfrStateOptions are the options of Scene.DfrStates. The zero value is usable for
// TraceDfrPaths.
type DfrStateOptions struct {
	// Src is the position of the source of every state in metres, and SrcPower its
	// linear power, at least 0; without power the states bring nothing to a grid and count
	// as UTDRejects. TraceDfrPaths, which has sources of its own, reads neither.
	Src      [3]float32
	SrcPower float32
	// EdgeMask has one value per GlobalEdgeID, true for edges that may diffract. Nil: the
	// mask of the scene.
	EdgeMask []bool
	// Delta is by how much the exterior angle of an edge must exceed pi in radians, in
	// [0, pi). 0: 1e-3.
	Delta float64
}

// DfrStateReport says what became of the edges of a scene. Every undirected edge of which
// the mask leaves something is counted once.
type DfrStateReport struct {
	Edges  int // edges under the mask
	States int // edges that became a state

	Boundary     int // of States, edges of a single face: half planes
	Coincident   int // of Boundary, edges with the same ends as another one: of faces that share no vertices there
	NonManifold  int // of States, edges of three or more faces
	Flat         int // skipped: the exterior angle is within Delta of pi
	Concave      int // skipped: the exterior angle is smaller
	Inconsistent int // skipped: the two faces are not oriented alike
	Closed       int // skipped: three or more faces without a gap outside that is wide enough
	Degenerate   int // skipped: shorter than a micrometre, or all faces are without area
}

// defaultDelta is the least excess of an exterior angle over pi, without Delta.
const defaultDelta = 1e-3

// DfrStates makes the wedge states of the committed geometry for one source: one for every
// edge that can diffract, in ascending order of EdgeIndex. Faces are expected to be
// oriented counter-clockwise as seen from outside.
//
// A side of one face is a half plane. A side of two faces is a wedge when the angle outside
// exceeds pi by more than Delta; flat and concave edges do not diffract. Of three or more
// faces, those two make the wedge that enclose the only gap wider than a half plane, if it
// lies outside. Faces without area (at most 1e-12 of the squared longest side) are ignored.
// Faces meet where they have the same vertices. Where these only are at the same place, the
// side is a half plane of each face; the report counts such as Coincident.
// EdgeIndex is the smallest GlobalEdgeID of the side that the mask leaves.
//
// The work is on the host, in float64: DfrStates copies vertices and faces from the scene's
// device, waits for that, and takes about a second for a million edges. Errors: ErrNotReady,
// *FailedError, *ArgumentError, the error of ctx, and errors of the device.
func (s *Scene) DfrStates(ctx context.Context, opts DfrStateOptions) (*DfrStates, *DfrStateReport, error) {
	const op = "DfrStates"
	if err := s.shareReady(ctx); err != nil {
		return nil, nil, err
	}
	defer s.turns.done(false)
	t := s.tables
	mask := opts.EdgeMask
	if mask == nil {
		mask = s.mask
	}
	if len(mask) != t.edgeCount {
		return nil, nil, badArg(op, "EdgeMask", "has %d values, want one for each of %d edges, or nil", len(mask), t.edgeCount)
	}
	delta := opts.Delta
	if delta == 0 {
		delta = defaultDelta
	}
	if !(delta >= 0 && delta < math.Pi) {
		return nil, nil, badArg(op, "Delta", "is %v, want at least 0 and less than pi", opts.Delta)
	}
	for _, v := range opts.Src {
		if !finite(v) {
			return nil, nil, badArg(op, "Src", "is %v, want finite coordinates", opts.Src)
		}
	}
	if !(opts.SrcPower >= 0) || !finite(opts.SrcPower) {
		return nil, nil, badArg(op, "SrcPower", "is %v, want a finite power of at least 0", opts.SrcPower)
	}
	vertices, err := cuda.Download(ctx, s.stream, t.vertices)
	if err != nil {
		return nil, nil, err
	}
	faces, err := cuda.Download(ctx, s.stream, t.faces)
	if err != nil {
		return nil, nil, err
	}
	b := wedgeBuilder{
		vertices: vertices, faces: faces, delta: delta, opts: opts,
		states: &DfrStates{}, report: &DfrStateReport{}, boundary: map[[2][3]float64]int{},
	}
	for _, h := range t.shapes {
		b.shape(h, mask[h.edgeOffset:h.edgeOffset+len(h.topology.edges)])
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
	}
	b.states.Count = b.report.States
	return b.states, b.report, nil
}

// wedgeBuilder turns the sides of meshes into states.
type wedgeBuilder struct {
	vertices []float32
	faces    []int32
	delta    float64
	opts     DfrStateOptions
	states   *DfrStates
	report   *DfrStateReport

	ids      []int32               // faces of the side at hand
	boundary map[[2][3]float64]int // how many half planes have these ends, in ascending order
}

// shape appends the states of a mesh. Its records are ordered by their two vertices, so
// that the records of a side stand together.
func (b *wedgeBuilder) shape(h shape, mask []bool) {
	edges := h.topology.edges
	for first := 0; first < len(edges); {
		end := first + 1
		for end < len(edges) && edges[end].v0 == edges[first].v0 && edges[end].v1 == edges[first].v1 {
			end++
		}
		id := -1
		b.ids = b.ids[:0]
		for i := first; i < end; i++ {
			if !mask[i] {
				continue
			}
			if id < 0 {
				id = i
			}
			b.add(edges[i].face0 + int32(h.faceOffset))
			if edges[i].face1 >= 0 {
				b.add(edges[i].face1 + int32(h.faceOffset))
			}
		}
		if id >= 0 {
			b.report.Edges++
			v := int32(h.vertexOffset)
			b.side(int32(h.edgeOffset+id), v+edges[first].v0, v+edges[first].v1)
		}
		first = end
	}
}
