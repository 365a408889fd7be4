package chunked_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

type splitter func(begin, n int64, weights []float64) []chunked.Range

var cuts = []struct {
	begin, n int64
	w        []float64
	ends     []int64
}{
	{0, 33, []float64{1, 1}, []int64{16, 33}},
	{0, 33, []float64{9, 1}, []int64{29, 33}},
	{0, 33, []float64{.9, .1}, []int64{29, 33}},
	{0, 33, []float64{3, 2}, []int64{19, 33}},
	{0, 33, []float64{1, 0}, []int64{33, 33}},
	{0, 33, []float64{0, 1}, []int64{0, 33}},
	{0, 1, []float64{1, 1}, []int64{0, 1}},
	{0, 10, []float64{0, 1, 0, 1}, []int64{0, 5, 5, 10}},
	{0, 7, ones(8), []int64{0, 1, 2, 3, 4, 5, 6, 7}},
	{0, 16, []float64{1, 1}, []int64{8, 16}},
	{0, 31, []float64{1, 1}, []int64{15, 31}},
	{0, 100, ones(3), []int64{33, 66, 100}},
	{0, 8192, []float64{3, 1}, []int64{6144, 8192}},
	{0, 1000003, ones(4), []int64{250000, 500001, 750002, 1000003}},
	{0, 4194304, []float64{1, .25}, []int64{3355443, 4194304}},
	{0, 4194304, []float64{1.002, .998}, []int64{2101346, 4194304}},
	{0, 1000, []float64{1e-9, 1}, []int64{0, 1000}},
	{0, 10, []float64{1, 1e-17}, []int64{10, 10}},
	{7, 64, []float64{1, 1}, []int64{39, 71}},
	{0, 49, []float64{1, 48}, []int64{1, 49}}, // 49 * (1/49) rounds to less than 1
	// n*W/W rounds to one less than n: the rest would go to weight zero.
	{0, 1760714, []float64{2.9747122881652217, 0}, []int64{1760714, 1760714}},
	// n*W exceeds a float64.
	{0, 1 << 40, []float64{8e307, 8e307}, []int64{1 << 39, 1 << 40}},
	{0, 8, []float64{5e-324, 5e-324}, []int64{4, 8}},
}

func TestChunkedSplit(t *testing.T) {
	for _, c := range cuts {
		require.NoError(t, checkCut(chunked.Split, c.begin, c.n, c.w, c.ends))
	}
	// The sum of ten times 0.1 differs from 1 and must be that of the cuts.
	last := chunked.Split(0, 100, []float64{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 0})[10]
	require.Equal(t, chunked.Range{Begin: 100, End: 100}, last)
}

func checkCut(split splitter, begin, n int64, w []float64, ends []int64) error {
	got := split(begin, n, w)
	at := begin
	for p, r := range got {
		if r != (chunked.Range{Begin: at, End: ends[p]}) {
			return fmt.Errorf("%d rows from %d by %v: %v, want ends %v", n, begin, w, got, ends)
		}
		at = r.End
	}
	return nil
}

// checkSplit is what holds for every split: it covers the batch once, in
// order; each cut is within a row of the exact one; a weight of zero gets
// nothing; a power of two as a factor changes nothing.
func checkSplit(split splitter, begin, n int64, w []float64) error {
	got := split(begin, n, w)
	fail := func(what string) error { return fmt.Errorf("%d rows from %d by %v: %v: %s", n, begin, w, got, what) }
	if len(got) != len(w) {
		return fail("count")
	}
	total, sum := 0.0, 0.0
	scaled := make([]float64, len(w))
	for p, v := range w {
		total += v
		scaled[p] = v * 1024
	}
	at := begin
	for p, r := range got {
		sum += w[p]
		if r.Begin != at || r.End < r.Begin {
			return fail("not contiguous")
		}
		if w[p] == 0 && r.Len() > 0 {
			return fail("a weight of zero has rows")
		}
		at = r.End
		// Truncation takes less than a row, rounding next to nothing.
		exact := new(big.Rat).Mul(new(big.Rat).SetInt64(n), new(big.Rat).SetFloat64(sum))
		exact.Quo(exact, new(big.Rat).SetFloat64(total))
		exact.Sub(exact, new(big.Rat).SetInt64(at-begin))
		if exact.Abs(exact).Cmp(big.NewRat(1025, 1024)) > 0 {
			return fail(fmt.Sprintf("cut %d is not that of the weights", p))
		}
	}
	if at != begin+n {
		return fail("rows are missing")
	}
	if !slices.Equal(got, split(begin, n, scaled)) {
		return fail("scaling changes a cut")
	}
	return nil
}

