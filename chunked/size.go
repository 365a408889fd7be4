package chunked

import (
	"fmt"
	"math"
	"slices"
)

// Source says what the size of the chunks comes from.
type Source string

// Sources of chunk sizes.
const (
	SourceShard     Source = "shard"     // every shard is one chunk
	SourceLanes     Source = "lanes"     // the same for an accumulation
	SourcePipeline  Source = "pipeline"  // remote shards are cut for overlap
	SourceRequested Source = "requested" // Options.ChunkRays
	SourceBudget    Source = "budget"    // Options.MemoryBudget
	SourceLaunch    Source = "launch"    // the most rows of one launch
)

// size chooses the rows of a full chunk of every device.
func (in *Input) size(p *Plan) error {
	if err := in.common(p); err != nil {
		return err
	}
	capped := false
	for k, rows := range p.ChunkRows {
		capped = capped || min(rows, p.Shards[k].Len()) > MaxLaunchRows
		p.ChunkRows[k] = min(rows, MaxLaunchRows)
	}
	if capped {
		in.relaunch(p)
	}
	return nil
}

// relaunch describes a plan whose chunks the limit of a launch has cut. A
// single-device call is one launch, so that it becomes a chunked one.
func (in *Input) relaunch(p *Plan) {
	p.Source = SourceLaunch
	switch {
	case p.Kind.Whole() && in.Op.Class == GridReduce:
		p.Kind = KindLaneChunked
	case p.Kind.Whole():
		p.Kind = KindChunked
	}
	p.Reason += fmt.Sprintf("; one launch covers at most %d %s", int64(MaxLaunchRows), in.Op.rows())
}

// common is size without the limit of a launch.
func (in *Input) common(p *Plan) error {
	p.ChunkRows = make([]int64, len(p.Shards))
	p.Source = SourceShard
	if in.Op.Class == GridReduce {
		p.Source = SourceLanes
	}
	if !p.Kind.Chunked() {
		in.natural(p)
		return nil
	}
	size, err := in.fit(p)
	if err != nil {
		return err
	}
	for k, s := range p.Shards {
		if s.Len() > 0 {
			p.ChunkRows[k] = size
		}
	}
	why := fmt.Sprintf("chunks of %d %s: ", size, in.Op.rows())
	switch {
	case in.Options.ChunkRays > 0:
		p.Source = SourceRequested
		why += "as requested"
	case in.Options.MemoryBudget > 0:
		p.Source = SourceBudget
		why += fmt.Sprintf("the largest within %d B", in.Options.MemoryBudget)
	default:
		why = "results are streamed, each shard in one chunk"
	}
	if p.Reason != "" { // why remotes do or do not take part
		why = p.Reason + "; " + why
	}
	p.Reason = why
	return nil
}

// natural leaves shards whole, but for those that are copied while others are
// being computed.
func (in *Input) natural(p *Plan) {
	pieces := int64(in.Options.PipelineChunks)
	if pieces == 0 {
		pieces = DefaultPipelineChunks
	}
	for k, s := range p.Shards {
		p.ChunkRows[k] = s.Len()
		if k > 0 && p.Kind == KindPipelined {
			p.Source = SourcePipeline
			p.ChunkRows[k] = ceilDiv(s.Len(), pieces)
		}
	}
}

// fit is the largest chunk, of the requested size if there is one, that every
// device can hold as often as it has to.
func (in *Input) fit(p *Plan) (int64, error) {
	size := in.Rows
	if in.Options.sized() {
		size = min(size, MaxLaunchRows)
	}
	if in.Options.ChunkRays > 0 {
		size = min(size, in.Options.ChunkRays)
	}
	if in.Options.MemoryBudget == 0 {
		return size, nil
	}
	if err := in.short(p); err != nil {
		return 0, err
	}
	k, bound := in.tightest(p)
	if bound >= size {
		return size, nil
	}
	if in.Options.ChunkRays > 0 {
		m := &p.PerDevice[k]
		return 0, &ChunkError{
			Operation: in.Op.Key, Position: k, Device: p.Devices[k], Rows: size, Resident: m.Resident,
			Bytes: m.need(size, m.Resident), Budget: in.Options.MemoryBudget, Largest: bound,
		}
	}
	return bound, nil
}

// tightest is the device that allows the smallest chunks within the budget, the first of them, and
// these.
func (in *Input) tightest(p *Plan) (k int, least int64) {
	least = math.MaxInt64
	for i := range p.PerDevice {
		m := &p.PerDevice[i]
		bound := m.bound(in.Options.MemoryBudget)
		if bound < math.MaxInt64 {
			m.Bound = bound
		}
		if bound < least {
			k, least = i, bound
		}
	}
	return k, least
}

// short is the error for a budget below what a device needs at least, of the one that needs most:
// with its minimum, all have enough.
func (in *Input) short(p *Plan) error {
	k, least := 0, int64(-1)
	for i := range p.PerDevice {
		m := &p.PerDevice[i]
		if n := m.need(min(1, in.Rows), m.Resident); n > least {
			k, least = i, n
		}
	}
	if least <= in.Options.MemoryBudget && least != math.MaxInt64 {
		return nil
	}
	e := &BudgetError{
		Operation: in.Op.Key, Position: k, Device: p.Devices[k], Budget: in.Options.MemoryBudget, Minimum: least,
		Part: "chunks of one row do not fit", Advice: "Raise it",
	}
	switch m := &p.PerDevice[k]; {
	case m.Fixed <= e.Budget:
	case in.Op.Class == GridReduce:
		e.Part = "the accumulators do not fit"
		e.Advice += ", or use a grid of fewer cells"
	default:
		e.Part = "the returned result does not fit"
		e.Advice += ", or stream the result (Offload)"
	}
	return e
}

// counts is the number of chunks of each device. Too many are refused before
// their list is made.
func (p *Plan) counts() ([]int64, error) {
	counts, total := make([]int64, len(p.Shards)), int64(0)
	for k, s := range p.Shards {
		if n := s.Len(); n > 0 {
			counts[k] = ceilDiv(n, p.ChunkRows[k])
			total = add(total, counts[k])
		}
	}
	if total <= MaxChunks {
		return counts, nil
	}
	option := map[Source]string{SourceRequested: "ChunkRays", SourceBudget: "MemoryBudget", SourcePipeline: "PipelineChunks"}[p.Source]
	if option == "" {
		option = "Rows"
	}
	return nil, &OptionError{option, fmt.Sprintf("%s: %d chunks of up to %d %s, a plan has at most %d: use larger chunks or smaller batches",
		p.Op.Key, total, slices.Max(p.ChunkRows), p.Op.rows(), int64(MaxChunks))}
}
