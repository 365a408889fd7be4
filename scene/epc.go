package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
)

// MaxEPCBounces is the most bounces of a row of TraceReflEPC.
const MaxEPCBounces = 8

// EPCRows is a batch of n pairs of a source and a receiver, each with the surfaces that
// reflect between them. All columns are on the scene's device.
type EPCRows struct {
	// Source and Receiver are points in metres: 3n values each.
	Source, Receiver cuda.Slice[float32]
	// Seq is faces by GlobalPrimID in the order in which the path from the source meets
	// them: n*Bounces values. A row ends at its first -1.
	Seq cuda.Slice[int32]
	// Bounces is the number of slots of a row, 1 to MaxEPCBounces.
	Bounces int
	// PlanePoints and PlaneNormals take the place of the first vertex and of the normal
	// of each face: 3n*Bounces values each, normals of any length. Absent: those of the
	// faces.
	PlanePoints, PlaneNormals cuda.Slice[float32]
	// Active is n bytes, zero for rows to skip, or absent.
	Active cuda.Slice[uint8]
}

// IgnoreMode says what a segment of a path may pass through at its ends.
type IgnoreMode uint8

const (
	// IgnorePrimitive: the faces that hold the ends.
	IgnorePrimitive IgnoreMode = iota
	// IgnoreSurfaceGroup: all faces of their groups. A face without a group is ignored
	// alone.
	IgnoreSurfaceGroup
)

// String is "primitive" or "surface_group".
func (m IgnoreMode) String() string {
	if m == IgnoreSurfaceGroup {
		return "surface_group"
	}
	return "primitive"
}

// EPCOptions are options of TraceReflEPC. The zero value is usable.
type EPCOptions struct {
	// Groups are surfaces of several faces. A reflection may then lie on any face of the
	// group of its face in Seq. Nil: on that face alone.
	Groups     *SurfaceGroupTable
	IgnoreMode IgnoreMode
	// PlaneTolerance is how far from the plane of a face, relative to its edges if they
	// are longer than a metre, a reflection may lie on it. Nil: 1e-5.
	PlaneTolerance *float32
}

// defaultPlaneTolerance is that of EPCOptions.
const defaultPlaneTolerance = 1e-5

// EPCFieldOptions are options of TraceReflEPCField.
type EPCFieldOptions struct {
	EPCOptions
	// Materials are what the faces are made of. Required.
	Materials *MaterialTable
	// Wavelength in metres, above 0.
	Wavelength float64
	// Polarization is the direction next to which the field starts, of any length: 3
	// values for all rows, or 3n. That of an upright antenna is (0,0,1). Absent: x. Where
	// it has no part across the first segment, the field starts along a fixed direction
	// that has.
	Polarization cuda.Slice[float32]
	// IncludePaths asks for the columns of EPCFields that describe the paths.
	IncludePaths bool
}

// TraceReflEPC is equivalent-path correction (EPC): it computes for every row the specular
// path from source to receiver over the planes of its faces, by the images of the source,
// and tells whether it exists: whether every reflection lies between image and end, and on
// the face or its group, and no triangle blocks a segment, under the rules of Segments.
// What a segment passes through at its ends does not block it. Points on an edge belong to
// the faces on both sides, within a ten-thousandth of their size: Seq or the order of the
// group decides. Images and points are computed in float32.
//
// The work is enqueued on the scene's stream or the stream of OnStream, and TraceReflEPC
// returns without waiting for it. With OptiX, the first call after a change of the
// geometry waits for a tree to trace with.
//
// Errors: ErrNotReady, *FailedError, *ArgumentError, *cuda.WrongDeviceError, the error of
// ctx, and errors of the device; nothing is enqueued for all but the last. Cost: two
// launches and a fill of twelve bytes per 2^30 rows, and a member test for every face of a
// group up to the one that holds a point; no driver allocation once the pool holds a
// result of that size, which has 7 + 32 Bounces bytes per row. The first call loads the
// kernels.
func (s *Scene) TraceReflEPC(ctx context.Context, rows EPCRows, options EPCOptions, opts ...CallOption) (*EPCPaths, error) {
	return ask(ctx, s, func() (*EPCPaths, *Call, error) { return s.prepareEPC(ctx, rows, options, opts) })
}

// PrepareReflEPC does all of TraceReflEPC that precedes the launches. For schedulers,
// which copy the groups to the devices of all searches.
func (s *Scene) PrepareReflEPC(ctx context.Context, rows EPCRows, options EPCOptions, opts ...CallOption) (*EPCPaths, *Call, error) {
	return prepared(ctx, s, func() (*EPCPaths, *Call, error) { return s.prepareEPC(ctx, rows, options, opts) })
}

// TraceReflEPCField is TraceReflEPC, and the field at the receiver that arrives over the
// path. The field has the phase and the amplitude lambda/(4 pi L) of its length L; its
// squared magnitude is the path gain between isotropic antennas that match its
// polarization. It starts with the unit vector across the first segment next to
// Polarization, and every reflection multiplies its parts across and in the plane of
// incidence by the Fresnel coefficients of the medium. That the phase is that of a float32
// length limits it to 2 pi ulp(L)/(2 lambda) rad: 0.0024 at L = 100 m, lambda = 1 cm.
//
// Stream, errors and cost are as for TraceReflEPC, without launches of its own; the result
// has 30 + 4 Bounces bytes per row, and with IncludePaths 1 + 28 Bounces more.
func (s *Scene) TraceReflEPCField(ctx context.Context, rows EPCRows, options EPCFieldOptions, opts ...CallOption) (*EPCFields, error) {
	return ask(ctx, s, func() (*EPCFields, *Call, error) { return s.prepareEPCField(ctx, rows, options, opts) })
}

