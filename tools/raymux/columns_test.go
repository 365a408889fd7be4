package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/tools/raymux/npy"
)

// values is what a column of a result holds, in C order, of any type: numpy.load(file)[column].ravel() as float64, the two
// parts of a complex number one after the other.
func (b *bench) values(t *testing.T, file, column string) []float64 {
	t.Helper()
	content := b.content(t, file)
	archive, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	entry, err := archive.Open(column + ".npy")
	require.NoError(t, err)
	raw, err := io.ReadAll(entry)
	require.NoError(t, err)
	text := string(raw[10 : 10+int(raw[8])+int(raw[9])<<8])
	data := bytes.NewReader(raw[10+len(text):])
	var out []float64
	next := func(v any) bool { return binary.Read(data, binary.LittleEndian, v) == nil }
	switch _, after, _ := strings.Cut(text, "'descr': '"); after[:3] {
	case "<f4", "<c8":
		for v := float32(0); next(&v); {
			out = append(out, float64(v))
		}
	case "<i4":
		for v := int32(0); next(&v); {
			out = append(out, float64(v))
		}
	case "<u4":
		for v := uint32(0); next(&v); {
			out = append(out, float64(v))
		}
	case "<i8":
		for v := int64(0); next(&v); {
			out = append(out, float64(v))
		}
	case "|b1", "|u1":
		for v := uint8(0); next(&v); {
			out = append(out, float64(v))
		}
	default:
		t.Fatalf("column %s: header %q", column, text)
	}
	require.Zero(t, data.Len())
	return out
}

// within compares a column with expected values: the largest deviation, in units of the largest value.
func (b *bench) within(t *testing.T, tolerance float64, file, column string, want ...float64) {
	t.Helper()
	got := b.values(t, file, column)
	require.Len(t, got, len(want), column)
	largest := 0.0
	for _, v := range want {
		if !math.IsInf(v, 0) {
			largest = math.Max(largest, math.Abs(v))
		}
	}
	for i, v := range want {
		if math.IsInf(v, 0) {
			require.Equal(t, v, got[i], "%s[%d]", column, i)
			continue
		}
		require.InDelta(t, v, got[i], tolerance*largest, "%s[%d]", column, i)
	}
}

// table writes an archive.
func (b *bench) table(t *testing.T, name string, columns ...npy.Column) {
	t.Helper()
	b.file(t, name, archiveOf(t, columns...))
}

// archiveWith is an archive with a column, the bytes of a .npy file, between others.
func archiveWith(t *testing.T, before []npy.Column, name, file string, after []npy.Column) string {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	add := func(name string, write func(io.Writer) error) {
		entry, err := w.Create(name + ".npy")
		require.NoError(t, err)
		require.NoError(t, write(entry))
	}
	for _, c := range before {
		add(c.Name, func(w io.Writer) error { return npy.Write(w, c) })
	}
	add(name, func(w io.Writer) error { _, err := io.WriteString(w, file); return err })
	for _, c := range after {
		add(c.Name, func(w io.Writer) error { return npy.Write(w, c) })
	}
	require.NoError(t, w.Close())
	return buf.String()
}
