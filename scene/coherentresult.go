package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// DfrCoherentAccum is the result of AccumDfrCoherentDirect: arrays [Res1,Res0] on the
// device.
type DfrCoherentAccum struct {
	// Grid is that of the call.
	Grid Grid
	// The field at the centre of every cell, real and imaginary part along x, y and z.
	FieldXRe, FieldXIm cuda.Slice[float32]
	FieldYRe, FieldYIm cuda.Slice[float32]
	FieldZRe, FieldZIm cuda.Slice[float32]
	// Count is the number of states whose field is in the sum, VisRejects of those of
	// which a leg is blocked, UTDRejects of those without a field for another reason.
	// States that are not active are in none of them.
	Count, VisRejects, UTDRejects cuda.Slice[int32]
	// Words are the exact sums, with KeepWords: for every cell and component, x re, x im,
	// y re and so on, six words of weight 2^(32 i - 128), whose carries have not been
	// settled, [C,6,6]. Words of disjoint windows of a call add up to those of the call.
	Words cuda.Slice[int64]

	acc   cuda.Slice[uint8]
	size  accumulatorSize
	terms coherentTerms
	of    *Scene
	block
}

// coherentTerms is what windows of one call have in common.
type coherentTerms struct {
	grid           Grid
	states         *StateTable
	materials      *MaterialTable
	wavelength     float64
	polarization   [3]float32
	mode           EdgeMode
	skipVisibility bool
}

// DfrCoherentCounts are the counters of all cells together.
type DfrCoherentCounts struct {
	Count      int64 // lanes whose field is in a sum
	VisRejects int64 // lanes of which a leg is blocked
	UTDRejects int64 // lanes without a field for another reason
}

// ReadCounters waits for the call and returns the sums of its counters over the cells.
// Cost: a download of 12 bytes per cell.
func (a *DfrCoherentAccum) ReadCounters(ctx context.Context) (DfrCoherentCounts, error) {
	var sums [coherentCounters]int64
	for i, grid := range [...]cuda.Slice[int32]{a.Count, a.VisRejects, a.UTDRejects} {
		v, err := cuda.Download(ctx, a.stream, grid)
		if err != nil {
			return DfrCoherentCounts{}, err
		}
		for _, n := range v {
			sums[i] += int64(n)
		}
	}
	return DfrCoherentCounts{sums[0], sums[1], sums[2]}, nil
}

// Merge adds the words and counters of other, the result of another window of the same
// call with KeepWords, on the stream of a's call, to which the work on other must have
// been joined. Fields are as before until Read. Cost: one launch.
//
// Errors: *ArgumentError when the results are not of windows of one call, or without
// words; errors of the device.
func (a *DfrCoherentAccum) Merge(other *DfrCoherentAccum) error {
	const op = "Merge"
	switch {
	case a.Words.IsNil():
		return badArg(op, "DfrCoherentAccum", "has no words; ask for KeepWords")
	case other == nil || other.Words.IsNil():
		return badArg(op, "other", "has no words; ask for KeepWords")
	case other == a:
		return badArg(op, "other", "is the result itself, whose lanes would count twice")
	case other.terms != a.terms:
		return badArg(op, "other", "is no window of the same call: want the same states, grid, wavelength, materials, polarization and edge mode")
	}
	if err := firstError(checkMemory(a.of, op, "DfrCoherentAccum", a.Words), checkMemory(a.of, op, "other", other.Words)); err != nil {
		return err
	}
	return a.of.enqueueRows(op, a.stream, 1, 0, 1, func(sc cuda.Scope) error {
		return a.of.addAccumulators(sc, a.stream, a.acc, other.acc, a.size)
	})
}

// Read makes the fields of the words, on the stream of a's call. Cost: one launch.
func (a *DfrCoherentAccum) Read() error {
	const op = "Read"
	if a.Words.IsNil() {
		return badArg(op, "DfrCoherentAccum", "has no words; ask for KeepWords")
	}
	if err := checkMemory(a.of, op, "DfrCoherentAccum", a.Words); err != nil {
		return err
	}
	return a.of.enqueueRows(op, a.stream, 1, 0, 1, func(sc cuda.Scope) error { return a.read(sc, a.stream) })
}

// read enqueues the fields of all cells that have words.
func (a *DfrCoherentAccum) read(sc cuda.Scope, st *cuda.Stream) error {
	n := a.size.sums64 / wordsPerSum
	if n == 0 {
		return nil
	}
	k, err := a.of.coherentKernels()
	if err != nil {
		return err
	}
	p := readCoherentParams{Words: a.acc.Addr(), Fields: a.FieldXRe.Addr(), Cells: a.Grid.Cells()}
	if a.Words.IsNil() {
		p.Slots = a.acc.Addr() + uint64(8*a.size.sums64+4*a.size.sums32)
	}
	return a.of.eachLaunch(0, n, func(begin, count int64) error {
		p.RowBegin, p.Count = begin, count
		return launchRows(sc, k.read, st, count, &p)
	})
}

// Rows is the number of cells.
func (a *DfrCoherentAccum) Rows() int { return int(a.Grid.Cells()) }

// Close returns the memory to the pool, for work that follows on the stream of the call
// that filled it. Close is idempotent, and of nil it does nothing.
func (a *DfrCoherentAccum) Close() error { return closeBlock(a.memory()) }

func (a *DfrCoherentAccum) memory() *block {
	if a == nil {
		return nil
	}
	return &a.block
}
