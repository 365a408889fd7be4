package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/fileio/faultfs"
)

// The temporary file of a streamed result goes away, whatever fails and whenever. Files are made in this order: one that
// tries the folder, the spool, the output.
func TestFailuresOfStreams(t *testing.T) {
	run := intersectCall().with("-chunk-rows", "1")
	for _, c := range []struct {
		op      string
		created int // files that were made when it fails
	}{{"create", 2}, {"create", 3}, {"open", 3}, {"read", 3}, {"write", 3}, {"sync", 3}, {"close", 3}, {"rename", 3}, {"remove", 3}} {
		t.Run(c.op, func(t *testing.T) {
			b := newBench(t)
			created, failed := 0, 0
			b.fs = faultfs.FS{FS: fileio.OS{}, Fail: func(op, name string) error {
				if op == "create" {
					created++
				}
				if op == c.op && isOutput(name) && created == c.created && failed == 0 {
					failed++
					return errDisk
				}
				return nil
			}}
			r := b.run(t, t.Context(), run.args(b)...)
			assert.Equal(t, exitFailed, r.status, r.err)
			assert.Contains(t, r.err, "-out")
			assert.Contains(t, r.err, "input/output error")
			assert.Equal(t, 1, failed)
			if c.op != "remove" { // what the disk does not remove stays
				assert.Empty(t, r.outputFiles)
			}
		})
	}
}

func TestInterruptedStream(t *testing.T) {
	b := newBench(t)
	ctx, interrupt := context.WithCancel(t.Context())
	created := 0
	b.fs = faultfs.FS{FS: fileio.OS{}, Fail: func(op, name string) error {
		if op == "create" {
			if created++; created == 2 {
				interrupt()
			}
		}
		return nil
	}}
	r := b.run(t, ctx, intersectCall().with("-chunk-rows", "1").args(b)...)
	assert.Equal(t, exitInterrupted, r.status, r.err)
	assert.Empty(t, r.outputFiles)
}
