package workload

import (
	"math"
	"math/bits"
)

// golden is 2^64 divided by the golden ratio, the increment of SplitMix64.
const golden = 0x9E3779B97F4A7C15

func mix(z uint64) uint64 {
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	z *= 0x94d049bb133111eb
	z ^= z >> 31
	return z
}

// Stream is one stream of a seed, reduced to the state from which any of its elements follows.
type Stream uint64

// NewStream returns the given stream of a seed.
func NewStream(seed, stream uint64) Stream { return Stream(mix(seed + golden*(stream+1))) }

// Draw returns element i of the stream: 64 uniformly distributed bits that depend on the seed, the stream and i alone.
func (s Stream) Draw(i uint64) uint64 { return mix(uint64(s) + golden*(i+1)) }

// Unit returns element i of the stream as a value in [0, 1).
func (s Stream) Unit(i uint64) float32 { return Unit(s.Draw(i)) }

// Normal returns normal value j of the stream: mean 0 and variance 193/192, made of draws 2j and 2j+1. Every step is
// exact in float64.
func (s Stream) Normal(j uint64) float64 {
	ones := bits.OnesCount64(s.Draw(2 * j))
	fraction := float64(s.Unit(2*j+1)) - 0.5
	return (float64(ones-32) + fraction) / 4
}

// Unit maps a draw to [0, 1) by its 24 highest bits. The result is exact.
func Unit(draw uint64) float32 { return float32(draw>>40) * (1.0 / (1 << 24)) }

// normalize returns the unit vector along (x, y, z), computed in float64 and rounded to float32 component by component.
// A vector shorter than 1e-6 becomes the z axis.
func normalize(x, y, z float64) (float32, float32, float32) {
	n2 := float64(float64(x*x)+float64(y*y)) + float64(z*z)
	if n2 < 1e-12 {
		return 0, 0, 1
	}
	n := math.Sqrt(n2)
	return float32(x / n), float32(y / n), float32(z / n)
}