func randomWeights(rng *rand.Rand, n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		switch rng.IntN(4) {
		case 0:
			w[i] = float64(rng.IntN(4))
		case 1, 2:
			w[i] = rng.Float64() * 3
		case 3:
			w[i] = math.Exp(rng.NormFloat64() * 8)
		}
	}
	if chunked.CheckWeights("w", w, n) != nil {
		w[rng.IntN(n)] = 1
	}
	return w
}

func TestChunkedSplitProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		w := randomWeights(rng, 1+rng.IntN(8))
		require.NoError(t, checkSplit(chunked.Split, rng.Int64N(1000), rng.Int64N(1<<uint(rng.IntN(41))), w))
	}
}

// broken splits by the rule of end(n, c, W), which has the mistake.
func broken(end func(n, c, w float64) float64) splitter {
	return func(begin, n int64, weights []float64) []chunked.Range {
		total, sum, prev := 0.0, 0.0, int64(0)
		for _, w := range weights {
			total += w
		}
		out := make([]chunked.Range, len(weights))
		for p, w := range weights {
			sum += w
			cut := n
			if p < len(weights)-1 {
				cut = min(max(int64(end(float64(n), sum, total)), prev), n)
			}
			out[p] = chunked.Range{Begin: begin + prev, End: begin + cut}
			prev = cut
		}
		return out
	}
}

// The tests above notice every one of these mistakes.
func TestChunkedBrokenSplitters(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, split := range map[string]splitter{
		"rounds up":               broken(func(n, c, w float64) float64 { return math.Ceil(n * c / w) }),
		"rounds to nearest":       broken(func(n, c, w float64) float64 { return math.Round(n * c / w) }),
		"divides first":           broken(func(n, c, w float64) float64 { return n * (c / w) }),
		"keeps whole n*W/W":       broken(func(n, c, w float64) float64 { return n * c / w }),
		"aligns to warps":         broken(func(n, c, w float64) float64 { return 32 * math.Trunc(n*c/w/32) }),
		"computes in float32":     broken(func(n, c, w float64) float64 { return float64(float32(n) * float32(c) / float32(w)) }),
		"ignores where it starts": func(_, n int64, w []float64) []chunked.Range { return chunked.Split(0, n, w) },
		"drops the last row": func(begin, n int64, w []float64) []chunked.Range {
			out := chunked.Split(begin, n, w)
			out[len(out)-1].End--
			return out
		},
		"overlaps": func(begin, n int64, w []float64) []chunked.Range {
			out := chunked.Split(begin, n, w)
			for p := 1; p < len(out); p++ {
				out[p].Begin = max(out[p].Begin-1, begin)
			}
			return out
		},
		"truncates shares": func(begin, n int64, w []float64) []chunked.Range {
			total, at := 0.0, begin
			for _, v := range w {
				total += v
			}
			out := make([]chunked.Range, len(w))
			for p, v := range w {
				out[p] = chunked.Range{Begin: at, End: at + int64(float64(n)*v/total)}
				at = out[p].End
			}
			out[len(w)-1].End = begin + n
			return out
		},
	} {
		caught := false
		for _, c := range cuts {
			caught = caught || checkCut(split, c.begin, c.n, c.w, c.ends) != nil
		}
		for range 2_000 {
			caught = caught || checkSplit(split, rng.Int64N(1000), rng.Int64N(1<<30), randomWeights(rng, 1+rng.IntN(8))) != nil
		}
		require.True(t, caught, "a splitter that %s passes", name)
	}
}

