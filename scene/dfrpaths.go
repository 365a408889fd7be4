package scene

import (
	"context"
	"fmt"

	"github.com/raymux/raymux/cuda"
)

// DfrPathLayout says where the rows of DfrPaths are.
type DfrPathLayout uint8

const (
	// SourceLane: the row of transmitter tx, receiver rx and state s is
	// (tx*Receivers + rx)*States + s, whether it has a path or not.
	SourceLane DfrPathLayout = iota
	// Compact: the rows with a path come first, in the order of SourceLane, then the
	// others.
	Compact
)

// String is "source_lane" or "compact".
func (l DfrPathLayout) String() string {
	switch l {
	case SourceLane:
		return "source_lane"
	case Compact:
		return "compact"
	}
	return fmt.Sprintf("DfrPathLayout(%d)", uint8(l))
}

// EdgeMode says how the ends of an edge limit its field.
type EdgeMode uint8

const (
	// EdgeInterior: there is a field if the point of diffraction lies between the ends.
	EdgeInterior EdgeMode = iota
	// EdgeFresnel: the field of an edge without ends is multiplied by the Fresnel
	// integral between the ends, as long as the point of diffraction is less than three
	// Fresnel parameters beyond them.
	EdgeFresnel
)

// String is "interior" or "fresnel".
func (m EdgeMode) String() string {
	switch m {
	case EdgeInterior:
		return "interior"
	case EdgeFresnel:
		return "fresnel"
	}
	return fmt.Sprintf("EdgeMode(%d)", uint8(m))
}

// DfrPathOptions are options of TraceDfrPaths.
type DfrPathOptions struct {
	// Wavelength in metres, above 0.
	Wavelength float64
	// Materials are what the faces of the wedges are made of. A face without a valid
	// medium, and every face without Materials, reflects nothing.
	Materials *MaterialTable
	// Active is a byte for each of the states that are used, zero for those to skip, of
	// which nothing else is read. It is required, other than for sums on grids: ones for all.
	Active cuda.Slice[uint8]
	// TxPower is the linear power of each transmitter, or absent: 1.
	TxPower cuda.Slice[float32]
	// TxPolarization is the direction next to which the transmitted field lies: 3 values
	// for all transmitters, or 3 for each; that of an upright antenna is (0,0,1). Absent: x.
	TxPolarization cuda.Slice[float32]
	// StateLimit uses no more than the first so many states. 0: all.
	StateLimit int
	Layout     DfrPathLayout // order of the rows; default SourceLane
	EdgeMode   EdgeMode      // ends of edges; default EdgeInterior
}

// maxPathCapacity bounds the number of rows of TraceDfrPaths.
const maxPathCapacity = 1<<31 - 1

// TraceDfrPaths computes the field that every wedge diffracts from every transmitter to
// every receiver, by the uniform theory of diffraction: one row for each of the three. The
// diffraction point is where the path over the edge is shortest; both of its legs must be
// free, by the rule of Segments, where they end beside the edge on the bisector of free
// space. tx and rx are positions in metres on the scene's device, 3 values each. Src and
// SrcPower of the states are not used.
//
// The field is computed in float64 and rounded once. It is that of a matched isotropic
// receiver: the power received is |Field|^2. Its phase is that of exp(-j k d) over the
// length d of the path. Rows are the same bits on every device.
//
// The work is enqueued on the scene's stream or the stream of OnStream, and TraceDfrPaths
// returns without waiting for it, apart from the first call after a change of the geometry
// with OptiX, which waits for a tree to trace with.
//
// Errors: ErrNotReady, *FailedError, *ArgumentError, *cuda.WrongDeviceError, the error of
// ctx, and errors of the device; nothing is enqueued for all but the last. Cost: four
// launches, 53 bytes per row of result; with Compact five, and as long as they run 41 more
// bytes per row. The first call loads the kernels.
func (s *Scene) TraceDfrPaths(ctx context.Context, tx, rx cuda.Slice[float32], states *StateTable, options DfrPathOptions, opts ...CallOption) (*DfrPaths, error) {
	return ask(ctx, s, func() (*DfrPaths, *Call, error) { return s.prepareDfrPaths(ctx, tx, rx, states, options, opts) })
}