// PrepareReflEPCField does all of TraceReflEPCField that precedes the launches. For
// schedulers, which copy the groups to the devices of all searches.
func (s *Scene) PrepareReflEPCField(ctx context.Context, rows EPCRows, options EPCFieldOptions, opts ...CallOption) (*EPCFields, *Call, error) {
	return prepared(ctx, s, func() (*EPCFields, *Call, error) { return s.prepareEPCField(ctx, rows, options, opts) })
}

func (s *Scene) prepareEPC(ctx context.Context, rows EPCRows, options EPCOptions, opts []CallOption) (*EPCPaths, *Call, error) {
	q, n, err := s.newEPCQuery("TraceReflEPC", rows, options)
	if err != nil {
		return nil, nil, err
	}
	return prepareEPCQuery[EPCPaths](ctx, q, s, n, opts)
}

func (s *Scene) prepareEPCField(ctx context.Context, rows EPCRows, options EPCFieldOptions, opts []CallOption) (*EPCFields, *Call, error) {
	const op = "TraceReflEPCField"
	if err := checkWavelength(op, options.Wavelength); err != nil {
		return nil, nil, err
	}
	q, n, err := s.newEPCQuery(op, rows, options.EPCOptions)
	if err != nil {
		return nil, nil, err
	}
	f := &epcField{wavelength: options.Wavelength, paths: options.IncludePaths}
	if f.media, err = options.Materials.media(op, s); err != nil {
		return nil, nil, err
	}
	// Of a batch of one row both are the same.
	width := 0
	if p := options.Polarization; !p.IsNil() {
		switch int64(p.Len()) {
		case 3:
		case 3 * n:
			width = 12
		default:
			return nil, nil, badArg(op, "Polarization", "has %d values, want 3, or %d for %d rows, or none", p.Len(), 3*n, n)
		}
		if err := checkMemory(s, op, "Polarization", p); err != nil {
			return nil, nil, err
		}
	}
	q.in[epcPolarization] = rowColumn(options.Polarization, width)
	q.field = f
	return prepareEPCQuery[EPCFields](ctx, q, s, n, opts)
}

// newEPCQuery checks a batch and returns its number of rows, without a driver call.
func (s *Scene) newEPCQuery(op string, rows EPCRows, options EPCOptions) (q *epcQuery, n int64, err error) {
	b := int64(rows.Bounces)
	if b < 1 || b > MaxEPCBounces {
		return nil, 0, badArg(op, "Bounces", "is %d, want 1 to %d", b, MaxEPCBounces)
	}
	if rows.Source.Len()%3 != 0 {
		return nil, 0, badArg(op, "Source", "has %d values, want 3 per row", rows.Source.Len())
	}
	n = int64(rows.Source.Len() / 3)
	if options.IgnoreMode > IgnoreSurfaceGroup {
		return nil, 0, badArg(op, "IgnoreMode", "is %d, want IgnorePrimitive or IgnoreSurfaceGroup", uint8(options.IgnoreMode))
	}
	q = &epcQuery{
		op: op, bounces: rows.Bounces, groups: options.Groups,
		tolerance: defaultPlaneTolerance, ignoreGroups: options.IgnoreMode == IgnoreSurfaceGroup,
	}
	if t := options.PlaneTolerance; t != nil {
		if q.tolerance = *t; !(q.tolerance >= 0) || math.IsInf(float64(q.tolerance), 0) {
			return nil, 0, badArg(op, "PlaneTolerance", "is %v, want a finite number, 0 or more", q.tolerance)
		}
	}
	if _, err := q.groups.columns(op, s); err != nil {
		return nil, 0, err
	}
	err = firstError(
		checkColumn(s, op, "Source", rows.Source, n, 3), checkColumn(s, op, "Receiver", rows.Receiver, n, 3),
		checkColumn(s, op, "Seq", rows.Seq, n, b),
		checkOptional(s, op, "PlanePoints", rows.PlanePoints, n, 3*b), checkOptional(s, op, "PlaneNormals", rows.PlaneNormals, n, 3*b),
		checkOptional(s, op, "Active", rows.Active, n, 1))
	if err != nil {
		return nil, 0, err
	}
	slots := 4 * rows.Bounces
	q.in = [epcInputs]RowColumn{
		epcSource: rowColumn(rows.Source, 12), epcReceiver: rowColumn(rows.Receiver, 12), epcSeq: rowColumn(rows.Seq, slots),
		epcPlanePoints: rowColumn(rows.PlanePoints, 3*slots), epcPlaneNormals: rowColumn(rows.PlaneNormals, 3*slots),
		epcActive: rowColumn(rows.Active, 1),
	}
	q.out = [2]RowColumn{{Width: 1}, {Width: slots}}
	return q, n, nil
}

// checkOptional is checkColumn for a column that may be absent.
func checkOptional[T cuda.Scalar](s *Scene, op, arg string, v cuda.Slice[T], n, width int64) error {
	if v.IsNil() {
		return nil
	}
	return checkColumn(s, op, arg, v, n, width)
}

// prepareEPCQuery turns a checked batch into a call.
func prepareEPCQuery[R any, P interface {
	*R
	epcResult
}](ctx context.Context, q *epcQuery, s *Scene, n int64, opts []CallOption) (P, *Call, error) {
	c, o, err := s.begin(q.op, n, opts)
	if err != nil {
		return nil, nil, err
	}
	out, err := resultFor[R, P](q.op, c, o, q.in[:])
	if err != nil {
		return nil, nil, err
	}
	if n > 0 {
		// Which may wait, better outside of the order of queries.
		if _, err := s.tracer(ctx); err != nil {
			return nil, nil, err
		}
	}
	q.to = out
	c.query = q
	return out, c, nil
}
