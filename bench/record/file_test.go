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
