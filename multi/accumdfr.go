package multi

import (
	"context"

	"github.com/raymux/raymux/scene"
)

// AccumDfrDirect adds up the diffraction of all wedge states on a grid, as
// scene.AccumDfrDirect does, with the lanes divided among the devices of the set. Mask and
// result are on the master, tables come from UploadStates and UploadMaterials. A window is
// divided like all lanes. Sums are sums of integers: the result is bitwise that of one
// device, whatever the weights, the chunks and the transport.
//
// It runs on the master alone when a remote would get fewer lanes than
// Options.MinLanesPerDevice. Offload is refused: the result is one grid. The call returns
// when the work is enqueued on the caller's stream.
//
// Cost, per remote device with lanes: a fill and the launches of scene.AccumDfrDirect, three
// event operations, and one launch on the master that adds 48 bytes per cell, after one
// copy of them with the Copy and two with the Host transport. No wait, and no driver
// allocation once the pools are warm.
func (s *Scene) AccumDfrDirect(ctx context.Context, states *scene.StateTable, grid scene.Grid, opt scene.DfrDirectOptions, opts ...scene.CallOption) (*scene.DfrAccum, error) {
	o := dfrDirectOperation(grid.Cells(), tableBytes(states, opt.Materials))
	return askGrid(ctx, s, o, opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.DfrAccum, *scene.GridCall, error) {
		return m.PrepareAccumDfrDirect(ctx, states, grid, opt, opts...)
	})
}

// AccumDfrCoherentDirect adds up the diffracted fields of all wedge states on a grid, as
// scene.AccumDfrCoherentDirect does, with the pairs of state and cell divided among the
// devices of the set, cell by cell. A cell whose states are on two devices is put together
// on the master. All else is as for AccumDfrDirect, with 36 bytes per cell.
func (s *Scene) AccumDfrCoherentDirect(ctx context.Context, states *scene.StateTable, grid scene.Grid, opt scene.DfrCoherentOptions, opts ...scene.CallOption) (*scene.DfrCoherentAccum, error) {
	o := dfrCoherentOperation(grid.Cells(), tableBytes(states, opt.Materials), opt.KeepWords)
	return askGrid(ctx, s, o, opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.DfrCoherentAccum, *scene.GridCall, error) {
		return m.PrepareAccumDfrCoherentDirect(ctx, states, grid, opt, opts...)
	})
}
