package main

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/raymux/raymux/bench/record"
	"github.com/stretchr/testify/require"
)

func TestDigestBytes(t *testing.T) {
	sum := sha256.Sum256([]byte{0x04, 0x03, 0x02, 0x01, 0xff, 0, 0, 0})
	require.Equal(t, hex.EncodeToString(sum[:]), digestBytes([]byte{0x04, 0x03, 0x02, 0x01, 0xff, 0, 0, 0}))
}

func TestMismatches(t *testing.T) {
	long, other := make([]byte, 10_000), make([]byte, 10_000)
	other[0], other[1], other[4095], other[9999] = 1, 1, 1, 1
	for _, c := range []struct {
		a, b []byte
		size int
		want int64
	}{
		{nil, nil, 4, 0},
		{[]byte{1, 2, 3}, []byte{1, 2, 3}, 1, 0},
		{[]byte{1, 2, 3}, []byte{1, 0, 4}, 1, 2},
		{[]byte{1, 2, 3}, []byte{1}, 1, 2},
		{[]byte{1, 2, 3, 4, 5, 6, 7, 8}, []byte{1, 2, 3, 4, 5, 0, 7, 0}, 4, 1},
		{[]byte{0, 0, 0, 0x80}, []byte{0, 0, 0, 0}, 4, 1}, // -0 and 0 are different values
		{long, other, 4, 3},
		{long, other, 1, 4},
		{long, long[:5000], 4, 1250},
	} {
		require.Equal(t, c.want, mismatches(c.a, c.b, c.size))
		require.Equal(t, c.want, mismatches(c.b, c.a, c.size))
	}
}

func TestPrefixDigests(t *testing.T) {
	data := []byte{1, 2, 3, 4, 5, 6}
	var d digests
	d.add("p", data, 2, 1)
	require.Equal(t, []record.Column{{Name: "p", SHA256: digestBytes(data)}}, d.all)
	require.Equal(t, []record.Column{{Name: "p", SHA256: digestBytes(data[:3])}}, d.prefix)
	d = digests{}
	d.add("p", data, 2, 2)
	require.Nil(t, d.prefix, "the whole batch is no prefix")
}

func TestTake(t *testing.T) {
	var a answers
	a.take("t", []byte{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x7f})
	require.Equal(t, []float32{1, miss}, a.t)
	a.take("prim_ids", []byte{7, 1, 0, 0, 0xff, 0xff, 0xff, 0xff})
	require.Equal(t, []int32{263, -1}, a.prim)
	a.take("valid", []byte{1, 0})
	require.Equal(t, []uint8{1, 0}, a.valid)
}

// The sizes of the specification: 24 bytes to a remote row, 4 back, and a record of 76.
func TestIntersectRowBytes(t *testing.T) {
	op := intersectOp()
	require.Equal(t, [3]int64{24, 4, 76}, [3]int64{op.In, op.Wire, op.Record})
	require.Equal(t, "intersect_full", op.Key)
}

// 24 bytes to a remote row, 4 per bounce back, and a record of 9 per bounce.
func TestReflectionsRowBytes(t *testing.T) {
	op := reflectionsOp(4)
	require.Equal(t, [3]int64{24, 16, 36}, [3]int64{op.In, op.Wire, op.Record})
	require.Equal(t, "trace_reflections:4", op.Key)
}
