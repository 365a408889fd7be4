package chunked_test

import (
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

func TestChunkedFloors(t *testing.T) {
	for _, c := range []struct {
		name      string
		op        chunked.Op
		min       int64
		transport chunked.Transport
		want      int64
	}{
		{name: "Intersect", op: intersect(), want: 262144},
		{name: "Intersect, TMax and Active", op: perRay(29, 4, 76), want: 308956},
		{name: "TraceReflections:1", op: perRay(24, 4, 9), want: 262144},
		{name: "TraceReflections:4", op: perRay(24, 16, 36), want: 374492},
		{name: "TraceReflections:8", op: perRay(24, 32, 72), want: 524288},
		{name: "NearestEdges:1", op: perRay(12, 4, 46), want: 262144},
		{name: "NearestEdges:2", op: perRay(12, 8, 92), want: 262144},
		{name: "NearestEdges:16", op: perRay(12, 64, 736), want: 711534},
		{name: "VisiblePair", op: perRay(36, 2, 2), want: 355767},
		{name: "VisibleEdge", op: perRay(44, 1, 1), want: 421303},
		{name: "VisibleChain of 8", op: perRay(112, 9, 9), want: 1132837},
		{name: "TraceDfrPaths", op: paths(4), want: 383854},
		{name: "a wide row", op: perRay(1<<20, 0, 4), min: 10, want: 374492},
		{name: "disabled", op: intersect(), min: 1, want: 1},
		{name: "disabled for wide rows", op: perRay(1<<20, 0, 4), min: 1, want: 1},
		{name: "lanes", op: direct(1000*1000, 0), want: 262144},
		{name: "rays of a grid", op: reflections(1000 * 1000), want: 2690716},
		{name: "rays of a grid over a direct link", op: reflections(1000 * 1000), transport: chunked.Direct, want: 405002}, // 4 MB
	} {
		in := input(c.op, 100*max(c.op.Block, 1), 2)
		if c.min == 0 {
			c.min = 262144
		}
		if c.transport != chunked.Auto {
			in.Transport = c.transport
		}
		in.Options.MinRaysPerDevice, in.Options.MinLanesPerDevice = c.min, c.min
		require.Equal(t, c.want, plan(t, in).Floor.Rows, c.name)
	}
}

func TestChunkedDispatch(t *testing.T) {
	direct64 := direct(100, 0)
	for _, c := range []struct {
		name    string
		op      chunked.Op
		rows    int64
		devices int
		set     func(*chunked.Input)
		kind    chunked.Kind
		shards  []chunked.Range
		reason  string
	}{
		{"below the default floor", intersect(), 2097150, 2, floor(0), "master", []chunked.Range{{0, 2097150}, {}}, "remote shard 1 has 1048575 rows < floor 1048576 (MinRaysPerDevice)"},
		{"at the default floor", intersect(), 2097151, 2, floor(0), "direct", []chunked.Range{{0, 1048575}, {1048575, 2097151}}, "remote shard 1 has 1048576 rows >= floor 1048576"},
		{"below a floor", intersect(), 524286, 2, floor(262144), "master", []chunked.Range{{0, 524286}, {}}, "remote shard 1 has 262143 rows < floor 262144 (MinRaysPerDevice)"},
		{"at a floor", intersect(), 524287, 2, floor(262144), "direct", []chunked.Range{{0, 262143}, {262143, 524287}}, "remote shard 1 has 262144 rows >= floor 262144"},
		{"the actual remote shard is too small", intersect(), 100, 2, floor(10, 91, 9), "master", []chunked.Range{{0, 100}, {}}, "remote shard 1 has 9 rows < floor 10 (MinRaysPerDevice)"},
		{"a skewed split that is enough", intersect(), 100, 2, floor(10, 9, 1), "direct", []chunked.Range{{0, 90}, {90, 100}}, "remote shard 1 has 10 rows >= floor 10"},
		{"wide rows raise the floor", perRay(1<<20, 0, 4), 100, 2, floor(10, 1, 1), "master", []chunked.Range{{0, 100}, {}}, "remote shard 1 has 50 rows < floor 374492 (MinRaysPerDevice)"},
		{"one undersized remote sends all to the master", intersect(), 100, 3, floor(10, 5, 4, .8), "master", []chunked.Range{{0, 100}, {}, {}}, "remote shard 2 has 9 rows < floor 10 (MinRaysPerDevice)"},
		{"all weight on the master", intersect(), 100, 2, floor(1, 1, 0), "master", []chunked.Range{{0, 100}, {}}, "the weights give no rows to a remote device"},
		{"no weight on the master", intersect(), 100, 2, floor(1, 0, 1), "direct", []chunked.Range{{}, {0, 100}}, "remote shard 1 has 100 rows >= floor 1"},
		{"no rows", intersect(), 0, 2, floor(1), "master", []chunked.Range{{}, {}}, "empty batch"},
		{"one device", intersect(), 100, 1, floor(0), "single", []chunked.Range{{0, 100}}, "one device"},
		{"copies", intersect(), 100, 2, using(chunked.Copy, false), "pipelined", []chunked.Range{{0, 50}, {50, 100}}, "remote shard 1 has 50 rows >= floor 1"},
		{"copies without overlap", intersect(), 100, 2, using(chunked.Host, true), "sharded", []chunked.Range{{0, 50}, {50, 100}}, "remote shard 1 has 50 rows >= floor 1"},
		{"no overlap is needed where nothing is copied", intersect(), 100, 2, using(chunked.Direct, true), "direct", []chunked.Range{{0, 50}, {50, 100}}, "remote shard 1 has 50 rows >= floor 1"},
		{"too few lanes", direct64, 64, 2, floor(128), "master", []chunked.Range{{0, 64}, {}}, "remote shard 1 has 32 lanes < floor 128 (MinLanesPerDevice)"},
		{"all lanes to the master", direct64, 64, 2, floor(1, 1, 0), "master", []chunked.Range{{0, 64}, {}}, "the weights give no lanes to a remote device"},
		{"too few rays of a grid", reflections(1), 2000, 2, floor(0), "master", []chunked.Range{{0, 2000}, {}}, "remote shard 1 has 1000 rows < floor 262145 (MinLanesPerDevice)"},
		{"enough lanes", direct64, 64, 2, floor(32), "lane-sharded", []chunked.Range{{0, 32}, {32, 64}}, "remote shard 1 has 32 lanes >= floor 32"},
		{"rays of a small grid", reflections(1), 1 << 20, 2, floor(0), "lane-sharded", []chunked.Range{{0, 1 << 19}, {1 << 19, 1 << 20}}, "remote shard 1 has 524288 rows >= floor 262145"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(c.op, c.rows, c.devices)
			in.Transport = chunked.Direct
			c.set(&in)
			p := plan(t, in)
			require.Equal(t, c.kind, p.Kind)
			require.Equal(t, c.shards, p.Shards)
			require.Equal(t, c.reason, p.Reason)
		})
	}
}

