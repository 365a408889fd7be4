package chunked_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

// Every field that no plan can use is refused by name, in order: of two that
// cannot be used the first counts.
func TestChunkedOptionErrors(t *testing.T) {
	rising := []struct {
		option, text string
		spoil        func(*chunked.Options)
	}{
		{"Weights", "1 values for 2 devices", func(o *chunked.Options) { o.Weights = []float64{1} }},
		{`OperationWeights["intersect"]`, "weight 1 is -1", func(o *chunked.Options) {
			o.OperationWeights = map[string][]float64{"visible": {1}, "intersect": {1, -1}}
		}},
		{`OperationWeights["x"]`, "no such operation", func(o *chunked.Options) { o.OperationWeights = map[string][]float64{"x": {1, 1}} }},
		{"ChunkRays", "-1: 0 sets no limit", func(o *chunked.Options) { o.ChunkRays = -1 }},
		{"MemoryBudget", "-1: 0 sets no limit", func(o *chunked.Options) { o.MemoryBudget = -1 }},
		{"PipelineChunks", "-1: 0 is the default (4)", func(o *chunked.Options) { o.PipelineChunks = -1 }},
		{"MinRaysPerDevice", "-1: 0 is the default (1048576), 1 disables the floor", func(o *chunked.Options) { o.MinRaysPerDevice = -1 }},
		{"MinLanesPerDevice", "-1: 0 is the default of the operation, 1 disables the floor", func(o *chunked.Options) { o.MinLanesPerDevice = -1 }},
		{"PipelineChunks", "1: overlap needs at least two; use NoPipeline", func(o *chunked.Options) { o.PipelineChunks = 1 }},
		{"Transport", "transport(4): use auto, direct, copy or host", func(o *chunked.Options) { o.Transport = 4 }},
	}
	for i, c := range rising {
		var o chunked.Options
		for _, later := range rising[i:] {
			if later.option != c.option {
				later.spoil(&o)
			}
		}
		c.spoil(&o)
		err := o.Check(2)
		var e *chunked.OptionError
		require.ErrorAs(t, err, &e)
		require.Equal(t, c.option, e.Option)
		require.ErrorContains(t, err, c.text)
		in := input(intersect(), 1, 2)
		in.Options = o
		_, again := chunked.BuildPlan(in)
		require.Equal(t, err, again)
	}
	require.NoError(t, chunked.Options{}.Check(1))
	require.Equal(t, [3]int{1048576, 262144, 4}, [3]int{chunked.DefaultMinRows, chunked.DefaultMinLanes, chunked.DefaultPipelineChunks})
}

func TestChunkedInputErrors(t *testing.T) {
	for name, c := range map[string]struct {
		option string
		spoil  func(*chunked.Input)
	}{
		"no device":             {"Devices", func(in *chunked.Input) { in.Devices = nil }},
		"duplicate device":      {"Devices", func(in *chunked.Input) { in.Devices = []int{3, 3} }},
		"negative device":       {"Devices", func(in *chunked.Input) { in.Devices = []int{0, -1} }},
		"negative rows":         {"Rows", func(in *chunked.Input) { in.Rows = -1 }},
		"too many rows":         {"Rows", func(in *chunked.Input) { in.Rows = chunked.MaxRows + 1 }},
		"negative begin":        {"Begin", func(in *chunked.Input) { in.Begin = -1 }},
		"a begin out of range":  {"Begin", func(in *chunked.Input) { in.Begin = math.MaxInt64 }},
		"weights":               {"Weights", func(in *chunked.Input) { in.Weights = []float64{0, 0} }},
		"unresolved transport":  {"Transport", func(in *chunked.Input) { in.Transport = chunked.Auto }},
		"unknown transport":     {"Transport", func(in *chunked.Input) { in.Transport = 9 }},
		"unknown class":         {"Op.Class", func(in *chunked.Input) { in.Op.Class = 9 }},
		"negative bytes":        {"Op.Wire", func(in *chunked.Input) { in.Op.Wire = -1 }},
		"less than nothing":     {"Op.Grid.Least", func(in *chunked.Input) { in.Op = reflections(1); in.Op.Grid.Least = -1 }},
		"more than everything":  {"Op.Grid.Least", func(in *chunked.Input) { in.Op = reflections(1); in.Op.Grid.Least = 77 }},
		"negative grid":         {"Op.Grid.ReadOut", func(in *chunked.Input) { in.Op = direct(1, 0); in.Op.Grid.ReadOut = -1 }},
		"cuts in rows":          {"Op.Grid.Cut", func(in *chunked.Input) { in.Op = direct(1, 0); in.Op.Grid.Cut = 1 }},
		"too many cuts":         {"Op.Grid.Cuts", func(in *chunked.Input) { in.Op = direct(1, 0); in.Op.Grid.Cuts = 1<<20 + 1 }},
		"a negative copy":       {"Op.Grid.Copy", func(in *chunked.Input) { in.Op = direct(1, 0); in.Op.Grid.Copy = -1 }},
		"a grid of rows":        {"Op.Grid", func(in *chunked.Input) { in.Op.Grid.Accumulator = 1 }},
		"lanes of rows":         {"Op.MinLanes", func(in *chunked.Input) { in.Op.MinLanes = 1 }},
		"too many lanes":        {"Op.MinLanes", func(in *chunked.Input) { in.Op = direct(1, 0); in.Op.MinLanes = chunked.MaxRows + 1 }},
		"a block of rows":       {"Op.Block", func(in *chunked.Input) { in.Op.Block = 1 }},
		"no block":              {"Op.Block", func(in *chunked.Input) { in.Op.Class = chunked.SourceLane }},
		"half of a transmitter": {"Rows", func(in *chunked.Input) { in.Op, in.Rows = paths(4), 6 }},
	} {
		in := input(intersect(), 33, 2)
		c.spoil(&in)
		_, err := chunked.BuildPlan(in)
		var e *chunked.OptionError
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, c.option, e.Option, name)
	}
}

