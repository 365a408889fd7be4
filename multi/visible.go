package multi

import (
	"context"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// The visibility operations. Their rows are complete when they have been searched, so
// that a remote row sends back what the result holds.
var (
	visibleOperation      = operation{key: OpVisible, family: OpVisible, record: 1}
	visiblePairOperation  = operation{key: OpVisiblePair, family: OpVisiblePair, record: 2}
	visibleEdgeOperation  = operation{key: OpVisibleEdge, family: OpVisibleEdge, record: 1}
	visibleChainOperation = operation{key: OpVisibleChain, family: OpVisibleChain, record: 9}
)

// Visible tells for every segment whether no triangle blocks it, as scene.Visible
// does, on all devices of the set. Segments and result are on the master; the call
// returns when the work is enqueued on the caller's stream.
//
// Cost, per remote device with rows: one launch and five event operations; with the
// Copy transport also one copy per column. No wait, and no driver allocation once the
// pools are warm.
func (s *Scene) Visible(ctx context.Context, in scene.Segments, opts ...scene.CallOption) (*scene.Visibility, error) {
	return ask(ctx, s, visibleOperation, opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.Visibility, *scene.Call, error) {
		return m.PrepareVisible(ctx, in, opts...)
	})
}

// VisiblePair is scene.VisiblePair on all devices of the set. All else is as for
// Visible.
func (s *Scene) VisiblePair(ctx context.Context, in scene.SegmentPairs, opts ...scene.CallOption) (*scene.PairVisibility, error) {
	return ask(ctx, s, visiblePairOperation, opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.PairVisibility, *scene.Call, error) {
		return m.PrepareVisiblePair(ctx, in, opts...)
	})
}

// VisibleEdge is scene.VisibleEdge on all devices of the set. All else is as for
// Visible.
func (s *Scene) VisibleEdge(ctx context.Context, in scene.EdgeSamples, opts ...scene.CallOption) (*scene.EdgeVisibility, error) {
	return ask(ctx, s, visibleEdgeOperation, opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.EdgeVisibility, *scene.Call, error) {
		return m.PrepareVisibleEdge(ctx, in, opts...)
	})
}

// VisibleChain is scene.VisibleChain on all devices of the set. All else is as for
// Visible, but that a remote device reads the points of every segment again: rows of several
// segments that all end soon, on open ground for example, take longer than on the master alone
// (docs/adr/floor.md). Weights or MinRaysPerDevice keep them there.
func (s *Scene) VisibleChain(ctx context.Context, in scene.Polylines, opts ...scene.CallOption) (*scene.ChainVisibility, error) {
	return ask(ctx, s, visibleChainOperation, opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.ChainVisibility, *scene.Call, error) {
		return m.PrepareVisibleChain(ctx, in, opts...)
	})
}

// VisibleOp describes Visible to the planner. ignored is the ignored ids per row;
// active says whether there is a mask.
func VisibleOp(ignored int64, active bool) chunked.Op {
	return visibleOperation.with(24+4*ignored, active)
}

// VisiblePairOp describes VisiblePair to the planner, with ignored ids per row.
func VisiblePairOp(ignored int64, active bool) chunked.Op {
	return visiblePairOperation.with(36+4*ignored, active)
}

// VisibleEdgeOp describes VisibleEdge to the planner.
func VisibleEdgeOp(active bool) chunked.Op { return visibleEdgeOperation.with(44, active) }

// VisibleChainOp describes VisibleChain to the planner, for polylines of so many
// segments with ignored ids for each.
func VisibleChainOp(segments, ignored int64, active bool) chunked.Op {
	return visibleChainOperation.with(12*(segments+1)+4+4*segments*ignored, active)
}

// with describes an operation whose rows are searched and sent back as a whole.
func (o operation) with(in int64, active bool) chunked.Op {
	if active {
		in++
	}
	return chunked.Op{Key: o.key, Family: o.family, In: in, Wire: o.record, Record: o.record}
}
