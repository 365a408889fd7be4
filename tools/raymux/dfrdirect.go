package main

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// dfrDirectFlags is the command line of `raymux dfr-direct`.
type dfrDirectFlags struct {
	dfrFlags
	gridFlags
	direct, keller int64
	seed           uint32
	window         *scene.Window
}

// directColumns are the columns of dfr-direct: a grid, and what became of the samples.
var directColumns = []string{"power", "direct_count", "keller_count", "vis_rejects", "utd_rejects", "edge_uses", "inactive_lanes"}

// dfrDirect estimates the power that wedges scatter into the cells of a grid, by samples of the scalar model.
func (p *program) dfrDirect(ctx context.Context, args []string) error {
	var f dfrDirectFlags
	fs := newFlagSet("dfr-direct")
	fs.dfr(&f.dfrFlags)
	fs.grid(&f.gridFlags)
	fs.count("direct-samples", "draw `N` points of edges, each for a cell: at least one for every pair of a state and a cell", &f.direct)
	fs.count("keller-samples", "draw `N` rays of the cones that edges scatter into, instead", &f.keller)
	fs.once("seed", "`N` of the random numbers, 0 to 4294967295 (default 0)", func(s string) error {
		v, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			return errors.New("use a whole number from 0 to 4294967295")
		}
		f.seed = uint32(v)
		return nil
	})
	fs.wholes("window", "`offset,count`: draw these samples only, of all; a negative count is all from offset on (default: all)", func(a, b int64) error {
		f.window = &scene.Window{Offset: a, Count: b}
		return nil
	})
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	grid, err := f.check(fs, p)
	if err != nil {
		return err
	}
	h, err := p.readDfr(ctx, &f.dfrFlags)
	if err != nil {
		return err
	}
	if err := f.checkCoverage(h.count(), grid); err != nil {
		return err
	}
	return p.runBatch(ctx, &f.common, f.options, batchJob{
		op: f.op(grid, h), rows: f.lanes(h.count()), bytes: h.bytes(), whole: true,
		trace: func(e *engine, watch *stopwatch) ([]npy.Column, error) {
			return e.dfrDirect(ctx, p, &f, h, grid, watch)
		},
	})
}

// check validates what can be told from the flags alone.
func (f *dfrDirectFlags) check(fs *flagSet, p *program) (scene.Grid, error) {
	samples := f.direct + f.keller
	switch {
	case f.direct > 0 && f.keller > 0:
		return scene.Grid{}, usagef("-direct-samples and -keller-samples estimate different things: give one of them")
	case samples == 0:
		return scene.Grid{}, usagef("-direct-samples or -keller-samples is missing")
	case samples > math.MaxInt32:
		return scene.Grid{}, usagef("found %d samples; expected at most %d: for more, take the mean of calls with another -seed each", samples, math.MaxInt32)
	case f.window != nil && (f.window.Offset < 0 || f.window.Offset > samples || f.window.Count > samples-f.window.Offset):
		return scene.Grid{}, usagef("-window: found %d,%d; expected samples of [0, %d)", f.window.Offset, f.window.Count, samples)
	}
	if err := f.dfrFlags.check(fs, p, directColumns); err != nil {
		return scene.Grid{}, err
	}
	return f.gridFlags.grid(fs)
}

// checkCoverage requires a sample for every pair of a state and a cell: a cell without one would have no estimate.
func (f *dfrDirectFlags) checkCoverage(states int64, grid scene.Grid) error {
	pairs, err := pairs(states, grid)
	if err == nil && f.direct > 0 && f.direct < pairs {
		err = usagef("-direct-samples: found %d; expected at least %d, for %d %s times %d cells", f.direct, pairs, states, plural(int(states), "state"), grid.Cells())
	}
	return err
}

// op describes the call to the planner.
func (f *dfrDirectFlags) op(grid scene.Grid, h dfrTables) chunked.Op {
	return multi.AccumDfrDirectOp(grid, h.count(), h.replicated(), scene.DfrDirectOptions{
		DirectSamples: f.direct, KellerSamples: f.keller, Window: f.window,
	})
}

// lanes is how many samples the call draws of so many states.
func (f *dfrDirectFlags) lanes(states int64) int64 {
	all := f.direct + f.keller
	switch {
	case states == 0:
		return 0
	case f.window == nil:
		return all
	case f.window.Count < 0:
		return all - f.window.Offset
	}
	return f.window.Count
}

// dfrDirect draws the samples and downloads the chosen columns.
func (e *engine) dfrDirect(ctx context.Context, p *program, f *dfrDirectFlags, h dfrTables, grid scene.Grid, watch *stopwatch) (columns []npy.Column, err error) {
	st := e.scene.Stream()
	in, err := e.uploadDfr(ctx, p, &f.dfrFlags, h)
	defer func() { err = errors.Join(err, in.close(st)) }()
	if err != nil {
		return nil, err
	}
	watch.lap("upload")
	r, err := e.scene.AccumDfrDirect(ctx, in.states, grid, scene.DfrDirectOptions{
		Wavelength: f.wavelength, DirectSamples: f.direct, KellerSamples: f.keller, Seed: f.seed,
		Materials: in.materials, Active: in.active, Window: f.window,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := st.Synchronize(ctx); err != nil {
		return nil, err
	}
	watch.lap("trace")
	data, err := download(ctx, st, r.Power)
	if err != nil {
		return nil, err
	}
	c, err := r.ReadCounters(ctx)
	if err != nil {
		return nil, err
	}
	p.noteEmpty(c.Direct+c.Keller, lanesOf{"vis_rejects", c.VisRejects}, lanesOf{"utd_rejects", c.UTDRejects}, lanesOf{"inactive_lanes", c.InactiveLanes})
	columns = append(columns, npy.Floats("power", data, gridShape(grid)...), counter("direct_count", c.Direct), counter("keller_count", c.Keller),
		counter("vis_rejects", c.VisRejects), counter("utd_rejects", c.UTDRejects),
		counter("edge_uses", c.EdgeUses), counter("inactive_lanes", c.InactiveLanes))
	watch.lap("download")
	return chosen(columns, f.fields), nil
}
