package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// batchJob is an operation on rows that are read from files.
type batchJob struct {
	op    chunked.Op
	rows  int64
	bytes int64        // of the inputs
	whole bool         // the operation needs the whole result on the device, and is never streamed
	read  func() error // brings the inputs to host memory; nil: they are there
	trace func(e *engine, watch *stopwatch) ([]npy.Column, error)
}

// wholeNote: -chunk-rows does half of what it does for other results.
const wholeNote = "-chunk-rows limits what is traced at a time; the result needs all rows, and stays whole on the device"

// runBatch reads the inputs and the meshes, runs the job and writes its columns, or prints the plan.
func (p *program) runBatch(ctx context.Context, c *common, options chunked.Options, job batchJob) (err error) {
	if c.plan {
		return p.planBatch(ctx, c, options, job)
	}
	watch := startWatch()
	if job.read != nil {
		if err := job.read(); err != nil {
			return err
		}
	}
	e, err := p.openScene(ctx, c, options, job.op.Key, withoutEdges, watch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	if e.streamed && !job.whole {
		if e.spool, err = fileio.NewSpool(ctx, p.fs, c.out); err != nil {
			return forFile("-out", c.out, err)
		}
		e.out = c.out
		defer func() { err = errors.Join(err, forFile("-out", c.out, e.spool.Close())) }()
	}
	if options.ChunkRays > 0 && job.whole && job.op.Class != chunked.GridReduce {
		p.note("%s", wholeNote)
	}
	p.progress("tracing")
	columns, err := job.trace(e, watch)
	if err != nil {
		return err
	}
	if err := p.write(ctx, c.out, columns); err != nil {
		return err
	}
	watch.lap("write")
	if c.info {
		return p.reportBatch(e, job, columns, watch)
	}
	return nil
}

// openScene reads the meshes and builds them on the devices.
func (p *program) openScene(ctx context.Context, c *common, options chunked.Options, key string, edges edges, watch *stopwatch) (*engine, error) {
	meshes, err := p.readMeshes(ctx, c.meshes)
	if err != nil {
		return nil, err
	}
	watch.lap("read")
	e, err := p.openDivided(ctx, c, options, key)
	if err != nil {
		return nil, err
	}
	watch.lap("open")
	p.progress("building")
	if err := e.load(ctx, meshes, edges); err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	watch.lap("build")
	return e, nil
}

func (p *program) planBatch(ctx context.Context, c *common, options chunked.Options, job batchJob) (err error) {
	e, err := p.openDivided(ctx, c, options, job.op.Key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	plan, err := e.plan(job)
	if err != nil {
		return err
	}
	p.progress("")
	_, err = fmt.Fprintf(p.stdout, "%sdevices: %s\n", flagNames.Replace(plan.String()), e.describeDevices())
	return err
}

// plan is that of the call that the job makes.
func (e *engine) plan(job batchJob) (chunked.Plan, error) {
	if e.streamed && !job.whole {
		return e.scene.PlanStream(job.op, job.rows)
	}
	return e.scene.Plan(job.op, job.rows)
}

// reportBatch prints what -info asks for.
func (p *program) reportBatch(e *engine, job batchJob, columns []npy.Column, watch *stopwatch) error {
	plan, err := e.plan(job)
	if err != nil {
		return err
	}
	p.progress("")
	master := e.scene.Master()
	fmt.Fprintf(p.stderr, "%sdevices: %s\nbackend: %s (%s)\ntime: %s\n", flagNames.Replace(plan.String()), e.describeDevices(), master.Backend(),
		master.BackendReason(), watch)
	in, back := linkBytes(plan)
	var result int64
	for _, c := range columns {
		result += c.Bytes()
	}
	fmt.Fprintf(p.stderr, "bytes: host to master %d, master to host %d, master to others %d, others to master %d\n",
		job.bytes, result, in, back)
	return nil
}

// linkBytes is what the rows of the other devices move over the links.
func linkBytes(plan chunked.Plan) (in, back int64) {
	for _, s := range plan.Shards[1:] {
		in += s.Len() * plan.Op.In
		back += s.Len() * plan.Op.Wire
		if s.Len() > 0 {
			back += plan.Op.Grid.Accumulator
		}
	}
	return in, back
}
