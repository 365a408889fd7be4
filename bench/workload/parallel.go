package workload

import (
	"runtime"
	"sync"
)

// parallelMin is the number of items below which starting goroutines costs more than it saves.
const parallelMin = 1 << 12

// parallel calls f on contiguous ranges that cover [0, n) once, one range per processor. Items are independent, so the
// result does not depend on the cut.
func parallel(n int, f func(begin, end int)) {
	workers := min(runtime.GOMAXPROCS(0), n/parallelMin)
	if workers < 2 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { f(w*n/workers, (w+1)*n/workers) })
	}
	wg.Wait()
}