func floor(f int64, weights ...float64) func(*chunked.Input) {
	return func(in *chunked.Input) {
		in.Options.MinRaysPerDevice, in.Options.MinLanesPerDevice, in.Options.Weights = f, f, weights
	}
}

func using(transport chunked.Transport, whole bool) func(*chunked.Input) {
	return func(in *chunked.Input) { in.Transport, in.Options.NoPipeline = transport, whole }
}

// An option that limits memory, and a hook, engage remotes whatever the floor
// says; an accumulation stays on the master below its floor all the same.
func TestChunkedIgnoresTheFloor(t *testing.T) {
	for name, set := range map[string]func(*chunked.Input){
		"ChunkRays": func(in *chunked.Input) { in.Options.ChunkRays = 7 }, "MemoryBudget": func(in *chunked.Input) { in.Options.MemoryBudget = 1 << 20 },
		"Offload": func(in *chunked.Input) { in.Hook = true },
	} {
		in := input(intersect(), 33, 2)
		floor(0)(&in)
		require.Equal(t, chunked.KindMaster, plan(t, in).Kind)
		set(&in)
		p := plan(t, in)
		require.Equal(t, chunked.KindChunked, p.Kind, name)
		require.Equal(t, []chunked.Range{{Begin: 0, End: 16}, {Begin: 16, End: 33}}, p.Shards)

		if in.Op = direct(1, 0); name == "Offload" {
			continue
		}
		p = plan(t, in)
		require.Equal(t, chunked.KindLaneChunked, p.Kind, name)
		require.Equal(t, []chunked.Range{{Begin: 0, End: 33}, {}}, p.Shards)
		require.Contains(t, p.Reason, "remote shard 1 has 17 lanes < floor 262144 (MinLanesPerDevice); chunks of")
	}
}

