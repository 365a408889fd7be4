package scene

import (
	"fmt"

	"github.com/raymux/raymux/cuda"
)

// Rays is a batch of n rays x(t) = o + t*d. All columns are on the scene's device.
// A row is a miss when it is inactive, when a component of O or D is not finite,
// when d is zero, or when the interval [1e-6, TMax] is empty.
type Rays struct {
	// O is the origins in metres: 3n values.
	O cuda.Slice[float32]
	// D is the directions: 3n values of any non-zero length. They are never
	// normalised; t is in units of their length.
	D cuda.Slice[float32]
	// TMax is the largest accepted t of each row, n values, or absent. The bound
	// itself is accepted. +Inf bounds nothing, as if TMax were absent; with NaN the
	// row is a miss.
	TMax cuda.Slice[float32]
	// Active is n bytes, zero for rows to skip, or absent.
	Active cuda.Slice[uint8]
}

// BytesPerRow is the size of the columns that are present: 24, and 4 with TMax,
// and 1 with Active.
func (r Rays) BytesPerRow() int64 {
	n := int64(24)
	if !r.TMax.IsNil() {
		n += 4
	}
	if !r.Active.IsNil() {
		n++
	}
	return n
}

func (r Rays) rowColumns() [4]RowColumn {
	return [4]RowColumn{rowColumn(r.O, 12), rowColumn(r.D, 12), rowColumn(r.TMax, 4), rowColumn(r.Active, 1)}
}

// rayColumnsOf are the addresses of Rays.rowColumns, or of copies of them.
func rayColumnsOf(c []RowColumn) rayColumns {
	return rayColumns{O: c[0].Data.Addr(), D: c[1].Data.Addr(), TMax: c[2].Data.Addr(), Active: c[3].Data.Addr()}
}

// Flags selects the columns of a result, as a bit set.
type Flags uint32

// Bits of Flags, and all of them. T is always computed.
const (
	// None asks for T alone.
	None Flags = 0
	// Geometric asks for P, GeoN, Barycentric and the four id columns.
	Geometric Flags = 1
	// ShadingN asks for N.
	ShadingN Flags = 2
	// UV asks for UV.
	UV Flags = 4
	// All asks for every column.
	All = Geometric | ShadingN | UV
)

func (f Flags) check(op string) error {
	if f&^All != 0 {
		return badArg(op, "flags", "has unknown bits %#x, want a combination of Geometric, ShadingN and UV", uint32(f&^All))
	}
	return nil
}

// String names the bits, for example "Geometric|UV".
func (f Flags) String() string {
	switch f {
	case None:
		return "None"
	case All:
		return "All"
	}
	s := ""
	add := func(name string) {
		if s != "" {
			s += "|"
		}
		s += name
	}
	for _, b := range []struct {
		bit  Flags
		name string
	}{{Geometric, "Geometric"}, {ShadingN, "ShadingN"}, {UV, "UV"}} {
		if f&b.bit != 0 {
			add(b.name)
		}
	}
	if rest := f &^ All; rest != 0 {
		add(fmt.Sprintf("%#x", uint32(rest)))
	}
	return s
}

// checkRays validates a batch against the scene, without a driver call, and
// returns its number of rows. Errors: *ArgumentError, *cuda.WrongDeviceError.
func (s *Scene) checkRays(op string, rays Rays) (n int64, err error) {
	if rays.O.Len()%3 != 0 {
		return 0, badArg(op, "O", "has %d values, want 3 per ray", rays.O.Len())
	}
	rows := rays.O.Len() / 3
	if rays.D.Len() != 3*rows {
		return 0, badArg(op, "D", "has %d values, want %d for the %d rows of O", rays.D.Len(), 3*rows, rows)
	}
	if !rays.TMax.IsNil() && rays.TMax.Len() != rows {
		return 0, badArg(op, "TMax", "has %d values, want %d or none", rays.TMax.Len(), rows)
	}
	if !rays.Active.IsNil() && rays.Active.Len() != rows {
		return 0, badArg(op, "Active", "has %d values, want %d or none", rays.Active.Len(), rows)
	}
	err = firstError(
		checkMemory(s, op, "O", rays.O), checkMemory(s, op, "D", rays.D),
		checkMemory(s, op, "TMax", rays.TMax), checkMemory(s, op, "Active", rays.Active))
	if err != nil {
		return 0, err
	}
	return int64(rows), nil
}
