package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/fileio/faultfs"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// numpyFile is the path of a file that NumPy wrote.
func numpyFile(name string) string {
	path, err := filepath.Abs(filepath.Join("npy", "testdata", name))
	if err != nil {
		panic(err)
	}
	return path
}

// malformed is a command line that must be refused.
type malformed struct {
	name   string
	call   call
	status int
	want   []string // parts of the one message
}

var errDisk = errors.New("input/output error")

// broken writes the damaged inputs that malformedCalls name.
func broken(t *testing.T, b *bench) {
	t.Helper()
	var good bytes.Buffer
	require.NoError(t, npy.Write(&good, npy.Floats("", make([]float32, 12), 4, 3)))
	array := good.String()
	b.file(t, "empty", "")
	b.file(t, "empty.npy", "")
	b.file(t, "magic.npy", "this is text, not an array")
	b.file(t, "truncated.npy", array[:len(array)-5])
	b.file(t, "short_header.npy", array[:60])
	b.file(t, "trailing.npy", array+"!!!!")
	b.file(t, "long_header.npy", "\x93NUMPY\x02\x00\xf0\xff\xff\x7f{'descr'")
	b.file(t, "huge.npy", rawArray("<f4", "(3000000000000, 3)", make([]byte, 48)))
	b.file(t, "overflow.npy", rawArray("<f4", "(6148914691236517206, 3)", make([]byte, 8)))
	b.file(t, "negative.npy", rawArray("<f4", "(-4, 3)", make([]byte, 48)))
	b.file(t, "dict.npy", rawHeader("{'descr': '<f4', 'shape': (4, 3)}\n"))
	b.file(t, "rank.npy", rawArray("<f4", "(12,)", make([]byte, 48)))
	b.file(t, "transposed.npy", rawArray("<f4", "(3, 4)", make([]byte, 48)))
	b.file(t, "three.npy", rawArray("<f4", "(2, 2, 3)", make([]byte, 48)))
	b.file(t, "rows.npy", rawArray("<f4", "(5, 3)", make([]byte, 60)))
	b.file(t, "int32.npy", rawArray("<i4", "(4, 3)", make([]byte, 48)))
	b.file(t, "complex.npy", rawArray("<c8", "(4, 3)", make([]byte, 96)))
	b.file(t, "tmax5.npy", rawArray("<f4", "(5,)", make([]byte, 20)))
	b.file(t, "tmax2d.npy", rawArray("<f4", "(4, 1)", make([]byte, 16)))
	b.file(t, "active3.npy", boolFile(1, 1, 1))
	b.file(t, "bytes.npy", rawArray("|u1", "(4,)", make([]byte, 4)))

	zipOf := func(names ...string) []byte {
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		for _, n := range names {
			f, err := w.Create(n + ".npy")
			require.NoError(t, err)
			_, err = f.Write(good.Bytes())
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		return buf.Bytes()
	}
	plain := zipOf("o", "d")
	b.file(t, "rays.npz", string(plain))
	b.file(t, "twice.npz", string(zipOf("o", "o")))
	b.file(t, "truncated.npz", string(plain[:len(plain)-20]))
	bomb := bytes.Clone(plain) // one column declares 4 GB
	at := bytes.Index(bomb, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(bomb[at+24:], math.MaxUint32-1)
	b.file(t, "bomb.npz", string(bomb))
	damaged := bytes.Clone(plain)
	damaged[60] ^= 0xff
	b.file(t, "damaged.npz", string(damaged))

	const v = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"
	b.file(t, "empty.obj", "")
	b.file(t, "nofaces.obj", v)
	b.file(t, "range.obj", v+"f 1 2 4\n")
	b.file(t, "zero.obj", v+"f 0 1 2\n")
	b.file(t, "negative.obj", v+"f -1 -2 -4\n")
	b.file(t, "nan.obj", "v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
	b.file(t, "word.obj", v+"f one two three\n")
	b.file(t, "line.obj", v+"f 1 2\n")
	b.file(t, "binary.obj", "\x00\x00\x80\x3f\xff\xfe")
	const head = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\n" +
		"property list uchar int vertex_indices\nend_header\n"
	b.file(t, "good.ply", head+"0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
	b.file(t, "truncated.ply", head+"0 0 0\n1 0 0\n0 1 0\n3 0 1")
	b.file(t, "header.ply", head[:70])
	b.file(t, "magic.ply", "polygon")
	b.file(t, "huge.ply", strings.Replace(head, "vertex 3", "vertex 900000000000", 1)+"0 0 0\n")
	b.file(t, "nan.ply", head+"0 0 0\n1 nan 0\n0 1 0\n3 0 1 2\n")
	b.file(t, "range.ply", head+"0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n")
	b.file(t, "noxyz.ply", strings.Replace(head, "float z", "float w", 1)+"0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
	b.file(t, "short.stl", "not much")
	stl := make([]byte, 84+50)
	stl[80] = 1
	b.file(t, "truncated.stl", string(stl[:100]))
	binary.LittleEndian.PutUint32(stl[84+16:], math.Float32bits(float32(math.Inf(1))))
	b.file(t, "infinite.stl", string(stl))
	b.file(t, "text.stl", "solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\n")
	b.file(t, "mesh.gltf", "{}")
	require.NoError(t, os.Mkdir(b.path("folder.npy"), 0o700))
	require.NoError(t, os.Mkdir(b.path("folder.obj"), 0o700))
	require.NoError(t, os.Mkdir(b.path("folder.npz"), 0o700))
}

func malformedCalls() []malformed {
	run := intersectCall()
	var list []malformed
	add := func(name string, c call, status int, want ...string) {
		list = append(list, malformed{name, c, status, want})
	}
	origins := func(file string, want ...string) {
		add("origins "+filepath.Base(file), run.with("-origins", file), exitUsage, append([]string{"-origins", file}, want...)...)
	}
	mesh := func(file string, want ...string) {
		add("mesh "+file, run.with("-mesh", "tri.obj", file), exitUsage, append([]string{"-mesh", file}, want...)...)
	}

	// Arrays.
	origins("missing.npy", "found no such file; expected a file")
	origins("folder.npy", "found a folder; expected a file")
	origins("empty.npy", "found the end of the file; expected a NumPy array")
	origins("magic.npy", "at the beginning; expected a NumPy array")
	origins("truncated.npy", "found 43 bytes of data; expected 48 bytes for shape (4, 3)")
	origins("short_header.npy", "header length of 118 bytes; expected at most the 50 bytes")
	origins("trailing.npy", "found 52 bytes of data; expected 48")
	origins("long_header.npy", "header length of 2147483632 bytes")
	origins("huge.npy", "found 48 bytes of data; expected 36000000000000 bytes")
	origins("overflow.npy", "shape (6148914691236517206, 3); expected an array that fits into memory")
	origins("negative.npy", `dimension "-4"`)
	origins("dict.npy", "no key 'fortran_order'")
	origins("rank.npy", "found shape (12,); expected shape [N, 3]")
	origins("transposed.npy", "found shape (3, 4); expected shape [N, 3]: transpose it\n")
	origins("three.npy", "found shape (2, 2, 3); expected shape [N, 3]\n")
	origins("int32.npy", `dtype "<i4"; expected "<f4" (float32), or "<f8" (float64, which is rounded); in NumPy .astype(numpy.float32) converts`)
	origins("complex.npy", `dtype "<c8"`)
	origins("active.npy", `found dtype "|b1"; expected "<f4"`)
	origins(numpyFile("version3.npy"), ".npy version 3.0; expected version 1.0 or 2.0")
	origins(numpyFile("big_endian.npy"), "big endian")
	origins(numpyFile("half.npy"), `dtype "<f2"`)
	origins(numpyFile("object.npy"), "pickled Python objects")
	origins(numpyFile("structured.npy"), "structured dtype")
	origins(numpyFile("scalar.npy"), "found shape (); expected shape [N, 3]")
	add("directions rows", run.with("-directions", "rows.npy"), exitUsage, "-directions", "rows.npy", "found 5 rows; expected 4, the rows of -origins")
	add("directions missing", run.with("-directions", "none.npy"), exitUsage, "-directions", "no such file")
	add("tmax rows", run.with("-tmax", "tmax5.npy"), exitUsage, "-tmax", "found 5 rows; expected 4")
	add("tmax shape", run.with("-tmax", "tmax2d.npy"), exitUsage, "-tmax", "found shape (4, 1); expected shape [N]")
	add("active rows", run.with("-active", "active3.npy"), exitUsage, "-active", "found 3 rows; expected 4")
	add("active bytes", run.with("-active", "bytes.npy"), exitUsage, "-active", `dtype "|u1"; expected "|b1" (bool); in NumPy .astype(bool) converts`)
	add("active floats", run.with("-active", "tmax.npy"), exitUsage, "-active", `found dtype "<f4"; expected "|b1" (bool)`)

	// Archives.
	origins("rays.npz:p", `no column "p"; expected file.npz:name with one of "d", "o"`)
	origins("rays.npz", "no column name")
	origins("rays.npz:", "no column name")
	origins("twice.npz:o", `two columns "o"; expected each column once`)
	origins("truncated.npz:o", "no zip directory")
	origins("bomb.npz:o", "expected at most 1032 times as many")
	origins("damaged.npz:o", "found")
	origins("folder.npz:o", "a folder")
	origins("none.npz:o", "no such file")
	origins("o.npy:o", "found a column of a .npy file, which holds one array; expected file.npy alone; file.npz:column is for archives")

	// Meshes.
	mesh("missing.obj", "no such file")
	mesh("folder.obj", "a folder")
	mesh("empty.obj", "found an empty mesh")
	mesh("nofaces.obj", "found an empty mesh (3 vertices, no faces)")
	mesh("range.obj", "line 4: found vertex 4; expected a vertex from 1 to 3")
	mesh("zero.obj", "line 4: found vertex 0")
	mesh("negative.obj", "line 4: found vertex -4")
	mesh("nan.obj", `line 1: found "nan"; expected z, a finite float32`)
	mesh("word.obj", "line 4")
	mesh("line.obj", "found a face with 2 corners; expected at least 3")
	mesh("binary.obj", "line 1")
	mesh("truncated.ply", "face 0: found the end of the file")
	mesh("header.ply", "the end of the file")
	mesh("magic.ply", "at the beginning")
	mesh("huge.ply", "900000000000 rows of element")
	mesh("nan.ply", "vertex 1: found y = NaN")
	mesh("range.ply", "face 0: found vertex 3")
	mesh("noxyz.ply", "without number z")
	mesh("short.stl", "8 bytes that begin with")
	mesh("truncated.stl", "found 100 bytes; expected 134 bytes for the 1 triangles")
	mesh("infinite.stl", "triangle 0: found coordinate +Inf")
	mesh("text.stl", "the end of the file")
	mesh("mesh.gltf", `extension ".gltf"; expected .obj, .ply or .stl`)
	mesh("empty", "a name without extension")
	edge := edgeCall()
	add("edge-records of a damaged mesh", edge.with("-mesh", "range.obj"), exitUsage, "-mesh", "range.obj", "line 4")
	add("edge-records without mesh", edge.with("-mesh"), exitUsage, "-mesh is missing")
	add("edge-records column", edge.with("-fields", "t"), exitUsage, `-fields: found "t"; expected all or some of records`)
	add("edge-records with rays", edge.with("-origins", "o.npy"), exitUsage, "unknown flag -origins")
	// It runs on the host, so no rows are split.
	for flag, value := range map[string]string{"-weights": "1", "-min-rows": "1", "-transport": "copy"} {
		add("edge-records with "+flag, edge.with(flag, value), exitUsage, "unknown flag "+flag)
	}

	// Flags.
	add("no mesh", run.with("-mesh"), exitUsage, "-mesh is missing")
	add("no origins", run.with("-origins"), exitUsage, "-origins is missing")
	add("no directions", run.with("-directions"), exitUsage, "-directions is missing")
	add("no output", run.with("-out"), exitUsage, "-out is missing")
	add("unknown flag", run.with("-chunks", "10"), exitUsage, "unknown flag -chunks")
	add("flag twice", run.with("-tmax", "tmax.npy", "tmax.npy"), exitUsage, "-tmax", "given twice")
	add("empty name", run.with("-tmax", ""), exitUsage, "-tmax", "the name is empty")
	add("unknown column", run.with("-fields", "t,q"), exitUsage, `-fields: found "q"; expected all or some of t,p,n,geo_n`)
	add("column twice", run.with("-fields", "t,t"), exitUsage, `-fields: found "t" twice`)
	add("no column", run.with("-fields", ""), exitUsage, `-fields: found ""`)
	add("weights count", run.with("-weights", "1,2,3"), exitUsage, "-weights: 3 values for 2 devices")
	add("weights negative", run.with("-weights", "1,-1"), exitUsage, "-weights", `"-1" is no weight`)
	add("weights NaN", run.with("-weights", "1,nan"), exitUsage, "-weights", `"nan" is no weight`)
	add("weights zero", run.with("-weights", "0,0"), exitUsage, "-weights: the weights add up to 0")
	add("weights word", run.with("-weights", "one"), exitUsage, "-weights", `"one" is no weight`)
	add("min-rows", run.with("-min-rows", "0"), exitUsage, "-min-rows", "a whole number from 1")
	for _, flag := range []string{"-min-lanes", "-chunk-rows", "-memory-budget"} {
		for _, value := range []string{"0", "-1", "1.5", "many", "", "99999999999999999999"} {
			add(flag+" "+value, run.with(flag, value), exitUsage, flag, "a whole number from 1")
		}
		add(flag+" twice", run.with(flag, "1", "1"), exitUsage, flag, "given twice")
	}
	add("memory-budget too small", run.with("-memory-budget", "100"), exitUsage, "-memory-budget is 100 B", "minimum 228 B")
	add("memory-budget too small for the chunks", run.with("-memory-budget", "500").with("-chunk-rows", "3"), exitUsage, "-chunk-rows of 3 rows need 684 B", "-memory-budget is 500 B", "at most 2 rows, or leave -chunk-rows out")
	add("transport", run.with("-transport", "pigeon"), exitUsage, "-transport", "use auto, direct, copy or host")
	add("backend", run.with("-backend", "cpu"), exitUsage, "-backend", "use auto, cuda or optix")
	add("devices word", run.with("-devices", "gpu"), exitUsage, "-devices", "use all, emu:N, or device numbers")
	add("devices none", run.with("-devices", ""), exitUsage, "-devices")
	add("devices negative", run.with("-devices", "-1"), exitUsage, "-devices")
	add("devices twice", run.with("-devices", "0,1,0"), exitUsage, "-devices", "device 0 is given twice")
	add("no emulated device", run.with("-devices", "emu:0"), exitUsage, "-devices", "emu:N with N from 1 to 64")
	add("65 emulated devices", run.with("-devices", "emu:65"), exitUsage, "-devices", "emu:N with N from 1 to 64")
	add("no driver", run.with("-devices"), exitDevices, "-devices", "no NVIDIA driver found", "-devices emu:2")
	add("no driver for a list", run.with("-devices", "0,1"), exitDevices, "no NVIDIA driver found")

	// Outputs.
	add("output folder missing", run.with("-out", "none/out.npz"), exitUsage, "-out", "expected an existing folder")
	add("output is a folder", run.with("-out", "folder.npz"), exitUsage, "-out", "found a folder")
	add("output kind", run.with("-out", "out.csv"), exitUsage, "-out", `found extension ".csv"; expected a name that ends in .npz`)
	add("output without kind", run.with("-out", "out"), exitUsage, "-out", "found a name without extension; expected a name that ends in .npz")
	add("ten columns in .npy", run.with("-out", "out.npy"), exitUsage, "-out", "an .npy file for 10 columns")
	add("output below a file", run.with("-out", "o.npy/out.npz"), exitUsage, "-out", "not a folder")
	return list
}

// Every malformed command line ends with its exit status, one message that names what is wrong, and no output; all of them
// together stay within the time and memory that one valid run may take.
func TestMalformed(t *testing.T) {
	b := newBench(t)
	broken(t, b)
	cases := malformedCalls()
	require.GreaterOrEqual(t, len(cases), 60)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b.refuse(t, c)
		})
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, time.Since(start), 20*time.Second)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<30))
}

