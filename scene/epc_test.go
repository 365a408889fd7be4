package scene_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/oracle"
)

// epcMeshes are the scenes of the tables.
var epcMeshes = map[string]func() scene.Mesh{
	"floor":  meshFloor,
	"two":    meshTwo,
	"corner": meshCorner,
	"far":    func() scene.Mesh { return scaled(meshFloor(), 10) },
	// A wall stands on the floor at x = 4.
	"wall": func() scene.Mesh {
		return join(meshFloor(), quads(vec{4, -10, 0}, vec{4, 10, 0}, vec{4, 10, 10}, vec{4, -10, 10}))
	},
	// A quad across x = 2, around y = 0 or away from there.
	"blocked":   func() scene.Mesh { return meshBlocked(0) },
	"unblocked": func() scene.Mesh { return meshBlocked(5) },
	"no area": func() scene.Mesh {
		return join(meshFloor(), triangles(vec{0, 0, 1}, vec{1, 0, 1}, vec{2, 0, 1}))
	},
}

func meshBlocked(y float32) scene.Mesh {
	return join(meshFloor(), quads(vec{2, y - 1, .5}, vec{2, y + 1, .5}, vec{2, y + 1, 1.5}, vec{2, y - 1, 1.5}))
}

type epcCase struct {
	id     string
	mesh   string
	row    oracle.EPCRow
	groups []int32 // of faces, or none
	fail   scene.EPCFail
	points []vec
	ids    []int32
	length float64
}

func epcCases() []epcCase {
	e1, e2 := epcRow(vec{0, 0, 1}, vec{3, 0, 2}, 0), vec{1, 0, 1}
	corner := [2]vec{{3, 2, 1.5}, {2, 3, 2.5}}
	cases := []epcCase{
		{id: "E1", mesh: "floor", row: e1, points: []vec{{1, 0, 0}}, ids: []int32{0}, length: 4.24264069},
		{
			id: "E2", mesh: "wall", row: epcRow(e2, vec{2, 0, 2}, 0, 2),
			points: []vec{{2.66666667, 0, 0}, {4, 0, .8}}, ids: []int32{0, 2}, length: 5.83095189,
		},
		{id: "E3", mesh: "wall", row: epcRow(e2, vec{2, 0, 2}, 2, 0), fail: scene.EPCBehind},
		{
			id: "E4", mesh: "two", row: epcRow(vec{1, .5, .5}, vec{2, -.25, 1.5}, 0, 2, 0), length: 6.12882534,
			points: []vec{{1.08333333, .4375, 0}, {1.41666667, .1875, 2}, {1.75, -.0625, 0}}, ids: []int32{0, 2, 0},
		},
		{
			id: "E5", mesh: "corner", row: epcRow(corner[0], corner[1], 0, 2, 4), length: 8.12403840,
			points: []vec{{1.125, .125, 0}, {1, 0, .1}, {0, 1, .9}}, ids: []int32{0, 2, 4},
		},
		{id: "E6", mesh: "floor", row: epcRow(vec{0, 0, 1}, vec{3, 0, -1}, 0), fail: scene.EPCParallel},
		{id: "E6b", mesh: "floor", row: epcRow(vec{0, 0, 1}, vec{3, 0, -.5}, 0), fail: scene.EPCBehind},
		{id: "E7", mesh: "floor", row: epcRow(vec{0, 0, 1}, vec{4, 0, 1}, 0), points: []vec{{2, 0, 0}}, ids: []int32{0}, length: 4.47213595},
		{id: "E8", mesh: "far", row: epcRow(vec{0, 0, 2}, vec{100, 0, 1.5}, 0), points: []vec{{57.1428571, 0, 0}}, ids: []int32{0}, length: 100.061231},
		{id: "E9", mesh: "blocked", row: e1, fail: scene.EPCBlocked},
		{
			id: "E9 outside", mesh: "unblocked", row: e1,
			points: []vec{{1, 0, 0}}, ids: []int32{0}, length: 4.24264069,
		},
		{id: "E10", mesh: "floor", row: epcRow(e1.Source, e1.Receiver, 1), fail: scene.EPCOutside},
		{
			id: "E10 group", mesh: "floor", row: epcRow(e1.Source, e1.Receiver, 1), groups: []int32{0, 0},
			points: []vec{{1, 0, 0}}, ids: []int32{0}, length: 4.24264069,
		},
		{id: "E11", mesh: "floor", row: epcRow(vec{0, 0, 1e-3}, vec{10, 0, 1e-3}, 0), points: []vec{{5, 0, 0}}, ids: []int32{0}, length: 10.0000002},
		{id: "E12 NaN", mesh: "floor", row: epcRow(vec{0, 0, 1}, vec{3, nan, 2}, 0), fail: scene.EPCInactive},
		{id: "E12 empty", mesh: "floor", row: epcRow(e1.Source, e1.Receiver), fail: scene.EPCSequence},
		{id: "E12 unknown", mesh: "floor", row: epcRow(e1.Source, e1.Receiver, 2), fail: scene.EPCSequence},
		{id: "E12 negative", mesh: "floor", row: epcRow(e1.Source, e1.Receiver, -2), fail: scene.EPCSequence},
		{id: "unknown behind the end", mesh: "floor", row: epcRow(e1.Source, e1.Receiver, 0, -1, 7), points: []vec{{1, 0, 0}}, ids: []int32{0}, length: 4.24264069},
		{id: "same point", mesh: "floor", row: epcRow(vec{1, 0, 1}, vec{1, 0, 1}, 0), points: []vec{{1, 0, 0}}, ids: []int32{0}, length: 2},
		{id: "on the plane", mesh: "floor", row: epcRow(vec{1, 0, 0}, vec{2, 0, 1}, 0), points: []vec{{1, 0, 0}}, ids: []int32{0}, length: math.Sqrt2},
		{
			id: "no area", mesh: "no area", row: epcRow(vec{0, 0, 1}, vec{3, 0, 2}, 2), fail: scene.EPCNormal,
		},
	}
	inactive := e1
	inactive.Inactive = true
	cases = append(cases, epcCase{id: "E12 inactive", mesh: "floor", row: inactive, fail: scene.EPCInactive})
	for _, order := range [][]int32{{0, 4, 2}, {2, 0, 4}, {2, 4, 0}, {4, 0, 2}, {4, 2, 0}} {
		cases = append(cases, epcCase{
			id: fmt.Sprint("E5b ", order), mesh: "corner", row: epcRow(corner[0], corner[1], order...), fail: scene.EPCBehind,
		})
	}
	return cases
}

