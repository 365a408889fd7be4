package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/fileio/faultfs"
	"github.com/raymux/raymux/tools/raymux/npy"
)

func calibrateCall() call {
	return call{"calibrate", [][2]string{{"-mesh", "square.obj"}, {"-devices", "emu:2"}, {"-rows", "50"}}}
}

func TestCalibrate(t *testing.T) {
	b := newBench(t)
	r := b.succeed(t, calibrateCall().args(b)...)
	for _, want := range []string{"calibration of intersect_full, 50 rows, built-in probe", "dev0", "dev1", "rung", "gain"} {
		assert.Contains(t, r.out, want)
	}
	assert.Empty(t, r.err)
	assert.Empty(t, r.outputFiles)

	r = b.succeed(t, append(calibrateCall().with("-op", "trace_reflections").with("-bounces", "3").args(b), "-json="+b.path("record.json"))...)
	assert.Equal(t, []string{"record.json"}, r.outputFiles)
	text, err := os.ReadFile(b.path("record.json"))
	require.NoError(t, err)
	record, err := multi.ImportCalibration(text)
	require.NoError(t, err)
	assert.Equal(t, "trace_reflections:3", record.Operation)
	assert.Equal(t, r.out, record.Describe())
	r = b.succeed(t, calibrateCall().with("-op", "trace_reflections:1").args(b)...)
	assert.Contains(t, r.out, "trace_reflections:1")

	r = b.succeed(t, append(calibrateCall().with("-op", "visible").args(b), "-json="+b.path("visible.json"))...)
	assert.Contains(t, r.out, "calibration of visible, 50 rows")
	for _, name := range []string{"s.npy", "e.npy"} {
		b.array(t, name, npy.Floats("", make([]float32, 6), 2, 3))
	}
	visible := call{"visible", [][2]string{
		{"-mesh", "square.obj"}, {"-devices", "emu:2"}, {"-starts", "s.npy"}, {"-ends", "e.npy"}, {"-calibration", b.path("visible.json")},
	}}
	r = b.succeed(t, append(visible.args(b), "-out="+b.path("seen.npz"))...)
	assert.NotContains(t, r.err, "not used")
}

func TestCalibrateRefusals(t *testing.T) {
	run := calibrateCall()
	for _, c := range []malformed{
		{call: run.with("-mesh"), status: exitUsage, want: []string{"-mesh is missing"}},
		{call: run.with("-op", "visible_pair"), status: exitUsage, want: []string{`-op: found "visible_pair"; expected intersect_full, trace_reflections or visible`}},
		{call: run.with("-op", "trace_reflections"), status: exitUsage, want: []string{"-bounces: found 0", "1 to 64"}},
		{call: run.with("-op", "trace_reflections").with("-bounces", "65"), status: exitUsage, want: []string{"-bounces: found 65"}},
		{call: run.with("-op", "trace_reflections:x"), status: exitUsage, want: []string{"-op trace_reflections:x"}},
		{call: run.with("-op", "trace_reflections:2").with("-bounces", "3"), status: exitUsage, want: []string{"-op trace_reflections:2"}},
		{call: run.with("-bounces", "3"), status: exitUsage, want: []string{"-bounces is for -op trace_reflections"}},
		{call: run.with("-bounces", "0"), status: exitUsage, want: []string{"-bounces", "a whole number from 1"}},
		{call: run.with("-rows", "0"), status: exitUsage, want: []string{"-rows", "a whole number from 1"}},
		{call: run.with("-rows", "9223372036854775807"), status: exitUsage, want: []string{"-rows: 9223372036854775807", "24 bytes each"}},
		{call: run.with("-rows", "9223372036854775807").with("-op", "visible"), status: exitUsage, want: []string{"-rows: 9223372036854775807", "24 bytes each"}},
		{call: run.with("-op", "visible").with("-bounces", "3"), status: exitUsage, want: []string{"-bounces is for -op trace_reflections"}},
		{call: run.with("-json", "/none/at/all.json"), status: exitUsage, want: []string{"-json", "existing folder"}},
		{call: run.with("-json", ""), status: exitUsage, want: []string{"-json", "the name is empty"}},
		{call: run.with("-devices", "emu:1"), status: exitDevices, want: []string{"-devices: found 1 device"}},
		{call: run.with("-out", "x.npz"), status: exitUsage, want: []string{"unknown flag -out"}},
	} {
		newBench(t).refuse(t, c)
	}
	b := newBench(t)
	b.fs = faultfs.FS{FS: fileio.OS{}, Fail: func(op, name string) error {
		if op == "rename" {
			return errDisk
		}
		return nil
	}}
	b.refuse(t, malformed{call: run.with("-json", b.path("r.json")), status: exitFailed, want: []string{"-json", "input/output error"}})
}
