package chunked_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
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

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		n    int64
		w    []float64
		ends []int64
	}{
		{33, []float64{1, 1}, []int64{16, 33}},
		{33, []float64{9, 1}, []int64{29, 33}},
		{33, []float64{.9, .1}, []int64{29, 33}},
		{33, []float64{3, 2}, []int64{19, 33}},
		{33, []float64{1, 0}, []int64{33, 33}},
		{33, []float64{0, 1}, []int64{0, 33}},
		{1, []float64{1, 1}, []int64{0, 1}},
		{10, []float64{0, 1, 0, 1}, []int64{0, 5, 5, 10}},
		{7, ones(8), []int64{0, 1, 2, 3, 4, 5, 6, 7}},
		{16, []float64{1, 1}, []int64{8, 16}},
		{31, []float64{1, 1}, []int64{15, 31}},
		{100, ones(3), []int64{33, 66, 100}},
		{8192, []float64{3, 1}, []int64{6144, 8192}},
		{1000003, ones(4), []int64{250000, 500001, 750002, 1000003}},
		{4194304, []float64{1, .25}, []int64{3355443, 4194304}},
		{4194304, []float64{1.002, .998}, []int64{2101346, 4194304}},
		{1000, []float64{1e-9, 1}, []int64{0, 1000}},
		{10, []float64{1, 1e-17}, []int64{10, 10}},
		{100, []float64{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 0}, []int64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 100}},
	} {
		got := chunked.Split(0, c.n, c.w)
		ends := make([]int64, len(got))
		for i, r := range got {
			ends[i] = r.End
		}
		if len(c.w) == 11 { // running sums of 0.1 are not exact: only the ends are fixed
			require.Equal(t, int64(0), got[10].Len(), "%v", got)
			continue
		}
		require.Equal(t, c.ends, ends, "%d rows, weights %v", c.n, c.w)
	}
	require.Equal(t, []chunked.Range{{Begin: 7, End: 39}, {Begin: 39, End: 71}}, chunked.Split(7, 64, []float64{1, 1}))
}

// Every split covers the batch once, in order; a zero weight gets nothing;
// scaling by a power of two changes nothing.
func TestSplitProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		n := rng.Int64N(1 << uint(rng.IntN(40)))
		w := make([]float64, 1+rng.IntN(8))
		for i := range w {
			if rng.IntN(4) > 0 {
				w[i] = math.Exp(rng.NormFloat64() * 8)
			}
		}
		if chunked.CheckWeights("w", w, len(w)) != nil {
			continue
		}
		begin := rng.Int64N(1000)
		got := chunked.Split(begin, n, w)
		at := begin
		scaled := make([]float64, len(w))
		for p, r := range got {
			require.Equal(t, at, r.Begin)
			require.GreaterOrEqual(t, r.End, r.Begin)
			if w[p] == 0 && p < len(w)-1 {
				require.Zero(t, r.Len(), "weights %v", w)
			}
			at, scaled[p] = r.End, w[p]*1024
		}
		require.Equal(t, begin+n, at)
		require.Equal(t, got, chunked.Split(begin, n, scaled))
	}
}

func TestCheckWeights(t *testing.T) {
	for name, w := range map[string][]float64{
		"count": {1}, "negative": {1, -1}, "NaN": {1, math.NaN()}, "infinite": {1, math.Inf(1)},
		"zero": {0, 0}, "overflow": {1e308, 1e308},
	} {
		var oe *chunked.OptionError
		err := chunked.CheckWeights("Weights", w, 2)
		require.True(t, errors.As(err, &oe), name)
		require.Equal(t, "Weights", oe.Option)
	}
	require.NoError(t, chunked.CheckWeights("Weights", []float64{0, 2.5}, 2))
	require.EqualError(t, chunked.CheckWeights("Weights", []float64{1}, 2),
		"chunked: Weights: 1 values for 2 devices: give one weight per device, in device order")
}

