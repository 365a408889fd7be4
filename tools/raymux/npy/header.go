package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

const (
	magic = "\x93NUMPY"
	// maxHeader bounds the text of a header. NumPy's own writer stays under it for every type that is accepted here.
	maxHeader = 1 << 16
	// maxRank is NumPy's own limit.
	maxRank = 64
)

// Header describes an array as its file declares it.
type Header struct {
	DType   string  // NumPy's type string, for instance "<f4"
	Fortran bool    // the first index varies fastest
	Shape   []int64 // every entry is >= 0
	Count   int64   // number of elements, the product of Shape
}

// ShapeString shows the shape as NumPy does: (4, 3) or (4,).
func (h Header) ShapeString() string { return formatShape(h.Shape) }

func formatShape[T int | int64](shape []T) string {
	parts := make([]string, len(shape))
	for i, n := range shape {
		parts[i] = fmt.Sprint(n)
	}
	if len(parts) == 1 {
		return "(" + parts[0] + ",)"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// itemSize is the number of bytes of one element of the accepted types.
var itemSize = map[string]int64{"<f4": 4, "<f8": 8, "<i4": 4, "|b1": 1}

// readHeader reads the header of an array whose file has size bytes in all, and returns how many bytes the header took.
func readHeader(r io.Reader, size int64) (Header, int64, error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return Header{}, 0, fileio.AsTruncation(err, "", "a NumPy array (.npy), which begins with \\x93NUMPY")
	}
	if string(prefix[:6]) != magic {
		return Header{}, 0, fileio.Faultf("a NumPy array (.npy), which begins with \\x93NUMPY",
			"%s at the beginning", fileio.Quote(prefix[:6]))
	}
	var lengthBytes int64
	switch major, minor := prefix[6], prefix[7]; {
	case major == 1 && minor == 0:
		lengthBytes = 2
	case major == 2 && minor == 0:
		lengthBytes = 4
	default:
		return Header{}, 0, fileio.Faultf("version 1.0 or 2.0", ".npy version %d.%d", major, minor)
	}
	var field [4]byte
	if _, err := io.ReadFull(r, field[:lengthBytes]); err != nil {
		return Header{}, 0, fileio.AsTruncation(err, "header", "its length")
	}
	length := int64(binary.LittleEndian.Uint32(field[:]))
	used := int64(len(prefix)) + lengthBytes + length
	if used > size {
		return Header{}, 0, fileio.Faultf(fmt.Sprintf("at most the %d bytes that are left in the file", size-used+length),
			"a header length of %d bytes", length)
	}
	if length > maxHeader {
		return Header{}, 0, fileio.Faultf(fmt.Sprintf("at most %d", maxHeader), "a header length of %d bytes", length)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return Header{}, 0, fileio.AsTruncation(err, "header", fmt.Sprintf("%d bytes", length))
	}
	h, err := parseDict(string(text))
	if err != nil {
		return Header{}, 0, err
	}
	if h.Count, err = count(h.Shape); err != nil {
		return Header{}, 0, err
	}
	return h, used, nil
}

// count multiplies the dimensions and refuses a product that no file could hold.
func count(shape []int64) (int64, error) {
	n := int64(1)
	overflow := false
	for _, d := range shape {
		if d == 0 {
			return 0, nil
		}
		if n > math.MaxInt64/8/d {
			overflow = true
		} else {
			n *= d
		}
	}
	if overflow {
		return 0, fileio.Faultf("an array that fits into memory", "shape %s", formatShape(shape))
	}
	return n, nil
}
