package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// edgeRecords writes the table of edges: v0, v1, face0, face1, opposite0, opposite1 in one row each.
func (p *program) edgeRecords(ctx context.Context, args []string) (err error) {
	var f common
	fs := newFlagSet("edge-records")
	fs.common(&f)
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	if err := f.check(p, []string{"records"}); err != nil {
		return err
	}
	if f.plan {
		_, err := fmt.Fprintln(p.stdout, "edge-records  one table, extracted once on the host; no rows are split")
		return err
	}
	watch := startWatch()
	e, err := p.openScene(ctx, &f, chunked.Options{}, "", withEdges, watch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	records, err := e.scene.Master().EdgeRecords(ctx)
	if err != nil {
		return err
	}
	column := recordTable(records)
	watch.lap("extract")
	if err := p.write(ctx, f.out, []npy.Column{column}); err != nil {
		return err
	}
	watch.lap("write")
	if f.info {
		p.progress("")
		fmt.Fprintf(p.stderr, "edge-records  edges=%d  devices: %s\ntime: %s\n", column.Shape[0], e.describeDevices(), watch)
	}
	return nil
}

// recordTable interleaves the columns of the records.
func recordTable(r *scene.EdgeRecords) npy.Column {
	columns := [][]int32{r.V0, r.V1, r.Face0, r.Face1, r.Opposite0, r.Opposite1}
	table := make([]int32, 0, len(columns)*len(r.V0))
	for i := range r.V0 {
		for _, c := range columns {
			table = append(table, c[i])
		}
	}
	return npy.Ints("records", table, len(r.V0), len(columns))
}
