package main

import (
	"context"
	"math"
	"slices"

	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// stateColumns are the columns of a file of wedge states.
func stateColumns(s *scene.DfrStates, active *[]uint8) []tableColumn {
	return []tableColumn{
		{name: "edge_index", ints: &s.EdgeIndex},
		{name: "edge_pos", width: 3, floats: &s.EdgePos},
		{name: "edge_dir", width: 3, floats: &s.EdgeDir},
		{name: "edge_t_min", floats: &s.TMin},
		{name: "edge_t_max", floats: &s.TMax},
		{name: "n0", width: 3, floats: &s.N0},
		{name: "n1", width: 3, floats: &s.N1},
		{name: "prim0", ints: &s.Prim0},
		{name: "prim1", ints: &s.Prim1},
		{name: "exterior_angle", floats: &s.ExteriorAngle},
		{name: "src", width: 3, floats: &s.Src},
		{name: "src_power", floats: &s.SrcPower},
		{name: "active", bools: active, optional: true},
	}
}

// writtenStates are the columns of the first states.
func writtenStates(s *scene.DfrStates, count int, fields []string) []npy.Column {
	var columns []npy.Column
	for _, c := range stateColumns(s, nil) {
		shape := []int{count}
		width := 1
		if c.width > 0 {
			shape, width = append(shape, int(c.width)), int(c.width)
		}
		switch {
		case c.ints != nil:
			columns = append(columns, npy.Ints(c.name, (*c.ints)[:count*width], shape...))
		case c.floats != nil:
			columns = append(columns, npy.Floats(c.name, (*c.floats)[:count*width], shape...))
		}
	}
	return chosen(columns, fields)
}

// chosen are the columns that the fields name; nil names all.
func chosen(columns []npy.Column, fields []string) []npy.Column {
	if fields == nil {
		return columns
	}
	return slices.DeleteFunc(columns, func(c npy.Column) bool { return !slices.Contains(fields, c.Name) })
}

// columnNamesOf lists the names of columns.
func columnNamesOf(columns []npy.Column) (names []string) {
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}

// readStates reads wedge states and the optional mask of those that take part.
func (p *program) readStates(ctx context.Context, file string) (s scene.DfrStates, active []uint8, err error) {
	rows, err := p.readTable(ctx, "-states", file, stateColumns(&s, &active))
	if err != nil {
		return s, nil, err
	}
	if rows > math.MaxInt32 {
		return s, nil, forFile("-states", file, fileio.Faultf("at most 2147483647", "%d states", rows))
	}
	return s, active, nil
}