func intersect(in, wire int64) chunked.Op {
	return chunked.Op{Key: "intersect_full", Family: "intersect", In: in, Wire: wire, Record: 76}
}

func TestFloors(t *testing.T) {
	for _, c := range []struct{ in, wire, min, want int64 }{
		{24, 4, 0, 262144},
		{29, 4, 0, 308956},
		{24, 16, 0, 374492},
		{24, 32, 0, 524288},
		{12, 4, 0, 262144},
		{12, 8, 0, 262144},
		{12, 64, 0, 711534},
		{36, 2, 0, 355767},
		{44, 1, 0, 421303},
		{112, 9, 0, 1132837},
		{1 << 20, 0, 10, 374492},
		{24, 4, 1, 1},
		{25, 4, 1, 1},
	} {
		p, err := chunked.BuildPlan(chunked.Input{Op: intersect(c.in, c.wire), Rows: 100, Devices: []int{0, 1}, Options: chunked.Options{MinRaysPerDevice: c.min}, Transport: chunked.Direct})
		require.NoError(t, err)
		require.Equal(t, c.want, p.Floor.Rows, "%+v", c)
	}
}

func TestDecide(t *testing.T) {
	w := func(v ...float64) []float64 { return v }
	for _, c := range []struct {
		name      string
		rows, min int64
		devices   []int
		weights   []float64
		transport chunked.Transport
		width     int64
		kind      chunked.Kind
		shards    []chunked.Range
	}{
		{"below the default floor", 524286, 0, []int{0, 1}, nil, chunked.Direct, 28, chunked.KindMaster, []chunked.Range{{0, 524286}, {}}},
		{"at the default floor", 524287, 0, []int{0, 1}, nil, chunked.Direct, 28, chunked.KindDirect, []chunked.Range{{0, 262143}, {262143, 524287}}},
		{"the actual shard counts", 100, 10, []int{0, 1}, w(91, 9), chunked.Direct, 28, chunked.KindMaster, []chunked.Range{{0, 100}, {}}},
		{"a skewed split that is enough", 100, 10, []int{0, 1}, w(9, 1), chunked.Direct, 28, chunked.KindDirect, []chunked.Range{{0, 90}, {90, 100}}},
		{"wide rows raise the floor", 100, 10, []int{0, 1}, nil, chunked.Direct, 1 << 20, chunked.KindMaster, []chunked.Range{{0, 100}, {}}},
		{"one undersized remote sends all to the master", 100, 10, []int{0, 1, 2}, w(5, 4, .8), chunked.Copy, 28, chunked.KindMaster, []chunked.Range{{0, 100}, {}, {}}},
		{"master-only weights", 100, 1, []int{0, 1}, w(1, 0), chunked.Direct, 28, chunked.KindMaster, []chunked.Range{{0, 100}, {}}},
		{"remote-only weights", 100, 1, []int{0, 1}, w(0, 1), chunked.Copy, 28, chunked.KindPipelined, []chunked.Range{{0, 0}, {0, 100}}},
		{"no rows", 0, 1, []int{0, 1}, nil, chunked.Direct, 28, chunked.KindMaster, []chunked.Range{{}, {}}},
		{"one device", 100, 1, []int{3}, nil, chunked.Direct, 28, chunked.KindSingle, []chunked.Range{{0, 100}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := chunked.BuildPlan(chunked.Input{Op: intersect(c.width-4, 4), Rows: c.rows, Devices: c.devices,
				Options: chunked.Options{Weights: c.weights, MinRaysPerDevice: c.min}, Transport: c.transport})
			require.NoError(t, err)
			require.Equal(t, c.kind, p.Kind, p.Reason)
			require.Equal(t, c.shards, p.Shards)
			require.NotEmpty(t, p.Reason)
		})
	}
}

