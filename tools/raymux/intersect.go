package main

import (
	"context"
	"errors"
	"slices"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// intersect finds the closest hit of every ray.
func (p *program) intersect(ctx context.Context, args []string) error {
	var f rayFlags
	fs := newFlagSet("intersect")
	fs.rays(&f)
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	var names []string
	for _, c := range scene.HitColumns(scene.All) {
		names = append(names, c.Name)
	}
	if err := f.check(p, names); err != nil {
		return err
	}
	flags := hitFlags(f.fields)
	return p.traceRays(ctx, &f, rayJob{
		op: func(rayBytes int64) chunked.Op { return multi.IntersectOp(flags, rayBytes) },
		trace: func(e *engine, rays scene.Rays, watch *stopwatch) ([]npy.Column, error) {
			return e.intersect(ctx, rays, f.fields, watch)
		},
	})
}

// ignoreHelp makes a printed help text a success.
func ignoreHelp(err error) error {
	if errors.Is(err, errHelpShown) {
		return nil
	}
	return err
}

// hitFlags are the flags that compute the chosen columns.
func hitFlags(fields []string) scene.Flags {
	flags := scene.None
	for _, c := range scene.HitColumns(scene.All) {
		if slices.Contains(fields, c.Name) {
			flags |= c.Flags
		}
	}
	return flags
}
