package scene

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRandomNumbersOfLanes(t *testing.T) {
	for x, want := range map[uint32]uint32{
		0: 0, 1: 0x688990c0, 2: 0xd1132181, 0xffffffff: 0x6768824a, 0x9e3779b9: 0x01fce552, 0x3039: 0x912efcf7,
	} {
		require.Equal(t, want, dfrHash(x), "%x", x)
	}
	for _, c := range []struct{ lane, stream, seed, key, hash, u24 uint32 }{
		{0, 0, 0, 0x01fce552, 0xae6f80f1, 11431808},
		{1, 0, 0, 0x01fce552, 0xa07c7a97, 10517626},
		{0, 1, 0, 0x04f8d29e, 0x043d4a24, 277834},
		{0, 0, 17, 0x5d20bcef, 0x1fa72099, 2074400},
		{1, 0, 17, 0x5d20bcef, 0xf4b88a44, 16038026},
		{31, 0, 17, 0x5d20bcef, 0xd40097f5, 13893783},
		{32, 0, 17, 0x5d20bcef, 0x4b268871, 4925064},
		{1000, 1, 17, 0xee1c4b8a, 0x037ee7ae, 229095},
		{67108863, 0, 17, 0x5d20bcef, 0xd87fbe64, 14188478},
		{67108863, 1, 12345, 0xe4dbc197, 0x951e295d, 9772585},
	} {
		key := dfrKey(c.stream, c.seed)
		require.Equal(t, [3]uint32{c.key, c.hash, c.u24}, [3]uint32{key, dfrHash(c.lane ^ key), dfrHash(c.lane^key) >> 8}, "%+v", c)
	}
	seen := map[uint32]bool{}
	for _, seed := range []uint32{0, 17} {
		for lane := range uint32(4096) {
			seen[dfrHash(lane^dfrKey(0, seed))] = true
		}
	}
	require.Len(t, seen, 2*4096)
}

func TestWindows(t *testing.T) {
	for _, w := range []Window{{16, 24}, {33, -1}, {-1, 8}, {32, 1}, {0, 33}} {
		_, _, err := w.resolve("op", 32)
		var arg *ArgumentError
		require.ErrorAs(t, err, &arg, "%v", w)
	}
	for w, want := range map[Window][2]int64{
		{32, -1}: {32, 0}, {0, 0}: {0, 0}, {0, -5}: {0, 32}, {7, -1}: {7, 25}, {7, 20}: {7, 20}, {32, 0}: {32, 0},
	} {
		begin, count, err := w.resolve("op", 32)
		require.NoError(t, err)
		require.Equal(t, want, [2]int64{begin, count}, "%v", w)
	}
	begin, count, err := (*Window)(nil).resolve("op", 32)
	require.NoError(t, err)
	require.Equal(t, [2]int64{0, 32}, [2]int64{begin, count})
}

func TestThreadsOfPair(t *testing.T) {
	for _, c := range []struct {
		lanes, pairs, threads int64
		want                  uint32
	}{
		{1 << 26, 32, 101376, 3168}, // the whole device
		{1 << 13, 32, 135168, 256},  // a lane each
		{1 << 26, 1 << 19, 135168, 1},
		{1000, 10, 1000, 96},
		{1000, 100, 135168, 8},
		{1, 1, 135168, 1},
		{7, 1, 135168, 4},
	} {
		require.Equal(t, c.want, threadsOfPair(c.lanes, c.pairs, c.threads), "%+v", c)
	}
}

func TestDivisionOfLanes(t *testing.T) {
	k := &accumDfrKernels{fanRounds: fanRounds, fanNodes: fanNodes, leastRounds: leastRounds, leastChunk: leastChunk, searchRounds: searchRounds}
	const threads = 101376
	for _, c := range []struct {
		lanes                     int64
		pairs                     uint32
		small, cells              bool
		group, step, chunk, nodes uint32
	}{
		{1 << 26, 32, true, true, 3168, 32 * 32, 28, 90},        // in turn, 661 rounds
		{1 << 22, 32, true, true, 3168, 32 * 32, 5, 13},         // 41
		{1 << 21, 32, true, true, 3168, 3168 * 32, 0, 10},       // 20 are too few
		{1 << 26, 1 << 19, true, true, 32, 32 << 19, 0, 8},      // a warp for a fan
		{1 << 26, 32, false, true, 32768, 32768 * 32, 0, 16},    // 64 rounds
		{1 << 23, 4096, false, true, 64, 64 * 4096, 0, 12},      // 32
		{1 << 26, 1 << 16, false, true, 32, 32 << 16, 0, 12},    // 32
		{1 << 26, 1 << 19, false, true, 1, 1 << 19, 0, 24},      // too few for a warp
		{1 << 20, 4096, false, true, 16, 16 * 4096, 0, 0},       // and for a fan
		{1 << 26, 2, false, false, 50688, 32 * 2, 28, 90},       // by azimuth
		{1 << 21, 32, false, true, 3168, 3168 * 32, 0, 0},       // no more than the device holds, of 20 rounds
		{4 * threads, 3, true, true, 33792, 3 * 33792, 0, 8},    // four rounds
		{33 * threads, 3000, true, true, 32, 32 * 3000, 0, 12},  // no counters
		{33 * threads, 1000, false, true, 96, 96 * 1000, 0, 12}, // 34 rounds
	} {
		p := accumDfrParams{Pairs: c.pairs, Visited: uint32(min(c.lanes, int64(c.pairs)))}
		if c.pairs <= chunkedPairs {
			p.Taken = 1
		}
		p.divide(k, c.lanes, threads, c.small, c.cells)
		require.Equal(t, []uint32{c.group, c.step, c.chunk, c.nodes}, []uint32{p.Group, p.Step, p.Chunk, p.FanNodes}, "%+v", c)
	}
}
