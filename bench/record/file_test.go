package record

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A rename replaces whatever has the name. Devices and pipes are stood for by links and folders, which every system has.
func TestOnlyRegularFilesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	require.NoError(t, WriteAtomic(target, []byte("one")))
	require.NoError(t, WriteAtomic(target, []byte("two")))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(target, link))
	folder := filepath.Join(dir, "folder")
	require.NoError(t, os.Mkdir(folder, 0o755))
	for _, path := range []string{link, folder} {
		before, err := os.Lstat(path)
		require.NoError(t, err)
		require.ErrorContains(t, WriteAtomic(path, []byte("three")), "not a regular file")
		after, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, before.Mode(), after.Mode())
	}
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "two", string(text))
	left, err := fs.Glob(os.DirFS(dir), ".partial-*")
	require.NoError(t, err)
	require.Empty(t, left)
}

// What may never end, and what is longer than any record, is not read.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	short, long, link := filepath.Join(dir, "short"), filepath.Join(dir, "long"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(short, []byte("text"), 0o600))
	require.NoError(t, os.Symlink(short, link))
	text, err := ReadFile(link)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))

	require.NoError(t, os.WriteFile(long, nil, 0o600))
	require.NoError(t, os.Truncate(long, maxFileBytes+1))
	_, err = ReadFile(long)
	require.ErrorContains(t, err, "has 67108865 bytes")
	_, err = ReadFile(dir)
	require.ErrorContains(t, err, "not a regular file")
	_, err = ReadFile(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, fs.ErrNotExist)

	// A record of the evidence that is a link to what never ends.
	const endless = "/dev/zero"
	if _, err := os.Stat(endless); err != nil {
		t.Skip("no " + endless)
	}
	root := t.TempDir()
	for _, path := range []string{SchemaPath, EvidencePath + "/record.json"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, SchemaPath), nil, 0o600))
	require.NoError(t, os.Symlink(endless, filepath.Join(root, EvidencePath, "record.json")))
	_, err = BuildManifest(root)
	require.ErrorContains(t, err, "not a regular file")
}
