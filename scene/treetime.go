package scene

import (
	"context"
	"time"

	"github.com/raymux/raymux/cuda"
)

// TimeBuild measures on the device how long the backend's search structures take to
// build over the committed geometry, from triangles to what rays can search with the
// waits for the host in between, and how long to refit. It builds structures that it
// throws away, once to get the memory and once to measure. For benchmarks.
//
// OptiX refits dynamic meshes alone, and builds theirs so that it can; with static
// meshes only, refit is the time between two marks.
//
// Errors: those of Build. It waits for the device.
func (s *Scene) TimeBuild(ctx context.Context) (build, refit time.Duration, err error) {
	if err := s.excludeReady(ctx); err != nil {
		return 0, 0, err
	}
	defer s.turns.done(true)
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
		if err := s.tables.search.timed(ctx, marks); err != nil {
			return 0, 0, err
		}
	}
	if build, err = marks[1].Since(marks[0]); err != nil {
		return 0, 0, err
	}
	refit, err = marks[2].Since(marks[1])
	return build, refit, err
}

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

func (x *optixSearch) timed(ctx context.Context, marks [3]*cuda.Event) (err error) {
	s := x.s
	fresh, err := s.openOptixSearch(x.t, x.from)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, fresh.free()) }()
	if err := s.stream.Record(marks[0]); err != nil {
		return err
	}
	for i := range fresh.meshes {
		fresh.meshes[i].dynamic = x.meshes[i].dynamic
		if err := fresh.buildMesh(ctx, i); err != nil {
			return err
		}
	}
	if err := firstError(fresh.buildInstances(ctx), s.stream.Record(marks[1])); err != nil {
		return err
	}
	for i := range fresh.meshes {
		if !fresh.meshes[i].dynamic {
			continue
		}
		if err := fresh.refitMesh(i); err != nil {
			return err
		}
	}
	if err := s.stream.Record(marks[2]); err != nil {
		return err
	}
	return s.stream.Synchronize(ctx)
}
