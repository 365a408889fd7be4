package npy_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/npy"
)

func TestRefusesDamagedArrays(t *testing.T) {
	const good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"
	data := make([]byte, 8)
	for _, c := range []struct {
		name string
		file []byte
		want string // part of the message
	}{
		{"empty", nil, "the end of the file"},
		{"magic", []byte("PK\x03\x04 and more"), `found "PK\x03\x04 a" at the beginning`},
		{"version 3", fixture(t, "version3.npy"), ".npy version 3.0"},
		{"no length", []byte("\x93NUMPY\x01\x00\x10"), "header: found the end of the file"},
		{"header larger than file", rawHeader(good, nil)[:40], "header length of 58 bytes; expected at most the 30 bytes"},
		{"version 2 header of 4 GiB", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{}"), "header length of 4294967295 bytes"},
		{"header of 100 kB", append([]byte("\x93NUMPY\x02\x00\xa0\x86\x01\x00"), make([]byte, 100_000)...), "at most 65536"},
		{"no dictionary", rawHeader("descr", data), `header: found "descr"`},
		{"open dictionary", rawHeader("{'descr': '<f4', 'fortran_order': False", data), "header: found the end of the header"},
		{"key missing", rawHeader("{'descr': '<f4', 'shape': (2,), }", data), "no key 'fortran_order'"},
		{"key twice", rawHeader("{'descr': '<f4', 'descr': '<f4', 'shape': (2,)}", data), `key "descr" twice`},
		{"unknown key", rawHeader("{'descr': '<f4', 'order': 'C', 'shape': (2,)}", data), `key "order"`},
		{"text after", rawHeader(good+"x", data), "nothing after the dictionary"},
		{"order", rawHeader("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", data), "True or False"},
		{"negative", rawHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", data), `dimension "-2"`},
		{"dimension", rawHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (two,), }", data), "a dimension"},
		{"dimension of 80 bit", rawHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999999999999999,), }", data),
			"fits into 64 bits"},
		{"product overflows", rawHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", data),
			"shape (4294967296, 4294967296)"},
		{"product times size overflows", rawHeader("{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,), }", data),
			"fits into memory"},
		{"100 dimensions", rawHeader("{'descr': '<f4', 'fortran_order': False, 'shape': ("+string(bytes.Repeat([]byte("1,"), 100))+"), }", data),
			"at most 64"},
		{"huge", rawHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 3), }", data),
			"found 8 bytes of data; expected 12000000000000 bytes for shape (1000000000000, 3)"},
		{"truncated", rawHeader(good, data[:7]), "found 7 bytes of data; expected 8 bytes"},
		{"too long", rawHeader(good, make([]byte, 9)), "found 9 bytes of data"},
		{"structured", fixture(t, "structured.npy"), "structured dtype"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := npy.Open(bytes.NewReader(c.file), int64(len(c.file)))
			requireFault(t, err, c.want)
		})
	}
}

// Arrays of another type are opened and never read: the message names the types that the caller takes, and no other.
func TestRefusesOtherTypes(t *testing.T) {
	for file, found := range map[string]string{
		"big_endian.npy": `dtype ">f4" (big endian)`,
		"half.npy":       `dtype "<f2"`,
		"object.npy":     `dtype "|O" (pickled Python objects)`,
		"ints.npy":       `dtype "<i4"`,
	} {
		t.Run(file, func(t *testing.T) {
			r := open(t, fixture(t, file))
			const floats = `; expected "<f4" (float32), or "<f8" (float64, which is rounded); in NumPy .astype(numpy.float32) converts`
			assert.EqualError(t, r.CheckFloat(), "found "+found+floats)
			const bools = `; expected "|b1" (bool); in NumPy .astype(bool) converts`
			assert.EqualError(t, r.CheckBool(), "found "+found+bools)
			_, _, err := r.Float32()
			requireFault(t, err, found)
			_, err = r.Bool()
			requireFault(t, err, found)
		})
	}
}

func requireFault(t *testing.T, err error, want string) {
	t.Helper()
	var fault *fileio.Fault
	require.ErrorAs(t, err, &fault)
	assert.Contains(t, err.Error(), want)
	assert.NotContains(t, err.Error(), "\n")
}

func TestTypesAreNotMixedUp(t *testing.T) {
	_, _, err := open(t, fixture(t, "bool.npy")).Float32()
	requireFault(t, err, `"|b1"`)
	_, err = open(t, fixture(t, "c.npy")).Bool()
	requireFault(t, err, `"<f4"`)
	for file, found := range map[string]string{"c.npy": "<f4", "int64.npy": "<i8", "bool.npy": "|b1"} {
		r := open(t, fixture(t, file))
		assert.EqualError(t, r.CheckInt(), `found dtype "`+found+`"; expected "<i4" (int32); in NumPy .astype(numpy.int32) converts`)
		_, err = r.Int32()
		requireFault(t, err, found)
	}
}

// entry is a column of an archive made by hand.
type entry struct {
	name string
	data []byte
}

func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, err := w.Create(e.name)
		require.NoError(t, err)
		_, err = f.Write(e.data)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// patch replaces a field of the first central directory record.
