package scene

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
)

func TestTurnsExclude(t *testing.T) {
	var turns turns
	var sharing, alone atomic.Int32
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for range 200 {
				exclusive := i%4 == 0
				if err := turns.take(context.Background(), exclusive); !assert.NoError(t, err) {
					return
				}
				if exclusive {
					assert.Equal(t, int32(1), alone.Add(1))
					assert.Zero(t, sharing.Load())
					alone.Add(-1)
				} else {
					sharing.Add(1)
					assert.Zero(t, alone.Load())
					sharing.Add(-1)
				}
				turns.done(exclusive)
			}
		})
	}
	wg.Wait()
}

// A waiting change is not overtaken by later queries.
func TestTurnsKeepTheirOrder(t *testing.T) {
	ctx := context.Background()
	var turns turns
	require.NoError(t, turns.share(ctx))
	changed := make(chan struct{})
	go func() {
		assert.NoError(t, turns.exclude(ctx))
		close(changed)
	}()
	waiting(t, &turns, 1)
	queried := make(chan struct{})
	go func() {
		assert.NoError(t, turns.share(ctx))
		close(queried)
	}()
	waiting(t, &turns, 2)
	turns.done(false)
	<-changed
	select {
	case <-queried:
		t.Fatal("a query got a turn during a change")
	case <-time.After(10 * time.Millisecond):
	}
	turns.done(true)
	<-queried
}

func TestTurnsRespectTheContext(t *testing.T) {
	var turns turns
	require.NoError(t, turns.share(context.Background()))
	ctx, cancel := context.WithCancel(context.Background())
	refused := make(chan error)
	go func() { refused <- turns.exclude(ctx) }()
	waiting(t, &turns, 1)
	queried := make(chan error)
	go func() { queried <- turns.share(context.Background()) }()
	waiting(t, &turns, 2)
	cancel()
	require.ErrorIs(t, <-refused, context.Canceled)
	// The query waited only for the change that has given up.
	require.NoError(t, <-queried)
	turns.done(false)
	turns.done(false)
	require.ErrorIs(t, turns.share(ctx), context.Canceled)
	require.NoError(t, turns.exclude(context.Background()), "a turn was lost")
}

func TestTurnsClose(t *testing.T) {
	var turns turns
	require.NoError(t, turns.share(context.Background()))
	closed := make(chan bool)
	go func() { closed <- turns.close() }()
	waiting(t, &turns, 1)
	require.ErrorIs(t, turns.share(context.Background()), cuda.ErrClosed)
	assert.False(t, turns.close(), "closed twice")
	turns.done(false)
	assert.True(t, <-closed)
}

func waiting(t *testing.T, turns *turns, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		turns.mu.Lock()
		defer turns.mu.Unlock()
		return len(turns.queue) == n
	}, 10*time.Second, time.Millisecond)
}
