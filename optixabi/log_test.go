//go:build !nocuda && (linux || windows)

package optixabi_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/dl"
	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
)

// recorder is a slog handler that keeps lines of level, text and tag.
type recorder struct {
	mu    sync.Mutex
	lines []string
	panic bool
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recorder) WithGroup(string) slog.Handler            { return r }
func (r *recorder) Handle(_ context.Context, rec slog.Record) error {
	line := rec.Level.String() + " " + rec.Message
	rec.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	r.mu.Lock()
	r.lines = append(r.lines, line)
	r.mu.Unlock()
	if r.panic {
		panic("a handler that panics")
	}
	return nil
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

// TestLog checks levels, texts and dispatch to the logger of each context.
func TestLog(t *testing.T) {
	f := newFake(t, fakeoptix.Config{})
	table := negotiate(t, f)
	var all, errorsOnly recorder
	a, err := table.DeviceContextCreate(0, optixabi.DeviceContextOptions{Log: slog.New(&all), LogLevel: optixabi.LogStatus})
	require.NoError(t, err)
	assert.Equal(t, []string{"DEBUG device context created source=optix tag=FAKE"}, all.take(), "a message from within the creation")
	b, err := table.DeviceContextCreate(0, optixabi.DeviceContextOptions{Log: slog.New(&errorsOnly), LogLevel: optixabi.LogError})
	require.NoError(t, err)
	silent, err := table.DeviceContextCreate(0, optixabi.DeviceContextOptions{LogLevel: optixabi.LogStatus})
	require.NoError(t, err)

	f.Log(optixabi.LogFatal, "A", "one")
	f.Log(optixabi.LogError, "B", "two\n")
	f.Log(optixabi.LogWarning, " C ", "three")
	f.Log(optixabi.LogStatus, "", "")
	assert.Equal(t, []string{"ERROR one source=optix tag=A", "ERROR two source=optix tag=B", "WARN three source=optix tag=C", "DEBUG  source=optix tag="}, all.take())
	assert.Equal(t, []string{"ERROR one source=optix tag=A", "ERROR two source=optix tag=B"}, errorsOnly.take())

	// Another logger, then none.
	var other recorder
	require.NoError(t, table.SetLog(a, slog.New(&other), optixabi.LogWarning))
	f.Log(optixabi.LogWarning, "D", "four")
	assert.Equal(t, []string{"WARN four source=optix tag=D"}, other.take())
	require.NoError(t, table.SetLog(a, nil, optixabi.LogWarning))
	f.FailCall("optixDeviceContextSetLogCallback", 1, optixabi.ErrorInternalError)
	assert.Error(t, table.SetLog(a, slog.New(&all), optixabi.LogWarning))
	f.Log(optixabi.LogFatal, "E", "five")
	assert.Empty(t, all.take())
	assert.Empty(t, other.take())
	for _, c := range []optixabi.DeviceContext{a, b, silent} {
		require.NoError(t, table.DeviceContextDestroy(c))
	}
}

// TestLogSurvives: panics of handlers, very long texts, many threads.
func TestLogSurvives(t *testing.T) {
	f := newFake(t, fakeoptix.Config{})
	table := negotiate(t, f)
	r := recorder{panic: true}
	c, err := table.DeviceContextCreate(0, optixabi.DeviceContextOptions{Log: slog.New(&r), LogLevel: optixabi.LogWarning})
	require.NoError(t, err)
	f.Log(optixabi.LogError, "LONG", strings.Repeat("x", 100_000))
	lines := r.take()
	require.Len(t, lines, 1)
	assert.Less(t, len(lines[0]), 5000, "texts are cut")

	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				f.Log(optixabi.LogWarning, "T", fmt.Sprintf("%d/%d", g, i))
			}
		})
	}
	wg.Wait()
	got := map[string]bool{}
	for _, l := range r.take() {
		got[l] = true
	}
	assert.Len(t, got, 400)
	require.NoError(t, table.DeviceContextDestroy(c))
}

// TestCallbacks opens and closes 10,000 device contexts with a logger each.
// The function pointers that a process can hand to C lie in a row, so the
// distance between one made before and one made after tells how many were
// made in between.
func TestCallbacks(t *testing.T) {
	f := newFake(t, fakeoptix.Config{})
	table := negotiate(t, f)
	first := dl.NewCallback(func() uintptr { return 1 })
	second := dl.NewCallback(func() uintptr { return 2 })
	require.Greater(t, second, first)
	var r recorder
	for range 10_000 {
		c, err := table.DeviceContextCreate(0, optixabi.DeviceContextOptions{Log: slog.New(&r), LogLevel: optixabi.LogStatus})
		if err != nil {
			t.Fatal(err)
		}
		if err := table.DeviceContextDestroy(c); err != nil {
			t.Fatal(err)
		}
	}
	last := dl.NewCallback(func() uintptr { return 3 })
	made := (last-second)/(second-first) - 1
	assert.LessOrEqual(t, made, uintptr(4))
	assert.Len(t, r.take(), 10_000)
	assert.Zero(t, f.Live())
}
