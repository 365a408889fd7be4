package main

import (
	"sync/atomic"
	"testing"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/stretchr/testify/require"
)

// A link that starts to corrupt data after it passed the self-test must show in the comparison with one device.
func TestCorruptLinkIsFound(t *testing.T) {
	var armed atomic.Bool
	emulator, err := emu.New(2, emu.WithPeerCorruption(func(_, _ int, data []byte) {
		if !armed.Load() {
			return
		}
		for i := 0; i < len(data); i += 4 {
			data[i] ^= 1
		}
	}))
	require.NoError(t, err)
	driver, err := cuda.OpenAPI(emulator)
	require.NoError(t, err)
	h := &host{driver: driver, devices: []int{0, 1}, allocs: new(atomic.Uint64)}
	require.NoError(t, h.retain())
	defer func() { require.NoError(t, h.close()) }()
	config, err := workload.Find(workload.Mini)
	require.NoError(t, err)
	s := &trial{run: &run{options: options{rays: 256, transport: chunked.Copy}, host: h}, config: config}
	defer func() { require.NoError(t, s.close()) }()
	s.generate()
	require.NoError(t, s.open())

	for _, c := range []struct {
		op     operation
		values string
	}{{intersect(), "4864"}, {reflections(2), "1536"}} {
		armed.Store(false)
		s.failures = nil
		k, err := s.task(c.op)
		require.NoError(t, err)
		_, err = k.check()
		require.NoError(t, err)
		require.Empty(t, s.failures, "before the link fails")

		armed.Store(true)
		found, err := k.check()
		require.NoError(t, err)
		require.Positive(t, found.differ[1])
		require.Zero(t, found.differ[2], "the policy call runs on the master alone")
		require.Len(t, s.failures, 1)
		require.Regexp(t, "^mini "+c.op.name+`: mode forced: \d+ of `+c.values+` values differ from the one-device result$`, s.failures[0])
	}
}
