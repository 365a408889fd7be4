package multi

import (
	"context"
	"time"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// prepared describes a prepared call of op: what a remote row reads is what its columns hold, and
// what it sends back beside the sums are the outputs.
func prepared(op chunked.Op, call *scene.GridCall) chunked.Op {
	in, out := call.Columns()
	op.In, op.Scratch = rowBytes(in), widths(out)
	op.Grid.Replicated += wholeBytes(in)
	if op.Key == keyReflGrid {
		return withReflCopies(op, call.Copies())
	}
	return op
}

// withReflCopies adds private copies of the sums.
func withReflCopies(op chunked.Op, n int64) chunked.Op {
	if n > 0 {
		op.Grid.Copies, op.Grid.Copy = 1+n, op.Grid.ReadOut/reflCellBytes*reflSumBytes
	}
	return op
}

// withCopies adds the private copies that a call of so many rows makes of its sums, where op
// does not say.
func (s *Scene) withCopies(op chunked.Op, rows int64) chunked.Op {
	if op.Key != keyReflGrid || op.Grid.Copies > 0 {
		return op
	}
	return withReflCopies(op, s.master().scene.ReflGridCopies(rows, op.Grid.ReadOut/reflCellBytes))
}

// unallocated leaves the memory of a result to the time when there is a plan.
var unallocated = []scene.CallOption{scene.Unallocated()}

// onMaster is what runGrid needs of a plan that leaves a call to the master.
var onMaster = chunked.Plan{Kind: chunked.KindMaster}

// belowFloor reports whether a call, of which a remote needs least lanes by default or more, is
// the master's whatever its plan depends on beside: no shard has more lanes than the call. Small
// calls are a few microseconds of host time, of which a plan would be a tenth.
func (s *Scene) belowFloor(key string, least int64, call *scene.GridCall) bool {
	o := &s.opts.Options
	if o.MinLanesPerDevice != 0 {
		least = o.MinLanesPerDevice
	}
	return call.Lanes < least && len(s.replicas) > 1 && len(call.Carried) == 0 && o.ChunkRays == 0 && o.MemoryBudget == 0 && !s.tries(key)
}

// askGrid prepares an accumulation, of which a remote needs least lanes by default or more, on the
// master and runs it as planned.
func askGrid[R any](ctx context.Context, s *Scene, key string, least int64, describe func() chunked.Op, opts []scene.CallOption,
	prepare func(master *scene.Scene, opts []scene.CallOption) (*R, *scene.GridCall, error)) (*R, error) {
	done, err := s.beginReady(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	all := unallocated
	if len(opts) > 0 {
		all = append(opts[:len(opts):len(opts)], unallocated...)
	}
	r, call, err := prepare(s.master().scene, all)
	if err != nil {
		return nil, s.master().blame(key, err)
	}
	if s.belowFloor(key, least, call) {
		if err := s.runGrid(ctx, key, call, &onMaster, nil); err != nil {
			return nil, err
		}
		s.called(chunked.Op{Key: key}, call.Lanes) // while the device is busy
		return r, nil
	}
	to, info, err := options(call.Carried)
	if err != nil {
		return nil, err
	}
	op := prepared(describe(), call)
	s.called(op, call.Lanes)
	in := s.planInput(op, call.Lanes)
	in.Begin, in.Hook = call.Begin, to != nil // which is refused
	plan, err := s.plans.build(&in)
	if err != nil {
		return nil, err
	}
	if info == nil {
		err = s.runGrid(ctx, key, call, plan, nil)
	} else {
		begin, rec := time.Now(), s.record(info, plan)
		err = s.runGrid(ctx, key, call, plan, rec)
		info.fillGrid(call, plan, time.Since(begin))
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// runGrid allocates the result and runs the plan. A call without lanes is that of the plain
// scene, whatever the plan is called.
func (s *Scene) runGrid(ctx context.Context, key string, call *scene.GridCall, plan *chunked.Plan, rec *recorder) error {
	whole := plan.Kind.Whole() || call.Lanes == 0
	if !whole {
		s.grid.cuts = appendCuts(s.grid.cuts[:0], plan)
		if err := call.Cut(s.grid.cuts); err != nil {
			return err
		}
	}
	if err := call.Allocate(); err != nil {
		return s.master().fail("allocating the result", err)
	}
	if whole {
		return rec.whole(call.Stream).end(s.master().blame(key, call.Run())) // which abandons
	}
	if err := s.accumulate(ctx, call, plan, rec); err != nil {
		return attach(err, call.Abandon())
	}
	return nil
}

// appendCuts appends the lanes at which the chunks of a plan begin, in ascending order: each
// shard lies behind those of the devices before.
func appendCuts(at []int64, plan *chunked.Plan) []int64 {
	for k, shard := range plan.Shards {
		for begin := shard.Begin; begin < shard.End; begin += plan.ChunkRows[k] {
			at = append(at, begin)
		}
	}
	return at
}

// fillGrid measures an accumulation that has been submitted. Its result has no rows.
func (i *CallInfo) fillGrid(call *scene.GridCall, plan *chunked.Plan, took time.Duration) {
	i.Submit = took
	all, out := call.Columns()
	in, acc := given(all), call.AccumulatorBytes()
	i.MeasuredWireBytes = rowBytes(in) + widths(out)
	i.HighWater = make([]int64, len(plan.Devices))
	i.HighWater[0] = call.ResultBytes()
	if !plan.Kind.Whole() && plan.Shards[0].Len() < plan.Rows && keeps(plan, call) {
		i.HighWater[0] += acc
	}
	copied := plan.Transport == chunked.Copy || plan.Transport == chunked.Host
	for k := 1; k < len(plan.Shards); k++ {
		n := plan.Shards[k].Len()
		if n == 0 {
			continue
		}
		i.FromMaster += wholeBytes(in) + n*rowBytes(in)
		i.ToMaster += acc + n*widths(out)
		i.HighWater[k] = acc
		if copied {
			rows := min(plan.ChunkRows[k], n)
			i.HighWater[k] += slotBytes(in, rows) + slotBytes(given(out), rows) + alignedWhole(in)
			i.HighWater[0] = call.ResultBytes() + acc
		}
	}
}
