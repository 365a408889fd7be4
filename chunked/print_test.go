package chunked_test

import (
	"encoding/json"
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

func TestChunkedString(t *testing.T) {
	for _, c := range []struct {
		name string
		in   func() chunked.Input
		want string
	}{
		{"direct", func() chunked.Input {
			return chunked.Input{Op: intersect(), Rows: 4194304, Devices: ordinals(2), Transport: chunked.Direct, Options: chunked.Options{MinRaysPerDevice: 262144}}
		}, `intersect_full  rows=4194304  kind=direct  transport=direct  weights=[1 1] (base)
  floor 262144 rows (width 28 B): remote shard 1 has 2097152, ok
  dev0  [0,2097152)        1 launch, in place
  dev1  [2097152,4194304)  1 launch, 24 B in, 4 B out per row; record 76 B
`},
		{"below the floor", func() chunked.Input {
			return chunked.Input{Op: intersect(), Rows: 1000, Devices: []int{3, 1}, Transport: chunked.Direct, Options: chunked.Options{Weights: []float64{3, 1}}}
		}, `intersect_full  rows=1000  kind=master  transport=direct  weights=[3 1] (base)
  remote shard 1 has 250 rows < floor 1048576 (MinRaysPerDevice)
  dev3  [0,1000)  1 launch, in place
  dev1  no rows
`},
		{"pipelined", func() chunked.Input { return input(intersect(), 33, 2) },
			`intersect_full  rows=33  kind=pipelined  transport=copy  weights=[1 1] (base)
  floor 1 rows (width 28 B): remote shard 1 has 17, ok
  dev0  [0,16)   1 launch, in place
  dev1  [16,33)  4 launches of 5 rows (last 2), 24 B in, 4 B out per row; record 76 B
`},
		{"streamed within a budget", func() chunked.Input { return budgeted(intersect(), 4194304, 2, 64<<20, true) },
			`intersect_full  rows=4194304  kind=chunked  transport=copy  weights=[1 1] (base)
  chunks of 294337 rows: the largest within 67108864 B
  dev0  [0,2097152)        8 launches of 294337 rows (last 36793), into 3 slots; record 76 B; peak 67108836 of 67108864 B
  dev1  [2097152,4194304)  8 launches of 294337 rows (last 36793), 24 B in, 4 B out per row; record 76 B; peak 24724308 of 67108864 B
`},
		{"hook alone", func() chunked.Input { in := input(intersect(), 33, 1); in.Hook = true; return in },
			`intersect_full  rows=33  kind=chunked  transport=copy  weights=[1] (base)
  results are streamed, each shard in one chunk
  dev0  [0,33)  1 launch, into 3 slots; record 76 B
`},
		{"lanes", func() chunked.Input { return input(direct(100, 209), 1024, 2) },
			`accum_dfr_direct  lanes=1024  kind=lane-sharded  transport=copy  weights=[1 1] (base)
  floor 1 lanes: remote shard 1 has 512, ok
  dev0  [0,512)     1 launch, sums of 4848 B
  dev1  [512,1024)  1 launch, sums of 4848 B out
`},
		{"private copies", func() chunked.Input {
			in := input(reflections(100), 1024, 2)
			in.Op.Grid.Copies = 9
			return in
		},
			`accumulate_reflections  rows=1024  kind=lane-sharded  transport=copy  weights=[1 1] (base)
  floor 1 rows (width 24 B): remote shard 1 has 512, ok
  dev0  [0,512)     1 launch, sums of 6808 B of 9 copies
  dev1  [512,1024)  1 launch, 24 B in per row, sums of 6808 B out of 9 copies
`},
		{"more than a launch", func() chunked.Input { return input(intersect(), 1<<30+1, 1) },
			`intersect_full  rows=1073741825  kind=chunked  transport=copy  weights=[1] (base)
  one device; one launch covers at most 1073741824 rows
  dev0  [0,1073741825)  2 launches of 1073741824 rows (last 1), in place
`},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, plan(t, c.in()).String()) })
	}
}

// The names of the fields are what others read.
func TestChunkedPlanJSON(t *testing.T) {
	in := budgeted(chains(2), 5, 2, 99*2, true)
	in.Begin = 3
	text, err := json.Marshal(plan(t, in))
	require.NoError(t, err)
	require.JSONEq(t, `{
		"op": {"key": "trace_reflections:2", "family": "trace_reflections", "class": "per_ray", "in": 25, "wire": 8, "record": 18},
		"begin": 3, "rows": 5, "devices": [0, 1], "kind": "chunked", "reason": "chunks of 2 rows: the largest within 198 B",
		"transport": "copy", "weights": [1, 1], "weight_source": "base",
		"shards": [{"begin": 3, "end": 5}, {"begin": 5, "end": 8}],
		"chunks": [
			{"seq": 0, "position": 1, "begin": 5, "end": 7, "slot": 0, "retire": 1, "record": 1},
			{"seq": 0, "position": 0, "begin": 3, "end": 5, "slot": 0, "retire": 0},
			{"seq": 1, "position": 1, "begin": 7, "end": 8, "slot": 1, "retire": 2, "record": 2}
		],
		"chunk_rows": [2, 2], "source": "budget", "record_slots": 3, "budget": 198,
		"per_device": [
			{"fixed": 0, "row_bits": 144, "resident": 3, "bound": 3, "peak": 108},
			{"fixed": 0, "row_bits": 264, "resident": 3, "bound": 2, "peak": 132}
		],
		"floor": {"rows": 1, "width": 33, "position": 1, "shard": 3}
	}`, string(text))
	require.NoError(t, sameJSON(in, plan(t, in)))
}
