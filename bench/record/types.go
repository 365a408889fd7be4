package record

// Values of the fixed fields.
const (
	SchemaVersion = 1
	Benchmark     = "multi_device"
)

// Kind says where the numbers of a record come from.
type Kind string

// Kinds of provenance.
const (
	Live   Kind = "live_measurement"
	Import Kind = "historical_documentation_import"
)

// Record is one benchmark run on one host.
type Record struct {
	SchemaVersion int               `json:"schema_version"`
	Benchmark     string            `json:"benchmark"`
	Provenance    Provenance        `json:"provenance"`
	Software      Software          `json:"software"`
	Machine       Machine           `json:"machine"`
	Parameters    Parameters        `json:"parameters"`
	Configs       map[string]Config `json:"configs"` // by name: light, compute, mini
	Studies       []Study           `json:"studies,omitempty"`
	Checks        *Checks           `json:"checks,omitempty"` // required live, forbidden in an import
}

// Provenance says who wrote the record, when, and from what.
type Provenance struct {
	Kind            Kind     `json:"kind"`
	GeneratedAt     string   `json:"generated_at"` // UTC, whole seconds, with Z
	MeasuredAt      string   `json:"measured_at,omitempty"`
	SourceDocuments []string `json:"source_documents,omitempty"`
	Statement       string   `json:"statement,omitempty"`
}

// Software names what ran.
type Software struct {
	Program           string `json:"program"`
	Revision          string `json:"revision,omitempty"`
	RevisionModified  *bool  `json:"revision_modified,omitempty"`
	LanguageRuntime   string `json:"language_runtime,omitempty"`
	CUDADriverVersion *int   `json:"cuda_driver_version,omitempty"` // as the driver reports it, 12080 for 12.8
	CUDAToolkit       string `json:"cuda_toolkit,omitempty"`
	DriverRelease     string `json:"driver_release,omitempty"`
	OptiXABI          *int   `json:"optix_abi,omitempty"` // 0 without OptiX
	PTXManifestSHA256 string `json:"ptx_manifest_sha256,omitempty"`
}

// Machine describes the device set, position 0 being the master, and the links between its devices.
type Machine struct {
	DeviceCount int        `json:"device_count"`
	Devices     []Device   `json:"devices"`
	PeerAccess  PeerAccess `json:"peer_access"`
	Links       []Link     `json:"links"`
	Contention  Contention `json:"contention"`
}

// Device is one device of the set. Index is its driver ordinal.
type Device struct {
	Index             int     `json:"index"`
	Name              string  `json:"name"`
	TotalBytes        uint64  `json:"total_bytes,omitempty"`
	ComputeCapability *[2]int `json:"compute_capability,omitempty"`
	Multiprocessors   int     `json:"multiprocessors,omitempty"`
	NominalMemory     string  `json:"nominal_memory,omitempty"` // as printed by a source document
}

// States of the peer access matrix.
const (
	PeerMeasured      = "measured"
	PeerPartial       = "partially_recorded" // imports only
	PeerNotApplicable = "not_applicable"     // one device
)

// PeerAccess is the directed peer access matrix of the set.
type PeerAccess struct {
	Status             string     `json:"status"`
	Pairs              []PeerPair `json:"pairs"`
	AllPairsAccessible *bool      `json:"all_pairs_accessible,omitempty"` // present iff measured
}

// PeerPair says whether kernels on Source may access memory of Destination.
type PeerPair struct {
	Source          int   `json:"source"`
	Destination     int   `json:"destination"`
	CanAccess       bool  `json:"can_access"`
	NativeAtomics   *bool `json:"native_atomics,omitempty"`
	PerformanceRank *int  `json:"performance_rank,omitempty"`
}

// Directions of a link probe.
const (
	OneWay   = "one_way"
	BothWays = "both_ways" // both directions at once; bytes and rate are the sum of the two
)

