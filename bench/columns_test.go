package main

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/raymux/raymux/bench/record"
	"github.com/stretchr/testify/require"
)

func TestDigestWords(t *testing.T) {
	sum := sha256.Sum256([]byte{0x04, 0x03, 0x02, 0x01, 0xff, 0, 0, 0})
	require.Equal(t, hex.EncodeToString(sum[:]), digestWords([]uint32{0x01020304, 0xff}))

	// Longer than one block, against one pass over the bytes.
	rng := rand.New(rand.NewPCG(1, 2))
	data, raw := make([]uint32, 50_001), []byte(nil)
	for i := range data {
		data[i] = rng.Uint32()
		raw = append(raw, byte(data[i]), byte(data[i]>>8), byte(data[i]>>16), byte(data[i]>>24))
	}
	sum = sha256.Sum256(raw)
	require.Equal(t, hex.EncodeToString(sum[:]), digestWords(data))
}

func TestMismatches(t *testing.T) {
	for _, c := range []struct {
		a, b []uint32
		want int64
	}{
		{nil, nil, 0},
		{[]uint32{1, 2, 3}, []uint32{1, 2, 3}, 0},
		{[]uint32{1, 2, 3}, []uint32{1, 0, 4}, 2},
		{[]uint32{1, 2, 3}, []uint32{1}, 2},
		{[]uint32{0x80000000}, []uint32{0}, 1}, // -0 and 0 are different words
	} {
		require.Equal(t, c.want, mismatches(c.a, c.b))
		require.Equal(t, c.want, mismatches(c.b, c.a))
	}
}

func TestPrefixDigests(t *testing.T) {
	data := []uint32{1, 2, 3, 4, 5, 6}
	var d digests
	d.add("p", 3, data, 2, 1)
	require.Equal(t, []record.Column{{Name: "p", SHA256: digestWords(data)}}, d.all)
	require.Equal(t, []record.Column{{Name: "p", SHA256: digestWords(data[:3])}}, d.prefix)
	d = digests{}
	d.add("p", 3, data, 2, 2)
	require.Nil(t, d.prefix, "the whole batch is no prefix")
}

// The sizes of the specification: 24 bytes to a remote row, 4 back, and a record of 76.
func TestIntersectRowBytes(t *testing.T) {
	op := intersectOp()
	require.Equal(t, [3]int64{24, 4, 76}, [3]int64{op.In, op.Wire, op.Record})
	require.Equal(t, "intersect_full", op.Key)
}
