package chunked_test

import (
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

func TestChunkedPipelines(t *testing.T) {
	for _, c := range []struct {
		rows       int64
		weights    []float64
		pieces     int
		size, last int64
		counts     []int
	}{
		{33, ones(2), 4, 5, 2, []int{1, 4}},
		{1 << 20, ones(2), 4, 131072, 131072, []int{1, 4}},
		{4194304, []float64{1.002, .998}, 4, 523240, 523238, []int{1, 4}},
		{4194304, []float64{1, .25}, 4, 209716, 209713, []int{1, 4}},
		{4194304, ones(4), 4, 262144, 262144, []int{1, 4, 4, 4}},
		{4194304, ones(8), 4, 131072, 131072, []int{1, 4, 4, 4, 4, 4, 4, 4}},
		{4194304, []float64{0, 1}, 4, 1048576, 1048576, []int{0, 4}},
		{33, []float64{9, 1}, 4, 1, 1, []int{1, 4}},
		{33, ones(2), 2, 9, 8, []int{1, 2}},
		{33, ones(2), 32, 1, 1, []int{1, 17}},
	} {
		in := input(intersect(), c.rows, len(c.weights))
		in.Options.Weights, in.Options.PipelineChunks = c.weights, c.pieces
		p := plan(t, in)
		require.Equal(t, chunked.KindPipelined, p.Kind)
		require.Equal(t, chunked.SourcePipeline, p.Source)
		require.Equal(t, c.counts, perDevice(p), "%+v", c)
		require.Equal(t, c.size, p.ChunkRows[1])
		require.Equal(t, p.Shards[0].Len(), p.ChunkRows[0], "the master's shard is one launch")
		remote := p.Chunks[len(p.Chunks)-1]
		if len(p.Chunks) == 2 {
			remote = p.Chunks[0]
		}
		require.Equal(t, c.last, remote.Len())
		if c.pieces == 4 {
			in.Options.PipelineChunks = 0
			require.Equal(t, p, plan(t, in), "4 is the default")
		}
	}
}

func TestChunkedSubmission(t *testing.T) {
	p := plan(t, input(intersect(), 33, 2))
	require.Equal(t, []chunked.Chunk{
		{Seq: 0, Position: 1, Begin: 16, End: 21, Slot: 0, Retire: 1},
		{Seq: 0, Position: 0, Begin: 0, End: 16, Slot: 0, Retire: 0},
		{Seq: 1, Position: 1, Begin: 21, End: 26, Slot: 1, Retire: 2},
		{Seq: 2, Position: 1, Begin: 26, End: 31, Slot: 2, Retire: 3},
		{Seq: 3, Position: 1, Begin: 31, End: 33, Slot: 0, Retire: 4},
	}, p.Chunks)

	in := input(intersect(), 33, 2)
	in.Transport = chunked.Direct
	p = plan(t, in)
	require.Equal(t, chunked.SourceShard, p.Source)
	require.Equal(t, []int64{16, 0}, begins(p.Chunks), "two launches, the remote's first")
}

// Sizes on request: the plan's size is that or the whole batch, and every
// shard is cut by it.
func TestChunkedRequestedSizes(t *testing.T) {
	for _, c := range []struct {
		size   int64
		counts [3][]int // by the number of devices
	}{
		{1, [3][]int{1: {33}, 2: {16, 17}}},
		{7, [3][]int{1: {5}, 2: {3, 3}}},
		{11, [3][]int{1: {3}, 2: {2, 2}}},
		{64, [3][]int{1: {1}, 2: {1, 1}}},
	} {
		for n := 1; n <= 2; n++ {
			for _, transport := range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
				in := input(intersect(), 33, n)
				in.Options.ChunkRays, in.Transport = c.size, transport
				p := plan(t, in)
				require.Equal(t, chunked.KindChunked, p.Kind)
				require.Equal(t, chunked.SourceRequested, p.Source)
				require.Equal(t, min(c.size, 33), p.ChunkRows[0])
				require.Equal(t, c.counts[n], perDevice(p), "%d rows, %d devices", c.size, n)
			}
		}
	}
	in := input(direct(100, 0), 1024, 1)
	in.Options.ChunkRays = 100
	p := plan(t, in)
	require.Equal(t, []int{11}, perDevice(p))
	require.Equal(t, int64(24), p.Chunks[10].Len())
	require.Equal(t, chunked.SourceRequested, p.Source)
}