// closeTo has the tolerance of the tables: 1e-5, relative and absolute.
func closeTo(t *testing.T, want float64, have float32, about ...any) {
	t.Helper()
	assert.InDelta(t, want, have, 1e-5*(1+math.Abs(want)), about...)
}

func TestEPCTable(t *testing.T) {
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		checked := 0
		for name, mesh := range epcMeshes {
			m := mesh()
			r := open(m)
			b := newEPCBatch(5)
			b.active = true
			var cases, grouped []epcCase
			for _, c := range epcCases() {
				if c.mesh == name && c.groups == nil {
					cases, b.rows = append(cases, c), append(b.rows, c.row)
				} else if c.mesh == name {
					grouped = append(grouped, c)
				}
			}
			got := r.paths(b)
			requireCanonical(t, oracle.NewCanonical(m.Vertices, m.Faces), b, got)
			for i, c := range cases {
				c.check(t, got, i)
			}
			for _, c := range grouped {
				b := newEPCBatch(5, c.row)
				b.rules.ID, b.rules.Members = c.groups, [][]int32{{0, 1}}
				c.check(t, r.paths(b), 0)
			}
			checked += len(cases) + len(grouped)
		}
		require.Len(t, epcCases(), checked, "cases of unknown scenes")
	})
}

// check compares a row of a result.
func (c *epcCase) check(t *testing.T, got epcTable, row int) {
	t.Helper()
	assert.Equal(t, c.fail, scene.EPCFail(got.fail[row]), "%s: %s", c.id, scene.EPCFail(got.fail[row]))
	assert.Equal(t, flag(c.fail == scene.EPCOK), got.valid[row], c.id)
	if c.fail != scene.EPCOK {
		assert.Equal(t, inf, got.length[row], c.id)
	} else {
		closeTo(t, c.length, got.length[row], c.id)
	}
	for k := range got.bounces {
		at := row*got.bounces + k
		id, p := int32(-1), vec{}
		if k < len(c.ids) {
			id, p = c.ids[k], c.points[k]
		}
		assert.Equal(t, id, got.resolved[at], c.id)
		for i := range 3 {
			closeTo(t, float64(p[i]), got.points[3*at+i], "%s: point %d", c.id, k)
		}
	}
}

