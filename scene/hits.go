package scene

import "github.com/raymux/raymux/cuda"

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

	winners cuda.Slice[int32]
	block
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

// Close returns the memory to the pool, for work that follows on the stream of
// the call that filled it. Work on the columns on other streams must have been
// joined to that stream. Close is idempotent, and of nil it does nothing.
func (h *Hits) Close() error {
	if h == nil {
		return nil
	}
	return h.close()
}

func (h *Hits) memory() *block {
	if h == nil {
		return nil
	}
	return &h.block
}

// hitLayout is the bytes per row of every column.
func hitLayout(flags Flags) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		if c.Flags == None || flags&c.Flags != 0 {
			widths[i] = c.Width * valueBytes
		}
	}
	return widths
}

// cut points the columns into the block.
func (h *Hits) cut(starts []int64, widths []int) error {
	var first error
	floats := func(i int) cuda.Slice[float32] {
		v, err := column[float32](&h.block, starts[i], h.rows*int64(widths[i]))
		first = firstError(first, err)
		return v
	}
	ints := func(i int) cuda.Slice[int32] {
		v, err := column[int32](&h.block, starts[i], h.rows*int64(widths[i]))
		first = firstError(first, err)
		return v
	}
	h.T, h.P, h.N, h.GeoN, h.UV, h.Barycentric = floats(0), floats(1), floats(2), floats(3), floats(4), floats(5)
	h.ShapeID, h.PrimID, h.LocalPrimID, h.GlobalPrimID = ints(6), ints(7), ints(8), ints(9)
	// The search stores one winner per row where finalize replaces it by a column
	// that is always there.
	h.winners = h.GlobalPrimID
	if widths[9] == 0 {
		h.winners = ints(0)
	}
	return first
}
