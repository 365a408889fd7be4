package chunked

import (
	"fmt"
	"slices"
)

// Limits of a plan.
const (
	MaxLaunchRows = 1 << 30                   // rows of one launch
	MaxChunks     = 1 << 20                   // chunks of one plan
	MaxRows       = MaxLaunchRows * MaxChunks // rows of one call
)

// Input is everything a plan depends on.
type Input struct {
	Op      Op    `json:"op"`
	Begin   int64 `json:"begin,omitempty"` // the first row, where a call covers a window
	Rows    int64 `json:"rows"`
	Devices []int `json:"devices"` // ordinals, the master first
	// Weights override those of the options; WeightSource names them.
	Weights      []float64 `json:"weights,omitempty"`
	WeightSource string    `json:"weight_source,omitempty"`
	Options      Options   `json:"options"`
	// Hook says that results go to a hook or an iterator chunk by chunk,
	// instead of being returned whole.
	Hook bool `json:"hook,omitempty"`
	// Tape says that the call keeps what its derivatives need.
	Tape bool `json:"tape,omitempty"`
	// Transport is that of the set: for several devices one other than Auto.
	Transport Transport `json:"transport"`
}

func (in *Input) check() error {
	n := len(in.Devices)
	if n == 0 {
		return &OptionError{"Devices", "the list is empty: give at least one device"}
	}
	for p, d := range in.Devices {
		if d < 0 || slices.Index(in.Devices, d) < p {
			return &OptionError{"Devices", fmt.Sprintf("%v: ordinals are at least 0, each once", in.Devices)}
		}
	}
	if in.Rows < 0 || in.Rows > MaxRows {
		return &OptionError{"Rows", fmt.Sprintf("%d rows: a batch has 0 to %d", in.Rows, int64(MaxRows))}
	}
	if in.Begin < 0 || in.Begin > MaxRows {
		return &OptionError{"Begin", fmt.Sprintf("%d: the first row is 0 to %d", in.Begin, int64(MaxRows))}
	}
	if err := in.Options.Check(n); err != nil {
		return err
	}
	if in.Weights != nil {
		if err := CheckWeights("Weights", in.Weights, n); err != nil {
			return err
		}
	}
	if t := in.Transport; t < Auto || t > Host || n > 1 && t == Auto {
		return &OptionError{"Transport", fmt.Sprintf("%v for %d devices: a plan is made for direct, copy or host", t, n)}
	}
	if err := in.Op.check(in.Rows); err != nil {
		return err
	}
	if in.Hook && in.Op.Class == GridReduce {
		return &UnsupportedError{in.Op.Key, "Offload", "its result is one reduced grid, which has no rows to stream"}
	}
	return nil
}

// weights resolves who gets how much; the result is not shared with the input.
func (in *Input) weights() ([]float64, string) {
	if in.Weights == nil {
		return in.Options.weights(in.Op, len(in.Devices))
	}
	source := in.WeightSource
	if source == "" {
		source = "given"
	}
	return slices.Clone(in.Weights), source
}

// split divides the rows; those of one transmitter stay together.
func (in *Input) split(weights []float64) []Range {
	if in.Op.Class != SourceLane {
		return Split(in.Begin, in.Rows, weights)
	}
	return SplitBlocks(in.Begin, in.Rows, in.Op.Block, weights)
}

// Plan is the decision: who computes which rows in which chunks, by which
// transport, and why. It is a value that prints, compares and survives JSON.
type Plan struct {
	Op           Op        `json:"op"`
	Begin        int64     `json:"begin"` // the first row, where a call covers a window
	Rows         int64     `json:"rows"`
	Devices      []int     `json:"devices"` // ordinals, the master first
	Kind         Kind      `json:"kind"`
	Reason       string    `json:"reason"` // of Kind, in words
	Transport    Transport `json:"transport"`
	Weights      []float64 `json:"weights"`       // by position
	WeightSource string    `json:"weight_source"` // the option or calibration that they are from
	// Shards are the rows of each device, by position. Empty ones are not
	// launched.
	Shards []Range `json:"shards"`
	// Chunks are the launches, in the order in which they are submitted.
	Chunks []Chunk `json:"chunks"`
	// ChunkRows are the rows of a full chunk of each device, by position; 0
	// where a device has no rows.
	ChunkRows []int64 `json:"chunk_rows"`
	Source    Source  `json:"source"` // of ChunkRows
	// RecordSlots is the number of chunks whose results the master holds at
	// once for a hook; 0 without one, when the result is held whole.
	RecordSlots int `json:"record_slots,omitempty"`
	// Budget is the memory budget that the plan keeps, 0 for none.
	Budget    int64            `json:"budget,omitempty"`
	PerDevice []MemoryEstimate `json:"per_device"` // by position
	Floor     FloorReport      `json:"floor"`      // what remote shards are compared with
}

// BuildPlan decides how the rows run on the devices. It is pure: equal
// inputs give equal plans, and nothing is launched, timed or looked up.
//
// What cannot be carried out is refused here, before anything runs: with an
// [*OptionError], [*UnsupportedError], [*BudgetError], [*ChunkError] or
// [*TapeError].
//
// Cost: proportional to the number of chunks.
func BuildPlan(in Input) (Plan, error) {
	if err := in.check(); err != nil {
		return Plan{}, err
	}
	p := Plan{
		Op: in.Op, Begin: in.Begin, Rows: in.Rows, Devices: slices.Clone(in.Devices), Transport: in.Transport,
		Budget: in.Options.MemoryBudget,
	}
	p.Weights, p.WeightSource = in.weights()
	p.Shards = in.split(p.Weights)
	p.Floor = in.report(p.Shards)
	in.decide(&p)
	if in.Hook {
		p.RecordSlots = recordSlots(len(p.Devices))
	}
	p.PerDevice = in.memory(&p)
	if err := in.size(&p); err != nil {
		return Plan{}, err
	}
	counts, err := p.counts()
	if err != nil {
		return Plan{}, err
	}
	if most := slices.Max(counts); in.Tape && !in.Hook && p.Budget > 0 && most > 1 {
		return Plan{}, &TapeError{in.Op.Key, in.Op.Class, most, p.Budget}
	}
	p.Chunks = p.cut(counts)
	p.estimate(counts)
	return p, nil
}
