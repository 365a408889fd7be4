package main

import (
	"context"
	"errors"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// dfrCoherentFlags is the command line of `raymux dfr-coherent`.
type dfrCoherentFlags struct {
	dfrFlags
	gridFlags
	polarization [3]float32
}

// coherentColumns are the columns of dfr-coherent, all of them on the cells of the grid.
var coherentColumns = append(fieldNames[:6:6], "power", "count", "utd_rejects", "vis_rejects")

// dfrCoherent adds up the fields that wedges scatter to the centres of the cells of a grid.
func (p *program) dfrCoherent(ctx context.Context, args []string) error {
	f := dfrCoherentFlags{polarization: [3]float32{1, 0, 0}}
	fs := newFlagSet("dfr-coherent")
	fs.dfr(&f.dfrFlags)
	fs.grid(&f.gridFlags)
	fs.polarization(f.polarization[:])
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	if err := f.dfrFlags.check(fs, p, coherentColumns); err != nil {
		return err
	}
	grid, err := f.gridFlags.grid(fs)
	if err != nil {
		return err
	}
	h, err := p.readDfr(ctx, &f.dfrFlags)
	if err != nil {
		return err
	}
	rows, err := pairs(h.count(), grid)
	if err != nil {
		return err
	}
	return p.runBatch(ctx, &f.common, f.options, batchJob{
		op: multi.AccumDfrCoherentDirectOp(grid, h.count(), h.replicated(), scene.DfrCoherentOptions{}), rows: rows, bytes: h.bytes(), whole: true,
		trace: func(e *engine, watch *stopwatch) ([]npy.Column, error) {
			return e.dfrCoherent(ctx, p, &f, h, grid, watch)
		},
	})
}

// polarization declares the flag for the electric field of the transmitter.
func (fs *flagSet) polarization(target []float32) {
	fs.checked("polarization", "`x,y,z` of the electric field of the transmitter, of any length but 0; 0,0,1 for an upright antenna (default 1,0,0)", target, func() error {
		for _, v := range target {
			if v != 0 {
				return nil
			}
		}
		return errors.New("0,0,0 is no direction")
	})
}

// dfrCoherent adds up the fields and downloads the chosen columns.
func (e *engine) dfrCoherent(ctx context.Context, p *program, f *dfrCoherentFlags, h dfrTables, grid scene.Grid, watch *stopwatch) (columns []npy.Column, err error) {
	st := e.scene.Stream()
	in, err := e.uploadDfr(ctx, p, &f.dfrFlags, h)
	defer func() { err = errors.Join(err, in.close(st)) }()
	if err != nil {
		return nil, err
	}
	watch.lap("upload")
	r, err := e.scene.AccumDfrCoherentDirect(ctx, in.states, grid, scene.DfrCoherentOptions{
		Wavelength: f.wavelength, Materials: in.materials, Active: in.active, TxPolarization: f.polarization,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := st.Synchronize(ctx); err != nil {
		return nil, err
	}
	watch.lap("trace")
	var field [6][]float32
	for k, part := range [6]cuda.Slice[float32]{r.FieldXRe, r.FieldXIm, r.FieldYRe, r.FieldYIm, r.FieldZRe, r.FieldZIm} {
		if field[k], err = download(ctx, st, part); err != nil {
			return nil, err
		}
		columns = append(columns, npy.Floats(fieldNames[k], field[k], gridShape(grid)...))
	}
	columns = append(columns, npy.Floats("power", power(field), gridShape(grid)...))
	lanes := []lanesOf{{name: "count"}, {name: "utd_rejects"}, {name: "vis_rejects"}}
	inactive := h.count() * grid.Cells()
	for k, counts := range []cuda.Slice[int32]{r.Count, r.UTDRejects, r.VisRejects} {
		data, err := download(ctx, st, counts)
		if err != nil {
			return nil, err
		}
		columns = append(columns, npy.Ints(lanes[k].name, data, gridShape(grid)...))
		for _, n := range data {
			lanes[k].count += int64(n)
		}
		inactive -= lanes[k].count
	}
	p.noteEmpty(lanes[0].count, append(lanes[1:], lanesOf{"inactive lanes", inactive})...)
	watch.lap("download")
	return chosen(columns, f.fields), nil
}
