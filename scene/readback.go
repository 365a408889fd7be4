package scene

import (
	"context"
	"slices"

	"github.com/raymux/raymux/cuda"
)

// Geometry is the committed geometry with scene-wide ids. The caller owns it.
type Geometry struct {
	Vertices      []float32 // metres, [vertices,3]
	Faces         []int32   // global vertex ids, [faces,3]
	FaceNormals   []float32 // unit, or zero for a face without area, [faces,3]
	ShapeIDs      []int32   // [faces]
	LocalPrimIDs  []int32   // [faces]
	GlobalPrimIDs []int32   // 0, 1, 2, ...
}

// GlobalGeometry copies the committed geometry to the host. It waits for the
// scene's stream.
func (s *Scene) GlobalGeometry(ctx context.Context) (*Geometry, error) {
	if err := s.shareReady(ctx); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	t := s.tables
	g := &Geometry{}
	var err error
	if g.Vertices, err = cuda.Download(ctx, s.stream, t.vertices); err != nil {
		return nil, err
	}
	if g.Faces, err = cuda.Download(ctx, s.stream, t.faces); err != nil {
		return nil, err
	}
	if g.FaceNormals, err = cuda.Download(ctx, s.stream, t.normals); err != nil {
		return nil, err
	}
	if g.ShapeIDs, err = cuda.Download(ctx, s.stream, t.shapeIDs); err != nil {
		return nil, err
	}
	g.LocalPrimIDs, g.GlobalPrimIDs = make([]int32, t.faceCount), make([]int32, t.faceCount)
	for i, shape := range g.ShapeIDs {
		g.GlobalPrimIDs[i] = int32(i)
		g.LocalPrimIDs[i] = int32(i - t.shapes[shape].faceOffset)
	}
	return g, nil
}

// EdgeRecords is the edges of the scene, one row per GlobalEdgeID. A side that
// belongs to one face is a boundary; a side of m >= 2 faces has one row per pair.
// The edge runs from V0 to V1. The caller owns it.
type EdgeRecords struct {
	V0, V1               []int32   // global vertex ids, V0 < V1
	Face0, Face1         []int32   // global primitive ids; Face1 is -1 on a boundary
	Opposite0, Opposite1 []int32   // global ids of the third vertices; -1 on a boundary
	ShapeID              []int32   // the shape of the edge
	EdgeID               []int32   // number within the shape
	A, B                 []float32 // committed positions of V0 and V1 in metres, [edges,3]
}

// EdgeRecords copies the edges of the committed geometry. It waits for the
// scene's stream.
func (s *Scene) EdgeRecords(ctx context.Context) (*EdgeRecords, error) {
	if err := s.shareReady(ctx); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	t := s.tables
	vertices, err := cuda.Download(ctx, s.stream, t.vertices)
	if err != nil {
		return nil, err
	}
	ints := func() []int32 { return make([]int32, 0, t.edgeCount) }
	r := &EdgeRecords{
		V0: ints(), V1: ints(), Face0: ints(), Face1: ints(), Opposite0: ints(), Opposite1: ints(),
		ShapeID: ints(), EdgeID: ints(),
		A: make([]float32, 0, 3*t.edgeCount), B: make([]float32, 0, 3*t.edgeCount),
	}
	for shape, h := range t.shapes {
		v, f := int32(h.vertexOffset), int32(h.faceOffset)
		for id, e := range h.topology.edges {
			r.V0, r.V1 = append(r.V0, v+e.v0), append(r.V1, v+e.v1)
			r.Face0, r.Face1 = append(r.Face0, f+e.face0), append(r.Face1, shifted(e.face1, f))
			r.Opposite0 = append(r.Opposite0, v+e.opposite0)
			r.Opposite1 = append(r.Opposite1, shifted(e.opposite1, v))
			r.ShapeID, r.EdgeID = append(r.ShapeID, int32(shape)), append(r.EdgeID, int32(id))
			a, b := 3*int(v+e.v0), 3*int(v+e.v1)
			r.A, r.B = append(r.A, vertices[a:a+3]...), append(r.B, vertices[b:b+3]...)
		}
	}
	return r, nil
}

// shifted makes a local id global; -1 stays.
func shifted(id, offset int32) int32 {
	if id < 0 {
		return id
	}
	return id + offset
}

// SetEdgeMask sets which edges take part in edge queries, one value per
// GlobalEdgeID. The mask is copied and holds until the next Build or SetEdgeMask.
// No driver call.
func (s *Scene) SetEdgeMask(mask []bool) error {
	if err := s.excludeReady(context.Background()); err != nil {
		return err
	}
	defer s.turns.done(true)
	if len(mask) != s.tables.edgeCount {
		return badArg("SetEdgeMask", "mask", "has %d values, want one for each of %d edges", len(mask), s.tables.edgeCount)
	}
	s.mask = slices.Clone(mask)
	s.update(func(st *status) {
		st.version++
		st.mask++
	})
	return nil
}

// EdgeMask is a copy of the mask: true for edges that take part in edge queries.
func (s *Scene) EdgeMask() ([]bool, error) {
	if err := s.shareReady(context.Background()); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	return append([]bool{}, s.mask...), nil
}
