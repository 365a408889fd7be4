package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
)

// Sizes of dfrpaths.cu.
const (
	pathThreads = 256
	pathTile    = 2048 // rows per block
)

// pathRounds is how many lanes a thread of trace_dfr_paths takes at most.
const pathRounds = 32

type dfrPathsParams struct {
	Lanes            laneCall
	Tx               uint64
	Rx               uint64
	Power            uint64
	Polarization     uint64
	Active           uint64
	Status           uint64
	Delay            uint64
	Field            uint64
	Point            uint64
	First            int64
	RowBegin         int64
	Count            int64
	Receivers        uint32
	States           uint32
	PolarizationStep uint32
	BlockRows        uint32
	Filled           uint32
	Unused           uint32
}

type dfrIdsParams struct {
	StatesTable uint64
	Status      uint64
	Tx          uint64
	Rx          uint64
	Edge        uint64
	First       int64
	RowBegin    int64
	Count       int64
	Receivers   uint32
	States      uint32
}

type countPathsParams struct {
	Status uint64
	Totals uint64
	Count  int64
}

type sumPathsParams struct {
	Totals uint64
	Total  uint64
	Tiles  int64
}

type dfrPathColumns struct {
	Status uint64
	Delay  uint64
	Field  uint64
	Point  uint64
}

func pathColumnsAt(base uint64, starts []int64) dfrPathColumns {
	at := func(i int) uint64 { return base + uint64(starts[i]) }
	return dfrPathColumns{at(0), at(1), at(2), at(3)}
}

type packPathsParams struct {
	From        dfrPathColumns
	To          dfrPathColumns
	Tx          uint64
	Rx          uint64
	Edge        uint64
	StatesTable uint64
	Totals      uint64
	Total       uint64
	Count       int64
	Receivers   uint32
	States      uint32
}

type settlePathsParams struct {
	From  dfrPathColumns
	To    dfrPathColumns
	Total uint64
	Count int64
}

// Kernels of ptx/kernels/dfrpaths.cu.
var (
	traceDfrPathsKernel  = ptx.Entry[dfrPathsParams]{Module: "dfrpaths", Name: "trace_dfr_paths"}
	dfrPathIdsKernel     = ptx.Entry[dfrIdsParams]{Module: "dfrpaths", Name: "dfr_path_ids"}
	countDfrPathsKernel  = ptx.Entry[countPathsParams]{Module: "dfrpaths", Name: "count_dfr_paths"}
	sumDfrPathsKernel    = ptx.Entry[sumPathsParams]{Module: "dfrpaths", Name: "sum_dfr_paths"}
	packDfrPathsKernel   = ptx.Entry[packPathsParams]{Module: "dfrpaths", Name: "pack_dfr_paths"}
	settleDfrPathsKernel = ptx.Entry[settlePathsParams]{Module: "dfrpaths", Name: "settle_dfr_paths"}
)

// dfrPathKernels are the kernels of path export. They are loaded by the first call that
// needs them.
type dfrPathKernels struct {
	module                               *cuda.Module
	trace, ids, count, sum, pack, settle *cuda.Function
}

func loadDfrPathKernels(c *cuda.Context) (*dfrPathKernels, error) {
	k := &dfrPathKernels{}
	var err error
	if k.module, err = loadModule(c, traceDfrPathsKernel.Module); err != nil {
		return nil, err
	}
	err = functions(k.module, map[string]**cuda.Function{
		traceDfrPathsKernel.Name: &k.trace, dfrPathIdsKernel.Name: &k.ids, countDfrPathsKernel.Name: &k.count,
		sumDfrPathsKernel.Name: &k.sum, packDfrPathsKernel.Name: &k.pack, settleDfrPathsKernel.Name: &k.settle,
	})
	if err != nil {
		return nil, firstError(err, k.module.Close())
	}
	return k, nil
}

func (s *Scene) dfrPathKernels() (*dfrPathKernels, error) {
	return s.kernels.dfrPaths.get(func() (*dfrPathKernels, error) { return loadDfrPathKernels(s.ctx) })
}
