package scene

import (
	"fmt"
	"math"
)

// Axis is the axis that a grid's plane is perpendicular to.
type Axis uint8

// Axes. The zero value is the vertical one: horizontal planes are the most common.
const (
	AxisZ Axis = iota
	AxisX
	AxisY
)

// String is "x", "y" or "z".
func (a Axis) String() string {
	switch a {
	case AxisX:
		return "x"
	case AxisY:
		return "y"
	case AxisZ:
		return "z"
	}
	return fmt.Sprintf("Axis(%d)", uint8(a))
}

// Number is the index of the axis in a position: 0, 1 or 2 for x, y or z; -1 for
// another value.
func (a Axis) Number() int {
	switch a {
	case AxisX:
		return 0
	case AxisY:
		return 1
	case AxisZ:
		return 2
	}
	return -1
}

// Grid is Res0 times Res1 equal cells in the plane where the coordinate of Axis is
// Position. The other two coordinates, in the order x, y, z, run from Min0 to Max0 and
// from Min1 to Max1. Lengths are in metres. Cell (i, j) has the index j*Res0 + i, and
// results over a grid are arrays [Res1,Res0]. Cells are half-open: a point on the upper
// border of the grid is outside.
type Grid struct {
	Axis                   Axis
	Position               float32
	Min0, Max0, Min1, Max1 float32
	Res0, Res1             int32
}

// Cells is the number of cells.
func (g Grid) Cells() int64 { return int64(g.Res0) * int64(g.Res1) }

// CellArea is the area of a cell in square metres.
func (g Grid) CellArea() float64 {
	return (float64(g.Max0) - float64(g.Min0)) * (float64(g.Max1) - float64(g.Min1)) / float64(g.Cells())
}

// check refuses grids without cells.
func (g Grid) check(op string) error {
	if g.Axis.Number() < 0 {
		return badArg(op, "Grid.Axis", "is %d, want AxisX, AxisY or AxisZ", g.Axis)
	}
	if x := float64(g.Position); math.IsNaN(x) || math.IsInf(x, 0) {
		return badArg(op, "Grid.Position", "is %v, want a finite number", g.Position)
	}
	for i, r := range [...]struct{ lo, hi float32 }{{g.Min0, g.Max0}, {g.Min1, g.Max1}} {
		// The extent of a grid that kernels compute with must be finite, too.
		if extent := float64(r.hi - r.lo); !(r.hi > r.lo) || math.IsInf(extent, 0) {
			return badArg(op, fmt.Sprintf("Grid.Min%d, Max%d", i, i), "are %v, %v, want a finite interval with Max above Min", r.lo, r.hi)
		}
	}
	if g.Res0 < 1 || g.Res1 < 1 {
		return badArg(op, "Grid.Res0, Res1", "are %d, %d, want at least 1", g.Res0, g.Res1)
	}
	if g.Cells() >= 1<<31 {
		return badArg(op, "Grid.Res0, Res1", "make %d cells, want fewer than %d", g.Cells(), int64(1<<31))
	}
	return nil
}

// cells is Cells of grid.cuh.
type cells struct {
	Axis       int32
	Position   float32
	Min0, Max0 float32
	Min1, Max1 float32
	Res0, Res1 int32
}

func (g Grid) cells() cells {
	return cells{int32(g.Axis.Number()), g.Position, g.Min0, g.Max0, g.Min1, g.Max1, g.Res0, g.Res1}
}
