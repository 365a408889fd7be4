package scene

import "github.com/raymux/raymux/cuda"

// Visibility is the result of Visible: one row per segment.
type Visibility struct {
	Visible cuda.Slice[uint8] // 1 if no triangle blocks the segment, else 0, [n]

	block
}

// PairVisibility is the result of VisiblePair: one row per pair of segments.
type PairVisibility struct {
	VisibleA cuda.Slice[uint8] // 1 if no triangle blocks the segment to EndA, else 0, [n]
	VisibleB cuda.Slice[uint8] // the same of EndB, [n]

	block
}

// EdgeVisibility is the result of VisibleEdge: one row per edge.
type EdgeVisibility struct {
	AnyVisible cuda.Slice[uint8] // 1 if the source sees a sample, else 0, [n]

	block
}

// ChainVisibility is the result of VisibleChain: one row per polyline.
type ChainVisibility struct {
	AllVisible cuda.Slice[uint8] // 1 if no triangle blocks any segment, else 0, [n]
	// FirstBlockedSegment is the first segment that is blocked, or -1, [n].
	FirstBlockedSegment cuda.Slice[int32]
	// FirstBlockedPrim is the GlobalPrimID of what blocks that segment closest to its
	// start, [n]; among equals the smallest with the CUDA backend. It is -1 if nothing
	// does, also where a row is not visible for another reason.
	FirstBlockedPrim cuda.Slice[int32]

	block
}

// Rows is the number of segments.
func (v *Visibility) Rows() int { return int(v.rows) }

// Rows is the number of pairs.
func (v *PairVisibility) Rows() int { return int(v.rows) }

// Rows is the number of edges.
func (v *EdgeVisibility) Rows() int { return int(v.rows) }

// Rows is the number of polylines.
func (v *ChainVisibility) Rows() int { return int(v.rows) }

// Close returns the memory, as Hits.Close does.
func (v *Visibility) Close() error { return closeBlock(v.memory()) }

// Close returns the memory, as Hits.Close does.
func (v *PairVisibility) Close() error { return closeBlock(v.memory()) }

// Close returns the memory, as Hits.Close does.
func (v *EdgeVisibility) Close() error { return closeBlock(v.memory()) }

// Close returns the memory, as Hits.Close does.
func (v *ChainVisibility) Close() error { return closeBlock(v.memory()) }

func closeBlock(b *block) error {
	if b == nil {
		return nil
	}
	return b.close()
}

func (v *Visibility) memory() *block {
	if v == nil {
		return nil
	}
	return &v.block
}

func (v *PairVisibility) memory() *block {
	if v == nil {
		return nil
	}
	return &v.block
}

func (v *EdgeVisibility) memory() *block {
	if v == nil {
		return nil
	}
	return &v.block
}

func (v *ChainVisibility) memory() *block {
	if v == nil {
		return nil
	}
	return &v.block
}

// Each place points the columns into the block, where those of visibleLayouts start. fresh
// is an empty result of the same type.

func (v *Visibility) place(starts []int64) (err error) {
	v.Visible, err = column[uint8](&v.block, starts[0], v.rows)
	return err
}

func (v *PairVisibility) place(starts []int64) (err error) {
	v.VisibleA, err = column[uint8](&v.block, starts[0], v.rows)
	if err == nil {
		v.VisibleB, err = column[uint8](&v.block, starts[1], v.rows)
	}
	return err
}

func (v *EdgeVisibility) place(starts []int64) (err error) {
	v.AnyVisible, err = column[uint8](&v.block, starts[0], v.rows)
	return err
}

func (v *ChainVisibility) place(starts []int64) (err error) {
	v.AllVisible, err = column[uint8](&v.block, starts[0], v.rows)
	if err == nil {
		v.FirstBlockedSegment, err = column[int32](&v.block, starts[2], 4*v.rows)
	}
	if err == nil {
		v.FirstBlockedPrim, err = column[int32](&v.block, starts[3], 4*v.rows)
	}
	return err
}

func (*Visibility) fresh() visibleResult      { return &Visibility{} }
func (*PairVisibility) fresh() visibleResult  { return &PairVisibility{} }
func (*EdgeVisibility) fresh() visibleResult  { return &EdgeVisibility{} }
func (*ChainVisibility) fresh() visibleResult { return &ChainVisibility{} }
