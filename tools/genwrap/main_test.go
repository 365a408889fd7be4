package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	apiFile  = "../../cuda/cuapi/api.go"
	wrapFile = "../../cuda/wrap/zz_hooked.go"
)

// TestCurrent checks that the committed file is what the interface gives.
func TestCurrent(t *testing.T) { require.NoError(t, run(apiFile, wrapFile, true)) }

// TestCheckSeesChanges checks that -check can fail, and that it writes nothing.
func TestCheckSeesChanges(t *testing.T) {
	text, err := os.ReadFile(wrapFile)
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "zz.go")
	require.NoError(t, os.WriteFile(out, append(text, '\n'), 0o644))
	assert.ErrorContains(t, run(apiFile, out, true), "run go run ./tools/genwrap")
	after, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Len(t, after, len(text)+1)
	require.NoError(t, run(apiFile, out, false))
	assert.NoError(t, run(apiFile, out, true))
}

func TestParse(t *testing.T) {
	got, err := parse([]byte(`package p
type API interface {
	Name() string
	Get(a, b Device, n uint64) (int, Result)
	Put(x []byte) (free, total uint64, r Result)
	Do() Result
}`))
	require.NoError(t, err)
	assert.Equal(t, []method{
		{"Get", []param{{"a", "Device"}, {"b", "Device"}, {"n", "uint64"}}, []param{{"", "int"}}},
		{"Put", []param{{"x", "[]byte"}}, []param{{"free", "uint64"}, {"total", "uint64"}}},
		{"Do", nil, []param{}},
	}, got)
	for src, text := range map[string]string{
		"package p":                                "no interface named API",
		"package p\ntype API interface{ Other }":   "embeds another",
		"package p\ntype API interface{ F() int }": "F does not end in a Result",
		"package p\ntype API interface{ F() }":     "F does not end in a Result",
		"pakage":                                   "expected 'package'",
	} {
		_, err := parse([]byte(src))
		assert.ErrorContains(t, err, text)
	}
}

func TestCallFields(t *testing.T) {
	for _, tt := range []struct {
		params []param
		want   string
	}{
		{nil, ", Device: NoDevice"},
		{[]param{{"d", "Device"}, {"peer", "Device"}}, ", Device: d"},
		{[]param{{"e", "Event"}, {"s", "Stream"}}, ", Handle: uint64(e), Device: NoDevice"},
		{[]param{{"b", "[]byte"}, {"n", "int"}}, ", Host: b, Size: uint64(len(b)), Device: NoDevice"},
		{[]param{{"n", "uint64"}}, ", Size: n, Device: NoDevice"},
	} {
		assert.Equal(t, tt.want, callFields(method{params: tt.params}))
	}
	for typ, want := range map[string]string{"int": "int", "[]byte": "[]byte", "Device": "cuapi.Device", "*JITOptions": "*cuapi.JITOptions", "[16]byte": "[16]byte"} {
		assert.Equal(t, want, qualify(typ))
	}
}
