package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
)

// Polylines is a batch of n polylines of up to S segments each, under the rules of
// Segments. All columns are on the scene's device.
//
// Only the first Length[i] segments of row i exist, of at most S. A row without
// segments is visible; one that is inactive, of negative length, or with a coordinate
// that is not finite among the points of its segments, is not, and nothing blocks it.
type Polylines struct {
	// Points are in metres: 3(S+1) values per row.
	Points cuda.Slice[float32]
	// Length is the number of segments of each row: n values.
	Length cuda.Slice[int32]
	// Segments is S, at least 1.
	Segments int
	// Ignore is k triangles for each of the n*S segments, row by row, that do not
	// block it: n*S*k values, otherwise as for Segments. Absent: every triangle counts.
	Ignore cuda.Slice[int32]
	// Active is n bytes, zero for rows to skip, or absent.
	Active cuda.Slice[uint8]
}

// VisibleChain tells for every polyline whether no triangle blocks any of its
// segments, or else the first segment that is blocked and what blocks it first.
//
// Stream, errors and cost are as for Visible; the result has nine bytes per row. Of
// a row, segments are searched in order up to the first that is blocked, and that one
// twice.
func (s *Scene) VisibleChain(ctx context.Context, in Polylines, opts ...CallOption) (*ChainVisibility, error) {
	return ask(ctx, s, func() (*ChainVisibility, *Call, error) { return s.prepareChain(in, opts) })
}

// PrepareVisibleChain does all of VisibleChain that precedes the launches. For
// schedulers.
func (s *Scene) PrepareVisibleChain(ctx context.Context, in Polylines, opts ...CallOption) (*ChainVisibility, *Call, error) {
	return prepared(ctx, s, func() (*ChainVisibility, *Call, error) { return s.prepareChain(in, opts) })
}

func (s *Scene) prepareChain(in Polylines, opts []CallOption) (*ChainVisibility, *Call, error) {
	b := s.newVisibleBatch("VisibleChain", visibleChain)
	if in.Segments < 1 || in.Segments >= math.MaxInt32 {
		b.refuse("Segments", "is %d, want 1 or more segments per row", in.Segments)
	}
	b.q.rows.Segments = int32(in.Segments)
	b.count("Length", in.Length.Len(), 1)
	addColumn(b, lengthColumn, "Length", in.Length, 1)
	addColumn(b, startColumn, "Points", in.Points, 3*(int64(in.Segments)+1))
	b.addIgnored(in.Ignore, int64(in.Segments), "segments")
	b.addActive(in.Active)
	return prepareBatch[ChainVisibility](b, opts)
}
