package scene

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
	"github.com/raymux/raymux/tests/gputest"
)

type sumFloatsParams struct {
	Values uint64
	Words  uint64
	Sum    uint64
	Count  int64
}

// Kernels of ptx/kernels/words.cu that only this test uses.
var (
	sumFloatsKernel = ptx.Entry[sumFloatsParams]{Module: "words", Name: "sum_floats"}
	readSumKernel   = ptx.Entry[sumFloatsParams]{Module: "words", Name: "read_sum"}
)

// adder sums floats on a device.
type adder struct {
	t         *testing.T
	c         *cuda.Context
	st        *cuda.Stream
	sum, read *cuda.Function
}

func newAdder(t *testing.T) *adder {
	a := &adder{t: t, c: gputest.Open(t, 1, nil).Context(t, 0)}
	var err error
	a.st, err = a.c.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	m, err := loadModule(a.c, sumFloatsKernel.Module)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.st.Close()); require.NoError(t, m.Close()) })
	require.NoError(t, functions(m, map[string]**cuda.Function{sumFloatsKernel.Name: &a.sum, readSumKernel.Name: &a.read}))
	return a
}

// add is words plus the values, and the sum that they mean.
func (a *adder) add(words []int64, values []float32) ([]int64, float32) {
	ctx := context.Background()
	w, err := cuda.Upload(ctx, a.st, words)
	require.NoError(a.t, err)
	v, err := cuda.Upload(ctx, a.st, append(slices.Clone(values), 0)) // never empty
	require.NoError(a.t, err)
	r, err := cuda.Upload(ctx, a.st, []float32{float32(math.NaN())})
	require.NoError(a.t, err)
	p := sumFloatsParams{Values: v.Addr(), Words: w.Addr(), Sum: r.Addr(), Count: int64(len(values))}
	sc, err := a.c.Enter()
	require.NoError(a.t, err)
	require.NoError(a.t, launchRows(sc, a.sum, a.st, max(p.Count, 1), &p))
	require.NoError(a.t, launchRows(sc, a.read, a.st, 1, &p))
	require.NoError(a.t, sc.Exit())
	out, err := cuda.Download(ctx, a.st, w)
	require.NoError(a.t, err)
	sum, err := cuda.Download(ctx, a.st, r)
	require.NoError(a.t, err)
	require.NoError(a.t, firstError(cuda.Free(w), cuda.Free(v), cuda.Free(r)))
	return out, sum[0]
}

func TestWordsOfSingleValues(t *testing.T) {
	a := newAdder(t)
	for _, c := range []struct {
		value float32
		want  [wordsPerSum]int64
	}{
		{1, [wordsPerSum]int64{4: 1}},
		{0.5, [wordsPerSum]int64{3: 2147483648}},
		{-0.75, [wordsPerSum]int64{3: -3221225472}},
		{float32(math.Ldexp(1, -104)), [wordsPerSum]int64{0: 16777216}},
		{3e-5, [wordsPerSum]int64{2: 67108864, 3: 128849}},
		{0, [wordsPerSum]int64{}},
		{math.SmallestNonzeroFloat32, [wordsPerSum]int64{}},                                 // 2^-149 is cut off
		{float32(math.Ldexp(3, -129)), [wordsPerSum]int64{0: 1}},                            // subnormal, and half of it cut off
		{float32(math.Ldexp(1<<24-1, 31)), [wordsPerSum]int64{4: 2147483648, 5: 1<<23 - 1}}, // the largest
	} {
		words, _ := a.add(make([]int64, wordsPerSum), []float32{c.value})
		require.Equal(t, c.want[:], words, "%g", c.value)
	}
}

// TestWordsAreExact adds values of mixed sign and size in several orders and pieces: the
// words are the same, and what they mean is the sum in rationals, rounded.
func TestWordsAreExact(t *testing.T) {
	a := newAdder(t)
	rng := rand.New(rand.NewPCG(17, 12))
	values := make([]float32, 20000)
	exact := new(big.Rat)
	for i := range values {
		v := float32(math.Pow(10, -12+14*rng.Float64()))
		if rng.IntN(2) == 0 {
			v = -v
		}
		values[i] = v
		exact.Add(exact, new(big.Rat).SetFloat64(float64(v)))
	}
	want, sum := a.add(make([]int64, wordsPerSum), values)
	rounded, _ := exact.Float64()
	require.Equal(t, float32(rounded), sum)
	for range 3 {
		rng.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		cut := rng.IntN(len(values))
		half, _ := a.add(make([]int64, wordsPerSum), values[:cut])
		all, again := a.add(half, values[cut:])
		require.Equal(t, want, all)
		require.Equal(t, sum, again)
	}
}
