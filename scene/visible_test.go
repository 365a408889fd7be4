package scene_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// above is a point over the inside of T.
func above(z float32) vec { return vec{.25, .25, z} }

func TestVisibleClosedForms(t *testing.T) {
	far := func(p vec) vec { return vec{p[0] + 1000, p[1] + 1000, p[2] + 1000} }
	farT := moved(meshT(), vec{1000, 1000, 1000})
	noArea := triangles(vec{0, 0, 0}, vec{1, 0, 0}, vec{2, 0, 0})
	nine := []int32{-1, -1, -1, -1, -1, -1, -1, -1, 0}
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		for _, c := range []struct {
			id     string
			mesh   scene.Mesh
			s, e   vec
			ignore []int32
			want   bool
		}{
			{"V1", meshT(), above(-1), above(1), nil, false},
			{"V2", meshT(), above(-1), above(-.5), nil, true},
			{"V3", meshT(), above(-1), above(0), nil, true},
			{"V3 reversed", meshT(), above(0), above(-1), nil, true},
			{"V4", meshS(), above(0), above(1), nil, false},
			{"V5", meshT(), above(.5), above(.5), nil, true},
			{"V5 NaN start", meshT(), vec{nan, .25, .5}, above(.5), nil, false},
			{"V5 NaN end", meshT(), above(.5), vec{.25, nan, .5}, nil, false},
			{"V5 infinite end", meshT(), above(.5), vec{.25, .25, inf}, nil, false},
			{"V6", meshT(), above(-1), above(1), []int32{0}, true},
			{"V6 nine wide", meshT(), above(-1), above(1), nine, true},
			{"V6 another", meshT(), above(-1), above(1), []int32{5}, false},
			{"V7", meshT(), above(-1.5e-5), above(1), nil, true},
			{"V7 reversed", meshT(), above(1), above(-1.5e-5), nil, true},
			{"V8", meshT(), above(-1e-4), above(1e-4), nil, false},
			{"V9", meshT(), above(-1.5e-5), above(1.5e-5), nil, true},
			{"V10", farT, far(above(0)), far(above(1)), nil, true},
			{"V10 reversed", farT, far(above(1)), far(above(0)), nil, true},
			{"length overflows", meshT(), above(-1), above(3e38), nil, false},
			{"face without area", noArea, vec{1, 0, -1}, vec{1, 0, 1}, nil, true},
			{"one of two ignored", meshS(), above(-1), above(1), []int32{1}, false},
			{"both ignored", meshS(), above(-1), above(1), []int32{1, 0}, true},
		} {
			t.Run(c.id, func(t *testing.T) {
				got := open(c.mesh).visible(segments{s: []vec{c.s}, e: []vec{c.e}, ignore: c.ignore})
				assert.Equal(t, []uint8{flag(c.want)}, got)
			})
		}
		t.Run("V5 inactive", func(t *testing.T) {
			p := []vec{above(.5), above(.5), above(.5)}
			got := open(meshT()).visible(segments{s: p, e: p, active: []uint8{0, 1, 255}})
			assert.Equal(t, []uint8{0, 1, 1}, got)
		})
	})
}

func TestVisiblePairClosedForms(t *testing.T) {
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		// V11, then the same with the ends exchanged, inactive, each point not finite, and
		// the triangle ignored.
		b := segments{active: make([]uint8, 0), ignore: []int32{}}
		add := func(s, e, other vec, active uint8, ignore int32) {
			b.add(s, e)
			b.other, b.active, b.ignore = append(b.other, other), append(b.active, active), append(b.ignore, ignore)
		}
		start, hidden, free := above(-1), above(1), vec{2, 2, 1}
		add(start, hidden, free, 1, -1)
		add(start, free, hidden, 1, -1)
		add(start, hidden, free, 0, -1)
		add(vec{nan, 0, 0}, free, free, 1, -1)
		add(start, vec{0, inf, 0}, free, 1, -1)
		add(start, free, vec{0, 0, nan}, 1, -1)
		add(start, hidden, hidden, 1, 0)
		first, second := open(meshT()).visiblePair(b)
		assert.Equal(t, []uint8{0, 1, 0, 0, 0, 0, 1}, first)
		assert.Equal(t, []uint8{1, 0, 0, 0, 0, 0, 1}, second)
	})
}

