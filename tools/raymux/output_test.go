package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/ptx"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// succeed runs a command line that must end well.
func (b *bench) succeed(t *testing.T, args ...string) result {
	t.Helper()
	r := b.run(t, t.Context(), args...)
	require.Equal(t, exitDone, r.status, r.err)
	return r
}

var inf = float32(math.Inf(1))

// hitColumns is what the four rays of newBench hit: both triangles of the square at z = 1 from above, the triangle at
// z = 0 from below, nothing. All values are exact in float32.
func hitColumns() []npy.Column {
	return []npy.Column{
		npy.Floats("t", []float32{2, 1, 2, inf}, 4),
		npy.Floats("p", []float32{.5, .25, 1, .25, .5, 1, .25, .25, 0, 0, 0, 0}, 4, 3),
		npy.Floats("n", []float32{0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0}, 4, 3),
		npy.Floats("geo_n", []float32{0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0}, 4, 3),
		npy.Floats("uv", []float32{.25, .25, .25, .25, .25, .25, 0, 0}, 4, 2),
		npy.Floats("barycentric", []float32{.5, .25, .25, .5, .25, .25, .5, .25, .25, 0, 0, 0}, 4, 3),
		npy.Ints("shape_id", []int32{1, 1, 0, -1}, 4),
		npy.Ints("prim_id", []int32{1, 2, 0, -1}, 4),
		npy.Ints("local_prim_id", []int32{0, 1, 0, -1}, 4),
		npy.Ints("global_prim_id", []int32{1, 2, 0, -1}, 4),
	}
}

// archiveOf is the file that the columns make.
func archiveOf(t *testing.T, columns ...npy.Column) string {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, npy.WriteArchive(&buf, columns))
	return buf.String()
}

func arrayOf(t *testing.T, c npy.Column) string {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, npy.Write(&buf, c))
	return buf.String()
}

func (b *bench) content(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(b.path(name))
	require.NoError(t, err)
	return string(data)
}

