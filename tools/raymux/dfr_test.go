package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/raymux/raymux/tools/raymux/npy"
)

// The scenes, states and values below are the test cases of the specification of the diffraction operations, whose values
// come from other programs.

// stateTable is the columns of wedges on a line, all of the same kind.
type stateTable struct {
	pos, dir, n0, n1, src  []float32
	tMin, tMax, angle, pow float32
	prims                  [2]int32 // plus 1
}

func (s stateTable) columns() []npy.Column {
	m := len(s.pos) / 3
	all := func(v ...float32) (out []float32) {
		for range m {
			out = append(out, v...)
		}
		return out
	}
	ids, prim0, prim1 := make([]int32, m), make([]int32, m), make([]int32, m)
	for i := range ids {
		ids[i], prim0[i], prim1[i] = int32(i), s.prims[0]-1, s.prims[1]-1
	}
	return []npy.Column{
		npy.Ints("edge_index", ids, m), npy.Floats("edge_pos", s.pos, m, 3), npy.Floats("edge_dir", all(s.dir...), m, 3),
		npy.Floats("edge_t_min", all(s.tMin), m), npy.Floats("edge_t_max", all(s.tMax), m),
		npy.Floats("n0", all(s.n0...), m, 3), npy.Floats("n1", all(s.n1...), m, 3), npy.Ints("prim0", prim0, m), npy.Ints("prim1", prim1, m),
		npy.Floats("exterior_angle", all(s.angle), m), npy.Floats("src", all(s.src...), m, 3), npy.Floats("src_power", all(s.pow), m),
	}
}

// oneEdge is a box edge on the x axis, twoEdges two half spaces beside each other.
var (
	oneEdge = stateTable{
		pos: []float32{0, 0, 0}, dir: []float32{1, 0, 0}, n0: []float32{0, 1, 0}, n1: []float32{0, 0, 1}, src: []float32{0, 0, 1},
		tMin: -.5, tMax: .5, angle: 1.5 * math.Pi, pow: 2,
	}
	twoEdges = stateTable{
		pos: []float32{0, 0, 0, .2, 0, 0}, dir: []float32{1, 0, 0}, n0: []float32{0, 0, 1}, n1: []float32{0, 0, -1}, src: []float32{0, -1, .25},
		tMin: -1, tMax: 1, angle: math.Pi, pow: 1,
	}
)

// boxEdge is the edge of the box of dfrBench on the z axis.
func boxEdge(src ...float32) stateTable {
	return stateTable{
		pos: []float32{0, 0, -2}, dir: []float32{0, 0, 1}, n0: []float32{0, 1, 0}, n1: []float32{-1, 0, 0}, src: src,
		tMin: 0, tMax: 4, angle: 1.5 * math.Pi, pow: 1, prims: [2]int32{1, 3},
	}
}

// dfrBench has free space (a triangle out of the way), the edges above, and a box whose edge on the z axis scatters waves,
// with materials of its two faces.
func dfrBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.file(t, "far.obj", "v 0 0 10\nv 1 0 10\nv 0 1 10\nf 1 2 3\n")
	b.file(t, "screen.obj", "v 0 0 10\nv 1 0 10\nv 0 1 10\nf 1 2 3\nv 0 -2 -.5\nv 2 -2 -.5\nv 2 2 -.5\nv 0 2 -.5\nf 4 5 6 7\n")
	b.table(t, "one.npz", oneEdge.columns()...)
	b.table(t, "two.npz", twoEdges.columns()...)
	b.table(t, "idle.npz", append(twoEdges.columns(), npy.Bools("active", []uint8{0, 1}, 2))...)

	// Of each side the corners counter-clockwise as seen from outside; y = 0 and x = 0 come first.
	b.file(t, "box.obj", "v 0 -4 -2\nv 4 -4 -2\nv 4 0 -2\nv 0 0 -2\nv 0 -4 2\nv 4 -4 2\nv 4 0 2\nv 0 0 2\n"+
		"f 4 8 7 3\nf 1 5 8 4\nf 1 4 3 2\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\n")
	b.table(t, "box.npz",
		npy.Floats("eta_r", []float32{4, 3}, 2), npy.Floats("sigma", []float32{.01, .02}, 2), npy.Floats("mu_r", []float32{1, 1}, 2),
		npy.Floats("gain", []float32{1, .9}, 2), npy.Bools("valid", []uint8{1, 1}, 2),
		npy.Ints("index", []int32{0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}, 12))
	return b
}

