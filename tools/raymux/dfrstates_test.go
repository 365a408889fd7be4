package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/raymux/raymux/tools/raymux/npy"
)

func statesCall() call {
	return call{"dfr-states", [][2]string{{"-mesh", "tri.obj"}, {"-devices", "emu:1"}, {"-tx", "3,-2,.5"}, {"-out", "out.npz"}}}
}

func TestDfrStates(t *testing.T) {
	// Half planes at the sides of the triangle (0,0,0), (1,0,0), (0,1,0), whose normal is z. Each side runs as the triangle
	// does.
	b := newBench(t)
	r := b.succeed(t, statesCall().args(b)...)
	assert.Empty(t, r.out+r.err)
	angle, slant := 2*math.Pi, math.Sqrt2/2
	for name, want := range map[string][]float64{
		"edge_index": {0, 1, 2}, "edge_pos": {0, 0, 0, 0, 1, 0, 1, 0, 0}, "edge_dir": {1, 0, 0, 0, -1, 0, -slant, slant, 0},
		"edge_t_min": {0, 0, 0}, "edge_t_max": {1, 1, math.Sqrt2}, "n0": {0, 0, 1, 0, 0, 1, 0, 0, 1}, "n1": {0, 0, -1, 0, 0, -1, 0, 0, -1},
		"prim0": {0, 0, 0}, "prim1": {0, 0, 0}, "exterior_angle": {angle, angle, angle},
		"src": {3, -2, .5, 3, -2, .5, 3, -2, .5}, "src_power": {1, 1, 1},
	} {
		b.within(t, 1e-7, "out.npz", name, want...)
	}

	r = b.succeed(t, statesCall().with("-max-states", "2").with("-fields", "edge_index,src").args(b)...)
	assert.Equal(t, "raymux: note: -max-states 2: the first of 3 states\n", r.err)
	assert.Equal(t, archiveOf(t, npy.Ints("edge_index", []int32{0, 1}, 2), npy.Floats("src", []float32{3, -2, .5, 3, -2, .5}, 2, 3)), b.content(t, "out.npz"))

	// The diagonal of the square is flat, and its id is passed over.
	r = b.succeed(t, statesCall().with("-mesh", "square.obj").with("-max-states", "9").with("-info", "true").with("-fields", "edge_index").with("-out", "ids.npy").args(b)...)
	assert.Contains(t, r.err, "edges=5 states=4 (half planes 4, of these 0 where another one is, of three or more faces 0) flat=1")
	assert.Equal(t, arrayOf(t, npy.Ints("", []int32{0, 2, 3, 4}, 4)), b.content(t, "ids.npy"))

	r = b.succeed(t, statesCall().with("-out").with("-plan", "true").args(b)...)
	assert.Contains(t, r.out, "no rows are split")

	// A tetrahedron whose normals point inwards.
	b.file(t, "inside.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 4 2\nf 1 3 4\nf 2 4 3\n")
	r = b.succeed(t, statesCall().with("-mesh", "inside.obj").args(b)...)
	assert.Contains(t, r.err, "note: no edge diffracts: 6 edges, of which 0 flat and 6 concave; orient triangles")

	// The same without its last face.
	b.file(t, "open.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 4 2\nf 1 3 4\n")
	r = b.succeed(t, statesCall().with("-mesh", "open.obj").args(b)...)
	assert.Equal(t, "raymux: note: no edge of several faces diffracts: 3 edges of one face, and 3 concave edges; if these are corners of solids, "+
		"orient triangles counter-clockwise as seen from outside\n", r.err)

	// The square of two triangles with vertices of their own, whose diagonal is an edge of each.
	b.file(t, "split.obj", "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3\nf 4 5 6\n")
	r = b.succeed(t, statesCall().with("-mesh", "split.obj").args(b)...)
	assert.Equal(t, "raymux: note: 2 of 6 states are half planes where another one is: faces of "+b.path("split.obj")+
		" share no vertices there; weld those of equal position\n", r.err)

	// Two faces that turn their backs on each other.
	b.file(t, "twisted.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\n")
	r = b.succeed(t, statesCall().with("-mesh", "twisted.obj").args(b)...)
	assert.Contains(t, r.err, "note: 1 edge of two faces with opposite orientation left out")
}

func TestMalformedDfrStates(t *testing.T) {
	run := statesCall()
	for name, c := range map[string]malformed{
		"no source":        {call: run.with("-tx"), want: []string{"-tx is missing"}},
		"two coordinates":  {call: run.with("-tx", "1,2"), want: []string{"-tx: use 3 numbers, separated by commas"}},
		"four coordinates": {call: run.with("-tx", "1,2,3,4"), want: []string{"-tx: use 3 numbers"}},
		"infinite source":  {call: run.with("-tx", "1,inf,3"), want: []string{`-tx: "inf" is no finite float32`}},
		"too far a source": {call: run.with("-tx", "1,1e39,3"), want: []string{`-tx: "1e39" is no finite float32`}},
		"no coordinate":    {call: run.with("-tx", "1,,3"), want: []string{`-tx: "" is no finite float32`}},
		"source twice":     {call: run.with("-tx", "1,2,3", "1,2,3"), want: []string{"-tx: given twice"}},
		"no states":        {call: run.with("-max-states", "0"), want: []string{"-max-states: use a whole number from 1"}},
		"unknown column":   {call: run.with("-fields", "active"), want: []string{`-fields: found "active"; expected all or some of edge_index,edge_pos,`}},
		"columns in .npy":  {call: run.with("-out", "x.npy"), want: []string{"an .npy file for 12 columns"}},
		"no mesh":          {call: run.with("-mesh"), want: []string{"-mesh is missing"}},
		"rows to split":    {call: run.with("-weights", "1"), want: []string{"unknown flag -weights"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.name, c.status = name, exitUsage
			newBench(t).refuse(t, c)
		})
	}
}
