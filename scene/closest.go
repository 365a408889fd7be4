package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// Intersect finds the closest hit of every ray with 1e-6 <= t <= TMax; among equal
// t the smallest GlobalPrimID. Both sides of a triangle are hit, and its edges and
// vertices belong to it: a ray through a shared edge hits exactly one of the
// triangles.
//
// The work is enqueued on the scene's stream or the stream of OnStream, and
// Intersect returns without waiting for it: the caller reads the columns in the
// order of that stream. Close the result to reuse its memory.
//
// Errors: ErrNotReady, *FailedError, *ArgumentError, *cuda.WrongDeviceError, the
// error of ctx, and errors of the device; nothing is enqueued for all but the
// last. Cost: two launches and a fill of four bytes per 2^30 rays; no driver
// allocation once the pool holds a result of that size.
func (s *Scene) Intersect(ctx context.Context, rays Rays, flags Flags, opts ...CallOption) (*Hits, error) {
	return ask(ctx, s, func() (*Hits, *Call, error) { return s.prepareIntersect(rays, flags, opts) })
}

// PrepareIntersect does all of Intersect that precedes the launches. For schedulers.
func (s *Scene) PrepareIntersect(ctx context.Context, rays Rays, flags Flags, opts ...CallOption) (*Hits, *Call, error) {
	return prepared(ctx, s, func() (*Hits, *Call, error) { return s.prepareIntersect(rays, flags, opts) })
}

func (s *Scene) prepareIntersect(rays Rays, flags Flags, opts []CallOption) (*Hits, *Call, error) {
	const op = "Intersect"
	if err := flags.check(op); err != nil {
		return nil, nil, err
	}
	n, err := s.checkRays(op, rays)
	if err != nil {
		return nil, nil, err
	}
	c, o, err := s.begin(op, n, opts)
	if err != nil {
		return nil, nil, err
	}
	q := &intersectQuery{flags: flags, in: rays.rowColumns()}
	q.out[0].Width = winnerBytes
	if q.hits, err = resultFor[Hits](op, c, o, q.in[:]); err != nil {
		return nil, nil, err
	}
	if err := c.prepare(q, o); err != nil {
		return nil, nil, err
	}
	return q.hits, c, nil
}

// winnerBytes is the size of a primitive id.
const winnerBytes = 4

type intersectQuery struct {
	flags Flags
	hits  *Hits
	in    [4]RowColumn
	out   [1]RowColumn
}

func (q *intersectQuery) columns() (in, out []RowColumn) { return q.in[:], q.out[:] }

func (q *intersectQuery) result() Reusable { return q.hits }

func (q *intersectQuery) layout() []int { return hitLayout(q.flags) }

func (q *intersectQuery) place(starts []int64) error {
	q.hits.Flags = q.flags
	err := q.hits.cut(starts, q.layout())
	q.out[0] = rowColumn(q.hits.winners, winnerBytes)
	return err
}

func (q *intersectQuery) over(in []RowColumn) query {
	return &intersectQuery{flags: q.flags, hits: &Hits{}, in: [4]RowColumn(in)}
}

func (q *intersectQuery) search(on *Scene, sc cuda.Scope, st *cuda.Stream, in, out []RowColumn, begin, count int64) error {
	return on.tables.search.traverse(sc, st, rayColumnsOf(in), out[0].Data.Addr(), begin, count)
}

func (q *intersectQuery) finalize(s *Scene, sc cuda.Scope, st *cuda.Stream, begin, count int64) error {
	t, h := s.tables, q.hits
	p := finalizeParams{
		Rays: rayColumnsOf(q.in[:]), Winners: h.winners.Addr(),
		Vertices: t.vertices.Addr(), Faces: t.faces.Addr(),
		FaceOffsets: t.faceOffsets.Addr(),
		T:           h.T.Addr(), P: h.P.Addr(), N: h.N.Addr(), GeoN: h.GeoN.Addr(), UV: h.UV.Addr(),
		Barycentric: h.Barycentric.Addr(),
		ShapeID:     h.ShapeID.Addr(), PrimID: h.PrimID.Addr(),
		LocalPrimID: h.LocalPrimID.Addr(), GlobalPrimID: h.GlobalPrimID.Addr(),
		FaceCount: int64(t.faceCount),
	}
	if len(t.shapes) > 1 {
		p.ShapeIDs = t.shapeIDs.Addr()
	}
	return s.eachLaunch(begin, count, func(begin, count int64) error {
		p.RowBegin, p.Count = begin, count
		return launchRows(sc, s.kernels.finalize, st, count, &p)
	})
}
