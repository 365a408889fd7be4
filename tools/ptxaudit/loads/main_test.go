package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
)

// The emulator refuses an instruction that it does not know when a module is
// loaded, so this also says that it can run every committed kernel.
func TestEmulatedDevicesLoadEveryModule(t *testing.T) {
	drv, err := cuda.OpenEmulator(2)
	require.NoError(t, err)
	defer func() { assert.NoError(t, drv.Close()) }()
	var out bytes.Buffer
	require.NoError(t, loadAll(drv, &out))

	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	for _, line := range lines {
		assert.Contains(t, line, ptx.ManifestDigest()[:12])
		assert.NotContains(t, line, "claim level", "an emulator proves nothing about hardware")
	}
}
