package npy

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Column is a named array to be written. Make one with [Floats], [Complexes], [Ints], [Uints], [Longs], [Bytes] or [Bools]:
// the product of shape is the number of values, which are in C order. No shape is a single value.
type Column struct {
	Name  string
	Shape []int

	dtype string
	bytes int64
	write func(io.Writer) error // the values
}

// Floats is a float32 column.
func Floats(name string, data []float32, shape ...int) Column {
	return makeColumn(name, "<f4", 4, data, shape, func(b []byte, v float32) []byte {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	})
}

// Ints is an int32 column.
func Ints(name string, data []int32, shape ...int) Column {
	return makeColumn(name, "<i4", 4, data, shape, func(b []byte, v int32) []byte { return binary.LittleEndian.AppendUint32(b, uint32(v)) })
}

// Uints is a uint32 column.
func Uints(name string, data []uint32, shape ...int) Column {
	return makeColumn(name, "<u4", 4, data, shape, binary.LittleEndian.AppendUint32)
}

// Complexes is a complex64 column.
func Complexes(name string, data []complex64, shape ...int) Column {
	return makeColumn(name, "<c8", 8, data, shape, func(b []byte, v complex64) []byte {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(real(v)))
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(imag(v)))
	})
}

// Longs is an int64 column.
func Longs(name string, data []int64, shape ...int) Column {
	return makeColumn(name, "<i8", 8, data, shape, func(b []byte, v int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(v)) })
}

// Bytes is a uint8 column.
func Bytes(name string, data []uint8, shape ...int) Column {
	return makeColumn(name, "|u1", 1, data, shape, func(b []byte, v uint8) []byte { return append(b, v) })
}

// Bools is a bool column; data is zeros and ones.
func Bools(name string, data []uint8, shape ...int) Column {
	return makeColumn(name, "|b1", 1, data, shape, func(b []byte, v uint8) []byte { return append(b, v) })
}

func makeColumn[T any](name, dtype string, size int64, data []T, shape []int, add func([]byte, T) []byte) Column {
	return Column{
		Name: name, Shape: shape, dtype: dtype, bytes: size * int64(len(data)),
		write: func(w io.Writer) error { return writeBlocks(w, data, add) },
	}
}

// Move writes the values to w and returns a column that takes them from read instead, which copies them to its writer. So
// the column no longer needs memory.
func (c Column) Move(w io.Writer, read func(io.Writer) error) (Column, error) {
	err := c.write(w)
	c.write = read
	return c, err
}

// Join is the column of the rows of all parts, in their order. Parts are of one name, type and width; there is at least
// one.
func Join(parts []Column) Column {
	all := parts[0]
	all.Shape = append([]int{0}, all.Shape[1:]...)
	all.bytes = 0
	for _, p := range parts {
		all.Shape[0] += p.Shape[0]
		all.bytes += p.bytes
	}
	all.write = func(w io.Writer) error {
		for _, p := range parts {
			if err := p.write(w); err != nil {
				return err
			}
		}
		return nil
	}
	return all
}

// Bytes is the size of the values.
func (c Column) Bytes() int64 { return c.bytes }

// headerAlign is the multiple at which NumPy lets the data begin, so that a file can be mapped into memory.
const headerAlign = 64

// Write writes one array as a version 1 .npy file.
func Write(w io.Writer, c Column) error {
	if _, err := w.Write(formatHeader(c.dtype, c.Shape)); err != nil {
		return err
	}
	return c.write(w)
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
		if buf = add(buf, v); len(buf) > cap(buf)-8 {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err := w.Write(buf)
	return err
}
