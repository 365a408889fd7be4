package multi

import (
	"context"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// Keys of the accumulations for the planner.
const (
	keyDfrDirect   = "accum_dfr_direct"
	keyDfrCoherent = "accum_dfr_coherent_direct"
	keyReflGrid    = "accumulate_reflections"
)

// AccumulateReflections adds up the reflections of a fan of rays on a grid, as
// scene.AccumulateReflections does, with the rays divided among the devices of the set. All
// arrays are on the master. Wedge events are those of one device, in the same slots: a
// remote counts the events of its rays, and the master finds them once more.
//
// It runs on the master alone when a remote would get fewer rays than
// Options.MinLanesPerDevice, by default 262144, and one for every 28 bytes of the
// accumulator. All else is as
// for AccumDfrDirect, with 68 bytes per cell, and with the Copy and Host transports copies
// of the rays and of one byte per ray for wedge events.
func (s *Scene) AccumulateReflections(ctx context.Context, rays scene.Rays, grid scene.Grid, opt scene.ReflGridOptions, opts ...scene.CallOption) (*scene.ReflGrids, error) {
	o := reflGridOperation(grid.Cells(), tableBytes(nil, opt.Materials), int64(opt.WedgeCapacity))
	return askGrid(ctx, s, o, opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.ReflGrids, *scene.GridCall, error) {
		return m.PrepareAccumulateReflections(ctx, rays, grid, opt, opts...)
	})
}

// Default floors of lanes: what two H200 gain from, of the least work that is known of each
// operation (docs/adr/floor.md). Accumulators of Keller samples count as rows of an
// intersection; direct samples of many cells are so much more work that theirs do not.
const (
	directLanes   = 1 << 21
	kellerLanes   = 1 << 19
	coherentLanes = 1 << 21
	rayLanes      = chunked.DefaultMinLanes
)

func dfrDirectOperation(cells, replicated int64, opt *scene.DfrDirectOptions) gridOperation {
	o := gridOperation{key: keyDfrDirect, lanes: directLanes, grid: chunked.Grid{Accumulator: 48*cells + 48, ReadOut: 4 * cells, Replicated: replicated}}
	if opt.KellerSamples > 0 {
		o.lanes = kellerLanes + (o.grid.Accumulator+27)/28
	}
	return o
}

// dfrCoherentOperation has exact sums of every cell with words, and without them of those
// that launches divide.
func dfrCoherentOperation(cells, replicated int64, words bool) gridOperation {
	o := gridOperation{key: keyDfrCoherent, lanes: coherentLanes, grid: chunked.Grid{Accumulator: 36*cells + 600, Replicated: replicated}, cell: 292}
	if words {
		o.grid.Accumulator, o.grid.ReadOut, o.cell = 300*cells, 24*cells, 0
	}
	return o
}

func reflGridOperation(cells, replicated, events int64) gridOperation {
	return gridOperation{key: keyReflGrid, lanes: rayLanes, grid: chunked.Grid{
		Accumulator: 68*cells + 8, ReadOut: reflCellBytes * cells, Replicated: replicated, Events: wedgeBytes * events,
	}}
}

// Sizes of a cell of the grids, and of a wedge event.
const (
	reflCellBytes = 28
	wedgeBytes    = 80
)

// AccumDfrDirectOp describes AccumDfrDirect to the planner. replicated is the bytes of the
// inputs that every remote has whole: states, materials, mask. A call of at most 2048 pairs of
// a state and a cell, or with Keller samples of as many states, has 4 bytes more for each in
// its accumulators, which does not change how it is divided.
func AccumDfrDirectOp(grid scene.Grid, replicated int64, opt scene.DfrDirectOptions) chunked.Op {
	op := dfrDirectOperation(grid.Cells(), replicated, &opt).with(0, 0)
	if n := scene.KellerCopies(opt.KellerSamples, grid); n > 0 {
		op.Grid.Copies = 1 + n
	}
	return op
}

// AccumDfrCoherentDirectOp describes AccumDfrCoherentDirect without words and with at most
// two divided cells to the planner; replicated is as for AccumDfrDirectOp.
func AccumDfrCoherentDirectOp(grid scene.Grid, replicated int64) chunked.Op {
	return dfrCoherentOperation(grid.Cells(), replicated, false).with(0, 0)
}

// AccumulateReflectionsOp describes AccumulateReflections to the planner. rayBytes is 24,
// plus 4 with TMax, 1 with Active, and 12 for each of a transmitter and a polarization per
// ray. replicated is the bytes of the materials, and of a transmitter and polarization that
// all rays share.
func AccumulateReflectionsOp(grid scene.Grid, rayBytes, replicated int64, opt scene.ReflGridOptions) chunked.Op {
	counts := int64(0)
	if opt.CollectWedges {
		counts = 1
	}
	return reflGridOperation(grid.Cells(), replicated, int64(opt.WedgeCapacity)).with(rayBytes, counts)
}
