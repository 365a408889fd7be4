package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// accumulateFlags is the command line of `raymux accumulate`.
type accumulateFlags struct {
	rayFlags
	gridFlags
	material               string
	tx, polarization       [3]float32
	ownTx                  bool // -tx is given
	bounces                int
	wavelength, solidAngle float64
	los                    bool
}

// accumulateColumns are the columns of accumulate: grids, and the number of contributions.
var accumulateColumns = append(append([]string{"power"}, fieldNames[:]...), "cell_count", "count")

// accumulate adds up what rays bring to the cells of a grid over mirror reflections.
func (p *program) accumulate(ctx context.Context, args []string) error {
	f := accumulateFlags{polarization: [3]float32{1, 0, 0}, bounces: 1}
	fs := newFlagSet("accumulate")
	fs.rays(&f.rayFlags)
	fs.grid(&f.gridFlags)
	fs.file("material", "`FILE` of what the faces are made of, .npz: eta_r, sigma (S/m), mu_r, gain [K] float32, valid [K] bool, and index [faces] int32 unless K is the number of faces (required)", &f.material)
	fs.numbers("tx", "`x,y,z` of the transmitter, in metres (default: the origin of each ray)", f.tx[:])
	fs.polarization(f.polarization[:])
	fs.once("bounces", fmt.Sprintf("most reflections `B` of a ray, 0 to %d (default 1)", scene.MaxBounces), func(s string) (err error) {
		if f.bounces, err = strconv.Atoi(s); err != nil || f.bounces < 0 || f.bounces > scene.MaxBounces {
			return fmt.Errorf("use a whole number from 0 to %d", scene.MaxBounces)
		}
		return nil
	})
	fs.positive("wavelength", "metres", "`LENGTH` of the wave in metres (required)", &f.wavelength)
	fs.positive("solid-angle", "steradian", "`ANGLE` of one ray in steradian: that of all rays, divided by their number (required)", &f.solidAngle)
	fs.BoolVar(&f.los, "include-los", false, "count what comes without a reflection, too")
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	f.ownTx = fs.seen["tx"]
	grid, err := f.check(fs, p)
	if err != nil {
		return err
	}
	materials, err := p.readMaterials(ctx, f.material)
	if err != nil {
		return err
	}
	return p.traceRays(ctx, &f.rayFlags, rayJob{
		op:    func(rayBytes int64) chunked.Op { return f.op(grid, rayBytes, materialBytes(materials)) },
		bytes: materialBytes(materials),
		whole: true,
		trace: func(e *engine, rays scene.Rays, watch *stopwatch) ([]npy.Column, error) {
			return e.accumulate(ctx, p, rays, &f, materials, grid, watch)
		},
	})
}

// op describes the call to the planner: the materials and a vector or two are shared by all rays.
func (f *accumulateFlags) op(grid scene.Grid, rayBytes, materials int64) chunked.Op {
	const vector = 12
	shared := materials + vector
	if f.ownTx {
		shared += vector
	} else {
		rayBytes += vector
	}
	return multi.AccumulateReflectionsOp(grid, rayBytes, shared, scene.ReflGridOptions{})
}

// check validates what can be told from the flags alone.
func (f *accumulateFlags) check(fs *flagSet, p *program) (scene.Grid, error) {
	switch {
	case f.material == "":
		return scene.Grid{}, usagef("-material is missing: give an .npz file; there is no default material")
	case !fs.seen["wavelength"]:
		return scene.Grid{}, usagef("-wavelength is missing: give it in metres")
	case !fs.seen["solid-angle"]:
		return scene.Grid{}, usagef("-solid-angle is missing: give that of all rays (12.566 for a whole sphere), divided by their number")
	case f.solidAngle > 12.567:
		return scene.Grid{}, usagef("-solid-angle: found %v; expected at most 12.566, a whole sphere: it is that of one ray", f.solidAngle)
	}
	if err := f.rayFlags.check(p, accumulateColumns); err != nil {
		return scene.Grid{}, err
	}
	return f.gridFlags.grid(fs)
}

// noteStatus says what is missing from sums.
func (p *program) noteStatus(s scene.ReflGridStatus) {
	if s&scene.StatusNotFinite != 0 {
		p.note("contributions that are no finite numbers are left out: of rays far away, or of a gain in -material far above 1")
	}
	if s&scene.StatusTooLarge != 0 {
		p.note("contributions that are too large for exact sums are left out: they take a gain in -material above 1")
	}
}

// accumulate follows the rays and downloads the chosen columns.
func (e *engine) accumulate(ctx context.Context, p *program, rays scene.Rays, f *accumulateFlags, m *scene.Materials, grid scene.Grid, watch *stopwatch) (columns []npy.Column, err error) {
	st := e.scene.Stream()
	table, err := e.uploadMaterials(ctx, f.material, m)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	opts := scene.ReflGridOptions{
		Wavelength: f.wavelength, SolidAnglePerRay: f.solidAngle, MaxBounces: f.bounces, Materials: table,
		TxPosition: rays.O, IncludeLOS: f.los, CellCount: true,
	}
	if opts.TxPolarization, err = cuda.Upload(ctx, st, f.polarization[:]); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, free(st, opts.TxPolarization)) }()
	if f.ownTx {
		tx, err := cuda.Upload(ctx, st, f.tx[:])
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, free(st, tx)) }()
		opts.TxPosition = tx
	}
	r, err := e.scene.AccumulateReflections(ctx, rays, grid, opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := st.Synchronize(ctx); err != nil {
		return nil, err
	}
	watch.lap("trace")
	for k, part := range [7]cuda.Slice[float32]{r.Power, r.FieldXRe, r.FieldXIm, r.FieldYRe, r.FieldYIm, r.FieldZRe, r.FieldZIm} {
		data, err := download(ctx, st, part)
		if err != nil {
			return nil, err
		}
		columns = append(columns, npy.Floats(accumulateColumns[k], data, gridShape(grid)...))
	}
	cells, err := download(ctx, st, r.CellCount)
	if err != nil {
		return nil, err
	}
	c, err := r.ReadCounters(ctx)
	if err != nil {
		return nil, err
	}
	p.noteStatus(c.Status)
	if n := rays.O.Len() / 3; n > 0 && c.Count == 0 && c.Status == 0 {
		p.note("no ray contributed: none of %d crosses the grid after a face of -material reflects it; -include-los counts rays before one does, too", n)
	}
	columns = append(columns, npy.Uints("cell_count", cells, gridShape(grid)...), counter("count", c.Count))
	watch.lap("download")
	return chosen(columns, f.fields), nil
}
