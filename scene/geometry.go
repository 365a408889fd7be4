package scene

import "github.com/raymux/raymux/ptx"

type validateMeshParams struct {
	Vertices       uint64
	Faces          uint64
	FirstBadVertex uint64
	FirstBadFace   uint64
	VertexCount    int64
	FaceCount      int64
	RowBegin       int64
	Count          int64
}

type faceNormalsParams struct {
	Vertices uint64
	Faces    uint64
	Normals  uint64
	RowBegin int64
	Count    int64
}

type gatherTrianglesParams struct {
	Vertices  uint64
	Faces     uint64
	Order     uint64
	Triangles uint64
	RowBegin  int64
	Count     int64
}

type refitLevelParams struct {
	Nodes     uint64
	Triangles uint64
	RowBegin  int64
	Count     int64
}

type treeCostParams struct {
	Nodes     uint64
	Parts     uint64
	NodeCount int64
	RowBegin  int64
	Count     int64
}

// Kernels of ptx/kernels/geometry.cu.
var (
	validateMeshKernel    = ptx.Entry[validateMeshParams]{Module: "geometry", Name: "validate_mesh"}
	faceNormalsKernel     = ptx.Entry[faceNormalsParams]{Module: "geometry", Name: "face_normals"}
	gatherTrianglesKernel = ptx.Entry[gatherTrianglesParams]{Module: "geometry", Name: "gather_triangles"}
	refitLevelKernel      = ptx.Entry[refitLevelParams]{Module: "geometry", Name: "refit_level"}
	treeCostKernel        = ptx.Entry[treeCostParams]{Module: "geometry", Name: "tree_cost"}
)
