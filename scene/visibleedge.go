package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// defaultFractions are the samples of an edge if nothing else is asked for.
var defaultFractions = [...]float32{0, .25, .5, .75, 1}

// EdgeSamples is a batch of n edges, each a piece of a straight line that is looked at
// from a source. All columns are on the scene's device.
//
// Sample i of a row is Position + (TMin + Fractions[i]*span)*Direction with span =
// max(TMax-TMin, 0). The segment from the source to a sample is under the rules of
// Segments: a sample that is not finite counts as blocked. A row is not visible when
// it is inactive, or when a coordinate of Source, Position or Direction is not finite.
type EdgeSamples struct {
	// Source and Position are points in metres, Direction is vectors of any length:
	// 3n values each.
	Source, Position, Direction cuda.Slice[float32]
	// TMin and TMax bound the edge, in units of Direction: n values each.
	TMin, TMax cuda.Slice[float32]
	// Active is n bytes, zero for rows to skip, or absent.
	Active cuda.Slice[uint8]
	// Fractions are 1 to 16 finite numbers in host memory, the same for all rows and
	// not limited to the edge. nil: 0, .25, .5, .75 and 1.
	Fractions []float32
}

// VisibleEdge tells for every edge whether its source sees any of its samples.
//
// Stream, errors and cost are as for Visible; the samples of a row are looked at one
// after the other until one is seen.
func (s *Scene) VisibleEdge(ctx context.Context, in EdgeSamples, opts ...CallOption) (*EdgeVisibility, error) {
	return ask(ctx, s, func() (*EdgeVisibility, *Call, error) { return s.prepareEdge(in, opts) })
}

// PrepareVisibleEdge does all of VisibleEdge that precedes the launches. For
// schedulers.
func (s *Scene) PrepareVisibleEdge(ctx context.Context, in EdgeSamples, opts ...CallOption) (*EdgeVisibility, *Call, error) {
	return prepared(ctx, s, func() (*EdgeVisibility, *Call, error) { return s.prepareEdge(in, opts) })
}

func (s *Scene) prepareEdge(in EdgeSamples, opts []CallOption) (*EdgeVisibility, *Call, error) {
	b := s.newVisibleBatch("VisibleEdge", visibleEdge)
	b.count("Source", in.Source.Len(), 3)
	addColumn(b, startColumn, "Source", in.Source, 3)
	addColumn(b, endColumn, "Position", in.Position, 3)
	addColumn(b, directionColumn, "Direction", in.Direction, 3)
	addColumn(b, tMinColumn, "TMin", in.TMin, 1)
	addColumn(b, tMaxColumn, "TMax", in.TMax, 1)
	b.addActive(in.Active)
	b.addFractions(in.Fractions)
	return prepareBatch[EdgeVisibility](b, opts)
}
