package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/raymux/raymux/tools/raymux/npy"
)

// segmentBench has four segments past the triangle at z = 0 (primitive 0) and the square at z = 1 (primitives 1 and 2):
// through the triangle, through the square at its primitive 1, beside both, and through both.
func segmentBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.array(t, "s.npy", npy.Floats("", []float32{.25, .25, -1, .5, .25, .5, 3, 3, -1, .25, .5, -1}, 4, 3))
	b.array(t, "e.npy", npy.Floats("", []float32{.25, .25, .5, .5, .25, 2, 3, 3, 2, .25, .5, 2}, 4, 3))
	b.array(t, "one.npy", npy.Ints("", []int32{0, 2, -1, 0}, 4))
	b.array(t, "two.npy", npy.Ints("", []int32{-1, 0, 2, 1, 0, 1, 2, 0}, 4, 2))
	b.file(t, "fortran.npy", rawHeader("{'descr': '<i4', 'fortran_order': True, 'shape': (4, 2), }\n")+
		"\xff\xff\xff\xff\x02\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00")
	b.array(t, "no_ids.npy", npy.Ints("", nil, 4, 0))
	b.file(t, "none.npy", rawArray("<f4", "(0, 3)", nil))
	b.file(t, "none_ids.npy", rawArray("<i4", "(0, 2)", nil))
	return b
}

func visibleCall() call {
	return call{"visible", [][2]string{{"-mesh", "tri.obj"}, {"-mesh", "square.obj"}, {"-starts", "s.npy"},
		{"-ends", "e.npy"}, {"-devices", "emu:2"}, {"-out", "out.npz"}}}
}

func TestVisible(t *testing.T) {
	run := visibleCall()
	for _, c := range []struct {
		name string
		call call
		want []uint8
	}{
		{"without ignored primitives", run, []uint8{0, 0, 1, 0}},
		{"row by row on three devices", run.with("-devices", "emu:3").with("-min-rows", "1"), []uint8{0, 0, 1, 0}},
		{"copies", run.with("-min-rows", "1").with("-transport", "copy").with("-ignore", "two.npy"), []uint8{1, 1, 1, 1}},
		{"in chunks", run.with("-chunk-rows", "1").with("-ignore", "two.npy"), []uint8{1, 1, 1, 1}},
		{"one ignored primitive", run.with("-ignore", "one.npy"), []uint8{1, 0, 1, 0}},
		{"two ignored primitives", run.with("-ignore", "two.npy"), []uint8{1, 1, 1, 1}},
		{"in Fortran order", run.with("-ignore", "fortran.npy"), []uint8{1, 1, 1, 1}},
		{"no ignored primitives per row", run.with("-ignore", "no_ids.npy"), []uint8{0, 0, 1, 0}},
		{"active", run.with("-ignore", "two.npy").with("-active", "active.npy"), []uint8{1, 1, 1, 0}},
		{"the column by name", run.with("-fields", "visible"), []uint8{0, 0, 1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := segmentBench(t)
			r := b.succeed(t, c.call.args(b)...)
			assert.Empty(t, r.out+r.err)
			assert.Equal(t, []string{"out.npz"}, r.outputFiles)
			assert.Equal(t, archiveOf(t, npy.Bools("visible", c.want, 4)), b.content(t, "out.npz"))
		})
	}
	t.Run("no segments, alone", func(t *testing.T) {
		b := segmentBench(t)
		b.succeed(t, run.with("-starts", "none.npy").with("-ends", "none.npy").with("-ignore", "none_ids.npy").with("-out", "out.npy").args(b)...)
		assert.Equal(t, arrayOf(t, npy.Bools("", nil, 0)), b.content(t, "out.npy"))
	})
}

func TestVisiblePlanAndInfo(t *testing.T) {
	b := segmentBench(t)
	r := b.succeed(t, visibleCall().with("-out").with("-plan", "true").with("-min-rows", "1").with("-ignore", "two.npy").args(b)...)
	for _, want := range []string{"visible", "rows=4", "kind=direct"} {
		assert.Contains(t, r.out, want)
	}
	assert.Empty(t, r.outputFiles)
	// 4 rows of 24 + 8 + 1 B go in and 1 B each comes out; two rows cross the link.
	r = b.succeed(t, visibleCall().with("-info", "true").with("-min-rows", "1").with("-ignore", "two.npy").with("-active", "active.npy").args(b)...)
	for _, want := range []string{"backend: cuda", "trace", "host to master 132, master to host 4, master to others 66, others to master 2"} {
		assert.Contains(t, r.err, want)
	}
}

func TestMalformedVisible(t *testing.T) {
	run := visibleCall()
	ignore := func(file string) call { return run.with("-ignore", file) }
	for name, c := range map[string]malformed{
		"no starts":            {call: run.with("-starts"), want: []string{"-starts is missing"}},
		"no ends":              {call: run.with("-ends"), want: []string{"-ends is missing"}},
		"starts twice":         {call: run.with("-starts", "s.npy", "s.npy"), want: []string{"-starts: given twice"}},
		"other command's flag": {call: run.with("-origins", "s.npy"), want: []string{"unknown flag -origins; raymux visible -h lists the flags"}},
		"unknown column":       {call: run.with("-fields", "t"), want: []string{`-fields: found "t"; expected all or some of visible`}},
		"missing file":         {call: run.with("-ends", "nowhere.npy"), want: []string{"-ends", "nowhere.npy"}},
		"rows of the ends":     {call: run.with("-ends", "rows.npy"), want: []string{"-ends", "found 5 rows; expected 4, the rows of -starts"}},
		"shape of the starts":  {call: run.with("-starts", "rank.npy"), want: []string{"-starts", "found shape (12,); expected shape [N, 3]"}},
		"transposed starts":    {call: run.with("-starts", "transposed.npy"), want: []string{"-starts", "transpose it"}},
		"ids as starts":        {call: run.with("-starts", "int32.npy"), want: []string{"-starts", `found dtype "<i4"`, "float32"}},
		"floats to ignore":     {call: ignore("tmax.npy"), want: []string{"-ignore", `found dtype "<f4"; expected "<i4" (int32); in NumPy .astype(numpy.int32) converts`}},
		"long ids":             {call: ignore("longs.npy"), want: []string{"-ignore", `found dtype "<i8"; expected "<i4" (int32)`}},
		"rows to ignore":       {call: ignore("ids3.npy"), want: []string{"-ignore", "found 3 rows; expected 4, the rows of -starts"}},
		"rank to ignore":       {call: ignore("ids4d.npy"), want: []string{"-ignore", "found shape (4, 1, 2); expected shape [N] or [N, k]"}},
		"truncated ids":        {call: ignore("cut.npy"), want: []string{"-ignore", "cut.npy"}},
		"active":               {call: run.with("-active", "active3.npy"), want: []string{"-active", "found 3 rows; expected 4"}},
		"numbers as mask":      {call: run.with("-active", "bytes.npy"), want: []string{"-active", `found dtype "|u1"`}},
	} {
		t.Run(name, func(t *testing.T) {
			b := segmentBench(t)
			broken(t, b)
			b.file(t, "longs.npy", rawArray("<i8", "(4,)", make([]byte, 32)))
			b.file(t, "ids3.npy", rawArray("<i4", "(3, 2)", make([]byte, 24)))
			b.file(t, "ids4d.npy", rawArray("<i4", "(4, 1, 2)", make([]byte, 32)))
			b.file(t, "cut.npy", rawArray("<i4", "(4,)", make([]byte, 15)))
			c.name, c.status = name, exitUsage
			b.refuse(t, c)
		})
	}
}
