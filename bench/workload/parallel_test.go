package workload

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParallelCoversOnce(t *testing.T) {
	for _, n := range []int{0, 1, parallelMin - 1, 2 * parallelMin, 5*parallelMin + 3} {
		visits := make([]atomic.Int32, n)
		parallel(n, func(begin, end int) {
			for i := begin; i < end; i++ {
				visits[i].Add(1)
			}
		})
		for i := range visits {
			require.EqualValues(t, 1, visits[i].Load(), "n %d, item %d", n, i)
		}
	}
}
