package chunked_test

import (
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

func ones(n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

func ordinals(n int) []int {
	d := make([]int, n)
	for i := range d {
		d[i] = i
	}
	return d
}

// perRay is an operation with rows of these sizes.
func perRay(in, wire, record int64) chunked.Op {
	return chunked.Op{Key: "intersect_full", Family: "intersect", In: in, Wire: wire, Record: record}
}

// intersect is Intersect with every column, neither TMax nor Active.
func intersect() chunked.Op { return perRay(24, 4, 76) }

// chains is TraceReflections with the core columns and an Active mask.
func chains(bounces int64) chunked.Op {
	return chunked.Op{Key: "trace_reflections:2", Family: "trace_reflections", In: 25, Wire: 4 * bounces, Record: 9 * bounces}
}

// direct is AccumDfrDirect onto a grid, with inputs that every remote gets.
func direct(cells, replicated int64) chunked.Op {
	return chunked.Op{Key: "accum_dfr_direct", Family: "accum_dfr_direct", Class: chunked.GridReduce, TapeBits: 1,
		Grid: chunked.Grid{Accumulator: 48*cells + 48, ReadOut: 4 * cells, Replicated: replicated}}
}

// reflections is AccumulateReflections onto a grid.
func reflections(cells int64) chunked.Op {
	return chunked.Op{Key: "accumulate_reflections", Family: "accumulate_reflections", Class: chunked.GridReduce, In: 24,
		Grid: chunked.Grid{Accumulator: 68*cells + 8, Least: 4*cells + 8, ReadOut: 28 * cells}}
}

// paths is TraceDfrPaths for so many pairs of a receiver and a state.
func paths(block int64) chunked.Op {
	return chunked.Op{Key: "trace_dfr_paths", Family: "trace_dfr_paths", Class: chunked.SourceLane, Wire: 41, Record: 53, Block: block}
}

// input is a call of n devices without floors.
func input(op chunked.Op, rows int64, n int) chunked.Input {
	return chunked.Input{Op: op, Rows: rows, Devices: ordinals(n), Transport: chunked.Copy,
		Options: chunked.Options{MinRaysPerDevice: 1, MinLanesPerDevice: 1}}
}

func plan(t *testing.T, in chunked.Input) chunked.Plan {
	t.Helper()
	p, err := chunked.BuildPlan(in)
	require.NoError(t, err)
	require.NoError(t, violation(in, p), "%+v\n%v", in, p)
	return p
}

// perDevice counts the chunks of each device.
func perDevice(p chunked.Plan) []int {
	n := make([]int, len(p.Devices))
	for _, c := range p.Chunks {
		n[c.Position]++
	}
	return n
}

// begins are the first rows of chunks.
func begins(chunks []chunked.Chunk) []int64 {
	out := make([]int64, len(chunks))
	for i, c := range chunks {
		out[i] = c.Begin
	}
	return out
}
