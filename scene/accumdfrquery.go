package scene

import (
	"math"

	"github.com/raymux/raymux/cuda"
)

// dfrQuery is an AccumDfrDirect.
type dfrQuery struct {
	of      *Scene // of the caller
	states  *StateTable
	grid    Grid
	options DfrDirectOptions
	total   int64 // lanes without a window
	begin   int64 // of the window
	lanes   int64 // of the call
	byPair  bool  // launches have whole pairs each
	active  [1]RowColumn
	to      *DfrAccum
}

const (
	// fusedCells is the most cells that the last block of a launch reads out by itself.
	fusedCells = 4096
	// joinedCells is the most cells whose sum the devices of a call make in one accumulator. Its
	// last block is the only one that reads them out.
	joinedCells = 256
)

func (q *dfrQuery) terms() dfrTerms {
	o := &q.options
	return dfrTerms{q.grid, q.states, o.Materials, o.Wavelength, o.DirectSamples, o.KellerSamples, o.Seed}
}

func (q *dfrQuery) azimuths() bool { return q.options.KellerSamples > 0 }

func (q *dfrQuery) columns() (in, out []RowColumn) { return q.active[:], nil }

func (q *dfrQuery) accumulator() accumulatorSize { return q.terms().accumulator() }

func (q *dfrQuery) copies() int64 {
	if !q.azimuths() {
		return 0
	}
	n := copiesFor(q.lanes, q.grid.Cells())
	if n == 1 {
		return 0
	}
	return n
}

// copiesFor is the number of copies of so many cells that so many lanes are divided over,
// a power of two.
func copiesFor(lanes, cells int64) int64 {
	n := int64(1)
	for 2*n <= min(dfrCopies, lanes/copyLanes) && 2*n*cells*8*wordsPerSum <= copyBytes {
		n *= 2
	}
	return n
}

func (q *dfrQuery) cut(at []int64) error {
	pairs := q.pairs()
	q.begin = at[0]
	q.byPair = len(at) > 1 && pairs > chunkedPairs && q.lanes > pairs && q.lanes/pairs < partLanes
	return nil
}

// pairs is how many pairs of a state and a cell, or states by azimuth, the lanes of the whole
// call belong to in turn.
func (q *dfrQuery) pairs() int64 {
	if q.azimuths() {
		return int64(q.states.count)
	}
	return int64(q.states.count) * q.grid.Cells()
}

func (q *dfrQuery) result() Reusable { return q.to }

func (q *dfrQuery) layout() []int64 { return []int64{4 * q.grid.Cells(), 8 * dfrCounts} }

func (q *dfrQuery) place(starts []int64, acc cuda.Slice[uint8]) (err error) {
	a, cells := q.to, q.grid.Cells()
	a.Grid, a.terms, a.of = q.grid, q.terms(), q.of
	a.acc, a.Words = acc, cuda.Slice[int64]{}
	if a.Power, err = column[float32](&a.block, starts[0], 4*cells); err != nil {
		return err
	}
	if a.Counts, err = column[int64](&a.block, starts[1], 8*dfrCounts); err != nil {
		return err
	}
	if !q.options.KeepWords {
		return nil
	}
	words, err := cuda.Reinterpret[int64](acc)
	if err == nil {
		a.Words, err = words.Sub(0, int(wordsPerSum*cells))
	}
	return err
}

// tables is the part of the parameters of a launch that names tables on the device of s.
func (q *dfrQuery) tables(s *Scene) (p accumDfrParams, err error) {
	const op = "AccumDfrDirect"
	states, err := q.states.on(op, s)
	if err != nil {
		return p, err
	}
	p.States, p.Legs = states.Addr(), states.Addr()+stateBytes*uint64(q.states.count)
	if q.options.Materials != nil {
		p.Media, err = q.options.Materials.media(op, s)
	}
	return p, err
}

// params are the parameters that all launches on s have in common.
func (q *dfrQuery) params(s *Scene, active RowColumn) (accumDfrParams, error) {
	p, err := q.tables(s)
	if err != nil {
		return p, err
	}
	o, area := &q.options, q.grid.CellArea()
	range1 := o.Wavelength / (4 * math.Pi)
	p.Active, p.ActiveCount = active.Data.Addr(), uint32(active.Data.Len())
	p.Factor = float64(range1*range1) * area
	p.PerArea = float32(1 / area)
	p.Cells = q.grid.cells()
	p.Key, p.AzimuthKey = dfrKey(0, o.Seed), dfrKey(1, o.Seed)
	p.StatesCount = uint32(q.states.count)
	pairs := q.pairs()
	p.PerPair, p.OneMore = uint32(q.total/pairs), uint32(q.total%pairs)
	p.Pairs = uint32(min(pairs, q.total))
	return p, nil
}

