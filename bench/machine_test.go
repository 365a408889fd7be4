package main

import (
	"testing"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/multi"
	"github.com/stretchr/testify/require"
)

func TestLinkRate(t *testing.T) {
	r := multi.LinkSpeed{Bytes: probeBytes, Duration: 5_091_650}.BytesPerSecond()
	require.InDelta(t, 52.72e9, r, 0.005e9)
	require.Equal(t, "52.7", gigabytes(r))
	links := []record.Link{
		{Source: 0, Destination: 1, Direction: record.BothWays, BytesPerSecond: 9},
		{Source: 0, Destination: 1, Direction: record.OneWay, BytesPerSecond: 5},
	}
	require.Equal(t, 5.0, linkRate(links, 0, 1))
	require.Zero(t, linkRate(links, 1, 0))
}

func TestParseUsage(t *testing.T) {
	got, err := parseUsage("00000000:1B:00.0, 534, 0\n00000000:C3:00.0, 81000, 100\n")
	require.NoError(t, err)
	require.Equal(t, record.DeviceUsage{UsedBytes: 534 << 20}, got[busKey("0000:1b:00.0")], "CUDA's form of the same id")
	require.Equal(t, record.DeviceUsage{UsedBytes: 81000 << 20, UtilizationPercent: 100}, got[busKey("0000:C3:00.0")])
	for _, text := range []string{"No devices were found\n", "00000000:1B:00.0, 5, [N/A]\n", "00000000:1B:00.0, 5, 101\n", "00000000:1B:00.0, -5, 1\n"} {
		_, err := parseUsage(text)
		require.ErrorContains(t, err, "nvidia-smi answered", text)
	}
}

func TestBusKeyKeepsDomains(t *testing.T) {
	require.NotEqual(t, busKey("0001:1B:00.0"), busKey("0000:1B:00.0"))
	require.Equal(t, busKey("00000001:1B:00.0"), busKey("0001:1b:00.0"))
}

func TestTableLine(t *testing.T) {
	speedup := 1.614
	row := record.Row{Operation: "intersect", Mode: record.Forced, Batch: record.Batch{Count: 4194304},
		Single: record.Timing{MinNS: 19_094_000}, Multi: &record.Timing{MinNS: 11_830_000}, Speedup: &speedup,
		Dispatch: "direct", Plan: &record.Plan{ChunkCount: 2}, Weights: []float64{1, 0.25}}
	require.Equal(t, "compute       intersect         forced       4194304        19.09        11.83    1.61x  direct        2  1.000, 0.250\n", tableLine("compute", row))
	row.Multi, row.Speedup, row.Weights, row.Plan, row.Dispatch = nil, nil, nil, nil, "single"
	require.Equal(t, "light         intersect         forced       4194304        19.09           --       --  single       --  --\n", tableLine("light", row))
}

func TestAgreementText(t *testing.T) {
	require.Equal(t, "1.0", agreementText(1))
	require.NotEqual(t, "1.0", agreementText(record.Fraction(318767104/4, 1)), "one wrong word of a full batch shows")
}
