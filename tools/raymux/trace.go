package main

import (
	"context"
	"errors"
	"slices"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// trace uploads the batch and runs the job on it.
func (e *engine) trace(ctx context.Context, h hostRays, job rayJob, watch *stopwatch) (columns []npy.Column, err error) {
	st := e.scene.Stream()
	batch, err := upload(ctx, st, h)
	defer func() { err = errors.Join(err, freeRays(st, batch)) }()
	if err != nil {
		return nil, err
	}
	watch.lap("upload")
	return job.trace(e, batch, watch)
}

// intersect finds the closest hits and downloads the chosen columns.
func (e *engine) intersect(ctx context.Context, batch scene.Rays, fields []string, watch *stopwatch) (columns []npy.Column, err error) {
	st := e.scene.Stream()
	if e.streamed && batch.O.Len() > 0 {
		return stream(e, e.scene.IntersectSeq(ctx, batch, hitFlags(fields)), watch, func(h *scene.Hits) ([]npy.Column, error) {
			return downloadHits(ctx, st, h, fields)
		})
	}
	hits, err := e.scene.Intersect(ctx, batch, hitFlags(fields))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hits.Close()) }()
	if err := st.Synchronize(ctx); err != nil {
		return nil, err
	}
	watch.lap("trace")
	if columns, err = downloadHits(ctx, st, hits, fields); err != nil {
		return nil, err
	}
	watch.lap("download")
	return columns, nil
}

// downloadHits downloads the chosen columns.
func downloadHits(ctx context.Context, st *cuda.Stream, hits *scene.Hits, fields []string) (columns []npy.Column, err error) {
	for _, c := range scene.HitColumns(hits.Flags) {
		if !slices.Contains(fields, c.Name) {
			continue
		}
		column, err := downloadColumn(ctx, st, hits, c)
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	return columns, nil
}

// upload copies the batch to the master. On a failure it returns what it has, to be freed.
func upload(ctx context.Context, st *cuda.Stream, h hostRays) (r scene.Rays, err error) {
	if r.O, err = cuda.Upload(ctx, st, h.origins); err != nil {
		return r, err
	}
	if r.D, err = cuda.Upload(ctx, st, h.directions); err != nil {
		return r, err
	}
	if h.tmax != nil {
		if r.TMax, err = cuda.Upload(ctx, st, h.tmax); err != nil {
			return r, err
		}
	}
	if h.active != nil {
		r.Active, err = cuda.Upload(ctx, st, h.active)
	}
	return r, err
}

// freeRays returns the batch to the pool once the stream has used it.
func freeRays(st *cuda.Stream, r scene.Rays) error {
	return errors.Join(free(st, r.O), free(st, r.D), free(st, r.TMax), free(st, r.Active))
}

func free[T cuda.Scalar](st *cuda.Stream, s cuda.Slice[T]) error {
	if s.IsNil() {
		return nil
	}
	return cuda.PoolFree(st.Context().Pool(), st, s)
}

// downloadColumn copies one column of the result to the host.
func downloadColumn(ctx context.Context, st *cuda.Stream, hits *scene.Hits, c scene.Column) (npy.Column, error) {
	floats := map[string]cuda.Slice[float32]{
		"t": hits.T, "p": hits.P, "n": hits.N, "geo_n": hits.GeoN, "uv": hits.UV, "barycentric": hits.Barycentric,
	}
	ints := map[string]cuda.Slice[int32]{
		"shape_id": hits.ShapeID, "prim_id": hits.PrimID, "local_prim_id": hits.LocalPrimID, "global_prim_id": hits.GlobalPrimID,
	}
	shape := []int{hits.Rows()}
	if c.Width > 1 {
		shape = append(shape, c.Width)
	}
	if s, ok := ints[c.Name]; ok {
		data, err := download(ctx, st, s)
		return npy.Ints(c.Name, data, shape...), err
	}
	data, err := download(ctx, st, floats[c.Name])
	return npy.Floats(c.Name, data, shape...), err
}

// download copies a column to the host; one of no rows is absent.
func download[T cuda.Scalar](ctx context.Context, st *cuda.Stream, s cuda.Slice[T]) ([]T, error) {
	if s.Len() == 0 {
		return nil, nil
	}
	return cuda.Download(ctx, st, s)
}
