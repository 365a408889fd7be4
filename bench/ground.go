package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// ground is one geometry on the master under every backend that runs there, for the studies.
type ground struct {
	r      *run
	meshes []workload.Mesh
	stream *cuda.Stream
	cuda   *scene.Scene
	optix  *scene.Scene // nil where there is none, or where OptiX is to be left alone
	opened
}

// openGround builds the scenes. Dynamic ones can be refitted.
func (r *run) openGround(meshes []workload.Mesh, dynamic bool) (g *ground, err error) {
	g = &ground{r: r, meshes: meshes}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if g.stream, err = g.master().NewStream(cuda.StreamOptions{}); err != nil {
		return g, err
	}
	g.later(g.stream.Close)
	if g.cuda, err = g.scene(scene.Options{Backend: scene.CUDA}, dynamic); err != nil {
		return g, err
	}
	if r.backend == scene.CUDA {
		return g, nil
	}
	g.optix, err = g.scene(scene.Options{Backend: scene.OptiX}, dynamic)
	if unavailable(err) {
		err = nil
	}
	return g, err
}

func (g *ground) scene(o scene.Options, dynamic bool) (*scene.Scene, error) {
	s, err := scene.New(g.master(), o)
	if err != nil {
		return nil, err
	}
	for _, m := range g.meshes {
		if _, err := s.AddMesh(scene.Mesh{Vertices: m.Vertices, Faces: m.Faces, NoEdges: true, Dynamic: dynamic}); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.Build(background); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	g.later(s.Close)
	return s, nil
}

func (g *ground) master() *cuda.Context { return g.r.host.contexts[0] }

func (g *ground) close() error { return g.release(g.master()) }

// scenes are the scenes there are.
func (g *ground) scenes() []*scene.Scene {
	if g.optix == nil {
		return []*scene.Scene{g.cuda}
	}
	return []*scene.Scene{g.cuda, g.optix}
}

// upload brings rays to the master.
func (g *ground) upload(rays workload.Rays) (batch scene.Rays, err error) {
	for _, column := range []struct {
		to   *cuda.Slice[float32]
		from []float32
	}{{&batch.O, rays.Origins}, {&batch.D, rays.Directions}} {
		if *column.to, err = cuda.Upload(background, g.stream, column.from); err != nil {
			return batch, err
		}
		g.later(func() error { return cuda.Free(*column.to) })
	}
	return batch, nil
}

// Ways to trace a batch. A search stores the winners alone: it is what backends differ in.
const (
	traceCUDA        = "cuda"
	traceCUDASearch  = "cuda_search"
	traceOptiX       = "optix"
	traceOptiXSearch = "optix_search"
)

// way is one of them.
type way struct {
	name string
	run  func(batch scene.Rays) (release func() error, err error)
}

// ways lists what can be timed side by side; hits has room for the results of OptiX alone, 4 values per row.
func (g *ground) ways(hits cuda.Slice[float32]) []way {
	var list []way
	names := [][2]string{{traceCUDA, traceCUDASearch}, {traceOptiX, traceOptiXSearch}}
	for i, s := range g.scenes() {
		list = append(list,
			way{names[i][0], func(batch scene.Rays) (func() error, error) { return intersect().timed(s, batch).run() }},
			way{names[i][1], func(batch scene.Rays) (func() error, error) { return searchOnly(s, batch) }})
	}
	if g.optix != nil {
		list = append(list, way{record.TracerBare, func(batch scene.Rays) (func() error, error) {
			return func() error { return nil }, g.optix.TraverseBare(g.stream, batch, hits, 0, int64(batch.O.Len()/3))
		}})
	}
	return list
}

// searchOnly enqueues a search without the rest of the query.
func searchOnly(s *scene.Scene, batch scene.Rays) (func() error, error) {
	_, call, err := s.PrepareIntersect(background, batch, 0)
	if err != nil {
		return nil, err
	}
	in, out := call.Columns()
	if err := call.Search(s, call.Stream, in, out, 0, call.Rows); err != nil {
		return nil, errors.Join(err, call.Abandon())
	}
	return call.Abandon, nil
}

// time measures ways side by side on a batch; the result is the smallest time of each in ns, by name.
func (g *ground) time(where string, ways []way, batch scene.Rays) (map[string]float64, error) {
	variants := make([]variant, len(ways))
	for i, w := range ways {
		variants[i] = variant{run: func() (func() error, error) { return w.run(batch) }}
	}
	times, err := g.r.host.stopwatch(g.r.host.contexts[:1]).measure(variants, g.r.warmup, g.r.repeat)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	fastest := map[string]float64{}
	for i, t := range times {
		if t.allocs > 0 {
			g.r.fail(where, "%d driver allocations inside the samples of %s; result buffers must come from the pool", t.allocs, ways[i].name)
		}
		fastest[ways[i].name] = float64(slices.Min(t.ns))
	}
	return fastest, nil
}
