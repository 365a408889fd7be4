package main

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/raymux/raymux/bench/workload"
)

// expectation holds what is known about the closest hits of a configuration without any tracer: hit counts from the
// plane equation or from brute force in float64, single rows by brute force.
type expectation struct {
	rows              int64 // batch size for which hits holds
	hitsLow, hitsHigh int64 // inclusive bounds of the hit count; rows that pass within rounding of a border may fall either way
	meanT, maxT       float64
	prefix            int64 // hits in the first prefix rows, where known
	prefixHits        int64
	first             map[int]knownRow // by row
	stable            bool             // row i does not depend on the batch size, so first holds for every size
	plane             bool             // every hit lies in z = 0, so t = 1/d_z
}

// knownRow is the closest hit of one row; prim -1 is a miss.
type knownRow struct {
	prim int32
	t    float64
	x, y float64 // hit point, checked where plane
}

// relativeT bounds the relative error of t against float64.
const relativeT = 1e-5

var expectations = map[string]expectation{
	workload.Light: {
		rows: 1 << 22, hitsLow: 1528768 - 53, hitsHigh: 1528768 + 53, meanT: 1.262384, maxT: 2.794348, plane: true, stable: true,
		first: map[int]knownRow{
			0: {1046, 1.1427581, -0.04624, -0.94356},
			1: {54691, 1.4640393, -0.31367, 0.00390},
			2: {57179, 1.0919417, -0.25869, 0.13889},
			3: {8906, 1.0784949, 0.25892, -0.51668},
			4: {57151, 1.3803501, -0.55469, 0.14029},
			5: {1477, 1.3343768, 0.46947, -0.92635},
			6: {prim: -1},
			7: {19753, 1.2940542, -0.15413, 0.07929},
		},
	},
	workload.Compute: {
		// 0.685 to 0.705 of the rows: the Poisson estimate of the density with its model error.
		rows: 1 << 22, hitsLow: 2873098, hitsHigh: 2956984, prefix: 512, prefixHits: 349, stable: true,
		first: map[int]knownRow{
			0: {prim: 1500393, t: 0.238419402}, 1: {prim: -1}, 2: {prim: -1}, 3: {prim: 730920, t: 0.217892640},
			4: {prim: 275499, t: 0.741877536}, 5: {prim: 676375, t: 0.276767452}, 6: {prim: -1}, 7: {prim: -1},
			8: {prim: 1513682, t: 0.389790146}, 9: {prim: 1916604, t: 0.065349353}, 10: {prim: 943842, t: 0.273375464},
			11: {prim: -1},
		},
	},
	workload.Mini: {
		// Brute force in float64 over all rows; two rows pass within 1e-5 of an edge.
		rows: 1 << 12, hitsLow: 3122 - 2, hitsHigh: 3122 + 2,
		first: map[int]knownRow{
			0: {prim: 2106, t: 0.19174619019031525}, 1: {prim: 928, t: 0.45695245265960693}, 2: {prim: 562, t: 0.6009030938148499},
			3: {prim: 695, t: 0.8144959807395935}, 4: {prim: 1141, t: 0.2545028626918793}, 5: {prim: 1041, t: 0.3959421217441559},
			6: {prim: 2282, t: 0.21981343626976013}, 7: {prim: 1350, t: 0.5769351720809937},
			2048: {prim: -1}, 2049: {prim: -1}, 2050: {prim: 1370, t: 0.09661982208490372}, 2051: {prim: 2463, t: 0.1097787469625473},
			2052: {prim: -1}, 2053: {prim: 781, t: 0.5340012311935425}, 2054: {prim: -1}, 2055: {prim: -1},
		},
	},
}

// answers are the columns of a result that the expectations speak of, on the host. Chains have a value per slot.
type answers struct {
	t     []float32 // +inf on a miss
	p     []float32 // 3 per row
	prim  []int32   // global primitive id, -1 on a miss
	valid []uint8   // of chains alone: 1 where there is a bounce
}