// PrepareDfrPaths does all of TraceDfrPaths that precedes the launches. For schedulers,
// which copy the states and materials to the devices of all searches.
func (s *Scene) PrepareDfrPaths(ctx context.Context, tx, rx cuda.Slice[float32], states *StateTable, options DfrPathOptions, opts ...CallOption) (*DfrPaths, *Call, error) {
	return prepared(ctx, s, func() (*DfrPaths, *Call, error) { return s.prepareDfrPaths(ctx, tx, rx, states, options, opts) })
}

func (s *Scene) prepareDfrPaths(ctx context.Context, tx, rx cuda.Slice[float32], states *StateTable, options DfrPathOptions, opts []CallOption) (*DfrPaths, *Call, error) {
	const op = "TraceDfrPaths"
	q, err := s.newDfrPathsQuery(op, tx, rx, states, options)
	if err != nil {
		return nil, nil, err
	}
	c, o, err := s.begin(op, q.transmitters*int64(q.receivers)*int64(q.used), opts)
	if err != nil {
		return nil, nil, err
	}
	out, err := resultFor[DfrPaths](op, c, o, q.in[:])
	if err != nil {
		return nil, nil, err
	}
	if c.Rows > 0 {
		// A tree that is missing is better waited for here than between launches.
		if _, err := s.tracer(ctx); err != nil {
			return nil, nil, err
		}
	}
	q.to = out
	q.describe()
	c.query = q
	return out, c, nil
}

// newDfrPathsQuery validates the arguments.
func (s *Scene) newDfrPathsQuery(op string, tx, rx cuda.Slice[float32], states *StateTable, o DfrPathOptions) (*dfrPathsQuery, error) {
	q := &dfrPathsQuery{layoutOf: o.Layout}
	if o.Layout > Compact {
		return nil, badArg(op, "Layout", "is %d, want SourceLane or Compact", uint8(o.Layout))
	}
	err := firstError(
		q.lanes.set(op, s, states, o.Wavelength, o.Materials, o.EdgeMode),
		checkPoints(s, op, "tx", tx), checkPoints(s, op, "rx", rx))
	if err != nil {
		return nil, err
	}
	if o.StateLimit < 0 {
		return nil, badArg(op, "StateLimit", "is %d, want 0 for all states, or how many to use", o.StateLimit)
	}
	used := states.Count()
	if o.StateLimit > 0 {
		used = min(used, o.StateLimit)
	}
	t, r := int64(tx.Len()/3), int64(rx.Len()/3)
	if t > 0 && r > 0 && used > 0 && t > maxPathCapacity/r/int64(used) {
		return nil, badArg(op, "rx", "%d transmitters, %d receivers and %d states make too many rows, want at most %d: divide the transmitters over several calls",
			t, r, used, maxPathCapacity)
	}
	if o.Active.Len() != used {
		return nil, badArg(op, "Active", "has %d values, want one for each of the %d states in use: upload as many ones to use them all", o.Active.Len(), used)
	}
	if err := checkMemory(s, op, "Active", o.Active); err != nil {
		return nil, err
	}
	if !o.TxPower.IsNil() {
		if err := checkColumn(s, op, "TxPower", o.TxPower, t, 1); err != nil {
			return nil, err
		}
	}
	if n := int64(o.TxPolarization.Len()); !o.TxPolarization.IsNil() {
		if n != 3 && n != 3*t {
			return nil, badArg(op, "TxPolarization", "has %d values, want 3, or 3 for each of %d transmitters", n, t)
		}
		if err := checkMemory(s, op, "TxPolarization", o.TxPolarization); err != nil {
			return nil, err
		}
		if n != 3 {
			q.polarizationStep = 3
		}
	}
	q.transmitters, q.receivers, q.used = t, uint32(r), uint32(used)
	q.in = [dfrPathInputs]RowColumn{
		rowColumn(tx, 0), rowColumn(rx, 0), rowColumn(o.TxPower, 0), rowColumn(o.TxPolarization, 0), rowColumn(o.Active, 0),
	}
	return q, nil
}

// checkPoints requires an array of positions on the device of s.
func checkPoints(s *Scene, op, arg string, v cuda.Slice[float32]) error {
	if v.Len()%3 != 0 {
		return badArg(op, arg, "has %d values, want 3 for each position", v.Len())
	}
	return checkMemory(s, op, arg, v)
}
