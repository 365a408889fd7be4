package record

// Mode says under which options a row ran.
type Mode string

// Modes of a row.
const (
	Forced     Mode = "forced"     // equal weights, floors 1: measures the mechanism
	Policy     Mode = "policy"     // shipped defaults: what a caller gets
	Calibrated Mode = "calibrated" // weights chosen by calibration
	Streamed   Mode = "streamed"   // chunk by chunk through a hook
)

// Flags of a row.
const (
	FlagNearCrossover    = "NEAR_CROSSOVER"
	FlagSlower           = "SLOWER_THAN_ONE_DEVICE"
	FlagKeptOnTolerance  = "KEPT_ON_TOLERANCE"
	FlagContended        = "CONTENDED_THROUGHPUT"
	FlagBelowFloor       = "BELOW_FLOOR"
	FlagSingleDeviceOnly = "SINGLE_DEVICE_ONLY" // the row has no multi column
)

// Words of the row's fields.
const (
	OperationIntersect   = "intersect"
	OperationReflections = "trace_reflections"
	OperationAccumDirect = "accum_dfr_direct"
	OperationAccumField  = "accum_dfr_coherent_direct"
	OperationReflGrid    = "accumulate_reflections"
	OperationDfrPaths    = "trace_dfr_paths"
	UnitRays             = "rays"
	UnitSamples          = "samples"
	SpeedupComputed      = "computed"
	SpeedupAsPrinted     = "as_printed"
	TimingMeasured       = "measured"
	TimingForcedRow      = "forced_row" // the policy plan equals the forced one, whose times were taken over
	StatusMeasured       = "measured"
	StatusNotRecorded    = "not_recorded"
	ScopeAllFields       = "all_fields"
	ScopeHitDistance     = "hit_distance_only"
	ModelImport          = "link_time_plus_half_compute"
)

// Methods of a calibration and their verdicts.
const (
	MethodPairedInterval = "paired_interval"
	VerdictShard         = "shard"
	VerdictMaster        = "master"
	VerdictInconclusive  = "inconclusive"

	MethodLadder       = "ladder" // imports only
	VerdictMasterAlone = "master_alone"
	VerdictMeasured    = "sharded_measured"
	VerdictOnTolerance = "sharded_on_tolerance"
)

// Row is one operation in one mode, on one device and, where there are more, on the whole set.
type Row struct {
	Operation     string         `json:"operation"`
	Mode          Mode           `json:"mode"`
	Backend       string         `json:"backend,omitempty"` // cuda or optix
	Batch         Batch          `json:"batch"`
	Rounds        int            `json:"rounds,omitempty"` // samples of each variant; absent: Parameters.Repeat
	Calls         int            `json:"calls,omitempty"`  // whose mean a sample is; absent: 1
	Single        Timing         `json:"single"`
	Multi         *Timing        `json:"multi,omitempty"`
	TimingSource  string         `json:"timing_source,omitempty"` // absent: measured
	Speedup       *float64       `json:"speedup,omitempty"`
	SpeedupSource string         `json:"speedup_source,omitempty"`
	Dispatch      string         `json:"dispatch,omitempty"`
	Transport     string         `json:"transport,omitempty"`
	Plan          *Plan          `json:"plan,omitempty"`
	Weights       []float64      `json:"weights,omitempty"`
	RowBytes      *RowBytes      `json:"row_bytes,omitempty"`
	Hits          *int64         `json:"hits,omitempty"`    // rows with a finite distance
	Columns       []Column       `json:"columns,omitempty"` // digests of the result's columns
	Agreement     *Agreement     `json:"agreement,omitempty"`
	GridDeviation *GridDeviation `json:"grid_deviation,omitempty"`
	Overlap       *Overlap       `json:"overlap,omitempty"`
	Calibration   *Calibration   `json:"calibration,omitempty"`
	PeakMemory    *PeakMemory    `json:"peak_memory,omitempty"`
	Flags         []string       `json:"flags,omitempty"`
}

// Batch is the size of one call.
type Batch struct {
	Count int64  `json:"count"`
	Unit  string `json:"unit"` // rays or samples
}

// Timing holds the wall times of one variant. A live one has all samples in the order in which they were taken.
type Timing struct {
	MinNS        int64   `json:"min_ns"`
	MedianNS     *int64  `json:"median_ns,omitempty"`
	MaxNS        *int64  `json:"max_ns,omitempty"`
	SamplesNS    []int64 `json:"samples_ns,omitempty"`
	ResolutionNS int64   `json:"resolution_ns"`
}

// Plan says how the batch was cut.
type Plan struct {
	Source     string       `json:"source,omitempty"`
	ChunkRows  int64        `json:"chunk_rows,omitempty"` // of the largest chunk
	ChunkCount int          `json:"chunk_count"`
	PerDevice  []DevicePlan `json:"per_device,omitempty"`
}

// DevicePlan is the part of one device. ChunkRows is the size of its largest chunk, 0 without chunks.
type DevicePlan struct {
	Device    int   `json:"device"`
	Rows      int64 `json:"rows"`
	Chunks    int   `json:"chunks"`
	ChunkRows int64 `json:"chunk_rows"`
}

