package scene

import (
	"context"
	"slices"
	"time"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/optixabi"
)

// maxLanes is how many pipelines of one kind serve the streams of a device before
// launches on further streams wait for each other.
const maxLanes = 16

// optixLane is a pipeline with the memory for its launch parameters. Launches of one
// pipeline must not overlap: a lane serves one stream at a time, whose order keeps
// them apart, and one submission at a time.
type optixLane struct {
	pipeline optixabi.Pipeline
	params   cuda.Slice[uint64]
	done     *cuda.Event  // recorded after every launch
	stream   *cuda.Stream // of the last launch
	busy     bool         // a goroutine submits with it
}

// acquire returns a lane for a submission on st, on which its last launch comes
// before whatever is enqueued from now on. release must follow.
func (p *optixPrograms) acquire(st *cuda.Stream) (*optixLane, error) {
	l, idle := p.pick(st)
	switch {
	case l == nil:
		return p.link()
	case idle || l.stream == nil || l.stream == st:
		return l, nil
	}
	// The oldest lane of other streams: free to go if its work has ended.
	ended, err := l.done.Query()
	if err == nil && !ended {
		if p.count() < maxLanes {
			p.release(l)
			return p.link()
		}
		err = st.Wait(l.done)
	}
	if err != nil {
		p.release(l)
		return nil, err
	}
	return l, nil
}

// pick marks a lane as busy: one that needs no check (idle), else the least recently
// used one, or none.
func (p *optixPrograms) pick(st *cuda.Stream) (l *optixLane, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := func(l *optixLane) bool { return !l.busy }
	i := slices.IndexFunc(p.lanes, func(l *optixLane) bool { return free(l) && l.stream == st })
	if i < 0 {
		i = slices.IndexFunc(p.lanes, free)
	}
	if i < 0 {
		return nil, false
	}
	l = p.lanes[i]
	l.busy = true
	return l, l.stream == st
}

func (p *optixPrograms) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lanes)
}

// release makes the lane the most recently used one.
func (p *optixPrograms) release(l *optixLane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.busy = false
	if i := slices.Index(p.lanes, l); i >= 0 {
		p.lanes = slices.Delete(p.lanes, i, i+1)
	}
	p.lanes = append(p.lanes, l)
}

// link makes a lane, which is busy. Pipelines of the same programs are linked one
// after the other.
func (p *optixPrograms) link() (_ *optixLane, err error) {
	p.linking <- struct{}{}
	defer func() { <-p.linking }()
	x := p.dev
	l := &optixLane{busy: true}
	defer func() {
		if err != nil {
			err = firstError(err, l.destroy(x))
		}
	}()
	start := time.Now()
	err = x.create(func() error {
		pipeline, _, err := x.table.PipelineCreate(x.handle, &p.compile, optixabi.PipelineLinkOptions{MaxTraceDepth: 1}, p.groups)
		l.pipeline = pipeline
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := x.do(func() error { return p.setStack(l.pipeline) }); err != nil {
		return nil, err
	}
	x.took(&x.first.Pipeline, start)
	if l.params, err = cuda.Alloc[uint64](x.ctx, int(p.key.kind.paramBytes/8)); err != nil {
		return nil, err
	}
	if l.done, err = x.ctx.NewEvent(cuda.EventOptions{}); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.lanes = append(p.lanes, l)
	p.mu.Unlock()
	return l, nil
}

// setStack gives a pipeline the stack that its programs need and no more.
func (p *optixPrograms) setStack(pipeline optixabi.Pipeline) error {
	sizes := make([]optixabi.StackSizes, len(p.groups))
	for i, g := range p.groups {
		var err error
		if sizes[i], err = p.dev.table.ProgramGroupStackSizes(g, pipeline); err != nil {
			return err
		}
	}
	return p.dev.table.PipelineSetStackSize(pipeline, optixabi.PipelineStack{
		Continuation: optixabi.ContinuationStack(1, sizes...), MaxGraphDepth: uint32(p.key.levels),
	})
}

func (l *optixLane) destroy(x *optixDevice) error {
	var errs []error
	if l.done != nil {
		errs = append(errs, l.done.Synchronize(context.Background()), l.done.Close())
	}
	if l.pipeline != 0 && x.ctx.Lost() == nil {
		errs = append(errs, x.do(func() error { return x.table.PipelineDestroy(l.pipeline) }))
	}
	return firstError(append(errs, cuda.Free(l.params))...)
}

// launch enqueues one program per row on st. params are those of the kernel that
// writes the launch parameters to the lane's memory, at address to.
func (p *optixPrograms) launch(sc cuda.Scope, st *cuda.Stream, rows int64, params func(to uint64) []byte) error {
	l, err := p.acquire(st)
	if err != nil {
		return err
	}
	defer p.release(l)
	one := cuapi.Dim3{X: 1, Y: 1, Z: 1}
	if err := sc.Launch(p.store, st, one, one, 0, params(l.params.Addr())); err != nil {
		return err
	}
	l.stream = st
	err = p.dev.table.Launch(l.pipeline, uintptr(st.Handle()),
		optixabi.Buffer{Addr: l.params.Addr(), Size: l.params.Bytes()}, &p.table, uint32(rows), 1, 1)
	return firstError(err, sc.Record(st, l.done))
}

// uploadNow copies bytes to new memory and waits.
func uploadNow(c *cuda.Context, src []byte) (_ cuda.Slice[uint8], err error) {
	st, err := c.NewStream(cuda.StreamOptions{})
	if err != nil {
		return cuda.Slice[uint8]{}, err
	}
	defer func() { err = firstError(err, st.Close()) }()
	dst, err := cuda.Upload(context.Background(), st, src)
	if err != nil {
		return cuda.Slice[uint8]{}, err
	}
	if err := st.Synchronize(context.Background()); err != nil {
		return cuda.Slice[uint8]{}, firstError(err, cuda.Free(dst))
	}
	return dst, nil
}
