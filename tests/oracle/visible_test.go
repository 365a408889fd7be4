package oracle_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/raymux/raymux/tests/oracle"
	"github.com/stretchr/testify/require"
)

var nan32 = float32(math.NaN())

// Closed forms of the segment rule, in float64 and in single precision.
func TestSegmentClosedForms(t *testing.T) {
	at := func(z float32) [3]float32 { return [3]float32{.25, .25, z} }
	far := func(p [3]float32) [3]float32 { return [3]float32{p[0] + 1000, p[1] + 1000, p[2] + 1000} }
	for name, c := range map[string]struct {
		on      shape
		s, e    [3]float32
		ignore  []int32
		visible bool
		blocker int
	}{
		"V1":         {meshT, at(-1), at(1), nil, false, 0},
		"V2":         {meshT, at(-1), at(-.5), nil, true, -1},
		"V3":         {meshT, at(-1), at(0), nil, true, -1},
		"V3 back":    {meshT, at(0), at(-1), nil, true, -1},
		"V4":         {meshS, at(0), at(1), nil, false, 1},
		"V5":         {meshT, at(.5), at(.5), nil, true, -1},
		"V5 NaN":     {meshT, at(.5), [3]float32{nan32, 0, 0}, nil, false, -1},
		"V5 inf":     {meshT, [3]float32{0, inf32, 0}, at(1), nil, false, -1},
		"V6":         {meshT, at(-1), at(1), []int32{0}, true, -1},
		"V6 nine":    {meshT, at(-1), at(1), []int32{-1, -1, -1, -1, -1, -1, -1, -1, 0}, true, -1},
		"V6 other":   {meshT, at(-1), at(1), []int32{5}, false, 0},
		"V7":         {meshT, at(-1.5e-5), at(1), nil, true, -1},
		"V7 back":    {meshT, at(1), at(-1.5e-5), nil, true, -1},
		"V8":         {meshT, at(-1e-4), at(1e-4), nil, false, 0},
		"V9":         {meshT, at(-1.5e-5), at(1.5e-5), nil, true, -1},
		"V10":        {meshT.moved(far), far(at(0)), far(at(1)), nil, true, -1},
		"V10 back":   {meshT.moved(far), far(at(1)), far(at(0)), nil, true, -1},
		"V11 a":      {meshT, at(-1), at(1), nil, false, 0},
		"V11 b":      {meshT, at(-1), [3]float32{2, 2, 1}, nil, true, -1},
		"closest":    {meshS, at(1), at(-1), nil, false, 1},
		"next":       {meshS, at(1), at(-1), []int32{1}, false, 0},
		"overflow":   {meshT, at(-1), at(3e38), nil, false, -1},
		"degenerate": {shape{[]float32{0, 0, 0, 1, 0, 0, 2, 0, 0}, []int32{0, 1, 2}}, [3]float32{1, 0, -1}, [3]float32{1, 0, 1}, nil, true, -1},
	} {
		t.Run(name, func(t *testing.T) {
			o, canonical := c.on.oracles()
			s := o.Segment(c.s, c.e, c.ignore...)
			require.Equal(t, c.visible, s.Visible)
			require.Equal(t, c.blocker, s.Blocker.Prim)
			require.Equal(t, c.visible, canonical.Visible(c.s, c.e, c.ignore...))
			require.Equal(t, c.blocker, canonical.Blocker(c.s, c.e, c.ignore...))
		})
	}
}

// What makes a segment ambiguous, and what does not.
func TestSegmentAmbiguity(t *testing.T) {
	o, _ := meshS.oracles()
	for name, c := range map[string]struct {
		s, e      [3]float32
		ambiguous bool
		blocker   bool
	}{
		"through":                {[3]float32{.25, .25, -1}, [3]float32{.25, .25, .25}, false, false},
		"beside":                 {[3]float32{2, 2, -1}, [3]float32{2, 2, 1}, false, false},
		"through an edge":        {[3]float32{0, .5, -1}, [3]float32{0, .5, .25}, true, true},
		"just beside an edge":    {[3]float32{-1e-6, .5, -1}, [3]float32{-1e-6, .5, .25}, true, true},
		"ends near the margin":   {[3]float32{.25, .25, -1}, [3]float32{.25, .25, 2.1e-5}, true, true},
		"edge in front":          {[3]float32{-.1, .5, -1}, [3]float32{.1, .5, 1}, false, true},
		"edge behind":            {[3]float32{.25, -.75, -1}, [3]float32{.25, 1.25, 1}, false, false},
		"as long as the margins": {[3]float32{2, 2, 0}, [3]float32{2, 2, 4e-5}, true, false},
	} {
		s := o.Segment(c.s, c.e)
		require.Equal(t, c.ambiguous, s.Ambiguous, "%s: %s", name, s.Why)
		require.Equal(t, c.blocker, s.Blocker.Ambiguous, "%s: %s", name, s.Blocker.Why)
	}
}

