package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two slots a row: two bounces, one, none.
func someChains() (a, first answers) {
	first = answers{t: []float32{1, 2, miss}, prim: []int32{5, 6, -1}}
	a = answers{
		valid: []uint8{1, 1, 1, 0, 0, 0},
		t:     []float32{1, 0, 2, miss, miss, miss},
		prim:  []int32{5, 7, 6, -1, -1, -1},
	}
	return a, first
}

func TestVerifyChains(t *testing.T) {
	a, first := someChains()
	require.Empty(t, verifyChains(a, first, 2))
	require.Equal(t, []int64{2, 1}, bouncesOf(a.valid, 2))

	const (
		closest    = "the first bounce is not the closest hit in 1 slots, the first in row "
		contradict = "valid, primitive and t contradict each other in 1 slots, the first in row "
		gap        = "a bounce follows an empty slot in 1 slots, the first in row "
	)
	for name, c := range map[string]struct {
		spoil func(a *answers)
		want  []string
	}{
		"another first t":        {func(a *answers) { a.t[2] = math.Nextafter32(2, 3) }, []string{closest + "1"}},
		"another first triangle": {func(a *answers) { a.prim[0] = 4 }, []string{closest + "0"}},
		"valid without triangle": {func(a *answers) { a.valid[3] = 1 }, []string{contradict + "1"}},
		"triangle without valid": {func(a *answers) { a.valid[1] = 0 }, []string{contradict + "0"}},
		"negative t":             {func(a *answers) { a.t[1] = -1e-6 }, []string{contradict + "0"}},
		"NaN t":                  {func(a *answers) { a.t[1] = float32(math.NaN()) }, []string{contradict + "0"}},
		"t of a miss":            {func(a *answers) { a.t[5] = 0 }, []string{contradict + "2"}},
		"neither 0 nor 1":        {func(a *answers) { a.valid[1] = 2 }, []string{contradict + "0"}},
		"gap":                    {func(a *answers) { a.valid[5], a.t[5], a.prim[5] = 1, 3, 1 }, []string{gap + "2"}},
	} {
		a, first := someChains()
		c.spoil(&a)
		require.Equal(t, c.want, verifyChains(a, first, 2), name)
	}
	none := answers{valid: []uint8{0}, t: []float32{miss}, prim: []int32{-1}}
	require.Equal(t, []string{"vacuous: no row of 1 hits anything"}, verifyChains(none, answers{}, 1))
}
