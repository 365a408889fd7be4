package main

import (
	"cmp"
	"io"
	"iter"
	"slices"

	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// stream takes the results of a call off the devices chunk by chunk and puts them into the spool of the output, so that
// neither devices nor host ever hold all of it. Chunks of several devices alternate; the columns that it returns read the
// spool in the order of the rows.
func stream[R any](e *engine, chunks iter.Seq2[offload.Chunk[R], error], watch *stopwatch, columns func(R) ([]npy.Column, error)) ([]npy.Column, error) {
	type part struct {
		start   int64
		columns []npy.Column
	}
	var parts []part
	for chunk, err := range chunks {
		if err != nil {
			return nil, err
		}
		c, err := columns(chunk.Result)
		if err != nil {
			return nil, err
		}
		for i := range c {
			from, n := e.spool.Size(), c[i].Bytes()
			c[i], err = c[i].Move(e.spool, func(w io.Writer) error { return e.spool.CopyTo(w, from, n) })
			if err != nil {
				return nil, forFile("-out", e.out, err)
			}
		}
		parts = append(parts, part{chunk.Start, c})
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.start, b.start) })
	all := make([]npy.Column, len(parts[0].columns))
	for i := range all {
		var same []npy.Column
		for _, p := range parts {
			same = append(same, p.columns[i])
		}
		all[i] = npy.Join(same)
	}
	watch.lap("trace and download")
	return all, nil
}
