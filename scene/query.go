package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// CallOption changes one call of a query.
type CallOption func(*callOptions)

type callOptions struct {
	stream *cuda.Stream
	into   *Hits
}

// OnStream enqueues the query on st instead of the scene's stream. st must be of
// the scene's device.
func OnStream(st *cuda.Stream) CallOption {
	return func(o *callOptions) { o.stream = st }
}

// Into fills h, which an earlier call returned, and returns it: its memory is used
// again if it is large enough and replaced if not. Work on the old contents must
// have been joined to the stream of the call, and the rays of the call must not be
// columns of h. A call that fails returns nil, and h has still to be closed. With
// nil it is as if Into were not given, so that the first pass of a loop needs no
// case of its own.
func Into(h *Hits) CallOption {
	return func(o *callOptions) { o.into = h }
}

// Call is a query that was validated and has its result allocated, but nothing
// enqueued. For schedulers.
type Call struct {
	Hits   *Hits        // the result
	Stream *cuda.Stream // the caller's stream

	fresh bool // Hits was allocated for this call
}

// Abandon returns the result's memory, unless the caller had brought it, once the
// work on the caller's stream so far has run.
func (c *Call) Abandon() error {
	if !c.fresh {
		return nil
	}
	return c.Hits.Close()
}

// Prepare does all of Intersect that precedes the launches. For schedulers.
func (s *Scene) Prepare(ctx context.Context, rays Rays, flags Flags, opts ...CallOption) (*Call, error) {
	if err := s.shareReady(ctx); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	return s.prepare(rays, flags, opts)
}

func (s *Scene) prepare(rays Rays, flags Flags, opts []CallOption) (*Call, error) {
	var o callOptions
	for _, f := range opts {
		f(&o)
	}
	n, err := s.CheckRays(rays, flags)
	if err != nil {
		return nil, err
	}
	c := &Call{Hits: o.into, Stream: o.stream}
	if c.Stream == nil {
		c.Stream = s.stream
	} else if err := s.checkDevice("Intersect", "OnStream", c.Stream.Context().Device()); err != nil {
		return nil, err
	}
	if c.Hits == nil {
		c.Hits, c.fresh = &Hits{}, true
	} else if c.Hits.holds(rays) {
		return nil, badArg("Intersect", "Into", "holds a column of the rays, which would be overwritten while they are read; fill another result")
	}
	if err := s.allocHits(c.Hits, c.Stream, n, flags); err != nil {
		return nil, err
	}
	return c, nil
}

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
	if err := s.shareReady(ctx); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	c, err := s.prepare(rays, flags, opts)
	if err != nil {
		return nil, err
	}
	if n := c.Hits.rows; n > 0 {
		err = s.submit(c.Stream, func(sc cuda.Scope) error {
			if err := s.tables.search.traverse(sc, c.Stream, rays, c.Hits.winners, 0, n); err != nil {
				return err // there are no winners to finalize
			}
			return s.finalize(sc, c.Stream, rays, c.Hits, 0, n)
		})
	}
	if err != nil {
		return nil, firstError(err, c.Abandon())
	}
	return c.Hits, nil
}

// submit enqueues a query on st, after the last change of the scene and before the
// next one. The caller holds a turn.
func (s *Scene) submit(st *cuda.Stream, enqueue func(cuda.Scope) error) error {
	return s.ctxDo(func(sc cuda.Scope) error {
		if err := s.order.enter(st); err != nil {
			return err
		}
		return firstError(enqueue(sc), s.order.leave(st))
	})
}

// Traverse enqueues the search of rows [begin, begin+count) on st, a stream of the
// scene's device, and stores one winner per row in the same rows of winners: a
// GlobalPrimID or -1. For schedulers: rays and winners may be on any device whose
// memory this one may access, and are not checked for that.
func (s *Scene) Traverse(st *cuda.Stream, rays Rays, winners cuda.Slice[int32], begin, count int64) error {
	return s.enqueueRows("Traverse", st, rays, int64(winners.Len()), begin, count, func(sc cuda.Scope) error {
		return s.tables.search.traverse(sc, st, rays, winners, begin, count)
	})
}

// Finalize enqueues on st the columns of rows [begin, begin+count) of hits, from
// the winners that Traverse has stored there. For schedulers: rays and hits are on
// the scene's device.
func (s *Scene) Finalize(st *cuda.Stream, rays Rays, hits *Hits, begin, count int64) error {
	return s.enqueueRows("Finalize", st, rays, hits.rows, begin, count, func(sc cuda.Scope) error {
		return s.finalize(sc, st, rays, hits, begin, count)
	})
}

// enqueueRows is submit for a part of a batch, with its own turn.
func (s *Scene) enqueueRows(op string, st *cuda.Stream, rays Rays, rows, begin, count int64, enqueue func(cuda.Scope) error) error {
	if err := s.shareReady(context.Background()); err != nil {
		return err
	}
	defer s.turns.done(false)
	rows = min(rows, int64(rays.O.Len()/3))
	if begin < 0 || count < 0 || begin > rows-count {
		return badArg(op, "begin, count", "are %d, %d, want a part of %d rows", begin, count, rows)
	}
	if err := s.checkDevice(op, "st", st.Context().Device()); err != nil {
		return err
	}
	if count == 0 {
		return nil
	}
	return s.submit(st, enqueue)
}

func (s *Scene) finalize(sc cuda.Scope, st *cuda.Stream, rays Rays, h *Hits, begin, count int64) error {
	t := s.tables
	p := finalizeParams{
		Rays: rays.columns(), Winners: h.winners.Addr(),
		Vertices: t.vertices.Addr(), Faces: t.faces.Addr(),
		ShapeIDs: t.shapeIDs.Addr(), FaceOffsets: t.faceOffsets.Addr(),
		T: h.T.Addr(), P: h.P.Addr(), N: h.N.Addr(), GeoN: h.GeoN.Addr(), UV: h.UV.Addr(),
		Barycentric: h.Barycentric.Addr(),
		ShapeID:     h.ShapeID.Addr(), PrimID: h.PrimID.Addr(),
		LocalPrimID: h.LocalPrimID.Addr(), GlobalPrimID: h.GlobalPrimID.Addr(),
	}
	return s.eachLaunch(begin, count, func(begin, count int64) error {
		p.RowBegin, p.Count = begin, count
		return launchRows(sc, s.kernels.finalize, st, count, &p)
	})
}
