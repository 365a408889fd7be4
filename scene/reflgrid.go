package scene

import (
	"context"
	"fmt"
	"math"

	"github.com/raymux/raymux/cuda"
)

// FieldWeight is how much of a ray's field counts in the cell that it crosses.
type FieldWeight uint8

const (
	// WeightSqrtArea weights the field by the square root of the share of the cell that
	// the ray stands for, so that its square is the power. The fields of n rays of one
	// path add up to the square root of n times the true field.
	WeightSqrtArea FieldWeight = iota
	// WeightArea weights the field by the share itself: the sum is the mean of the field
	// over the cell, whatever the number of rays.
	WeightArea
)

// String is the name of the constant.
func (w FieldWeight) String() string {
	switch w {
	case WeightSqrtArea:
		return "WeightSqrtArea"
	case WeightArea:
		return "WeightArea"
	}
	return fmt.Sprintf("FieldWeight(%d)", uint8(w))
}

// ReflGridOptions says what AccumulateReflections follows and collects. Arrays are on the
// scene's device.
type ReflGridOptions struct {
	// Wavelength in metres, above 0.
	Wavelength float64
	// SolidAnglePerRay is the solid angle of the fan over its number of rays, in
	// steradians, at most 4 pi: 4 pi/n for n rays in all directions.
	SolidAnglePerRay float64
	// MaxBounces is the most reflections of a ray, 0 to MaxBounces.
	MaxBounces int
	// Materials is what the surfaces are made of. Required.
	Materials *MaterialTable
	// TxPosition is the transmitter, from which the length of a path is measured, in metres:
	// three values, or three per ray; normally the origins of the rays. Required.
	TxPosition cuda.Slice[float32]
	// TxPolarization is the direction of the field, three values or three per ray; its
	// part across the ray counts, at unit length. That of an upright antenna is (0,0,1).
	// Absent: (1,0,0).
	TxPolarization cuda.Slice[float32]
	// RowBase is the number of ray 0 among the rays of all parts of a fan, for wedge
	// events.
	RowBase int64
	// IncludeLOS counts the leg before the first reflection, too.
	IncludeLOS bool
	// FieldWeight is about the field; Power is the same with each. By default the field
	// grows with the square root of the number of rays.
	FieldWeight FieldWeight

	// CollectWedges collects hits as WedgeEvents: the first of each ray, and with
	// CollectWedgePrefixes those behind it.
	CollectWedges, CollectWedgePrefixes bool
	// WedgeCapacity is the number of slots for events, below 2^31; 0 only counts them.
	// Without CollectWedges there are none.
	WedgeCapacity int
	// WedgeSampleStride keeps, with CollectWedgePrefixes, only every so many hits of all
	// that there may be, and makes the source power of each as many times as large. 0
	// means 1.
	WedgeSampleStride int

	// CellCount and KeepWords ask for columns of the result.
	CellCount, KeepWords bool
}

// AccumulateReflections estimates the reflected power and field over a grid by a fan of
// rays. Every ray is a tube of the solid angle SolidAnglePerRay that carries a field of
// unit strength from the transmitter, loses what the surfaces absorb at each mirror
// reflection, and counts in the cell where a leg of it crosses the plane of the grid, which
// stops nothing. A leg counts where the plane lies before the surface that ends it. The sum
// of powers is a Monte-Carlo estimate of the mean path gain over the cell, of paths that
// are added without their phases; see FieldWeight for what the sum of fields is. A wall in
// the plane of the grid gives arbitrary results: keep it at least ten times 20 µm, or ten
// millionths of the coordinates, away.
//
// Directions of rays need no unit length; TMax is in metres, for the first leg. A row
// whose ray is a miss for Intersect counts nothing; one whose transmitter or polarization
// is not finite neither, and sets StatusNotFinite. Derivatives are not offered.
//
// All sums are sums of integers (see ReflGrids), so that results do not depend on the
// order, division or device of the work, bit for bit.
//
// The work is enqueued on the scene's stream or the stream of OnStream, and
// AccumulateReflections returns without waiting for it. Close the result to reuse its
// memory. With OptiX, the first call after a change of the geometry builds a tree, for
// which it waits.
//
// Errors: ErrNotReady, *FailedError, *ArgumentError, *cuda.WrongDeviceError, the error of
// ctx, and errors of the device; nothing is enqueued for all but the last. Cost: two
// launches and up to three fills; one more of each for up to eight copies of the sums, where
// 65,536 rays or more meet cells that half of the cache holds that many times; with wedge
// events five launches more and up to a fill, and the search of the rays that have some, up to
// the capacity. A cell takes 96 bytes, its copies 68 each for the time of the call, an
// event 80, and a ray 1 with events; no driver allocation once the pool holds them.
func (s *Scene) AccumulateReflections(ctx context.Context, rays Rays, grid Grid, opt ReflGridOptions, opts ...CallOption) (*ReflGrids, error) {
	return askGrid(ctx, s, func() (*ReflGrids, *GridCall, error) { return s.prepareReflGrid(rays, grid, opt, opts) })
}

