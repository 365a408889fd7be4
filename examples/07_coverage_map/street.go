package main

import (
	"math"

	"github.com/raymux/raymux/scene"
)

// The quarter: a ground of 120 m by 90 m, in metres from its south-west corner.
const (
	east, north    = 120, 90
	receiverHeight = 1.5
	frequency      = 3.5e9
	wavelength     = 299792458 / frequency
)

// transmitter stands on a mast at a crossing.
var transmitter = [3]float32{52, 41, 8}

// building is a box on the ground.
type building struct{ x0, y0, x1, y1, height float32 }

// buildings leave two streets along x and two along y.
var buildings = []building{
	{6, 6, 26, 20, 16}, {6, 24, 20, 34, 9}, {32, 8, 46, 33, 21},
	{59, 6, 84, 18, 13}, {62, 23, 82, 34, 18}, {96, 10, 114, 33, 24},
	{8, 49, 25, 62, 12}, {10, 68, 44, 82, 19}, {31, 48, 45, 60, 10},
	{60, 50, 80, 58, 15}, {58, 66, 83, 84, 22}, {95, 48, 113, 78, 17},
}

// inside reports whether a point of the ground is covered by a building.
func inside(x, y float64) bool {
	for _, b := range buildings {
		if float64(b.x0) < x && x < float64(b.x1) && float64(b.y0) < y && y < float64(b.y1) {
			return true
		}
	}
	return false
}

// ground is the first mesh. Its border stands for the rest of the world and diffracts nothing, so it has no edges.
func ground() scene.Mesh {
	const margin = 40
	return scene.Mesh{
		Vertices: []float32{-margin, -margin, 0, east + margin, -margin, 0, east + margin, north + margin, 0, -margin, north + margin, 0},
		Faces:    []int32{0, 1, 2, 0, 2, 3},
		NoEdges:  true,
	}
}

// blocks is the second mesh: walls and roofs, seen from outside counter-clockwise. Boxes stand on the ground and need no
// floor.
func blocks() scene.Mesh {
	var m scene.Mesh
	for _, b := range buildings {
		v := int32(len(m.Vertices) / 3)
		for _, z := range []float32{0, b.height} {
			m.Vertices = append(m.Vertices, b.x0, b.y0, z, b.x1, b.y0, z, b.x1, b.y1, z, b.x0, b.y1, z)
		}
		for k := range int32(4) {
			l := (k + 1) % 4
			m.Faces = append(m.Faces, v+k, v+l, v+l+4, v+k, v+l+4, v+k+4)
		}
		m.Faces = append(m.Faces, v+4, v+5, v+6, v+4, v+6, v+7)
	}
	return m
}

// materials of the ground and of the walls at the frequency of the map: moist soil and concrete.
func materials(faces int) scene.Materials {
	m := scene.Materials{
		EtaR: []float32{15, 5.24}, Sigma: []float32{.27, .123}, MuR: []float32{1, 1}, Gain: []float32{1, 1},
		Valid: []bool{true, true}, Index: make([]int32, faces),
	}
	for face := range m.Index[2:] {
		m.Index[2+face] = 1
	}
	return m
}

// diffracting is the mask of the edges at which the map has waves bend: all that are not on the ground.
func diffracting(records *scene.EdgeRecords) []bool {
	mask := make([]bool, len(records.V0))
	for i := range mask {
		mask[i] = records.A[3*i+2] > 0 || records.B[3*i+2] > 0
	}
	return mask
}

// fan is rays from the transmitter, spread evenly over all directions below the horizon, and the solid angle of each: a spiral
// from rim to pole whose turns are as far apart as its points. Walls are upright and receivers are lower than the transmitter, so
// a ray that leaves upwards reaches none.
func fan(n int) (directions []float32, solidAngle float64) {
	golden := math.Pi * (3 - math.Sqrt(5))
	directions = make([]float32, 0, 3*n)
	for i := range n {
		z := -(float64(i) + .5) / float64(n)
		sin, cos := math.Sincos(golden * float64(i))
		r := math.Sqrt(1 - z*z)
		directions = append(directions, float32(r*cos), float32(r*sin), float32(z))
	}
	return directions, 2 * math.Pi / float64(n)
}