func TestVisibleEdgeClosedForms(t *testing.T) {
	v12 := oracle.EdgeRow{Source: above(-1), Position: vec{-2, .25, 1}, Direction: vec{1, 0, 0}, TMax: 4}
	with := func(change func(r *oracle.EdgeRow)) oracle.EdgeRow {
		r := v12
		change(&r)
		return r
	}
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(meshT())
		for _, c := range []struct {
			id        string
			row       oracle.EdgeRow
			fractions []float32
			want      bool
		}{
			{"V12", v12, []float32{0, .5, 1}, true},
			{"V12 by default", v12, nil, true},
			{"V12 middle", with(func(r *oracle.EdgeRow) { r.TMax = 4.5 }), []float32{.5}, false},
			{"V12 beyond the edge", v12, []float32{-1, 2}, true},
			{"V13", with(func(r *oracle.EdgeRow) { r.Position, r.Direction, r.TMax = above(1), vec{}, 0 }), []float32{0}, false},
			{"V14", with(func(r *oracle.EdgeRow) { r.TMin, r.TMax = 4, 0 }), []float32{0, .5, 1}, true},
			{"sixteen", with(func(r *oracle.EdgeRow) { r.TMin = 2 }), append(make([]float32, 15), 1), true},
			{"all hidden", with(func(r *oracle.EdgeRow) { r.TMin, r.TMax = 2.1, 2.3 }), nil, false},
			{"NaN source", with(func(r *oracle.EdgeRow) { r.Source[2] = nan }), nil, false},
			{"infinite position", with(func(r *oracle.EdgeRow) { r.Position[0] = inf }), nil, false},
			{"NaN direction", with(func(r *oracle.EdgeRow) { r.Direction[1] = nan }), nil, false},
			{"NaN TMin", with(func(r *oracle.EdgeRow) { r.TMin = nan }), nil, false},
			{"NaN TMax", with(func(r *oracle.EdgeRow) { r.TMax = nan }), nil, false},
			{"infinite TMax", with(func(r *oracle.EdgeRow) { r.TMax = inf }), nil, false},
			{"TMax of -inf", with(func(r *oracle.EdgeRow) { r.TMax = -inf }), nil, true},
			{"a sample overflows", with(func(r *oracle.EdgeRow) { r.Direction[0] = 3e38 }), []float32{1, 0}, true},
		} {
			t.Run(c.id, func(t *testing.T) {
				got := r.visibleEdge(edges{rows: []oracle.EdgeRow{c.row}, fractions: c.fractions})
				assert.Equal(t, []uint8{flag(c.want)}, got)
			})
		}
		got := r.visibleEdge(edges{rows: []oracle.EdgeRow{v12, v12}, active: []uint8{0, 7}})
		assert.Equal(t, []uint8{0, 1}, got)
	})
}

func TestVisibleChainClosedForms(t *testing.T) {
	points := []vec{above(-1), above(-.5), above(1)}
	lost := []vec{above(-1), above(-.5), {0, nan, 0}}
	down := []vec{above(1), above(-1)}
	free := oracle.Polyline{AllVisible: true, Segment: -1, Prim: -1}
	none := oracle.Polyline{Segment: -1, Prim: -1}
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(meshS())
		for _, c := range []struct {
			id     string
			points []vec
			length int32
			ignore []int32
			want   oracle.Polyline
		}{
			{"V4", []vec{above(0), above(1)}, 1, nil, oracle.Polyline{Segment: 0, Prim: 1}},
			{"V16", points, 2, nil, oracle.Polyline{Segment: 1, Prim: 0}},
			{"V17", points, 2, []int32{-1, -1, 0, -1}, oracle.Polyline{Segment: 1, Prim: 1}},
			{"V17 both", points, 2, []int32{-1, -1, 0, 1}, free},
			{"V17 of another segment", points, 2, []int32{0, 1, -1, -1}, oracle.Polyline{Segment: 1, Prim: 0}},
			{"V18 length 1", points, 1, nil, free},
			{"V18 length 0", points, 0, nil, free},
			{"V18 length -1", points, -1, nil, none},
			{"V18 length 9", points, 9, nil, oracle.Polyline{Segment: 1, Prim: 0}},
			{"V19", lost, 1, nil, free},
			{"NaN within reach", lost, 2, nil, none},
			{"NaN first, length 0", []vec{{nan, 0, 0}, above(1)}, 0, nil, none},
			{"V20", down, 1, nil, oracle.Polyline{Segment: 0, Prim: 1}},
			{"V20 next", down, 1, []int32{1}, oracle.Polyline{Segment: 0, Prim: 0}},
			{"length overflows", []vec{above(1), above(3e38)}, 1, nil, oracle.Polyline{Segment: 0, Prim: -1}},
		} {
			t.Run(c.id, func(t *testing.T) {
				got := r.visibleChain(polylines{segments: len(c.points) - 1, points: c.points, length: []int32{c.length}, ignore: c.ignore})
				assert.Equal(t, []oracle.Polyline{c.want}, got)
			})
		}
		two := polylines{segments: 1, points: append(down[:2:2], down...), length: []int32{1, 1}, active: []uint8{0, 2}}
		assert.Equal(t, []oracle.Polyline{none, {Segment: 0, Prim: 1}}, r.visibleChain(two))
	})
}

// V21: what sees is seen.
func TestVisibleBothWays(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 1))
	n := 3000
	if gputest.Native() {
		n = 100_000
	}
	m := unitCube()
	exact := oracle.New(m.Vertices, m.Faces)
	var there, back segments
	for range n {
		s, e := randomPoint(rng, 2), randomPoint(rng, 2)
		if exact.Segment(s, e).Ambiguous {
			continue
		}
		there.add(s, e)
		back.add(e, s)
	}
	require.Greater(t, len(there.s), n*99/100)
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(m)
		a, b := r.visible(there), r.visible(back)
		require.Equal(t, a, b)
		require.Contains(t, a, uint8(0))
		require.Contains(t, a, uint8(1))
	})
}

// randomPoint is in a cube of that size around that of the unit cube.
func randomPoint(rng *rand.Rand, size float32) vec {
	var p vec
	for k := range p {
		p[k] = .5 + size*(rng.Float32()-.5)
	}
	return p
}
