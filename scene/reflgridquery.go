package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
)

// Inputs of a reflGridQuery behind those of the rays.
const (
	tubeTxColumn = iota + 4
	tubePolarizationColumn
	tubeInputs
)

// Columns of a ReflGrids, in the order of layout(); wedgeColumnSizes follow.
const (
	tubePower = iota
	tubeComponents
	tubeTotals
	tubeEvents
	tubeColumns
)

// totalsBytes is the size of ReflGrids.totals.
const totalsBytes = 24

// reflGridQuery is a call of AccumulateReflections. Its lanes are rays.
type reflGridQuery struct {
	scene *Scene // of the caller
	rows  int64
	grid  Grid
	opt   ReflGridOptions
	in    [tubeInputs]RowColumn
	out   [1]RowColumn // events of each ray, if they are collected
	to    *ReflGrids

	acc cuda.Slice[uint8] // behind the columns of the result
}

func (s *Scene) newReflGridQuery(n int64, rays Rays, grid Grid, opt ReflGridOptions) *reflGridQuery {
	if opt.WedgeSampleStride == 0 {
		opt.WedgeSampleStride = 1
	}
	if !opt.CollectWedges {
		opt.WedgeCapacity = 0
	}
	q := &reflGridQuery{scene: s, rows: n, grid: grid, opt: opt, out: [1]RowColumn{{Width: 1}}}
	c := rays.rowColumns()
	copy(q.in[:], c[:])
	perRay := func(v cuda.Slice[float32]) RowColumn {
		if v.Len() == 3 {
			return rowColumn(v, 0)
		}
		return rowColumn(v, 12)
	}
	q.in[tubeTxColumn], q.in[tubePolarizationColumn] = perRay(opt.TxPosition), perRay(opt.TxPolarization)
	return q
}

// reflGridKey is what results must have in common to be merged.
type reflGridKey struct {
	Grid                         Grid
	Wavelength, SolidAnglePerRay float64
	MaxBounces                   int
	IncludeLOS                   bool
	FieldWeight                  FieldWeight
}

func (q *reflGridQuery) key() reflGridKey {
	o := &q.opt
	return reflGridKey{q.grid, o.Wavelength, o.SolidAnglePerRay, o.MaxBounces, o.IncludeLOS, o.FieldWeight}
}

// collects tells whether there may be wedge events.
func (q *reflGridQuery) collects() bool { return q.opt.CollectWedges && q.opt.MaxBounces > 0 }

func (q *reflGridQuery) columns() (in, out []RowColumn) {
	if !q.collects() {
		return q.in[:], nil
	}
	return q.in[:], q.out[:]
}

func (q *reflGridQuery) accumulator() accumulatorSize {
	n := q.grid.Cells()
	return accumulatorSize{sums64: tubeWords * n, sums32: n, maxima32: tubeLimits}
}

func (q *reflGridQuery) cut([]int64) error { return nil }

func (q *reflGridQuery) result() Reusable { return q.to }

func (q *reflGridQuery) layout() []int64 {
	n := q.grid.Cells()
	sizes := []int64{tubePower: 4 * n, tubeComponents: 24 * n, tubeTotals: totalsBytes, tubeEvents: 0}
	if q.collects() {
		sizes[tubeEvents] = q.rows
	}
	return append(sizes, wedgeColumnSizes(int64(q.opt.WedgeCapacity))...)
}

func (q *reflGridQuery) place(starts []int64, acc cuda.Slice[uint8]) error {
	g, n, sizes := q.to, q.grid.Cells(), q.layout()
	g.Grid, g.RayCount, g.MaxBounces, g.CellsTotal = q.grid, q.rows, q.opt.MaxBounces, n
	g.query, q.acc = q, acc
	var first error
	floats := func(start int64) cuda.Slice[float32] {
		v, err := column[float32](&g.block, start, 4*n)
		first = firstError(first, err)
		return v
	}
	g.Power = floats(starts[tubePower])
	for i, dst := range [...]*cuda.Slice[float32]{&g.FieldXRe, &g.FieldXIm, &g.FieldYRe, &g.FieldYIm, &g.FieldZRe, &g.FieldZIm} {
		*dst = floats(starts[tubeComponents] + 4*n*int64(i))
	}
	events, err := column[uint8](&g.block, starts[tubeEvents], sizes[tubeEvents])
	first = firstError(first, err)
	q.out[0] = RowColumn{events, 1}
	return firstError(first, q.placeTotals(starts[tubeTotals]), q.placeWords(), q.placeWedges(starts[tubeColumns:], sizes[tubeColumns:]))
}

