package brute

import "github.com/raymux/raymux/ptx"

type surfaces struct {
	Vertices uint64
	Faces    uint64
}

type geometry struct {
	Surfaces  surfaces
	FaceCount int64
}

type rayColumns struct {
	O      uint64
	D      uint64
	TMax   uint64
	Active uint64
}

type checkClosestParams struct {
	Geometry geometry
	Rays     rayColumns
	Winners  uint64
	RowBegin int64
	Count    int64
}

type checkSegmentsParams struct {
	Geometry    geometry
	Start       uint64
	End         uint64
	Ignore      uint64
	Visible     uint64
	Blockers    uint64
	RowBegin    int64
	Count       int64
	IgnoreWidth int32
}

type checkChainsParams struct {
	Geometry geometry
	Rays     rayColumns
	PrimIDs  uint64
	RowBegin int64
	Count    int64
	Bounces  int32
}

type searchParams struct {
	Pool      uint64
	Next      uint64
	RowBegin  int64
	Count     int64
	BusyLanes uint32
	IdleLanes uint32
}

type checkSharedParams struct {
	Search  searchParams
	Rays    rayColumns
	Winners uint64
	Met     uint64
	By      uint64
}

// Kernels of ptx/kernels/check.cu.
var (
	checkClosestKernel  = ptx.Entry[checkClosestParams]{Module: "check", Name: "check_closest"}
	checkSegmentsKernel = ptx.Entry[checkSegmentsParams]{Module: "check", Name: "check_segments"}
	checkChainsKernel   = ptx.Entry[checkChainsParams]{Module: "check", Name: "check_chains"}
	checkSharedKernel   = ptx.Entry[checkSharedParams]{Module: "check", Name: "check_shared"}
)