// Link is one measured copy rate between two devices.
type Link struct {
	Source         int     `json:"source"`
	Destination    int     `json:"destination"`
	Direction      string  `json:"direction"`
	Bytes          int64   `json:"bytes"`
	Repeats        int     `json:"repeats,omitempty"`
	MinNS          int64   `json:"min_ns,omitempty"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	PeerAccess     *bool   `json:"peer_access,omitempty"` // false where the driver stages the copy through the host
	AsPrinted      string  `json:"as_printed,omitempty"`
}

// Contention describes other load on the devices.
type Contention struct {
	Status    string        `json:"status"` // measured, described or not_recorded
	Statement string        `json:"statement,omitempty"`
	Before    []DeviceUsage `json:"before,omitempty"`
	After     []DeviceUsage `json:"after,omitempty"`
}

// DeviceUsage is the load of one device at one moment.
type DeviceUsage struct {
	Device             int    `json:"device"`
	UsedBytes          uint64 `json:"used_bytes"`
	UtilizationPercent int    `json:"utilization_percent"`
}

// Parameters holds the resolved options of the run; nil where an import does not know.
type Parameters struct {
	SelectedConfigs    []string `json:"selected_configs"`
	Warmup             int      `json:"warmup"`
	Repeat             int      `json:"repeat"`              // the fewest rounds of a row
	CalibrationRows    *int64   `json:"calibration_rows"`    // null where no row was calibrated
	CalibrationRepeats *int     `json:"calibration_repeats"` // likewise
	AccumOnly          bool     `json:"accum_only"`
	Probe              string   `json:"probe"`
	RoundOrder         string   `json:"round_order"` // fixed or rotated
	Backend            string   `json:"backend,omitempty"`
	Transport          string   `json:"transport,omitempty"`
	Emulated           *bool    `json:"emulated,omitempty"`
}

// Config is one workload and its rows.
type Config struct {
	Note            string    `json:"note"`
	Geometry        *Geometry `json:"geometry,omitempty"`
	Rays            *Rays     `json:"rays,omitempty"`
	MaxBounces      int       `json:"max_bounces"`
	AccumSamples    int64     `json:"accum_samples"`
	StreamChunkRows int64     `json:"stream_chunk_rows,omitempty"`
	Rows            []Row     `json:"rows"`
	// Tracers are timed side by side on one device, in the rounds of the rows: the backend of the rows first.
	Tracers []Tracer `json:"tracers,omitempty"`
}

// TracerBare is OptiX alone: t, primitive and barycentrics by its own arithmetic. Ratios refer to it.
const TracerBare = "optix_bare"

// Tracer is one way to answer an operation.
type Tracer struct {
	Operation string `json:"operation,omitempty"` // absent: intersect
	Name      string `json:"name"`                // cuda, optix or optix_bare
	Rounds    int    `json:"rounds,omitempty"`    // as in Row
	Calls     int    `json:"calls,omitempty"`     // as in Row
	Single    Timing `json:"single"`
	// DifferingWords counts the values of the result that differ from those of the first tracer: rays that meet an edge
	// may name another triangle.
	DifferingWords *int64 `json:"differing_words,omitempty"`
}

// Geometry describes the scene.
type Geometry struct {
	Kind           string `json:"kind"` // grid, cloud, grid_and_cloud
	Vertices       int64  `json:"vertices,omitempty"`
	Triangles      int64  `json:"triangles"`
	VerticesSHA256 string `json:"vertices_sha256,omitempty"`
	FacesSHA256    string `json:"faces_sha256,omitempty"`
}

// Rays describes the batch.
type Rays struct {
	Count            int64  `json:"count"`
	OriginsSHA256    string `json:"origins_sha256,omitempty"`
	DirectionsSHA256 string `json:"directions_sha256,omitempty"`
}

// Study is a table beside the rows. A cell is a string, a number or null.
type Study struct {
	ID            string        `json:"id"`
	SourceSection string        `json:"source_section"`
	Description   string        `json:"description"`
	Columns       []StudyColumn `json:"columns"`
	Rows          [][]any       `json:"rows"`
}

// StudyColumn names a column of a study and its unit, "-" without one.
type StudyColumn struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
}

// Checks is the outcome of the correctness checks; Passed iff Failures is empty.
type Checks struct {
	Passed   bool     `json:"passed"`
	Failures []string `json:"failures"`
}
