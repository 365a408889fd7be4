package main

import (
	"fmt"
	"testing"

	"github.com/raymux/raymux/bench/workload"
	"github.com/stretchr/testify/require"
)

// TestPinnedOnEmulatedDevices traces what is pinned and small enough for emulated devices: the whole of mini, and the
// leading rows of the large configurations, whose pins come from GPUs. The two must give the same bits.
func TestPinnedOnEmulatedDevices(t *testing.T) {
	pins, err := readPins(committedPins)
	require.NoError(t, err)
	mini, err := workload.Find(workload.Mini)
	require.NoError(t, err)
	for _, c := range []struct {
		config string
		rows   int64
		brute  int  // rows that are compared with brute force
		slow   bool // half a minute of processor time
	}{
		{workload.Mini, int64(mini.RayCount), mini.RayCount, false},
		{workload.Light, prefixRows[workload.Light], 200, false},
		{workload.Compute, prefixRows[workload.Compute], 20, true},
	} {
		t.Run(c.config, func(t *testing.T) {
			if c.slow && testing.Short() {
				t.Skip("slow: builds a tree over two million triangles")
			}
			h, err := openHost(options{devices: deviceList{emulated: 1}})
			require.NoError(t, err)
			defer func() { require.NoError(t, h.close()) }()
			config, err := workload.Find(c.config)
			require.NoError(t, err)
			r := &run{options: options{rays: c.rows}, host: h}
			s := &trial{run: r, config: config}
			defer func() { require.NoError(t, s.close()) }()
			s.generate()
			require.NoError(t, s.open())
			for _, op := range operations(config) {
				where := fmt.Sprintf("%s %s, first %d rows", c.config, op.name, c.rows)
				pinned, ok := pins.find(pin{Config: c.config, Operation: op.name, Rows: c.rows})
				require.True(t, ok, "%s: not pinned", where)
				k, err := s.task(op)
				require.NoError(t, err)
				found, err := k.check()
				require.NoError(t, err)
				require.Empty(t, s.failures)
				require.Equal(t, pinned.Columns, found.digests.all, where)
			}
			compareWithOracle(t, s, c.brute)
			compareChains(t, s, c.brute/2)
		})
	}
}
