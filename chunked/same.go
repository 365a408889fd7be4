package chunked

import (
	"maps"
	"slices"
)

// Same reports whether two inputs are equal, and with them their plans. It allocates
// nothing.
func (in *Input) Same(other *Input) bool {
	return in.Rows == other.Rows && in.Begin == other.Begin && in.Op == other.Op &&
		in.Hook == other.Hook && in.Tape == other.Tape && in.Transport == other.Transport && in.WeightSource == other.WeightSource &&
		sameList(in.Devices, other.Devices) && sameList(in.Weights, other.Weights) && in.Options.same(&other.Options)
}

func (o *Options) same(other *Options) bool {
	return o.ChunkRays == other.ChunkRays && o.MemoryBudget == other.MemoryBudget &&
		o.NoPipeline == other.NoPipeline && o.PipelineChunks == other.PipelineChunks &&
		o.MinRaysPerDevice == other.MinRaysPerDevice && o.MinLanesPerDevice == other.MinLanesPerDevice &&
		o.Transport == other.Transport && sameList(o.Weights, other.Weights) &&
		maps.EqualFunc(o.OperationWeights, other.OperationWeights, sameList)
}

// sameList tells an absent list from an empty one, which is no default.
func sameList[T comparable](a, b []T) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

// Clone is an equal input that shares nothing with in.
func (in *Input) Clone() Input {
	out := *in
	out.Devices, out.Weights = slices.Clone(in.Devices), slices.Clone(in.Weights)
	out.Options.Weights = slices.Clone(in.Options.Weights)
	out.Options.OperationWeights = maps.Clone(in.Options.OperationWeights)
	for key, w := range out.Options.OperationWeights {
		out.Options.OperationWeights[key] = slices.Clone(w)
	}
	return out
}

// Clone is an equal plan that shares nothing with p.
func (p *Plan) Clone() Plan {
	out := *p
	out.Devices, out.Weights, out.Shards = slices.Clone(p.Devices), slices.Clone(p.Weights), slices.Clone(p.Shards)
	out.Chunks, out.ChunkRows, out.PerDevice = slices.Clone(p.Chunks), slices.Clone(p.ChunkRows), slices.Clone(p.PerDevice)
	return out
}