// wavelength of 3.5 GHz in metres.
const wavelength = "0.08565498800"

func directCall() call {
	return call{"dfr-direct", [][2]string{{"-mesh", "far.obj"}, {"-states", "one.npz"}, {"-devices", "emu:1"}, {"-wavelength", "0.125"},
		{"-direct-samples", "64"}, {"-seed", "17"}, {"-grid-position", "-1"}, {"-grid-min", "-1,-1"}, {"-grid-max", "1,1"}, {"-grid-res", "1,1"},
		{"-out", "out.npz"}}}
}

// counters checks the counters of dfr-direct, in the order of its columns.
func (b *bench) counters(t *testing.T, want ...float64) {
	t.Helper()
	for i, name := range directColumns[1:] {
		assert.Equal(t, want[i:i+1], b.values(t, "out.npz", name), name)
	}
}

func TestDfrDirect(t *testing.T) {
	run := directCall()
	keller := run.with("-direct-samples").with("-keller-samples", "64")
	two := run.with("-states", "two.npz").with("-direct-samples", "16").with("-wavelength", "1").with("-grid-position", ".5").with("-grid-res", "2,2")
	for _, c := range []struct {
		name     string
		call     call
		power    []float64
		counters []float64
	}{
		{"one edge", run, []float64{5.194485128e-04}, []float64{64, 0, 0, 0, 64, 0}},
		{"no seed", run.with("-seed"), []float64{5.106423930e-04}, []float64{64, 0, 0, 0, 64, 0}},
		{"sample by sample on three devices", run.with("-devices", "emu:3").with("-min-lanes", "1").with("-weights", "1,3,.5"), []float64{5.194485128e-04}, []float64{64, 0, 0, 0, 64, 0}},
		{"copies in chunks", run.with("-devices", "emu:2").with("-min-lanes", "1").with("-transport", "copy").with("-chunk-rows", "5"), []float64{5.194485128e-04}, []float64{64, 0, 0, 0, 64, 0}},
		{"keller", keller, []float64{3.664826508e-04}, []float64{0, 14, 0, 50, 14, 0}},
		{"screen", run.with("-mesh", "screen.obj"), []float64{3.117706064e-04}, []float64{38, 0, 26, 0, 38, 0}},
		{"two edges", two, []float64{8.626471620e-03, 1.303280898e-02, 1.156443682e-02, 1.369815896e-02}, []float64{16, 0, 0, 0, 16, 0}},
		{"no sample of a window", two.with("-window", "16,-1"), []float64{0, 0, 0, 0}, []float64{0, 0, 0, 0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := dfrBench(t)
			r := b.succeed(t, c.call.args(b)...)
			assert.Empty(t, r.out+r.err)
			b.within(t, 2e-6, "out.npz", "power", c.power...)
			b.counters(t, c.counters...)
		})
	}
	t.Run("windows add up", func(t *testing.T) {
		b := dfrBench(t)
		sum := make([]float64, 4)
		for _, window := range []string{"0,7", "7,-1"} {
			b.succeed(t, two.with("-window", window).args(b)...)
			for i, v := range b.values(t, "out.npz", "power") {
				sum[i] += v
			}
		}
		b.succeed(t, two.args(b)...)
		b.within(t, 2e-7, "out.npz", "power", sum...)
	})
	t.Run("an idle state", func(t *testing.T) {
		b := dfrBench(t)
		b.succeed(t, two.with("-states", "idle.npz").args(b)...)
		b.counters(t, 8, 0, 0, 0, 8, 8)
	})
	t.Run("nothing but rejects", func(t *testing.T) {
		b := dfrBench(t)
		dark, beside := oneEdge, keller.with("-grid-min", "50,50").with("-grid-max", "51,51")
		dark.pow = 0
		b.table(t, "dark.npz", dark.columns()...)
		b.table(t, "off.npz", append(oneEdge.columns(), npy.Bools("active", []uint8{0}, 1))...)
		for want, c := range map[string]call{
			"utd_rejects 64": run.with("-states", "dark.npz"), "inactive_lanes 64": run.with("-states", "off.npz"),
			"vis_rejects 64": run.with("-mesh", "lid.obj"), "utd_rejects 64 ": beside,
		} {
			b.file(t, "lid.obj", "v 0 -2 .5\nv -2 -2 .5\nv -2 2 .5\nv 0 2 .5\nv 2 -2 .5\nv 2 2 .5\nf 1 2 3\nf 1 3 4\nf 1 4 5\nf 4 6 5\n")
			r := b.succeed(t, c.args(b)...)
			assert.Equal(t, "raymux: note: no lane contributed: "+strings.TrimSpace(want)+" of 64\n", r.err)
			b.within(t, 0, "out.npz", "power", 0)
		}
	})
	t.Run("states of other meshes", func(t *testing.T) {
		b := dfrBench(t)
		foreign := twoEdges
		foreign.prims = [2]int32{1, 2} // the second face of a mesh that has one
		b.table(t, "foreign.npz", foreign.columns()...)
		r := b.succeed(t, two.with("-states", "foreign.npz").args(b)...)
		assert.Equal(t, fmt.Sprintf("raymux: note: -states %s: 2 of 2 states of faces that -mesh %s does not have (found 1, there are 1): "+
			"they have no material; run dfr-states with these meshes\n", b.path("foreign.npz"), b.path("far.obj")), r.err)
		foreign.prims[1] = 1
		b.table(t, "foreign.npz", foreign.columns()...)
		r = b.succeed(t, two.with("-states", "foreign.npz").args(b)...)
		assert.Empty(t, r.err)
	})
	t.Run("no states", func(t *testing.T) {
		b := dfrBench(t)
		b.table(t, "none.npz", stateTable{}.columns()...)
		r := b.succeed(t, two.with("-states", "none.npz").args(b)...)
		assert.Contains(t, r.err, "note: -states "+b.path("none.npz")+": it has no state, so nothing is diffracted")
		b.within(t, 0, "out.npz", "power", 0, 0, 0, 0)
		b.counters(t, 0, 0, 0, 0, 0, 0)
	})
	t.Run("axes by number and by letter", func(t *testing.T) {
		b := dfrBench(t)
		seen := map[string]bool{}
		for letter, number := range map[string]string{"x": "0", "y": "1", "z": "2"} {
			b.succeed(t, keller.with("-grid-axis", letter).args(b)...)
			whole := b.content(t, "out.npz")
			b.succeed(t, keller.with("-grid-axis", number).args(b)...)
			assert.Equal(t, whole, b.content(t, "out.npz"))
			seen[whole] = true
		}
		assert.Len(t, seen, 3)
	})
	t.Run("a single column", func(t *testing.T) {
		b := dfrBench(t)
		b.succeed(t, two.with("-fields", "power").with("-out", "power.npy").args(b)...)
		assert.Contains(t, b.content(t, "power.npy")[:128], "'shape': (2, 2)")
	})
	t.Run("float64 states", func(t *testing.T) {
		b := dfrBench(t)
		var sixtyFour []byte
		for _, v := range oneEdge.src {
			sixtyFour = appendFloat64(sixtyFour, float64(v))
		}
		columns := oneEdge.columns()
		b.file(t, "wide.npz", archiveWith(t, columns[:10], "src", rawArray("<f8", "(1, 3)", sixtyFour), columns[11:]))
		r := b.succeed(t, run.with("-states", "wide.npz").args(b)...)
		assert.Equal(t, fmt.Sprintf("raymux: note: -states %s:src: float64 rounded to float32\n", b.path("wide.npz")), r.err)
		b.within(t, 2e-6, "out.npz", "power", 5.194485128e-04)
	})
	t.Run("columns that are not used", func(t *testing.T) {
		b := dfrBench(t)
		b.table(t, "more.npz", append(oneEdge.columns(), npy.Floats("remark", nil, 0))...)
		r := b.succeed(t, run.with("-states", "more.npz").args(b)...)
		assert.True(t, strings.HasSuffix(r.err, "more.npz: not used: remark\n"), r.err)
	})
}

