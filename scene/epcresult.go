package scene

import "github.com/raymux/raymux/cuda"

// EPCFail says why a row of TraceReflEPC has no path, as the first reason that was found.
type EPCFail uint8

const (
	// EPCOK: there is a path.
	EPCOK EPCFail = iota
	// EPCInactive: the row is inactive, or a coordinate of source, receiver or a point
	// of a plane is not finite.
	EPCInactive
	// EPCSequence: the sequence is empty, or has a face that does not exist.
	EPCSequence
	// EPCNormal: a plane has no normal, or one that is not finite.
	EPCNormal
	// EPCParallel: a segment is parallel to its plane.
	EPCParallel
	// EPCBehind: a plane does not lie between an image and what its ray ends at: no
	// specular path on this side of it.
	EPCBehind
	// EPCOutside: a reflection is not on its surface.
	EPCOutside
	// EPCBlocked: a triangle blocks a segment.
	EPCBlocked
)

// String describes the reason.
func (f EPCFail) String() string {
	names := [...]string{
		"ok", "inactive or not finite", "empty or unknown sequence", "no plane normal",
		"segment parallel to plane", "no specular path on this side", "point not on the surface", "segment blocked",
	}
	if int(f) < len(names) {
		return names[f]
	}
	return "unknown"
}

// EPCPaths is the result of TraceReflEPC: one row per pair, and in each row one slot per
// bounce, stored at row*Bounces + bounce. Rows without a path have a PathLength of +inf,
// ids of -1 and zeros, as have slots behind the end of a sequence.
type EPCPaths struct {
	// Bounces is the number of slots in a row.
	Bounces int

	Valid       cuda.Slice[uint8]   // 1 where there is a path, [n]
	PathLength  cuda.Slice[float32] // in metres, [n]
	BounceCount cuda.Slice[uint8]   // length of the sequence, with or without a path, [n]
	Fail        cuda.Slice[uint8]   // an EPCFail, [n]

	ResolvedPrimIDs cuda.Slice[int32]   // face that holds the point, [n,Bounces]
	SurfaceGroupIDs cuda.Slice[int32]   // group of the face in Seq, -1 without one, [n,Bounces]
	HitPoints       cuda.Slice[float32] // in metres, [n,Bounces,3]
	Normals         cuda.Slice[float32] // unit normal of the plane, as it was given, [n,Bounces,3]

	block
}

// EPCFields is the result of TraceReflEPCField. A row is valid where there is a path that
// is longer than 1e-6 m, without a segment of no length, and a finite field; then Fail is
// EPCOK, and the field is zero where a medium absorbs. Other rows have a zero field and a
// PathLength of +inf.
type EPCFields struct {
	// Bounces is the number of slots in a row.
	Bounces int

	Field           cuda.Slice[float32] // real and imaginary parts along x, y and z, [n,3,2]
	PathLength      cuda.Slice[float32] // in metres, [n]
	Valid           cuda.Slice[uint8]   // [n]
	Fail            cuda.Slice[uint8]   // an EPCFail: about the path, [n]
	ResolvedPrimIDs cuda.Slice[int32]   // as in EPCPaths, [n,Bounces]

	// With IncludePaths, as in EPCPaths, for all rows with a path; else empty.
	BounceCount        cuda.Slice[uint8]   // [n]
	SurfaceGroupIDs    cuda.Slice[int32]   // [n,Bounces]
	HitPoints, Normals cuda.Slice[float32] // [n,Bounces,3]

	block
}

// Rows is the number of pairs.
func (p *EPCPaths) Rows() int { return int(p.rows) }

// Rows is the number of pairs.
func (f *EPCFields) Rows() int { return int(f.rows) }

// Close returns the memory, as Hits.Close does.
func (p *EPCPaths) Close() error { return closeBlock(p.memory()) }

// Close returns the memory, as Hits.Close does.
func (f *EPCFields) Close() error { return closeBlock(f.memory()) }

func (p *EPCPaths) memory() *block {
	if p == nil {
		return nil
	}
	return &p.block
}

func (f *EPCFields) memory() *block {
	if f == nil {
		return nil
	}
	return &f.block
}

func (p *EPCPaths) fresh() epcResult { return &EPCPaths{} }

func (f *EPCFields) fresh() epcResult { return &EPCFields{} }

// epcColumns are the columns of any result, in the order of epcLayout; those that it does
// not have are absent.
type epcColumns struct {
	fail        cuda.Slice[uint8]
	resolved    cuda.Slice[int32]
	valid       cuda.Slice[uint8]
	pathLength  cuda.Slice[float32]
	field       cuda.Slice[float32]
	bounceCount cuda.Slice[uint8]
	groups      cuda.Slice[int32]
	hitPoints   cuda.Slice[float32]
	normals     cuda.Slice[float32]
}

func epcLayout(bounces int, field, paths bool) []int {
	w := []int{1, 4 * bounces, 1, 4, 0, 0, 0, 0, 0}
	if field {
		w[4] = 24
	}
	if paths {
		w[5], w[6], w[7], w[8] = 1, 4*bounces, 12*bounces, 12*bounces
	}
	return w
}

// cut finds the columns in the memory of b.
func (c *epcColumns) cut(b *block, starts []int64, widths []int) (err error) {
	bytes := func(i int) int64 { return b.rows * int64(widths[i]) }
	u8 := func(i int, dst *cuda.Slice[uint8]) {
		if err == nil {
			*dst, err = column[uint8](b, starts[i], bytes(i))
		}
	}
	i32 := func(i int, dst *cuda.Slice[int32]) {
		if err == nil {
			*dst, err = column[int32](b, starts[i], bytes(i))
		}
	}
	f32 := func(i int, dst *cuda.Slice[float32]) {
		if err == nil {
			*dst, err = column[float32](b, starts[i], bytes(i))
		}
	}
	u8(0, &c.fail)
	i32(1, &c.resolved)
	u8(2, &c.valid)
	f32(3, &c.pathLength)
	f32(4, &c.field)
	u8(5, &c.bounceCount)
	i32(6, &c.groups)
	f32(7, &c.hitPoints)
	f32(8, &c.normals)
	return err
}

func (p *EPCPaths) take(bounces int, c *epcColumns) {
	p.Bounces, p.Valid, p.PathLength, p.BounceCount, p.Fail = bounces, c.valid, c.pathLength, c.bounceCount, c.fail
	p.ResolvedPrimIDs, p.SurfaceGroupIDs, p.HitPoints, p.Normals = c.resolved, c.groups, c.hitPoints, c.normals
}

func (f *EPCFields) take(bounces int, c *epcColumns) {
	f.Bounces, f.Field, f.PathLength, f.Valid, f.Fail = bounces, c.field, c.pathLength, c.valid, c.fail
	f.ResolvedPrimIDs, f.BounceCount, f.SurfaceGroupIDs = c.resolved, c.bounceCount, c.groups
	f.HitPoints, f.Normals = c.hitPoints, c.normals
}
