package scene

import (
	"context"
	"slices"

	"github.com/raymux/raymux/cuda"
)

// coherentQuery is an AccumDfrCoherentDirect.
//
// A cell whose lanes all run in one block is finished by it, and the accumulator holds
// its fields as bits, which adding to zero keeps. A cell that launches or blocks divide
// between them has a slot with the words of its sums. With KeepWords every cell has words.
// Behind the
// words come, of 32 bits, the fields by component, if they are there, then three counters,
// all over the cells; and the cell of each slot, as a maximum.
type coherentQuery struct {
	of         *Scene // of the caller
	lanes      dfrLanes
	grid       Grid
	options    DfrCoherentOptions
	states     int64
	begin, end int64 // lanes of the call
	slots      []int64
	active     RowColumn
	to         *DfrCoherentAccum
}

// coherentComponents are the components of a field, coherentCounters the counters of a
// cell, and coherentWords the words of a cell.
const (
	coherentComponents = 6
	coherentCounters   = 3
	coherentWords      = coherentComponents * wordsPerSum
)

// CutBytes is what a cell of AccumDfrCoherentDirect that launches divide adds to an
// accumulator. For schedulers.
const CutBytes = 8*coherentWords + 4

func (q *coherentQuery) terms() coherentTerms {
	o := &q.options
	return coherentTerms{q.grid, q.lanes.states, o.Materials, o.Wavelength, o.TxPolarization, o.EdgeMode, o.SkipVisibility}
}

func (q *coherentQuery) columns() (in, out []RowColumn) { return []RowColumn{q.active}, nil }

func (q *coherentQuery) copies() int64 { return 0 }

func (q *coherentQuery) accumulator() accumulatorSize {
	cells := q.grid.Cells()
	if q.options.KeepWords {
		return accumulatorSize{sums64: coherentWords * cells, sums32: coherentCounters * cells}
	}
	slots := int64(len(q.slots))
	if q.divides() {
		slots = q.touched()
	}
	return accumulatorSize{
		sums64: coherentWords * slots, sums32: (coherentComponents + coherentCounters) * cells, maxima32: slots,
	}
}

const (
	// fewCells with manyStates each are divided among blocks: with one for each there were
	// too few of them for a device, or the last ones would have it for themselves. The
	// words cost one launch more.
	fewCells   = 4096
	manyStates = 4096
	// maxShares bounds the number of blocks, and coherentRounds the lanes of a thread.
	maxShares      = 1 << 16
	coherentRounds = 64
)

// divides reports whether blocks share the states of a cell. Without KeepWords every cell
// that the call touches then has a slot, in their order.
func (q *coherentQuery) divides() bool {
	return q.states >= manyStates && q.touched() <= fewCells
}

// touched is the number of cells with lanes of the call.
func (q *coherentQuery) touched() int64 {
	if q.begin == q.end {
		return 0
	}
	return (q.end-1)/q.states - q.begin/q.states + 1
}

// cut finds the cells that launches divide between them.
func (q *coherentQuery) cut(at []int64) error {
	q.slots = nil
	if q.options.KeepWords || q.states == 0 || q.divides() {
		return nil
	}
	for _, lane := range at {
		cell := lane / q.states
		if lane > q.begin && lane < q.end && lane%q.states != 0 && (len(q.slots) == 0 || q.slots[len(q.slots)-1] != cell) {
			q.slots = append(q.slots, cell)
		}
	}
	return nil
}

// slot is where the words of a cell are, or -1 if it has none.
func (q *coherentQuery) slot(cell int64) int32 {
	if q.divides() {
		return int32(cell - q.begin/q.states)
	}
	if i, found := slices.BinarySearch(q.slots, cell); found {
		return int32(i)
	}
	return -1
}

// checkCut requires a lane to be one at which a launch may begin or end.
func (q *coherentQuery) checkCut(lane int64) error {
	if q.options.KeepWords || lane == q.begin || lane == q.end || lane%q.states == 0 || q.slot(lane/q.states) >= 0 {
		return nil
	}
	return badArg(q.lanes.op, "begin", "divides the lanes of a cell at %d, which is not among those of Cut", lane)
}

func (q *coherentQuery) result() Reusable { return q.to }

func (q *coherentQuery) layout() []int64 {
	if !q.options.KeepWords {
		return nil
	}
	return []int64{4 * coherentComponents * q.grid.Cells()}
}