func TestDfrDirectPlanAndInfo(t *testing.T) {
	b := dfrBench(t)
	r := b.succeed(t, directCall().with("-out").with("-plan", "true").with("-devices", "emu:2").with("-min-lanes", "1").args(b)...)
	for _, want := range []string{"accum_dfr_direct  lanes=64  kind=lane-sharded", "dev1  [32,64)"} {
		assert.Contains(t, r.out, want)
	}
	assert.Empty(t, r.outputFiles)
	// A state of 88 B goes in; a value and six counters come out.
	r = b.succeed(t, directCall().with("-info", "true").with("-window", "60,-1").args(b)...)
	for _, want := range []string{"lanes=4", "upload", "trace", "download", "host to master 88, master to host 52"} {
		assert.Contains(t, r.err, want)
	}
}

func coherentCall() call {
	return call{"dfr-coherent", [][2]string{{"-mesh", "box.obj"}, {"-states", "states.npz"}, {"-material", "box.npz"}, {"-devices", "emu:1"},
		{"-wavelength", wavelength}, {"-polarization", "0,0,1"}, {"-grid-position", "-.1"}, {"-grid-min", ".5,.6"}, {"-grid-max", "1.5,1.6"},
		{"-grid-res", "1,1"}, {"-out", "out.npz"}}}
}

