package scene

import "github.com/raymux/raymux/ptx"

// surfaces is the committed geometry as kernels read it.
type surfaces struct {
	Vertices uint64
	Faces    uint64
}

func (t *tables) surfaces() surfaces { return surfaces{t.vertices.Addr(), t.faces.Addr()} }

type traceChainsParams struct {
	Search  searchParams
	Rays    rayColumns
	PrimIDs uint64
	Bounces int32
}

type finalizeChainsParams struct {
	Rays         rayColumns
	Surfaces     surfaces
	Pool         uint64
	Slots        uint64
	PrimIDs      uint64
	Valid        uint64
	T            uint64
	ImageSources uint64
	HitPoints    uint64
	Normals      uint64
	Barycentric  uint64
	RowBegin     int64
	Count        int64
	Bounces      int32
	FaceCount    int32
}

// Kernels of ptx/kernels/reflect.cu.
var (
	traceChainsKernel    = ptx.Entry[traceChainsParams]{Module: "reflect", Name: "trace_chains"}
	finalizeChainsKernel = ptx.Entry[finalizeChainsParams]{Module: "reflect", Name: "finalize_chains"}
)
