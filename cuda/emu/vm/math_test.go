package vm

import (
	"math"
	"math/bits"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMathLibrary runs what the device library makes of mathematical functions: polynomials, table
// look-ups and calls, compared with Go's functions within the errors that CUDA documents.
func TestMathLibrary(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	const n = 256
	x, y := make([]float64, n), make([]float64, n)
	xf, yf := make([]float32, n), make([]float32, n)
	for i := range n {
		xf[i], yf[i] = rng.Float32()*50+0.01, rng.Float32()*20-10
		x[i], y[i] = float64(xf[i]), float64(yf[i])
	}
	two := func(f func(a float64) float64) func(a, b float64) float64 {
		return func(a, _ float64) float64 { return f(a) }
	}
	second := func(f func(a float64) float64) func(a, b float64) float64 {
		return func(_, b float64) float64 { return f(b) }
	}
	rsq := func(a float64) float64 { return 1 / math.Sqrt(a) }
	inv := func(a float64) float64 { return 1 / a }
	ld := func(a float64) float64 { return a * 8 }
	fns := []func(a, b float64) float64{
		func(a, b float64) float64 { return a / b }, two(math.Sqrt), func(a, b float64) float64 { return math.FMA(a, b, 1) }, two(math.Sin), two(math.Cos),
		second(math.Exp), two(math.Log), math.Atan2, math.Pow, two(rsq), two(math.Floor), second(math.Ceil), two(math.RoundToEven), second(math.Trunc), second(math.Abs),
		math.Min, math.Max, math.Mod, two(math.Cbrt), second(math.Erf), math.Hypot, second(math.Tan), math.Copysign, two(ld), two(inv)}
	r := rigFile(t, "math.ptx").kernel("mathF64")
	out := r.alloc(uint64(8*n*len(fns)), false)
	r.mustRun(1, n, upload(r, x), upload(r, y), out)
	got := download[float64](r, out, n*len(fns))
	for k, f := range fns {
		for i := range n {
			want := f(x[i], y[i])
			require.InDelta(t, want, got[n*k+i], 1e-14*(1+math.Abs(want)), "function %d of %v, %v", k, x[i], y[i])
		}
	}

	fns = append(fns, two(math.Sin), second(math.Exp), two(math.Log), func(a, b float64) float64 { return a / b }, math.Pow, second(math.Tanh),
		second(func(b float64) float64 { return math.Acos(b / 100) }), two(math.Round), second(func(b float64) float64 { return max(0, min(1, b)) }),
		two(func(a float64) float64 { return math.Sin(float64(float32(a) * 1e6)) }))
	r.kernel("mathF32")
	out = r.alloc(uint64(4*n*len(fns)), false)
	r.mustRun(1, n, upload(r, xf), upload(r, yf), out)
	got32 := download[float32](r, out, n*len(fns))
	for k, f := range fns {
		for i := range n {
			want := f(x[i], y[i])
			require.InDelta(t, want, got32[n*k+i], 2e-6*(1+math.Abs(want)), "function %d of %v, %v", k, x[i], y[i])
		}
	}
}

func TestIntegerLibrary(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	const n = 128
	x, y := make([]int32, n), make([]int32, n)
	for i := range n {
		x[i], y[i] = int32(rng.Uint32()), int32(rng.Uint32()>>rng.Intn(28))
	}
	fns := []func(a, b int32, la, lb int64) int32{
		func(a, b int32, _, _ int64) int32 { return a / (b | 1) },
		func(a, b int32, _, _ int64) int32 { return a % (b | 1) },
		func(a, b int32, _, _ int64) int32 { return int32(uint32(a) / uint32(b|1)) },
		func(a, b int32, _, _ int64) int32 { return int32(uint32(a) % uint32(b|1)) },
		func(_, _ int32, la, lb int64) int32 { return int32(la / (lb | 1)) },
		func(a, b int32, _, _ int64) int32 { return int32(int64(a) * int64(b) >> 32) },
		func(a, b int32, _, _ int64) int32 { return int32(uint64(uint32(a)) * uint64(uint32(b)) >> 32) },
		func(_, _ int32, la, lb int64) int32 {
			hi, _ := bits.Mul64(uint64(la), uint64(lb))
			if la < 0 {
				hi -= uint64(lb)
			}
			if lb < 0 {
				hi -= uint64(la)
			}
			return int32(hi)
		},
		func(a, _ int32, _, _ int64) int32 { return int32(bits.OnesCount32(uint32(a))) },
		func(a, _ int32, _, _ int64) int32 { return int32(bits.LeadingZeros32(uint32(a))) },
		func(a, _ int32, _, _ int64) int32 { return int32(bits.TrailingZeros32(uint32(a))+1) % 33 },
		func(a, _ int32, _, _ int64) int32 { return int32(bits.Reverse32(uint32(a))) },
	}
	r := rigFile(t, "math.ptx").kernel("integers")
	const columns = 35
	out := r.alloc(4*n*columns, false)
	r.mustRun(1, n, upload(r, x), upload(r, y), out)
	got := download[int32](r, out, n*columns)
	for k, f := range fns {
		for i := range n {
			a, b := x[i], y[i]
			la, lb := int64(a)<<20^int64(b), int64(b)<<11^int64(a)
			require.Equal(t, f(a, b, la, lb), got[n*k+i], "function %d of %d, %d", k, a, b)
		}
	}
}
