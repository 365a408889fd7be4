package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

// tracer is a scene, on one device or on several.
type tracer interface {
	target
	AddMesh(scene.Mesh) (int, error)
	Build(context.Context) error
	Stream() *cuda.Stream
	Close() error
}

// target is the part of a tracer that operations call; replicas of a set have it too.
type target interface {
	Intersect(context.Context, scene.Rays, scene.Flags, ...scene.CallOption) (*scene.Hits, error)
	TraceReflections(context.Context, scene.Rays, int, scene.ChainFields, ...scene.CallOption) (*scene.Chains, error)
}

// deviceSet is a scene over several devices.
type deviceSet interface {
	tracer
	Devices() []int
	Transport() chunked.Transport
	Contexts() []*cuda.Context
	Plan(op chunked.Op, rows int64) (chunked.Plan, error)
	PlanStream(op chunked.Op, rows int64) (chunked.Plan, error)
	CalibrateDevices(context.Context, multi.Probe) (*multi.Calibration, error)
}

// load gives a scene the geometry of a workload and builds it. Nothing here asks about edges.
func load(t tracer, meshes []workload.Mesh) error {
	for _, m := range meshes {
		if _, err := t.AddMesh(scene.Mesh{Vertices: m.Vertices, Faces: m.Faces, NoEdges: true}); err != nil {
			return err
		}
	}
	return t.Build(background)
}

// planOptions are what distinguishes the modes: forced splits equally however small the shards are, streamed cuts shards
// to a size.
func planOptions(mode record.Mode, devices int, transport chunked.Transport, chunkRows int) chunked.Options {
	o := chunked.Options{Transport: transport}
	switch mode {
	case record.Forced:
		o.MinRaysPerDevice, o.MinLanesPerDevice = 1, 1
		o.Weights = slices.Repeat([]float64{1}, devices)
	case record.Streamed:
		o.ChunkRays = int64(chunkRows)
	}
	return o
}

// openSet makes an empty scene over the devices. Mixed devices and staged copies are accepted, because measuring them
// is what the benchmark is for; the record shows both.
func openSet(h *host, o options, mode record.Mode, chunkRows int, warnings io.Writer) (deviceSet, error) {
	return multi.New(h.driver, h.devices, multi.Options{
		Options:           planOptions(mode, len(h.devices), o.transport, chunkRows),
		AllowNoPeerAccess: true,
		AllowMixedDevices: true,
		Backend:           o.backend,
		Builder:           h.builder(),
		Logger:            slog.New(slog.NewTextHandler(warnings, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
}

// planOf says how a call on a set would run under the options of a mode that is not streamed.
func planOf(set deviceSet, o options, mode record.Mode, op chunked.Op, rows int64) (chunked.Plan, error) {
	devices := set.Devices()
	return chunked.BuildPlan(chunked.Input{
		Op: op, Rows: rows, Devices: devices,
		Options: planOptions(mode, len(devices), o.transport, 0), Transport: set.Transport(),
	})
}

// intersectOp describes the call of the intersect rows: every column, neither TMax nor Active.
func intersectOp() chunked.Op {
	return multi.IntersectOp(scene.All, scene.Rays{}.BytesPerRow())
}

// reflectionsOp describes the call of the reflection rows: the core columns, neither TMax nor Active.
func reflectionsOp(bounces int) chunked.Op {
	return multi.ReflectionsOp(bounces, scene.ChainCore, scene.Rays{}.BytesPerRow())
}

// of is the probe of an operation: its call on the leading rows of the batch, or what package multi brings along. done
// releases the results, when the devices are idle.
func (p *workloadProbe) of(op operation, kind string, repeats int) (probe multi.Probe, done func() error) {
	if kind == probeDefault {
		return multi.Probe{Rays: p.rows, MaxBounces: op.bounces, Repeats: repeats}, func() error { return nil }
	}
	results := map[target]scene.Reusable{}
	probe = multi.Probe{
		Operation: op.plan.Key, Repeats: repeats,
		Run: func(_ context.Context, t multi.Target, device int) error {
			out, err := op.call(t, p.batches[device], scene.Into(results[t]))
			if err == nil {
				results[t] = out.result
			}
			return err
		},
	}
	return probe, func() error {
		var errs []error
		for _, r := range results {
			errs = append(errs, r.Close())
		}
		return errors.Join(errs...)
	}
}
