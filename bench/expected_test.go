package main

import (
	"math"
	"testing"

	"github.com/raymux/raymux/bench/workload"
	"github.com/stretchr/testify/require"
)

var miss = float32(math.Inf(1))

// planar computes the answers of plane rays on an unbounded plane z = 0 in closed form; prim is that of the pinned grid
// for the rows that the table of expectations names.
func planar(t *testing.T, n int) (answers, workload.Rays) {
	t.Helper()
	c, err := workload.Find(workload.Light)
	require.NoError(t, err)
	rays := c.Rays(n)
	a := answers{t: make([]float32, n), p: make([]float32, 3*n), prim: make([]int32, n)}
	for i := range n {
		at := 1 / float64(rays.Directions[3*i+2])
		x := float64(rays.Origins[3*i]) + at*float64(rays.Directions[3*i])
		y := float64(rays.Origins[3*i+1]) + at*float64(rays.Directions[3*i+1])
		if math.Abs(x) > 1 || math.Abs(y) > 1 {
			a.t[i], a.prim[i] = miss, -1
			continue
		}
		a.t[i], a.p[3*i], a.p[3*i+1] = float32(at), float32(x), float32(y)
		a.prim[i] = gridFace(x, y)
	}
	return a, rays
}

// gridFace finds the face of the 191 x 191 grid by arithmetic.
func gridFace(x, y float64) int32 {
	const cells = 191
	u, v := (x+1)/2*cells, (y+1)/2*cells
	column, row := int32(u), int32(v)
	face := row*cells + column
	if (u-float64(column))+(v-float64(row)) > 1 {
		face += cells * cells
	}
	return face
}

func TestLightExpectationsHoldForTheClosedForm(t *testing.T) {
	a, rays := planar(t, 4096)
	require.Empty(t, expectations[workload.Light].verify(a, rays))
}

// The full batch: hit count, mean and largest distance.
func TestLightStatisticsHoldForTheClosedForm(t *testing.T) {
	a, rays := planar(t, 1<<22)
	require.Empty(t, expectations[workload.Light].verify(a, rays))
	require.Greater(t, a.hits(), int64(1_500_000))
}

func TestLightContradictionsAreFound(t *testing.T) {
	for _, c := range []struct {
		name, says string
		spoil      func(a answers)
	}{
		{"wrong primitive", "row 3: primitive 8907, expected 8906", func(a answers) { a.prim[3]++ }},
		{"wrong distance", "row 4: t is", func(a answers) { a.t[4] *= 1.00003 }},
		{"wrong point", "row 5: hit at", func(a answers) { a.p[3*5+1] += 3e-5 }},
		{"a miss that hits", "row 6: primitive", func(a answers) { a.prim[6], a.t[6] = 5, 1 }},
		{"a distance on a miss", "row 6: t is 1", func(a answers) { a.t[6] = 1 }},
		{"off the plane", "1 hits are not on the plane", func(a answers) { a.p[3*7+2] = 1e-6 }},
		{"nothing hit", "vacuous", func(a answers) {
			for i := range a.t {
				a.t[i] = miss
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, rays := planar(t, 64)
			require.Empty(t, expectations[workload.Light].verify(a, rays))
			c.spoil(a)
			problems := expectations[workload.Light].verify(a, rays)
			require.NotEmpty(t, problems)
			require.Contains(t, problems[0], c.says)
		})
	}
}

func TestHitCountBounds(t *testing.T) {
	e := expectation{rows: 10, hitsLow: 3, hitsHigh: 5, prefix: 4, prefixHits: 2}
	batch := func(hits ...int) answers {
		a := answers{t: make([]float32, 10)}
		for i := range a.t {
			a.t[i] = miss
		}
		for _, i := range hits {
			a.t[i] = 1
		}
		return a
	}
	for _, c := range []struct {
		hits []int
		says string
	}{
		{[]int{0, 1, 9}, ""},
		{[]int{0, 1, 7, 8, 9}, ""},
		{[]int{0, 1}, "2 hits, expected 3 to 5"},
		{[]int{0, 1, 6, 7, 8, 9}, "6 hits, expected 3 to 5"},
		{[]int{0, 8, 9}, "1 hits in the first 4 rows, expected 2"},
	} {
		problems := e.verify(batch(c.hits...), workload.Rays{})
		if c.says == "" {
			require.Empty(t, problems, "%v", c.hits)
			continue
		}
		require.Equal(t, []string{c.says}, problems, "%v", c.hits)
	}
}

// Rows of mini move when the batch size changes, so they are judged at full size only.
func TestMiniRowsAtOtherSizes(t *testing.T) {
	a := answers{t: []float32{1, 1}, p: make([]float32, 6), prim: []int32{7, 7}}
	require.Empty(t, expectations[workload.Mini].verify(a, workload.Rays{}))
}
