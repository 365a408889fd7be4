package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// column is one result column on a device.
type column struct {
	name string
	size int // bytes of a value: 8, 4 or 1
	data cuda.Slice[uint8]
}

// columnOf is a column of any type.
func columnOf[T cuda.Scalar](name string, size int, data cuda.Slice[T]) (column, error) {
	raw, err := cuda.Reinterpret[uint8](data)
	return column{name, size, raw}, err
}

// hitColumns lists the columns of a result.
func hitColumns(h *scene.Hits) ([]column, error) {
	var list []column
	for _, c := range scene.HitColumns(h.Flags) {
		next, err := hitColumn(h, c.Name)
		if err != nil {
			return nil, err
		}
		list = append(list, next)
	}
	return list, nil
}

// hitColumn returns one column of a result by its name.
func hitColumn(h *scene.Hits, name string) (column, error) {
	floats := map[string]cuda.Slice[float32]{"t": h.T, "p": h.P, "n": h.N, "geo_n": h.GeoN, "uv": h.UV, "barycentric": h.Barycentric}
	if c, ok := floats[name]; ok {
		return columnOf(name, 4, c)
	}
	ints := map[string]cuda.Slice[int32]{"shape_id": h.ShapeID, "prim_id": h.PrimID, "local_prim_id": h.LocalPrimID, "global_prim_id": h.GlobalPrimID}
	if c, ok := ints[name]; ok {
		return columnOf(name, 4, c)
	}
	return column{}, fmt.Errorf("the benchmark does not know the result column %q", name)
}

// chainColumns lists the core columns of chains.
func chainColumns(c *scene.Chains) ([]column, error) {
	valid, err := columnOf("valid", 1, c.Valid)
	if err != nil {
		return nil, err
	}
	t, err := columnOf("t", 4, c.T)
	if err != nil {
		return nil, err
	}
	ids, err := columnOf("prim_ids", 4, c.PrimIDs)
	return []column{valid, t, ids}, err
}

// download copies a column to the host, as the little-endian bytes that devices hold.
func (c column) download(ctx context.Context, st *cuda.Stream) ([]byte, error) {
	return cuda.Download(ctx, st, c.data)
}

// hostColumn is a result column on the host.
type hostColumn struct {
	name string
	size int // bytes of a value
	data []byte
}

// hostColumns downloads the columns of a result.
func hostColumns(st *cuda.Stream, list []column) ([]hostColumn, error) {
	out := make([]hostColumn, len(list))
	for i, c := range list {
		data, err := c.download(background, st)
		if err != nil {
			return nil, err
		}
		out[i] = hostColumn{c.name, c.size, data}
	}
	return out, nil
}

// digestBytes returns the SHA-256 of a column.
func digestBytes(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// mismatches counts the values of the given size in which two columns differ; a missing value differs.
func mismatches(a, b []byte, size int) int64 {
	short := min(len(a), len(b))
	n := int64((max(len(a), len(b)) - short) / size)
	const block = 1 << 12 // of bytes compared at a time: nearly always equal
	for from := 0; from < short; from += block {
		to := min(from+block, short)
		if bytes.Equal(a[from:to], b[from:to]) {
			continue
		}
		for at := from; at < to; at += size {
			if !bytes.Equal(a[at:at+size], b[at:at+size]) {
				n++
			}
		}
	}
	return n
}

// digests of the columns of a result, over all rows and over a leading part.
type digests struct {
	all    []record.Column
	prefix []record.Column // nil without a shorter part
}

func (d *digests) add(name string, data []byte, rows, prefix int64) {
	d.all = append(d.all, record.Column{Name: name, SHA256: digestBytes(data)})
	if prefix > 0 && prefix < rows {
		d.prefix = append(d.prefix, record.Column{Name: name, SHA256: digestBytes(data[:int64(len(data))/rows*prefix])})
	}
}

// take keeps a column that expectations speak of.
func (a *answers) take(name string, data []byte) {
	switch name {
	case "t":
		a.t = floats(data)
	case "p":
		a.p = floats(data)
	case "global_prim_id", "prim_ids":
		a.prim = ints(data)
	case "valid":
		a.valid = data
	}
}

func floats(data []byte) []float32 {
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

func longs(data []byte) []int64 {
	out := make([]int64, len(data)/8)
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return out
}

func ints(data []byte) []int32 {
	out := make([]int32, len(data)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}
