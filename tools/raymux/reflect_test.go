package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/raymux/raymux/tools/raymux/npy"
)

// chainBench has three rays between the triangle at z = 0 and the square at z = 1, two of which take the same path, and
// one that misses.
func chainBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.array(t, "between.npy", npy.Floats("", []float32{.5, .25, .5, 9, 9, 9, .25, .5, .5, .5, .25, .5}, 4, 3))
	b.array(t, "up.npy", npy.Floats("", []float32{0, 0, 1, 0, 0, 1, 0, 0, -1, 0, 0, 2}, 4, 3))
	b.file(t, "none.npy", rawArray("<f4", "(0, 3)", nil))
	b.file(t, "last.npy", boolFile(0, 0, 0, 1))
	return b
}

func reflectCall() call {
	return call{"reflect", [][2]string{{"-mesh", "tri.obj"}, {"-mesh", "square.obj"}, {"-origins", "between.npy"},
		{"-directions", "up.npy"}, {"-devices", "emu:2"}, {"-bounces", "2"}, {"-out", "out.npz"}}}
}

// chainColumns is what the rays of chainBench meet in two bounces. All values are exact in float32.
func chainColumns() []npy.Column {
	return []npy.Column{
		npy.Bools("valid", []uint8{1, 1, 0, 0, 1, 1, 1, 1}, 4, 2),
		npy.Floats("t", []float32{.5, 1, inf, inf, .5, 1, .25, .5}, 4, 2),
		npy.Ints("prim_ids", []int32{1, 0, -1, -1, 0, 2, 1, 0}, 4, 2),
		npy.Floats("image_sources", []float32{
			.5, .25, 1.5, .5, .25, -1.5, 0, 0, 0, 0, 0, 0, .25, .5, -.5, .25, .5, 2.5, .5, .25, 1.5, .5, .25, -1.5}, 4, 2, 3),
		npy.Floats("hit_points", []float32{
			.5, .25, 1, .5, .25, 0, 0, 0, 0, 0, 0, 0, .25, .5, 0, .25, .5, 1, .5, .25, 1, .5, .25, 0}, 4, 2, 3),
		npy.Floats("normals", []float32{
			0, 0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0, 0, -1, 0, 0, 1}, 4, 2, 3),
		npy.Floats("barycentric", []float32{
			.25, .25, .5, .25, 0, 0, 0, 0, .25, .5, .25, .25, .25, .25, .5, .25}, 4, 2, 2),
	}
}

// pathColumns is what -dedup leaves of chainColumns: rows 0 and 2.
func pathColumns() []npy.Column {
	return []npy.Column{
		npy.Bools("valid", []uint8{1, 1, 1, 1}, 2, 2),
		npy.Floats("t", []float32{.5, 1, .5, 1}, 2, 2),
		npy.Ints("prim_ids", []int32{1, 0, 0, 2}, 2, 2),
		npy.Floats("image_sources", []float32{.5, .25, 1.5, .5, .25, -1.5, .25, .5, -.5, .25, .5, 2.5}, 2, 2, 3),
		npy.Floats("hit_points", []float32{.5, .25, 1, .5, .25, 0, .25, .5, 0, .25, .5, 1}, 2, 2, 3),
		npy.Floats("normals", []float32{0, 0, -1, 0, 0, 1, 0, 0, 1, 0, 0, -1}, 2, 2, 3),
		npy.Floats("barycentric", []float32{.25, .25, .5, .25, .25, .5, .25, .25}, 2, 2, 2),
		npy.Longs("representative", []int64{0, 2}, 2),
		npy.Longs("discovery_count", []int64{2, 1}, 2),
	}
}

