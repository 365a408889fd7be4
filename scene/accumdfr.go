package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
)

// DfrDirectOptions are the options of AccumDfrDirect.
type DfrDirectOptions struct {
	// Wavelength in metres, above 0.
	Wavelength float64
	// DirectSamples or KellerSamples is the number of lanes of the whole call, below
	// 2^31; the other is zero. Both zero are no lanes, and a result of zeros. A direct
	// sample goes from a random point of an edge to the centre of a cell, a Keller sample
	// leaves the point on the cone of diffracted rays and counts for the cell that it
	// meets. The two estimate different quantities.
	DirectSamples, KellerSamples int64
	// Seed of the random numbers. Other seeds draw other samples.
	Seed uint32
	// Materials gives each state the gain of the medium of its Prim0, or if that has none
	// of its Prim1. Nil, and for states with neither: 1.
	Materials *MaterialTable
	// Active is a byte for each state, or one for all of them, zero for states whose
	// lanes do nothing but count; or absent. On the scene's device.
	Active cuda.Slice[uint8]
	// Window is the lanes to do; nil: all.
	Window *Window
	// AllowPartialCoverage accepts fewer direct samples than pairs of a state and a cell,
	// of which the last ones then have none.
	AllowPartialCoverage bool
	// KeepWords asks for DfrAccum.Words.
	KeepWords bool
}

// AccumDfrDirect estimates the power that edges of the scene diffract into the cells of a
// grid, by the scalar model without phase and polarisation: for direct samples the sum
// over states of
//
//	P G (lambda/4pi)^2 A w  times the integral of dt/(|a|^2 |b|^2) over the edge,
//
// with P the power of the source, G the gain, A the area of a cell, w = min(max(angle,
// pi/4)/2pi, 2), and a and b the legs from the source to the edge and from there to the
// centre of the cell, neither of which a triangle may cross. Keller samples estimate the
// integral of P G (lambda/4pi)^2 w / (|a|^2 |b|^2) over the points of the cell, with the point
// of the edge whose cone of diffracted rays passes through each. Both shrink with the cell, and
// neither is a path gain, to be added to the power of another operation: the model says how
// cells, edges and positions compare with each other.
//
// Keep centres of cells off edges. Direct samples grow with the inverse square of |b|, which
// counts as a micrometre at least: where an edge passes through the centre of a cell, they do
// not converge, and no counter tells.
//
// Lane l works for state l mod S and, if it is direct, cell l/S mod C. Its random numbers
// depend on l and Seed only. All sums are exact: Power and the counters have the same
// bits for every run, division into windows and number of devices.
//
// The work is enqueued on the scene's stream or the stream of OnStream, and the call
// returns without waiting for it. Nothing is launched without lanes or states. Errors:
// ErrNotReady, *FailedError, *ArgumentError, *cuda.WrongDeviceError, the error of ctx, before
// anything is enqueued, and errors of the device. Cost: a fill and one launch for grids of up
// to 4096 cells and direct samples, one launch more for others, and for Keller samples a
// fill, a launch and memory of the pool for private copies of a small grid (8 MiB at most).
// The result takes 52 bytes per cell, because the exact sums are part of it, and for up to
// 2048 pairs of a state and a cell 4 bytes for each. The first call loads the kernels, and
// with the OptiX backend builds a search tree after each change of the geometry, for which
// it waits.
func (s *Scene) AccumDfrDirect(ctx context.Context, states *StateTable, g Grid, o DfrDirectOptions, opts ...CallOption) (*DfrAccum, error) {
	return askGrid(ctx, s, func() (*DfrAccum, *GridCall, error) { return s.prepareAccumDfr(states, g, o, opts) })
}

// PrepareAccumDfrDirect does all of AccumDfrDirect that precedes the launches. For
// schedulers.
func (s *Scene) PrepareAccumDfrDirect(ctx context.Context, states *StateTable, g Grid, o DfrDirectOptions, opts ...CallOption) (*DfrAccum, *GridCall, error) {
	return preparedGrid(ctx, s, func() (*DfrAccum, *GridCall, error) { return s.prepareAccumDfr(states, g, o, opts) })
}

func (s *Scene) prepareAccumDfr(states *StateTable, g Grid, o DfrDirectOptions, opts []CallOption) (*DfrAccum, *GridCall, error) {
	const op = "AccumDfrDirect"
	if states == nil {
		return nil, nil, badArg(op, "states", "is nil, want a table from UploadStates")
	}
	if err := firstError(g.check(op), checkWavelength(op, o.Wavelength)); err != nil {
		return nil, nil, err
	}
	total, err := o.lanes(op, int64(states.count), g.Cells())
	if err != nil {
		return nil, nil, err
	}
	begin, count, err := o.Window.resolve(op, total)
	if err != nil {
		return nil, nil, err
	}
	if states.count == 0 {
		count = 0 // the lanes have nothing to do
	}
	if n := o.Active.Len(); !o.Active.IsNil() && n != states.count && n != 1 {
		return nil, nil, badArg(op, "Active", "has %d values, want one for each of the %d states, or 1", n, states.count)
	}
	if err := checkMemory(s, op, "Active", o.Active); err != nil {
		return nil, nil, err
	}
	q := &dfrQuery{of: s, states: states, grid: g, options: o, total: total, lanes: count, active: [1]RowColumn{rowColumn(o.Active, 0)}}
	if _, err := q.tables(s); err != nil {
		return nil, nil, err
	}
	c, call, err := s.begin(op, count, opts)
	if err != nil {
		return nil, nil, err
	}
	if q.to, err = resultFor[DfrAccum](op, c, call, q.active[:]); err != nil {
		return nil, nil, err
	}
	grid, err := c.gridCall(q, begin)
	if err != nil {
		return nil, nil, err
	}
	return q.to, grid, nil
}

// lanes is the number of lanes of the whole call.
func (o *DfrDirectOptions) lanes(op string, states, cells int64) (int64, error) {
	const limit = math.MaxInt32
	switch direct, keller := o.DirectSamples, o.KellerSamples; {
	case direct < 0 || direct > limit:
		return 0, badArg(op, "DirectSamples", "is %d, want 0 to %d", direct, limit)
	case keller < 0 || keller > limit:
		return 0, badArg(op, "KellerSamples", "is %d, want 0 to %d", keller, limit)
	case direct > 0 && keller > 0:
		return 0, badArg(op, "DirectSamples, KellerSamples", "are %d and %d; they estimate different quantities, make a call for each", direct, keller)
	case direct > 0 && direct < states*cells && !o.AllowPartialCoverage:
		return 0, badArg(op, "DirectSamples", "is %d, want at least %d, one for each of %d states and %d cells, or AllowPartialCoverage",
			direct, states*cells, states, cells)
	default:
		return direct + keller, nil
	}
}
