package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
)

// Columns of a dfrPathsQuery, in the order of columns(); the inputs are whole.
const (
	dfrPathTx = iota
	dfrPathRx
	dfrPathPower
	dfrPathPolarization
	dfrPathActive
	dfrPathInputs
)

// dfrPathWidths are the bytes per row of what the search stores: status, delay, field and
// point; behind them the result has the ids.
var (
	dfrPathWidths = [...]int{1, 4, 24, 12}
	dfrPathLayout = append(dfrPathWidths[:], 4, 4, 4)
)

// inertPath is what rows without a path hold behind the status.
var inertPath = [len(dfrPathWidths) - 1]uint32{math.Float32bits(float32(math.Inf(1))), 0, 0}

// dfrPathsQuery is a call of TraceDfrPaths. Its rows are known by their numbers: the
// search computes all of a row but its ids, which finalize writes, and Compact moves the
// rows when all are there.
type dfrPathsQuery struct {
	lanes            dfrLanes
	layoutOf         DfrPathLayout
	transmitters     int64
	receivers, used  uint32
	polarizationStep uint32
	first            int64 // number of row 0
	in               [dfrPathInputs]RowColumn
	out              [len(dfrPathWidths)]RowColumn
	to               *DfrPaths
}

func (q *dfrPathsQuery) columns() (in, out []RowColumn) { return q.in[:], q.out[:] }

func (q *dfrPathsQuery) result() Reusable { return q.to }

func (q *dfrPathsQuery) layout() []int { return dfrPathLayout }

// tail is the number of rows with a path.
func (q *dfrPathsQuery) tail() int64 { return 8 }

// describe says what the search stores.
func (q *dfrPathsQuery) describe() {
	for i, w := range dfrPathWidths {
		q.out[i].Width = w
	}
}

func (q *dfrPathsQuery) place(starts []int64) error {
	q.to.Transmitters, q.to.Receivers, q.to.States = int(q.transmitters), int(q.receivers), int(q.used)
	q.to.Layout = q.layoutOf
	b := &q.to.block
	for i, w := range dfrPathWidths {
		data, err := column[uint8](b, starts[i], b.rows*int64(w))
		if err != nil {
			return err
		}
		q.out[i] = RowColumn{Data: data, Width: w}
	}
	return q.to.place(starts)
}

func (q *dfrPathsQuery) over(in []RowColumn) query {
	p := *q
	p.in, p.to = [dfrPathInputs]RowColumn(in), &DfrPaths{}
	p.describe()
	return &p
}

func (q *dfrPathsQuery) from(first int64) query {
	p := *q
	p.first += first
	return &p
}

func (q *dfrPathsQuery) search(on *Scene, at site, st *cuda.Stream, in, out []RowColumn, begin, count int64) error {
	k, err := on.dfrPathKernels()
	if err != nil {
		return err
	}
	x, err := on.tracer(context.Background())
	if err != nil {
		return err
	}
	p := dfrPathsParams{
		Tx: in[dfrPathTx].Data.Addr(), Rx: in[dfrPathRx].Data.Addr(), Power: in[dfrPathPower].Data.Addr(),
		Polarization: in[dfrPathPolarization].Data.Addr(), Active: in[dfrPathActive].Data.Addr(),
		Status: out[0].Data.Addr(), Delay: out[1].Data.Addr(), Field: out[2].Data.Addr(), Point: out[3].Data.Addr(),
		First: q.first, Receivers: q.receivers, States: q.used, PolarizationStep: q.polarizationStep,
	}
	if at.filled {
		p.Filled = 1
	}
	if p.Lanes, err = q.lanes.on(on, x); err != nil {
		return err
	}
	return on.eachLaunch(begin, count, func(begin, count int64) error {
		rows, err := x.lanesOfBlock(k.trace, count, pathRounds)
		if err != nil {
			return err
		}
		p.RowBegin, p.Count, p.BlockRows = begin, count, uint32(rows)
		return x.launchTracing(at.Scope, st, k.trace, (count+rows-1)/rows, cuda.ParamBytes(&p))
	})
}