// The longest rows, between parallel mirrors: the image lies 16 m above the source.
func TestEPCLongest(t *testing.T) {
	m := meshTwo()
	r := build(t, m)
	b := newEPCBatch(scene.MaxEPCBounces, epcRow(vec{-2, -5, .5}, vec{2, -5, 1.5}, 0, 2, 0, 2, 0, 2, 0, 2), epcRow(vec{-2, -5, .5}, vec{2, -5, 1.5}))
	got := r.paths(b)
	requireCanonical(t, oracle.NewCanonical(m.Vertices, m.Faces), b, got)
	require.EqualValues(t, []uint8{scene.MaxEPCBounces, 0}, got.count)
	closeTo(t, math.Sqrt(4*4+15*15), got.length[0])
	for k := range scene.MaxEPCBounces { // planes are 2 m apart, and points evenly spread
		closeTo(t, -2+4*(.5+2*float64(k))/15, got.points[3*k])
		closeTo(t, float64(k%2)*2, got.points[3*k+2])
	}
}

// The fields of the table. All components but those that are given are zero.
func TestEPCFieldTable(t *testing.T) {
	x, y, z := vec{1, 0, 0}, vec{0, 1, 0}, vec{0, 0, 1}
	e1 := epcRow(vec{0, 0, 1}, vec{3, 0, 2}, 0)
	e2 := epcRow(vec{1, 0, 1}, vec{2, 0, 2}, 0, 2)
	e5 := epcRow(vec{3, 2, 1.5}, vec{2, 3, 2.5}, 0, 2, 4)
	e7 := epcRow(vec{0, 0, 1}, vec{4, 0, 1}, 0)
	a, p := complex(1.24926791e-4, -2.69978244e-3), complex(6.13057553e-4, -1.32487355e-2)
	tests := []struct {
		id           string
		mesh         string
		row          oracle.EPCRow
		polarization vec
		sigma        float32
		wavelength   float64
		within       float64 // of the magnitude
		field        oracle.Field
		power        float64
	}{
		{"E1f x", "floor", e1, x, 0, 1, 2e-5, oracle.Field{-a, 0, a}, 1.46088639e-5},
		{"E1f z", "floor", e1, z, 0, 1, 2e-5, oracle.Field{-a, 0, a}, 1.46088639e-5},
		{"E1g", "floor", e1, y, 0, 1, 2e-5, oracle.Field{1: complex(-3.91375301e-4, 8.45797891e-3)}, 7.16905818e-5},
		{"E1p", "floor", e1, x, inf, 1, 2e-5, oracle.Field{-p, 0, p}, 3.51809665e-4},
		{"E2f y", "wall", e2, y, 0, 1, 2e-5, oracle.Field{1: complex(1.42581971e-3, 2.55720769e-3)}, 8.57227302e-6},
		{"E2f x", "wall", e2, x, 0, 1, 2e-5, oracle.Field{complex(-6.20362431e-5, -1.11262004e-4), 0, complex(-1.03393739e-4, -1.85436673e-4)}, 6.1304754e-8},
		{
			"E4f", "two", epcRow(vec{1, .5, .5}, vec{2, -.25, 1.5}, 0, 2, 0), x, 0, 1, 2e-5,
			oracle.Field{complex(-3.22259525e-4, 3.38135369e-4), complex(-2.69753586e-5, 2.83042769e-5), complex(5.03380011e-5, -5.28178602e-5)}, 2.25039172e-7,
		},
		{
			"E5f", "corner", e5, z, 0, 1, 2e-5,
			oracle.Field{complex(-1.12437688e-5, 1.11087161e-5), complex(-2.45492975e-5, 2.42544276e-5), complex(4.47413329e-5, -4.42039296e-5)}, 5.39654544e-9,
		},
		{
			"E5p", "corner", e5, z, inf, 1, 2e-5,
			oracle.Field{complex(-2.42596406e-3, 2.39682498e-3), complex(-2.42596406e-3, 2.39682498e-3), complex(6.06491014e-3, -5.99206245e-3)}, 9.59480906e-5,
		},
		{"E7 y", "floor", e7, y, 0, 1, 2e-5, oracle.Field{1: complex(1.05132326e-2, 1.85964282e-3)}, 1.13985e-4},
		{"E8", "far", epcRow(vec{0, 0, 2}, vec{100, 0, 1.5}, 0), y, 0, .1, 1e-3, oracle.Field{1: complex(5.81388337e-5, -4.95369413e-5)}, 5.83403e-9},
	}
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		rigs := map[string]*rig{}
		for _, c := range tests {
			if rigs[c.mesh] == nil {
				rigs[c.mesh] = open(epcMeshes[c.mesh]())
			}
			r := rigs[c.mesh]
			faces := len(epcMeshes[c.mesh]().Faces) / 3
			got := r.fields(newEPCBatch(3, c.row), r.materials(mediumOfAll(4, c.sigma, faces)), c.wavelength, c.polarization[:])
			require.EqualValues(t, 1, got.valid[0], c.id)
			f := got.fieldOf(0)
			diff := oracle.Field{f[0] - c.field[0], f[1] - c.field[1], f[2] - c.field[2]}
			assert.LessOrEqual(t, math.Sqrt(diff.Power()/c.power), c.within, "%s: %v, want %v", c.id, f, c.field)
			assert.InEpsilon(t, c.power, f.Power(), 2*c.within+1e-5, c.id)
		}
		r := rigs["floor"]
		dielectric := r.materials(mediumOfAll(4, 0, 2))
		absent, along := r.fields(newEPCBatch(1, e1), dielectric, 1, nil), r.fields(newEPCBatch(1, e1), dielectric, 1, x[:])
		require.Equal(t, bits(along.field), bits(absent.field), "x is the default")
		// At the Brewster angle.
		got := r.fields(newEPCBatch(1, e7), dielectric, 1, z[:])
		require.EqualValues(t, 1, got.valid[0])
		assert.Less(t, got.fieldOf(0).Power(), 1e-13, "E7")
		row := epcRow(vec{0, 0, 1e-3}, vec{10, 0, 1e-3}, 0)
		got = r.fields(newEPCBatch(1, row, row), dielectric, 1, append(y[:], z[:]...))
		free := 1 / (4 * math.Pi * 10.0000002)
		assert.InEpsilon(t, .999769087*free, math.Sqrt(got.fieldOf(0).Power()), 1e-5, "E11")
		assert.InEpsilon(t, .999076666*free, math.Sqrt(got.fieldOf(1).Power()), 1e-5, "E11")
	})
}