// The order in which a hook gets the chunks.
func TestChunkedStreams(t *testing.T) {
	for _, c := range []struct {
		devices int
		size    int64
		begins  []int64
	}{
		{1, 7, []int64{0, 7, 14, 21, 28}},
		{2, 7, []int64{0, 16, 7, 23, 14, 30}},
		{3, 5, []int64{0, 11, 22, 5, 16, 27, 10, 21, 32}},
		{1, 0, []int64{0}},
		{3, 0, []int64{0, 11, 22}}, // each shard is one chunk
	} {
		in := input(intersect(), 33, c.devices)
		in.Options.ChunkRays, in.Hook = c.size, true
		p := plan(t, in)
		require.Equal(t, c.begins, begins(p.Retirement()))
		require.Equal(t, max(3, c.devices+1), p.RecordSlots)
	}
	in := input(intersect(), 33, 2)
	in.Options.ChunkRays, in.Hook = 7, true
	delivered := plan(t, in).Retirement()
	require.Equal(t, []chunked.Range{{Begin: 0, End: 7}, {Begin: 16, End: 23}}, []chunked.Range{delivered[0].Range(), delivered[1].Range()})
	require.Equal(t, int64(7), delivered[2].Begin, "where a hook that fails in its third call has failed")
}

// An empty batch has no chunk, whatever the options are.
func TestChunkedEmptyBatch(t *testing.T) {
	for _, op := range []chunked.Op{intersect(), paths(4), direct(10, 0)} {
		for _, hook := range []bool{false, true} {
			for n := 1; n <= 3; n++ {
				if hook && op.Class == chunked.GridReduce {
					continue
				}
				in := input(op, 0, n)
				in.Hook, in.Options.ChunkRays, in.Options.MemoryBudget = hook, 7, 1<<20
				p := plan(t, in)
				require.Empty(t, p.Chunks)
				require.True(t, p.Kind.Chunked())
				in.Options.ChunkRays, in.Options.MemoryBudget = 0, 0
				p = plan(t, in)
				require.Empty(t, p.Chunks)
				require.Equal(t, !hook, p.Kind.Whole())
			}
		}
	}
}

// One launch has at most 2^30 rows. A single-device call that needs more is
// chunked; other kinds have more chunks.
func TestChunkedLargestLaunch(t *testing.T) {
	const limit = chunked.MaxLaunchRows
	for _, c := range []struct {
		op      chunked.Op
		rows    int64
		devices int
		kind    chunked.Kind
		source  chunked.Source
		counts  []int
	}{
		{intersect(), limit, 1, chunked.KindSingle, chunked.SourceShard, []int{1}},
		{intersect(), limit + 1, 1, chunked.KindChunked, chunked.SourceLaunch, []int{2}},
		{direct(1, 0), limit + 1, 1, chunked.KindLaneChunked, chunked.SourceLaunch, []int{2}},
		{direct(1, 0), 2*limit + 2, 2, chunked.KindLaneSharded, chunked.SourceLaunch, []int{2, 2}},
		{intersect(), 2 * limit, 2, chunked.KindPipelined, chunked.SourcePipeline, []int{1, 4}},
		{intersect(), 10 * limit, 2, chunked.KindPipelined, chunked.SourceLaunch, []int{5, 5}},
	} {
		p := plan(t, input(c.op, c.rows, c.devices))
		require.Equal(t, c.kind, p.Kind)
		require.Equal(t, c.source, p.Source)
		require.Equal(t, c.counts, perDevice(p))
	}
}
