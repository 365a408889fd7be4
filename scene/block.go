package scene

import (
	"errors"
	"sync"

	"github.com/raymux/raymux/cuda"
)

// block is the memory behind the columns of a result: one piece of the pool.
type block struct {
	rows   int64
	stream *cuda.Stream // where the memory may be reused

	mu       sync.Mutex
	memory   cuda.Slice[uint8] // nil after close
	borrowed bool              // the memory is somebody else's
}

// columnAlign separates columns, so that every one starts on a cache line.
const columnAlign = 256

// columnStarts is where columns of these widths in bytes start for n rows, and how much
// memory they take; a width of zero is an absent column.
func columnStarts(n int64, widths []int) (starts []int64, bytes int64) {
	return sizedStarts(columnSizes(n, widths))
}

// columnSizes is the bytes of columns of these widths.
func columnSizes(n int64, widths []int) []int64 {
	sizes := make([]int64, len(widths))
	for i, w := range widths {
		sizes[i] = n * int64(w)
	}
	return sizes
}

// sizedStarts is columnStarts for columns of these sizes in bytes.
func sizedStarts(sizes []int64) (starts []int64, bytes int64) {
	starts = make([]int64, len(sizes))
	for i, n := range sizes {
		starts[i] = bytes
		bytes += (n + columnAlign - 1) / columnAlign * columnAlign
	}
	return starts, bytes
}

// reserve makes room for n rows of columns of these widths, in the present memory if that
// is large enough, and returns where each column starts. A block that cannot be allocated
// is left closed.
func (b *block) reserve(s *Scene, st *cuda.Stream, n int64, widths []int) (starts []int64, err error) {
	return b.reserveColumns(s, st, n, columnSizes(n, widths))
}

// reserveColumns is reserve for columns of these sizes in bytes.
func (b *block) reserveColumns(s *Scene, st *cuda.Stream, n int64, sizes []int64) (starts []int64, err error) {
	starts, bytes := sizedStarts(sizes)
	if b.memory.IsNil() || int64(b.memory.Len()) < bytes || b.memory.Device() != s.ctx.Device() {
		if err := b.close(); err != nil {
			return nil, err
		}
		memory, err := cuda.PoolAlloc[uint8](s.ctx.Pool(), st, int(bytes))
		if err != nil {
			return nil, err
		}
		b.memory, b.borrowed = memory, false
	}
	b.rows, b.stream = n, st
	return starts, nil
}

// copyColumns copies columns of these sizes in bytes between two blocks, those without a
// gap behind them together with the next one. Gaps hold nothing that was ever written.
func copyColumns(st *cuda.Stream, dst, src cuda.Slice[uint8], sizes []int64) error {
	starts, _ := sizedStarts(sizes)
	for i := 0; i < len(sizes); {
		begin, end := starts[i], starts[i]+sizes[i]
		for i++; i < len(sizes) && starts[i] == end; i++ {
			end += sizes[i]
		}
		if begin == end {
			continue // all of them are absent
		}
		to, err := dst.Sub(int(begin), int(end))
		if err != nil {
			return err
		}
		from, err := src.Sub(int(begin), int(end))
		if err != nil {
			return err
		}
		if err := cuda.CopyAsync(st, to, from); err != nil {
			return err
		}
	}
	return nil
}

// column is bytes [start, start+bytes) of a block as values of a type.
func column[T cuda.Scalar](b *block, start, bytes int64) (cuda.Slice[T], error) {
	if bytes == 0 {
		return cuda.Slice[T]{}, nil
	}
	part, err := b.memory.Sub(int(start), int(start+bytes))
	if err != nil {
		return cuda.Slice[T]{}, err
	}
	return cuda.Reinterpret[T](part)
}

// close returns the memory to the pool, for work that follows on the block's
// stream. Of borrowed memory it does nothing.
func (b *block) close() error {
	b.mu.Lock()
	if b.borrowed {
		b.mu.Unlock()
		return nil
	}
	memory := b.memory
	b.memory = cuda.Slice[uint8]{}
	b.mu.Unlock()
	if memory.IsNil() {
		return nil
	}
	err := cuda.PoolFree(memory.Context().Pool(), b.stream, memory)
	if errors.Is(err, cuda.ErrClosed) { // the stream has ended before the result
		err = cuda.Free(memory)
	}
	return err
}

// holds reports whether one of the columns lies in the block. Devices of different drivers
// may have the same addresses.
func (b *block) holds(columns []RowColumn) bool {
	begin := b.memory.Addr()
	end := begin + b.memory.Bytes()
	for _, c := range columns {
		if at := c.Data.Addr(); at < end && at+c.Data.Bytes() > begin && c.Data.Device() == b.memory.Device() {
			return true
		}
	}
	return false
}