// RowBytes compares the bytes per row that an operation declares with those that were measured: record bytes (in, out,
// retained) and, for remote rows, wire bytes.
type RowBytes struct {
	DeclaredIn       int      `json:"declared_in"`
	DeclaredOut      int      `json:"declared_out"`
	DeclaredRetained int      `json:"declared_retained"`
	MeasuredOut      *float64 `json:"measured_out"` // null where it was not measured
	WireIn           *int     `json:"wire_in,omitempty"`
	WireOut          *int     `json:"wire_out,omitempty"`
	MeasuredWireOut  Optional `json:"measured_wire_out,omitzero"` // null where no row crossed a link
}

// Column is the digest of one result column, over its little-endian words.
type Column struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Agreement compares the result of the set with that of one device, word by word.
type Agreement struct {
	Status     string   `json:"status"`
	Scope      string   `json:"scope,omitempty"`
	Elements   *int64   `json:"elements,omitempty"`   // words compared
	Mismatches *int64   `json:"mismatches,omitempty"` // words that differ
	Fraction   *float64 `json:"fraction,omitempty"`   // 1 - mismatches/elements
}

// GridDeviation compares accumulated grids.
type GridDeviation struct {
	Status        string          `json:"status"`
	Scope         string          `json:"scope,omitempty"`
	L1Relative    *float64        `json:"l1_relative,omitempty"`
	CountersExact *bool           `json:"counters_exact,omitempty"`
	Grids         []GridAgreement `json:"grids,omitempty"`
}

// GridAgreement compares one grid.
type GridAgreement struct {
	Name        string  `json:"name"`
	L1Relative  float64 `json:"l1_relative"`
	MaxAbs      float64 `json:"max_abs"`
	Mismatches  int64   `json:"mismatches"`
	ReferenceL1 float64 `json:"reference_l1"`
}

// Overlap places a measured time between no overlap and perfect overlap of transfers and computation.
type Overlap struct {
	Model              string  `json:"model"`
	RowInBytes         int     `json:"row_in_bytes,omitempty"`
	RowOutBytes        int     `json:"row_out_bytes,omitempty"`
	ChunkTripNS        int64   `json:"chunk_trip_ns,omitempty"`
	FinalizeNS         int64   `json:"finalize_ns,omitempty"`
	LinkBytesPerSecond float64 `json:"link_bytes_per_second,omitempty"`
	NoOverlapNS        int64   `json:"no_overlap_ns"`
	PerfectOverlapNS   int64   `json:"perfect_overlap_ns"`
	MeasuredNS         int64   `json:"measured_ns"`
	ResidualNS         int64   `json:"residual_ns"`
}

// Calibration is a decision between one device and the set, and the numbers that it follows from.
type Calibration struct {
	Method  string `json:"method"` // paired_interval, or ladder in an import
	Verdict string `json:"verdict"`

	Pairs               []Pair    `json:"pairs,omitempty"`
	Interval            *Interval `json:"interval,omitempty"`
	Threshold           *float64  `json:"threshold,omitempty"` // of ln(master/sharded)
	Rungs               []Rung    `json:"rungs,omitempty"`
	ChosenRung          *int      `json:"chosen_rung,omitempty"`
	Probe               string    `json:"probe,omitempty"`
	Rows                int64     `json:"rows,omitempty"`
	Repeats             int       `json:"repeats,omitempty"`
	ThroughputNS        []int64   `json:"throughput_ns,omitempty"`
	ThroughputSamplesNS [][]int64 `json:"throughput_samples_ns,omitempty"`
	ThroughputWeights   []float64 `json:"throughput_weights,omitempty"`
	PredictedShare      *float64  `json:"predicted_share,omitempty"`

	BestShardedNS *int64   `json:"best_sharded_ns,omitempty"`
	MasterOnlyNS  *int64   `json:"master_only_ns,omitempty"`
	MarginPercent *float64 `json:"margin_percent,omitempty"`
}

// Pair is one paired timing of the sharded candidate and the master alone.
type Pair struct {
	ShardedNS int64 `json:"sharded_ns"`
	MasterNS  int64 `json:"master_ns"`
}

// Interval bounds the median of ln(master/sharded) by order statistics.
type Interval struct {
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Order    int     `json:"order"`
	Coverage float64 `json:"coverage"`
}

// Rung is one timed split of the ladder.
type Rung struct {
	Share    float64   `json:"share"`
	Weights  []float64 `json:"weights"`
	MedianNS int64     `json:"median_ns"`
}

// PeakMemory compares the high-water marks of a streamed call with those of the whole result. Only Status is set where
// nothing was recorded.
type PeakMemory struct {
	Status                  string        `json:"status"`
	MasterDevice            *int          `json:"master_device,omitempty"`
	BaselineBytes           *int64        `json:"baseline_bytes,omitempty"`
	StreamedBytes           *int64        `json:"streamed_bytes,omitempty"`
	PerDeviceStreamed       []DeviceBytes `json:"per_device_streamed,omitempty"`
	ConcatenatedMultiBytes  *int64        `json:"concatenated_multi_bytes,omitempty"`
	ConcatenatedSingleBytes *int64        `json:"concatenated_single_bytes,omitempty"`
	PredictedSavingBytes    *int64        `json:"predicted_saving_bytes,omitempty"`
}

// DeviceBytes is an amount of memory on one device.
type DeviceBytes struct {
	Device int   `json:"device"`
	Bytes  int64 `json:"bytes"`
}
