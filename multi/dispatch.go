package multi

import (
	"context"
	"time"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// Plan says how a batch of n rows of op would run, and why, without running
// it. A call that op describes executes exactly this plan; one with Offload, that of
// PlanStream.
func (s *Scene) Plan(op chunked.Op, n int64) (chunked.Plan, error) {
	return chunked.BuildPlan(s.planInput(s.withCopies(op, n), n))
}

// PlanStream is Plan for a call whose result is streamed, by Offload or as a sequence.
func (s *Scene) PlanStream(op chunked.Op, n int64) (chunked.Plan, error) {
	in := s.planInput(op, n)
	in.Hook = true
	return chunked.BuildPlan(in)
}

// withUnallocated is opts with the option that leaves the memory of a result to the time when there is a plan.
func withUnallocated(opts []scene.CallOption) []scene.CallOption {
	if len(opts) == 0 {
		return unallocated
	}
	return append(opts[:len(opts):len(opts)], unallocated...)
}

// ask prepares a query on the master and runs it as planned.
func ask[R any](ctx context.Context, s *Scene, o operation, opts []scene.CallOption,
	prepare func(master *scene.Scene, opts []scene.CallOption) (*R, *scene.Call, error)) (*R, error) {
	done, err := s.beginReady(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	// A plan that is refused allocates nothing, and a streamed call has no result.
	r, call, err := prepare(s.master().scene, withUnallocated(opts))
	if err != nil {
		return nil, s.master().blame(o.key, err)
	}
	to, info, err := options(call.Carried)
	if err != nil {
		return nil, err
	}
	op := o.of(call)
	s.called(op, call.Rows)
	if to != nil {
		if o.unstreamed != "" {
			return nil, &chunked.UnsupportedError{Operation: o.key, What: "Offload", Reason: o.unstreamed}
		}
		return nil, s.deliver(ctx, call, op, to, info)
	}
	in := s.planInput(op, call.Rows)
	plan, err := s.plans.build(&in)
	if err != nil {
		return nil, err
	}
	begin, rec := time.Now(), s.record(info, plan)
	if err := call.Allocate(); err != nil {
		return nil, s.master().fail("allocating the result", err)
	}
	if plan.Kind.Whole() {
		err = rec.whole(call.Stream).end(s.master().blame(o.key, call.Run())) // which abandons
	} else if err = s.execute(ctx, call, plan, nil, rec); err != nil {
		err = attach(err, call.Abandon())
	}
	if info != nil {
		info.fill(call, plan, false, time.Since(begin))
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// deliver runs a streamed call.
func (s *Scene) deliver(ctx context.Context, call *scene.Call, op chunked.Op, to *consumer, info *CallInfo) (err error) {
	defer func() { to.ended(err) }()
	if err := to.check(call); err != nil {
		return err
	}
	in := s.planInput(op, call.Rows)
	in.Hook = true
	plan, err := s.plans.build(&in)
	if err != nil {
		return err
	}
	begin, rec := time.Now(), s.record(info, plan)
	if len(plan.Chunks) > 0 {
		hook := &delivery{to: to, turn: &s.turn, account: offload.Account{Op: op.Key}}
		err = s.execute(ctx, call, plan, hook, rec)
	}
	if info != nil {
		info.fill(call, plan, true, time.Since(begin))
	}
	return err
}

// options are those of this package among the options of a call.
func options(carried []any) (to *consumer, info *CallInfo, err error) {
	for _, v := range carried {
		switch v := v.(type) {
		case *consumer:
			if to != nil {
				return nil, nil, badArg("Offload", "opts", "has Offload twice, want one consumer for each chunk")
			}
			to = v
		case *CallInfo:
			info = v
		default:
			return nil, nil, badArg("Carry", "opts", "has an option of another scheduler (%T)", v)
		}
	}
	return to, info, nil
}