func TestChunkedWindows(t *testing.T) {
	in := input(direct(1, 0), 64, 2)
	in.Begin = 7
	require.Equal(t, []chunked.Range{{Begin: 7, End: 39}, {Begin: 39, End: 71}}, plan(t, in).Shards)
	in.Options.Weights = []float64{1, 0}
	require.Equal(t, []chunked.Range{{Begin: 7, End: 71}, {}}, plan(t, in).Shards)
}

// Shards of a SourceLane operation are whole transmitters.
func TestChunkedTransmitters(t *testing.T) {
	in := input(paths(2*2), 5*2*2, 2)
	require.Equal(t, []chunked.Range{{Begin: 0, End: 8}, {Begin: 8, End: 20}}, plan(t, in).Shards)
	in.Op, in.Rows = paths(1), 5
	require.Equal(t, []chunked.Range{{Begin: 0, End: 2}, {Begin: 2, End: 5}}, plan(t, in).Shards)

	// One is the master's call, however large it is.
	for _, weights := range [][]float64{{1, 1}, {100, 1}, {1, 100}} {
		in = input(paths(1<<24), 1<<24, 2)
		in.Options.Weights = weights
		p := plan(t, in)
		require.Equal(t, chunked.KindMaster, p.Kind, weights)
		require.Equal(t, "one transmitter is not divided", p.Reason, weights)
	}
	in.Rows, in.Options.Weights = 2<<24, []float64{100, 1}
	require.Equal(t, "the weights give no transmitter to a remote device", plan(t, in).Reason)
	in.Options.Weights = []float64{0, 1}
	require.Equal(t, []chunked.Range{{}, {Begin: 0, End: 2 << 24}}, plan(t, in).Shards)
}

// Weights come from the call, the operation's key, its family, the base, in
// this order, and a plan has its own copy.
func TestChunkedWeightSources(t *testing.T) {
	o := chunked.Options{Weights: []float64{1, 2}, MinRaysPerDevice: 1,
		OperationWeights: map[string][]float64{"intersect_full": {3, 1}, "intersect": {1, 3}, "visible": {1, 0}}}
	for _, c := range []struct {
		key, family, source string
		weights             []float64
	}{
		{"intersect_full", "intersect", "intersect_full", []float64{3, 1}},
		{"intersect_reduced", "intersect", "intersect", []float64{1, 3}},
		{"visible", "visible", "visible", []float64{1, 0}},
		{"visible_pair", "visible_pair", "base", []float64{1, 2}},
	} {
		in := input(intersect(), 100, 2)
		in.Op.Key, in.Op.Family, in.Options = c.key, c.family, o
		p := plan(t, in)
		require.Equal(t, c.source, p.WeightSource, c.key)
		require.Equal(t, c.weights, p.Weights, c.key)
		p.Weights[0], p.Devices[0] = 99, 99
		require.Equal(t, c.weights, plan(t, in).Weights, "a plan shares nothing with its input")
		require.Equal(t, 0, in.Devices[0])

		in.Weights = []float64{1, 4}
		p = plan(t, in)
		require.Equal(t, "given", p.WeightSource)
		require.Equal(t, int64(20), p.Shards[0].Len())
		in.WeightSource = "calibration"
		require.Equal(t, "calibration", plan(t, in).WeightSource)
	}
	p := plan(t, input(intersect(), 100, 2))
	require.Equal(t, []float64{1, 1}, p.Weights)
	require.Equal(t, "base", p.WeightSource)
}
