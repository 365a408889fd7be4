package optixabi

// PipelineStack is the room for the stacks of a pipeline.
type PipelineStack struct {
	DirectFromTraversal uint32 // bytes, for direct callables of any-hit and intersection programs
	DirectFromState     uint32 // bytes, for direct callables of the other programs
	Continuation        uint32 // bytes, see ContinuationStack
	MaxGraphDepth       uint32 // levels of the graph: 1 for a mesh alone, 2 for instances of meshes
}

// PipelineSetStackSize sets the room for the stacks of a pipeline.
func (t *Table) PipelineSetStackSize(p Pipeline, s PipelineStack) error {
	return t.do(fnPipelineSetStackSize, uintptr(p), uintptr(s.DirectFromTraversal), uintptr(s.DirectFromState),
		uintptr(s.Continuation), uintptr(s.MaxGraphDepth))
}

// ContinuationStack is the continuation stack in bytes of a pipeline without
// callables, from the needs of all its program groups.
//
// The deepest chain is the raygen program, then one closest-hit or miss
// program for every nested trace call but the last, then at the bottom either
// another of those or an intersection program that calls an any-hit program.
func ContinuationStack(maxTraceDepth int, groups ...StackSizes) uint32 {
	var raygen, shade, closest, traversal uint32
	var intersect, anyHit uint32
	for _, g := range groups {
		raygen = max(raygen, g.CSSRG)
		closest = max(closest, g.CSSCH, g.CSSMS)
		intersect = max(intersect, g.CSSIS)
		anyHit = max(anyHit, g.CSSAH)
	}
	if maxTraceDepth < 1 {
		return raygen
	}
	shade = uint32(maxTraceDepth-1) * closest
	traversal = max(closest, intersect+anyHit)
	return raygen + shade + traversal
}