func TestReflect(t *testing.T) {
	all, paths := chainColumns(), pathColumns()
	run := reflectCall()
	for _, c := range []struct {
		name string
		call call
		want string
	}{
		{"all columns", run, archiveOf(t, all...)},
		{"row by row on three devices", run.with("-devices", "emu:3").with("-min-rows", "1"), archiveOf(t, all...)},
		{"copies", run.with("-min-rows", "1").with("-transport", "copy"), archiveOf(t, all...)},
		{"in chunks", run.with("-chunk-rows", "1"), archiveOf(t, all...)},
		{"paths in chunks", run.with("-dedup", "true").with("-chunk-rows", "1"), archiveOf(t, paths...)},
		{"columns in the order of the operation", run.with("-fields", "prim_ids,t"), archiveOf(t, all[1], all[2])},
		{"images alone", run.with("-fields", "image_sources"), archiveOf(t, all[3])},
		{"one bounce unless said otherwise", run.with("-bounces").with("-fields", "t,barycentric"), archiveOf(t,
			npy.Floats("t", []float32{.5, inf, .5, .25}, 4, 1), npy.Floats("barycentric", []float32{.25, .25, 0, 0, .25, .5, .25, .25}, 4, 1, 2))},
		{"active", run.with("-active", "last.npy").with("-fields", "prim_ids"), archiveOf(t,
			npy.Ints("prim_ids", []int32{-1, -1, -1, -1, -1, -1, 1, 0}, 4, 2))},
		{"no rays", run.with("-origins", "none.npy").with("-directions", "none.npy").with("-fields", "valid,normals"),
			archiveOf(t, npy.Bools("valid", nil, 0, 2), npy.Floats("normals", nil, 0, 2, 3))},
		{"paths", run.with("-dedup", "true"), archiveOf(t, paths...)},
		{"columns of paths", run.with("-dedup", "true").with("-fields", "discovery_count,valid"), archiveOf(t, paths[0], paths[8])},
		{"no path", run.with("-dedup", "true").with("-tmax", "short.npy").with("-fields", "t,representative"),
			archiveOf(t, npy.Floats("t", nil, 0, 2), npy.Longs("representative", nil, 0))},
		{"paths of no rays", run.with("-dedup", "true").with("-origins", "none.npy").with("-directions", "none.npy").with("-fields", "discovery_count"),
			archiveOf(t, npy.Longs("discovery_count", nil, 0))},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := chainBench(t)
			b.array(t, "short.npy", npy.Floats("", []float32{.1, .1, .1, .1}, 4))
			r := b.succeed(t, c.call.args(b)...)
			want := ""
			if c.name == "paths in chunks" {
				want = "raymux: note: " + wholeNote + "\n"
			}
			assert.Equal(t, want, r.out+r.err)
			assert.Equal(t, []string{"out.npz"}, r.outputFiles)
			assert.Equal(t, c.want, b.content(t, "out.npz"))
		})
	}
}

func TestReflectPlanAndInfo(t *testing.T) {
	b := chainBench(t)
	r := b.succeed(t, reflectCall().with("-out").with("-plan", "true").with("-min-rows", "1").args(b)...)
	for _, want := range []string{"trace_reflections:2", "rows=4", "kind=direct"} {
		assert.Contains(t, r.out, want)
	}
	assert.Empty(t, r.outputFiles)
	// 4 rays of 24 B go in, 4 rows of 106 B come out; two rows cross the link and send 8 B back each.
	r = b.succeed(t, reflectCall().with("-info", "true").with("-min-rows", "1").args(b)...)
	for _, want := range []string{"backend: cuda", "trace", "host to master 96, master to host 424, master to others 48, others to master 16"} {
		assert.Contains(t, r.err, want)
	}
}

func TestMalformedReflect(t *testing.T) {
	run := reflectCall()
	for name, c := range map[string]malformed{
		"no bounce":         {call: run.with("-bounces", "0"), want: []string{`invalid value "0" for flag -bounces: use a whole number from 1 to 64`}},
		"too many bounces":  {call: run.with("-bounces", "65"), want: []string{"-bounces: use a whole number from 1 to 64"}},
		"half a bounce":     {call: run.with("-bounces", "1.5"), want: []string{"-bounces: use a whole number from 1 to 64"}},
		"bounces twice":     {call: run.with("-bounces", "1", "2"), want: []string{"-bounces: given twice"}},
		"dedup":             {call: run.with("-dedup", "maybe"), want: []string{"-dedup"}},
		"whole result":      {call: run.with("-dedup", "true").with("-memory-budget", "20"), want: []string{"minimum ", "leave -dedup out"}},
		"unknown column":    {call: run.with("-fields", "uv"), want: []string{`-fields: found "uv"; expected all or some of valid,t,prim_ids,`}},
		"column of paths":   {call: run.with("-fields", "representative"), want: []string{`-fields: found "representative"`}},
		"two columns, .npy": {call: run.with("-fields", "t,valid").with("-out", "x.npy"), want: []string{"an .npy file for 2 columns"}},
		"no directions":     {call: run.with("-directions"), want: []string{"-directions is missing"}},
		"rows":              {call: run.with("-directions", "none.npy"), want: []string{"found 0 rows; expected 4"}},
		"unknown flag":      {call: run.with("-k", "2"), want: []string{"unknown flag -k; raymux reflect -h lists the flags"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.name, c.status = name, exitUsage
			chainBench(t).refuse(t, c)
		})
	}
}