func TestIntersect(t *testing.T) {
	all := hitColumns()
	run := intersectCall()
	missesFrom := func(row int) []npy.Column { // rows from row on miss
		return []npy.Column{
			npy.Floats("t", append([]float32{2, 1, 2}[:row:row], []float32{inf, inf, inf, inf}[row:]...), 4),
			npy.Ints("prim_id", append([]int32{1, 2, 0}[:row:row], []int32{-1, -1, -1, -1}[row:]...), 4),
		}
	}
	for _, c := range []struct {
		name string
		call call
		want string
		note string
	}{
		{"all columns", run, archiveOf(t, all...), ""},
		{"one device", run.with("-devices", "emu:1"), archiveOf(t, all...), ""},
		{"row by row on three devices", run.with("-devices", "emu:3").with("-min-rows", "1"), archiveOf(t, all...), ""},
		{"weights", run.with("-min-rows", "1").with("-weights", "1,3"), archiveOf(t, all...), ""},
		{"copies", run.with("-min-rows", "1").with("-transport", "copy"), archiveOf(t, all...), ""},
		{"through the host", run.with("-min-rows", "1").with("-transport", "host"), archiveOf(t, all...), ""},
		{"chunks of one row", run.with("-chunk-rows", "1"), archiveOf(t, all...), ""},
		{"chunks on three devices", run.with("-devices", "emu:3").with("-chunk-rows", "3"), archiveOf(t, all...), ""},
		{"chunks on one device", run.with("-devices", "emu:1").with("-chunk-rows", "3").with("-fields", "t,n"), archiveOf(t, all[0], all[2]), ""},
		{"a memory budget", run.with("-memory-budget", "456").with("-transport", "copy"), archiveOf(t, all...), ""},
		{"min-lanes", run.with("-min-lanes", "7"), archiveOf(t, all...), ""},
		{"no rays in chunks", run.with("-origins", "none.npy").with("-directions", "none.npy").with("-fields", "t").with("-chunk-rows", "9"),
			archiveOf(t, npy.Floats("t", nil, 0)), ""},
		{"explicit backend", run.with("-backend", "cuda"), archiveOf(t, all...), ""},
		{"columns in the order of the operation", run.with("-fields", "prim_id,t"), archiveOf(t, all[0], all[7]), ""},
		{"t alone", run.with("-fields", "t"), archiveOf(t, all[0]), ""},
		{"uv and n", run.with("-fields", "uv,n"), archiveOf(t, all[2], all[4]), ""},
		{"tmax", run.with("-tmax", "tmax.npy").with("-fields", "t,prim_id"), archiveOf(t, missesFrom(2)...), ""},
		{"active", run.with("-active", "active2.npy").with("-fields", "t,prim_id"), archiveOf(t, missesFrom(1)...), ""},
		{"archives", run.with("-origins", "rays.npz:o").with("-directions", "rays.npz:d"), archiveOf(t, all...), ""},
		{"float64", run.with("-origins", "wide.npy"), archiveOf(t, all...),
			"raymux: note: -origins WIDE: float64 rounded to float32\n"},
		{"Fortran order", run.with("-origins", "fortran.npy"), archiveOf(t, all...), ""},
		{"no rays", run.with("-origins", "none.npy").with("-directions", "none.npy").with("-fields", "t,p,prim_id"),
			archiveOf(t, npy.Floats("t", nil, 0), npy.Floats("p", nil, 0, 3), npy.Ints("prim_id", nil, 0)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			o := []float32{.5, .25, 3, .25, .5, 3, .25, .25, -2, 9, 9, 9}
			d := []float32{0, 0, -1, 0, 0, -2, 0, 0, 1, 0, 0, -1}
			b.file(t, "rays.npz", archiveOf(t, npy.Floats("o", o, 4, 3), npy.Floats("d", d, 4, 3)))
			b.file(t, "active2.npy", boolFile(1, 0, 0, 0))
			b.file(t, "none.npy", rawArray("<f4", "(0, 3)", nil))
			var wide, fortran []byte
			for _, v := range o {
				wide = appendFloat64(wide, float64(v))
			}
			for axis := range 3 {
				for row := range 4 {
					fortran = appendFloat32(fortran, o[3*row+axis])
				}
			}
			b.file(t, "wide.npy", rawArray("<f8", "(4, 3)", wide))
			b.file(t, "fortran.npy", strings.Replace(rawArray("<f4", "(4, 3)", fortran), "False, ", "True,  ", 1))
			r := b.succeed(t, c.call.args(b)...)
			assert.Equal(t, strings.ReplaceAll(c.note, "WIDE", b.path("wide.npy")), r.err)
			assert.Empty(t, r.out)
			assert.Equal(t, []string{"out.npz"}, r.outputFiles)
			assert.Equal(t, c.want, b.content(t, "out.npz"))
		})
	}
}

func TestSingleColumn(t *testing.T) {
	b := newBench(t)
	b.succeed(t, intersectCall().with("-fields", "global_prim_id").with("-out", "ids.npy").args(b)...)
	assert.Equal(t, arrayOf(t, hitColumns()[9]), b.content(t, "ids.npy"))
	b.file(t, "out.npz", "an older result")
	b.succeed(t, intersectCall().args(b)...)
	assert.Equal(t, archiveOf(t, hitColumns()...), b.content(t, "out.npz"), "an older result is replaced")
}

