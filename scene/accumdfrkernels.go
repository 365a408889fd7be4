package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
)

// Counters of an accumulator, behind the words of all cells, and then the number of
// blocks that have ended. What follows is how many chunks of each pair were taken in a
// launch, if there are few pairs: zero again when it has ended.
const (
	dfrCounters = 4
	dfrTail     = dfrCounters + 1
	// dfrCounts are the counters of a result.
	dfrCounts = 6
)

type dfrReadout struct {
	Words    uint64
	Counters uint64
	Power    uint64
	Counts   uint64
	Kept     uint64
	Cells    int64
	Azimuths int64
}

type accumDfrParams struct {
	Pool        uint64
	Slots       uint64
	Legs        uint64
	States      uint64
	Active      uint64
	Words       uint64
	Counters    uint64
	Ticket      uint64
	Arrived     uint64
	Taken       uint64
	Media       media
	Factor      float64
	Cells       cells
	PerArea     float32
	Key         uint32
	AzimuthKey  uint32
	StatesCount uint32
	ActiveCount uint32
	Pairs       uint32
	PerPair     uint32
	OneMore     uint32
	Begin       uint32
	End         uint32
	First       uint32
	Visited     uint32
	Spread      uint32
	Groups      uint32
	Group       uint32
	Step        uint32
	Copies      uint32
	FanNodes    uint32
	Chunk       uint32
	Coarse      uint32
	Fine        uint32
	Launches    uint32
	Readout     dfrReadout
}

type sumDfrParams struct {
	Words   uint64
	Readout dfrReadout
	Parts   accumulators
}

// Kernels of ptx/kernels/accumdfr.cu.
var (
	accumDfrCellsKernel    = ptx.Entry[accumDfrParams]{Module: "accumdfr", Name: "accum_dfr_cells"}
	accumDfrAzimuthsKernel = ptx.Entry[accumDfrParams]{Module: "accumdfr", Name: "accum_dfr_azimuths"}
	readDfrKernel          = ptx.Entry[dfrReadout]{Module: "accumdfr", Name: "read_dfr"}
	sumDfrKernel           = ptx.Entry[sumDfrParams]{Module: "accumdfr", Name: "sum_dfr"}
)

// accumDfrKernels are loaded by the first AccumDfrDirect.
type accumDfrKernels struct {
	module                     *cuda.Module
	cells, azimuths, read, sum *cuda.Function
	// See the constants; tests take few.
	fanRounds                                       uint32
	fanNodes, leastRounds, leastChunk, searchRounds int64
}

func loadAccumDfrKernels(c *cuda.Context) (*accumDfrKernels, error) {
	k := &accumDfrKernels{
		fanRounds: fanRounds, fanNodes: fanNodes, leastRounds: leastRounds, leastChunk: leastChunk, searchRounds: searchRounds,
	}
	var err error
	if k.module, err = loadModule(c, accumDfrCellsKernel.Module); err != nil {
		return nil, err
	}
	err = functions(k.module, map[string]**cuda.Function{
		accumDfrCellsKernel.Name: &k.cells, accumDfrAzimuthsKernel.Name: &k.azimuths,
		readDfrKernel.Name: &k.read, sumDfrKernel.Name: &k.sum,
	})
	if err != nil {
		return nil, firstError(err, k.module.Close())
	}
	return k, nil
}

func (s *Scene) accumDfrKernels() (*accumDfrKernels, error) {
	return s.kernels.accumDfr.get(func() (*accumDfrKernels, error) { return loadAccumDfrKernels(s.ctx) })
}
