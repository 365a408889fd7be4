//go:build linux && (amd64 || arm64) && !nocuda

package optixabi

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/dl"
)

// counter counts records that arrive as they were sent.
type counter struct{ n atomic.Int64 }

func (c *counter) Enabled(context.Context, slog.Level) bool { return true }
func (c *counter) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *counter) WithGroup(string) slog.Handler            { return c }
func (c *counter) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && r.Message == "from a thread of C" {
		c.n.Add(1)
	}
	return nil
}

// TestLogFromThreads has threads that the C library made send messages, as
// the OptiX library does from its compiler threads.
func TestLogFromThreads(t *testing.T) {
	libc, err := dl.Open([]string{"libc.so.6", "libpthread.so.0"}, dl.Options{Symbol: "pthread_create"})
	require.NoError(t, err)
	create, _ := libc.Lookup("pthread_create")
	join, ok := libc.Lookup("pthread_join")
	require.True(t, ok)

	var c counter
	fn, key := logTarget(slog.New(&c))
	defer loggers.remove(key)
	var pins runtime.Pinner
	defer pins.Unpin()
	text := []byte("TAG\x00from a thread of C\x00")
	pins.Pin(&text[0])
	base := uintptr(unsafe.Pointer(&text[0]))
	const messages = 20
	body := dl.NewCallback(func(uintptr) uintptr {
		for range messages {
			dl.Call(fn, uintptr(LogWarning), base, base+4, key)
		}
		return 0
	})
	threads := make([]uintptr, 8)
	pins.Pin(&threads[0])
	for i := range threads {
		r := dl.Call(create, uintptr(unsafe.Pointer(&threads[i])), 0, body, 0)
		require.Zero(t, int32(r))
	}
	for _, thread := range threads {
		require.Zero(t, int32(dl.Call(join, thread, 0)))
	}
	assert.EqualValues(t, messages*len(threads), c.n.Load())
}
