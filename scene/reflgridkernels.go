package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
)

// Sizes of reflgrid.cuh and wedges.cuh.
const (
	tubeWords    = 8 // of a cell
	tubeLimits   = 3
	wedgeThreads = 256
	wedgeTile    = 4096 // rows of a block
)

// Flags of tubeParams.
const (
	tubesDirect = 1 << iota
	tubesEvents
	tubesPrefixes
	tubesTxRows
	tubesPolarizationRows
)

type tubeSums struct {
	Words  uint64
	Counts uint64
	Limits uint64
	Cells  int64
	Copies int64
}

type tubeParams struct {
	Search       searchParams
	Rays         rayColumns
	Tx           uint64
	Polarization uint64
	Media        media
	Grid         cells
	Sums         tubeSums
	Events       uint64
	Lambda       float64
	LossPerSigma float64
	RowBase      int64
	Stride       int64
	Area         float32
	Omega        float32
	Bounces      int32
	Flags        uint32
}

type foldTubesParams struct {
	From   tubeSums
	Words  uint64
	Counts uint64
}

type readTubesParams struct {
	From        accumulators
	Words       uint64
	Counts      uint64
	Power       uint64
	Components  uint64
	Total       uint64
	Status      uint64
	Cells       int64
	Base        float64
	BaseSquared float64
	Weighted    uint32
	Whole       uint32
}

type wedgeColumns struct {
	RayIndex          uint64
	HitPoints         uint64
	Normals           uint64
	Directions        uint64
	SourcePoints      uint64
	InitialDirections uint64
	SrcPower          uint64
	PrimID            uint64
	BounceDepth       uint64
	Capacity          int64
}

type wedgeCounts struct {
	Events uint64
	Starts uint64
	Rows   int64
}

type scanWedgesParams struct {
	Starts uint64
	Total  uint64
	Tiles  int64
}

type placeWedgesParams struct {
	Counts   wedgeCounts
	RayIndex uint64
	Capacity int64
	RowBase  int64
}

type traceWedgesParams struct {
	Tubes tubeParams
	To    wedgeColumns
}

// Kernels of ptx/kernels/reflgrid.cu and wedges.cuh.
var (
	accumulateTubesKernel = ptx.Entry[tubeParams]{Module: "reflgrid", Name: "accumulate_tubes"}
	foldTubesKernel       = ptx.Entry[foldTubesParams]{Module: "reflgrid", Name: "fold_tubes"}
	readTubesKernel       = ptx.Entry[readTubesParams]{Module: "reflgrid", Name: "read_tubes"}
	clearWedgesKernel     = ptx.Entry[wedgeColumns]{Module: "reflgrid", Name: "clear_wedges"}
	sumWedgesKernel       = ptx.Entry[wedgeCounts]{Module: "reflgrid", Name: "sum_wedges"}
	scanWedgesKernel      = ptx.Entry[scanWedgesParams]{Module: "reflgrid", Name: "scan_wedges"}
	placeWedgesKernel     = ptx.Entry[placeWedgesParams]{Module: "reflgrid", Name: "place_wedges"}
	traceWedgesKernel     = ptx.Entry[traceWedgesParams]{Module: "reflgrid", Name: "trace_wedges"}
)

// reflGridKernels accumulate reflections. They are loaded when somebody does for the first
// time.
type reflGridKernels struct {
	module                             *cuda.Module
	accumulate, fold, read             *cuda.Function
	clearWedges, sumWedges, scanWedges *cuda.Function
	placeWedges, traceWedges           *cuda.Function
}

func loadReflGridKernels(c *cuda.Context) (*reflGridKernels, error) {
	k := &reflGridKernels{}
	var err error
	if k.module, err = loadModule(c, accumulateTubesKernel.Module); err != nil {
		return nil, err
	}
	err = functions(k.module, map[string]**cuda.Function{
		accumulateTubesKernel.Name: &k.accumulate, foldTubesKernel.Name: &k.fold, readTubesKernel.Name: &k.read,
		clearWedgesKernel.Name: &k.clearWedges, sumWedgesKernel.Name: &k.sumWedges, scanWedgesKernel.Name: &k.scanWedges,
		placeWedgesKernel.Name: &k.placeWedges, traceWedgesKernel.Name: &k.traceWedges,
	})
	if err != nil {
		return nil, firstError(err, k.module.Close())
	}
	return k, nil
}

func (s *Scene) reflGridKernels() (*reflGridKernels, error) {
	return s.kernels.reflGrid.get(func() (*reflGridKernels, error) { return loadReflGridKernels(s.ctx) })
}
