package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// reflectFlags is the command line of `raymux reflect`.
type reflectFlags struct {
	rayFlags
	bounces int
	dedup   bool
}

// Columns that only -dedup has: the first row of a path, and how many rows took it.
const (
	representative = "representative"
	discoveryCount = "discovery_count"
)

// reflect follows every ray from surface to surface.
func (p *program) reflect(ctx context.Context, args []string) error {
	f := reflectFlags{bounces: 1}
	fs := newFlagSet("reflect")
	fs.rays(&f.rayFlags)
	fs.once("bounces", "most reflections `B` of a ray, 1 to 64 (default 1)", func(s string) (err error) {
		if f.bounces, err = strconv.Atoi(s); err != nil || f.bounces < 1 || f.bounces > scene.MaxBounces {
			return fmt.Errorf("use a whole number from 1 to %d", scene.MaxBounces)
		}
		return nil
	})
	fs.BoolVar(&f.dedup, "dedup", false, "write one row per path, that of the first ray that took it; a path is an origin and a sequence of primitives")
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	var names []string
	for _, c := range scene.ChainColumns(scene.ChainAll) {
		names = append(names, c.Name)
	}
	if f.dedup {
		names = append(names, representative, discoveryCount)
	}
	if err := f.check(p, names); err != nil {
		return err
	}
	fields := chainFields(f.fields)
	return p.traceRays(ctx, &f.rayFlags, rayJob{
		whole: f.dedup,
		op:    func(rayBytes int64) chunked.Op { return multi.ReflectionsOp(f.bounces, fields, rayBytes) },
		trace: func(e *engine, rays scene.Rays, watch *stopwatch) ([]npy.Column, error) {
			return e.reflect(ctx, rays, &f, watch)
		},
	})
}

// chainFields are the fields that compute the chosen columns.
func chainFields(chosen []string) (fields scene.ChainFields) {
	for _, c := range scene.ChainColumns(scene.ChainAll) {
		if slices.Contains(chosen, c.Name) {
			fields |= c.Fields
		}
	}
	return fields
}

// reflect follows the rays and downloads the chosen columns.
func (e *engine) reflect(ctx context.Context, rays scene.Rays, f *reflectFlags, watch *stopwatch) (columns []npy.Column, err error) {
	st := e.scene.Stream()
	if e.streamed && !f.dedup && rays.O.Len() > 0 {
		return stream(e, e.scene.TraceReflectionsSeq(ctx, rays, f.bounces, chainFields(f.fields)), watch, func(c *scene.Chains) ([]npy.Column, error) {
			return downloadChains(ctx, st, c, f.fields, c.Rows(), nil)
		})
	}
	chains, err := e.scene.TraceReflections(ctx, rays, f.bounces, chainFields(f.fields))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, chains.Close()) }()
	if err := st.Synchronize(ctx); err != nil {
		return nil, err
	}
	watch.lap("trace")
	var first, count []int64 // of paths; nil without -dedup
	if f.dedup {
		if first, count, err = e.paths(ctx, rays, chains); err != nil {
			return nil, err
		}
		watch.lap("dedup")
	}
	rows := chains.Rows()
	if f.dedup {
		rows = len(first)
	}
	if columns, err = downloadChains(ctx, st, chains, f.fields, rows, first); err != nil {
		return nil, err
	}
	if slices.Contains(f.fields, representative) {
		columns = append(columns, npy.Longs(representative, first, rows))
	}
	if slices.Contains(f.fields, discoveryCount) {
		columns = append(columns, npy.Longs(discoveryCount, count, rows))
	}
	watch.lap("download")
	return columns, nil
}

// downloadChains downloads the chosen columns; see chainColumn.
func downloadChains(ctx context.Context, st *cuda.Stream, chains *scene.Chains, fields []string, rows int, chosen []int64) (columns []npy.Column, err error) {
	for _, c := range scene.ChainColumns(scene.ChainAll) {
		if !slices.Contains(fields, c.Name) {
			continue
		}
		column, err := chainColumn(ctx, st, chains, c, rows, chosen)
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	return columns, nil
}

// paths groups the rows by their paths: the first row of each, and how many there are.
func (e *engine) paths(ctx context.Context, rays scene.Rays, chains *scene.Chains) (first, count []int64, err error) {
	st := e.scene.Stream()
	unique, err := e.scene.DedupReflections(ctx, scene.Paths{PrimIDs: chains.PrimIDs, Bounces: chains.Bounces, RayO: rays.O})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, unique.Close()) }()
	if first, err = download(ctx, st, unique.Representative); err != nil {
		return nil, nil, err
	}
	count, err = download(ctx, st, unique.DiscoveryCount)
	return first, count, err
}

// chainColumn copies one column to the host: all rows, or where there are fewer of them, those that chosen names.
func chainColumn(ctx context.Context, st *cuda.Stream, chains *scene.Chains, c scene.ChainColumn, rows int, chosen []int64) (npy.Column, error) {
	shape := []int{rows, chains.Bounces}
	if c.Width > 1 {
		shape = append(shape, c.Width)
	}
	width := chains.Bounces * c.Width
	all := rows == chains.Rows()
	switch c.Name {
	case "valid":
		data, err := download(ctx, st, chains.Valid)
		return npy.Bools(c.Name, pick(data, width, all, chosen), shape...), err
	case "prim_ids":
		data, err := download(ctx, st, chains.PrimIDs)
		return npy.Ints(c.Name, pick(data, width, all, chosen), shape...), err
	}
	data, err := download(ctx, st, map[string]cuda.Slice[float32]{
		"t": chains.T, "image_sources": chains.ImageSources, "hit_points": chains.HitPoints,
		"normals": chains.Normals, "barycentric": chains.Barycentric,
	}[c.Name])
	return npy.Floats(c.Name, pick(data, width, all, chosen), shape...), err
}

// pick takes rows of so many values each.
func pick[T any](data []T, width int, all bool, chosen []int64) []T {
	if all || data == nil {
		return data
	}
	out := make([]T, 0, width*len(chosen))
	for _, row := range chosen {
		out = append(out, data[int(row)*width:(int(row)+1)*width]...)
	}
	return out
}
