package scene

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOnceMakesOneValue(t *testing.T) {
	var o once[int]
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			v, err := o.get(func() (int, error) {
				time.Sleep(time.Millisecond)
				return int(made.Add(1)), nil
			})
			assert.NoError(t, err)
			assert.Equal(t, 1, v)
		})
	}
	wg.Wait()
	v, ok := o.take()
	assert.True(t, ok)
	assert.Equal(t, 1, v)
	_, ok = o.take()
	assert.False(t, ok)
	v, err := o.get(func() (int, error) { return 7, nil })
	require.NoError(t, err)
	assert.Equal(t, 7, v)
}

// Those who waited for an attempt that failed, or panicked, make their own.
func TestOnceForgetsFailures(t *testing.T) {
	var o once[int]
	begun, fail := make(chan struct{}), make(chan struct{})
	broken := errors.New("broken")
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := o.get(func() (int, error) {
			close(begun)
			<-fail
			return 1, broken
		})
		assert.ErrorIs(t, err, broken)
	})
	<-begun
	wg.Go(func() {
		v, err := o.get(func() (int, error) { return 2, nil })
		assert.NoError(t, err)
		assert.Equal(t, 2, v)
	})
	close(fail)
	wg.Wait()

	var p once[int]
	assert.Panics(t, func() { _, _ = p.get(func() (int, error) { panic("broken") }) })
	v, err := p.get(func() (int, error) { return 3, nil })
	require.NoError(t, err)
	assert.Equal(t, 3, v)
}
