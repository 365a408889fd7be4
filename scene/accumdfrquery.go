package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

// dfrQuery is an AccumDfrDirect.
type dfrQuery struct {
	states  *StateTable
	grid    Grid
	options DfrDirectOptions
	total   int64 // lanes without a window
	lanes   int64 // lanes of the call
	active  [1]RowColumn
	to      *DfrAccum
}

const (
	// fusedCells is the most cells that the last block of a launch reads out by itself.
	fusedCells = 4096
	// copyBytes bounds the memory of private copies of a grid, so that they stay in the
	// cache of the device, and dfrCopies their number. copyLanes is how many lanes of a
	// launch are worth a copy.
	copyBytes = 8 << 20
	dfrCopies = 1024
	copyLanes = 1024
	// The warps of a pair take chunks of its rounds in turn if there are leastRounds for each:
	// a warp's share in shareChunks pieces, of leastChunk to mostChunk rounds. A call of so
	// many pairs that warps have one each needs no counters of chunks.
	leastRounds           = 32
	shareChunks           = 8
	leastChunk, mostChunk = 2, 16
	chunkedPairs          = 2048
	// Where lanes search, pairs differ so much in time that there are searchWaves times as
	// many warps as the device holds, of searchRounds to twice as many rounds.
	searchRounds, searchWaves = 32, 4
	// A warp collects the triangles near its pair when each of its threads has fanRounds
	// lanes, or smallFanRounds in trees of so few nodes that it looks at all of them.
	fanRounds, smallFanRounds = 32, 4
	smallTree                 = 8
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

func (q *dfrQuery) cut([]int64) error { return nil }

func (q *dfrQuery) result() Reusable { return q.to }

func (q *dfrQuery) layout() []int64 { return []int64{4 * q.grid.Cells(), 8 * dfrCounts} }

func (q *dfrQuery) place(starts []int64, acc cuda.Slice[uint8]) (err error) {
	a, cells := q.to, q.grid.Cells()
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
	pairs := int64(q.states.count)
	if !q.azimuths() {
		pairs *= q.grid.Cells()
	}
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
			return p.launch(on, sc, st, k.cells, begin, count)
		})
	}
	return on.eachLaunch(begin, count, func(begin, count int64) error {
		return p.launchCopies(on, sc, st, k.azimuths, begin, count)
	})
}

// accumulateTo names the parts of an accumulator.
func (p *accumDfrParams) accumulateTo(acc cuda.Slice[uint8], t dfrTerms) {
	p.Words = acc.Addr()
	p.Counters = p.Words + 8*wordsPerSum*uint64(t.grid.Cells())
	if t.chunkCounters() > 0 {
		p.Taken = p.Counters + 8*dfrTail
	}
}

// launchCopies is launch for lanes that hit any cell: they are divided over copies of the
// grid, or all would wait for the same few words.
func (p *accumDfrParams) launchCopies(on *Scene, sc cuda.Scope, st *cuda.Stream, f *cuda.Function, begin, count int64) error {
	words := p.Words
	defer func() { p.Words = words }()
	n := copiesFor(count, p.Readout.Cells)
	p.Copies = uint32(n)
	if n == 1 {
		return p.launch(on, sc, st, f, begin, count)
	}
	pool, each := on.ctx.Pool(), p.Readout.Cells*wordsPerSum
	copies, err := cuda.PoolAlloc[int64](pool, st, int(n*each))
	if err != nil {
		return err
	}
	p.Words = copies.Addr()
	err = cuda.Fill32(st, copies, 0)
	if err == nil {
		err = p.launch(on, sc, st, f, begin, count)
	}
	if err == nil {
		err = on.foldCopies(sc, st, words, copies, each)
	}
	return firstError(err, cuda.PoolFree(pool, st, copies))
}

// launch enqueues the lanes [begin, begin+count) of the call.
func (p *accumDfrParams) launch(on *Scene, sc cuda.Scope, st *cuda.Stream, f *cuda.Function, begin, count int64) error {
	x, err := on.tracer(context.Background())
	if err != nil {
		return err
	}
	resident, err := x.resident(f)
	if err != nil {
		return err
	}
	k, err := on.accumDfrKernels()
	if err != nil {
		return err
	}
	p.Pool, p.Slots = x.pool.Addr(), x.slots.Addr()
	p.Begin, p.End = uint32(begin), uint32(begin+count)
	p.divide(k, count, resident*blockSize, x.plan.levels[len(x.plan.levels)-1] <= smallTree, f == k.cells)
	blocks := (int64(p.Visited)*int64(p.Group) + blockSize - 1) / blockSize
	return sc.Launch(f, st, cuapi.Dim3{X: uint32(blocks), Y: 1, Z: 1}, cuapi.Dim3{X: blockSize, Y: 1, Z: 1}, x.shared, cuda.ParamBytes(p))
}

// divide says how so many lanes are divided over threads, of which the device holds so
// many at a time. small: the tree is.
func (p *accumDfrParams) divide(k *accumDfrKernels, lanes, threads int64, small, cells bool) {
	p.Visited = uint32(min(lanes, int64(p.Pairs)))
	perPair := lanes / int64(p.Visited)
	p.Group, p.FanRounds = threadsOfPair(lanes, int64(p.Visited), threads), k.fanRounds
	inTurn := p.Taken != 0
	switch rounds := min(max(lanes/(searchWaves*threads), k.searchRounds), 2*k.searchRounds, perPair/32); {
	case small:
		p.FanRounds = min(k.fanRounds, smallFanRounds)
		if p.Group < 32 && perPair >= 32*smallFanRounds {
			p.Group = 32
		}
	case cells && rounds >= k.searchRounds && perPair/rounds >= int64(p.Group):
		p.Group, inTurn = uint32(perPair/rounds&^31), false
	}
	p.Step, p.Chunk = p.Group*p.Pairs, 0
	if rounds := perPair / int64(p.Group); inTurn && p.Group > 32 && rounds >= k.leastRounds {
		p.Step, p.Chunk = 32*p.Pairs, uint32(min(max(rounds/shareChunks, k.leastChunk), mostChunk))
	}
}

// threadsOfPair is how many threads the lanes of a pair are divided over, so that so many
// threads are filled: whole warps, or a power of two.
func threadsOfPair(lanes, pairs, threads int64) uint32 {
	n := min(max(threads/pairs, 1), (lanes+pairs-1)/pairs)
	if n >= 32 {
		return uint32(n - n%32)
	}
	for n&(n-1) != 0 {
		n &= n - 1
	}
	return uint32(n)
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
	p.Ticket = p.Counters + 8*dfrCounters
	if err := cuda.Fill32(st, a.acc, 0); err != nil {
		return true, err
	}
	return true, p.launch(s, sc, st, k.cells, begin, count)
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
