package main

import (
	"fmt"
	"testing"

	"github.com/raymux/raymux/bench/record"
	"github.com/stretchr/testify/require"
)

// Emulated devices have no link worth a number, but the probe's copies, its list and its clean-up are the same.
func TestProbeLinks(t *testing.T) {
	h, err := openHost(options{devices: deviceList{emulated: 3}})
	require.NoError(t, err)
	const bytes = 1 << 12
	links, err := probeLinks(h.contexts, bytes)
	require.NoError(t, err)
	seen := map[string]int64{}
	for _, l := range links {
		seen[fmt.Sprintf("%s %d %d", l.Direction, l.Source, l.Destination)] = l.Bytes
		require.Positive(t, l.MinNS)
		require.InEpsilon(t, float64(l.Bytes)/float64(l.MinNS)*1e9, l.BytesPerSecond, 1e-12)
		require.True(t, *l.PeerAccess)
	}
	want := map[string]int64{}
	for _, pair := range []string{"0 1", "1 0", "0 2", "2 0", "1 2", "2 1"} {
		want[record.OneWay+" "+pair] = bytes
	}
	for _, pair := range []string{"0 1", "0 2", "1 2"} {
		want[record.BothWays+" "+pair] = 2 * bytes
	}
	require.Equal(t, want, seen)
	for _, c := range h.contexts {
		stats := c.Pool().Stats()
		require.Zero(t, stats.BytesInUse)
		require.Zero(t, stats.BytesCached, "the benchmark that follows needs the memory")
	}
	require.NoError(t, h.close(), "nothing leaks")
}

func TestProbeOneDevice(t *testing.T) {
	links, err := probeLinks(nil, 1)
	require.NoError(t, err)
	require.Equal(t, []record.Link{}, links)
}