func (q *reflGridQuery) placeTotals(start int64) (err error) {
	g := q.to
	if g.totals, err = column[int64](&g.block, start, totalsBytes); err != nil {
		return err
	}
	if g.Count, err = g.totals.Sub(0, 1); err != nil {
		return err
	}
	g.Status, err = column[uint32](&g.block, start+8, 4)
	return err
}

// placeWords shows the accumulators, as far as they were asked for.
func (q *reflGridQuery) placeWords() error {
	g, n := q.to, int(q.grid.Cells())
	g.CellCount, g.Words, g.WordCounts, g.WordMaxima = cuda.Slice[uint32]{}, cuda.Slice[int64]{}, cuda.Slice[uint32]{}, cuda.Slice[uint32]{}
	words, err := sliceOf[int64](q.acc, 0, 8*tubeWords*n)
	if err != nil {
		return err
	}
	counts, err := sliceOf[uint32](q.acc, 8*tubeWords*n, 4*n)
	if err != nil {
		return err
	}
	maxima, err := sliceOf[uint32](q.acc, cellBytes*n, 4*tubeLimits)
	if err != nil {
		return err
	}
	if q.opt.CellCount {
		g.CellCount = counts
	}
	if q.opt.KeepWords {
		g.Words, g.WordCounts, g.WordMaxima = words, counts, maxima
	}
	return nil
}

// sliceOf is bytes [start, start+bytes) of memory as values of a type.
func sliceOf[T cuda.Scalar](memory cuda.Slice[uint8], start, bytes int) (cuda.Slice[T], error) {
	sub, err := memory.Sub(start, start+bytes)
	if err != nil {
		return cuda.Slice[T]{}, err
	}
	return cuda.Reinterpret[T](sub)
}

// sums are the accumulators of one copy.
func (q *reflGridQuery) sums(acc cuda.Slice[uint8]) tubeSums {
	n := uint64(q.grid.Cells())
	at := acc.Addr()
	return tubeSums{Words: at, Counts: at + 64*n, Limits: at + 68*n, Cells: int64(n), Copies: 1}
}

const (
	// A leg's end takes as many instructions as its search: reflection, field and sums.
	// More lanes do it together than other kernels take new rays.
	tubeBusyLanes, tubeIdleLanes = 12, 20

	cellBytes = 68
	// mostTubeCopies is the most private copies of the sums. Fewer than copiesFrom rows add
	// to the sums themselves.
	mostTubeCopies = 8
	copiesFrom     = 1 << 16
)

func (q *reflGridQuery) copies() int64 { return q.scene.ReflGridCopies(q.rows, q.grid.Cells()) }

// ReflGridCopies is GridCall.Copies of an AccumulateReflections of so many rays, without a
// call.
func (s *Scene) ReflGridCopies(rays, cells int64) int64 {
	if n := s.tubeCopies(rays, cells); n > 1 {
		return n
	}
	return 0
}

// tubeCopies is the number of copies that so many rays add to, in turn, so that those that
// meet a few cells do not wait for each other; they leave half of the cache to the scene.
func (s *Scene) tubeCopies(rays, cells int64) int64 {
	switch {
	case s.forceCopies > 0:
		return s.forceCopies
	case rays < copiesFrom:
		return 1
	}
	n := int64(mostTubeCopies)
	for n > 1 && n*cells*cellBytes > s.cacheBytes/2 {
		n /= 2
	}
	return n
}

func (q *reflGridQuery) accumulate(on *Scene, sc cuda.Scope, st *cuda.Stream, in, out []RowColumn, acc cuda.Slice[uint8], begin, count int64) error {
	k, err := on.reflGridKernels()
	if err != nil {
		return err
	}
	p, err := q.params(on, in, begin)
	if err != nil {
		return err
	}
	if q.collects() {
		p.Events = out[0].Data.Addr()
	}
	x, err := on.tracer(context.Background())
	if err != nil {
		return err
	}
	p.Sums = q.sums(acc)
	trace := func() error {
		return x.searchRows(site{Scope: sc}, st, k.accumulate, &p.Search, cuda.ParamBytes(&p), 0, count)
	}
	copies := q.scene.tubeCopies(count, q.grid.Cells())
	if copies == 1 {
		return trace()
	}
	own := p.Sums
	words := copies * own.Cells * tubeWords
	scratch, err := cuda.PoolAlloc[uint8](on.ctx.Pool(), st, int(copies*own.Cells*cellBytes))
	if err != nil {
		return err
	}
	p.Sums.Words, p.Sums.Counts, p.Sums.Copies = scratch.Addr(), scratch.Addr()+uint64(8*words), copies
	err = cuda.Fill32(st, scratch, 0)
	if err == nil {
		err = trace()
	}
	if err == nil {
		err = launchRows(sc, k.fold, st, own.Cells*tubeWords, &foldTubesParams{From: p.Sums, Words: own.Words, Counts: own.Counts})
	}
	return firstError(err, cuda.PoolFree(on.ctx.Pool(), st, scratch))
}

