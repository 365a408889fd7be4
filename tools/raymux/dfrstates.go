package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// dfrStates writes the wedge states of the edges of the meshes for one source.
func (p *program) dfrStates(ctx context.Context, args []string) (err error) {
	var f common
	opts := scene.DfrStateOptions{SrcPower: 1}
	most := int64(0)
	fs := newFlagSet("dfr-states")
	fs.common(&f)
	fs.numbers("tx", "`x,y,z` of the source of the states, in metres (required); its power is 1", opts.Src[:])
	fs.count("max-states", "write the first `N` states at most, in ascending order of their edges (default: all)", &most)
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	if !fs.seen["tx"] {
		return usagef("-tx is missing: give the position x,y,z of the source")
	}
	if err := f.check(p, columnNamesOf(writtenStates(&scene.DfrStates{}, 0, nil))); err != nil {
		return err
	}
	if f.plan {
		_, err := fmt.Fprintln(p.stdout, "dfr-states  one table, made once on the host; no rows are split")
		return err
	}
	watch := startWatch()
	e, err := p.openScene(ctx, &f, chunked.Options{}, "", withEdges, watch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	states, report, err := e.scene.Master().DfrStates(ctx, opts)
	if err != nil {
		return err
	}
	count := report.States
	if most > 0 && int64(count) > most {
		count = int(most)
		p.note("-max-states %d: the first of %d states", most, report.States)
	}
	if report.Inconsistent > 0 {
		p.note("%d %s of two faces with opposite orientation left out; orient the triangles of a mesh alike", report.Inconsistent,
			plural(report.Inconsistent, "edge"))
	}
	if report.States == 0 {
		p.note("no edge diffracts: %d %s, of which %d flat and %d concave; orient triangles counter-clockwise as seen from outside",
			report.Edges, plural(report.Edges, "edge"), report.Flat, report.Concave)
	}
	if report.Coincident > 0 {
		p.note("%d of %d %s are half planes where another one is: faces of %s share no vertices there; weld those of equal position",
			report.Coincident, report.States, plural(report.States, "state"), strings.Join(f.meshes, ", "))
	}
	if report.States > 0 && report.States == report.Boundary && report.Concave > 0 {
		p.note("no edge of several faces diffracts: %d %s of one face, and %d concave %s; if these are corners of solids, orient triangles counter-clockwise as seen from outside",
			report.Boundary, plural(report.Boundary, "edge"), report.Concave, plural(report.Concave, "edge"))
	}
	columns := writtenStates(states, count, f.fields)
	watch.lap("extract")
	if err := p.write(ctx, f.out, columns); err != nil {
		return err
	}
	watch.lap("write")
	if f.info {
		p.progress("")
		fmt.Fprintf(p.stderr, "dfr-states  edges=%d states=%d (half planes %d, of these %d where another one is, of three or more faces %d) flat=%d concave=%d inconsistent=%d closed=%d degenerate=%d\n"+
			"devices: %s\ntime: %s\n", report.Edges, report.States, report.Boundary, report.Coincident, report.NonManifold, report.Flat, report.Concave,
			report.Inconsistent, report.Closed, report.Degenerate, e.describeDevices(), watch)
	}
	return nil
}