// place points the columns into the accumulator, which has most of them.
func (q *coherentQuery) place(starts []int64, acc cuda.Slice[uint8]) (err error) {
	a, size := q.to, q.accumulator()
	a.Grid, a.terms, a.of = q.grid, q.terms(), q.of
	a.acc, a.size, a.Words = acc, size, cuda.Slice[int64]{}
	cells := q.grid.Cells()
	behind, err := acc.Sub(int(8*size.sums64), acc.Len())
	if err != nil {
		return err
	}
	fields, counters := behind, behind
	if q.options.KeepWords {
		if fields, err = column[uint8](&a.block, starts[0], q.layout()[0]); err != nil {
			return err
		}
		words, err := acc.Sub(0, int(8*size.sums64))
		if err != nil {
			return err
		}
		if a.Words, err = cuda.Reinterpret[int64](words); err != nil {
			return err
		}
	} else if counters, err = behind.Sub(int(4*coherentComponents*cells), behind.Len()); err != nil {
		return err
	}
	return firstError(
		planes(fields, cells, &a.FieldXRe, &a.FieldXIm, &a.FieldYRe, &a.FieldYIm, &a.FieldZRe, &a.FieldZIm),
		planes(counters, cells, &a.Count, &a.VisRejects, &a.UTDRejects))
}

// planes cuts memory into grids of four bytes per cell.
func planes[T cuda.Scalar](memory cuda.Slice[uint8], cells int64, to ...*cuda.Slice[T]) error {
	for i, dst := range to {
		part, err := memory.Sub(int(4*cells)*i, int(4*cells)*(i+1))
		if err != nil {
			return err
		}
		if *dst, err = cuda.Reinterpret[T](part); err != nil {
			return err
		}
	}
	return nil
}

func (q *coherentQuery) accumulate(on *Scene, sc cuda.Scope, st *cuda.Stream, in, _ []RowColumn, acc cuda.Slice[uint8], begin, count int64) error {
	if err := firstError(q.checkCut(begin), q.checkCut(begin+count)); err != nil {
		return err
	}
	k, err := on.coherentKernels()
	if err != nil {
		return err
	}
	x, err := on.tracer(context.Background())
	if err != nil {
		return err
	}
	size, cells := q.accumulator(), q.grid.Cells()
	behind := acc.Addr() + uint64(8*size.sums64)
	p := coherentParams{
		Cells: q.grid.cells(), States: uint32(q.states),
		Active: in[0].Data.Addr(), ActiveCount: uint32(in[0].Data.Len()),
		Begin: begin, End: begin + count, Words: acc.Addr(), Counters: behind,
	}
	lanes, err := x.lanesOfBlock(k.accumulate, count, coherentRounds)
	if err != nil {
		return err
	}
	group, shares := q.blocks(lanes)
	p.Group, p.Shares = uint32(group), uint32(shares)
	p.Share = uint32((group*q.states + shares - 1) / shares)
	u := q.options.TxPolarization
	p.Polarization.X, p.Polarization.Y, p.Polarization.Z = u[0], u[1], u[2]
	first, last := begin/q.states, (begin+count-1)/q.states
	if !q.options.KeepWords {
		p.FirstSlot, p.LastSlot = q.slot(first), q.slot(last)
		p.Fields, p.Counters = behind, behind+uint64(4*coherentComponents*cells)
		p.Slots = behind + uint64(4*size.sums32)
	}
	if p.Lanes, err = q.lanes.on(on, x); err != nil {
		return err
	}
	return x.launchTracing(sc, st, k.accumulate, (last-first+group)/group*shares, cuda.ParamBytes(&p))
}

// blockCells is BLOCK_CELLS of coherent.cu.
const blockCells = 21

// blocks is how many cells a block works for, or how many blocks share one, so that each
// gets so many lanes.
func (q *coherentQuery) blocks(lanes int64) (group, shares int64) {
	if q.divides() {
		return 1, min(max((q.states+lanes-1)/lanes, 2), maxShares)
	}
	return min(max(lanes/q.states, 1), blockCells), 1
}

func (q *coherentQuery) readout(_ *Scene, sc cuda.Scope, st *cuda.Stream) error {
	if q.begin < q.end || !q.options.KeepWords {
		return q.to.read(sc, st)
	}
	fields, err := q.to.memory().memory.Sub(0, int(q.layout()[0])) // the first column
	if err != nil {
		return err
	}
	return cuda.Fill32(st, fields, 0)
}
