package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// WedgeEvents are the hits of rays of AccumulateReflections behind which a later stage may
// look for diffracting edges: those where a field is reflected. Events are in the order of
// RayIndex and BounceDepth; of more than Capacity, the first are kept. Slots without an
// event have ids of -1 and zeros.
type WedgeEvents struct {
	Capacity int // slots, those of ReflGridOptions.WedgeCapacity

	Count cuda.Slice[int64] // of all events, also of those without a slot, [1]

	RayIndex          cuda.Slice[int64]   // number of the ray, with RowBase
	HitPoints         cuda.Slice[float32] // in metres, [Capacity,3]
	Normals           cuda.Slice[float32] // unit normal of the side that was hit, [Capacity,3]
	PrimID            cuda.Slice[int32]   // face of the scene
	Directions        cuda.Slice[float32] // unit direction of the leg that ends here, [Capacity,3]
	SourcePoints      cuda.Slice[float32] // its image source, the transmitter for the first leg, [Capacity,3]
	SrcPower          cuda.Slice[float32] // of the ray before it is reflected: |f|^2 SolidAnglePerRay, times the stride
	InitialDirections cuda.Slice[float32] // unit direction of the ray, [Capacity,3]
	BounceDepth       cuda.Slice[int32]   // reflections before this one
}

// wedgeSizes are the bytes of a slot in each column: ray index, hit point, normal,
// direction, source point, initial direction, source power, primitive, depth.
var wedgeSizes = [...]int64{8, 12, 12, 12, 12, 12, 4, 4, 4}

func wedgeColumnSizes(capacity int64) []int64 {
	sizes := make([]int64, len(wedgeSizes))
	for i, n := range wedgeSizes {
		sizes[i] = n * capacity
	}
	return sizes
}

// placeWedges points the columns of events into the result.
func (q *reflGridQuery) placeWedges(starts, sizes []int64) (err error) {
	b := q.to.memory()
	w := WedgeEvents{Capacity: q.opt.WedgeCapacity}
	if w.Count, err = q.to.totals.Sub(2, 3); err != nil {
		return err
	}
	if w.RayIndex, err = column[int64](b, starts[0], sizes[0]); err != nil {
		return err
	}
	for i, dst := range [...]*cuda.Slice[float32]{
		1: &w.HitPoints, 2: &w.Normals, 3: &w.Directions, 4: &w.SourcePoints, 5: &w.InitialDirections, 6: &w.SrcPower,
	} {
		if dst == nil {
			continue
		}
		if *dst, err = column[float32](b, starts[i], sizes[i]); err != nil {
			return err
		}
	}
	if w.PrimID, err = column[int32](b, starts[7], sizes[7]); err != nil {
		return err
	}
	w.BounceDepth, err = column[int32](b, starts[8], sizes[8])
	q.to.Wedges = w
	return err
}

func (w *WedgeEvents) params() wedgeColumns {
	return wedgeColumns{
		RayIndex: w.RayIndex.Addr(), HitPoints: w.HitPoints.Addr(), Normals: w.Normals.Addr(),
		Directions: w.Directions.Addr(), SourcePoints: w.SourcePoints.Addr(), InitialDirections: w.InitialDirections.Addr(),
		SrcPower: w.SrcPower.Addr(), PrimID: w.PrimID.Addr(), BounceDepth: w.BounceDepth.Addr(), Capacity: int64(w.Capacity),
	}
}

// readWedges makes events of their numbers per row: the sums before each row say where
// its events are, and the rows of the slots that there are are followed once more.
func (q *reflGridQuery) readWedges(s *Scene, sc cuda.Scope, st *cuda.Stream) (err error) {
	k, err := s.reflGridKernels()
	if err != nil {
		return err
	}
	w := &q.to.Wedges
	to := w.params()
	if w.Capacity > 0 {
		if err := launchRows(sc, k.clearWedges, st, to.Capacity, &to); err != nil {
			return err
		}
	}
	if !q.collects() {
		return nil
	}
	tiles := (q.rows + wedgeTile - 1) / wedgeTile
	pool := s.ctx.Pool()
	starts, err := cuda.PoolAlloc[uint64](pool, st, int(tiles))
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, cuda.PoolFree(pool, st, starts)) }()
	counts := wedgeCounts{Events: q.out[0].Data.Addr(), Starts: starts.Addr(), Rows: q.rows}
	if err := launchBlocks(sc, k.sumWedges, st, tiles, wedgeThreads, &counts); err != nil {
		return err
	}
	if err := launchBlocks(sc, k.scanWedges, st, 1, wedgeThreads, &scanWedgesParams{
		Starts: starts.Addr(), Total: w.Count.Addr(), Tiles: tiles,
	}); err != nil {
		return err
	}
	if w.Capacity == 0 {
		return nil
	}
	if err := launchBlocks(sc, k.placeWedges, st, tiles, wedgeThreads, &placeWedgesParams{
		Counts: counts, RayIndex: to.RayIndex, Capacity: to.Capacity, RowBase: q.opt.RowBase,
	}); err != nil {
		return err
	}
	return q.traceWedges(s, sc, st, k.traceWedges, to)
}

// traceWedges follows the rows of the slots.
func (q *reflGridQuery) traceWedges(s *Scene, sc cuda.Scope, st *cuda.Stream, f *cuda.Function, to wedgeColumns) error {
	x, err := s.tracer(context.Background())
	if err != nil {
		return err
	}
	tubes, err := q.params(s, q.in[:], 0)
	if err != nil {
		return err
	}
	p := traceWedgesParams{Tubes: tubes, To: to}
	slots := min(to.Capacity, q.rows*q.perRow())
	return x.searchRows(site{Scope: sc}, st, f, &p.Tubes.Search, cuda.ParamBytes(&p), 0, slots)
}

// perRow is the most events of a ray.
func (q *reflGridQuery) perRow() int64 {
	if !q.opt.CollectWedgePrefixes {
		return 1
	}
	return int64(q.opt.MaxBounces)
}
