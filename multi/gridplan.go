package multi

import "github.com/raymux/raymux/chunked"

// Loops repeat a call, or a few that differ in their windows: as many plans are remembered,
// unless they are of more than so many chunks, which take longer to run than to plan.
const (
	rememberedPlans  = 8
	rememberedChunks = 64
)

// plans are the last ones that BuildPlan made, by all that they depend on. The holder of
// the turn uses them.
type plans struct {
	known [rememberedPlans]planned
	next  int
}

type planned struct {
	in   chunked.Input
	plan *chunked.Plan // nil: none
}

// build is BuildPlan. The plan must not be changed.
func (p *plans) build(in *chunked.Input) (*chunked.Plan, error) {
	for i := range p.known {
		if k := &p.known[i]; k.plan != nil && k.in.Same(in) {
			return k.plan, nil
		}
	}
	plan, err := chunked.BuildPlan(*in)
	if err != nil {
		return nil, err
	}
	if len(plan.Chunks) <= rememberedChunks {
		p.known[p.next] = planned{in.Clone(), &plan}
		p.next = (p.next + 1) % rememberedPlans
	}
	return &plan, nil
}