func TestEdgeClosedForms(t *testing.T) {
	o, canonical := meshT.oracles()
	row := oracle.EdgeRow{Source: [3]float32{.25, .25, -1}, Position: [3]float32{-2, .25, 1}, Direction: [3]float32{1, 0, 0}, TMax: 4}
	for name, c := range map[string]struct {
		change    func(r *oracle.EdgeRow)
		fractions []float32
		want      bool
	}{
		"V12": {func(*oracle.EdgeRow) {}, []float32{0, .5, 1}, true},
		"V13": {func(r *oracle.EdgeRow) {
			r.Position, r.Direction, r.TMax = [3]float32{.25, .25, 1}, [3]float32{}, 0
		}, []float32{0}, false},
		"V14":        {func(r *oracle.EdgeRow) { r.TMin, r.TMax = 4, 0 }, []float32{0, .5, 1}, true},
		"one sample": {func(r *oracle.EdgeRow) { r.TMax = 4.5 }, []float32{.5}, false},
		"NaN source": {func(r *oracle.EdgeRow) { r.Source[1] = nan32 }, []float32{0, .5, 1}, false},
		"NaN t_min":  {func(r *oracle.EdgeRow) { r.TMin = nan32 }, []float32{0, .5, 1}, false},
		"NaN t_max":  {func(r *oracle.EdgeRow) { r.TMax = nan32 }, []float32{0, .5, 1}, false},
		"inf t_max":  {func(r *oracle.EdgeRow) { r.TMax = inf32 }, []float32{0, .5, 1}, false},
	} {
		r := row
		c.change(&r)
		require.Equal(t, c.want, canonical.VisibleEdge(r, c.fractions), name)
		visible, ambiguous := o.Edge(r, c.fractions)
		require.Equal(t, c.want, visible, name)
		require.False(t, ambiguous, name)
	}
}

func TestPolylineClosedForms(t *testing.T) {
	o, canonical := meshS.oracles()
	at := func(z float32) [3]float32 { return [3]float32{.25, .25, z} }
	points := [][3]float32{at(-1), at(-.5), at(1)}
	free := oracle.Polyline{AllVisible: true, Segment: -1, Prim: -1}
	none := oracle.Polyline{Segment: -1, Prim: -1}
	for name, c := range map[string]struct {
		points [][3]float32
		length int
		ignore [][]int32
		want   oracle.Polyline
	}{
		"V16":          {points, 2, nil, oracle.Polyline{Segment: 1, Prim: 0}},
		"V17":          {points, 2, [][]int32{nil, {0}}, oracle.Polyline{Segment: 1, Prim: 1}},
		"V17 both":     {points, 2, [][]int32{nil, {0, 1}}, free},
		"V18 1":        {points, 1, nil, free},
		"V18 0":        {points, 0, nil, free},
		"V18 -1":       {points, -1, nil, none},
		"V18 9":        {points, 9, nil, oracle.Polyline{Segment: 1, Prim: 0}},
		"V19":          {[][3]float32{at(-1), at(-.5), {nan32, 0, 0}}, 1, nil, free},
		"NaN in reach": {[][3]float32{at(-1), at(-.5), {nan32, 0, 0}}, 2, nil, none},
		"V20":          {[][3]float32{at(1), at(-1)}, 1, nil, oracle.Polyline{Segment: 0, Prim: 1}},
	} {
		require.Equal(t, c.want, canonical.VisibleChain(c.points, c.length, c.ignore), name)
		got, ambiguous, blocker := o.Chain(c.points, c.length, c.ignore)
		require.Equal(t, c.want, got, name)
		require.False(t, ambiguous || blocker, name)
	}
}

// Random segments: both oracles agree and do not care about the direction where the
// answer is certain, and nearly all are.
func TestSegmentAgreement(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	o, canonical := soup(rng, 300, .5).oracles()
	const rows = 5000
	certain, blocked := 0, 0
	for range rows {
		a, b := point(rng), point(rng)
		ignore := []int32{-1, int32(rng.IntN(300)), int32(rng.IntN(300))}
		s := o.Segment(a, b, ignore...)
		if s.Ambiguous {
			continue
		}
		certain++
		require.Equal(t, s.Visible, canonical.Visible(a, b, ignore...))
		require.Equal(t, s.Visible, canonical.Visible(b, a, ignore...))
		if !s.Visible {
			blocked++
			if !s.Blocker.Ambiguous {
				require.Equal(t, s.Blocker.Prim, canonical.Blocker(a, b, ignore...))
			}
		}
	}
	require.Greater(t, certain, rows*99/100)
	require.Greater(t, blocked, rows/4)
}
