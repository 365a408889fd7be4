package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGeneratedFileIsCurrent(t *testing.T) {
	committed := filepath.Join("..", "..", "cuda", "emu", "vm", "zz_ops.go")
	require.NoError(t, run(committed, true))
	text, err := os.ReadFile(committed)
	require.NoError(t, err)
	changed := filepath.Join(t.TempDir(), "zz_ops.go")
	require.NoError(t, os.WriteFile(changed, append(text, '\n'), 0o644))
	require.ErrorContains(t, run(changed, true), "go run ./tools/genops")
}