// fill is part of filler.
func (q *dfrPathsQuery) fill(st *cuda.Stream, begin, count int64) error {
	for i, v := range inertPath {
		rows, err := q.out[1+i].rows(begin, count)
		if err == nil {
			err = cuda.Fill32(st, rows.Data, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (q *dfrPathsQuery) finalize(s *Scene, sc cuda.Scope, st *cuda.Stream, begin, count int64) error {
	if q.layoutOf == Compact {
		return nil // finish numbers the rows that it moves
	}
	k, err := s.dfrPathKernels()
	if err != nil {
		return err
	}
	table, err := q.lanes.tables(s)
	if err != nil {
		return err
	}
	r := q.to
	return s.eachLaunch(begin, count, func(begin, count int64) error {
		return launchRows(sc, k.ids, st, count, &dfrIdsParams{
			StatesTable: table.States, Status: r.Status.Addr(), Tx: r.TxID.Addr(), Rx: r.RxID.Addr(), Edge: r.EdgeID.Addr(),
			First: q.first, RowBegin: begin, Count: count, Receivers: q.receivers, States: q.used,
		})
	})
}

// finish counts the rows with a path, and moves them for Compact.
func (q *dfrPathsQuery) finish(s *Scene, sc cuda.Scope, st *cuda.Stream) error {
	k, err := s.dfrPathKernels()
	if err != nil {
		return err
	}
	n := q.to.rows
	tiles := (n + pathTile - 1) / pathTile
	totals, err := cuda.PoolAlloc[uint32](s.ctx.Pool(), st, int(max(tiles, 1)))
	if err != nil {
		return err
	}
	err = q.count(sc, k, st, totals, tiles)
	if err == nil && q.layoutOf == Compact && n > 0 {
		err = q.move(s, sc, k, st, totals, tiles)
	}
	return firstError(err, cuda.PoolFree(s.ctx.Pool(), st, totals))
}

// count makes totals the rows with a path before each tile.
func (q *dfrPathsQuery) count(sc cuda.Scope, k *dfrPathKernels, st *cuda.Stream, totals cuda.Slice[uint32], tiles int64) error {
	if tiles > 0 {
		err := launchBlocks(sc, k.count, st, tiles, pathThreads, &countPathsParams{
			Status: q.to.Status.Addr(), Totals: totals.Addr(), Count: q.to.rows,
		})
		if err != nil {
			return err
		}
	}
	return launchBlocks(sc, k.sum, st, 1, pathThreads, &sumPathsParams{
		Totals: totals.Addr(), Total: q.to.Count.Addr(), Tiles: tiles,
	})
}

// move puts the rows with a path in front of the others.
func (q *dfrPathsQuery) move(s *Scene, sc cuda.Scope, k *dfrPathKernels, st *cuda.Stream, totals cuda.Slice[uint32], tiles int64) error {
	table, err := q.lanes.tables(s)
	if err != nil {
		return err
	}
	n := q.to.rows
	starts, bytes := columnStarts(n, dfrPathWidths[:])
	packed, err := cuda.PoolAlloc[uint8](s.ctx.Pool(), st, int(bytes))
	if err != nil {
		return err
	}
	r, away := q.to, pathColumnsAt(packed.Addr(), starts)
	home := dfrPathColumns{Status: r.Status.Addr(), Delay: r.Delay.Addr(), Field: r.Field.Addr(), Point: r.P0.Addr()}
	err = launchBlocks(sc, k.pack, st, tiles, pathThreads, &packPathsParams{
		From: home, To: away, Tx: r.TxID.Addr(), Rx: r.RxID.Addr(), Edge: r.EdgeID.Addr(),
		StatesTable: table.States, Totals: totals.Addr(), Total: r.Count.Addr(),
		Count: n, Receivers: q.receivers, States: q.used,
	})
	if err == nil {
		err = launchBlocks(sc, k.settle, st, tiles, pathThreads, &settlePathsParams{
			From: away, To: home, Total: r.Count.Addr(), Count: n,
		})
	}
	return firstError(err, cuda.PoolFree(s.ctx.Pool(), st, packed))
}
