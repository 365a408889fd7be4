package workload

import (
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
)

// The values of this file were computed in another language from the definition of the generator.
func TestDrawKnownValues(t *testing.T) {
	for _, c := range []struct{ seed, stream, i, want uint64 }{
		{0, 0, 0, 0xa706dd2f4d197e6f},
		{20260727, 0, 0, 0x86988e175aea1cf0},
		{20260727, 1, 7, 0xf05ade16e2f0c30b},
		{20260728, 0, 0, 0x4f552ebc439e9134},
	} {
		require.Equalf(t, c.want, NewStream(c.seed, c.stream).Draw(c.i), "draw(%d, %d, %d)", c.seed, c.stream, c.i)
	}
}

func TestUnitKnownValues(t *testing.T) {
	require.Equal(t, float32(0.5257653), NewStream(20260727, 0).Unit(0))
	require.Equal(t, float32(0.22399294), NewStream(20260727, 0).Unit(1))
	require.Zero(t, Unit(1<<40-1), "the 40 low bits do not count")
	require.Equal(t, math.Nextafter32(1, 0), Unit(math.MaxUint64), "the largest value is the float32 below 1")
}

func TestNormalKnownValues(t *testing.T) {
	require.Equal(t, -0.56663249433040619, NewStream(20260727, 3).Normal(0))
	require.Equal(t, -0.68280547857284546, NewStream(20260728, 1).Normal(5))
}

func TestNormalMoments(t *testing.T) {
	const n = 1 << 18
	s := NewStream(99, 4)
	var sum, squares float64
	for j := range uint64(n) {
		x := s.Normal(j)
		sum += x
		squares += x * x
	}
	// Four standard errors of the mean (sqrt(193/192/n)) and of the mean square (about sqrt(2/n)).
	require.InDelta(t, 0, sum/n, 4*math.Sqrt(193.0/192/n))
	require.InDelta(t, 193.0/192, squares/n, 4*math.Sqrt(2.0/n))
}

func TestNormalizeShortVector(t *testing.T) {
	x, y, z := normalize(1e-7, -1e-7, 0)
	require.Equal(t, [3]float32{0, 0, 1}, [3]float32{x, y, z})
	x, y, z = normalize(3e-6, 0, 4e-6)
	require.Equal(t, [3]float32{0.6, 0, 0.8}, [3]float32{x, y, z})
}

// mix is a bijection built of invertible steps; undoing them finds a typing error in a constant or a shift.
func TestMixIsInvertible(t *testing.T) {
	inverse := func(odd uint64) uint64 { // Newton's iteration modulo 2^64
		x := odd
		for range 6 {
			x *= 2 - odd*x
		}
		return x
	}
	unshift := func(z uint64, by int) uint64 {
		for x := z; ; {
			next := z ^ x>>by
			if next == x {
				return x
			}
			x = next
		}
	}
	for i := range uint64(64) {
		z := bits.RotateLeft64(golden*(i+1), int(i))
		back := unshift(mix(z), 31)
		back = unshift(back*inverse(0x94d049bb133111eb), 27)
		back = unshift(back*inverse(0xbf58476d1ce4e5b9), 30)
		require.Equal(t, z, back)
	}
}
