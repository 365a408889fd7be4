package scene

import (
	"context"
	"fmt"
	"strings"

	"github.com/raymux/raymux/cuda"
)

// ReflGrids is the result of AccumulateReflections over C cells. Columns are arrays
// [Res1,Res0] on the device; Count and Status are single values there, for which nothing
// waits before ReadCounters does.
//
// Contributions are added in units that all have in common, base = Wavelength/(4 pi) times
// the square root of SolidAnglePerRay over the area of a cell. A contribution c, of which
// the power is P = |c|^2, adds to the words of its cell, rounded to integers: 2^34 c to
// the words 0 to 5 (real and imaginary part along x, y, z), h = 2^16 P to word 6, and
// 2^52 (P - 2^-16 h) to word 7. Components from 2^-11 on and powers from 2^-29 on are added
// exactly; smaller ones are off by 2^-35 and 2^-53 at most. The sums become float32 once.
type ReflGrids struct {
	Grid       Grid  // of the call
	RayCount   int64 // rows of the call
	MaxBounces int   // of the call
	CellsTotal int64 // of Grid

	// Power is the path gain, the sum of base^2 P.
	Power cuda.Slice[float32]
	// The sums of base c.
	FieldXRe, FieldXIm, FieldYRe, FieldYIm, FieldZRe, FieldZIm cuda.Slice[float32]
	// CellCount is the number of contributions in each cell, where it was asked for.
	CellCount cuda.Slice[uint32]

	Count  cuda.Slice[int64]  // of contributions, [1]
	Status cuda.Slice[uint32] // ReflGridStatus, [1]
	Wedges WedgeEvents        // without CollectWedges there are none

	// The accumulators, where KeepWords was asked for. Those of several results of the
	// same call for other rays may be added as integers, WordMaxima by their maxima; Merge
	// does it for results on one device.
	Words      cuda.Slice[int64]  // [C,8]
	WordCounts cuda.Slice[uint32] // contributions, [C]
	WordMaxima cuda.Slice[uint32] // 1: a contribution not finite; 1: one too large; bits of the largest component with WeightArea, [3]

	query  *reflGridQuery
	totals cuda.Slice[int64] // Count, Status, Wedges.Count
	block
}

// ReflGridStatus says what was wrong with contributions, as a bit set.
type ReflGridStatus uint32

const (
	// StatusNotFinite: a contribution was no finite number and does not count, or a
	// transmitter was not.
	StatusNotFinite ReflGridStatus = 1
	// StatusTooLarge: a contribution was out of range, with |c|^2 from 2^20 on, which
	// takes media with a gain above 1, and does not count.
	StatusTooLarge ReflGridStatus = 2
	// StatusGuard: a cell has so many or so large contributions that its sums may have
	// overflown: 2^27 contributions, or as many that times the sum of |c|^2 they reach
	// 2^57. The grids mean nothing.
	StatusGuard ReflGridStatus = 4
)

// String names the bits, for example "NotFinite|TooLarge".
func (s ReflGridStatus) String() string {
	if s == 0 {
		return "OK"
	}
	var names []string
	for i, name := range []string{"NotFinite", "TooLarge", "Guard"} {
		if s>>i&1 != 0 {
			names = append(names, name)
		}
	}
	if rest := s &^ 7; rest != 0 {
		names = append(names, fmt.Sprintf("%#x", uint32(rest)))
	}
	return strings.Join(names, "|")
}

// ReflGridCounters are the counters of a result on the host.
type ReflGridCounters struct {
	Count  int64          // of contributions
	Wedges int64          // of wedge events, which may be more than there are slots
	Status ReflGridStatus // what was wrong with contributions
}

// GuardError says that the sums of a result may have overflown.
type GuardError struct {
	Op string // the method whose result it is
}

func (e *GuardError) Error() string {
	return fmt.Sprintf("scene: %s: a cell has too many contributions, or too large ones, for its 64-bit sums; use smaller cells or fewer rays", e.Op)
}

// ReadCounters waits for the call and returns its counters. A result with StatusGuard is
// an error, a *GuardError, beside the counters. Cost: a download of 24 bytes.
func (g *ReflGrids) ReadCounters(ctx context.Context) (ReflGridCounters, error) {
	v, err := cuda.Download(ctx, g.stream, g.totals)
	if err != nil {
		return ReflGridCounters{}, err
	}
	c := ReflGridCounters{Count: v[0], Wedges: v[2], Status: ReflGridStatus(uint32(v[1]))}
	if c.Status&StatusGuard != 0 {
		return c, &GuardError{accumulateReflections}
	}
	return c, nil
}

// Merge adds the accumulators of other, the result of a call for other rays with the same
// grid and options and KeepWords, to those of g, on the stream of g's call, to which the
// work on other must have been joined. The columns are as before until Read; wedge events
// stay as they are, because RayIndex says in which order parts follow each other. Cost: one
// launch.
//
// Errors: *ArgumentError when the results are not of parts of one call, or without words;
// *cuda.WrongDeviceError.
func (g *ReflGrids) Merge(other *ReflGrids) error {
	const op = "Merge"
	switch {
	case g.Words.IsNil():
		return badArg(op, "ReflGrids", "has no words; ask for KeepWords")
	case other == nil || other.Words.IsNil():
		return badArg(op, "other", "has no words; ask for KeepWords")
	case other == g:
		return badArg(op, "other", "is the result itself, whose rays would count twice")
	case other.query.key() != g.query.key():
		return badArg(op, "other", "is of a call with %+v, want %+v", other.query.key(), g.query.key())
	case other.query.opt.Materials != g.query.opt.Materials:
		return badArg(op, "other", "is of a call with other materials")
	}
	s := g.query.scene
	if err := firstError(checkMemory(s, op, "ReflGrids", g.Words), checkMemory(s, op, "other", other.Words)); err != nil {
		return err
	}
	err := s.enqueueRows(op, g.stream, 1, 0, 1, func(sc cuda.Scope) error {
		return s.addAccumulators(sc, g.stream, g.query.acc, other.query.acc, g.query.accumulator())
	})
	if err == nil {
		g.RayCount += other.RayCount
	}
	return err
}

// Read makes the columns, Count and Status of the accumulators as they are: after Merge, or
// after the caller has changed Words, WordCounts or WordMaxima. It works on the stream of
// g's call. Cost: one launch and a fill of 16 bytes.
func (g *ReflGrids) Read() error {
	const op = "Read"
	if g.Words.IsNil() {
		return badArg(op, "ReflGrids", "has no words; ask for KeepWords")
	}
	s := g.query.scene
	if err := checkMemory(s, op, "ReflGrids", g.Words); err != nil {
		return err
	}
	counted, err := g.totals.Sub(0, 2)
	if err != nil {
		return err
	}
	return s.enqueueRows(op, g.stream, 1, 0, 1, func(sc cuda.Scope) error {
		if err := cuda.Fill32(g.stream, counted, 0); err != nil {
			return err
		}
		return g.query.readGrids(s, sc, g.stream, []cuda.Slice[uint8]{g.query.acc}, true)
	})
}

// Rows is the number of rays.
func (g *ReflGrids) Rows() int { return int(g.rows) }

// Close returns the memory to the pool, for work that follows on the stream of the call
// that filled it. Work on the columns on other streams must have been joined to that
// stream. Close is idempotent, and of nil it does nothing.
func (g *ReflGrids) Close() error { return closeBlock(g.memory()) }

func (g *ReflGrids) memory() *block {
	if g == nil {
		return nil
	}
	return &g.block
}
