package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// MaxBounces is the most bounces of one call of TraceReflections.
const MaxBounces = 64

// TraceReflections follows every ray from surface to surface, reflecting it at each
// hit as a mirror does, for at most maxBounces hits (1 to MaxBounces) or until it hits
// nothing. Each leg hits what Intersect would hit; TMax bounds the first leg only, so
// that the first slot of a row holds the T and GlobalPrimID of Intersect, bit for bit.
// Both sides of a face reflect. Surfaces closer to a reflection point than 20 µm, or a
// millionth of the coordinates if that is more, may be passed through.
//
// The work is enqueued on the scene's stream or the stream of OnStream, and
// TraceReflections returns without waiting for it: the caller reads the columns in
// the order of that stream. Close the result to reuse its memory.
//
// Errors: ErrNotReady, *FailedError, *ArgumentError, *cuda.WrongDeviceError, the error
// of ctx, and errors of the device; nothing is enqueued for all but the last. Cost: two
// launches and a fill of twelve bytes per 2^30 rays; no driver allocation once the pool
// holds a result of that size, which has 9 bytes per bounce and ray, and what fields
// add. With OptiX, the first call on a device compiles its programs.
func (s *Scene) TraceReflections(ctx context.Context, rays Rays, maxBounces int, fields ChainFields, opts ...CallOption) (*Chains, error) {
	return ask(ctx, s, func() (*Chains, *Call, error) { return s.prepareReflections(rays, maxBounces, fields, opts) })
}

// PrepareReflections does all of TraceReflections that precedes the launches. For
// schedulers.
func (s *Scene) PrepareReflections(ctx context.Context, rays Rays, maxBounces int, fields ChainFields, opts ...CallOption) (*Chains, *Call, error) {
	return prepared(ctx, s, func() (*Chains, *Call, error) { return s.prepareReflections(rays, maxBounces, fields, opts) })
}

func (s *Scene) prepareReflections(rays Rays, maxBounces int, fields ChainFields, opts []CallOption) (*Chains, *Call, error) {
	const op = "TraceReflections"
	if maxBounces < 1 || maxBounces > MaxBounces {
		return nil, nil, badArg(op, "maxBounces", "is %d, want 1 to %d", maxBounces, MaxBounces)
	}
	if err := fields.check(op); err != nil {
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
	q := &reflectQuery{bounces: maxBounces, fields: fields, in: rays.rowColumns()}
	q.out[0].Width = winnerBytes * maxBounces
	if q.chains, err = resultFor[Chains](op, c, o, q.in[:]); err != nil {
		return nil, nil, err
	}
	c.query = q
	return q.chains, c, nil
}

type reflectQuery struct {
	bounces int
	fields  ChainFields
	chains  *Chains
	in      [4]RowColumn
	out     [1]RowColumn
}

func (q *reflectQuery) columns() (in, out []RowColumn) { return q.in[:], q.out[:] }

func (q *reflectQuery) result() Reusable { return q.chains }

func (q *reflectQuery) layout() []int { return chainLayout(q.bounces, q.fields) }

func (q *reflectQuery) place(starts []int64) error {
	q.chains.Bounces, q.chains.Fields = q.bounces, q.fields
	err := q.chains.cut(starts, q.layout())
	q.out[0] = rowColumn(q.chains.PrimIDs, winnerBytes*q.bounces)
	return err
}

func (q *reflectQuery) over(in []RowColumn) query {
	return &reflectQuery{bounces: q.bounces, fields: q.fields, chains: &Chains{}, in: [4]RowColumn(in)}
}

func (q *reflectQuery) search(on *Scene, at site, st *cuda.Stream, in, out []RowColumn, begin, count int64) error {
	return on.tables.search.reflect(at, st, rayColumnsOf(in), out[0].Data.Addr(), int32(q.bounces), begin, count)
}

func (q *reflectQuery) finalize(s *Scene, sc cuda.Scope, st *cuda.Stream, begin, count int64) error {
	c := q.chains
	p := finalizeChainsParams{
		Rays: rayColumnsOf(q.in[:]), Surfaces: s.tables.surfaces(), PrimIDs: c.PrimIDs.Addr(),
		Valid: c.Valid.Addr(), T: c.T.Addr(),
		ImageSources: c.ImageSources.Addr(), HitPoints: c.HitPoints.Addr(),
		Normals: c.Normals.Addr(), Barycentric: c.Barycentric.Addr(),
		Bounces: int32(c.Bounces), FaceCount: int32(s.tables.faceCount),
	}
	p.Pool, p.Slots = s.tables.search.mirrors()
	return s.eachLaunch(begin, count, func(begin, count int64) error {
		p.RowBegin, p.Count = begin, count
		return launchRows(sc, s.kernels.finalizeChains, st, count, &p)
	})
}

func (x *treeSearch) reflect(at site, st *cuda.Stream, rays rayColumns, primIDs uint64, bounces int32, begin, count int64) error {
	if bounces == 1 {
		return x.traverse(at, st, rays, primIDs, begin, count) // which has less to keep
	}
	p := traceChainsParams{Rays: rays, PrimIDs: primIDs, Bounces: bounces}
	return x.searchRows(at, st, x.s.kernels.traceChains, &p.Search, cuda.ParamBytes(&p), begin, count)
}

func (x *treeSearch) mirrors() (pool, slots uint64) { return x.pool.Addr(), x.slots.Addr() }
