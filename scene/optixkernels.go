package scene

import "github.com/raymux/raymux/ptx"

type closestParams struct {
	Rays        rayColumns
	Winners     uint64
	FaceOffsets uint64
	Handle      uint64
	RowBegin    int64
}

type bareParams struct {
	Rays     rayColumns
	Hits     uint64
	Handle   uint64
	RowBegin int64
}

type storeClosestParams struct {
	Params closestParams
	To     uint64
}

type storeBareParams struct {
	Params bareParams
	To     uint64
}

type faceBoxesParams struct {
	Vertices  uint64
	Faces     uint64
	Areas     uint64
	Boxes     uint64
	FaceBegin int64
	FaceEnd   int64
	Count     int64
}

// Kernels of ptx/kernels/optix_support.cu.
var (
	storeClosestKernel = ptx.Entry[storeClosestParams]{Module: "optix_support", Name: "store_closest"}
	storeBareKernel    = ptx.Entry[storeBareParams]{Module: "optix_support", Name: "store_bare"}
	faceBoxesKernel    = ptx.Entry[faceBoxesParams]{Module: "optix_support", Name: "face_boxes"}
)

// Device programs of ptx/kernels/optix_closest.cu and optix_bare.cu. Launch
// parameters belong to ray generation.
var (
	closestRaygen = ptx.Entry[closestParams]{Module: "optix_closest", Name: "__raygen__closest"}
	closestHit    = ptx.Entry[struct{}]{Module: "optix_closest", Name: "__closesthit__closest"}
	closestMiss   = ptx.Entry[struct{}]{Module: "optix_closest", Name: "__miss__closest"}

	bareRaygen = ptx.Entry[bareParams]{Module: "optix_bare", Name: "__raygen__bare"}
	bareHit    = ptx.Entry[struct{}]{Module: "optix_bare", Name: "__closesthit__bare"}
	bareMiss   = ptx.Entry[struct{}]{Module: "optix_bare", Name: "__miss__bare"}
)
