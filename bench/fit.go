package main

import "math"

// line is the cost of a batch by its rows: fixed + perRow*rows.
type line struct {
	fixed, perRow float64
	worst         float64 // largest relative distance of a point from the line
}

// fitLine finds the line with the least sum of squared relative distances from the times, at least two of which belong
// to different numbers of rows. Relative, because the largest batch takes a thousand times as long as the smallest and
// would decide alone.
func fitLine(rows []int, times []float64) line {
	// Normal equations of sum ((fixed + perRow*n)/t - 1)^2.
	var ff, fn, nn, f, n float64
	for i, t := range times {
		a, b := 1/t, float64(rows[i])/t
		ff, fn, nn = ff+a*a, fn+a*b, nn+b*b
		f, n = f+a, n+b
	}
	det := ff*nn - fn*fn
	l := line{fixed: (f*nn - n*fn) / det, perRow: (n*ff - f*fn) / det}
	for i, t := range times {
		l.worst = max(l.worst, math.Abs((l.fixed+l.perRow*float64(rows[i]))/t-1))
	}
	return l
}
