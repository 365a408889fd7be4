package cuda

import (
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// closer is a value that notes when it is closed.
type closer func() error

func (c closer) Close() error { return c() }

func TestAttachment(t *testing.T) {
	d, err := OpenEmulator(1)
	require.NoError(t, err)
	type key int
	var order []int
	attach := func(k key, err error) io.Closer {
		v, e := d.Attachment(k, func() io.Closer {
			return &struct{ closer }{func() error { order = append(order, int(k)); return err }}
		})
		require.NoError(t, e)
		return v
	}
	failure := errors.New("does not close")
	first := attach(1, nil)
	second := attach(2, failure)
	assert.NotSame(t, first, second)

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			v, err := d.Attachment(key(1), func() io.Closer { panic("made twice") })
			assert.NoError(t, err)
			assert.Same(t, first, v)
		})
	}
	wg.Wait()

	// What an attachment holds until the driver closes is no leak.
	c, err := d.devices[0].Retain()
	require.NoError(t, err)
	_, err = d.Attachment(key(3), func() io.Closer { return closer(c.Close) })
	require.NoError(t, err)
	require.ErrorIs(t, d.Close(), failure)
	assert.Equal(t, []int{2, 1}, order)
	_, err = d.Attachment(key(1), func() io.Closer { panic("made after Close") })
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, d.Close(), failure)
	assert.Equal(t, []int{2, 1}, order)
}
