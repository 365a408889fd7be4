package cuda

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRoundSize(t *testing.T) {
	for _, c := range []struct{ n, want uint64 }{
		{1, 512}, {512, 512}, {513, 1024}, {4096, 4096}, {4097, 4608}, {8192, 8192}, {8193, 9216},
		{1 << 20, 1 << 20}, {1<<20 + 1, 1<<20 + 1<<17}, {1 << 30, 1 << 30}, {1<<30 + 1, 1<<30 + 32<<20},
	} {
		assert.Equal(t, c.want, roundSize(c.n), "%d", c.n)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		n := 1 + r.Uint64N(1<<r.UintN(47))
		got := roundSize(n)
		require.GreaterOrEqual(t, got, n)
		require.Equal(t, got, roundSize(got), "a size is its own class")
		require.Zero(t, got%512)
		if n > 4096 {
			require.LessOrEqual(t, float64(got), float64(n)*1.125, "%d", n)
		}
		require.Less(t, got-n, uint64(32<<20))
		require.LessOrEqual(t, roundSize(n), roundSize(n+1))
	}
}
