package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// Segments is a batch of n segments. All columns are on the scene's device.
//
// A segment is blocked if a triangle crosses it, on whichever side, at least eps away
// from both ends, where eps is the larger of 20 µm and a millionth of the largest
// coordinate of the ends: points on surfaces see each other in spite of rounding. A
// segment not longer than 2 eps is visible. A row is not visible when it is inactive,
// when a coordinate is not finite, or when its length overflows.
type Segments struct {
	// Start and End are the ends in metres: 3n values each.
	Start, End cuda.Slice[float32]
	// Ignore is k triangles for each row, by GlobalPrimID, that do not block it: n*k
	// values, k follows from their number. Ids that do not exist, like -1, match
	// nothing. Absent: every triangle counts.
	Ignore cuda.Slice[int32]
	// Active is n bytes, zero for rows to skip, or absent.
	Active cuda.Slice[uint8]
}

// Visible tells for every segment whether no triangle blocks it.
//
// The work is enqueued on the scene's stream or the stream of OnStream, and Visible
// returns without waiting for it. Errors are those of Intersect. Cost: one launch and
// a fill of twelve bytes per 2^30 rows; no driver allocation once the pool holds a
// result of that size, which has one byte per row. With OptiX, the first call on a
// device compiles its programs.
func (s *Scene) Visible(ctx context.Context, in Segments, opts ...CallOption) (*Visibility, error) {
	return ask(ctx, s, func() (*Visibility, *Call, error) { return s.prepareVisible(in, opts) })
}

// PrepareVisible does all of Visible that precedes the launches. For schedulers.
func (s *Scene) PrepareVisible(ctx context.Context, in Segments, opts ...CallOption) (*Visibility, *Call, error) {
	return prepared(ctx, s, func() (*Visibility, *Call, error) { return s.prepareVisible(in, opts) })
}

func (s *Scene) prepareVisible(in Segments, opts []CallOption) (*Visibility, *Call, error) {
	b := s.newVisibleBatch("Visible", visibleSegment)
	b.count("Start", in.Start.Len(), 3)
	addColumn(b, startColumn, "Start", in.Start, 3)
	addColumn(b, endColumn, "End", in.End, 3)
	b.addIgnored(in.Ignore, 1, "rows")
	b.addActive(in.Active)
	return prepareBatch[Visibility](b, opts)
}

// SegmentPairs is a batch of n pairs of segments with a common start, under the rules
// of Segments. A row with a coordinate that is not finite sees neither end.
type SegmentPairs struct {
	// Start, EndA and EndB are points in metres: 3n values each.
	Start, EndA, EndB cuda.Slice[float32]
	// Ignore is as for Segments, for both segments of a row.
	Ignore cuda.Slice[int32]
	// Active is n bytes, zero for rows to skip, or absent.
	Active cuda.Slice[uint8]
}

// VisiblePair tells for every pair which of its two segments no triangle blocks.
//
// Stream, errors and cost are as for Visible; the result has two bytes per row.
func (s *Scene) VisiblePair(ctx context.Context, in SegmentPairs, opts ...CallOption) (*PairVisibility, error) {
	return ask(ctx, s, func() (*PairVisibility, *Call, error) { return s.preparePair(in, opts) })
}

// PrepareVisiblePair does all of VisiblePair that precedes the launches. For
// schedulers.
func (s *Scene) PrepareVisiblePair(ctx context.Context, in SegmentPairs, opts ...CallOption) (*PairVisibility, *Call, error) {
	return prepared(ctx, s, func() (*PairVisibility, *Call, error) { return s.preparePair(in, opts) })
}

func (s *Scene) preparePair(in SegmentPairs, opts []CallOption) (*PairVisibility, *Call, error) {
	b := s.newVisibleBatch("VisiblePair", visiblePair)
	b.count("Start", in.Start.Len(), 3)
	addColumn(b, startColumn, "Start", in.Start, 3)
	addColumn(b, endColumn, "EndA", in.EndA, 3)
	addColumn(b, otherEndColumn, "EndB", in.EndB, 3)
	b.addIgnored(in.Ignore, 1, "rows")
	b.addActive(in.Active)
	return prepareBatch[PairVisibility](b, opts)
}