func patch(t *testing.T, file []byte, offset int, value uint32, size int) []byte {
	t.Helper()
	at := bytes.Index(file, []byte("PK\x01\x02"))
	require.Positive(t, at)
	file = bytes.Clone(file)
	if size == 2 {
		binary.LittleEndian.PutUint16(file[at+offset:], uint16(value))
	} else {
		binary.LittleEndian.PutUint32(file[at+offset:], value)
	}
	return file
}

func TestRefusesDamagedArchives(t *testing.T) {
	array := fixture(t, "c.npy")
	plain := archive(t, entry{"a.npy", array})
	stored := fixture(t, "stored.npz")
	flipped := bytes.Clone(stored)
	at := bytes.Index(flipped, []byte("(5, 3)"))
	flipped[at+100] ^= 0x40 // inside the elements
	const (
		flags, method, packedSize, fullSize = 8, 10, 20, 24 // offsets in a central directory record
	)
	for _, c := range []struct {
		name, column string
		file         []byte
		want         string
	}{
		{"not an archive", "a", array, "no zip directory"},
		{"truncated", "a", stored[:len(stored)-30], "no zip directory"},
		{"no such column", "b", stored, `no column "b"; expected file.npz:name with one of "a", "mask"`},
		{"no column given", "", stored, "no column name"},
		{"no arrays", "a", archive(t, entry{"readme.txt", nil}), "an archive with columns"},
		{"twice", "a", archive(t, entry{"a.npy", array}, entry{"a.npy", array}), `two columns "a"`},
		{"not an array", "a", archive(t, entry{"a.npy", []byte("hello, world")}), `column "a": found "hello,"`},
		{"checksum", "a", flipped, "does not match its checksum"},
		{"encrypted", "a", patch(t, plain, flags, 1, 2), "an encrypted column"},
		{"method", "a", patch(t, plain, method, 99, 2), "compression method 99"},
		{"larger than the archive", "a", patch(t, plain, packedSize, 1<<30, 4), "a declared size of 1073741824 bytes"},
		{"bomb", "a", patch(t, plain, fullSize, 0xfffffff0, 4), "expected at most 1032 times as many"},
		{"stored sizes differ", "a", patch(t, stored, fullSize, 5000, 4), "since it is stored uncompressed"},
		{"declared too long", "a", patch(t, plain, fullSize, uint32(len(array)+4), 4), "64 bytes of data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := npy.OpenColumn(bytes.NewReader(c.file), int64(len(c.file)), c.column)
			if err == nil {
				_, _, err = r.Float32()
				require.NoError(t, r.Close())
			}
			requireFault(t, err, c.want)
		})
	}
}

// A header and a directory agree on a gigabyte, and the compressed data could be that much, but holds a megabyte.
func TestDeclaredSizeIsNotAllocated(t *testing.T) {
	header := rawHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (250000000,), }", nil)
	noise := make([]byte, 1<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	file := archive(t, entry{"a.npy", append(header, noise...)})
	file = patch(t, file, 24, uint32(len(header)+1_000_000_000), 4)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := npy.OpenColumn(bytes.NewReader(file), int64(len(file)), "a")
	require.NoError(t, err)
	_, _, err = r.Float32()
	requireFault(t, err, "the end of the file")
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

var errDisk = errors.New("input/output error")

// brokenAt fails from a given offset on.
type brokenAt struct {
	io.ReaderAt
	limit int64
}

func (b brokenAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.limit {
		return 0, errDisk
	}
	return b.ReaderAt.ReadAt(p, off)
}

func TestReadErrorsAreNotDamage(t *testing.T) {
	var fault *fileio.Fault
	for _, name := range []string{"c.npy", "packed.npz"} {
		b := fixture(t, name)
		src := brokenAt{bytes.NewReader(b), 0}
		_, err := npy.Open(src, int64(len(b)))
		if name == "packed.npz" {
			_, err = npy.OpenColumn(src, int64(len(b)), "a")
		}
		require.ErrorIs(t, err, errDisk)
		assert.False(t, errors.As(err, &fault))
	}
}

func TestSplitColumn(t *testing.T) {
	for _, c := range []struct {
		arg, path, column string
		ok                bool
	}{
		{"rays.npy", "rays.npy", "", false},
		{"rays.npz", "rays.npz", "", false},
		{"rays.npz:o", "rays.npz", "o", true},
		{"RAYS.NPZ:o", "RAYS.NPZ", "o", true},
		{"rays.npz:", "rays.npz", "", true},
		{`C:\data\rays.npz:dir`, `C:\data\rays.npz`, "dir", true},
		{`C:\data\rays.npy`, `C:\data\rays.npy`, "", false},
		{"a.npz:b/rays.npz:c", "a.npz:b/rays.npz", "c", true},
	} {
		path, column, ok := npy.SplitColumn(c.arg)
		assert.Equal(t, c.path, path, c.arg)
		assert.Equal(t, c.column, column, c.arg)
		assert.Equal(t, c.ok, ok, c.arg)
	}
}
