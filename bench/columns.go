package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// words is one result column on a device: rows of width 4-byte words.
type words struct {
	name  string
	width int
	data  cuda.Slice[uint32]
}

// hitWords lists the columns of a result as words.
func hitWords(h *scene.Hits) ([]words, error) {
	var list []words
	for _, c := range scene.HitColumns(h.Flags) {
		data, err := hitColumn(h, c.Name)
		if err != nil {
			return nil, err
		}
		list = append(list, words{c.Name, c.Width, data})
	}
	return list, nil
}

// hitColumn returns one column of a result by its name.
func hitColumn(h *scene.Hits, name string) (cuda.Slice[uint32], error) {
	floats := map[string]cuda.Slice[float32]{"t": h.T, "p": h.P, "n": h.N, "geo_n": h.GeoN, "uv": h.UV, "barycentric": h.Barycentric}
	if c, ok := floats[name]; ok {
		return cuda.Reinterpret[uint32](c)
	}
	ints := map[string]cuda.Slice[int32]{"shape_id": h.ShapeID, "prim_id": h.PrimID, "local_prim_id": h.LocalPrimID, "global_prim_id": h.GlobalPrimID}
	if c, ok := ints[name]; ok {
		return cuda.Reinterpret[uint32](c)
	}
	return cuda.Slice[uint32]{}, fmt.Errorf("the benchmark does not know the result column %q", name)
}

// download copies a column to the host.
func (w words) download(ctx context.Context, st *cuda.Stream) ([]uint32, error) {
	return cuda.Download(ctx, st, w.data)
}

// digestWords returns the SHA-256 of the little-endian words.
func digestWords(data []uint32) string {
	h := sha256.New()
	appendWords(h, data)
	return hex.EncodeToString(h.Sum(nil))
}

// appendWords feeds words to a hash in blocks: a column has up to 50 MiB, and need not exist twice.
func appendWords(h hash.Hash, data []uint32) {
	block := make([]byte, 0, 1<<16)
	for len(data) > 0 {
		n := min(len(data), cap(block)/4)
		block = block[:0]
		for _, v := range data[:n] {
			block = binary.LittleEndian.AppendUint32(block, v)
		}
		h.Write(block) // a hash never returns an error
		data = data[n:]
	}
}

// mismatches counts the positions at which two arrays differ; a missing word differs.
func mismatches(a, b []uint32) int64 {
	n := int64(max(len(a), len(b)) - min(len(a), len(b)))
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// digests of the columns of a result, over all rows and over a leading part.
type digests struct {
	all    []record.Column
	prefix []record.Column // nil without a shorter part
}

func (d *digests) add(name string, width int, data []uint32, rows, prefix int64) {
	d.all = append(d.all, record.Column{Name: name, SHA256: digestWords(data)})
	if prefix > 0 && prefix < rows {
		d.prefix = append(d.prefix, record.Column{Name: name, SHA256: digestWords(data[:prefix*int64(width)])})
	}
}

// take keeps a column that expectations speak of.
func (a *answers) take(name string, data []uint32) {
	switch name {
	case "t":
		a.t = floats(data)
	case "p":
		a.p = floats(data)
	case "global_prim_id":
		a.prim = make([]int32, len(data))
		for i, v := range data {
			a.prim[i] = int32(v)
		}
	}
}

func floats(data []uint32) []float32 {
	out := make([]float32, len(data))
	for i, v := range data {
		out[i] = math.Float32frombits(v)
	}
	return out
}
