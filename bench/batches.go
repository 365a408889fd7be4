package main

import (
	"fmt"
	"slices"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// batchStudy times leading parts of the configurations' batches and splits the times into a cost per launch and a cost
// per ray.
func (r *run) batchStudy() ([]record.Study, error) {
	e := extentOn(r.host.driver.Emulated())
	batches := record.Study{
		ID: "batches", SourceSection: "bench --study batches",
		Description: "closest hits of the first rows of a configuration on one device, the fastest of interleaved rounds",
		Columns:     columns("config", "-", "tracer", "-", "rows", "-", "time", "ms", "by_rows", "ns/ray"),
	}
	fits := record.Study{
		ID: "batch_fit", SourceSection: "bench --study batches",
		Description: "least squares, relative, of time = per_launch + per_ray * rows over all sizes of the study batches; the wait for the device is part of the cost per launch",
		Columns:     columns("config", "-", "tracer", "-", "per_launch", "ms", "per_ray", "ns", "largest_deviation", "%"),
	}
	for _, name := range e.configs {
		config, err := workload.Find(name)
		if err != nil {
			return nil, err
		}
		times, err := r.cutBatches(config, e.batches)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, t := range times {
			for i, n := range e.batches {
				batches.Rows = append(batches.Rows, []any{name, t.tracer, float64(n), t.ns[i] / 1e6, t.ns[i] / float64(n)})
			}
			l := fitLine(e.batches, t.ns)
			fits.Rows = append(fits.Rows, []any{name, t.tracer, l.fixed / 1e6, l.perRow, 100 * l.worst})
		}
	}
	return []record.Study{batches, fits}, nil
}

// batchTimes are the times of one tracer, by batch.
type batchTimes struct {
	tracer string
	ns     []float64
}

// cutBatches times every tracer on the first rows of a configuration.
func (r *run) cutBatches(config workload.Config, sizes []int) (times []batchTimes, err error) {
	g, err := r.openGround(config.Meshes(), false)
	if err != nil {
		return nil, err
	}
	defer closing(g.close, &err)
	most := slices.Max(sizes)
	all, err := g.upload(config.Rays(most))
	if err != nil {
		return nil, err
	}
	hits, err := cuda.Alloc[float32](g.master(), 4*most)
	if err != nil {
		return nil, err
	}
	g.later(func() error { return cuda.Free(hits) })
	ways := g.ways(hits)
	for _, w := range ways {
		times = append(times, batchTimes{tracer: w.name})
	}
	for _, n := range sizes {
		batch, err := leading(all, n)
		if err != nil {
			return nil, err
		}
		ns, err := g.time(fmt.Sprintf("%s, %d rows", config.Name, n), ways, batch)
		if err != nil {
			return nil, err
		}
		for i := range times {
			times[i].ns = append(times[i].ns, ns[times[i].tracer])
		}
	}
	return times, nil
}

// leading is the first n rows of a batch.
func leading(all scene.Rays, n int) (part scene.Rays, err error) {
	if part.O, err = all.O.Sub(0, 3*n); err != nil {
		return part, err
	}
	part.D, err = all.D.Sub(0, 3*n)
	return part, err
}
