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

type optixVisibleParams struct {
	Rows        visibleRows
	FaceOffsets uint64
	Handle      uint64
	RowBegin    int64
}

type storeVisibleParams struct {
	Params optixVisibleParams
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
	storeVisibleKernel = ptx.Entry[storeVisibleParams]{Module: "optix_support", Name: "store_visible"}
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

	visibleRaygen = ptx.Entry[optixVisibleParams]{Module: "optix_visible", Name: "__raygen__visible"}
	visibleHit    = ptx.Entry[struct{}]{Module: "optix_visible", Name: "__closesthit__visible"}
	visibleAnyHit = ptx.Entry[struct{}]{Module: "optix_visible", Name: "__anyhit__visible"}
	visibleMiss   = ptx.Entry[struct{}]{Module: "optix_visible", Name: "__miss__visible"}
)
