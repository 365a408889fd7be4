package main

import (
	"context"
	"errors"
	"fmt"

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
	for _, in := range []struct {
		flag, arg string
		width     int64
		check     func(*npy.Reader) error
		target    **arrayInput
	}{
		{"-origins", f.origins, 3, (*npy.Reader).CheckFloat, &r.origins},
		{"-directions", f.directions, 3, (*npy.Reader).CheckFloat, &r.directions},
		{"-tmax", f.tmax, 0, (*npy.Reader).CheckFloat, &r.tmax},
		{"-active", f.active, 0, (*npy.Reader).CheckBool, &r.active},
	} {
		if in.arg == "" {
			continue
		}
		a, err := p.openArray(ctx, in.flag, in.arg)
		if err != nil {
			return r, err
		}
		*in.target = a
		if err := in.check(a.array); err != nil {
			return r, forFile(in.flag, in.arg, err)
		}
		n, err := a.rows(in.width)
		if err != nil {
			return r, err
		}
		if a == r.origins {
			r.rows = n
		}
		if n != r.rows {
			return r, a.fault(fmt.Sprintf("%d, the rows of -origins %s", r.rows, f.origins), "%d rows", n)
		}
	}
	return r, nil
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
	trace func(e *engine, rays scene.Rays, watch *stopwatch) ([]npy.Column, error)
}

// traceRays runs a command: it reads the batch, traces it and writes the columns, or prints the plan.
func (p *program) traceRays(ctx context.Context, f *rayFlags, job rayJob) (err error) {
	files, err := p.openRays(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	op := job.op(files.bytesPerRow())
	if f.plan {
		return p.planRays(ctx, f, op, files.rows)
	}
	watch := startWatch()
	rays, err := p.readRays(files)
	if err != nil {
		return err
	}
	meshes, err := p.readMeshes(ctx, f.meshes)
	if err != nil {
		return err
	}
	watch.lap("read")
	e, err := p.openEngine(ctx, f.devices, f.backend, f.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	watch.lap("open")
	p.progress("building")
	if err := e.load(ctx, meshes); err != nil {
		return err
	}
	watch.lap("build")
	p.progress("tracing")
	columns, err := e.trace(ctx, rays, job, watch)
	if err != nil {
		return err
	}
	if err := p.write(ctx, f.out, columns); err != nil {
		return err
	}
	watch.lap("write")
	if f.info {
		return p.reportRays(e, op, files, rays, columns, watch)
	}
	return nil
}

func (p *program) planRays(ctx context.Context, f *rayFlags, op chunked.Op, rows int64) (err error) {
	e, err := p.openEngine(ctx, f.devices, f.backend, f.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	plan, err := e.scene.Plan(op, rows)
	if err != nil {
		return err
	}
	p.progress("")
	_, err = fmt.Fprintf(p.stdout, "%sdevices: %s\n", plan, e.describeDevices())
	return err
}

// reportRays prints what -info asks for.
func (p *program) reportRays(e *engine, op chunked.Op, files *rayFiles, rays hostRays, columns []npy.Column, watch *stopwatch) error {
	plan, err := e.scene.Plan(op, files.rows)
	if err != nil {
		return err
	}
	p.progress("")
	master := e.scene.Master()
	fmt.Fprintf(p.stderr, "%sdevices: %s\nbackend: %s (%s)\ntime: %s\n", plan, e.describeDevices(), master.Backend(),
		master.BackendReason(), watch)
	in, back := linkBytes(plan)
	var result int64
	for _, c := range columns {
		result += c.Bytes()
	}
	fmt.Fprintf(p.stderr, "bytes: host to master %d, master to host %d, master to others %d, others to master %d\n",
		rays.bytes, result, in, back)
	return nil
}

// hostRays is a batch in host memory.
type hostRays struct {
	origins, directions, tmax []float32
	active                    []uint8
	bytes                     int64
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
	if r.active != nil {
		p.progress("reading " + r.active.arg)
		if h.active, err = r.active.array.Bool(); err != nil {
			return h, forFile(r.active.flag, r.active.arg, err)
		}
	}
	h.bytes = r.rows * r.bytesPerRow()
	return h, nil
}

// linkBytes is what the rows of the other devices move over the links.
func linkBytes(plan chunked.Plan) (in, back int64) {
	for _, s := range plan.Shards[1:] {
		in += s.Len() * plan.Op.In
		back += s.Len() * plan.Op.Wire
	}
	return in, back
}