func TestOperationWeights(t *testing.T) {
	o := chunked.Options{Weights: []float64{1, 1}, MinRaysPerDevice: 1, OperationWeights: map[string][]float64{"intersect_full": {3, 1}, "intersect": {1, 3}}}
	plan := func(op chunked.Op) chunked.Plan {
		p, err := chunked.BuildPlan(chunked.Input{Op: op, Rows: 100, Devices: []int{0, 1}, Options: o, Transport: chunked.Direct})
		require.NoError(t, err)
		return p
	}
	full := plan(intersect(24, 4))
	require.Equal(t, []float64{3, 1}, full.Weights)
	require.Equal(t, "intersect_full", full.WeightSource)
	reduced := plan(chunked.Op{Key: "intersect_reduced", Family: "intersect", In: 24, Wire: 4, Record: 4})
	require.Equal(t, "intersect", reduced.WeightSource)
	require.Equal(t, "base", plan(chunked.Op{Key: "other", In: 24, Wire: 4}).WeightSource)
	full.Weights[0] = 99
	require.Equal(t, 3.0, o.OperationWeights["intersect_full"][0], "a plan must not share the caller's weights")
}

func TestRefusals(t *testing.T) {
	ok := chunked.Input{Op: intersect(24, 4), Rows: 1, Devices: []int{0, 1}, Transport: chunked.Direct}
	for name, spoil := range map[string]func(*chunked.Input){
		"no device":       func(i *chunked.Input) { i.Devices = nil },
		"negative rows":   func(i *chunked.Input) { i.Rows = -1 },
		"weights":         func(i *chunked.Input) { i.Options.Weights = []float64{1} },
		"unknown key":     func(i *chunked.Input) { i.Options.OperationWeights = map[string][]float64{"x": {1, 1}} },
		"key weights":     func(i *chunked.Input) { i.Options.OperationWeights = map[string][]float64{"intersect": {1, -1}} },
		"negative floor":  func(i *chunked.Input) { i.Options.MinRaysPerDevice = -1 },
		"wrong transport": func(i *chunked.Input) { i.Options.Transport = 9 },
	} {
		in := ok
		spoil(&in)
		_, err := chunked.BuildPlan(in)
		var oe *chunked.OptionError
		require.ErrorAs(t, err, &oe, name)
	}
}

// Families and exact keys are accepted, and a number of bounces where there is one.
func TestOperationKeys(t *testing.T) {
	for key, ok := range map[string]bool{
		"intersect": true, "intersect_reduced": true, "trace_reflections": true,
		"trace_reflections:1": true, "trace_reflections:64": true,
		"trace_reflections:0": false, "trace_reflections:65": false, "trace_reflections:B": false,
		"trace_reflections:": false, "trace_reflections:04": false, "trace_reflections:4:4": false,
		"visible": true, "visible_pair": true, "visible_edge": true, "visible_chain": true, "visible_chain:8": false,
		"intersect:4": false, "intersect_full:": false, "": false,
	} {
		err := chunked.Options{OperationWeights: map[string][]float64{key: {1, 1}}}.Check(2)
		if ok {
			require.NoError(t, err, key)
			continue
		}
		var oe *chunked.OptionError
		require.ErrorAs(t, err, &oe, key)
	}
}

func TestPlanJSON(t *testing.T) {
	in := chunked.Input{Op: intersect(24, 4), Rows: 1 << 22, Devices: []int{1, 0}, Transport: chunked.Copy}
	a, err := chunked.BuildPlan(in)
	require.NoError(t, err)
	b, _ := chunked.BuildPlan(in)
	ja, err := json.Marshal(a)
	require.NoError(t, err)
	jb, _ := json.Marshal(b)
	require.Equal(t, ja, jb)
	var back chunked.Plan
	require.NoError(t, json.Unmarshal(ja, &back))
	require.Equal(t, a, back)
	var tr chunked.Transport
	require.Error(t, tr.UnmarshalText([]byte("pigeon")))
}