// Rows without a field: absorbed ones stay valid, those with a segment of no length or a
// polarization that is no number do not.
func TestEPCFieldEdges(t *testing.T) {
	row := epcRow(vec{0, 0, 1}, vec{3, 0, 2}, 0)
	onPlane := epcRow(vec{1, 0, 0}, vec{2, 0, 1}, 0)
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(meshFloor())
		media := mediumOfAll(4, 0, 2)
		good := r.materials(media)
		media.Valid = []bool{false}
		absorbing := r.materials(media)

		got := r.fields(newEPCBatch(1, row), absorbing, 1, nil)
		require.Equal(t, oracle.Field{}, got.fieldOf(0))
		require.EqualValues(t, 1, got.valid[0])
		closeTo(t, 4.24264069, got.length[0])

		blocked := epcRow(vec{0, 0, 1}, vec{3, 0, 2}, 1)
		got = r.fields(newEPCBatch(1, onPlane, row, row, blocked), good, 1, []float32{0, 1, 0, nan, 0, 0, 0, inf, 0, 1, 0, 0})
		for i := range 4 {
			require.Equal(t, oracle.Field{}, got.fieldOf(i), "row %d", i)
			require.Equal(t, bits(make([]float32, 6)), bits(got.field[6*i:6*i+6]), "row %d", i)
			require.Zero(t, got.valid[i], "row %d", i)
			require.Equal(t, inf, got.length[i], "row %d", i)
		}
		require.Equal(t, []uint8{0, 0, 0, uint8(scene.EPCOutside)}, got.fail)
		require.Equal(t, []int32{0, 0, 0, -1}, got.resolved, "a path is told, also without a field")

		// Without a polarization across the path, the field starts along a fixed direction.
		along := r.fields(newEPCBatch(1, row, row), good, 1, []float32{1, 0, -1, 0, 0, 0})
		require.Equal(t, bits(along.field[:6]), bits(along.field[6:]))
		require.EqualValues(t, 1, along.valid[0])
	})
}