func (b *bench) refuse(t *testing.T, c malformed) {
	t.Helper()
	r := b.run(t, t.Context(), c.call.args(b)...)
	assert.Equal(t, c.status, r.status)
	if assert.Len(t, lines(r.err), 1, r.err) {
		assert.True(t, strings.HasPrefix(r.err, "raymux "+c.call.command+": "), r.err)
		for _, w := range c.want {
			assert.Contains(t, r.err, w)
		}
	}
	assert.Empty(t, r.out)
	assert.Empty(t, r.outputFiles)
}

// Reads that the disk refuses are failures, not bad input.
func TestFailingReads(t *testing.T) {
	b := dfrBench(t)
	broken(t, b)
	for _, c := range []struct {
		file string
		call call
	}{
		{"one.npz", directCall()},
		{"box.npz", directCall().with("-mesh", "box.obj").with("-material", "box.npz")},
		{"tri.obj", intersectCall()},
		{"good.ply", intersectCall().with("-mesh", "good.ply")},
		{"infinite.stl", intersectCall().with("-mesh", "infinite.stl")},
		{"o.npy", intersectCall()},
		{"d.npy", intersectCall()},
		{"rays.npz", intersectCall().with("-directions", "rays.npz:d")},
		{"active.npy", intersectCall().with("-active", "active.npy")},
	} {
		for _, op := range []string{"open", "read"} {
			t.Run(op+" "+c.file, func(t *testing.T) {
				b.fs = faultfs.FS{FS: fileio.OS{}, Fail: func(o, name string) error {
					if o == op && filepath.Base(name) == c.file {
						return errDisk
					}
					return nil
				}}
				b.refuse(t, malformed{call: c.call, status: exitFailed, want: []string{c.file, "input/output error"}})
			})
		}
	}
}

