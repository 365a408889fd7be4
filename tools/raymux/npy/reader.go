package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

// blockBytes is how much of an array is decoded at a time. A multiple of every item size.
const blockBytes = 1 << 16

// Reader reads one array. Its header is read and checked; the elements are read by one of the typed methods, once.
type Reader struct {
	Header Header

	r        io.Reader
	physical int64
	closer   io.Closer
}

// NewReader reads the header of an array from r. The array's file is size bytes long, header included, as declared by
// whoever stores it; physical is the number of bytes that are really there to be decoded (smaller than size in a
// compressed archive). Memory taken in advance is bounded by physical, the rest is taken as data arrives. The type of the
// elements is up to the caller: ask [Reader.CheckFloat], [Reader.CheckInt] or [Reader.CheckBool].
func NewReader(r io.Reader, size, physical int64) (*Reader, error) {
	h, used, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	// Elements of another type are never read. count keeps Count * 8 inside int64, so this product is exact.
	item, readable := itemSize[h.DType]
	if have := size - used; readable && have != h.Count*item {
		return nil, fileio.Faultf(
			fmt.Sprintf("%d bytes for shape %s of dtype '%s'", h.Count*item, h.ShapeString(), h.DType),
			"%d bytes of data", have)
	}
	return &Reader{Header: h, r: r, physical: physical}, nil
}

// typeFault names the types that are taken in place of the array's own, and how NumPy converts to them.
func (r *Reader) typeFault(taken, convert string) error {
	dtype := r.Header.DType
	found := "dtype " + fileio.Quote(dtype)
	switch {
	case dtype == "|O" || dtype == "O":
		found += " (pickled Python objects)"
	case dtype != "" && dtype[0] == '>':
		found += " (big endian)"
	}
	return fileio.Faultf(taken+"; in NumPy "+convert+" converts", "%s", found)
}

// Close releases what the reader holds of an archive. It does not close the file.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// CheckFloat refuses an array that [Reader.Float32] cannot read.
func (r *Reader) CheckFloat() error {
	if r.Header.DType != "<f4" && r.Header.DType != "<f8" {
		return r.typeFault(`"<f4" (float32), or "<f8" (float64, which is rounded)`, ".astype(numpy.float32)")
	}
	return nil
}

// CheckBool refuses an array that [Reader.Bool] cannot read.
func (r *Reader) CheckBool() error {
	if r.Header.DType != "|b1" {
		return r.typeFault(`"|b1" (bool)`, ".astype(bool)")
	}
	return nil
}

// CheckInt refuses an array that [Reader.Int32] cannot read.
func (r *Reader) CheckInt() error {
	if r.Header.DType != "<i4" {
		return r.typeFault(`"<i4" (int32)`, ".astype(numpy.int32)")
	}
	return nil
}

// Converted reports whether [Reader.Float32] rounds float64 values.
func (r *Reader) Converted() bool { return r.Header.DType == "<f8" }

// Float32 reads the elements in C order. float64 elements are rounded to the nearest float32; overflowed is the number
// of finite ones that became infinite by that.
func (r *Reader) Float32() (data []float32, overflowed int64, err error) {
	if err := r.CheckFloat(); err != nil {
		return nil, 0, err
	}
	data, err = decode(r, func(dst []float32, b []byte) []float32 {
		if r.Header.DType == "<f4" {
			for ; len(b) > 0; b = b[4:] {
				dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(b)))
			}
			return dst
		}
		for ; len(b) > 0; b = b[8:] {
			wide := math.Float64frombits(binary.LittleEndian.Uint64(b))
			v := float32(wide)
			if math.IsInf(float64(v), 0) && !math.IsInf(wide, 0) {
				overflowed++
			}
			dst = append(dst, v)
		}
		return dst
	})
	return data, overflowed, err
}

// Bool reads the elements in C order as bytes, 0 or 1. Any byte but 0 is true.
func (r *Reader) Bool() ([]uint8, error) {
	if err := r.CheckBool(); err != nil {
		return nil, err
	}
	return decode(r, func(dst []uint8, b []byte) []uint8 {
		for _, v := range b {
			if v != 0 {
				v = 1
			}
			dst = append(dst, v)
		}
		return dst
	})
}

// Int32 reads the elements in C order.
func (r *Reader) Int32() ([]int32, error) {
	if err := r.CheckInt(); err != nil {
		return nil, err
	}
	return decode(r, func(dst []int32, b []byte) []int32 {
		for ; len(b) > 0; b = b[4:] {
			dst = append(dst, int32(binary.LittleEndian.Uint32(b)))
		}
		return dst
	})
}

// decode reads all elements block by block and puts them into C order.
func decode[T any](r *Reader, add func(dst []T, b []byte) []T) ([]T, error) {
	item := itemSize[r.Header.DType]
	left := r.Header.Count * item
	data := make([]T, 0, min(r.Header.Count, r.physical/item))
	buf := make([]byte, min(left, blockBytes))
	for left > 0 {
		b := buf[:min(left, blockBytes)]
		if _, err := io.ReadFull(r.r, b); err != nil {
			return nil, archiveFault(fileio.AsTruncation(err, "data", fmt.Sprintf("%d more bytes", left)))
		}
		data = add(data, b)
		left -= int64(len(b))
	}
	// An archive checks its checksum when its end is read.
	if n, err := r.r.Read(buf[:min(1, len(buf))]); n == 0 && err != nil && !errors.Is(err, io.EOF) {
		return nil, archiveFault(err)
	}
	if r.Header.Fortran {
		data = transpose(data, r.Header.Shape)
	}
	return data, nil
}

// transpose turns elements whose first index varies fastest into C order.
func transpose[T any](src []T, shape []int64) []T {
	if len(shape) < 2 {
		return src
	}
	dst := make([]T, len(src))
	index := make([]int64, len(shape))
	for _, v := range src {
		at := int64(0)
		for k, n := range shape {
			at = at*n + index[k]
		}
		dst[at] = v
		for k := range shape {
			if index[k]++; index[k] < shape[k] {
				break
			}
			index[k] = 0
		}
	}
	return dst
}
