package scene

import "github.com/raymux/raymux/ptx"

type sortCountParams struct {
	Keys     uint64
	Counters uint64
	Count    int64
	Tiles    int64
	Shift    int64
}

type sortScanParams struct {
	Counters uint64
	Tiles    int64
}

type sortMoveParams struct {
	Keys      uint64
	Values    uint64
	KeysOut   uint64
	ValuesOut uint64
	Counters  uint64
	Count     int64
	Tiles     int64
	Shift     int64
}

// Kernels of ptx/kernels/sort.cu.
var (
	sortCountKernel = ptx.Entry[sortCountParams]{Module: "sort", Name: "sort_count"}
	sortScanKernel  = ptx.Entry[sortScanParams]{Module: "sort", Name: "sort_scan"}
	sortMoveKernel  = ptx.Entry[sortMoveParams]{Module: "sort", Name: "sort_move"}
)