func TestUnknownCommands(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "raymux: no command; use one of info, intersect, visible, reflect, accumulate, dfr-direct, dfr-coherent, dfr-paths, dfr-states, calibrate, edge-records, version, or -h\n"},
		{[]string{"x"}, "raymux: unknown command \"x\"; use one of info, intersect, visible, reflect, accumulate, dfr-direct, dfr-coherent, dfr-paths, dfr-states, calibrate, edge-records, version\n"},
		{[]string{"edges", "-mesh", "a.obj"}, "raymux: unknown command \"edges\"; use one of info, intersect, visible, reflect, accumulate, dfr-direct, dfr-coherent, dfr-paths, dfr-states, calibrate, edge-records, version\n"},
		{[]string{"intersect", "extra"}, "raymux intersect: unexpected argument \"extra\"; every input has a flag, raymux intersect -h lists them\n"},
		{[]string{"info", "-mesh", "a.obj"}, "raymux info: unknown flag -mesh; raymux info -h lists the flags\n"},
	} {
		r := b.run(t, t.Context(), c.args...)
		assert.Equal(t, exitUsage, r.status)
		assert.Equal(t, c.want, r.err)
	}
}

func TestHelp(t *testing.T) {
	b := newBench(t)
	for _, args := range [][]string{{"-h"}, {"help"}, {"info", "-h"}, {"intersect", "-h"}, {"reflect", "-h"}, {"accumulate", "-h"}, {"dfr-direct", "-h"}, {"dfr-paths", "-h"}, {"edge-records", "-help"}, {"version", "-h"}} {
		r := b.run(t, t.Context(), args...)
		assert.Equal(t, exitDone, r.status)
		assert.Contains(t, r.out, "usage: raymux")
		assert.Empty(t, r.err)
	}
}

// A machine with fewer devices than asked for, and one whose driver does not work.
func TestDevicesOfTheMachine(t *testing.T) {
	b := newBench(t)
	b.open = func() (*cuda.Driver, error) { return cuda.OpenEmulator(1) }
	b.refuse(t, malformed{call: intersectCall().with("-devices", "0,1"), status: exitDevices,
		want: []string{"-devices: found 1 device, numbered from 0; expected one with number 1"}})
	for _, c := range []struct {
		reason error
		status int
	}{
		{cuda.ErrNoDevice, exitDevices},
		{cuda.ErrStubLibrary, exitDevices},
		{cuda.ErrDriverTooOld, exitFailed},
		{cuda.ErrDriverFailed, exitFailed},
	} {
		b.open = func() (*cuda.Driver, error) { return nil, &cuda.OpenError{Reason: c.reason} }
		b.refuse(t, malformed{call: intersectCall().with("-devices", "all"), status: c.status, want: []string{c.reason.Error(), "emu:2"}})
	}
	assert.Zero(t, b.emulatorRun, "there is no silent fallback to the emulator")
}
