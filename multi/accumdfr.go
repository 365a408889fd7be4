package multi

import (
	"context"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// AccumDfrDirect adds up the diffraction of all wedge states on a grid, as
// scene.AccumDfrDirect does, with the lanes divided among the devices of the set. Mask and
// result are on the master, tables come from UploadStates and UploadMaterials. A window is
// divided like all lanes. Sums are sums of integers: the result is bitwise that of one
// device, whatever the weights, the chunks and the transport.
//
// It runs on the master alone when a remote would get fewer lanes than
// Options.MinLanesPerDevice, by default 1048576, and for Keller samples one more for every
// six bytes of the accumulator. Offload is refused: the result is one grid. The call returns
// when the work is enqueued on the caller's stream.
//
// Cost, for accumulators of up to 256 KiB, or 5460 cells, with the Direct transport and
// without a budget: the launches of scene.AccumDfrDirect on every device without the fill,
// and two event operations per remote and one in all. Direct samples of up to 256 cells, and
// 2048 pairs of a state and a cell, have one sum on the master, to which the devices add over
// links that have atomic operations (Link.Atomics): two or three words of every warp, of which
// there are as many as a device holds, or four times as many where lanes search. Others cost
// one launch more that sums the accumulators of all devices, which up to 4096 cells reads the
// result out, too. Each device keeps 1 MiB for them until the set is closed, and clears it when
// it is used up. Larger ones are leased, a fill and two event operations more per remote, and
// with the Copy and Host transports copied, once or twice, and added by a launch each. A mask
// adds two event operations. No wait, and no driver allocation once the pools are warm.
//
// Devices get the lanes that Plan says, or where there are more than 2048 pairs of a state and
// a cell (Keller samples: states), of fewer than 4096 lanes each, about as many of whole pairs.
func (s *Scene) AccumDfrDirect(ctx context.Context, states *scene.StateTable, grid scene.Grid, opt scene.DfrDirectOptions, opts ...scene.CallOption) (*scene.DfrAccum, error) {
	describe := func() chunked.Op {
		return AccumDfrDirectOp(grid, stateCount(states), tableBytes(states, opt.Materials), opt)
	}
	return askGrid(ctx, s, keyDfrDirect, directFloor(opt), describe, opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.DfrAccum, *scene.GridCall, error) {
		return m.PrepareAccumDfrDirect(ctx, states, grid, opt, opts...)
	})
}

// AccumDfrCoherentDirect adds up the diffracted fields of all wedge states on a grid, as
// scene.AccumDfrCoherentDirect does, with the pairs of state and cell divided among the
// devices of the set, cell by cell. A cell whose states are on two devices is put together
// on the master. All else is as for AccumDfrDirect, with 36 bytes per cell, 292 more for each
// of up to 4096 cells with as many states or more, and by default at least 2097152 lanes.
func (s *Scene) AccumDfrCoherentDirect(ctx context.Context, states *scene.StateTable, grid scene.Grid, opt scene.DfrCoherentOptions, opts ...scene.CallOption) (*scene.DfrCoherentAccum, error) {
	describe := func() chunked.Op {
		return AccumDfrCoherentDirectOp(grid, stateCount(states), tableBytes(states, opt.Materials), opt)
	}
	return askGrid(ctx, s, keyDfrCoherent, coherentLanes, describe, opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.DfrCoherentAccum, *scene.GridCall, error) {
		return m.PrepareAccumDfrCoherentDirect(ctx, states, grid, opt, opts...)
	})
}
