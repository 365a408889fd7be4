package chunked

import (
	"math"
	"math/bits"
)

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

// inBytes is the bytes of n times so many bits.
func inBytes(n, rowBits int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(rowBits))
	lo, carry := bits.Add64(lo, 7, 0)
	return narrow(hi+carry, lo, 8)
}

// perBits is how often so many bits, at least one, fit into bytes.
func perBits(bytes, rowBits int64) int64 {
	hi, lo := bits.Mul64(uint64(bytes), 8)
	return narrow(hi, lo, uint64(rowBits))
}

// narrow is the quotient.
func narrow(hi, lo, divisor uint64) int64 {
	if hi >= divisor {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, divisor)
	return int64(min(q, math.MaxInt64))
}

// scale is ceil(f*width/floorWidth); the product may exceed an int64.
func scale(f, width int64) int64 {
	return add(mul(f/floorWidth, width), ceilDiv(mul(f%floorWidth, width), floorWidth))
}
