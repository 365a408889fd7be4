package npy_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/tools/raymux/npy"
)

// The files of testdata come from NumPy: see ../make_fixtures.py.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return b
}

func open(t *testing.T, b []byte) *npy.Reader {
	t.Helper()
	r, err := npy.Open(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	return r
}

func fives(f func(i, j float64) float64) []float32 {
	var want []float32
	for i := range 5 {
		for j := range 3 {
			want = append(want, float32(f(float64(i), float64(j))))
		}
	}
	return want
}

func quarter(i, j float64) float64 { return i - 0.25*j }

func TestReadsWhatNumPyWrites(t *testing.T) {
	for _, name := range []string{"c.npy", "fortran.npy", "version2.npy"} {
		t.Run(name, func(t *testing.T) {
			r := open(t, fixture(t, name))
			assert.Equal(t, []int64{5, 3}, r.Header.Shape)
			assert.Equal(t, "(5, 3)", r.Header.ShapeString())
			assert.Equal(t, name == "fortran.npy", r.Header.Fortran)
			assert.False(t, r.Converted())
			data, overflowed, err := r.Float32()
			require.NoError(t, err)
			assert.Zero(t, overflowed)
			assert.Equal(t, fives(quarter), data)
		})
	}
}

func TestConvertsFloat64(t *testing.T) {
	for _, name := range []string{"float64.npy", "float64_fortran.npy"} {
		t.Run(name, func(t *testing.T) {
			r := open(t, fixture(t, name))
			assert.True(t, r.Converted())
			data, overflowed, err := r.Float32()
			require.NoError(t, err)
			want := fives(func(i, j float64) float64 { return (i+1)/3 + j })
			want[4*3+2] = float32(math.Inf(1)) // 1e300
			want[3*3+1] = float32(math.Inf(-1))
			assert.Equal(t, want, data)
			assert.EqualValues(t, 1, overflowed, "only the finite value counts")
		})
	}
}

func TestReadsBool(t *testing.T) {
	b := fixture(t, "bool.npy")
	data, err := open(t, b).Bool()
	require.NoError(t, err)
	assert.Equal(t, []uint8{1, 0, 1, 1, 0}, data)
	b[len(b)-1] = 0x80 // any byte but 0 is true
	data, err = open(t, b).Bool()
	require.NoError(t, err)
	assert.Equal(t, []uint8{1, 0, 1, 1, 1}, data)
}

func TestReadsInt32(t *testing.T) {
	data, err := open(t, fixture(t, "ints.npy")).Int32()
	require.NoError(t, err)
	assert.Equal(t, []int32{-3, -2, -1, 0, 1, 2, 3, 4, 5, 6}, data)
}

func TestFortranOrderOfThreeDimensions(t *testing.T) {
	data, _, err := open(t, fixture(t, "cube_fortran.npy")).Float32()
	require.NoError(t, err)
	for i, v := range data {
		assert.Equal(t, float32(i), v)
	}
	assert.Len(t, data, 24)
}

func TestNoRowsAndScalar(t *testing.T) {
	r := open(t, fixture(t, "rows0.npy"))
	assert.Equal(t, []int64{0, 3}, r.Header.Shape)
	data, _, err := r.Float32()
	require.NoError(t, err)
	assert.Empty(t, data)
	r = open(t, fixture(t, "scalar.npy"))
	assert.Empty(t, r.Header.Shape)
	data, _, err = r.Float32()
	require.NoError(t, err)
	assert.Equal(t, []float32{1.5}, data)
}

func TestReadsArchives(t *testing.T) {
	for _, c := range []struct {
		file, column string
		rows         int64
	}{{"stored.npz", "a", 5}, {"packed.npz", "a", 5}, {"packed.npz", "zeros", 4096}} {
		b := fixture(t, c.file)
		r, err := npy.OpenColumn(bytes.NewReader(b), int64(len(b)), c.column)
		require.NoError(t, err)
		data, _, err := r.Float32()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		assert.Equal(t, []int64{c.rows, 3}, r.Header.Shape)
		if c.column == "a" {
			assert.Equal(t, fives(quarter), data)
		} else {
			assert.Equal(t, make([]float32, 3*4096), data)
		}
	}
	b := fixture(t, "stored.npz")
	r, err := npy.OpenColumn(bytes.NewReader(b), int64(len(b)), "mask")
	require.NoError(t, err)
	mask, err := r.Bool()
	require.NoError(t, err)
	assert.Equal(t, []uint8{1, 0}, mask)
}

func TestWritesTheBytesOfNumPy(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, npy.Write(&b, npy.Floats("a", fives(quarter), 5, 3)))
	assert.Equal(t, fixture(t, "c.npy"), b.Bytes())
	b.Reset()
	require.NoError(t, npy.Write(&b, npy.Ints("ints", []int32{-3, -2, -1, 0, 1, 2, 3, 4, 5, 6}, 5, 2)))
	assert.Equal(t, fixture(t, "ints.npy"), b.Bytes())
	b.Reset()
	require.NoError(t, npy.Write(&b, npy.Floats("rows0", nil, 0, 3)))
	assert.Equal(t, fixture(t, "rows0.npy"), b.Bytes())
}

func TestArchiveRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{0, 1, 3, 20_000} {
		want := make([]float32, n)
		for i := range want {
			want[i] = math.Float32frombits(rng.Uint32() &^ (1 << 30)) // finite, any sign and subnormals
		}
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(rng.Uint32())
		}
		write := func() []byte {
			var b bytes.Buffer
			require.NoError(t, npy.WriteArchive(&b, []npy.Column{npy.Floats("t", want, n), npy.Ints("prim_id", ids, n)}))
			return b.Bytes()
		}
		file := write()
		assert.Equal(t, file, write(), "equal results are equal files")
		r, err := npy.OpenColumn(bytes.NewReader(file), int64(len(file)), "t")
		require.NoError(t, err)
		got, _, err := r.Float32()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Len(t, got, n)
		for i := range got {
			require.Equal(t, math.Float32bits(want[i]), math.Float32bits(got[i]))
		}
	}
}

func TestNames(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, npy.WriteArchive(&b, []npy.Column{npy.Floats("t", nil, 0), npy.Ints("prim_id", nil, 0)}))
	names, err := npy.Names(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	assert.Equal(t, []string{"t", "prim_id"}, names)
	_, err = npy.Names(bytes.NewReader(b.Bytes()), int64(b.Len()-1))
	assert.ErrorContains(t, err, "no zip directory")
}

// FuzzOpen feeds damaged arrays to the reader: it must return an error or exactly the declared number of elements.
func FuzzOpen(f *testing.F) {
	files, err := filepath.Glob("testdata/*.npy")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, name := range files {
		f.Add(fixture(f, filepath.Base(name)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := npy.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		if data, _, err := r.Float32(); err == nil && int64(len(data)) != r.Header.Count {
			t.Fatalf("%d elements, the header declares %d", len(data), r.Header.Count)
		}
	})
}

// FuzzOpenColumn does the same with archives.
func FuzzOpenColumn(f *testing.F) {
	f.Add(fixture(f, "stored.npz"))
	f.Add(fixture(f, "packed.npz"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := npy.OpenColumn(bytes.NewReader(b), int64(len(b)), "a")
		if err != nil {
			return
		}
		defer r.Close()
		if data, _, err := r.Float32(); err == nil && int64(len(data)) != r.Header.Count {
			t.Fatalf("%d elements, the header declares %d", len(data), r.Header.Count)
		}
	})
}

// rawHeader makes a version 1 file with the given header text and data.
func rawHeader(text string, data []byte) []byte {
	b := []byte("\x93NUMPY\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(append(b, text...), data...)
}

// The other types of values, byte by byte: NumPy reads these headers as int64, bool, uint8, uint32 and complex64, and a shape of
// no dimensions as a single value.
func TestWritesOtherTypes(t *testing.T) {
	const prefix = "\x93NUMPY\x01\x00\x76\x00"
	for _, c := range []struct {
		column     npy.Column
		dict, data string
	}{
		{npy.Longs("", []int64{1, -2, 1 << 40}, 3), "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }",
			"\x01\x00\x00\x00\x00\x00\x00\x00\xfe\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x01\x00\x00"},
		{npy.Bools("", []uint8{1, 0, 1, 1}, 2, 2), "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 2), }", "\x01\x00\x01\x01"},
		{npy.Bytes("", []uint8{7, 255}, 2), "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", "\x07\xff"},
		{npy.Uints("", []uint32{3, 1<<32 - 2}, 2), "{'descr': '<u4', 'fortran_order': False, 'shape': (2,), }", "\x03\x00\x00\x00\xfe\xff\xff\xff"},
		{npy.Complexes("", []complex64{complex(1, -2), complex(0, .5)}, 1, 2), "{'descr': '<c8', 'fortran_order': False, 'shape': (1, 2), }",
			"\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00\x3f"},
		{npy.Longs("", []int64{7}), "{'descr': '<i8', 'fortran_order': False, 'shape': (), }", "\x07\x00\x00\x00\x00\x00\x00\x00"},
	} {
		var b bytes.Buffer
		require.NoError(t, npy.Write(&b, c.column))
		want := prefix + c.dict + strings.Repeat(" ", 0x76-len(c.dict)-1) + "\n" + c.data
		require.Equal(t, want, b.String())
		require.EqualValues(t, len(c.data), c.column.Bytes())
	}
	// A large column is written in blocks.
	large := make([]int64, 1<<16+3)
	for i := range large {
		large[i] = int64(i) << 20
	}
	var b bytes.Buffer
	require.NoError(t, npy.Write(&b, npy.Longs("", large, len(large))))
	data := b.Bytes()[b.Len()-8*len(large):]
	for i, v := range large {
		require.EqualValues(t, v, binary.LittleEndian.Uint64(data[8*i:]))
	}
}
