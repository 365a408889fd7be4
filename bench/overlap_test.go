package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The expected values are those of the published run, evaluated by hand.
func TestOverlapBounds(t *testing.T) {
	const rows, link = 4194304, 52720723558.0
	chunked := share{chunkRows: 524288, chunks: 4, toward: link, back: link}
	whole := share{chunkRows: 2097152, chunks: 1, toward: link, back: link}
	for _, c := range []struct {
		name                     string
		ms                       float64 // one device
		out                      int
		direct                   bool
		remote                   share
		scatter, compute, gather float64
		none, perfect            float64
	}{
		{"flow shop", 19.09, 4, false, chunked, 0.23867, 2.38625, 0.03978, 10.6588, 9.8234},
		{"flow shop, light", 1.27, 4, false, chunked, 0.23867, 0.15875, 0.03978, 1.7488, 1.1532},
		{"flow shop, records", 19.09, 76, false, chunked, 0.23867, 2.38625, 0.75579, 13.5229, 10.5395},
		{"direct", 19.09, 4, true, whole, 0.95468, 9.545, 0.15911, 10.6588, 9.545},
		{"direct, light", 1.27, 4, true, whole, 0.95468, 0.635, 0.15911, 1.7488, 0.95468},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := overlapModel{rows: rows, masterRows: rows / 2, in: 24, out: c.out, oneDevice: c.ms * 1e6, direct: c.direct, remotes: []share{c.remote}}
			scatter, compute, gather := m.stages(c.remote)
			require.InDelta(t, c.scatter, scatter/1e6, 1e-5)
			require.InDelta(t, c.compute, compute/1e6, 1e-5)
			require.InDelta(t, c.gather, gather/1e6, 1e-5)
			none, perfect := m.bounds()
			require.InDelta(t, c.none, none/1e6, 1e-4)
			require.InDelta(t, c.perfect, perfect/1e6, 1e-4)
		})
	}
}

func TestOverlapResidual(t *testing.T) {
	m := overlapModel{rows: 4194304, masterRows: 2097152, in: 24, out: 76, oneDevice: 19.09e6,
		remotes: []share{{chunkRows: 524288, chunks: 4, toward: 52720723558, back: 52720723558}}}
	o := m.record(11_830_000)
	require.InDelta(t, 1.2905, float64(o.ResidualNS)/1e6, 1e-4)
	require.Equal(t, "flow_shop", o.Model)
	require.Equal(t, 52720723558.0, o.LinkBytesPerSecond)
}

// The master bounds a call whose remotes are idle, and its finalize is not divided.
func TestOverlapMasterBound(t *testing.T) {
	m := overlapModel{rows: 100, masterRows: 60, in: 24, out: 4, oneDevice: 1000, finalize: 200, direct: true,
		remotes: []share{{chunkRows: 40, chunks: 1, toward: 1e12, back: 1e12}}}
	none, perfect := m.bounds()
	require.InDelta(t, 680, none, 1e-9)
	require.InDelta(t, 680, perfect, 1e-9)
}
