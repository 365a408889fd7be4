package scene

import (
	"context"
	"time"

	"github.com/raymux/raymux/cuda"
)

// TimeBuild measures on the device how long the search tree of the CUDA backend
// takes to build over the committed geometry, from triangles to finished nodes with
// the waits for the host in between, and how long to refit. It builds trees that it
// throws away, one to get the memory and one to measure. For benchmarks.
//
// Errors: those of Build; *ArgumentError on another backend. It waits for the
// device.
func (s *Scene) TimeBuild(ctx context.Context) (build, refit time.Duration, err error) {
	if err := s.excludeReady(ctx); err != nil {
		return 0, 0, err
	}
	defer s.turns.done(true)
	x, ok := s.tables.search.(*treeSearch)
	if !ok {
		return 0, 0, badArg("TimeBuild", "s", "uses backend %s, whose structures have no stages to measure; want %s", s.Backend(), CUDA)
	}
	var marks [3]*cuda.Event
	defer func() {
		for _, e := range marks {
			err = firstError(err, e.Close())
		}
	}()
	for i := range marks {
		if marks[i], err = s.ctx.NewEvent(cuda.EventOptions{Timing: true}); err != nil {
			return 0, 0, err
		}
	}
	for range 2 {
		if err := x.timed(ctx, marks); err != nil {
			return 0, 0, err
		}
	}
	if build, err = marks[1].Since(marks[0]); err != nil {
		return 0, 0, err
	}
	refit, err = marks[2].Since(marks[1])
	return build, refit, err
}

// timed builds a tree beside x, with marks before, between and behind build and
// refit, and waits.
func (x *treeSearch) timed(ctx context.Context, marks [3]*cuda.Event) (err error) {
	s := x.s
	fresh := &treeSearch{s: s, t: x.t}
	defer func() { err = firstError(err, fresh.free()) }()
	if err := s.stream.Record(marks[0]); err != nil {
		return err
	}
	if _, err := fresh.construct(ctx); err != nil {
		return err
	}
	if err := s.stream.Record(marks[1]); err != nil {
		return err
	}
	if err := firstError(fresh.refit(), s.stream.Record(marks[2])); err != nil {
		return err
	}
	return s.stream.Synchronize(ctx)
}
