package chunked

import (
	"fmt"
	"math"
)

// Range is the half-open range of rows [Begin, End).
type Range struct {
	Begin int64 `json:"begin"`
	End   int64 `json:"end"`
}

// Len is the number of rows.
func (r Range) Len() int64 { return r.End - r.Begin }

// Split divides the n rows that start at begin among len(weights) devices, in
// device order, in proportion to the weights. With c_p the running sums of
// the weights in float64 and W their total, device p ends at
//
//	begin + trunc(n * c_p / W)        multiplied first, then divided
//
// and, where c_p is W, at begin + n. Truncation favours later devices: 33
// rows at equal weights are 16 and 17. A device of weight zero, or one whose
// share rounds to nothing, gets an empty range.
//
// The weights must satisfy [CheckWeights]. Split allocates its result only.
func Split(begin, n int64, weights []float64) []Range {
	out := split(n, 0, weights, math.Trunc)
	for p, r := range out {
		out[p] = Range{begin + r.Begin, begin + r.End}
	}
	return out
}

// SplitBlocks divides n rows, which are whole blocks, and leaves the blocks
// whole. A boundary lies at the block that is nearest to n * c_p / W, of two
// the lower one, and the first device has a block unless its weight is zero:
// no rows of the master cross a link. So k blocks at equal weights keep the
// smaller of k and len(weights) devices busy, one of them the master.
func SplitBlocks(begin, n, block int64, weights []float64) []Range {
	least := int64(0)
	if weights[0] > 0 {
		least = 1
	}
	out := split(n/block, least, weights, func(x float64) float64 { return math.Ceil(x - .5) })
	for p, r := range out {
		out[p] = Range{begin + r.Begin*block, begin + r.End*block}
	}
	return out
}

// split cuts n rows where round says, of which the first device has at least
// so many.
func split(n, least int64, weights []float64, round func(float64) float64) []Range {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	// Dividing by a power of two changes no cut, and keeps n * c_p finite.
	_, exp := math.Frexp(total)
	whole := math.Ldexp(total, -exp)
	out := make([]Range, len(weights))
	sum, prev := 0.0, int64(0)
	for p, w := range weights {
		sum += w
		cut := n
		if sum < total {
			// n*W/W may round to less than n, and that row must not go to a
			// device of weight zero. The clamp is for products that round up.
			cut = min(max(int64(round(float64(n)*math.Ldexp(sum, -exp)/whole)), prev, least), n)
		}
		out[p] = Range{prev, cut}
		prev = cut
	}
	return out
}

// CheckWeights reports why weights cannot divide a batch among n devices: a
// count other than n, a value that is negative or not finite, or a sum that
// is zero or not finite. It is an [*OptionError] of the given name.
func CheckWeights(name string, weights []float64, n int) error {
	if len(weights) != n {
		return &OptionError{name, fmt.Sprintf("%d values for %d devices: give one weight per device, in device order", len(weights), n)}
	}
	sum := 0.0
	for p, w := range weights {
		if math.IsNaN(w) || math.IsInf(w, 0) || w < 0 {
			return &OptionError{name, fmt.Sprintf("weight %d is %v: weights are finite and at least 0", p, w)}
		}
		sum += w
	}
	if sum == 0 || math.IsInf(sum, 0) {
		return &OptionError{name, fmt.Sprintf("the weights add up to %v: the sum must be positive and finite", sum)}
	}
	return nil
}