// hits counts the rows with a finite distance.
func (a answers) hits() int64 {
	n := int64(0)
	for _, t := range a.t {
		if !math.IsInf(float64(t), 1) {
			n++
		}
	}
	return n
}

// verify compares answers with what is known and returns one line per contradiction. rays are the rows that were traced.
func (e expectation) verify(a answers, rays workload.Rays) []string {
	var bad []string
	report := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	n := int64(len(a.t))
	hits := a.hits()
	if hits == 0 {
		report("vacuous: no row of %d hits anything", n)
	}
	if n == e.rows {
		if hits < e.hitsLow || hits > e.hitsHigh {
			report("%d hits, expected %d to %d", hits, e.hitsLow, e.hitsHigh)
		}
		if e.meanT > 0 {
			mean, high := distances(a.t)
			if math.Abs(mean-e.meanT) > relativeT*e.meanT {
				report("mean t of the hits is %.7g, expected %.7g", mean, e.meanT)
			}
			if math.Abs(high-e.maxT) > relativeT*e.maxT {
				report("largest t is %.7g, expected %.7g", high, e.maxT)
			}
		}
	}
	if n == e.rows || e.stable {
		for _, row := range slices.Sorted(maps.Keys(e.first)) {
			if int64(row) >= n {
				break
			}
			if problem := e.row(a, row, e.first[row]); problem != "" {
				report("row %d: %s", row, problem)
			}
		}
	}
	if e.prefix > 0 && n >= e.prefix {
		if got := (answers{t: a.t[:e.prefix]}).hits(); got != e.prefixHits {
			report("%d hits in the first %d rows, expected %d", got, e.prefix, e.prefixHits)
		}
	}
	if e.plane {
		bad = append(bad, verifyPlane(a, rays)...)
	}
	return bad
}

func (e expectation) row(a answers, row int, want knownRow) string {
	if a.prim[row] != want.prim {
		return fmt.Sprintf("primitive %d, expected %d", a.prim[row], want.prim)
	}
	if want.prim < 0 {
		if !math.IsInf(float64(a.t[row]), 1) {
			return fmt.Sprintf("t is %g on a miss", a.t[row])
		}
		return ""
	}
	if t := float64(a.t[row]); math.Abs(t-want.t) > relativeT*want.t {
		return fmt.Sprintf("t is %.9g, expected %.9g", t, want.t)
	}
	if e.plane {
		// Five decimals are known.
		if x, y := float64(a.p[3*row]), float64(a.p[3*row+1]); math.Abs(x-want.x) > 1.5e-5 || math.Abs(y-want.y) > 1.5e-5 {
			return fmt.Sprintf("hit at (%.5f, %.5f), expected (%.5f, %.5f)", x, y, want.x, want.y)
		}
	}
	return ""
}

// distances returns the mean and the largest of the finite distances.
func distances(t []float32) (mean, high float64) {
	n := 0
	for _, v := range t {
		if x := float64(v); !math.IsInf(x, 1) {
			mean += x
			high = max(high, x)
			n++
		}
	}
	return mean / float64(max(n, 1)), high
}

// verifyPlane checks every hit of rays that start in z = -1 on geometry in z = 0: t is 1/d_z and z is 0. It returns the
// first contradiction and their number.
func verifyPlane(a answers, rays workload.Rays) []string {
	wrong, first := 0, ""
	for i, v := range a.t {
		t := float64(v)
		if math.IsInf(t, 1) {
			continue
		}
		want := 1 / float64(rays.Directions[3*i+2])
		if math.Abs(t-want) > relativeT*want || a.p[3*i+2] != 0 {
			if wrong == 0 {
				first = fmt.Sprintf("row %d: t %.9g at z %g, expected %.9g at 0", i, t, a.p[3*i+2], want)
			}
			wrong++
		}
	}
	if wrong == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d hits are not on the plane, the first: %s", wrong, first)}
}