// k blocks at equal weights keep the smaller of k and n devices busy, the master among them, and shares differ
// by at most one block.
func TestChunkedSplitBlocksEqually(t *testing.T) {
	const block = 3
	for n := 1; n <= 8; n++ {
		for k := range int64(40) {
			got := chunked.SplitBlocks(5, k*block, block, ones(n))
			at, busy, least, most := int64(5), int64(0), k, int64(0)
			for _, r := range got {
				require.Equal(t, at, r.Begin)
				require.Zero(t, r.Len()%block)
				at, least, most = r.End, min(least, r.Len()/block), max(most, r.Len()/block)
				busy += min(r.Len()/block, 1)
			}
			require.Equal(t, 5+k*block, at)
			require.Equal(t, min(k, int64(n)), busy, "%d blocks: %v", k, got)
			require.True(t, k == 0 || got[0].Len() > 0, "%d blocks: %v", k, got)
			require.LessOrEqual(t, most-least, int64(1), "%d blocks: %v", k, got)
		}
	}
}

// Boundaries lie at the nearest block, and the master is idle only where it has no weight or there is no block.
func TestChunkedSplitBlocks(t *testing.T) {
	for _, c := range []struct {
		k    int64
		w    []float64
		ends []int64
	}{
		{5, ones(2), []int64{2, 5}}, // 2.5: the lower one
		{1, ones(8), []int64{1, 1, 1, 1, 1, 1, 1, 1}},
		{4, ones(8), []int64{1, 1, 1, 2, 2, 3, 3, 4}},
		{1, []float64{100, 1}, []int64{1, 1}},
		{1, []float64{1, 100}, []int64{1, 1}},
		{1, []float64{0, 1}, []int64{0, 1}},
		{2, []float64{100, 1}, []int64{2, 2}}, // 1.98
		{5, []float64{2, 1}, []int64{3, 5}},   // 3.33
		{4, []float64{2, 1}, []int64{3, 4}},   // 2.67
		{50, []float64{1, 100}, []int64{1, 50}},
		{100, []float64{3, 1, 0}, []int64{75, 100, 100}},
		{0, ones(2), []int64{0, 0}},
	} {
		at := int64(0)
		for p, r := range chunked.SplitBlocks(0, c.k, 1, c.w) {
			require.Equal(t, chunked.Range{Begin: at, End: c.ends[p]}, r, "%d by %v, device %d", c.k, c.w, p)
			at = r.End
		}
	}
}

func TestChunkedSplitBlocksProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 5_000 {
		k, w := rng.Int64N(1<<uint(rng.IntN(20))), randomWeights(rng, 1+rng.IntN(8))
		total, sum, at := 0.0, 0.0, int64(0)
		for _, v := range w {
			total += v
		}
		for p, r := range chunked.SplitBlocks(0, k, 1, w) {
			sum += w[p]
			require.Equal(t, at, r.Begin)
			require.False(t, w[p] == 0 && r.Len() > 0, "%d by %v", k, w)
			at = r.End
			near := math.Abs(float64(at)-float64(k)*(sum/total)) <= .5+1e-6
			require.True(t, near || at == 1 && w[0] > 0, "%d by %v: end %d at %d", k, w, p, at)
		}
		require.Equal(t, k, at)
	}
}

func TestChunkedCheckWeights(t *testing.T) {
	for name, w := range map[string][]float64{
		"count": {1}, "negative": {1, -1}, "NaN": {1, math.NaN()}, "infinite": {1, math.Inf(1)},
		"zero": {0, 0}, "overflow": {1e308, 1e308},
	} {
		var oe *chunked.OptionError
		require.ErrorAs(t, chunked.CheckWeights("Weights", w, 2), &oe, name)
		require.Equal(t, "Weights", oe.Option)
	}
	require.NoError(t, chunked.CheckWeights("Weights", []float64{0, 2.5}, 2))
	require.EqualError(t, chunked.CheckWeights("Weights", []float64{1}, 2),
		"chunked: Weights: 1 values for 2 devices: give one weight per device, in device order")
}
