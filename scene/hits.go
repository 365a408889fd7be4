package scene

import (
	"errors"
	"sync"

	"github.com/raymux/raymux/cuda"
)

// Hits is the result of Intersect: one row per ray, one column per quantity. A
// column that was not asked for is empty. Rows without a hit have T = +inf, zeros
// and ids of -1.
//
// N and PrimID repeat GeoN and GlobalPrimID. They are there because together the
// columns are the record of 76 bytes that programs of this field exchange, which
// has a place for each. Meshes carry no vertex normals, so no normal is
// interpolated.
type Hits struct {
	// Flags are those of the call that filled the columns.
	Flags Flags

	T           cuda.Slice[float32] // ray parameter, [n]
	P           cuda.Slice[float32] // hit point in metres, [n,3]
	N           cuda.Slice[float32] // the same values as GeoN, [n,3]
	GeoN        cuda.Slice[float32] // unit face normal by winding, never flipped, [n,3]
	UV          cuda.Slice[float32] // weights of the second and third vertex, [n,2]
	Barycentric cuda.Slice[float32] // weights of the three vertices, [n,3]

	ShapeID      cuda.Slice[int32] // [n]
	PrimID       cuda.Slice[int32] // the same values as GlobalPrimID, [n]
	LocalPrimID  cuda.Slice[int32] // face of the shape, [n]
	GlobalPrimID cuda.Slice[int32] // face of the scene, [n]

	rows    int64
	winners cuda.Slice[int32]
	stream  *cuda.Stream // where the memory may be reused

	mu    sync.Mutex
	block cuda.Slice[uint8] // holds all columns; nil after Close
}

// Column describes one column of a result.
type Column struct {
	Name  string // in snake case, as in files: "geo_n"
	Width int    // values per row
	Flags Flags  // flags that enable it; None: always present
}

var columns = []Column{
	{"t", 1, None}, {"p", 3, Geometric}, {"n", 3, ShadingN}, {"geo_n", 3, Geometric}, {"uv", 2, UV},
	{"barycentric", 3, Geometric}, {"shape_id", 1, Geometric}, {"prim_id", 1, Geometric},
	{"local_prim_id", 1, Geometric}, {"global_prim_id", 1, Geometric},
}

// valueBytes is the size of every value of every column.
const valueBytes = 4

// HitColumns lists the columns that flags enable, in their order in a record.
func HitColumns(flags Flags) []Column {
	var out []Column
	for _, c := range columns {
		if c.Flags == None || flags&c.Flags != 0 {
			out = append(out, c)
		}
	}
	return out
}

// RowBytes is the size of one row of a result with these flags.
func RowBytes(flags Flags) int64 {
	n := 0
	for _, c := range columns {
		if c.Flags == None || flags&c.Flags != 0 {
			n += c.Width * valueBytes
		}
	}
	return int64(n)
}

// Rows is the number of rays.
func (h *Hits) Rows() int { return int(h.rows) }

// Winners is where the search stores one winner per row before Finalize replaces
// it: the storage of GlobalPrimID, or of T where that is absent. For schedulers.
func (h *Hits) Winners() cuda.Slice[int32] { return h.winners }

// Close returns the memory to the pool, for work that follows on the stream of
// the call that filled it. Work on the columns on other streams must have been
// joined to that stream. Close is idempotent, and of nil it does nothing.
func (h *Hits) Close() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	block := h.block
	h.block = cuda.Slice[uint8]{}
	h.mu.Unlock()
	if block.IsNil() {
		return nil
	}
	err := cuda.PoolFree(block.Context().Pool(), h.stream, block)
	if errors.Is(err, cuda.ErrClosed) { // the stream has ended before the result
		err = cuda.Free(block)
	}
	return err
}

// holds reports whether a column of rays lies in the memory of h.
func (h *Hits) holds(rays Rays) bool {
	begin := h.block.Addr()
	end := begin + h.block.Bytes()
	in := func(addr, bytes uint64) bool { return addr < end && addr+bytes > begin }
	return in(rays.O.Addr(), rays.O.Bytes()) || in(rays.D.Addr(), rays.D.Bytes()) ||
		in(rays.TMax.Addr(), rays.TMax.Bytes()) || in(rays.Active.Addr(), rays.Active.Bytes())
}

// columnAlign separates columns, so that every one starts on a cache line.
const columnAlign = 256

// hitLayout is where each column starts in the block; -1: absent.
func hitLayout(n int64, flags Flags) (starts [10]int64, bytes int64) {
	for i, c := range columns {
		starts[i] = -1
		if c.Flags == None || flags&c.Flags != 0 {
			starts[i] = bytes
			size := n * int64(c.Width) * valueBytes
			bytes += (size + columnAlign - 1) / columnAlign * columnAlign
		}
	}
	return starts, bytes
}

// NewHits allocates a result of n rows from the pool, for work on st. The contents
// are undefined. For schedulers.
func (s *Scene) NewHits(st *cuda.Stream, n int64, flags Flags) (*Hits, error) {
	h := &Hits{}
	if err := s.allocHits(h, st, n, flags); err != nil {
		return nil, err
	}
	return h, nil
}

// allocHits gives h columns for n rows, in its present block if that is large
// enough. A result that cannot be allocated is left closed.
func (s *Scene) allocHits(h *Hits, st *cuda.Stream, n int64, flags Flags) error {
	starts, bytes := hitLayout(n, flags)
	if h.block.IsNil() || int64(h.block.Len()) < bytes || h.block.Device() != s.ctx.Device() {
		if err := h.Close(); err != nil {
			return err
		}
		block, err := cuda.PoolAlloc[uint8](s.ctx.Pool(), st, int(bytes))
		if err != nil {
			return err
		}
		h.block = block
	}
	h.Flags, h.rows, h.stream = flags, n, st
	if err := h.cut(starts); err != nil {
		return err
	}
	return nil
}

// cut points the columns into the block.
func (h *Hits) cut(starts [10]int64) error {
	var first error
	floats := func(i int) cuda.Slice[float32] {
		v, err := view[float32](h, i, starts[i])
		if first == nil {
			first = err
		}
		return v
	}
	ints := func(i int) cuda.Slice[int32] {
		v, err := view[int32](h, i, starts[i])
		if first == nil {
			first = err
		}
		return v
	}
	h.T, h.P, h.N, h.GeoN, h.UV, h.Barycentric = floats(0), floats(1), floats(2), floats(3), floats(4), floats(5)
	h.ShapeID, h.PrimID, h.LocalPrimID, h.GlobalPrimID = ints(6), ints(7), ints(8), ints(9)
	h.winners = h.GlobalPrimID
	if starts[9] < 0 {
		h.winners = ints(0)
	}
	return first
}

// view is column i of h, of the given type, from byte start of the block.
func view[T cuda.Scalar](h *Hits, i int, start int64) (cuda.Slice[T], error) {
	var none cuda.Slice[T]
	if start < 0 {
		return none, nil
	}
	part, err := h.block.Sub(int(start), int(start+h.rows*int64(columns[i].Width)*valueBytes))
	if err != nil {
		return none, err
	}
	return cuda.Reinterpret[T](part)
}
