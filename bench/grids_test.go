package main

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/scene"
)

// Every operation on grids and paths, on one device and divided among two: the counts are those that geometry gives,
// and all results are equal.
func TestGridStudy(t *testing.T) {
	out, _, r := benchmark(t, exitDone, "--devices", "emu:2", "--accum-only", "--accum-samples", "200", "--study", studyGrids)
	require.Contains(t, out, "all checks passed")
	grids := r.Studies[len(r.Studies)-1]
	require.Equal(t, studyGrids, grids.ID)
	require.Contains(t, grids.Description, "on one device and divided equally among 2, the fastest")
	rows := map[string]int{}
	for i := range grids.Rows {
		cells := byColumn(t, grids, i)
		rows[cells["operation"].(string)]++
		require.Positive(t, cells["counted"])
		require.Positive(t, cells["one_device"])
		require.Positive(t, cells["speedup"])
		require.Equal(t, 0.0, cells["differing_values"])
		require.Nil(t, cells["bytes_floor"], "an emulated device has no floor")
		require.InEpsilon(t, 1e6*cells["one_device"].(float64)/cells["lanes"].(float64), cells["per_lane"], 1e-9)
		if strings.HasSuffix(cells["config"].(string), "events") {
			require.Positive(t, cells["events"])
		}
	}
	require.Equal(t, map[string]int{
		record.OperationAccumDirect: 4, operationCoherent: 4, operationDfrPaths: 4, operationTubes: 5, record.OperationReflections: 3,
		operationEquivalents: 1, operationEquivalentFields: 1,
	}, rows)
}

// One device has no divided times.
func TestGridStudyOfOneDevice(t *testing.T) {
	_, _, r := benchmark(t, exitDone, "--devices", "emu:1", "--accum-only", "--accum-samples", "64", "--study", studyGrids)
	grids := r.Studies[len(r.Studies)-1]
	require.NotContains(t, grids.Description, "divided")
	for i := range grids.Rows {
		require.Nil(t, byColumn(t, grids, i)["divided"])
		require.Nil(t, byColumn(t, grids, i)["differing_values"])
	}
}

// runOn is a run on emulated devices.
func runOn(t *testing.T, devices int, o ...emu.Option) *run {
	t.Helper()
	emulator, err := emu.New(devices, o...)
	require.NoError(t, err)
	driver, err := cuda.OpenAPI(emulator)
	require.NoError(t, err)
	h := &host{driver: driver, allocs: new(atomic.Uint64)}
	for i := range devices {
		h.devices = append(h.devices, i)
	}
	require.NoError(t, h.retain())
	t.Cleanup(func() { require.NoError(t, h.close()) })
	return &run{options: options{transport: chunked.Copy, repeat: 1}, host: h, warnings: new(bytes.Buffer)}
}

var allGridCases = []func(*run, gridExtent) (*field, []gridCase, error){fixtureCases, boxCases, townCases, cityCases}

// What a link corrupts on its way to the master is found in every operation.
func TestGridStudyFindsCorruptLinks(t *testing.T) {
	var armed atomic.Bool
	r := runOn(t, 2, emu.WithPeerCorruption(func(_, _ int, data []byte) {
		for i := 0; armed.Load() && i < len(data); i += 4 {
			data[i] ^= 1
		}
	}))
	e := gridExtentOn(true)
	e.rays = 64
	for _, open := range allGridCases {
		f, cases, err := open(r, e)
		require.NoError(t, err)
		for _, c := range cases {
			armed.Store(true)
			_, differ, err := f.check(c)
			armed.Store(false)
			require.NoError(t, err, c.where())
			require.Positive(t, differ, c.where())
			require.Len(t, r.failures, 1, "%s: %v", c.where(), r.failures)
			require.Regexp(t, "^"+c.where()+`: \d+ of \d+ values of 2 devices differ from those of one$`, r.failures[0])
			r.failures = nil
		}
		require.NoError(t, f.close())
	}
}

// A call that leaves its result as it was is found: the memory is full of other values.
func TestGridStudyPoisonsResults(t *testing.T) {
	r := runOn(t, 1)
	e := gridExtentOn(true)
	e.rays = 64
	for _, open := range allGridCases {
		f, cases, err := open(r, e)
		require.NoError(t, err)
		for _, c := range cases {
			idle := c
			var first gridOutcome
			idle.call = func(s *stage, opts ...scene.CallOption) (gridOutcome, error) {
				if len(opts) > 0 {
					return first, nil
				}
				var err error
				first, err = c.call(s)
				return first, err
			}
			_, _, err := f.check(idle)
			require.True(t, err != nil || len(r.failures) > 0, c.where())
			r.failures = nil
		}
		require.NoError(t, f.close())
	}
}

