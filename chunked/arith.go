package chunked

import "math"

// Sums and products of sizes stop at the largest int64, which no budget
// reaches: a size that is out of range is refused like one that is too large.

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func mul(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// ceilDiv is ceil(a/b) for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}

// scale is ceil(f*width/floorWidth); the product may exceed an int64.
func scale(f, width int64) int64 {
	return add(mul(f/floorWidth, width), ceilDiv(mul(f%floorWidth, width), floorWidth))
}
