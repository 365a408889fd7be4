package main

import (
	"fmt"
	"slices"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/scene"
)

// buildStudy times how long the backends build and refit their structures, and what searches in them cost: a quick
// build that makes slow searches is no gain.
func (r *run) buildStudy() ([]record.Study, error) {
	list, err := r.geometries()
	if err != nil {
		return nil, err
	}
	study := record.Study{
		ID: "builds", SourceSection: "bench --study builds",
		Description: "structures built and refitted on one device, from triangles there to what rays can search, waits for the host included, the fastest of interleaved rounds; search is the winners of rays from inside the box",
		Columns:     columns("scene", "-", "triangles", "-", "tracer", "-", "build", "ms", "refit", "ms", "search", "ns/ray"),
	}
	for _, geometry := range list {
		rows, err := r.builds(geometry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", geometry.name, err)
		}
		study.Rows = append(study.Rows, rows...)
	}
	return []record.Study{study}, nil
}

// traceHostTree is our own search in a tree that the host has built, the best there is.
const traceHostTree = "cuda_host_tree"

// builds makes the rows of one scene, which is dynamic, so that every structure can be refitted.
func (r *run) builds(geometry geometry) (rows [][]any, err error) {
	g, err := r.openGround([]workload.Mesh{geometry.mesh}, true)
	if err != nil {
		return nil, err
	}
	defer closing(g.close, &err)
	best, err := g.scene(scene.Options{Backend: scene.CUDA, Builder: scene.BuilderSAH}, true)
	if err != nil {
		return nil, err
	}
	scenes := append(g.scenes(), best)
	names := append([]string{traceCUDA, traceOptiX}[:len(scenes)-1], traceHostTree)

	side := r.pictureSide()
	lo, hi := geometry.mesh.Box()
	batch, err := g.upload(workload.BoxRays(workload.VolumeSeed, lo, hi, side*side))
	if err != nil {
		return nil, err
	}
	var ways []way
	for i, s := range scenes {
		ways = append(ways, way{names[i], func(batch scene.Rays) (func() error, error) { return searchOnly(s, batch) }})
	}
	ns, err := g.time(geometry.name+" builds", ways, batch)
	if err != nil {
		return nil, err
	}
	build, refit := make([][]float64, len(scenes)), make([][]float64, len(scenes))
	for range r.repeat {
		for i, s := range scenes[:len(scenes)-1] { // the host's build is no matter of the device
			b, f, err := s.TimeBuild(background)
			if err != nil {
				return nil, err
			}
			build[i], refit[i] = append(build[i], b.Seconds()*1e3), append(refit[i], f.Seconds()*1e3)
		}
	}
	for i, name := range names {
		row := []any{geometry.name, float64(geometry.mesh.NumTriangles()), name, nil, nil, ns[name] / float64(side*side)}
		if len(build[i]) > 0 {
			row[3], row[4] = slices.Min(build[i]), slices.Min(refit[i])
		}
		rows = append(rows, row)
	}
	return rows, nil
}
