package main

import (
	"context"
	"errors"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// visibleFlags is the command line of `raymux visible`.
type visibleFlags struct {
	common
	options                      chunked.Options
	starts, ends, ignore, active string
}

// visibleColumn is the only column of the result.
const visibleColumn = "visible"

// visible tells for every segment whether no triangle blocks it.
func (p *program) visible(ctx context.Context, args []string) (err error) {
	var f visibleFlags
	fs := newFlagSet("visible")
	fs.common(&f.common)
	fs.split(&f.options)
	fs.calibrations(&f.common)
	fs.file("starts", "`FILE` of the starts of the segments, [N, 3] float32: .npy, or file.npz:column (required)", &f.starts)
	fs.file("ends", "`FILE` of the ends of the segments, [N, 3] float32: .npy, or file.npz:column (required)", &f.ends)
	fs.file("ignore", "`FILE` of primitive ids that do not block the segment of their row, [N] or [N, k] int32; -1 stands for none", &f.ignore)
	fs.file("active", "`FILE` of the mask of the segments to test, [N] bool", &f.active)
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	switch {
	case f.starts == "":
		return usagef("-starts is missing: give a .npy file, or file.npz:column")
	case f.ends == "":
		return usagef("-ends is missing: give a .npy file, or file.npz:column")
	}
	if err := f.check(p, []string{visibleColumn}); err != nil {
		return err
	}
	files, err := p.openSegments(ctx, &f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	op := multi.VisibleOp(files.ignoreWidth(), files.active != nil)
	var segments hostSegments
	return p.runBatch(ctx, &f.common, f.options, batchJob{
		op: op, rows: files.rows, bytes: files.rows * op.In,
		read: func() (err error) {
			segments, err = p.readSegments(files)
			return err
		},
		trace: func(e *engine, watch *stopwatch) ([]npy.Column, error) { return e.visible(ctx, segments, watch) },
	})
}

// segmentFiles are the inputs of a batch, headers checked. ignore and active may be nil.
type segmentFiles struct {
	starts, ends, ignore, active *arrayInput
	rows                         int64
}

func (s *segmentFiles) close() error { return closeAll(s.starts, s.ends, s.ignore, s.active) }

func (p *program) openSegments(ctx context.Context, f *visibleFlags) (s *segmentFiles, err error) {
	s = &segmentFiles{}
	s.rows, err = p.openInputs(ctx, []inputSpec{
		{"-starts", f.starts, 3, (*npy.Reader).CheckFloat, &s.starts},
		{"-ends", f.ends, 3, (*npy.Reader).CheckFloat, &s.ends},
		{"-ignore", f.ignore, anyWidth, (*npy.Reader).CheckInt, &s.ignore},
		{"-active", f.active, 0, (*npy.Reader).CheckBool, &s.active},
	})
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// ignoreWidth is the number of ignored ids per row.
func (s *segmentFiles) ignoreWidth() int64 {
	if s.ignore == nil || s.rows == 0 {
		return 0
	}
	return s.ignore.array.Header.Count / s.rows
}

// hostSegments is a batch in host memory.
type hostSegments struct {
	starts, ends []float32
	ignore       []int32
	active       []uint8
}

func (p *program) readSegments(s *segmentFiles) (h hostSegments, err error) {
	p.progress("reading " + s.starts.arg)
	if h.starts, err = s.starts.floats(p); err != nil {
		return h, err
	}
	p.progress("reading " + s.ends.arg)
	if h.ends, err = s.ends.floats(p); err != nil {
		return h, err
	}
	if s.ignore != nil {
		p.progress("reading " + s.ignore.arg)
		if h.ignore, err = s.ignore.array.Int32(); err != nil {
			return h, forFile(s.ignore.flag, s.ignore.arg, err)
		}
	}
	h.active, err = p.readMask(s.active)
	return h, err
}

// visible uploads the batch, tests it and downloads the result.
func (e *engine) visible(ctx context.Context, h hostSegments, watch *stopwatch) (columns []npy.Column, err error) {
	st := e.scene.Stream()
	batch, err := uploadSegments(ctx, st, h)
	defer func() {
		err = errors.Join(err, free(st, batch.Start), free(st, batch.End), free(st, batch.Ignore), free(st, batch.Active))
	}()
	if err != nil {
		return nil, err
	}
	watch.lap("upload")
	if e.streamed && batch.Start.Len() > 0 {
		return stream(e, e.scene.VisibleSeq(ctx, batch), watch, func(v *scene.Visibility) ([]npy.Column, error) {
			data, err := download(ctx, st, v.Visible)
			return []npy.Column{npy.Bools(visibleColumn, data, v.Rows())}, err
		})
	}
	result, err := e.scene.Visible(ctx, batch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, result.Close()) }()
	if err := st.Synchronize(ctx); err != nil {
		return nil, err
	}
	watch.lap("trace")
	data, err := download(ctx, st, result.Visible)
	if err != nil {
		return nil, err
	}
	watch.lap("download")
	return []npy.Column{npy.Bools(visibleColumn, data, result.Rows())}, nil
}

// uploadSegments copies the batch to the master. On a failure it returns what it has, to be freed.
func uploadSegments(ctx context.Context, st *cuda.Stream, h hostSegments) (s scene.Segments, err error) {
	if s.Start, err = cuda.Upload(ctx, st, h.starts); err != nil {
		return s, err
	}
	if s.End, err = cuda.Upload(ctx, st, h.ends); err != nil {
		return s, err
	}
	if len(h.ignore) > 0 {
		if s.Ignore, err = cuda.Upload(ctx, st, h.ignore); err != nil {
			return s, err
		}
	}
	if h.active != nil {
		s.Active, err = cuda.Upload(ctx, st, h.active)
	}
	return s, err
}
