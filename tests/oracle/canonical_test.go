package oracle

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// One rounding, checked against arbitrary precision, on operands of every
// size including products that almost cancel.
func TestFma32(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	random := func() float32 {
		for {
			f := math.Float32frombits(rng.Uint32())
			if f == f && !math.IsInf(float64(f), 0) {
				return f
			}
		}
	}
	exact := func(f float32) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(float64(f)) }
	for i := range 300_000 {
		a, b, c := random(), random(), random()
		switch i % 4 {
		case 1: // halfway and near-cancelling cases
			c = -float32(float64(a) * float64(b))
		case 2:
			c = float32(float64(a)*float64(b)) * math.Float32frombits(0x33800000)
		case 3:
			a, b = float32(rng.IntN(1<<13)), float32(rng.IntN(1<<13))
			c = float32(rng.IntN(1 << 24))
		}
		if math.IsInf(float64(c), 0) || c != c {
			continue
		}
		sum := exact(a)
		sum.Mul(sum, exact(b)).Add(sum, exact(c))
		want, _ := sum.Float32()
		require.Equal(t, want, fma32(a, b, c), "%g*%g + %g", a, b, c)
	}
}

// On unambiguous rows the two oracles must name the same triangle.
func TestCanonicalAgreesWithFloat64(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var v []float32
	var f []int32
	for i := range 200 {
		var c [3]float32
		for k := range c {
			c[k] = rng.Float32()*2 - 1
		}
		for range 3 {
			for k := range c {
				v = append(v, c[k]+(rng.Float32()-.5)*.5)
			}
		}
		f = append(f, int32(3*i), int32(3*i+1), int32(3*i+2))
	}
	o, c := New(v, f), NewCanonical(v, f)
	certain, hits := 0, 0
	for range 5000 {
		var ro, rd [3]float32
		for k := range ro {
			ro[k], rd[k] = rng.Float32()*2-1, rng.Float32()*2-1
		}
		want := o.Intersect(ro, rd, inf32)
		if want.Ambiguous {
			continue
		}
		certain++
		prim, tt := c.Winner(ro, rd, inf32)
		require.Equal(t, want.Prim, prim)
		if prim >= 0 {
			hits++
			require.InDelta(t, want.T, float64(tt), want.H)
		}
	}
	require.Greater(t, certain, 4500)
	require.Greater(t, hits, 1000)
}

// A ray exactly through a shared edge or vertex of a closed fan hits exactly
// one triangle: the one with the smallest id among equal t.
func TestCanonicalOnEdges(t *testing.T) {
	c := NewCanonical([]float32{0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0}, []int32{0, 1, 2, 0, 2, 3})
	for _, p := range [][2]float32{{.5, .5}, {0, 0}, {1, 1}, {.25, .25}} {
		prim, tt := c.Winner([3]float32{p[0], p[1], -1}, [3]float32{0, 0, 1}, inf32)
		require.Equal(t, 0, prim)
		require.Equal(t, float32(1), tt)
	}
	prim, _ := c.Winner([3]float32{0, 1, -1}, [3]float32{0, 0, 1}, inf32)
	require.Equal(t, 1, prim)
	prim, _ = c.Winner([3]float32{-1e-6, .5, -1}, [3]float32{0, 0, 1}, inf32)
	require.Equal(t, -1, prim)
	prim, _ = c.Winner([3]float32{.5, .25, -1}, [3]float32{0, 0, 1}, 1)
	require.Equal(t, 0, prim, "both ends are closed")
}
