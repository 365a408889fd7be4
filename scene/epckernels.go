package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
)

type epcRows struct {
	Source       uint64
	Receiver     uint64
	Seq          uint64
	PlanePoints  uint64
	PlaneNormals uint64
	Active       uint64
	Bounces      int32
}

type reflectors struct {
	Surfaces surfaces
	Pool     uint64
	Slots    uint64
	Count    int32
}

type searchEpcParams struct {
	Search       searchParams
	Rows         epcRows
	Reflectors   reflectors
	Groups       surfaceGroups
	Fail         uint64
	Resolved     uint64
	Tolerance    float32
	IgnoreGroups uint32
}

type finalizeEpcParams struct {
	Rows             epcRows
	Reflectors       reflectors
	Groups           surfaceGroups
	Fail             uint64
	Resolved         uint64
	Valid            uint64
	PathLength       uint64
	BounceCount      uint64
	GroupIDs         uint64
	HitPoints        uint64
	Normals          uint64
	Field            uint64
	Polarization     uint64
	Media            media
	Lambda           float64
	LossPerSigma     float64
	RowBegin         int64
	Count            int64
	PolarizationRows int32
}

// Kernels of ptx/kernels/epc.cu.
var (
	searchEpcKernel   = ptx.Entry[searchEpcParams]{Module: "epc", Name: "search_epc"}
	finalizeEpcKernel = ptx.Entry[finalizeEpcParams]{Module: "epc", Name: "finalize_epc"}
)

// epcKernels are the kernels of equivalent paths. They are loaded by the first call that
// needs them.
type epcKernels struct {
	module           *cuda.Module
	search, finalize *cuda.Function
}

func loadEpcKernels(c *cuda.Context) (*epcKernels, error) {
	k := &epcKernels{}
	var err error
	if k.module, err = loadModule(c, searchEpcKernel.Module); err != nil {
		return nil, err
	}
	err = functions(k.module, map[string]**cuda.Function{
		searchEpcKernel.Name: &k.search, finalizeEpcKernel.Name: &k.finalize,
	})
	if err != nil {
		return nil, firstError(err, k.module.Close())
	}
	return k, nil
}

func (s *Scene) epcKernels() (*epcKernels, error) {
	return s.kernels.epc.get(func() (*epcKernels, error) { return loadEpcKernels(s.ctx) })
}
