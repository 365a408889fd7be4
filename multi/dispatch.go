package multi

import (
	"context"
	"errors"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// Plan says how a batch of n rows of op would run, and why, without running
// it. A call executes exactly this plan.
func (s *Scene) Plan(op chunked.Op, n int64) (chunked.Plan, error) {
	opts := s.opts.Options
	opts.NoPipeline = true // dispatch sends a share in one piece
	return chunked.BuildPlan(chunked.Input{Op: op, Rows: n, Devices: s.devices, Options: opts, Transport: s.transport})
}

// ask prepares a query on the master and runs it as planned.
func ask[R any](ctx context.Context, s *Scene, o operation, prepare func(master *scene.Scene) (*R, *scene.Call, error)) (*R, error) {
	done, err := s.beginReady(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	r, call, err := prepare(s.master().scene)
	if err != nil {
		return nil, err
	}
	plan, err := s.Plan(o.of(call), call.Rows)
	if err != nil {
		return nil, errors.Join(err, call.Abandon())
	}
	if plan.Kind.Whole() {
		if err := call.Run(); err != nil {
			return nil, err
		}
		return r, nil
	}
	if err := s.dispatch(call, plan); err != nil {
		call.Abandon()
		return nil, err
	}
	return r, nil
}

// dispatch submits the shares: remotes first, so that they start while the
// master's own share is being enqueued.
func (s *Scene) dispatch(call *scene.Call, plan chunked.Plan) (err error) {
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
				err = s.diverge(plan.Op.Key, errors.Join(err, e))
			}
		}
	}()
	for k, r := range s.replicas[1:] {
		started = k + 1
		share := plan.Shards[k+1]
		if share.Len() == 0 {
			continue
		}
		if err := s.submit(r, call, share, plan.Kind); err != nil {
			return err
		}
	}
	m, own := s.master(), plan.Shards[0]
	in, out := call.Columns()
	if err := call.Search(m.scene, st, in, out, own.Begin, own.Len()); err != nil {
		return m.fail("search", err)
	}
	if err := call.Finalize(own.Begin, own.Len()); err != nil {
		return m.fail("finalize", err)
	}
	for k, r := range s.replicas[1:] {
		share := plan.Shards[k+1]
		if share.Len() == 0 {
			continue
		}
		if err := st.Wait(r.done); err != nil {
			return r.fail("waiting for the share", err)
		}
		if err := call.Finalize(share.Begin, share.Len()); err != nil {
			return m.fail("finalize of remote rows", err)
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
func (s *Scene) submit(r *replica, call *scene.Call, share chunked.Range, kind chunked.Kind) error {
	if err := r.stream.Wait(s.master().entry); err != nil {
		return r.fail("waiting for the entry event", err)
	}
	in, out := call.Columns()
	var err error
	if kind == chunked.KindDirect {
		err = call.Search(r.scene, r.stream, in, out, share.Begin, share.Len())
	} else {
		err = r.staged(call, in, out, share)
	}
	if err != nil {
		return r.fail("search", err)
	}
	return r.fail("recording the exit event", r.stream.Record(r.done))
}

// staged copies what the share's rows read to the remote, searches there, and
// copies back what the search has written. The buffers come from the remote's
// pool and return to it in stream order.
func (r *replica) staged(call *scene.Call, in, out []scene.RowColumn, share chunked.Range) error {
	localIn, localOut := make([]scene.RowColumn, len(in)), make([]scene.RowColumn, len(out))
	defer func() {
		for _, c := range append(localIn, localOut...) {
			if !c.Data.IsNil() {
				cuda.PoolFree(r.ctx.Pool(), r.stream, c.Data)
			}
		}
	}()
	for i, c := range in {
		rows, err := r.stage(&localIn[i], c, share)
		if err == nil && !c.Data.IsNil() {
			err = cuda.CopyAsync(r.stream, localIn[i].Data, rows)
		}
		if err != nil {
			return err
		}
	}
	home := make([]cuda.Slice[uint8], len(out))
	for i, c := range out {
		var err error
		if home[i], err = r.stage(&localOut[i], c, share); err != nil {
			return err
		}
	}
	if err := call.Search(r.scene, r.stream, localIn, localOut, 0, share.Len()); err != nil {
		return err
	}
	for i, c := range localOut {
		if c.Data.IsNil() {
			continue
		}
		if err := cuda.CopyAsync(r.stream, home[i], c.Data); err != nil {
			return err
		}
	}
	return nil
}

// stage allocates the remote's copy of the share's rows of a column, and returns
// these rows; an absent column stays so.
func (r *replica) stage(local *scene.RowColumn, c scene.RowColumn, share chunked.Range) (rows cuda.Slice[uint8], err error) {
	local.Width = c.Width
	if c.Data.IsNil() {
		return rows, nil
	}
	width := int64(c.Width)
	if rows, err = c.Data.Sub(int(share.Begin*width), int(share.End*width)); err != nil {
		return rows, err
	}
	local.Data, err = cuda.PoolAlloc[uint8](r.ctx.Pool(), r.stream, rows.Len())
	return rows, err
}
