package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository's root as seen from this package.
var root = filepath.Join("..", "..")

func historical(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, EvidencePath, "historical_20260727.json"))
	require.NoError(t, err)
	return text
}

func TestHistoricalRecordIsValid(t *testing.T) {
	r, err := Decode(historical(t))
	require.NoError(t, err)
	require.Equal(t, Import, r.Provenance.Kind)
	require.Equal(t, []string{"light", "compute"}, r.ConfigNames())
}

// The digest of the transcription: an edit of published numbers is never a side effect.
func TestHistoricalRecordIsPinned(t *testing.T) {
	require.Equal(t, "abd0f5473e00e1bdfd7e47a7b9016b18611bf6fa98e6970fb387d3ebdde3bbfe", TextDigest(historical(t)))
}

// The run of record as printed, milliseconds and speedups.
func TestHistoricalRunOfRecord(t *testing.T) {
	r, err := Decode(historical(t))
	require.NoError(t, err)
	for name, rows := range map[string][]struct {
		operation     string
		single, multi float64
		speedup       float64
	}{
		"light": {
			{"intersect", 1.27, 4.63, 0.27}, {"trace_reflections", 1.14, 2.26, 0.50}, {"intersect", 1.22, 1.22, 1.00},
			{"trace_reflections", 1.09, 1.10, 1.00}, {"accum_dfr_direct", 0.31, 1.34, 0.23}, {"intersect", 1.27, 4.48, 0.28},
		},
		"compute": {
			{"intersect", 19.09, 11.83, 1.61}, {"trace_reflections", 53.33, 28.38, 1.88}, {"intersect", 19.08, 11.83, 1.61},
			{"trace_reflections", 53.43, 28.45, 1.88}, {"accum_dfr_direct", 34.76, 18.83, 1.85}, {"intersect", 19.18, 12.54, 1.53},
		},
	} {
		got := r.Configs[name].Rows
		require.Len(t, got, len(rows))
		for i, want := range rows {
			require.Equal(t, want.operation, got[i].Operation)
			require.InDelta(t, want.single*1e6, got[i].Single.MinNS, 0.5)
			require.InDelta(t, want.multi*1e6, got[i].Multi.MinNS, 0.5)
			require.Equal(t, want.speedup, *got[i].Speedup)
		}
	}
}

// A field that the Go types lack or misspell would be lost here.
func TestHistoricalRecordRoundTrips(t *testing.T) {
	text := historical(t)
	r, err := Decode(text)
	require.NoError(t, err)
	again, err := r.Encode()
	require.NoError(t, err)
	var want, got any
	require.NoError(t, json.Unmarshal(text, &want))
	require.NoError(t, json.Unmarshal(again, &got))
	require.Equal(t, want, got)
}
