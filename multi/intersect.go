package multi

import (
	"context"
	"errors"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// winnerBytes is what a remote row of Intersect sends back.
const winnerBytes = 4

// IntersectOp describes Intersect with these columns to the planner.
// rayBytes is 24, plus 4 with TMax, plus 1 with Active.
func IntersectOp(flags scene.Flags, rayBytes int64) chunked.Op {
	key := "intersect_full"
	if flags == scene.None {
		key = "intersect_reduced"
	}
	return chunked.Op{Key: key, Family: "intersect", In: rayBytes, Wire: winnerBytes, Record: scene.RowBytes(flags)}
}

// Plan says how a batch of n rows of op would run, and why, without running
// it. A call executes exactly this plan.
func (s *Scene) Plan(op chunked.Op, n int64) (chunked.Plan, error) {
	return chunked.BuildPlan(chunked.Input{Op: op, Rows: n, Devices: s.devices, Options: s.opts.Options, Transport: s.transport})
}

// Intersect finds the closest hit of every ray, as scene.Intersect does, on
// all devices of the set. Rays and results are on the master; the call
// returns when the work is enqueued on the caller's stream.
//
// Cost, per remote device with rows: one launch, one launch of finalize on
// the master, five event operations; with the Copy transport also one copy
// per ray column and one of winners. No wait, and no driver allocation once
// the pools are warm.
func (s *Scene) Intersect(ctx context.Context, rays scene.Rays, flags scene.Flags, opts ...scene.CallOption) (*scene.Hits, error) {
	done, err := s.beginReady(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	m := s.master().scene
	n, err := m.CheckRays(rays, flags)
	if err != nil {
		return nil, err
	}
	plan, err := s.Plan(IntersectOp(flags, rays.BytesPerRow()), n)
	if err != nil {
		return nil, err
	}
	if plan.Kind == chunked.KindMaster {
		return m.Intersect(ctx, rays, flags, opts...)
	}
	call, err := m.Prepare(ctx, rays, flags, opts...)
	if err != nil {
		return nil, err
	}
	if err := s.dispatch(call, rays, plan); err != nil {
		call.Abandon()
		return nil, err
	}
	return call.Hits, nil
}

// dispatch submits the shares: remotes first, so that they start while the
// master's own share is being enqueued.
func (s *Scene) dispatch(call *scene.Call, rays scene.Rays, plan chunked.Plan) (err error) {
	st := call.Stream
	if err := st.Record(s.master().entry); err != nil {
		return s.master().fail("recording the entry event", err)
	}
	started := 0
	// On success the caller's stream has waited for every share. On a failure
	// it must still end after every remote that may touch its buffers.
	defer func() {
		if err == nil {
			return
		}
		for _, r := range s.replicas[1 : 1+started] {
			if e := s.join(r, st); e != nil {
				err = s.diverge("Intersect", errors.Join(err, e))
			}
		}
	}()
	for k, r := range s.replicas[1:] {
		started = k + 1
		share := plan.Shards[k+1]
		if share.Len() == 0 {
			continue
		}
		if err := s.submit(r, call, rays, share, plan.Kind); err != nil {
			return err
		}
	}
	m, own := s.master(), plan.Shards[0]
	if err := m.scene.Traverse(st, rays, call.Hits.Winners(), own.Begin, own.Len()); err != nil {
		return m.fail("Traverse", err)
	}
	if err := m.scene.Finalize(st, rays, call.Hits, own.Begin, own.Len()); err != nil {
		return m.fail("Finalize", err)
	}
	for k, r := range s.replicas[1:] {
		share := plan.Shards[k+1]
		if share.Len() == 0 {
			continue
		}
		if err := st.Wait(r.done); err != nil {
			return r.fail("waiting for the share", err)
		}
		if err := m.scene.Finalize(st, rays, call.Hits, share.Begin, share.Len()); err != nil {
			return m.fail("Finalize of remote rows", err)
		}
	}
	return nil
}

// join makes the caller's stream wait for everything on r's private stream.
func (s *Scene) join(r *replica, st *cuda.Stream) error {
	if err := r.stream.Record(r.done); err != nil {
		return r.fail("recording the exit event", err)
	}
	return r.fail("waiting for the exit event", st.Wait(r.done))
}

// submit enqueues one remote's share on its private stream.
func (s *Scene) submit(r *replica, call *scene.Call, rays scene.Rays, share chunked.Range, kind chunked.Kind) error {
	if err := r.stream.Wait(s.master().entry); err != nil {
		return r.fail("waiting for the entry event", err)
	}
	var err error
	if kind == chunked.KindDirect {
		err = r.scene.Traverse(r.stream, rays, call.Hits.Winners(), share.Begin, share.Len())
	} else {
		err = r.staged(rays, call.Hits.Winners(), share)
	}
	if err != nil {
		return r.fail("Traverse", err)
	}
	return r.fail("recording the exit event", r.stream.Record(r.done))
}

// staged copies the share's rays to the remote, searches there, and copies
// the winners back. The buffers come from the remote's pool and return to it
// in stream order.
func (r *replica) staged(rays scene.Rays, winners cuda.Slice[int32], share chunked.Range) error {
	var local scene.Rays
	defer func() {
		free(r, local.O)
		free(r, local.D)
		free(r, local.TMax)
		free(r, local.Active)
	}()
	var err error
	if local.O, err = stage(r, rays.O, share, 3); err != nil {
		return err
	}
	if local.D, err = stage(r, rays.D, share, 3); err != nil {
		return err
	}
	if local.TMax, err = stage(r, rays.TMax, share, 1); err != nil {
		return err
	}
	if local.Active, err = stage(r, rays.Active, share, 1); err != nil {
		return err
	}
	w, err := cuda.PoolAlloc[int32](r.ctx.Pool(), r.stream, int(share.Len()))
	if err != nil {
		return err
	}
	defer free(r, w)
	if err := r.scene.Traverse(r.stream, local, w, 0, share.Len()); err != nil {
		return err
	}
	home, err := winners.Sub(int(share.Begin), int(share.End))
	if err != nil {
		return err
	}
	return cuda.CopyAsync(r.stream, home, w)
}

// stage copies rows of one column to the remote; an absent column stays so.
func stage[T cuda.Scalar](r *replica, col cuda.Slice[T], share chunked.Range, width int64) (cuda.Slice[T], error) {
	var none cuda.Slice[T]
	if col.IsNil() {
		return none, nil
	}
	rows, err := col.Sub(int(share.Begin*width), int(share.End*width))
	if err != nil {
		return none, err
	}
	dst, err := cuda.PoolAlloc[T](r.ctx.Pool(), r.stream, rows.Len())
	if err != nil {
		return none, err
	}
	if err := cuda.CopyAsync(r.stream, dst, rows); err != nil {
		free(r, dst)
		return none, err
	}
	return dst, nil
}

func free[T cuda.Scalar](r *replica, s cuda.Slice[T]) {
	if !s.IsNil() {
		cuda.PoolFree(r.ctx.Pool(), r.stream, s)
	}
}
