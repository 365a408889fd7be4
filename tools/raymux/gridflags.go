package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/raymux/raymux/scene"
)

// gridFlags say where the cells of an accumulation are.
type gridFlags struct {
	axis     scene.Axis
	position [1]float32
	min, max [2]float32
	res      [2]int32
}

// maxCells is the most cells of a grid: their numbers are int32.
const maxCells = math.MaxInt32

func (fs *flagSet) grid(g *gridFlags) {
	fs.once("grid-axis", "`0|1|2`, or x|y|z: the grid is a plane of constant x, y or z (default 2)", func(s string) error {
		axes := map[string]scene.Axis{"0": scene.AxisX, "1": scene.AxisY, "2": scene.AxisZ, "x": scene.AxisX, "y": scene.AxisY, "z": scene.AxisZ}
		axis, ok := axes[s]
		if !ok {
			return errors.New("use 0, 1 or 2, or x, y or z")
		}
		g.axis = axis
		return nil
	})
	fs.numbers("grid-position", "`z` of the plane, in metres (required)", g.position[:])
	fs.numbers("grid-min", "`a,b`: the smallest coordinates of the grid along its two axes, in ascending order, in metres (required)", g.min[:])
	fs.numbers("grid-max", "`a,b`: the largest coordinates of the grid along its two axes, in ascending order, in metres (required)", g.max[:])
	fs.wholes("grid-res", "`n0,n1`: cells along the two axes (required); grids in the result have the shape [n1, n0]", func(a, b int64) error {
		if a < 1 || b < 1 || a > maxCells || b > maxCells || a*b > maxCells {
			return fmt.Errorf("use two numbers from 1 whose product is at most %d", maxCells)
		}
		g.res = [2]int32{int32(a), int32(b)}
		return nil
	})
}

// grid is the grid that the flags describe.
func (g *gridFlags) grid(fs *flagSet) (scene.Grid, error) {
	for _, name := range []string{"grid-position", "grid-min", "grid-max", "grid-res"} {
		if !fs.seen[name] {
			return scene.Grid{}, usagef("-%s is missing; a grid needs -grid-position, -grid-min, -grid-max and -grid-res", name)
		}
	}
	for k := range g.min {
		if !(g.max[k] > g.min[k]) {
			return scene.Grid{}, usagef("-grid-max: found %v,%v; expected more than %v,%v of -grid-min", g.max[0], g.max[1], g.min[0], g.min[1])
		}
		if math.IsInf(float64(g.max[k]-g.min[k]), 0) {
			return scene.Grid{}, usagef("-grid-max: found %v,%v, which is too far from %v,%v of -grid-min for float32; expected a smaller grid",
				g.max[0], g.max[1], g.min[0], g.min[1])
		}
	}
	return scene.Grid{
		Axis: g.axis, Position: g.position[0],
		Min0: g.min[0], Max0: g.max[0], Min1: g.min[1], Max1: g.max[1],
		Res0: g.res[0], Res1: g.res[1],
	}, nil
}