// A call that fails leaves nothing behind.
func TestGridStudyFailingCall(t *testing.T) {
	r := runOn(t, 1)
	f, cases, err := fixtureCases(r, gridExtentOn(true))
	require.NoError(t, err)
	inUse := r.host.contexts[0].Pool().Stats().BytesInUse
	broken := errors.New("broken")
	c := cases[0]
	call := c.call
	c.call = func(s *stage, opts ...scene.CallOption) (gridOutcome, error) {
		if len(opts) > 0 {
			return gridOutcome{}, broken
		}
		return call(s)
	}
	_, _, err = f.check(c)
	require.ErrorIs(t, err, broken)
	require.Equal(t, inUse, r.host.contexts[0].Pool().Stats().BytesInUse)
	require.NoError(t, f.close())
}

// Counts that are off by more than rounding are refused.
func TestGridExpectations(t *testing.T) {
	const n = 1 << 20
	half := int64(kellerShare() / 2 * n)
	e := equivalentRows{source: make([]float32, 3*1000), known: 500}
	legs := legCounts{legs: 2000, reflections: 700, crossings: 900}
	for _, c := range []struct {
		name   string
		expect func(tally) string
		t      tally
		right  bool
	}{
		{"all", expectAll(n), tally{counted: n}, true},
		{"one is missing", expectAll(n), tally{counted: n - 1}, false},
		{"Keller", expectKeller(n), tally{counted: half + 100, hidden: half - 100}, true},
		{"Keller, all in sight", expectKeller(n), tally{counted: 2 * half}, false},
		{"Keller, none hidden", expectKeller(n), tally{counted: half}, false},
		{"sum", expectSum(n), tally{counted: 5, hidden: n - 5}, true},
		{"a sample rejected", expectSum(n), tally{counted: 5, hidden: n - 6, rejected: 1}, false},
		{"paths", expectPaths(n, 1000), tally{counted: 600, hidden: 401, rejected: n - 1001}, true},
		{"paths too many", expectPaths(n, 1000), tally{counted: 600, hidden: 420, rejected: n - 1020}, false},
		{"lanes missing", expectPaths(n, 1000), tally{counted: 600, hidden: 400, rejected: n - 1001}, false},
		{"tubes", expectTubes(legs, true), tally{counted: 901, events: 699}, true},
		{"tubes without events", expectTubes(legs, false), tally{counted: 901}, true},
		{"events missing", expectTubes(legs, true), tally{counted: 900, events: 690}, false},
		{"contributions missing", expectTubes(legs, false), tally{counted: 890}, false},
		{"a status", expectTubes(legs, false), tally{counted: 900, status: scene.StatusNotFinite}, false},
		{"equivalents", expectEquivalents(e), tally{counted: 497}, true},
		{"equivalents missing", expectEquivalents(e), tally{counted: 490}, false},
		{"equivalents too many", expectEquivalents(e), tally{counted: 1001}, false},
	} {
		require.Equal(t, c.right, c.expect(c.t) == "", c.name)
	}
	r := &run{}
	f := &field{run: r}
	f.judge(gridCase{operation: "a", config: "b", expect: expectAll(0)}, tally{})
	require.Equal(t, []string{"a b: vacuous: nothing counts"}, r.failures)
}

// The share of Keller samples by counting them: angles and places on a lattice, rays by rotating vectors.
func TestKellerShare(t *testing.T) {
	const steps = 1500
	meets, right := 0, 0
	for i := range steps {
		for k := range steps {
			x := -1 + 2*(float64(i)+.5)/steps
			sine, cosine := math.Sincos(2 * math.Pi * (float64(k) + .5) / steps)
			from := point{x, 1, -.25} // from the source to the point of the edge
			ray := point{from[0], cosine*from[1] - sine*from[2], sine*from[1] + cosine*from[2]}
			if s := -1 / ray[2]; s > 0 && math.Abs(x+s*ray[0]) < 1 && math.Abs(s*ray[1]) < 1 {
				meets++
				if x > 0 {
					right++
				}
			}
		}
	}
	require.InDelta(t, kellerShare(), float64(meets)/steps/steps, 1e-4)
	require.InDelta(t, kellerShare()/2, float64(right)/steps/steps, 1e-4)
}