// params are those of both kernels that follow rays; row 0 of in is ray first of the call.
func (q *reflGridQuery) params(on *Scene, in []RowColumn, first int64) (tubeParams, error) {
	o := &q.opt
	m, err := o.Materials.media(accumulateReflections, on)
	p := tubeParams{
		Search: searchParams{BusyLanes: on.tubeLanes[0], IdleLanes: on.tubeLanes[1]},
		Rays:   rayColumnsOf(in), Tx: in[tubeTxColumn].Data.Addr(), Polarization: in[tubePolarizationColumn].Data.Addr(),
		Media: m, Grid: q.grid.cells(),
		Lambda: o.Wavelength, LossPerSigma: lossPerSigma(o.Wavelength),
		RowBase: o.RowBase + first, Stride: int64(o.WedgeSampleStride),
		Omega: float32(o.SolidAnglePerRay), Bounces: int32(o.MaxBounces),
	}
	if o.FieldWeight == WeightArea {
		p.Area = float32(math.Sqrt(o.SolidAnglePerRay / q.grid.CellArea()))
	}
	for _, f := range [...]struct {
		bit uint32
		set bool
	}{
		{tubesDirect, o.IncludeLOS}, {tubesEvents, q.collects()}, {tubesPrefixes, o.CollectWedgePrefixes},
		{tubesTxRows, !in[tubeTxColumn].Whole()}, {tubesPolarizationRows, !in[tubePolarizationColumn].Whole()},
	} {
		if f.set {
			p.Flags |= f.bit
		}
	}
	return p, err
}

func (q *reflGridQuery) readout(s *Scene, sc cuda.Scope, st *cuda.Stream) error {
	if q.rows == 0 {
		return q.clear(st)
	}
	return q.read(s, sc, st, []cuda.Slice[uint8]{q.acc})
}

// collect sums the accumulators in the launch that reads the result, which asks other devices
// only for the cells that have something.
func (q *reflGridQuery) collect(s *Scene, sc cuda.Scope, st *cuda.Stream, parts []cuda.Slice[uint8]) (bool, error) {
	if len(parts) > sumParts || q.rows == 0 {
		return false, nil
	}
	return true, q.read(s, sc, st, parts)
}

func (q *reflGridQuery) read(s *Scene, sc cuda.Scope, st *cuda.Stream, parts []cuda.Slice[uint8]) error {
	if err := cuda.Fill32(st, q.to.totals, 0); err != nil {
		return err
	}
	if err := q.readGrids(s, sc, st, parts, false); err != nil {
		return err
	}
	return q.readWedges(s, sc, st)
}

// clear makes the result that no rays have.
func (q *reflGridQuery) clear(st *cuda.Stream) error {
	memory := q.to.memory().memory
	columns, err := memory.Sub(0, int(q.acc.Addr()-memory.Addr()))
	if err != nil {
		return err
	}
	if err := cuda.Fill32(st, columns, 0); err != nil || q.opt.WedgeCapacity == 0 {
		return err
	}
	const none = 1<<32 - 1
	w := &q.to.Wedges
	return firstError(cuda.Fill32(st, w.RayIndex, none), cuda.Fill32(st, w.PrimID, none), cuda.Fill32(st, w.BounceDepth, none))
}

// readGrids makes the columns of the sums of accumulators, adds to Count and Status, and stores
// the sum as far as it was asked for. whole: words count in cells without contributions, too.
func (q *reflGridQuery) readGrids(s *Scene, sc cuda.Scope, st *cuda.Stream, parts []cuda.Slice[uint8], whole bool) error {
	k, err := s.reflGridKernels()
	if err != nil {
		return err
	}
	base := q.opt.base(q.grid)
	p := readTubesParams{
		From: accumulatorsOf(parts), Power: q.to.Power.Addr(), Components: q.to.FieldXRe.Addr(),
		Total: q.to.Count.Addr(), Status: q.to.Status.Addr(), Cells: q.grid.Cells(), Base: base, BaseSquared: base * base,
	}
	if own := q.sums(q.acc); (q.opt.CellCount || q.opt.KeepWords) && (len(parts) > 1 || parts[0].Addr() != own.Words) {
		p.Words, p.Counts = q.to.Words.Addr(), own.Counts
	}
	if q.opt.FieldWeight == WeightArea {
		p.Weighted = 1
	}
	if whole {
		p.Whole = 1
	}
	return launchRows(sc, k.read, st, p.Cells, &p)
}
