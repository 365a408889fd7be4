package cuda

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The largest block of a class is less than an eighth larger than what was asked for, a new block less
// than a hundredth.
func TestFitting(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		want fit
	}{
		{1, fit{512, 512, 512, 512}}, {512, fit{512, 512, 512, 512}}, {513, fit{1024, 1024, 1024, 512}},
		{4097, fit{4608, 4608, 4608, 512}}, {8193, fit{8704, 8704, 9216, 512}},
		{1 << 20, fit{1 << 20, 15<<16 + 4096, 1 << 20, 4096}},
		{1<<20 + 1, fit{1<<20 + 8192, 1<<20 + 8192, 1<<20 + 1<<17, 8192}},
		{1 << 30, fit{1 << 30, 1<<30 - 30<<20, 1 << 30, 2 << 20}},
		{1<<30 + 1, fit{1<<30 + 2<<20, 1<<30 + 2<<20, 1<<30 + 32<<20, 2 << 20}},
		{3 * 76 << 19, fit{3 * 76 << 19, 112<<20 + 1<<19, 120 << 20, 1 << 19}}, // three chunks of 2^19 whole records
	} {
		assert.Equal(t, c.want, fitting(c.n), "%d", c.n)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		n := 1 + r.Uint64N(1<<r.UintN(47))
		f := fitting(n)
		require.GreaterOrEqual(t, f.size, n)
		require.LessOrEqual(t, f.size, f.most)
		require.LessOrEqual(t, f.least, f.size)
		require.LessOrEqual(t, f.most-f.least, 15*f.step)
		for size := f.least; size <= f.most; size += f.step {
			have := fitting(size)
			require.Equal(t, size, have.size, "a size of the class of %d fits itself", n)
			require.Equal(t, f.most, have.most, "and is of the same class")
		}
		require.Zero(t, f.size%512)
		if n > 64<<10 {
			require.Less(t, float64(f.size), float64(n)*1.01, "%d", n)
		}
		if n > 4096 {
			require.LessOrEqual(t, float64(f.most), float64(n)*1.125, "%d", n)
		}
		require.Less(t, f.most-n, uint64(32<<20))
		require.LessOrEqual(t, f.most, fitting(n+1).most)
	}
}