// The edge from (0,0,-1) to (0,0,1) of the quarter of space x < 0, y < 0.
func TestPathsOverEdges(t *testing.T) {
	d := scene.DfrStates{
		EdgeIndex: []int32{0}, EdgePos: []float32{0, 0, 0}, EdgeDir: []float32{0, 0, 2}, TMin: []float32{-1}, TMax: []float32{1},
		N0: []float32{0, 1, 0}, N1: []float32{1, 0, 0},
	}
	for _, c := range []struct {
		name           string
		source, target []float32
		want           int64
	}{
		{"level", []float32{-1, 1, 0}, []float32{1, -1, 0}, 1},
		{"the middle of 0 and 1.8", []float32{-1, 1, 0}, []float32{1, -1, 1.8}, 1},
		{"the middle of 0 and 2.2", []float32{-1, 1, 0}, []float32{1, -1, 2.2}, 0},
		{"a third of the way", []float32{-1, 0, 0}, []float32{2, 0, 2.9}, 1},
		{"inside", []float32{-1, -1, 0}, []float32{1, -1, 0}, 0},
		{"on the edge", []float32{0, 0, 0}, []float32{1, -1, 0}, 0},
		{"two of each", []float32{-1, 1, 0, -1, 1, 5}, []float32{1, -1, 0, 1, 1, 0}, 2},
	} {
		require.Equal(t, c.want, pathsOverEdges(&d, c.source, c.target), c.name)
	}
}

// A ray that goes down, is reflected by the ground and leaves through the plane z = 1, and one that does not meet it.
func TestTubesOfChains(t *testing.T) {
	c := hostChains{
		rays: workload.Rays{
			Origins:    []float32{0, 0, 2, 0, 0, 2},
			Directions: []float32{.6, 0, -.8, 0, 0, 1},
		},
		bounces: 3,
		valid:   []uint8{1, 0, 0, 0, 0, 0},
		prims:   []int32{7, -1, -1, -1, -1, -1},
		p:       append([]float32{1.5, 0, 0}, make([]float32, 15)...),
		n:       append([]float32{0, 0, 1}, make([]float32, 15)...),
	}
	g := scene.Grid{Axis: scene.AxisZ, Position: 1, Min0: 0, Max0: 2, Min1: -1, Max1: 1, Res0: 2, Res1: 2}
	require.Equal(t, legCounts{legs: 2, hits: 1, crossings: 1}, c.tubes(g, 0))
	require.Equal(t, legCounts{legs: 3, hits: 1, reflections: 1, crossings: 1}, c.tubes(g, 1), "the second crossing is at x = 2.25")
	g.Max0 = 3
	require.Equal(t, legCounts{legs: 3, hits: 1, reflections: 1, crossings: 2}, c.tubes(g, 2))

	e := c.equivalents(10, 2)
	require.Equal(t, []float32{0, 0, 2}, e.source)
	require.Equal(t, []int32{7, -1}, e.seq)
	require.EqualValues(t, 1, e.known)
	require.EqualValues(t, 1, e.reflections)
	require.EqualValues(t, 2, e.segments)
	require.InDeltaSlice(t, []float32{1.5 + openEnd*.6, 0, openEnd * .8}, e.receiver, 1e-6)
}

// Floors by hand, for a device whose rates are known.
func TestGridFloors(t *testing.T) {
	r := runOn(t, 1, emu.WithName(func(int) string { return "NVIDIA H200" }))
	f := &field{run: r}
	bytes, operations := f.floors(gridCase{least: func(t tally) work {
		return work{bytes: 4.8e9}.plus(t.counted, 3)
	}}, tally{counted: 33_454_080})
	require.InDelta(t, 1, bytes, 1e-12)
	require.InDelta(t, .003, operations, 1e-12)
	bytes, operations = f.floors(gridCase{}, tally{})
	require.Nil(t, bytes)
	require.Nil(t, operations)

	states := fixtureStates()
	require.Equal(t, work{320 + 1600, 13*(30+93) + 10*(40+93)}, directWork(&states, 16, tally{counted: 10, hidden: 3}))
	require.Equal(t, work{320 + 1600, 100*(30+118+93) + 13*(91+93)}, kellerWork(&states, 16, 100, tally{counted: 10, hidden: 3}))
	require.Equal(t, work{7, 100*230 + 13*(100+93) + 10*(93+1800)}, laneWork(7, 100, tally{counted: 10, hidden: 3}))
	require.Equal(t, work{24*100 + 100*16 + 80*5, 150*(44+200) + 60*46 + 50*200 + 10*150},
		tubeWork(100, 16, 5, legCounts{legs: 150, hits: 60, reflections: 50}, tally{counted: 10, events: 9}))
	e := equivalentRows{source: make([]float32, 300), bounces: 3, known: 50, reflections: 250, segments: 80}
	require.Equal(t, work{100 * (24 + 12 + 103), 250*90 + 30*90 + 80*(93+200)}, equivalentWork(&e, 103, false))
	require.Equal(t, work{100 * (24 + 12 + 42), 250*90 + 30*(90+200) + 80*(93+200)}, equivalentWork(&e, 42, true))
}
