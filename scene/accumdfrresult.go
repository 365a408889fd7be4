package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// DfrAccum is the result of AccumDfrDirect.
type DfrAccum struct {
	// Grid is that of the call.
	Grid Grid
	// Power is the estimate of every cell, [Res1,Res0]: in metres for direct samples, a number
	// without a unit for Keller samples.
	Power cuda.Slice[float32]
	// Counts are the counters, in the order of DfrCounts, [6].
	Counts cuda.Slice[int64]
	// Words are the exact sums, with KeepWords: six words of weight 2^(32 i - 128) for
	// every cell, whose carries have not been settled, [C,6]. Words of disjoint windows
	// of a call add up to those of the call.
	Words cuda.Slice[int64]

	acc   cuda.Slice[uint8]
	terms dfrTerms
	of    *Scene
	block
}

// DfrCounts says what became of the lanes. Direct, Keller, VisRejects, UTDRejects and
// InactiveLanes add up to the lanes of the window.
type DfrCounts struct {
	Direct        int64 // direct samples that were added to a cell
	Keller        int64 // Keller samples that were added to a cell
	VisRejects    int64 // a triangle hides the source or the target
	UTDRejects    int64 // a state that is no edge, a ray beside the grid, no power
	EdgeUses      int64 // Direct and Keller
	InactiveLanes int64 // of states that are switched off
}

// dfrTerms is what windows of one call have in common.
type dfrTerms struct {
	grid           Grid
	states         *StateTable
	materials      *MaterialTable
	wavelength     float64
	direct, keller int64
	seed           uint32
}

// ReadCounters waits for the call and returns its counters. Cost: a download of 48 bytes.
func (a *DfrAccum) ReadCounters(ctx context.Context) (DfrCounts, error) {
	v, err := cuda.Download(ctx, a.stream, a.Counts)
	if err != nil {
		return DfrCounts{}, err
	}
	return DfrCounts{v[0], v[1], v[2], v[3], v[4], v[5]}, nil
}

// Merge adds the words and counters of other, the result of another window of the same
// call with KeepWords, on the stream of a's call, to which the work on other must have
// been joined. Power and Counts are as before until Read. Cost: one launch.
//
// Errors: *ArgumentError when the results are not of windows of one call, or without
// words.
func (a *DfrAccum) Merge(other *DfrAccum) error {
	const op = "Merge"
	switch {
	case a.Words.IsNil():
		return badArg(op, "DfrAccum", "has no words; ask for KeepWords")
	case other == nil || other.Words.IsNil():
		return badArg(op, "other", "has no words; ask for KeepWords")
	case other == a:
		return badArg(op, "other", "is the result itself, whose lanes would count twice")
	case other.terms != a.terms:
		return badArg(op, "other", "is no window of the same call: want the same states, grid, wavelength, materials, samples and seed")
	}
	if err := firstError(checkMemory(a.of, op, "DfrAccum", a.Words), checkMemory(a.of, op, "other", other.Words)); err != nil {
		return err
	}
	return a.of.enqueueRows(op, a.stream, 1, 0, 1, func(sc cuda.Scope) error {
		return a.of.addAccumulators(sc, a.stream, a.acc, other.acc, a.terms.sums())
	})
}

// Read makes Power and Counts of the words and counters, on the stream of a's call. Cost:
// one launch.
func (a *DfrAccum) Read() error {
	const op = "Read"
	if a.Words.IsNil() {
		return badArg(op, "DfrAccum", "has no words; ask for KeepWords")
	}
	if err := checkMemory(a.of, op, "DfrAccum", a.Words); err != nil {
		return err
	}
	return a.of.enqueueRows(op, a.stream, 1, 0, 1, func(sc cuda.Scope) error { return a.read(sc, a.stream) })
}

// read enqueues the result from the accumulator.
func (a *DfrAccum) read(sc cuda.Scope, st *cuda.Stream) error {
	k, err := a.of.accumDfrKernels()
	if err != nil {
		return err
	}
	p := a.readout()
	return a.of.eachLaunch(0, p.Cells, func(begin, count int64) error {
		part := p
		part.Words += uint64(begin) * 8 * wordsPerSum
		part.Power += uint64(begin) * 4
		part.Cells = count
		return launchRows(sc, k.read, st, count, &part)
	})
}

func (a *DfrAccum) readout() dfrReadout {
	cells := a.Grid.Cells()
	r := dfrReadout{
		Words: a.acc.Addr(), Counters: a.acc.Addr() + uint64(cells)*8*wordsPerSum,
		Power: a.Power.Addr(), Counts: a.Counts.Addr(), Cells: cells,
	}
	if a.terms.keller > 0 {
		r.Azimuths = 1
	}
	return r
}

// Rows is the number of cells.
func (a *DfrAccum) Rows() int { return int(a.Grid.Cells()) }

// Close returns the memory to the pool, for work that follows on the stream of the call
// that filled it. Close is idempotent, and of nil it does nothing.
func (a *DfrAccum) Close() error { return closeBlock(a.memory()) }

func (a *DfrAccum) memory() *block {
	if a == nil {
		return nil
	}
	return &a.block
}

func (t dfrTerms) chunkCounters() int64 {
	return chunkCounters(int64(t.states.count), t.grid.Cells(), t.keller > 0)
}

// chunkCounters is how many counters of chunks an accumulator has.
func chunkCounters(states, cells int64, azimuths bool) int64 {
	pairs := states
	if !azimuths {
		pairs *= cells
	}
	if pairs <= chunkedPairs {
		return pairs
	}
	return 0
}

// sums is the part of an accumulator that lanes add to.
func (t dfrTerms) sums() accumulatorSize {
	return accumulatorSize{sums64: dfrSums(t.grid.Cells())}
}

func (t dfrTerms) accumulator() accumulatorSize {
	return dfrAccumulator(t.grid.Cells(), t.chunkCounters())
}

func dfrAccumulator(cells, counters int64) accumulatorSize {
	return accumulatorSize{sums64: dfrSums(cells) + (counters+1)/2}
}

func dfrSums(cells int64) int64 { return wordsPerSum*cells + dfrTail }
