package scene

import "github.com/raymux/raymux/ptx"

type triangleBoundsParams struct {
	Vertices  uint64
	Faces     uint64
	State     uint64
	FaceCount int64
	RowBegin  int64
	Count     int64
}

type makeLeavesParams struct {
	Vertices uint64
	Faces    uint64
	State    uint64
	Leaves   uint64
	Keys     uint64
	Values   uint64
	RowBegin int64
	Count    int64
}

type seedClustersParams struct {
	Keys      uint64
	Values    uint64
	Gaps      uint64
	Meet      uint64
	Clusters  uint64
	LeafCount int64
	RowBegin  int64
	Count     int64
}

// forest is Forest of build.cuh.
type forest struct {
	Leaves uint64
	Forks  [2]uint64
	Plans  [2]uint64
}

type climbParams struct {
	Forest    forest
	Gaps      uint64
	Meet      uint64
	Clusters  uint64
	State     uint64
	LeafCount int64
	RowBegin  int64
	Count     int64
}

type widenParams struct {
	Forest forest
	State  uint64
	Queue  uint64
	Shapes uint64
	Slots  uint64
	Tree   int64
	Level  int64
}

// Kernels of ptx/kernels/build.cu.
var (
	triangleBoundsKernel  = ptx.Entry[triangleBoundsParams]{Module: "build", Name: "triangle_bounds"}
	makeLeavesKernel      = ptx.Entry[makeLeavesParams]{Module: "build", Name: "make_leaves"}
	seedClustersKernel    = ptx.Entry[seedClustersParams]{Module: "build", Name: "seed_clusters"}
	buildByBitsKernel     = ptx.Entry[climbParams]{Module: "build", Name: "build_by_bits"}
	buildByNearnessKernel = ptx.Entry[climbParams]{Module: "build", Name: "build_by_nearness"}
	widenKernel           = ptx.Entry[widenParams]{Module: "build", Name: "widen"}
)