func TestEdgeRecords(t *testing.T) {
	square := []int32{
		0, 1, 0, -1, 2, -1,
		0, 2, 0, 1, 1, 3,
		0, 3, 1, -1, 2, -1,
		1, 2, 0, -1, 0, -1,
		2, 3, 1, -1, 0, -1,
	}
	b := newBench(t)
	b.succeed(t, edgeCall().args(b)...)
	assert.Equal(t, archiveOf(t, npy.Ints("records", square, 5, 6)), b.content(t, "out.npz"))
	// After a mesh of three vertices and one face all ids of the square move up, except -1.
	both := []int32{
		0, 1, 0, -1, 2, -1,
		0, 2, 0, -1, 1, -1,
		1, 2, 0, -1, 0, -1,
	}
	for i, v := range square {
		if v >= 0 {
			v += [6]int32{3, 3, 1, 1, 3, 3}[i%6]
		}
		both = append(both, v)
	}
	r := b.succeed(t, edgeCall().with("-mesh", "tri.obj", "square.obj").with("-out", "records.npy").with("-fields", "records").
		with("-info", "true").args(b)...)
	assert.Equal(t, arrayOf(t, npy.Ints("records", both, 8, 6)), b.content(t, "records.npy"))
	assert.Contains(t, r.err, "edges=8")
	r = b.succeed(t, edgeCall().with("-out").with("-plan", "true").args(b)...)
	assert.Contains(t, r.out, "no rows are split")
	assert.Empty(t, r.outputFiles)
}

// A face that is there so often that every two of its copies are too many edges is refused where
// edges are written, and traced by the commands that need none.
func TestEqualFaces(t *testing.T) {
	b := newBench(t)
	b.file(t, "equal.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\n"+strings.Repeat("f 1 2 3\n", 1673))
	r := b.run(t, context.Background(), edgeCall().with("-mesh", "equal.obj").args(b)...)
	assert.Equal(t, exitUsage, r.status)
	assert.Equal(t, "raymux edge-records: -mesh: scene: 4195884 edges of a mesh exceed the limit of 4194304; 1673 of its faces share a side, "+
		"of which every two are an edge, 0.1 GB in all: remove faces that are there several times\n", r.err)
	b.succeed(t, intersectCall().with("-mesh", "equal.obj").args(b)...)
}

func TestPlan(t *testing.T) {
	b := newBench(t)
	r := b.succeed(t, intersectCall().with("-out").with("-plan", "true").with("-weights", "1,3").with("-min-rows", "1").args(b)...)
	assert.Empty(t, r.outputFiles)
	assert.Empty(t, r.err)
	for _, want := range []string{"intersect_full", "rows=4", "kind=direct", "weights=[1 3]", "dev0  [0,1)", "dev1  [1,4)"} {
		assert.Contains(t, r.out, want)
	}
	r = b.succeed(t, intersectCall().with("-plan", "true").args(b)...)
	assert.Contains(t, r.out, "kind=master")
	assert.Contains(t, r.out, "rows < floor 1048576 (-min-rows)")
	assert.Empty(t, r.outputFiles, "-plan writes nothing even when -out is given")
	// With a limit of the chunks the plan is that of a streamed call, whose chunks share three slots.
	r = b.succeed(t, intersectCall().with("-plan", "true").with("-memory-budget", "456").args(b)...)
	for _, want := range []string{"kind=chunked", "456"} {
		assert.Contains(t, r.out, want)
	}
}

func TestInfoOfChunks(t *testing.T) {
	b := newBench(t)
	r := b.succeed(t, intersectCall().with("-info", "true").with("-chunk-rows", "1").args(b)...)
	for _, want := range []string{"kind=chunked", "trace and download", "master to host 304, master to others 48, others to master 8"} {
		assert.Contains(t, r.err, want)
	}
}

func TestInfoFlag(t *testing.T) {
	b := newBench(t)
	r := b.succeed(t, intersectCall().with("-info", "true").with("-min-rows", "1").with("-tmax", "tmax.npy").args(b)...)
	assert.Empty(t, r.out)
	for _, want := range []string{"kind=direct", "backend: cuda", "time: read", "trace", "write",
		// 4 rays of 28 B go in and 4 rows of 76 B come out; two rows of each kind cross the link.
		"host to master 112, master to host 304, master to others 56, others to master 8"} {
		assert.Contains(t, r.err, want)
	}
}

