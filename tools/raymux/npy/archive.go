package npy

import (
	"archive/zip"
	"bufio"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

const (
	// maxInflation is the largest factor by which the format of compress/flate can expand data: a match of 258 bytes in
	// two bits.
	maxInflation = 1032
	// inflationSlack covers the block headers of tiny entries.
	inflationSlack = 1 << 10
	// encryptedFlag is bit 0 of a zip entry's flags.
	encryptedFlag = 1
	// maxListed bounds the column names that a message lists.
	maxListed = 12
)

// SplitColumn separates "file.npz:name" into the archive's path and the column's name. For every other argument column
// is empty and ok is false.
func SplitColumn(arg string) (path, column string, ok bool) {
	const ext = ".npz:"
	i := strings.LastIndex(strings.ToLower(arg), ext)
	if i < 0 {
		return arg, "", false
	}
	cut := i + len(ext) - 1
	return arg[:cut], arg[cut+1:], true
}

// Open reads the header of the array in a .npy file of size bytes.
func Open(r io.ReaderAt, size int64) (*Reader, error) {
	return NewReader(bufio.NewReaderSize(io.NewSectionReader(r, 0, size), blockBytes), size, size)
}

// OpenColumn reads the header of one column of an .npz archive of size bytes. The reader must be closed.
func OpenColumn(r io.ReaderAt, size int64, column string) (*Reader, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, archiveFault(err)
	}
	entry, err := findColumn(archive, column)
	if err != nil {
		return nil, err
	}
	if err := checkEntry(entry, size); err != nil {
		return nil, err
	}
	rc, err := entry.Open()
	if err != nil {
		return nil, archiveFault(err)
	}
	reader, err := NewReader(rc, int64(entry.UncompressedSize64), int64(entry.CompressedSize64))
	if err != nil {
		return nil, errors.Join(columnFault(column, archiveFault(err)), rc.Close())
	}
	reader.closer = rc
	return reader, nil
}

// Names lists the columns of an .npz archive of size bytes, in its order.
func Names(r io.ReaderAt, size int64) ([]string, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, archiveFault(err)
	}
	var names []string
	for _, f := range archive.File {
		if name, isArray := strings.CutSuffix(f.Name, ".npy"); isArray {
			names = append(names, name)
		}
	}
	return names, nil
}

func findColumn(archive *zip.Reader, column string) (*zip.File, error) {
	var found *zip.File
	var names []string
	for _, f := range archive.File {
		name, isArray := strings.CutSuffix(f.Name, ".npy")
		if !isArray {
			continue
		}
		names = append(names, name)
		if name != column {
			continue
		}
		if found != nil {
			return nil, fileio.Faultf("each column once", "two columns %s", fileio.Quote(column))
		}
		found = f
	}
	if found != nil {
		return found, nil
	}
	slices.Sort(names)
	more := ""
	if len(names) > maxListed {
		names, more = names[:maxListed], ", ..."
	}
	for i, name := range names {
		names[i] = fileio.Quote(name)
	}
	expected := "an archive with columns"
	if len(names) > 0 {
		expected = "file.npz:name with one of " + strings.Join(names, ", ") + more
	}
	if column == "" {
		return nil, fileio.Faultf(expected, "no column name")
	}
	return nil, fileio.Faultf(expected, "no column %s", fileio.Quote(column))
}

// checkEntry refuses an entry whose declared sizes cannot be true for an archive of size bytes.
func checkEntry(f *zip.File, size int64) error {
	packed, full := f.CompressedSize64, f.UncompressedSize64
	column := strings.TrimSuffix(f.Name, ".npy")
	switch {
	case f.Flags&encryptedFlag != 0:
		return columnFault(column, fileio.Faultf("a plain archive", "an encrypted column"))
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return columnFault(column, fileio.Faultf("stored or deflated data", "compression method %d", f.Method))
	case packed > uint64(size) || full > math.MaxInt64:
		return columnFault(column, fileio.Faultf(fmt.Sprintf("at most the archive's %d", size),
			"a declared size of %d bytes, %d unpacked", packed, full))
	case f.Method == zip.Store && full != packed:
		return columnFault(column, fileio.Faultf("the same sizes, since it is stored uncompressed",
			"a declared size of %d bytes, %d unpacked", packed, full))
	case f.Method == zip.Deflate && full > packed*maxInflation+inflationSlack:
		return columnFault(column, fileio.Faultf(fmt.Sprintf("at most %d times as many", maxInflation),
			"a declared size of %d bytes from %d compressed ones", full, packed))
	}
	return nil
}

func columnFault(column string, err error) error {
	var f *fileio.Fault
	if !errors.As(err, &f) {
		return err
	}
	where := "column " + fileio.Quote(column)
	if f.Where != "" {
		where += ", " + f.Where
	}
	return &fileio.Fault{Where: where, Found: f.Found, Expected: f.Expected}
}

// archiveFault names what the archive reader found wrong and leaves errors of the file system alone.
func archiveFault(err error) error {
	var corrupt flate.CorruptInputError
	const expected = "a NumPy archive (.npz, a zip file)"
	switch {
	case errors.Is(err, zip.ErrFormat):
		return fileio.Faultf(expected, "no zip directory, or a damaged one")
	case errors.Is(err, zip.ErrChecksum):
		return fileio.Faultf(expected, "data that does not match its checksum")
	case errors.Is(err, zip.ErrAlgorithm):
		return fileio.Faultf(expected, "an unknown compression method")
	case errors.As(err, &corrupt):
		return fileio.Faultf(expected, "damaged compressed data")
	}
	return fileio.AsTruncation(err, "", expected)
}
