package record

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The committed manifest fits the committed files.
func TestCommittedManifest(t *testing.T) { require.NoError(t, CheckManifest(root)) }

// repository makes a copy of the evidence in which tests may edit.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := []string{SchemaPath, EvidencePath + "/historical_20260727.json"}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, WriteAtomic(filepath.Join(dir, name), text))
	}
	_, err := WriteManifest(dir)
	require.NoError(t, err)
	require.NoError(t, CheckManifest(dir))
	return dir
}

func TestManifestRefuses(t *testing.T) {
	imported := EvidencePath + "/historical_20260727.json"
	live := func(t *testing.T, dir string, edit func(*Record)) {
		r := liveRecord()
		edit(r)
		require.NoError(t, r.WriteFile(filepath.Join(dir, EvidencePath, "live.json")))
	}
	replace := func(file, old, new string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, file)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Contains(t, string(text), old)
			require.NoError(t, os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(new), 1), 0o644))
		}
	}
	for _, c := range []struct {
		name, says string
		edit       func(t *testing.T, dir string)
	}{
		{"record edited", "historical_20260727.json has digest", replace(imported, "not a new benchmark execution", "no new benchmark execution")},
		{"schema edited", "bench_result.schema.json", replace(SchemaPath, "version 1", "version one")},
		{"record not listed", "live.json is not listed", func(t *testing.T, dir string) { live(t, dir, func(*Record) {}) }},
		{"record deleted", "live.json is listed and does not exist", func(t *testing.T, dir string) {
			live(t, dir, func(*Record) {})
			_, err := WriteManifest(dir)
			require.NoError(t, err)
			require.NoError(t, CheckManifest(dir))
			require.NoError(t, os.Remove(filepath.Join(dir, EvidencePath, "live.json")))
		}},
		{"kind edited", "is of kind", replace(ManifestPath, string(Import), string(Live))},
		{"no import", "no historical import", func(t *testing.T, dir string) {
			live(t, dir, func(*Record) {})
			require.NoError(t, os.Remove(filepath.Join(dir, imported)))
		}},
		{"uncommitted changes", "live.json", func(t *testing.T, dir string) {
			live(t, dir, func(r *Record) { r.Software.RevisionModified = ptr(true) })
		}},
		{"failed checks", "bad rows", func(t *testing.T, dir string) {
			live(t, dir, func(r *Record) { r.Checks = &Checks{Failures: []string{"bad rows"}} })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := repository(t)
			c.edit(t, dir)
			err := CheckManifest(dir)
			require.ErrorIs(t, err, ErrEvidence)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestManifestRefusesInvalidRecord(t *testing.T) {
	dir := repository(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, EvidencePath, "empty.json"), []byte("{}"), 0o644))
	err := CheckManifest(dir)
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "empty.json")
}

func TestManifestIgnoresLineEnds(t *testing.T) {
	dir := repository(t)
	path := filepath.Join(dir, EvidencePath, "historical_20260727.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")), 0o644))
	require.NoError(t, CheckManifest(dir))
}

func TestWriteFileRefusesInvalid(t *testing.T) {
	r := liveRecord()
	r.Parameters.Repeat = 0
	path := filepath.Join(t.TempDir(), "a", "b.json")
	require.ErrorIs(t, r.WriteFile(path), ErrSchema)
	require.NoFileExists(t, path)
	require.NoError(t, liveRecord().WriteFile(path))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}
