package npy

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Column is a named array to be written. Make one with [Floats] or [Ints].
type Column struct {
	Name  string
	Shape []int

	floats []float32
	ints   []int32
	isInt  bool
}

// Floats is a float32 column. The product of shape is len(data); data is in C order.
func Floats(name string, data []float32, shape ...int) Column {
	return Column{Name: name, Shape: shape, floats: data}
}

// Ints is an int32 column. The product of shape is len(data); data is in C order.
func Ints(name string, data []int32, shape ...int) Column {
	return Column{Name: name, Shape: shape, ints: data, isInt: true}
}

// headerAlign is the multiple at which NumPy lets the data begin, so that a file can be mapped into memory.
const headerAlign = 64

// Write writes one array as a version 1 .npy file.
func Write(w io.Writer, c Column) error {
	dtype := "<f4"
	if c.isInt {
		dtype = "<i4"
	}
	if _, err := w.Write(formatHeader(dtype, c.Shape)); err != nil {
		return err
	}
	if c.isInt {
		return writeBlocks(w, c.ints, func(b []byte, v int32) []byte { return binary.LittleEndian.AppendUint32(b, uint32(v)) })
	}
	return writeBlocks(w, c.floats, func(b []byte, v float32) []byte {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	})
}

// WriteArchive writes arrays as an uncompressed .npz archive, in the given order and without dates, so that equal results
// are equal files.
func WriteArchive(w io.Writer, columns []Column) error {
	archive := zip.NewWriter(w)
	for _, c := range columns {
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: c.Name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if err := Write(entry, c); err != nil {
			return err
		}
	}
	return archive.Close()
}

func formatHeader(dtype string, shape []int) []byte {
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", dtype, formatShape(shape))
	const prefix = len(magic) + 4
	padded := (prefix + len(text) + 1 + headerAlign - 1) / headerAlign * headerAlign
	b := make([]byte, 0, padded)
	b = append(b, magic...)
	b = append(b, 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(padded-prefix))
	b = append(b, text...)
	for len(b) < padded-1 {
		b = append(b, ' ')
	}
	return append(b, '\n')
}

func writeBlocks[T any](w io.Writer, data []T, add func([]byte, T) []byte) error {
	buf := make([]byte, 0, blockBytes)
	for _, v := range data {
		if buf = add(buf, v); len(buf) == cap(buf) {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err := w.Write(buf)
	return err
}
