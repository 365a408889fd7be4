package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/fileio/faultfs"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// isOutput tells the output and its temporary file from the inputs.
func isOutput(name string) bool { return strings.Contains(filepath.Base(name), "out.npz") }

// A write that the disk refuses, at any point, is a failure that leaves nothing.
func TestFailingWrites(t *testing.T) {
	for _, op := range []string{"create", "write", "sync", "close", "rename"} {
		t.Run(op, func(t *testing.T) {
			b := newBench(t)
			created := 0
			b.fs = faultfs.FS{FS: fileio.OS{}, Fail: func(o, name string) error {
				if o == "create" {
					created++
				}
				// The first file of the run only tries whether the folder can be written.
				if o == op && isOutput(name) && created > 1 {
					return errDisk
				}
				return nil
			}}
			b.refuse(t, malformed{call: intersectCall(), status: exitFailed, want: []string{"-out", "out.npz", "input/output error"}})
			assert.Equal(t, 2, created)
		})
	}
}

// An interrupt ends the run wherever it is: while an input is read, or the output written.
func TestInterrupt(t *testing.T) {
	for _, c := range []struct{ op, file string }{
		{"stat", "o.npy"}, {"read", "d.npy"}, {"read", "tri.obj"}, {"read", "square.obj"},
		{"write", "out.npz"}, {"sync", "out.npz"}, {"close", "out.npz"},
	} {
		t.Run(c.op+" "+c.file, func(t *testing.T) {
			b := newBench(t)
			ctx, interrupt := context.WithCancel(t.Context())
			created := 0
			b.fs = faultfs.FS{FS: fileio.OS{}, Fail: func(op, name string) error {
				if op == "create" {
					created++
				}
				trial := isOutput(name) && created < 2
				if op == c.op && strings.Contains(filepath.Base(name), c.file) && !trial {
					interrupt()
				}
				return nil
			}}
			r := b.run(t, ctx, intersectCall().args(b)...)
			assert.Equal(t, exitInterrupted, r.status)
			assert.Equal(t, "raymux intersect: interrupted; no output was written\n", r.err)
			assert.Empty(t, r.outputFiles)
		})
	}
}

// Some calls report why a context ended instead of that it did.
func TestInterruptWithACause(t *testing.T) {
	cause := errors.New("interrupt signal received")
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(cause)
	for _, err := range []error{cause, context.Canceled, fmt.Errorf("multi: %w", cause)} {
		status, text := describe(ctx, err)
		assert.Equal(t, exitInterrupted, status)
		assert.Equal(t, "interrupted; no output was written", text)
	}
	status, text := describe(ctx, errDisk)
	assert.Equal(t, exitFailed, status, "a failure stays one, also after an interrupt")
	assert.Equal(t, errDisk.Error(), text)
}

// The program as a process, interrupted while it traces a batch that takes far longer on the emulator.
func TestInterruptedProcess(t *testing.T) {
	if os.PathSeparator == '\\' {
		t.Skip("a process cannot be sent an interrupt on Windows")
	}
	b := newBench(t)
	const rays = 4 << 20
	b.array(t, "many_o.npy", npy.Floats("", repeat(rays, .5, .25, 3), rays, 3))
	b.array(t, "many_d.npy", npy.Floats("", repeat(rays, 0, 0, -1), rays, 3))
	before := b.files(t)
	args := intersectCall().with("-origins", "many_o.npy").with("-directions", "many_d.npy").with("-devices", "emu:1").args(b)
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "RAYMUX_TEST_AS_PROGRAM=1")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	progress, err := readUntil(stderr, "tracing ...")
	require.NoError(t, err, progress)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	sent := time.Now()
	rest, err := io.ReadAll(stderr)
	require.NoError(t, err)
	err = cmd.Wait()
	assert.Less(t, time.Since(sent), 10*time.Second, "the kernel is not waited for")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "the run ended before it was interrupted")
	assert.Equal(t, exitInterrupted, exit.ExitCode())
	assert.Equal(t, "\r\x1b[Kraymux intersect: interrupted; no output was written\n", string(rest))
	assert.Equal(t, before, b.files(t))
}

// readUntil reads up to and including a text.
func readUntil(r io.Reader, text string) (read string, err error) {
	var b [1]byte
	for !strings.HasSuffix(read, text) {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return read, err
		}
		read += string(b[:])
	}
	return read, nil
}

// repeat repeats one vector.
func repeat(n int, x, y, z float32) []float32 {
	v := make([]float32, 0, 3*n)
	for range n {
		v = append(v, x, y, z)
	}
	return v
}