// boxStates writes the states of the box.
func (b *bench) boxStates(t *testing.T, tx string) {
	t.Helper()
	b.succeed(t, statesCall().with("-mesh", "box.obj").with("-tx", tx).with("-out", "states.npz").args(b)...)
}

// field is the six numbers of a cell.
func (b *bench) field(t *testing.T) (field []float64) {
	t.Helper()
	for _, name := range fieldNames {
		field = append(field, b.values(t, "out.npz", name)[0])
	}
	return field
}

func TestDfrCoherent(t *testing.T) {
	b := dfrBench(t)
	run := coherentCall()
	two := run.with("-devices", "emu:2")
	b.table(t, "states.npz", boxEdge(-1.2, .8, -.1).columns()...)
	b.succeed(t, run.args(b)...)
	assert.InDeltaSlice(t, []float64{0, 0, 0, 0, 8.095962e-05, 2.792063e-04}, b.field(t), 2e-9)
	b.within(t, 1e-5, "out.npz", "power", 8.095962e-05*8.095962e-05+2.792063e-04*2.792063e-04)
	for name, want := range map[string]float64{"count": 1, "utd_rejects": 0, "vis_rejects": 0} {
		assert.Equal(t, []float64{want}, b.values(t, "out.npz", name), name)
	}
	// Oblique, with another direction of the field: that along x, unless said otherwise.
	b.table(t, "states.npz", boxEdge(-1.2, .8, 3).columns()...)
	b.succeed(t, run.with("-polarization").args(b)...)
	assert.InDeltaSlice(t, []float64{-1.141998e-04, -1.193997e-04, -4.721144e-05, -2.874413e-05, -1.055821e-04, -9.597657e-05}, b.field(t), 2e-9)
	b.succeed(t, run.args(b)...)
	assert.InDeltaSlice(t, []float64{-1.190837e-04, -1.108107e-04, -4.387457e-05, -2.963959e-05, -1.063532e-04, -9.114404e-05}, b.field(t), 2e-9)

	b.table(t, "states.npz", append(boxEdge(-1.2, .8, -.1).columns(), npy.Bools("active", []uint8{0}, 1))...)
	r := b.succeed(t, run.args(b)...)
	assert.Equal(t, "raymux: note: no lane contributed: inactive lanes 1 of 1\n", r.err)
	b.table(t, "states.npz", boxEdge(1, -1, 0).columns()...) // a source in the box
	r = b.succeed(t, run.args(b)...)
	assert.Equal(t, "raymux: note: no lane contributed: utd_rejects 1 of 1\n", r.err)

	// All edges of the box: the field is the sum over the paths to the centre of the cell, on any number of devices.
	b.boxStates(t, "-1.2,.8,-.1")
	b.array(t, "tx.npy", npy.Floats("", []float32{-1.2, .8, -.1}, 1, 3))
	b.array(t, "rx.npy", npy.Floats("", []float32{1, 1.1, -.1}, 1, 3))
	b.succeed(t, pathsCall().args(b)...)
	sum, paths := make([]float64, 6), b.values(t, "out.npz", "count")
	for i, v := range b.values(t, "out.npz", "field") {
		sum[i%6] += v
	}
	assert.Equal(t, []float64{2}, paths)
	b.succeed(t, run.args(b)...)
	whole := b.content(t, "out.npz")
	assert.InDeltaSlice(t, sum, b.field(t), 1e-9)
	assert.Equal(t, paths, b.values(t, "out.npz", "count"))
	assert.Equal(t, 10.0, b.values(t, "out.npz", "utd_rejects")[0]+b.values(t, "out.npz", "vis_rejects")[0])
	for _, c := range []call{two.with("-min-lanes", "1"), two.with("-min-lanes", "1").with("-chunk-rows", "5").with("-transport", "copy")} {
		b.succeed(t, c.args(b)...)
		assert.Equal(t, whole, b.content(t, "out.npz"))
	}
	r = b.succeed(t, run.with("-out").with("-plan", "true").with("-grid-res", "4,3").args(b)...)
	assert.Contains(t, r.out, "accum_dfr_coherent_direct  lanes=144")
}

