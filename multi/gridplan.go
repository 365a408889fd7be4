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
	known []planned
	last  int // of them, the one that was used
	next  int // to be replaced
}

type planned struct {
	in   chunked.Input
	plan *chunked.Plan
}

// build is BuildPlan. The plan must not be changed.
func (p *plans) build(in *chunked.Input) (*chunked.Plan, error) {
	for i := range p.known {
		at := (p.last + i) % len(p.known) // most often, that of the last call
		if k := &p.known[at]; k.in.Same(in) {
			p.last = at
			return k.plan, nil
		}
	}
	plan, err := chunked.BuildPlan(*in)
	if err != nil {
		return nil, err
	}
	if len(plan.Chunks) > rememberedChunks {
		return &plan, nil
	}
	p.last = p.next
	p.next = (p.next + 1) % rememberedPlans
	if k := (planned{in.Clone(), &plan}); p.last == len(p.known) {
		p.known = append(p.known, k)
	} else {
		p.known[p.last] = k
	}
	return &plan, nil
}