// PrepareAccumulateReflections does all of AccumulateReflections that precedes the
// launches. For schedulers.
func (s *Scene) PrepareAccumulateReflections(ctx context.Context, rays Rays, grid Grid, opt ReflGridOptions, opts ...CallOption) (*ReflGrids, *GridCall, error) {
	return preparedGrid(ctx, s, func() (*ReflGrids, *GridCall, error) { return s.prepareReflGrid(rays, grid, opt, opts) })
}

const accumulateReflections = "AccumulateReflections"

func (s *Scene) prepareReflGrid(rays Rays, grid Grid, opt ReflGridOptions, opts []CallOption) (*ReflGrids, *GridCall, error) {
	const op = accumulateReflections
	n, err := s.checkRays(op, rays)
	if err != nil {
		return nil, nil, err
	}
	if err := firstError(grid.check(op), opt.check(op, n), s.checkTubes(op, n, &opt)); err != nil {
		return nil, nil, err
	}
	if _, err := opt.Materials.media(op, s); err != nil {
		return nil, nil, err
	}
	if base := opt.base(grid); math.IsInf(base*base, 0) { // times no contribution that were no number
		return nil, nil, badArg(op, "Wavelength", "is %v, which makes the power of every contribution infinite; want metres", opt.Wavelength)
	}
	c, o, err := s.begin(op, n, opts)
	if err != nil {
		return nil, nil, err
	}
	q := s.newReflGridQuery(n, rays, grid, opt)
	if q.to, err = resultFor[ReflGrids](op, c, o, q.in[:]); err != nil {
		return nil, nil, err
	}
	g, err := c.gridCall(q, 0)
	if err != nil {
		return nil, nil, err
	}
	return q.to, g, nil
}

// check refuses numbers outside of their ranges.
func (o *ReflGridOptions) check(op string, rows int64) error {
	if err := checkWavelength(op, o.Wavelength); err != nil {
		return err
	}
	switch a := o.SolidAnglePerRay; {
	case !(a > 0) || a > wholeSphere:
		return badArg(op, "SolidAnglePerRay", "is %v, want a number of steradians above 0 and of at most 4 pi, such as 4 pi over the number of rays", a)
	case o.MaxBounces < 0 || o.MaxBounces > MaxBounces:
		return badArg(op, "MaxBounces", "is %d, want 0 to %d", o.MaxBounces, MaxBounces)
	case o.FieldWeight > WeightArea:
		return badArg(op, "FieldWeight", "is %d, want WeightSqrtArea or WeightArea", o.FieldWeight)
	case o.RowBase < 0 || o.RowBase > maxRowNumber-rows:
		return badArg(op, "RowBase", "is %d, want 0 to %d", o.RowBase, maxRowNumber-rows)
	case o.WedgeCapacity < 0 || o.WedgeCapacity > math.MaxInt32:
		return badArg(op, "WedgeCapacity", "is %d, want 0 to %d", o.WedgeCapacity, math.MaxInt32)
	case o.WedgeSampleStride < 0:
		return badArg(op, "WedgeSampleStride", "is %d, want 1 or more, or 0 for 1", o.WedgeSampleStride)
	}
	return nil
}

// base is the unit of the contributions to a grid.
func (o *ReflGridOptions) base(g Grid) float64 {
	return o.Wavelength / (4 * math.Pi) * math.Sqrt(o.SolidAnglePerRay/g.CellArea())
}

// wholeSphere is 4 pi, as single precision or a user's decimals may give it.
const wholeSphere = 4 * math.Pi * (1 + 1e-5)

// maxRowNumber bounds the numbers of rays: times MaxBounces they fit an int64.
const maxRowNumber = math.MaxInt64 / MaxBounces

// checkTubes judges the arrays of the options.
func (s *Scene) checkTubes(op string, n int64, o *ReflGridOptions) error {
	if have := int64(o.TxPosition.Len()); have != 3 && have != 3*n {
		return badArg(op, "TxPosition", "has %d values, want 3, or %d for the %d rows of O", have, 3*n, n)
	}
	if have := int64(o.TxPolarization.Len()); have != 3 && have != 3*n && !o.TxPolarization.IsNil() {
		return badArg(op, "TxPolarization", "has %d values, want 3, or %d for the %d rows of O, or none", have, 3*n, n)
	}
	return firstError(checkMemory(s, op, "TxPosition", o.TxPosition), checkMemory(s, op, "TxPolarization", o.TxPolarization))
}
