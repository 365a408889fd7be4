package record

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func ptr[T any](v T) *T { return &v }

// liveRecord returns a valid live record of two devices with one row of every mode that the rules treat differently.
// Its numbers are chosen by hand: 8 rows, 3 timed rounds, 4 of the streamed row and of tracers.
func liveRecord() *Record {
	digest := strings.Repeat("0123456789abcdef", 4)
	timing := func(low, median, high int64, more ...int64) Timing {
		return Timing{MinNS: low, MedianNS: &median, MaxNS: &high, SamplesNS: append([]int64{high, low, median}, more...), ResolutionNS: 1}
	}
	single, multi := timing(1000, 1100, 1500), timing(800, 900, 950)
	row := func(mode Mode) Row {
		return Row{
			Operation: "intersect", Mode: mode, Backend: "cuda", Batch: Batch{8, UnitRays},
			Single: single, Multi: &multi, Speedup: ptr(1.25), SpeedupSource: SpeedupComputed,
			Dispatch: "direct", Transport: "direct",
		}
	}
	forced := row(Forced)
	forced.Weights = []float64{1, 1}
	forced.Plan = &Plan{Source: "shard", ChunkRows: 4, ChunkCount: 2, PerDevice: []DevicePlan{{0, 4, 1, 4}, {1, 4, 1, 4}}}
	forced.RowBytes = &RowBytes{DeclaredIn: 24, DeclaredOut: 76, MeasuredOut: ptr(76.0), WireIn: ptr(24), WireOut: ptr(4), MeasuredWireOut: Number(4)}
	forced.Agreement = &Agreement{Status: StatusMeasured, Scope: ScopeAllFields, Elements: ptr(int64(152)), Mismatches: ptr(int64(0)), Fraction: ptr(1.0)}
	forced.Hits = ptr(int64(5))
	forced.Columns = []Column{{"t", digest}, {"p", digest}}
	forced.Overlap = &Overlap{Model: "direct_peer", RowInBytes: 24, RowOutBytes: 4, NoOverlapNS: 900, PerfectOverlapNS: 700, MeasuredNS: 800, ResidualNS: 100}

	calibrated := row(Calibrated)
	calibrated.Weights = []float64{1, 1}
	calibrated.Calibration = &Calibration{
		Method: MethodPairedInterval, Verdict: VerdictShard,
		Pairs:     []Pair{{100, 200}, {100, 150}, {100, 125}},
		Interval:  &Interval{Low: math.Log(1.25), High: math.Log(2), Order: 1, Coverage: 0.75},
		Threshold: ptr(math.Log(1.02)), ChosenRung: ptr(0), Probe: "workload", Rows: 8, Repeats: 9,
		Rungs:        []Rung{{Share: 1, Weights: []float64{1, 1}, MedianNS: 100}, {Share: 0, Weights: []float64{1, 0}, MedianNS: 150}},
		ThroughputNS: []int64{100, 101}, ThroughputWeights: []float64{1, 1},
	}
	streamed := row(Streamed)
	streamed.Rounds, streamed.Calls = 4, 16
	streamed.Single, streamed.Multi = timing(1000, 1100, 1500, 1100), ptr(timing(800, 900, 950, 900))
	streamed.PeakMemory = &PeakMemory{
		Status: StatusMeasured, MasterDevice: ptr(0), BaselineBytes: ptr(int64(10)), StreamedBytes: ptr(int64(20)),
		ConcatenatedMultiBytes: ptr(int64(30)), ConcatenatedSingleBytes: ptr(int64(30)),
		PerDeviceStreamed: []DeviceBytes{{0, 20}, {1, 5}},
	}
	accum := row(Forced)
	accum.Operation, accum.Batch, accum.Dispatch = "accum_dfr_direct", Batch{16, UnitSamples}, "lane-sharded"
	accum.GridDeviation = &GridDeviation{Status: StatusMeasured, Scope: "all_grids", L1Relative: ptr(0.0), CountersExact: ptr(true),
		Grids: []GridAgreement{{Name: "power", ReferenceL1: 2}}}

	return &Record{
		SchemaVersion: SchemaVersion, Benchmark: Benchmark,
		Provenance: Provenance{Kind: Live, GeneratedAt: "2026-11-29T12:00:00Z"},
		Software: Software{Program: "bench", Revision: "abc", RevisionModified: ptr(false), LanguageRuntime: "go1.26",
			CUDADriverVersion: ptr(12080), OptiXABI: ptr(0), PTXManifestSHA256: digest},
		Machine: Machine{
			DeviceCount: 2,
			Devices: []Device{
				{Index: 0, Name: "A", TotalBytes: 1 << 30, ComputeCapability: &[2]int{9, 0}, Multiprocessors: 132},
				{Index: 1, Name: "A", TotalBytes: 1 << 30, ComputeCapability: &[2]int{9, 0}, Multiprocessors: 132},
			},
			PeerAccess: PeerAccess{Status: PeerMeasured, AllPairsAccessible: ptr(true), Pairs: []PeerPair{
				{Source: 0, Destination: 1, CanAccess: true}, {Source: 1, Destination: 0, CanAccess: true}}},
			Links: []Link{
				{Source: 0, Destination: 1, Direction: OneWay, Bytes: 500, Repeats: 5, MinNS: 250, BytesPerSecond: 2e9},
				{Source: 1, Destination: 0, Direction: OneWay, Bytes: 500, Repeats: 5, MinNS: 500, BytesPerSecond: 1e9},
				{Source: 0, Destination: 1, Direction: BothWays, Bytes: 1000, Repeats: 5, MinNS: 500, BytesPerSecond: 2e9},
			},
			Contention: Contention{Status: StatusMeasured, Before: []DeviceUsage{{0, 5, 1}}, After: []DeviceUsage{{1, 5, 1}}},
		},
		Parameters: Parameters{SelectedConfigs: []string{"mini"}, Warmup: 1, Repeat: 3, Probe: "workload",
			RoundOrder: "rotated", Backend: "auto", Transport: "auto", Emulated: ptr(false)},
		Configs: map[string]Config{"mini": {
			Note: "synthetic", MaxBounces: 2, AccumSamples: 16, StreamChunkRows: 4,
			Geometry: &Geometry{Kind: "grid_and_cloud", Vertices: 6, Triangles: 2, VerticesSHA256: digest, FacesSHA256: digest},
			Rays:     &Rays{Count: 8, OriginsSHA256: digest, DirectionsSHA256: digest},
			Rows:     []Row{forced, calibrated, accum, streamed},
			Tracers: []Tracer{
				{Name: "cuda", Rounds: 4, Single: streamed.Single},
				{Name: "optix", Rounds: 4, Single: streamed.Single, DifferingWords: ptr(int64(1))},
			},
		}},
		Checks: &Checks{Passed: true, Failures: []string{}},
	}
}

// tree returns a record as the generic JSON value that schema tests edit.
func tree(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal(text, &v))
	return v
}

func liveTree(t *testing.T) map[string]any {
	t.Helper()
	text, err := json.Marshal(liveRecord())
	require.NoError(t, err)
	return tree(t, text)
}

// at walks a JSON value by keys and indices.
func at(t *testing.T, v any, path ...any) map[string]any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(map[string]any)[step]
		case int:
			v = v.([]any)[step]
		}
		require.NotNil(t, v, "path %v", path)
	}
	return v.(map[string]any)
}

func TestSyntheticRecordIsValid(t *testing.T) {
	text, err := liveRecord().Encode()
	require.NoError(t, err)
	r, err := Decode(text)
	require.NoError(t, err)
	require.Equal(t, liveRecord(), r)
}