// Families and exact keys are accepted, and a number where a key has one.
func TestChunkedOperationKeys(t *testing.T) {
	for key, ok := range map[string]bool{
		"intersect": true, "intersect_reduced": true, "visible_chain": true, "trace_reflections": true, "accum_dfr_direct": true,
		"trace_reflections:1": true, "trace_reflections:64": true, "nearest_edges:1": true, "nearest_edges:16": true,
		"trace_reflections:0": false, "trace_reflections:65": false, "trace_reflections:B": false, "nearest_edges:17": false,
		"nearest_edges:k": false, "trace_reflections:": false, "trace_reflections:04": false, "trace_reflections:+4": false,
		"trace_reflections:4:4": false, "intersect:4": false, "intersect_full:": false, "": false,
	} {
		err := chunked.Options{OperationWeights: map[string][]float64{key: {1, 1}}}.Check(2)
		if ok {
			require.NoError(t, err, key)
			continue
		}
		var e *chunked.OptionError
		require.ErrorAs(t, err, &e, key)
	}
}

func TestChunkedFamilies(t *testing.T) {
	for key, family := range map[string]string{
		"intersect": "intersect", "intersect_full": "intersect", "nearest_edge_ray": "nearest_edge", "nearest_edges:3": "nearest_edges",
		"visible": "visible", "visible_chain": "visible_chain", "trace_reflections:8": "trace_reflections", "trace_reflections:65": "",
		"accum_dfr_direct": "accum_dfr_direct", "trace_reflections:B": "", "x": "",
	} {
		got, ok := chunked.Family(key)
		require.Equal(t, family, got, key)
		require.Equal(t, family != "", ok, key)
	}
	require.Contains(t, chunked.Keys(), "nearest_edges:k")
	require.Len(t, chunked.Keys(), 21)
}

// Names survive text, and others are refused.
func TestChunkedNames(t *testing.T) {
	for _, v := range []chunked.Transport{chunked.Auto, chunked.Direct, chunked.Copy, chunked.Host} {
		var back chunked.Transport
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, v, back)
	}
	for _, v := range []chunked.Class{chunked.PerRay, chunked.SourceLane, chunked.GridReduce} {
		var back chunked.Class
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, v, back)
	}
	require.ErrorContains(t, new(chunked.Transport).UnmarshalText([]byte("pigeon")), "use auto, direct, copy or host")
	require.ErrorContains(t, new(chunked.Class).UnmarshalText([]byte("x")), "per_ray")
	require.Equal(t, "transport(9) class(-1)", chunked.Transport(9).String()+" "+chunked.Class(-1).String())
}
