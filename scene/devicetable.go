package scene

import (
	"context"
	"slices"
	"sync"

	"github.com/raymux/raymux/cuda"
)

// deviceTable is a table that queries read whole: packed once on the host, with a copy on
// every device that needs one.
type deviceTable struct {
	name string // of the argument that takes it
	host []uint8

	mu     sync.Mutex
	closed bool
	copies map[*cuda.Device]cuda.Slice[uint8]
}

// fill packs the table, whose contents the caller may change afterwards, and brings it to
// the device of s.
func (t *deviceTable) fill(ctx context.Context, s *Scene, name string, packed []uint8) error {
	t.name, t.host = name, packed
	return t.CopyTo(ctx, s)
}

// CopyTo makes the table usable for queries on the device of s, too. Without effect if it
// is there already. It waits for the copy. Cost: one allocation and an upload. For
// schedulers.
func (t *deviceTable) CopyTo(ctx context.Context, s *Scene) error {
	if have, err := t.find(s); err != nil || !have.IsNil() {
		return err
	}
	memory, err := cuda.Upload(ctx, s.stream, t.host)
	if err != nil {
		return err
	}
	// The table may be read on any stream, and be freed while s is closed.
	if err := s.stream.Synchronize(ctx); err != nil {
		return firstError(err, cuda.Free(memory))
	}
	t.mu.Lock()
	keep := !t.closed && t.copies[s.ctx.Device()].IsNil()
	closed := t.closed
	if keep {
		if t.copies == nil {
			t.copies = map[*cuda.Device]cuda.Slice[uint8]{}
		}
		t.copies[s.ctx.Device()] = memory
	}
	t.mu.Unlock()
	if keep {
		return nil
	}
	if err := cuda.Free(memory); err != nil || !closed {
		return err // another goroutine was faster
	}
	return t.closedError()
}

// Bytes is the size of a copy.
func (t *deviceTable) Bytes() int64 { return int64(len(t.host)) }

// find is the copy on the device of s, or nothing.
func (t *deviceTable) find(s *Scene) (cuda.Slice[uint8], error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return cuda.Slice[uint8]{}, t.closedError()
	}
	return t.copies[s.ctx.Device()], nil
}

func (t *deviceTable) closedError() error {
	return badArg("CopyTo", t.name, "was closed; upload it again")
}

// on is the copy on the device of s.
func (t *deviceTable) on(op string, s *Scene) (cuda.Slice[uint8], error) {
	memory, err := t.find(s)
	if err != nil {
		return memory, badArg(op, t.name, "was closed; upload it again")
	}
	if !memory.IsNil() {
		return memory, nil
	}
	t.mu.Lock()
	var have []int
	for d := range t.copies {
		if d.Driver() != s.ctx.Driver() {
			t.mu.Unlock()
			return memory, badArg(op, t.name, "belongs to another driver")
		}
		have = append(have, d.Ordinal())
	}
	t.mu.Unlock()
	slices.Sort(have)
	return memory, badArg(op, t.name, "is on devices %v, want it on device %d: upload it with this scene", have, s.ctx.Device().Ordinal())
}

// close returns the memory of all copies. It is not exported, because a promoted Close
// fails on a nil pointer of the table that embeds this one, before it can look.
func (t *deviceTable) close() error {
	t.mu.Lock()
	copies := t.copies
	t.copies, t.closed = nil, true
	t.mu.Unlock()
	var first error
	for _, memory := range copies {
		first = firstError(first, cuda.Free(memory))
	}
	return first
}
