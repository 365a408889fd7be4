package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
)

// Sizes of dedup.cu.
const (
	scanThreads = 256
	scanTile    = 2048 // values per block
)

type pathColumns struct {
	PrimIDs        uint64
	Keys           uint64
	Origins        uint64
	Canonical      uint64
	CanonicalCount int64
	Bounces        int64
}

type scanned struct {
	Values uint64
	Totals uint64
}

type hashPathsParams struct {
	Paths  pathColumns
	Hashes uint64
	Rows   uint64
	Mask   uint64
	Count  int64
}

type markRunsParams struct {
	Paths      pathColumns
	Hashes     uint64
	Rows       uint64
	Heads      uint64
	Firsts     uint64
	Collisions uint64
	Count      int64
}

type scanTilesParams struct {
	Values uint64
	Totals uint64
	Count  int64
}

type scanTotalsParams struct {
	Totals uint64
	Total  uint64
	Tiles  int64
}

type placeRunsParams struct {
	Hashes uint64
	Heads  scanned
	Starts uint64
	Runs   int64
	Count  int64
}

type writeGroupsParams struct {
	Paths          pathColumns
	Rows           uint64
	Starts         uint64
	Firsts         scanned
	Groups         uint64
	Representative uint64
	DiscoveryCount uint64
	BounceCount    uint64
	PrimIDs        uint64
	KeysOut        uint64
	OriginsOut     uint64
	RowBase        int64
	Count          int64
}

type writeRowGroupsParams struct {
	Hashes     uint64
	Rows       uint64
	Heads      scanned
	Groups     uint64
	GroupOfRow uint64
	Count      int64
}

// Kernels of ptx/kernels/dedup.cu.
var (
	hashPathsKernel      = ptx.Entry[hashPathsParams]{Module: "dedup", Name: "hash_paths"}
	markRunsKernel       = ptx.Entry[markRunsParams]{Module: "dedup", Name: "mark_runs"}
	scanTilesKernel      = ptx.Entry[scanTilesParams]{Module: "dedup", Name: "scan_tiles"}
	scanTotalsKernel     = ptx.Entry[scanTotalsParams]{Module: "dedup", Name: "scan_totals"}
	placeRunsKernel      = ptx.Entry[placeRunsParams]{Module: "dedup", Name: "place_runs"}
	writeGroupsKernel    = ptx.Entry[writeGroupsParams]{Module: "dedup", Name: "write_groups"}
	writeRowGroupsKernel = ptx.Entry[writeRowGroupsParams]{Module: "dedup", Name: "write_row_groups"}
)

// dedupKernels group rows. They are loaded when rows are grouped for the first time.
type dedupKernels struct {
	module                     *cuda.Module
	hashPaths, markRuns        *cuda.Function
	scanTiles, scanTotals      *cuda.Function
	placeRuns                  *cuda.Function
	writeGroups, writeRowGroup *cuda.Function
}

func loadDedupKernels(c *cuda.Context) (*dedupKernels, error) {
	k := &dedupKernels{}
	var err error
	if k.module, err = loadModule(c, hashPathsKernel.Module); err != nil {
		return nil, err
	}
	err = functions(k.module, map[string]**cuda.Function{
		hashPathsKernel.Name: &k.hashPaths, markRunsKernel.Name: &k.markRuns,
		scanTilesKernel.Name: &k.scanTiles, scanTotalsKernel.Name: &k.scanTotals,
		placeRunsKernel.Name: &k.placeRuns, writeGroupsKernel.Name: &k.writeGroups,
		writeRowGroupsKernel.Name: &k.writeRowGroup,
	})
	if err != nil {
		return nil, firstError(err, k.module.Close())
	}
	return k, nil
}

// launchBlocks enqueues a kernel of so many blocks.
func launchBlocks[P any](sc cuda.Scope, f *cuda.Function, st *cuda.Stream, blocks int64, threads uint32, p *P) error {
	return sc.Launch(f, st, cuapi.Dim3{X: uint32(blocks), Y: 1, Z: 1}, cuapi.Dim3{X: threads, Y: 1, Z: 1}, 0, cuda.ParamBytes(p))
}
