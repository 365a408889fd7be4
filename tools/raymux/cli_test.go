package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// TestMain lets the test binary be the program, so that a test can run it as a process and follow its progress.
func TestMain(m *testing.M) {
	if os.Getenv("RAYMUX_TEST_AS_PROGRAM") != "" {
		os.Exit(process(true))
	}
	os.Exit(m.Run())
}

// bench is a program with its output captured and a folder of input files.
type bench struct {
	program
	dir         string
	outText     bytes.Buffer
	errText     bytes.Buffer
	emulatorRun int // emulators opened
}

// noDriver is what cuda.Open returns on a machine without one.
func noDriver() (*cuda.Driver, error) {
	return nil, &cuda.OpenError{Reason: cuda.ErrDriverMissing, Hint: "install the NVIDIA driver"}
}

// newBench makes a folder with two valid meshes (one triangle at z = 0, a unit square at z = 1) and a valid batch of four
// rays, as o.npy, d.npy, tmax.npy and active.npy.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir()}
	b.program = program{stdout: &b.outText, stderr: &b.errText, fs: fileio.OS{}, open: noDriver,
		emulate: func(n int) (*cuda.Driver, error) {
			b.emulatorRun++
			return cuda.OpenEmulator(n)
		}}
	b.file(t, "tri.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
	b.file(t, "square.obj", "v 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\nf 1 2 3 4\n")
	b.array(t, "o.npy", npy.Floats("", []float32{.5, .25, 3, .25, .5, 3, .25, .25, -2, 9, 9, 9}, 4, 3))
	b.array(t, "d.npy", npy.Floats("", []float32{0, 0, -1, 0, 0, -2, 0, 0, 1, 0, 0, -1}, 4, 3))
	b.array(t, "tmax.npy", npy.Floats("", []float32{10, 10, 1.5, 10}, 4))
	b.file(t, "active.npy", boolFile(1, 1, 1, 0))
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) file(t *testing.T, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(b.path(name), []byte(content), 0o600))
}

func (b *bench) array(t *testing.T, name string, c npy.Column) {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, npy.Write(&buf, c))
	b.file(t, name, buf.String())
}

// boolFile is a .npy file of the given bytes as bool.
func boolFile(v ...byte) string { return rawArray("|b1", fmt.Sprintf("(%d,)", len(v)), v) }

// rawArray is a version 1 .npy file that declares what it is told to.
func rawArray(dtype, shape string, data []byte) string {
	return rawHeader(fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", dtype, shape)) + string(data)
}

func rawHeader(text string) string {
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(text)), byte(len(text) >> 8)}) + text
}

// call is a command line: flags with values, in order.
type call struct {
	command string
	flags   [][2]string
}

func intersectCall() call {
	return call{"intersect", [][2]string{{"-mesh", "tri.obj"}, {"-mesh", "square.obj"}, {"-origins", "o.npy"},
		{"-directions", "d.npy"}, {"-devices", "emu:2"}, {"-out", "out.npz"}}}
}

func edgeCall() call {
	return call{"edge-records", [][2]string{{"-mesh", "square.obj"}, {"-devices", "emu:1"}, {"-out", "out.npz"}}}
}

// with replaces all values of a flag by the given ones; no value removes it.
func (c call) with(flag string, values ...string) call {
	flags := slices.DeleteFunc(slices.Clone(c.flags), func(f [2]string) bool { return f[0] == flag })
	for _, v := range values {
		flags = append(flags, [2]string{flag, v})
	}
	return call{c.command, flags}
}

// args makes paths of the values of flags that name files.
func (c call) args(b *bench) []string {
	list := []string{c.command}
	for _, f := range c.flags {
		value := f[1]
		switch f[0] {
		case "-mesh", "-origins", "-directions", "-tmax", "-starts", "-ends", "-ignore", "-active", "-states", "-material", "-tx", "-rx", "-out", "-calibration":
			position := f[0] == "-tx" && c.command != "dfr-paths"
			if value != "" && !position && !filepath.IsAbs(value) {
				value = b.path(value)
			}
		}
		list = append(list, f[0]+"="+value)
	}
	return list
}

// result is what a run left.
type result struct {
	status      int
	out, err    string
	outputFiles []string // what is in the folder that was not there before
}

func (b *bench) files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(b.dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (b *bench) run(t *testing.T, ctx context.Context, args ...string) result {
	t.Helper()
	before := b.files(t)
	b.outText.Reset()
	b.errText.Reset()
	status := b.program.run(ctx, args)
	r := result{status: status, out: b.outText.String(), err: b.errText.String()}
	for _, name := range b.files(t) {
		if !slices.Contains(before, name) {
			r.outputFiles = append(r.outputFiles, name)
		}
	}
	return r
}

// lines splits what was printed.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
