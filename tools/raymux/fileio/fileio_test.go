package fileio_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/fileio/faultfs"
)

var errDisk = errors.New("input/output error")

func failing(op string, err error) fileio.FS {
	return faultfs.FS{FS: fileio.OS{}, Fail: func(o, _ string) error {
		if o == op {
			return err
		}
		return nil
	}}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "in")
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o600))
	in, err := fileio.Open(t.Context(), fileio.OS{}, path)
	require.NoError(t, err)
	assert.EqualValues(t, 7, in.Size)
	b, err := io.ReadAll(in)
	require.NoError(t, err)
	assert.Equal(t, "content", string(b))
	tail := make([]byte, 4)
	_, err = in.ReadAt(tail, 3)
	require.NoError(t, err)
	assert.Equal(t, "tent", string(tail))
	require.NoError(t, in.Close())
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "in")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for _, c := range []struct {
		name, path string
		fs         fileio.FS
		want       string
	}{
		{"missing", filepath.Join(dir, "other"), fileio.OS{}, "found no such file; expected a file"},
		{"below a file", filepath.Join(path, "in"), fileio.OS{}, "found no such file"},
		{"name too long", filepath.Join(dir, strings.Repeat("n", 5000)), fileio.OS{}, "an invalid name"},
		{"folder", dir, fileio.OS{}, "found a folder; expected a file"},
		{"device", os.DevNull, fileio.OS{}, "found a device; expected a regular file"},
		{"not readable", path, failing("open", fs.ErrPermission), "found permission denied; expected a file that you may read"},
		{"hidden", path, failing("stat", fs.ErrPermission), "permission denied"},
		{"NUL in the name", "a\x00b", failing("stat", fs.ErrInvalid), "an invalid name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := fileio.Open(t.Context(), c.fs, c.path)
			var fault *fileio.Fault
			require.ErrorAs(t, err, &fault)
			assert.Contains(t, err.Error(), c.want)
		})
	}
	_, err := fileio.Open(t.Context(), failing("open", errDisk), path)
	require.ErrorIs(t, err, errDisk)
	var fault *fileio.Fault
	assert.False(t, errors.As(err, &fault), "a failing disk is not the file's fault")
}

func TestReadingEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	in, err := fileio.Open(ctx, fileio.OS{}, path)
	require.NoError(t, err)
	defer in.Close()
	cancel()
	_, err = in.Read(make([]byte, 1))
	require.ErrorIs(t, err, context.Canceled)
	_, err = in.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, context.Canceled)
}

func TestWriteAtomic(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.npz")
	for _, content := range []string{"first", strings.Repeat("second", 1<<20)} {
		require.NoError(t, fileio.CheckOutput(fileio.OS{}, out))
		require.NoError(t, fileio.WriteAtomic(t.Context(), fileio.OS{}, out, func(w io.Writer) error {
			_, err := io.WriteString(w, content)
			return err
		}))
		b, err := os.ReadFile(out)
		require.NoError(t, err)
		assert.True(t, bytes.Equal([]byte(content), b))
		assert.Equal(t, []string{"out.npz"}, names(t, dir))
	}
}

// Whatever fails, and whenever the context ends, the old file stays and nothing else is left.
func TestFailedWriteLeavesNothing(t *testing.T) {
	fill := func(w io.Writer) error {
		_, err := w.Write(make([]byte, 3<<20)) // more than is buffered
		return err
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	duringFill, cancelDuring := context.WithCancel(t.Context())
	for _, c := range []struct {
		name string
		ctx  context.Context
		fs   fileio.FS
		fill func(io.Writer) error
		want error
	}{
		{"create", t.Context(), failing("create", errDisk), fill, errDisk},
		{"write", t.Context(), failing("write", errDisk), fill, errDisk},
		{"sync", t.Context(), failing("sync", errDisk), fill, errDisk},
		{"close", t.Context(), failing("close", errDisk), fill, errDisk},
		{"rename", t.Context(), failing("rename", errDisk), fill, errDisk},
		{"content", t.Context(), fileio.OS{}, func(io.Writer) error { return errDisk }, errDisk},
		{"interrupted before", canceled, fileio.OS{}, fill, context.Canceled},
		{"interrupted after the content", duringFill, fileio.OS{}, func(io.Writer) error { cancelDuring(); return nil }, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out.npz")
			require.NoError(t, os.WriteFile(out, []byte("old"), 0o600))
			require.ErrorIs(t, fileio.WriteAtomic(c.ctx, c.fs, out, c.fill), c.want)
			assert.Equal(t, []string{"out.npz"}, names(t, dir))
			b, err := os.ReadFile(out)
			require.NoError(t, err)
			assert.Equal(t, "old", string(b))
		})
	}
}

func TestCheckOutput(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		name, path string
		fs         fileio.FS
		want       string
	}{
		{"no folder", filepath.Join(dir, "none", "out.npz"), fileio.OS{}, "expected an existing folder"},
		{"file as folder", filepath.Join(file, "out.npz"), fileio.OS{}, "which is not a folder"},
		{"below a file", filepath.Join(file, "more", "out.npz"), fileio.OS{}, "expected an existing folder"},
		{"folder", dir, fileio.OS{}, "found a folder; expected a file"},
		{"device", os.DevNull, fileio.OS{}, "found a device"},
		{"no permission", filepath.Join(dir, "out.npz"), failing("create", fs.ErrPermission), "a folder that you may write into"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := fileio.CheckOutput(c.fs, c.path)
			var fault *fileio.Fault
			require.ErrorAs(t, err, &fault)
			assert.Contains(t, err.Error(), c.want)
			assert.Equal(t, []string{"file"}, names(t, dir))
		})
	}
	require.NoError(t, fileio.CheckOutput(fileio.OS{}, filepath.Join(dir, "out.npz")))
	assert.Equal(t, []string{"file"}, names(t, dir))
}

func TestQuote(t *testing.T) {
	assert.Equal(t, `"a\nb"`, fileio.Quote("a\nb"))
	assert.Equal(t, `"`+strings.Repeat("x", 40)+`"...`, fileio.Quote(bytes.Repeat([]byte("x"), 41)))
}
