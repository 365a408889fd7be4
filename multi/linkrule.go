package multi

import (
	"context"
	"time"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
)

// Sizes of the transport probe.
const (
	ruleRows    = 1 << 20
	ruleRepeats = 3 // after one that is not timed
	// ruleSlack is how much longer a kernel that works across the link may take than copies
	// of the same bytes. Direct needs no slots and one launch per device, and its reads
	// overlap with the search, so it is worth that.
	ruleSlack = 1.5
)

// rowWords are the words of a row: six that are read, one that is written.
const rowWords = 7

type peerRowsParams struct {
	Origins, Directions, Winners uint64
	Count                        uint64
}

var peerRowsKernel = ptx.Entry[peerRowsParams]{Module: "link", Name: "peer_rows"}

// choose says how kernels of From best reach rows that lie on To. Without a measurement a
// link that works is worth using directly.
func (l Link) choose() chunked.Transport {
	switch {
	case !l.OK():
		return chunked.Host
	case l.CopyTime > 0 && float64(l.DirectTime) > ruleSlack*float64(l.CopyTime):
		return chunked.Copy
	}
	return chunked.Direct
}

// weakest is the one transport that serves all pairs. For one device it does not matter.
func weakest(links []Link) chunked.Transport {
	t := chunked.Direct
	for _, l := range links {
		t = max(t, l.Transport)
	}
	return t
}

// batch is memory for the probe: the columns of so many rows.
func (e *endpoint) batch(rows int) (err error) {
	if rows == 0 {
		return nil
	}
	if e.across, err = e.module.Function(peerRowsKernel.Name); err != nil {
		return err
	}
	for _, mark := range []**cuda.Event{&e.from, &e.to} {
		if *mark, err = e.ctx.NewEvent(cuda.EventOptions{Timing: true}); err != nil {
			return err
		}
	}
	if e.rows, err = cuda.Alloc[uint32](e.ctx, rowWords*rows); err != nil {
		return err
	}
	// The self-test, which comes before the probe, waits for it.
	return cuda.Fill8(e.stream, e.rows, 0)
}

// rule times what the rule compares, on the rows of b: a kernel of a that reads and writes
// them across the link, and copies of the same bytes to a and back.
func (a *endpoint) rule(b *endpoint) (direct, copied time.Duration, err error) {
	n := a.rows.Len() / rowWords
	far, near := split(b.rows, n), split(a.rows, n)
	p := peerRowsParams{Origins: far[0].Addr(), Directions: far[1].Addr(), Winners: far[2].Addr(), Count: uint64(n)}
	grid, block := cuapi.D1(uint32((n+255)/256)), cuapi.D1(256)
	if direct, err = a.fastest(func() error {
		return a.across.Launch(a.stream, grid, block, 0, cuda.ParamBytes(&p))
	}); err != nil {
		return 0, 0, err
	}
	copied, err = a.fastest(func() error {
		for i := range 2 {
			if err := cuda.CopyAsync(a.stream, near[i], far[i]); err != nil {
				return err
			}
		}
		return cuda.CopyAsync(a.stream, far[2], near[2])
	})
	return direct, copied, err
}

// split divides a batch into origins, directions and winners.
func split(rows cuda.Slice[uint32], n int) (columns [3]cuda.Slice[uint32]) {
	for i, r := range [3][2]int{{0, 3 * n}, {3 * n, 6 * n}, {6 * n, rowWords * n}} {
		columns[i], _ = rows.Sub(r[0], r[1]) // a part of it by construction
	}
	return columns
}

// fastest is the shortest time of what f enqueues, by the device's clock.
func (e *endpoint) fastest(f func() error) (best time.Duration, err error) {
	for i := range ruleRepeats + 1 {
		for _, step := range []func() error{
			func() error { return e.stream.Record(e.from) },
			f,
			func() error { return e.stream.Record(e.to) },
			func() error { return e.stream.Synchronize(context.Background()) },
		} {
			if err := step(); err != nil {
				// The memory of the other device must not go under work in flight.
				return 0, firstError([]error{err, e.stream.Synchronize(context.Background())})
			}
		}
		d, err := e.to.Since(e.from)
		if err != nil {
			return 0, err
		}
		if d = max(d, 1); i == 1 || i > 1 && d < best {
			best = d
		}
	}
	return best, nil
}
