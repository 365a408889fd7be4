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
// last. Cost: two launches and a fill of twelve bytes per 2^30 rays; no driver
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
	q := &intersectQuery{flags: flags, widths: hitLayout(flags), in: rays.rowColumns()}
	q.out[0].Width = winnerBytes
	if q.hits, err = resultFor[Hits](op, c, o, q.in[:]); err != nil {
		return nil, nil, err
	}
	c.query = q
	return q.hits, c, nil
}

// winnerBytes is the size of a primitive id.
const winnerBytes = 4

type intersectQuery struct {
	flags  Flags
	widths []int // of the hits
	hits   *Hits
	in     [4]RowColumn
	out    [1]RowColumn
	home   *Scene // of a marked call, the one that finalizes it
}

func (q *intersectQuery) columns() (in, out []RowColumn) { return q.in[:], q.out[:] }

func (q *intersectQuery) result() Reusable { return q.hits }

func (q *intersectQuery) layout() []int { return q.widths }

func (q *intersectQuery) place(starts []int64) error {
	q.hits.Flags = q.flags
	err := q.hits.cut(starts, q.widths)
	q.out[0] = rowColumn(q.hits.winners, winnerBytes)
	return err
}

func (q *intersectQuery) over(in []RowColumn) query {
	return &intersectQuery{flags: q.flags, widths: q.widths, hits: &Hits{}, in: [4]RowColumn(in)}
}

// sweeps is part of marker. Where no ray takes much longer than others, a search has no tail
// to fill.
func (q *intersectQuery) sweeps(s *Scene) bool {
	x, ok := s.tables.search.(*treeSearch)
	return ok && x.incoherent() && q.hits.rows <= s.rowsPerLaunch
}

// mark is part of marker.
func (q *intersectQuery) mark(s *Scene, st *cuda.Stream) error {
	words, err := cuda.Reinterpret[uint32](q.out[0].Data)
	if err != nil {
		return err
	}
	if err := cuda.Fill32(st, words, unsearched); err != nil {
		return err
	}
	q.home = s
	return nil
}

// marked is part of marker.
func (q *intersectQuery) marked() bool { return q.home != nil }

// unsearched is UNSEARCHED of intersect.cu.
const unsearched = ^uint32(1)

func (q *intersectQuery) search(on *Scene, at site, st *cuda.Stream, in, out []RowColumn, begin, count int64) error {
	rays, winners := rayColumnsOf(in), out[0].Data.Addr()
	if !q.marked() {
		return on.tables.search.traverse(at, st, rays, winners, begin, count)
	}
	var sweep finalizeParams
	if on == q.home {
		sweep = q.finalizeParams(on)
		sweep.Count = q.hits.rows
	}
	return on.tables.search.(*treeSearch).traverseMarked(at, st, rays, winners, sweep, begin, count)
}

func (q *intersectQuery) finalize(s *Scene, sc cuda.Scope, st *cuda.Stream, begin, count int64) error {
	return q.finalizeFrom(s, sc, st, q.out[:], begin, count)
}

// finalizeFrom is part of distant.
func (q *intersectQuery) finalizeFrom(s *Scene, sc cuda.Scope, st *cuda.Stream, out []RowColumn, begin, count int64) error {
	p := q.finalizeParams(s)
	p.Winners = out[0].Data.Addr()
	return s.eachLaunch(begin, count, func(begin, count int64) error {
		p.RowBegin, p.Count = begin, count
		return launchRows(sc, s.kernels.finalize, st, count, &p)
	})
}

// finalizeParams are those of no rows yet.
func (q *intersectQuery) finalizeParams(s *Scene) finalizeParams {
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
	// Where neighbours end at neighbouring triangles, vertices are in the cache.
	if x, ok := t.search.(*treeSearch); ok && x.incoherent() {
		p.Pool, p.Slots = x.mirrors()
	}
	if len(t.shapes) > 1 {
		p.ShapeIDs = t.shapeIDs.Addr()
	}
	if q.marked() {
		p.Marked = 1
	}
	return p
}
