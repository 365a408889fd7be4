package main

import (
	"context"
	"errors"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// rayFlags are the flags of commands that trace rays.
type rayFlags struct {
	common
	options                           chunked.Options
	origins, directions, tmax, active string
}

func (fs *flagSet) rays(f *rayFlags) {
	fs.common(&f.common)
	fs.split(&f.options)
	fs.calibrations(&f.common)
	fs.file("origins", "`FILE` of the ray origins, [N, 3] float32: .npy, or file.npz:column (required)", &f.origins)
	fs.file("directions", "`FILE` of the ray directions, [N, 3] float32, of any length (required)", &f.directions)
	fs.file("tmax", "`FILE` of the largest accepted ray parameters, [N] float32", &f.tmax)
	fs.file("active", "`FILE` of the mask of the rays to trace, [N] bool", &f.active)
}

// check validates what can be told from the flags alone. columns are those of the operation.
func (f *rayFlags) check(p *program, columns []string) error {
	switch {
	case f.origins == "":
		return usagef("-origins is missing: give a .npy file, or file.npz:column")
	case f.directions == "":
		return usagef("-directions is missing: give a .npy file, or file.npz:column")
	}
	return f.common.check(p, columns)
}

// rayFiles are the inputs of a batch, headers checked. tmax and active may be nil.
type rayFiles struct {
	origins, directions, tmax, active *arrayInput
	rows                              int64
}

func (r *rayFiles) close() error { return closeAll(r.origins, r.directions, r.tmax, r.active) }

// openRays opens the inputs and compares their types and shapes before any of them is read.
func (p *program) openRays(ctx context.Context, f *rayFlags) (r *rayFiles, err error) {
	r = &rayFiles{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	r.rows, err = p.openInputs(ctx, []inputSpec{
		{"-origins", f.origins, 3, (*npy.Reader).CheckFloat, &r.origins},
		{"-directions", f.directions, 3, (*npy.Reader).CheckFloat, &r.directions},
		{"-tmax", f.tmax, 0, (*npy.Reader).CheckFloat, &r.tmax},
		{"-active", f.active, 0, (*npy.Reader).CheckBool, &r.active},
	})
	return r, err
}

// bytesPerRow is what the batch holds per ray.
func (r *rayFiles) bytesPerRow() int64 {
	n := int64(24)
	if r.tmax != nil {
		n += 4
	}
	if r.active != nil {
		n++
	}
	return n
}

// rayJob is an operation on a batch of rays.
type rayJob struct {
	op    func(rayBytes int64) chunked.Op
	whole bool  // see batchJob
	bytes int64 // of inputs beside the rays
	trace func(e *engine, rays scene.Rays, watch *stopwatch) ([]npy.Column, error)
}

// traceRays runs a command: it reads the batch, traces it and writes the columns, or prints the plan.
func (p *program) traceRays(ctx context.Context, f *rayFlags, job rayJob) (err error) {
	files, err := p.openRays(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	var rays hostRays
	return p.runBatch(ctx, &f.common, f.options, batchJob{
		op: job.op(files.bytesPerRow()), rows: files.rows, bytes: files.rows*files.bytesPerRow() + job.bytes, whole: job.whole,
		read: func() (err error) {
			rays, err = p.readRays(files)
			return err
		},
		trace: func(e *engine, watch *stopwatch) ([]npy.Column, error) { return e.trace(ctx, rays, job, watch) },
	})
}

// hostRays is a batch in host memory.
type hostRays struct {
	origins, directions, tmax []float32
	active                    []uint8
}

func (p *program) readRays(r *rayFiles) (h hostRays, err error) {
	for _, in := range []struct {
		from *arrayInput
		to   *[]float32
	}{{r.origins, &h.origins}, {r.directions, &h.directions}, {r.tmax, &h.tmax}} {
		if in.from == nil {
			continue
		}
		p.progress("reading " + in.from.arg)
		if *in.to, err = in.from.floats(p); err != nil {
			return h, err
		}
	}
	h.active, err = p.readMask(r.active)
	return h, err
}
