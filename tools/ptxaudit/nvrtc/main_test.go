package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/raymux/raymux/tools/ptxaudit/internal/protocol"
)

func TestServeWithoutLibrary(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "libnvrtc.so.12")
	resp := serve(protocol.Request{Library: missing, Builtins: missing, Programs: make([]protocol.Program, 1)})
	assert.Contains(t, resp.Error, "libnvrtc.so.12")
	assert.Empty(t, resp.Results)
}
