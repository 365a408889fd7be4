package multi

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A goroutine is told from all others while these exist, and is the same on whatever thread and
// however far its stack has grown and moved.
func TestGoroutinesAreTold(t *testing.T) {
	const n = 50
	var grow func(depth int) uintptr
	grow = func(depth int) uintptr {
		var page [512]byte
		if depth == 0 {
			return goroutine()
		}
		g := grow(depth - 1)
		runtime.KeepAlive(&page)
		return g
	}
	var mu sync.Mutex
	seen := map[uintptr]bool{goroutine(): true}
	var asked, done sync.WaitGroup
	asked.Add(n)
	for range n {
		done.Go(func() {
			g := goroutine()
			for range 20 {
				runtime.Gosched()
				if goroutine() != g || grow(100) != g {
					g = 0 // which nobody is
				}
			}
			mu.Lock()
			seen[g] = true
			mu.Unlock()
			asked.Done()
			asked.Wait() // so that none takes the place of another
		})
	}
	done.Wait()
	require.Len(t, seen, n+1)
	require.NotContains(t, seen, uintptr(0))
}
