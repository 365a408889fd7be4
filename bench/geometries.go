package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/meshfile"
)

// geometry is one scene of the study.
type geometry struct {
	name string
	mesh workload.Mesh
}

// geometries are the scenes: what cities and scanners make, and the two extremes of the benchmark.
func (r *run) geometries() ([]geometry, error) {
	e := extentOn(r.host.driver.Emulated())
	list := []geometry{{"city", workload.City(workload.SceneSeed, e.lots)}}
	if r.options.mesh != "" {
		m, err := readMesh(r.options.mesh)
		if err != nil {
			return nil, err
		}
		list = append(list, geometry{filepath.Base(r.options.mesh), m})
	} else {
		fmt.Fprintln(r.warnings, "study geometry: no scanned mesh is given, see --mesh")
	}
	return append(list,
		geometry{"soup", workload.Cloud(workload.SceneSeed, e.cloud, e.halfEdge, workload.Span)},
		geometry{"grid", workload.Grid(e.cells, workload.Span)},
	), nil
}

// readMesh reads a mesh file.
func readMesh(path string) (workload.Mesh, error) {
	format, err := meshfile.FormatOf(path)
	if err != nil {
		return workload.Mesh{}, fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return workload.Mesh{}, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return workload.Mesh{}, err
	}
	m, err := meshfile.Read(f, size, format)
	if err != nil {
		return workload.Mesh{}, fmt.Errorf("%s: %w", path, err)
	}
	return workload.Mesh{Vertices: m.Vertices, Faces: m.Faces}, nil
}

// geometryStudy compares the backends on every scene, with rays that go together and rays that do not.
func (r *run) geometryStudy() ([]record.Study, error) {
	list, err := r.geometries()
	if err != nil {
		return nil, err
	}
	study := record.Study{
		ID: "geometry", SourceSection: "bench --study geometry",
		Description: "closest hits on one device, the fastest of interleaved rounds; search is the winners alone, optix_bare OptiX' own results",
		Columns: columns("scene", "-", "triangles", "-", "rays", "-", "rows", "-", "hits", "-", "differing_winners", "-",
			traceCUDA, "ns/ray", traceOptiX, "ns/ray", traceCUDASearch, "ns/ray", traceOptiXSearch, "ns/ray", record.TracerBare, "ns/ray",
			"search_ratio", "-", "bare_ratio", "-", "winners_sha256", "-", "vertices_sha256", "-"),
	}
	for _, geometry := range list {
		rows, err := r.compare(geometry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", geometry.name, err)
		}
		study.Rows = append(study.Rows, rows...)
	}
	return []record.Study{study}, nil
}

// pictureSide is the side of the camera's picture; boxes get as many rays. It is the largest within --rays.
func (r *run) pictureSide() int {
	if r.options.rays > 0 {
		return int(math.Sqrt(float64(r.options.rays)))
	}
	return extentOn(r.host.driver.Emulated()).camera
}

// compare makes the rows of one scene.
func (r *run) compare(geometry geometry) (rows [][]any, err error) {
	side := r.pictureSide()
	g, err := r.openGround([]workload.Mesh{geometry.mesh}, false)
	if err != nil {
		return nil, err
	}
	defer closing(g.close, &err)
	hits, err := cuda.Alloc[float32](g.master(), 4*side*side)
	if err != nil {
		return nil, err
	}
	g.later(func() error { return cuda.Free(hits) })
	lo, hi := geometry.mesh.Box()
	for _, kind := range []struct {
		name string
		rays workload.Rays
	}{
		{"camera", workload.CameraRays(lo, hi, side)},
		{"box", workload.BoxRays(workload.VolumeSeed, lo, hi, side*side)},
	} {
		where := geometry.name + " " + kind.name
		batch, err := g.upload(kind.rays)
		if err != nil {
			return nil, err
		}
		ns, err := g.time(where, g.ways(hits), batch)
		if err != nil {
			return nil, err
		}
		winners, err := g.winners(batch)
		if err != nil {
			return nil, err
		}
		if winners.hits == 0 {
			r.fail(where, "vacuous: no row of %d hits anything", kind.rays.Len())
		}
		perRay := func(name string) any {
			if t, ok := ns[name]; ok {
				return t / float64(kind.rays.Len())
			}
			return nil
		}
		ratio := func(of, to string) any {
			if t, ok := ns[of]; ok {
				return t / ns[to]
			}
			return nil
		}
		rows = append(rows, []any{
			geometry.name, float64(geometry.mesh.NumTriangles()), kind.name, float64(kind.rays.Len()), float64(winners.hits), winners.differ,
			perRay(traceCUDA), perRay(traceOptiX), perRay(traceCUDASearch), perRay(traceOptiXSearch), perRay(record.TracerBare),
			ratio(traceOptiXSearch, traceCUDASearch), ratio(record.TracerBare, traceCUDA),
			winners.digest, workload.DigestFloats(geometry.mesh.Vertices),
		})
	}
	return rows, nil
}

// closing calls a release and keeps its error unless there is one already.
func closing(release func() error, err *error) {
	if failed := release(); *err == nil {
		*err = failed
	}
}

// winnersOf is what a study says about the primitives that a batch hits.
type winnersOf struct {
	hits   int64
	differ any    // rows in which OptiX names another one; nil without OptiX
	digest string // of those of our own search
}

// winners traces a batch once on each backend.
func (g *ground) winners(batch scene.Rays) (w winnersOf, err error) {
	var own []byte
	for i, s := range g.scenes() {
		ids, err := g.ids(s, batch)
		if err != nil {
			return w, err
		}
		if i > 0 {
			w.differ = float64(mismatches(own, ids, 4))
			continue
		}
		own = ids
		w.digest = digestBytes(ids)
		for _, id := range ints(ids) {
			if id >= 0 {
				w.hits++
			}
		}
	}
	return w, nil
}

func (g *ground) ids(s *scene.Scene, batch scene.Rays) (ids []byte, err error) {
	hits, err := s.Intersect(background, batch, scene.Geometric)
	if err != nil {
		return nil, err
	}
	defer closing(hits.Close, &err)
	if err := s.Stream().Synchronize(background); err != nil {
		return nil, err
	}
	column, err := hitColumn(hits, "global_prim_id")
	if err != nil {
		return nil, err
	}
	return column.download(background, g.stream)
}
