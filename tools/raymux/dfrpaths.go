package main

import (
	"context"
	"errors"
	"math"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// dfrPathsFlags is the command line of `raymux dfr-paths`.
type dfrPathsFlags struct {
	dfrFlags
	tx, rx       string
	polarization [3]float32
	layout       scene.DfrPathLayout
}

// dfrPathColumns are the columns of dfr-paths: one row for each path, and their number.
var dfrPathColumns = []string{"status", "tx_id", "rx_id", "edge_id", "delay", "field", "p0", "count"}

// dfrPaths lists the paths from every transmitter over every wedge to every receiver.
func (p *program) dfrPaths(ctx context.Context, args []string) (err error) {
	f := dfrPathsFlags{polarization: [3]float32{1, 0, 0}}
	fs := newFlagSet("dfr-paths")
	fs.dfr(&f.dfrFlags)
	fs.file("tx", "`FILE` of the positions of the transmitters, [T, 3] float32: .npy, or file.npz:column (required); the sources of the states are not read", &f.tx)
	fs.file("rx", "`FILE` of the positions of the receivers, [R, 3] float32 (required)", &f.rx)
	fs.polarization(f.polarization[:])
	fs.once("layout", "`source-lane|compact`: a row for every transmitter, receiver and state, or the rows of valid paths only (default source-lane)", func(s string) error {
		layouts := map[string]scene.DfrPathLayout{"source-lane": scene.SourceLane, "source_lane": scene.SourceLane, "compact": scene.Compact}
		layout, ok := layouts[s]
		if !ok {
			return errors.New("use source-lane or compact")
		}
		f.layout = layout
		return nil
	})
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	switch {
	case f.tx == "":
		return usagef("-tx is missing: give a .npy file, or file.npz:column")
	case f.rx == "":
		return usagef("-rx is missing: give a .npy file, or file.npz:column")
	}
	if err := f.dfrFlags.check(fs, p, dfrPathColumns); err != nil {
		return err
	}
	h := pathInputs{}
	if h.dfrTables, err = p.readDfr(ctx, &f.dfrFlags); err != nil {
		return err
	}
	if h.tx, err = p.readPoints(ctx, "-tx", f.tx); err != nil {
		return err
	}
	if h.rx, err = p.readPoints(ctx, "-rx", f.rx); err != nil {
		return err
	}
	t, r, m := int64(len(h.tx)/3), int64(len(h.rx)/3), h.count()
	if t > 0 && r > 0 && m > math.MaxInt32/t/r {
		return usagef("found %d transmitters, %d receivers and %d states; expected a product of at most %d: divide them among calls", t, r, m, math.MaxInt32)
	}
	return p.runBatch(ctx, &f.common, f.options, batchJob{
		op: multi.DfrPathsOp(r * m), rows: t * r * m, bytes: h.bytes() + 4*int64(len(h.tx)+len(h.rx)), whole: f.layout == scene.Compact,
		trace: func(e *engine, watch *stopwatch) ([]npy.Column, error) { return e.dfrPaths(ctx, p, &f, h, watch) },
	})
}

// pathInputs are the inputs of dfr-paths, in host memory.
type pathInputs struct {
	dfrTables
	tx, rx []float32
}

// readPoints reads positions.
func (p *program) readPoints(ctx context.Context, flag, file string) (points []float32, err error) {
	var a *arrayInput
	defer func() { err = errors.Join(err, a.close()) }()
	if _, err := p.openInputs(ctx, []inputSpec{{flag, file, 3, (*npy.Reader).CheckFloat, &a}}); err != nil {
		return nil, err
	}
	p.progress("reading " + file)
	return a.floats(p)
}

// dfrPaths traces the paths and downloads the chosen columns.
func (e *engine) dfrPaths(ctx context.Context, p *program, f *dfrPathsFlags, h pathInputs, watch *stopwatch) (columns []npy.Column, err error) {
	st := e.scene.Stream()
	if h.active == nil { // the operation wants a mask
		h.active = make([]uint8, h.count())
		for i := range h.active {
			h.active[i] = 1
		}
	}
	in, err := e.uploadDfr(ctx, p, &f.dfrFlags, h.dfrTables)
	defer func() { err = errors.Join(err, in.close(st)) }()
	if err != nil {
		return nil, err
	}
	points := [3]cuda.Slice[float32]{}
	for k, data := range [3][]float32{h.tx, h.rx, f.polarization[:]} {
		points[k], err = cuda.Upload(ctx, st, data)
		defer func() { err = errors.Join(err, free(st, points[k])) }()
		if err != nil {
			return nil, err
		}
	}
	watch.lap("upload")
	opts := scene.DfrPathOptions{
		Wavelength: f.wavelength, Materials: in.materials, Active: in.active, TxPolarization: points[2], Layout: f.layout,
	}
	count := int64(0)
	if e.streamed && f.layout == scene.SourceLane && len(h.tx) > 0 && len(h.rx) > 0 && h.count() > 0 {
		columns, err = stream(e, e.scene.TraceDfrPathsSeq(ctx, points[0], points[1], in.states, opts), watch, func(r *scene.DfrPaths) ([]npy.Column, error) {
			n, err := r.ReadCount(ctx)
			if err != nil {
				return nil, err
			}
			count += n
			return downloadPaths(ctx, st, r, r.Rows(), f.fields)
		})
		p.notePaths(f, h, count, err)
		return append(columns, chosen([]npy.Column{counter("count", count)}, f.fields)...), err
	}
	r, err := e.scene.TraceDfrPaths(ctx, points[0], points[1], in.states, opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := st.Synchronize(ctx); err != nil {
		return nil, err
	}
	watch.lap("trace")
	if count, err = r.ReadCount(ctx); err != nil {
		return nil, err
	}
	rows := r.Rows()
	if f.layout == scene.Compact {
		rows = int(count)
	}
	columns, err = downloadPaths(ctx, st, r, rows, f.fields)
	watch.lap("download")
	p.notePaths(f, h, count, err)
	return append(columns, chosen([]npy.Column{counter("count", count)}, f.fields)...), err
}

// notePaths tells of a call that found nothing.
func (p *program) notePaths(f *dfrPathsFlags, h pathInputs, count int64, err error) {
	rows := int64(len(h.tx)/3) * int64(len(h.rx)/3) * h.count()
	if err != nil || count > 0 || rows == 0 {
		return
	}
	where := "status tells why"
	if f.layout == scene.Compact {
		where += " with -layout source-lane"
	}
	p.note("no path of %d rows: %s", rows, where)
}

// downloadPaths downloads the chosen columns of the first rows.
func downloadPaths(ctx context.Context, st *cuda.Stream, r *scene.DfrPaths, rows int, fields []string) (columns []npy.Column, err error) {
	status, err := download(ctx, st, r.Status)
	if err != nil {
		return nil, err
	}
	columns = append(columns, npy.Bytes("status", status[:rows], rows))
	for _, c := range []struct {
		name string
		data cuda.Slice[int32]
	}{{"tx_id", r.TxID}, {"rx_id", r.RxID}, {"edge_id", r.EdgeID}} {
		data, err := download(ctx, st, c.data)
		if err != nil {
			return nil, err
		}
		columns = append(columns, npy.Ints(c.name, data[:rows], rows))
	}
	delay, err := download(ctx, st, r.Delay)
	if err != nil {
		return nil, err
	}
	field, err := download(ctx, st, r.Field)
	if err != nil {
		return nil, err
	}
	p0, err := download(ctx, st, r.P0)
	if err != nil {
		return nil, err
	}
	return chosen(append(columns, npy.Floats("delay", delay[:rows], rows), npy.Complexes("field", complexes(field[:6*rows]), rows, 3),
		npy.Floats("p0", p0[:3*rows], rows, 3)), fields), nil
}

// complexes pairs real and imaginary parts.
func complexes(parts []float32) []complex64 {
	out := make([]complex64, len(parts)/2)
	for i := range out {
		out[i] = complex(parts[2*i], parts[2*i+1])
	}
	return out
}