func pathsCall() call {
	return call{"dfr-paths", [][2]string{{"-mesh", "box.obj"}, {"-states", "states.npz"}, {"-material", "box.npz"}, {"-devices", "emu:1"},
		{"-wavelength", wavelength}, {"-polarization", "0,0,1"}, {"-tx", "tx.npy"}, {"-rx", "rx.npy"}, {"-out", "out.npz"}}}
}

// Every pair of a transmitter and a receiver has twelve rows, one of them for the edge on the z axis.
func TestDfrPaths(t *testing.T) {
	b := dfrBench(t)
	b.boxStates(t, "9,9,9") // a source that dfr-paths does not read
	edges := b.values(t, "states.npz", "edge_index")
	at, directions, positions := -1, b.values(t, "states.npz", "edge_dir"), b.values(t, "states.npz", "edge_pos")
	for i := range edges {
		if positions[3*i] == 0 && positions[3*i+1] == 0 && math.Abs(directions[3*i+2]) == 1 {
			at = i
		}
	}
	b.array(t, "tx.npy", npy.Floats("", []float32{-1.2, .8, -.1, .9, .7, -.1, 1, -1, 0}, 3, 3))
	b.array(t, "rx.npy", npy.Floats("", []float32{1, 1.1, -.1, -1, -1.5, -.1, 1, -1, 0}, 3, 3))
	run := pathsCall()
	two := run.with("-devices", "emu:2")
	b.succeed(t, run.args(b)...)
	row := func(tx, rx int) int { return (tx*3+rx)*12 + at }
	for _, c := range []struct {
		tx, rx int
		status float64
		delay  float64
		z      float64
		field  [6]float64
	}{
		{0, 0, 0, 9.769516566e-09, -.1, [6]float64{0, 0, 0, 0, 8.095962e-05, 2.792063e-04}},
		{1, 1, 0, 9.816628085e-09, -.1, [6]float64{0, 0, 0, 0, -3.294721e-04, -9.345844e-05}},
		{0, 2, 7, math.Inf(1), 0, [6]float64{}},
		{2, 1, 5, math.Inf(1), 0, [6]float64{}},
	} {
		i := row(c.tx, c.rx)
		assert.Equal(t, c.status, b.values(t, "out.npz", "status")[i])
		assert.InDelta(t, c.z, b.values(t, "out.npz", "p0")[3*i+2], 1e-7)
		assert.InDeltaSlice(t, c.field[:], b.values(t, "out.npz", "field")[6*i:6*i+6], 2e-9)
		ids := [3]float64{-1, -1, -1}
		if c.status == 0 {
			ids = [3]float64{float64(c.tx), float64(c.rx), edges[at]}
			assert.InEpsilon(t, c.delay, b.values(t, "out.npz", "delay")[i], 1e-6)
		}
		for k, name := range []string{"tx_id", "rx_id", "edge_id"} {
			assert.Equal(t, ids[k], b.values(t, "out.npz", name)[i], name)
		}
	}
	whole := b.content(t, "out.npz")
	for _, c := range []call{two.with("-min-rows", "1"), two.with("-min-rows", "1").with("-transport", "copy"), two.with("-chunk-rows", "36")} {
		b.succeed(t, c.args(b)...)
		assert.Equal(t, whole, b.content(t, "out.npz"))
	}

	// The compact layout is the valid rows of the other one.
	status, fields := b.values(t, "out.npz", "status"), b.values(t, "out.npz", "field")
	var valid, want []float64
	for i, s := range status {
		if s == 0 {
			valid = append(valid, 0)
			want = append(want, fields[6*i:6*i+6]...)
		}
	}
	assert.GreaterOrEqual(t, len(valid), 2)
	b.succeed(t, run.with("-layout", "source_lane").args(b)...) // as Go spells it
	assert.Equal(t, status, b.values(t, "out.npz", "status"))
	r := b.succeed(t, run.with("-layout", "compact").with("-chunk-rows", "36").args(b)...)
	assert.Equal(t, "raymux: note: "+wholeNote+"\n", r.err)
	r = b.succeed(t, run.with("-layout", "compact").args(b)...)
	assert.Empty(t, r.err)
	assert.Equal(t, valid, b.values(t, "out.npz", "status"))
	assert.Equal(t, want, b.values(t, "out.npz", "field"))
	assert.Equal(t, []float64{float64(len(valid))}, b.values(t, "out.npz", "count"))

	// A transmitter in the box.
	b.array(t, "inside.npy", npy.Floats("", []float32{1, -1, 0}, 1, 3))
	for want, c := range map[string]call{
		"status tells why": run, "status tells why with -layout source-lane": run.with("-layout", "compact"), "status tells why ": run.with("-chunk-rows", "12"),
	} {
		r = b.succeed(t, c.with("-tx", "inside.npy").args(b)...)
		assert.Equal(t, []float64{0}, b.values(t, "out.npz", "count"))
		assert.Equal(t, "raymux: note: no path of 36 rows: "+strings.TrimSpace(want)+"\n", r.err)
	}

	// No receiver.
	b.file(t, "none.npy", rawArray("<f4", "(0, 3)", nil))
	b.succeed(t, run.with("-rx", "none.npy").args(b)...)
	assert.Empty(t, b.values(t, "out.npz", "status"))
	assert.Equal(t, []float64{0}, b.values(t, "out.npz", "count"))

	r = b.succeed(t, two.with("-out").with("-plan", "true").with("-min-rows", "1").args(b)...)
	for _, want := range []string{"trace_dfr_paths  rows=108", "dev1"} {
		assert.Contains(t, r.out, want)
	}
}
