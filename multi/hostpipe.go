package multi

import (
	"context"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// hostSlots is how many chunks are on their way through host memory in each direction:
// one is written while the other is read.
const hostSlots = 2

// hostPipe is the part of a pipe that goes through page-locked host memory. Its streams
// are on the master. The memory is kept for the next call, because locking pages takes
// longer than most calls.
type hostPipe struct {
	up, down *cuda.Stream // master to host, host to master

	staged []*cuda.Event // the inputs are in host memory
	landed []*cuda.Event // the winners are on the master
	exit   *cuda.Event

	in, out *cuda.Pinned[uint8]
}

func (h *hostPipe) prepare(master *cuda.Context, length int) error {
	return firstError([]error{
		stream(master, &h.up), stream(master, &h.down),
		grow(master, &h.staged, length), grow(master, &h.landed, length), one(master, &h.exit),
	})
}

// lease makes the host memory at least so large, and orders its use after that of earlier
// calls.
func (h *hostPipe) lease(r *replica, in, out int64) error {
	p := r.pipe
	ends := []struct {
		from, to *cuda.Stream
		e        *cuda.Event
	}{{p.in, h.up, p.exit}, {h.down, p.out, h.exit}}
	for _, x := range ends {
		if err := x.from.Record(x.e); err != nil {
			return err
		}
		if err := x.to.Wait(x.e); err != nil {
			return err
		}
	}
	return firstError([]error{
		pin(&h.in, r.ctx, in, h.up, p.in), pin(&h.out, r.ctx, out, h.down, p.out),
	})
}

// pin replaces host memory that is too small. The streams use it.
func pin(m **cuda.Pinned[uint8], c *cuda.Context, bytes int64, streams ...*cuda.Stream) error {
	if bytes == 0 || *m != nil && int64((*m).Len()) >= bytes {
		return nil
	}
	if *m != nil {
		for _, st := range streams {
			if err := st.Synchronize(context.Background()); err != nil {
				return err
			}
		}
		if err := (*m).Close(); err != nil {
			return err
		}
		*m = nil
	}
	fresh, err := cuda.AllocPinned[uint8](c, int(bytes))
	*m = fresh
	return err
}

func (h *hostPipe) close() error {
	if h == nil {
		return nil
	}
	var errs []error
	for _, st := range []*cuda.Stream{h.up, h.down} {
		if st != nil {
			errs = append(errs, st.Synchronize(context.Background()), st.Close())
		}
	}
	for _, events := range [][]*cuda.Event{h.staged, h.landed, {h.exit}} {
		for _, e := range events {
			errs = append(errs, e.Close())
		}
	}
	return firstError(append(errs, h.in.Close(), h.out.Close()))
}

// toHost enqueues copies of columns to host memory from offset at on, one after the other:
// of those that all rows share or of the others.
func toHost(st *cuda.Stream, host *cuda.Pinned[uint8], at int64, columns []scene.RowColumn, whole bool) error {
	return eachPresent(columns, whole, func(c scene.RowColumn) error {
		err := cuda.CopyOutPinned(st, host, int(at), c.Data)
		at += int64(c.Data.Len())
		return err
	})
}

// fromHost is toHost in the other direction.
func fromHost(st *cuda.Stream, columns []scene.RowColumn, host *cuda.Pinned[uint8], at int64, whole bool) error {
	return eachPresent(columns, whole, func(c scene.RowColumn) error {
		err := cuda.CopyInPinned(st, c.Data, host, int(at))
		at += int64(c.Data.Len())
		return err
	})
}

func eachPresent(columns []scene.RowColumn, whole bool, f func(scene.RowColumn) error) error {
	for _, c := range columns {
		if c.Data.IsNil() || c.Whole() != whole {
			continue
		}
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}
