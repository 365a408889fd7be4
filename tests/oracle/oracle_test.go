package oracle_test

import (
	"math"
	"testing"

	"github.com/raymux/raymux/tests/oracle"
	"github.com/stretchr/testify/require"
)

var inf32 = float32(math.Inf(1))

// W of the geometry tests: a triangle whose hit is known in closed form.
func fixture() *oracle.Oracle {
	return oracle.New([]float32{1, 0, 0, 0, 2, 0, 0, 0, 3}, []int32{0, 1, 2})
}

func TestClosedForm(t *testing.T) {
	h := fixture().Intersect([3]float32{}, [3]float32{1, 1, 1}, inf32)
	require.Equal(t, 0, h.Prim)
	require.InDelta(t, 6.0/11, h.T, 1e-15)
	require.InDelta(t, 3.0/11, h.B1, 1e-15)
	require.InDelta(t, 2.0/11, h.B2, 1e-15)
	require.InDelta(t, 6.0/7, h.N[0], 1e-15)
	require.False(t, h.Ambiguous, h.Why)
}

func TestMissesAndEnds(t *testing.T) {
	nan := float32(math.NaN())
	o := oracle.New([]float32{0, 0, 0, 1, 0, 0, 0, 1, 0}, []int32{0, 1, 2})
	up := [3]float32{0, 0, 1}
	for name, c := range map[string]struct {
		o, d      [3]float32
		tmax      float32
		prim      int
		ambiguous bool
	}{
		"hit":            {[3]float32{.25, .25, -1}, up, inf32, 0, false},
		"beside":         {[3]float32{2, 2, -1}, up, inf32, -1, false},
		"short":          {[3]float32{.25, .25, -1}, up, .5, -1, false},
		"closed end":     {[3]float32{.25, .25, -1}, up, 1, 0, true},
		"NaN tmax":       {[3]float32{.25, .25, -1}, up, nan, -1, false},
		"zero direction": {[3]float32{.25, .25, -1}, [3]float32{}, inf32, -1, false},
		"NaN origin":     {[3]float32{nan, .25, -1}, up, inf32, -1, false},
		"vertex":         {[3]float32{0, 0, -1}, up, inf32, 0, true},
		"just outside":   {[3]float32{-1e-6, .25, -1}, up, inf32, -1, true},
		"on the surface": {[3]float32{.25, .25, 0}, up, inf32, -1, true},
		"grazing":        {[3]float32{-1, .25, -1e-6}, [3]float32{1, 0, 1e-6 * .8}, inf32, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := o.Intersect(c.o, c.d, c.tmax)
			require.Equal(t, c.ambiguous, h.Ambiguous, "%s %+v", h.Why, h)
			if !c.ambiguous || name == "closed end" || name == "vertex" {
				require.Equal(t, c.prim, h.Prim)
			}
		})
	}
}

// The comparison must notice every kind of wrong answer.
func TestCheckRefuses(t *testing.T) {
	h := fixture().Intersect([3]float32{}, [3]float32{1, 1, 1}, inf32)
	good := oracle.Answer{Prim: 0, T: 6.0 / 11, B1: 3.0 / 11, B2: 2.0 / 11, N: [3]float32{6.0 / 7, 3.0 / 7, 2.0 / 7}}
	require.NoError(t, h.Check(good))
	for name, spoil := range map[string]func(*oracle.Answer){
		"winner": func(a *oracle.Answer) { a.Prim = 1 },
		"miss":   func(a *oracle.Answer) { a.Prim = -1 },
		"t":      func(a *oracle.Answer) { a.T += 1e-4 },
		"NaN t":  func(a *oracle.Answer) { a.T = float32(math.NaN()) },
		"b1":     func(a *oracle.Answer) { a.B1 += 1e-3 },
		"b2":     func(a *oracle.Answer) { a.B2 -= 1e-3 },
		"normal": func(a *oracle.Answer) { a.N[1] = -a.N[1] },
	} {
		a := good
		spoil(&a)
		require.Error(t, h.Check(a), name)
	}
	miss := fixture().Intersect([3]float32{}, [3]float32{-1, -1, -1}, inf32)
	require.Error(t, miss.Check(oracle.Answer{Prim: -1, T: 1}))
	require.NoError(t, miss.Check(oracle.Answer{Prim: -1, T: inf32}))
}

// Two coincident triangles: the smaller id wins and the row is ambiguous; an
// ambiguous row still refuses a triangle out of reach.
func TestTies(t *testing.T) {
	v := []float32{0, 0, 0, 1, 0, 0, 0, 1, 0, 5, 5, 5, 6, 5, 5, 5, 6, 5}
	o := oracle.New(v, []int32{0, 1, 2, 0, 1, 2, 3, 4, 5})
	h := o.Intersect([3]float32{.25, .25, -1}, [3]float32{0, 0, 1}, inf32)
	require.Equal(t, 0, h.Prim)
	require.True(t, h.Ambiguous)
	require.NoError(t, h.Check(oracle.Answer{Prim: 1}))
	require.Error(t, h.Check(oracle.Answer{Prim: 2}))
}

func TestDegenerateTrianglesAreNeverHit(t *testing.T) {
	o := oracle.New([]float32{0, 0, 0, 1, 0, 0, 2, 0, 0}, []int32{0, 1, 2})
	h := o.Intersect([3]float32{1, 0, -1}, [3]float32{0, 0, 1}, inf32)
	require.Equal(t, -1, h.Prim)
	require.False(t, h.Ambiguous)
}
