package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
)

type coherentParams struct {
	Lanes        laneCall
	Cells        cells
	Polarization struct{ X, Y, Z float32 }
	States       uint32
	Active       uint64
	ActiveCount  uint32
	Group        uint32
	Shares       uint32
	Share        uint32
	Begin        int64
	End          int64
	FirstSlot    int32
	LastSlot     int32
	Words        uint64
	Slots        uint64
	Fields       uint64
	Counters     uint64
}

type readCoherentParams struct {
	Words    uint64
	Slots    uint64
	Fields   uint64
	Cells    int64
	RowBegin int64
	Count    int64
}

// Kernels of ptx/kernels/coherent.cu.
var (
	accumDfrCoherentKernel = ptx.Entry[coherentParams]{Module: "coherent", Name: "accum_dfr_coherent"}
	readDfrCoherentKernel  = ptx.Entry[readCoherentParams]{Module: "coherent", Name: "read_dfr_coherent"}
)

// coherentKernels sum the fields of wedges. They are loaded by the first call that needs
// them.
type coherentKernels struct {
	module           *cuda.Module
	accumulate, read *cuda.Function
}

func loadCoherentKernels(c *cuda.Context) (*coherentKernels, error) {
	k := &coherentKernels{}
	var err error
	if k.module, err = loadModule(c, accumDfrCoherentKernel.Module); err != nil {
		return nil, err
	}
	err = functions(k.module, map[string]**cuda.Function{
		accumDfrCoherentKernel.Name: &k.accumulate, readDfrCoherentKernel.Name: &k.read,
	})
	if err != nil {
		return nil, firstError(err, k.module.Close())
	}
	return k, nil
}

func (s *Scene) coherentKernels() (*coherentKernels, error) {
	return s.kernels.coherent.get(func() (*coherentKernels, error) { return loadCoherentKernels(s.ctx) })
}