func TestInfo(t *testing.T) {
	b := newBench(t)
	r := b.succeed(t, "info", "-devices", "emu:2", "-v")
	for _, want := range []string{"driver     emulator", "dev0", "dev1", "backend    cuda", "optix: unavailable", "devices are emulated", "OptiX ABI  none",
		"dev0 -> dev1: works; direct, atomics", "dev1 -> dev0: works; direct, atomics", "transport  direct", "claim: identity", ptx.ManifestDigest(), "module link"} {
		assert.Contains(t, r.out, want)
	}
	assert.Empty(t, r.err)
	assert.NotContains(t, r.out, "GB/s", "emulated links have no speed")
	r = b.succeed(t, "info", "-devices", "emu:3", "-json")
	var report infoReport
	require.NoError(t, json.Unmarshal([]byte(r.out), &report))
	assert.Len(t, report.Devices, 3)
	assert.Len(t, report.Peers, 4, "each device with the master, both ways")
	assert.True(t, report.Peers[0].Atomics)
	var text strings.Builder
	require.NoError(t, (&infoReport{Peers: peers([]multi.Link{{To: 1, Access: true, Transport: chunked.Copy}}, nil)}).print(&text, false))
	assert.Contains(t, text.String(), "dev0 -> dev1: works; copy, no atomics\n")
	assert.Equal(t, "cuda", report.Backend.Name)
	assert.Equal(t, "identity", report.PTX.Claim)
	for i, d := range report.Devices {
		assert.Equal(t, i, d.Ordinal)
		assert.NotEmpty(t, d.Name)
		assert.Len(t, d.UUID, 32)
		assert.Positive(t, d.MemoryBytes)
	}
	r = b.run(t, t.Context(), "info")
	assert.Equal(t, exitDevices, r.status)
	assert.Contains(t, r.err, "no NVIDIA driver found")
	assert.Len(t, lines(r.err), 1)

	b.open = func() (*cuda.Driver, error) {
		return nil, &cuda.OpenError{Reason: cuda.ErrDriverMissing, Hint: "install the driver; without a GPU use cuda.OpenEmulator"}
	}
	r = b.run(t, t.Context(), "info")
	assert.Contains(t, r.err, "install the driver); use -devices emu:2", "advice for a command line")
	assert.NotContains(t, r.err, "OpenEmulator")
}

// Flags are listed in the order of their names: none of the texts refers to another one that may come later.
func TestFlagsSayAllThemselves(t *testing.T) {
	b := newBench(t)
	for flag, want := range map[string]string{
		"accumulate -grid-max": "the largest coordinates of the grid",
		"intersect -min-lanes": "fewest lanes",
		"visible -ends":        "the ends of the segments",
	} {
		command, name, _ := strings.Cut(flag, " ")
		_, text, ok := strings.Cut(b.succeed(t, command, "-h").out, "  "+name+" ")
		require.True(t, ok, flag)
		text, _, _ = strings.Cut(text, "\n  -")
		assert.Contains(t, text, want, flag)
	}
}

func TestUnavailableBackend(t *testing.T) {
	b := newBench(t)
	b.refuse(t, malformed{call: intersectCall().with("-backend", "optix"), status: exitFailed, want: []string{"-backend optix: ", "OptiX", "-backend auto"}})
}

func TestProgressIsForTerminals(t *testing.T) {
	b := newBench(t)
	b.terminal = true
	r := b.succeed(t, intersectCall().args(b)...)
	assert.Contains(t, r.err, "tracing ...")
	assert.True(t, strings.HasSuffix(r.err, "\r\x1b[K"), "the line is cleared at the end")
}

func appendFloat32(b []byte, v float32) []byte {
	u := math.Float32bits(v)
	return append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
}

func appendFloat64(b []byte, v float64) []byte {
	u := math.Float64bits(v)
	for shift := 0; shift < 64; shift += 8 {
		b = append(b, byte(u>>shift))
	}
	return b
}
