package chunked

import (
	"fmt"
	"maps"
	"slices"
)

// Defaults of Options.
const (
	DefaultMinRows        = 1048576 // MinRaysPerDevice
	DefaultMinLanes       = 262144  // MinLanesPerDevice, of an operation without Op.MinLanes
	DefaultPipelineChunks = 4       // PipelineChunks
)

// Options are the settings that a plan depends on. The zero value of every
// field is its default.
type Options struct {
	// Weights are the relative shares of the devices, the master's first.
	// Nil: all 1.
	Weights []float64 `json:"weights,omitempty"`
	// OperationWeights override Weights for one operation key
	// ("intersect_full") or family ("intersect").
	OperationWeights map[string][]float64 `json:"operation_weights,omitempty"`
	// ChunkRays is the most rows or lanes of one launch. Setting it makes
	// calls chunked, however few rows they have. 0: no limit.
	ChunkRays int64 `json:"chunk_rays,omitempty"`
	// MemoryBudget bounds, in bytes, what one call adds to the memory in use
	// on each device, its results included. Setting it makes calls chunked,
	// with the largest chunks that fit. 0: no limit.
	MemoryBudget int64 `json:"memory_budget,omitempty"`
	// NoPipeline sends the share of a remote in one chunk where rows are
	// copied (Copy and Host).
	NoPipeline bool `json:"no_pipeline,omitempty"`
	// PipelineChunks is the number of chunks of a remote share where rows are
	// copied, so that copies overlap computation. 0: 4. At least 2.
	PipelineChunks int `json:"pipeline_chunks,omitempty"`
	// MinRaysPerDevice is the fewest rows of a remote shard that are worth
	// dispatching; below it the call runs on the master. It is stated for
	// rows of 28 bytes over the link, wider rows raise it in proportion.
	// 0: 1048576. 1 disables the floor.
	MinRaysPerDevice int64 `json:"min_rays_per_device,omitempty"`
	// MinLanesPerDevice is the same for the lanes of accumulations. One that
	// is divided along rays raises it by the size of the accumulator.
	// 0: the default of each operation (Op.MinLanes). 1 disables the floor.
	MinLanesPerDevice int64 `json:"min_lanes_per_device,omitempty"`
	// Transport is how remote rows travel.
	Transport Transport `json:"transport"`
}

// Check validates the options for n devices: the weights first, then the
// other fields in the order of their declaration. The error is an
// [*OptionError].
func (o Options) Check(n int) error {
	if o.Weights != nil {
		if err := CheckWeights("Weights", o.Weights, n); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o.OperationWeights)) {
		name := fmt.Sprintf("OperationWeights[%q]", key)
		if _, ok := Family(key); !ok {
			return &OptionError{name, fmt.Sprintf("no such operation: the keys are %v", Keys())}
		}
		if err := CheckWeights(name, o.OperationWeights[key], n); err != nil {
			return err
		}
	}
	for _, f := range [...]struct {
		name  string
		value int64
		zero  string
	}{
		{"ChunkRays", o.ChunkRays, "0 sets no limit"},
		{"MemoryBudget", o.MemoryBudget, "0 sets no limit"},
		{"PipelineChunks", int64(o.PipelineChunks), "0 is the default (4)"},
		{"MinRaysPerDevice", o.MinRaysPerDevice, "0 is the default (1048576), 1 disables the floor"},
		{"MinLanesPerDevice", o.MinLanesPerDevice, "0 is the default of the operation, 1 disables the floor"},
	} {
		if f.value < 0 {
			return &OptionError{f.name, fmt.Sprintf("%d: %s", f.value, f.zero)}
		}
	}
	if o.PipelineChunks == 1 {
		return &OptionError{"PipelineChunks", "1: overlap needs at least two; use NoPipeline"}
	}
	if o.Transport < Auto || o.Transport > Host {
		return &OptionError{"Transport", fmt.Sprintf("%v: %s", o.Transport, transportChoice)}
	}
	return nil
}

// sized reports whether a field limits the rows of a launch.
func (o Options) sized() bool { return o.ChunkRays > 0 || o.MemoryBudget > 0 }

// weights resolves the split of an operation: its exact key, its family, the
// base weights, or equal shares. The result is not shared with the options.
func (o Options) weights(op Op, n int) (w []float64, source string) {
	if w, ok := o.OperationWeights[op.Key]; ok {
		return slices.Clone(w), op.Key
	}
	if w, ok := o.OperationWeights[op.Family]; ok {
		return slices.Clone(w), op.Family
	}
	if o.Weights != nil {
		return slices.Clone(o.Weights), "base"
	}
	w = make([]float64, n)
	for i := range w {
		w[i] = 1
	}
	return w, "base"
}
