package ptx_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/ptx"
)

// The kernel that costs nothing but its launch.
var emptyKernel = ptx.Entry[struct{}]{Module: "link", Name: "empty"}

func TestModulesAreTheFilesOfTheManifest(t *testing.T) {
	raw, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	sum := sha256.Sum256(raw)
	assert.Equal(t, hex.EncodeToString(sum[:]), ptx.ManifestDigest())

	var m struct {
		Modules []struct {
			Name    string
			Entries []string
		}
	}
	require.NoError(t, json.Unmarshal(raw, &m))
	require.NotEmpty(t, m.Modules)
	var names []string
	for _, mod := range m.Modules {
		names = append(names, mod.Name)
		want, err := os.ReadFile(mod.Name + ".ptx")
		require.NoError(t, err)
		have, err := ptx.Module(mod.Name)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, have), mod.Name)
		assert.Equal(t, mod.Entries, ptx.Entries(mod.Name))
		for _, e := range mod.Entries {
			assert.Contains(t, string(have), ".visible .entry "+e+"(")
		}
	}
	slices.Sort(names)
	assert.Equal(t, names, ptx.Names())
	assert.Contains(t, ptx.Entries(emptyKernel.Module), emptyKernel.Name)
}

func TestModuleIsTheCallers(t *testing.T) {
	a, err := ptx.Module("link")
	require.NoError(t, err)
	clear(a)
	b, err := ptx.Module("link")
	require.NoError(t, err)
	assert.NotEqual(t, a, b)
}

func TestUnknownModule(t *testing.T) {
	_, err := ptx.Module("no-such")
	var unknown *ptx.UnknownModuleError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, "no-such", unknown.Name)
	assert.Contains(t, err.Error(), "link")
	assert.Nil(t, ptx.Entries("no-such"))
}

func TestModulesOfOptiX(t *testing.T) {
	for name, want := range map[string]bool{"optix_closest": true, "optix_support": false, "link": false, "no-such": false} {
		assert.Equal(t, want, ptx.OptiX(name), name)
	}
}
