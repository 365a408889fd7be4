package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/scene"
	"github.com/stretchr/testify/require"
)

// Every committed pin covers all columns of a full result, once.
func TestCommittedPins(t *testing.T) {
	f, err := readPins(committedPins)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, p := range f.Pins {
		require.Contains(t, expectations, p.Config)
		name := fmt.Sprint(p.Config, " ", p.Operation, " ", p.Rows)
		require.False(t, seen[name], "%s is pinned twice", name)
		seen[name] = true
		var names []string
		for _, c := range p.Columns {
			require.Regexp(t, "^[0-9a-f]{64}$", c.SHA256)
			names = append(names, c.Name)
		}
		var want []string
		switch p.Operation {
		case record.OperationIntersect:
			for _, c := range scene.HitColumns(scene.All) {
				want = append(want, c.Name)
			}
		case record.OperationReflections:
			for _, c := range scene.ChainColumns(scene.ChainCore) {
				want = append(want, c.Name)
			}
		}
		require.Equal(t, want, names)
	}
}

func TestReadPinsRefuses(t *testing.T) {
	for _, text := range []string{"", "[]", `{"pin": []}`, `{"pins": [{"config": "light", "lines": 3}]}`} {
		_, err := readPins([]byte(text))
		require.ErrorContains(t, err, "pins.json", text)
	}
}

func TestPinsRoundTrip(t *testing.T) {
	var f pinFile
	f.set(pin{"mini", "a", 9, []record.Column{{Name: "t", SHA256: "00"}}})
	f.set(pin{"light", "b", 20, nil})
	f.set(pin{"light", "b", 3, nil})
	f.set(pin{"light", "a", 50, nil})
	f.set(pin{"mini", "a", 9, []record.Column{{Name: "t", SHA256: "11"}}}) // replaces
	path := filepath.Join(t.TempDir(), "new", "pins.json")
	require.NoError(t, f.write(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	got, err := readPins(text)
	require.NoError(t, err)
	require.Len(t, got.Pins, 4)
	require.Equal(t, []int64{50, 3, 20, 9}, []int64{got.Pins[0].Rows, got.Pins[1].Rows, got.Pins[2].Rows, got.Pins[3].Rows})
	p, ok := got.find(pin{Config: "mini", Operation: "a", Rows: 9})
	require.True(t, ok)
	require.Equal(t, "11", p.Columns[0].SHA256)
	for _, other := range []pin{{Config: "mini", Operation: "a", Rows: 10}, {Config: "mini", Operation: "b", Rows: 9}, {Config: "light", Operation: "a", Rows: 9}} {
		_, ok = got.find(other)
		require.False(t, ok)
	}
}

func TestPinDiffers(t *testing.T) {
	p := pin{"light", "intersect", 4, []record.Column{{Name: "t", SHA256: "aa"}, {Name: "p", SHA256: "bb"}}}
	require.Empty(t, p.differ([]record.Column{{Name: "p", SHA256: "bb"}, {Name: "t", SHA256: "aa"}}))
	require.Equal(t, []string{"column t of the first 4 rows has SHA-256 ab, pinned is aa"},
		p.differ([]record.Column{{Name: "t", SHA256: "ab"}, {Name: "p", SHA256: "bb"}}))
	require.Equal(t, []string{"column p of the first 4 rows is missing, it is pinned"}, p.differ([]record.Column{{Name: "t", SHA256: "aa"}}))
	require.Equal(t, []string{"column n of the first 4 rows is not pinned"},
		p.differ([]record.Column{{Name: "t", SHA256: "aa"}, {Name: "p", SHA256: "bb"}, {Name: "n", SHA256: "cc"}}))
}
