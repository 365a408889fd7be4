package main

import (
	"fmt"
	"math"
)

// verifyChains checks the core columns of chains of the given number of slots: the first bounce is the closest hit, bit
// by bit; what is valid has a primitive and a finite t that is not negative, what is not has neither; no bounce follows
// a slot without one. It returns one line per kind of contradiction. first are the closest hits of the same rays; where
// there are none, chains are compared with themselves alone.
func verifyChains(a, first answers, bounces int) []string {
	kinds := []struct {
		text  string
		wrong int
		row   int
	}{
		{text: "the first bounce is not the closest hit"},
		{text: "valid, primitive and t contradict each other"},
		{text: "a bounce follows an empty slot"},
	}
	found := func(kind, row int) {
		k := &kinds[kind]
		if k.wrong == 0 {
			k.row = row
		}
		k.wrong++
	}
	valid := 0
	for i, ok := range a.valid {
		row, t := i/bounces, a.t[i]
		if ok != 0 {
			valid++
		}
		has := a.prim[i] >= 0 && t >= 0 && !math.IsInf(float64(t), 1)
		none := a.prim[i] == -1 && math.IsInf(float64(t), 1)
		if ok > 1 || ok == 1 && !has || ok == 0 && !none {
			found(1, row)
		}
		switch {
		case i%bounces > 0:
			if ok != 0 && a.valid[i-1] == 0 {
				found(2, row)
			}
		case len(first.t) > 0:
			if a.prim[i] != first.prim[row] || math.Float32bits(t) != math.Float32bits(first.t[row]) {
				found(0, row)
			}
		}
	}
	var bad []string
	for _, k := range kinds {
		if k.wrong > 0 {
			bad = append(bad, fmt.Sprintf("%s in %d slots, the first in row %d", k.text, k.wrong, k.row))
		}
	}
	if valid == 0 {
		bad = append(bad, fmt.Sprintf("vacuous: no row of %d hits anything", len(a.valid)/bounces))
	}
	return bad
}

// bouncesOf counts the rows that have each bounce.
func bouncesOf(valid []uint8, bounces int) []int64 {
	n := make([]int64, bounces)
	for i, ok := range valid {
		if ok != 0 {
			n[i%bounces]++
		}
	}
	return n
}
