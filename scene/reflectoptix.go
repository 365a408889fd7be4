package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
)

type reflectParams struct {
	Rays        rayColumns
	Surfaces    surfaces
	PrimIDs     uint64
	FaceOffsets uint64
	Handle      uint64
	RowBegin    int64
	Bounces     int64
}

type storeReflectParams struct {
	Params reflectParams
	To     uint64
}

// Kernel of ptx/kernels/optix_support.cu.
var storeReflectKernel = ptx.Entry[storeReflectParams]{Module: "optix_support", Name: "store_reflect"}

// Device programs of ptx/kernels/optix_reflect.cu.
var (
	reflectRaygen = ptx.Entry[reflectParams]{Module: "optix_reflect", Name: "__raygen__reflect"}
	reflectHit    = ptx.Entry[struct{}]{Module: "optix_reflect", Name: "__closesthit__reflect"}
	reflectMiss   = ptx.Entry[struct{}]{Module: "optix_reflect", Name: "__miss__reflect"}
)

func (x *optixSearch) reflect(at site, st *cuda.Stream, rays rayColumns, primIDs uint64, bounces int32, begin, count int64) error {
	programs, err := x.programsFor(reflectPrograms)
	if err != nil {
		return err
	}
	p := storeReflectParams{Params: reflectParams{
		Rays: rays, Surfaces: x.t.surfaces(), PrimIDs: primIDs, FaceOffsets: x.offsets(),
		Handle: uint64(x.handle()), Bounces: int64(bounces),
	}}
	return x.s.eachLaunch(begin, count, func(begin, count int64) error {
		p.Params.RowBegin = begin
		return programs.launch(at.Scope, st, count, func(to uint64) []byte {
			p.To = to
			return cuda.ParamBytes(&p)
		})
	})
}

func (x *optixSearch) mirrors() (pool, slots uint64) { return 0, 0 }
