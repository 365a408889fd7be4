package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// DfrCoherentOptions are the options of AccumDfrCoherentDirect.
type DfrCoherentOptions struct {
	// Wavelength in metres, above 0.
	Wavelength float64
	// Materials are what the faces of the wedges are made of. A face without a valid
	// medium, and every face without Materials, reflects nothing.
	Materials *MaterialTable
	// Active is a byte for each state, or one for all of them, zero for states that
	// contribute nothing; or absent. On the scene's device.
	Active cuda.Slice[uint8]
	// TxPolarization is the direction next to which the transmitted field lies; that of an
	// upright antenna is (0,0,1). Zero: x. It is one for all states, and so on the host.
	TxPolarization [3]float32
	EdgeMode       EdgeMode // ends of edges; default EdgeInterior
	// SkipVisibility lets fields pass through triangles.
	SkipVisibility bool
	// Window is the lanes to do; nil: all.
	Window *Window
	// KeepWords asks for DfrCoherentAccum.Words.
	KeepWords bool
}

// AccumDfrCoherentDirect sums, at the centre of every cell of a grid, the complex fields
// that the wedges of all states diffract there, by the uniform theory of diffraction: the
// sum over states of the Field of TraceDfrPaths from Src, with the power SrcPower, to the
// cell's centre. It has the phases of all states, so it is a field of sources that radiate
// in phase; the power received is |field|^2.
//
// Lane l works for state l mod S and cell l/S. Fields of lanes are rounded to float32, and
// their sums are exact and rounded once: they have the same bits for every run, division
// into windows and number of devices.
//
// The work is enqueued on the scene's stream or the stream of OnStream, and the call
// returns without waiting for it. Errors: ErrNotReady, *FailedError, *ArgumentError,
// *cuda.WrongDeviceError, the error of ctx, before anything is enqueued, and errors of the
// device. Cost: a fill and a launch; with KeepWords one launch more. The result takes 36
// bytes per cell, 324 with KeepWords; up to 4096 cells with as many states or more, which
// the device divides, cost what they do with KeepWords. The first call loads the kernels,
// and with OptiX builds a tree to trace with after each change of the geometry, for which
// it waits.
func (s *Scene) AccumDfrCoherentDirect(ctx context.Context, states *StateTable, g Grid, o DfrCoherentOptions, opts ...CallOption) (*DfrCoherentAccum, error) {
	return askGrid(ctx, s, func() (*DfrCoherentAccum, *GridCall, error) { return s.prepareCoherent(states, g, o, opts) })
}

// PrepareAccumDfrCoherentDirect does all of AccumDfrCoherentDirect that precedes the
// launches. For schedulers, which copy the states and materials to the devices of all
// lanes.
func (s *Scene) PrepareAccumDfrCoherentDirect(ctx context.Context, states *StateTable, g Grid, o DfrCoherentOptions, opts ...CallOption) (*DfrCoherentAccum, *GridCall, error) {
	return preparedGrid(ctx, s, func() (*DfrCoherentAccum, *GridCall, error) { return s.prepareCoherent(states, g, o, opts) })
}

func (s *Scene) prepareCoherent(states *StateTable, g Grid, o DfrCoherentOptions, opts []CallOption) (*DfrCoherentAccum, *GridCall, error) {
	const op = "AccumDfrCoherentDirect"
	q := &coherentQuery{of: s, grid: g, options: o}
	if o.TxPolarization == ([3]float32{}) {
		q.options.TxPolarization = [3]float32{1, 0, 0}
	}
	if err := firstError(g.check(op), q.lanes.set(op, s, states, o.Wavelength, o.Materials, o.EdgeMode)); err != nil {
		return nil, nil, err
	}
	q.lanes.open = o.SkipVisibility
	for _, v := range o.TxPolarization {
		if !finite(v) {
			return nil, nil, badArg(op, "TxPolarization", "is %v, want a direction", o.TxPolarization)
		}
	}
	q.states = int64(states.Count())
	if n := int64(o.Active.Len()); !o.Active.IsNil() && n != q.states && n != 1 {
		return nil, nil, badArg(op, "Active", "has %d values, want one for each of the %d states, or 1", n, q.states)
	}
	if err := checkMemory(s, op, "Active", o.Active); err != nil {
		return nil, nil, err
	}
	q.active = rowColumn(o.Active, 0)
	begin, count, err := o.Window.resolve(op, q.states*g.Cells())
	if err != nil {
		return nil, nil, err
	}
	q.begin, q.end = begin, begin+count
	c, call, err := s.begin(op, count, opts)
	if err != nil {
		return nil, nil, err
	}
	if q.to, err = resultFor[DfrCoherentAccum](op, c, call, []RowColumn{q.active}); err != nil {
		return nil, nil, err
	}
	grid, err := c.gridCall(q, begin)
	if err != nil {
		return nil, nil, err
	}
	return q.to, grid, nil
}
