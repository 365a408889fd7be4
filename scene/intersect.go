package scene

import "github.com/raymux/raymux/ptx"

type rayColumns struct {
	O      uint64
	D      uint64
	TMax   uint64
	Active uint64
}

// searchParams is what every kernel that searches the tree is told.
type searchParams struct {
	Pool      uint64
	Next      uint64
	RowBegin  int64
	Count     int64
	BusyLanes uint32
	IdleLanes uint32
}

type traverseParams struct {
	Search  searchParams
	Rays    rayColumns
	Winners uint64
}

type traverseMarkedParams struct {
	Traverse traverseParams
	Sweep    finalizeParams
}

type finalizeParams struct {
	Rays         rayColumns
	Winners      uint64
	Vertices     uint64
	Faces        uint64
	ShapeIDs     uint64
	FaceOffsets  uint64
	Pool         uint64
	Slots        uint64
	T            uint64
	P            uint64
	N            uint64
	GeoN         uint64
	UV           uint64
	Barycentric  uint64
	ShapeID      uint64
	PrimID       uint64
	LocalPrimID  uint64
	GlobalPrimID uint64
	RowBegin     int64
	Count        int64
	FaceCount    int64
	Marked       uint32
}

// Kernels of ptx/kernels/intersect.cu.
var (
	traverseKernel       = ptx.Entry[traverseParams]{Module: "intersect", Name: "traverse"}
	traverseMarkedKernel = ptx.Entry[traverseMarkedParams]{Module: "intersect", Name: "traverse_marked"}
	finalizeKernel       = ptx.Entry[finalizeParams]{Module: "intersect", Name: "finalize"}
)
