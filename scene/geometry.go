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

type transformVerticesParams struct {
	Vertices uint64
	Moved    uint64
	FirstBad uint64
	Rows     affine
	Shape    int32
	RowBegin int64
	Count    int64
}

type placeTrianglesParams struct {
	Vertices uint64
	Faces    uint64
	Slots    uint64
	Pool     uint64
	RowBegin int64
	Count    int64
}

type nodeBoxesParams struct {
	Shapes   uint64
	Pool     uint64
	Boxes    uint64
	RowBegin int64
	Count    int64
}

type writeNodesParams struct {
	Shapes   uint64
	Pool     uint64
	Boxes    uint64
	RowBegin int64
	Count    int64
}

type treeCostParams struct {
	Boxes     uint64
	Parts     uint64
	NodeCount int64
	RowBegin  int64
	Count     int64
}

// Kernels of ptx/kernels/geometry.cu.
var (
	validateMeshKernel      = ptx.Entry[validateMeshParams]{Module: "geometry", Name: "validate_mesh"}
	faceNormalsKernel       = ptx.Entry[faceNormalsParams]{Module: "geometry", Name: "face_normals"}
	transformVerticesKernel = ptx.Entry[transformVerticesParams]{Module: "geometry", Name: "transform_vertices"}
	placeTrianglesKernel    = ptx.Entry[placeTrianglesParams]{Module: "geometry", Name: "place_triangles"}
	nodeBoxesKernel         = ptx.Entry[nodeBoxesParams]{Module: "geometry", Name: "node_boxes"}
	writeNodesKernel        = ptx.Entry[writeNodesParams]{Module: "geometry", Name: "write_nodes"}
	treeCostKernel          = ptx.Entry[treeCostParams]{Module: "geometry", Name: "tree_cost"}
)