// dfrKey is what lanes draw their random numbers of a stream with.
func dfrKey(stream, seed uint32) uint32 { return dfrHash(seed + 0x9e3779b9*(stream+1)) }

func dfrHash(x uint32) uint32 {
	x ^= x >> 16
	x *= 0x7feb352d
	x ^= x >> 15
	x *= 0x846ca68b
	return x ^ x>>16
}

func (q *dfrQuery) accumulate(on *Scene, sc cuda.Scope, st *cuda.Stream, in, _ []RowColumn, acc cuda.Slice[uint8], begin, count int64) error {
	p, err := q.params(on, in[0])
	if err != nil {
		return err
	}
	p.Readout.Cells = q.grid.Cells()
	p.accumulateTo(acc, q.terms())
	k, err := on.accumDfrKernels()
	if err != nil {
		return err
	}
	if !q.azimuths() {
		return on.eachLaunch(begin, count, func(begin, count int64) error {
			return p.launch(on, sc, st, k.cells, q.part(begin, count))
		})
	}
	return on.eachLaunch(begin, count, func(begin, count int64) error {
		return p.launchCopies(on, sc, st, k.azimuths, q.part(begin, count))
	})
}

// accumulateTo names the parts of an accumulator.
func (p *accumDfrParams) accumulateTo(acc cuda.Slice[uint8], t dfrTerms) {
	p.Words = acc.Addr()
	p.Counters = p.Words + 8*wordsPerSum*uint64(t.grid.Cells())
	p.Ticket = p.Counters + 8*dfrCounters
	if t.chunkCounters() > 0 {
		p.Taken = p.Counters + 8*dfrTail
	}
}

func (q *dfrQuery) readout(_ *Scene, sc cuda.Scope, st *cuda.Stream) error { return q.to.read(sc, st) }

// fused reads the result of a small grid in the launch itself.
func (q *dfrQuery) fused(s *Scene, sc cuda.Scope, st *cuda.Stream, begin, count int64) (bool, error) {
	a := q.to
	if count == 0 {
		return true, firstError(cuda.Fill32(st, a.Power, 0), cuda.Fill32(st, a.Counts, 0), cuda.Fill32(st, a.acc, 0))
	}
	if q.grid.Cells() > fusedCells || count > s.rowsPerLaunch || q.azimuths() {
		return false, nil
	}
	p, err := q.params(s, q.active[0])
	if err != nil {
		return true, err
	}
	k, err := s.accumDfrKernels()
	if err != nil {
		return true, err
	}
	p.Readout = a.readout()
	p.accumulateTo(a.acc, a.terms)
	if err := cuda.Fill32(st, a.acc, 0); err != nil {
		return true, err
	}
	return true, p.launch(s, sc, st, k.cells, q.part(begin, count))
}

// joins is for few pairs: warps keep to one, and add to its words once.
func (q *dfrQuery) joins(s *Scene, lanes int64) bool {
	return !q.azimuths() && q.grid.Cells() <= joinedCells && q.terms().chunkCounters() > 0 && lanes <= s.rowsPerLaunch
}

func (q *dfrQuery) join(on *Scene, sc cuda.Scope, st *cuda.Stream, in []RowColumn, sum, own cuda.Slice[uint8], launches int, begin, count int64) error {
	p, err := q.params(on, in[0])
	if err != nil {
		return err
	}
	k, err := on.accumDfrKernels()
	if err != nil {
		return err
	}
	p.accumulateTo(own, q.terms())
	all := sum.Addr() + p.Counters - p.Words
	p.Words, p.Counters, p.Launches = sum.Addr(), all, uint32(launches)
	p.Arrived = all + 8*dfrCounters + 4 // behind the ticket
	p.Readout = q.to.readout()
	p.Readout.Kept, p.Readout.Words, p.Readout.Counters = p.Readout.Words, p.Words, p.Counters
	return p.launch(on, sc, st, k.cells, q.part(begin, count))
}

// collect reads the result of a small grid in the launch that sums the accumulators.
func (q *dfrQuery) collect(s *Scene, sc cuda.Scope, st *cuda.Stream, parts []cuda.Slice[uint8]) (bool, error) {
	cells := q.grid.Cells()
	if cells > fusedCells || cells >= s.rowsPerLaunch || len(parts) > sumParts {
		return false, nil
	}
	k, err := s.accumDfrKernels()
	if err != nil {
		return true, err
	}
	p := sumDfrParams{Words: q.to.acc.Addr(), Readout: q.to.readout(), Parts: accumulatorsOf(parts)}
	return true, launchRows(sc, k.sum, st, cells+1, &p)
}
