package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// intersectFlags is the command line of `raymux intersect`.
type intersectFlags struct {
	common
	options                           chunked.Options
	origins, directions, tmax, active string
}

// intersect finds the closest hit of every ray.
func (p *program) intersect(ctx context.Context, args []string) (err error) {
	var f intersectFlags
	fs := newFlagSet("intersect")
	fs.common(&f.common)
	fs.split(&f.options)
	fs.file("origins", "`FILE` of the ray origins, [N, 3] float32: .npy, or file.npz:column (required)", &f.origins)
	fs.file("directions", "`FILE` of the ray directions, [N, 3] float32, of any length (required)", &f.directions)
	fs.file("tmax", "`FILE` of the largest accepted ray parameters, [N] float32", &f.tmax)
	fs.file("active", "`FILE` of the mask of the rays to trace, [N] bool", &f.active)
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	var names []string
	for _, c := range scene.HitColumns(scene.All) {
		names = append(names, c.Name)
	}
	switch {
	case f.origins == "":
		return usagef("-origins is missing: give a .npy file, or file.npz:column")
	case f.directions == "":
		return usagef("-directions is missing: give a .npy file, or file.npz:column")
	}
	if err := f.check(p, names); err != nil {
		return err
	}
	rays, err := p.openRays(ctx, &f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rays.close()) }()
	if f.plan {
		return p.planIntersect(ctx, &f, rays)
	}
	return p.runIntersect(ctx, &f, rays)
}

// ignoreHelp makes a printed help text a success.
func ignoreHelp(err error) error {
	if errors.Is(err, errHelpShown) {
		return nil
	}
	return err
}

// rayFiles are the inputs of a batch, headers checked. tmax and active may be nil.
type rayFiles struct {
	origins, directions, tmax, active *arrayInput
	rows                              int64
}

func (r *rayFiles) close() error { return closeAll(r.origins, r.directions, r.tmax, r.active) }

// openRays opens the inputs and compares their types and shapes before any of them is read.
func (p *program) openRays(ctx context.Context, f *intersectFlags) (r *rayFiles, err error) {
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

func (p *program) planIntersect(ctx context.Context, f *intersectFlags, rays *rayFiles) (err error) {
	e, err := p.openEngine(ctx, f.devices, f.backend, f.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	plan, err := e.scene.Plan(multi.IntersectOp(hitFlags(f.fields), rays.bytesPerRow()), rays.rows)
	if err != nil {
		return err
	}
	p.progress("")
	_, err = fmt.Fprintf(p.stdout, "%sdevices: %s\n", plan, e.describeDevices())
	return err
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

func (p *program) runIntersect(ctx context.Context, f *intersectFlags, files *rayFiles) (err error) {
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
	columns, err := e.trace(ctx, rays, f.fields, watch)
	if err != nil {
		return err
	}
	if err := p.write(ctx, f.out, columns); err != nil {
		return err
	}
	watch.lap("write")
	if f.info {
		return p.reportIntersect(e, f, files, rays, watch)
	}
	return nil
}

// reportIntersect prints what -info asks for.
func (p *program) reportIntersect(e *engine, f *intersectFlags, files *rayFiles, rays hostRays, watch *stopwatch) error {
	flags := hitFlags(f.fields)
	plan, err := e.scene.Plan(multi.IntersectOp(flags, files.bytesPerRow()), files.rows)
	if err != nil {
		return err
	}
	p.progress("")
	master := e.scene.Master()
	fmt.Fprintf(p.stderr, "%sdevices: %s\nbackend: %s (%s)\ntime: %s\n", plan, e.describeDevices(), master.Backend(),
		master.BackendReason(), watch)
	in, back := linkBytes(plan)
	fmt.Fprintf(p.stderr, "bytes: host to master %d, master to host %d, master to others %d, others to master %d\n",
		rays.bytes, resultBytes(f.fields, files.rows), in, back)
	return nil
}

// linkBytes is what the rows of the other devices move over the links.
func linkBytes(plan chunked.Plan) (in, back int64) {
	for _, s := range plan.Shards[1:] {
		in += s.Len() * plan.Op.In
		back += s.Len() * plan.Op.Wire
	}
	return in, back
}

func resultBytes(fields []string, rows int64) int64 {
	var n int64
	for _, c := range scene.HitColumns(scene.All) {
		if slices.Contains(fields, c.Name) {
			n += 4 * int64(c.Width) * rows
		}
	}
	return n
}
