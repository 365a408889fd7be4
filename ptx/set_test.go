package ptx

import (
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// copied is the embedded set as files that a test may change.
func copied(t *testing.T) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	names, err := fs.Glob(files, "*")
	require.NoError(t, err)
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		out[name] = &fstest.MapFile{Data: data}
	}
	return out
}

// One changed bit at a random place must stop that module, and no other.
func TestChangedModuleIsRefused(t *testing.T) {
	for _, name := range Names() {
		fsys := copied(t)
		data := fsys[name+".ptx"].Data
		i := rand.IntN(len(data))
		data[i] ^= 1 << rand.IntN(8)
		s, err := load(fsys)
		require.NoError(t, err)
		for _, other := range s.names() {
			text, err := s.module(other)
			if other != name {
				require.NoError(t, err)
				continue
			}
			var changed *DigestError
			require.ErrorAs(t, err, &changed, "byte %d", i)
			assert.Equal(t, name, changed.Module)
			assert.NotEqual(t, changed.Want, changed.Have)
			assert.Nil(t, text)
		}
	}
}

func TestMissingModule(t *testing.T) {
	fsys := copied(t)
	delete(fsys, "link.ptx")
	s, err := load(fsys)
	require.NoError(t, err)
	_, err = s.module("link")
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Contains(t, err.Error(), "link")
}

func TestBrokenManifest(t *testing.T) {
	whole := string(copied(t)["manifest.json"].Data)
	for name, text := range map[string]string{
		"empty":     "",
		"truncated": whole[:len(whole)/2],
		"schema":    strings.Replace(whole, `"schema": 1`, `"schema": 2`, 1),
		"unknown":   strings.Replace(whole, `"schema": 1`, `"schema": 1, "extra": 0`, 1),
		"trailing":  whole + "{}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(fstest.MapFS{"manifest.json": {Data: []byte(text)}})
			require.ErrorContains(t, err, "PTX manifest")
		})
	}
	_, err := load(fstest.MapFS{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}
