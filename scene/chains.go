package scene

import (
	"fmt"
	"strings"

	"github.com/raymux/raymux/cuda"
)

// Chains is the result of TraceReflections: one row per ray, and in each row one slot
// per bounce, stored at row*Bounces + bounce. A chain fills the first slots of its row.
// Empty slots have T = +inf, ids of -1 and zeros. A column that was not asked for is
// empty.
//
// With o, d the start and the direction of a leg, the one that a slot describes ends at
// o + T*d; the next leg starts there. Legs are as long as |d| says: T is in units of
// the length of the ray's direction on all of them, and the path up to a slot has the
// length |d| times the sum of T so far, which is the distance from the slot's image
// source to its hit point.
type Chains struct {
	// Bounces is the number of slots in a row.
	Bounces int
	// Fields are those of the call that filled the columns.
	Fields ChainFields

	Valid   cuda.Slice[uint8]   // 1 where a surface was hit, [n,Bounces]
	T       cuda.Slice[float32] // parameter of the leg, never negative, [n,Bounces]
	PrimIDs cuda.Slice[int32]   // face of the scene, [n,Bounces]

	ImageSources cuda.Slice[float32] // the ray's origin mirrored by all faces so far, [n,Bounces,3]
	HitPoints    cuda.Slice[float32] // in metres, [n,Bounces,3]
	Normals      cuda.Slice[float32] // unit normal of the side that was hit, [n,Bounces,3]
	Barycentric  cuda.Slice[float32] // weights of the second and third vertex, [n,Bounces,2]

	block
}

// ChainFields selects columns of Chains beside Valid, T and PrimIDs, as a bit set.
type ChainFields uint32

// Bits of ChainFields, and all of them.
const (
	// ChainCore asks for nothing more.
	ChainCore ChainFields = 0
	// ChainImages asks for ImageSources.
	ChainImages ChainFields = 1
	// ChainHits asks for HitPoints.
	ChainHits ChainFields = 2
	// ChainNormals asks for Normals.
	ChainNormals ChainFields = 4
	// ChainBarycentric asks for Barycentric.
	ChainBarycentric ChainFields = 8
	// ChainAll asks for every column.
	ChainAll = ChainImages | ChainHits | ChainNormals | ChainBarycentric
)

func (f ChainFields) check(op string) error {
	if f&^ChainAll != 0 {
		return badArg(op, "fields", "has unknown bits %#x, want a combination of ChainImages, ChainHits, ChainNormals and ChainBarycentric", uint32(f&^ChainAll))
	}
	return nil
}

// String names the bits, for example "ChainImages|ChainHits".
func (f ChainFields) String() string {
	switch f {
	case ChainCore:
		return "ChainCore"
	case ChainAll:
		return "ChainAll"
	}
	var names []string
	for i, name := range []string{"ChainImages", "ChainHits", "ChainNormals", "ChainBarycentric"} {
		if f>>i&1 != 0 {
			names = append(names, name)
		}
	}
	if rest := f &^ ChainAll; rest != 0 {
		names = append(names, fmt.Sprintf("%#x", uint32(rest)))
	}
	return strings.Join(names, "|")
}

// ChainColumn describes one column of Chains.
type ChainColumn struct {
	Name   string      // in snake case, as in files: "hit_points"
	Width  int         // values per slot
	Bytes  int         // per slot
	Fields ChainFields // bit that enables it; ChainCore: always present
}

var chainColumns = []ChainColumn{
	{"valid", 1, 1, ChainCore}, {"t", 1, 4, ChainCore}, {"prim_ids", 1, 4, ChainCore},
	{"image_sources", 3, 12, ChainImages}, {"hit_points", 3, 12, ChainHits},
	{"normals", 3, 12, ChainNormals}, {"barycentric", 2, 8, ChainBarycentric},
}

// ChainColumns lists the columns that fields enable, in the order of Chains.
func ChainColumns(fields ChainFields) []ChainColumn {
	var out []ChainColumn
	for _, c := range chainColumns {
		if c.Fields == ChainCore || fields&c.Fields != 0 {
			out = append(out, c)
		}
	}
	return out
}

// ChainRowBytes is the size of one row of a result with so many bounces and these
// columns.
func ChainRowBytes(bounces int, fields ChainFields) int64 {
	n := 0
	for _, c := range ChainColumns(fields) {
		n += c.Bytes
	}
	return int64(n) * int64(bounces)
}

// Rows is the number of rays.
func (c *Chains) Rows() int { return int(c.rows) }

// Close returns the memory to the pool, for work that follows on the stream of the
// call that filled it. Work on the columns on other streams must have been joined to
// that stream. Close is idempotent, and of nil it does nothing.
func (c *Chains) Close() error {
	if c == nil {
		return nil
	}
	return c.close()
}

func (c *Chains) memory() *block {
	if c == nil {
		return nil
	}
	return &c.block
}

// chainLayout is the bytes per row of every column.
func chainLayout(bounces int, fields ChainFields) []int {
	widths := make([]int, len(chainColumns))
	for i, col := range chainColumns {
		if col.Fields == ChainCore || fields&col.Fields != 0 {
			widths[i] = col.Bytes * bounces
		}
	}
	return widths
}

// cut points the columns into the block.
func (c *Chains) cut(starts []int64, widths []int) (err error) {
	bytes := func(i int) int64 { return c.rows * int64(widths[i]) }
	if c.Valid, err = column[uint8](&c.block, starts[0], bytes(0)); err != nil {
		return err
	}
	if c.PrimIDs, err = column[int32](&c.block, starts[2], bytes(2)); err != nil {
		return err
	}
	for i, dst := range [...]*cuda.Slice[float32]{
		1: &c.T, 3: &c.ImageSources, 4: &c.HitPoints, 5: &c.Normals, 6: &c.Barycentric,
	} {
		if dst == nil {
			continue
		}
		if *dst, err = column[float32](&c.block, starts[i], bytes(i)); err != nil {
			return err
		}
	}
	return nil
}
