package multi

import (
	"context"
	"math"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// Keys of the accumulations for the planner.
const (
	keyDfrDirect   = OpAccumDfrDirect
	keyDfrCoherent = OpAccumDfrCoherentDirect
	keyReflGrid    = OpAccumulateReflections
)

// AccumulateReflections adds up the reflections of a fan of rays on a grid, as
// scene.AccumulateReflections does, with the rays divided among the devices of the set. All
// arrays are on the master. Wedge events are those of one device, in the same slots: a
// remote counts the events of its rays, and the master finds them once more.
//
// It runs on the master alone when a remote would get fewer rays than
// Options.MinLanesPerDevice, by default 262144, and one for every 28 bytes that always come
// back: 4 per cell over a direct link, else all. Sums have 68 bytes per cell. With the Direct
// transport the launch that reads the result out sums the accumulators of up to 16 devices, and
// reads of them the counts and the cells that have contributions. All else is as for
// AccumDfrDirect, and with the Copy and Host transports there are copies of the rays and of one
// byte per ray for wedge events.
func (s *Scene) AccumulateReflections(ctx context.Context, rays scene.Rays, grid scene.Grid, opt scene.ReflGridOptions, opts ...scene.CallOption) (*scene.ReflGrids, error) {
	describe := func() chunked.Op {
		return AccumulateReflectionsOp(grid, 0, tableBytes(nil, opt.Materials), opt)
	}
	return askGrid(ctx, s, keyReflGrid, rayLanes, describe, opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.ReflGrids, *scene.GridCall, error) {
		return m.PrepareAccumulateReflections(ctx, rays, grid, opt, opts...)
	})
}

// Default floors of lanes: what two H200 gain from, of the least work that is known of each
// operation (docs/adr/floor.md). Accumulators of Keller samples count a sample for every six
// bytes; direct samples of many cells are so much more work that theirs do not.
const (
	directLanes   = 1 << 20
	kellerLanes   = 1 << 20
	coherentLanes = 1 << 21
	rayLanes      = chunked.DefaultMinLanes
)

// directFloor is the least number of lanes that AccumDfrDirect gives to a remote by default,
// whatever the grid.
func directFloor(opt scene.DfrDirectOptions) int64 {
	if opt.KellerSamples > 0 {
		return kellerLanes
	}
	return directLanes
}

// Sizes of a cell of the grids, and of a wedge event.
const (
	reflCellBytes  = 28
	reflSumBytes   = 68
	reflCountBytes = 4 // of which the master reads those that are not zero
	wedgeBytes     = 80
)

// gridOp describes an accumulation with so many bytes of inputs and of outputs per row.
func gridOp(key string, lanes, in, out int64, grid chunked.Grid) chunked.Op {
	return chunked.Op{Key: key, Family: key, Class: chunked.GridReduce, In: in, Scratch: out, MinLanes: lanes, Grid: grid}
}

// AccumDfrDirectOp describes AccumDfrDirect of so many states to the planner. replicated is the
// bytes of the inputs that every remote has whole: states, materials, mask. The rows of its plan
// are those of the window.
func AccumDfrDirectOp(grid scene.Grid, states, replicated int64, opt scene.DfrDirectOptions) chunked.Op {
	cells := grid.Cells()
	bytes, copies := scene.DfrDirectMemory(states, grid, opt)
	g := chunked.Grid{Accumulator: bytes + 8, ReadOut: 4 * cells, Replicated: replicated} // 8: a counter of the result
	lanes := directFloor(opt)
	if opt.KellerSamples > 0 {
		lanes += (48*cells + 48 + 5) / 6
	}
	if copies > 0 {
		g.Copies, g.Copy = 1+copies, 48*cells
	}
	return gridOp(keyDfrDirect, lanes, 0, 0, g)
}

// AccumDfrCoherentDirectOp describes AccumDfrCoherentDirect of so many states to the planner;
// the rest is as for AccumDfrDirectOp.
func AccumDfrCoherentDirectOp(grid scene.Grid, states, replicated int64, opt scene.DfrCoherentOptions) chunked.Op {
	bytes, cut := scene.DfrCoherentMemory(states, grid, opt)
	g := chunked.Grid{Accumulator: bytes, Replicated: replicated}
	if opt.KeepWords {
		g.ReadOut = 24 * grid.Cells()
	} else if cut > 0 { // two such cells are counted always
		g.Accumulator += 600
		if cut > 2 {
			g.Cut, g.Cuts = scene.CutBytes, min(cut-2, mostCuts)
		}
	}
	return gridOp(keyDfrCoherent, coherentLanes, 0, 0, g)
}

// mostCuts is more than plans have chunks.
const mostCuts = 1 << 20

// AccumulateReflectionsOp describes AccumulateReflections to the planner. rayBytes is 24,
// plus 4 with TMax, 1 with Active, and 12 for each of a transmitter and a polarization per
// ray. replicated is the bytes of the materials, and of a transmitter and polarization that
// all rays share.
func AccumulateReflectionsOp(grid scene.Grid, rayBytes, replicated int64, opt scene.ReflGridOptions) chunked.Op {
	cells, marks := grid.Cells(), int64(0)
	g := chunked.Grid{Accumulator: reflSumBytes*cells + 8, Least: reflCountBytes*cells + 8, ReadOut: reflCellBytes * cells, Replicated: replicated}
	if opt.CollectWedges {
		g.Events = wedgeBytes * min(int64(opt.WedgeCapacity), math.MaxInt64/wedgeBytes) // more than any plan accepts
		if opt.MaxBounces > 0 {
			marks = 1
		}
	}
	return gridOp(keyReflGrid, rayLanes, rayBytes, marks, g)
}
