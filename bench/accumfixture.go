package main

import (
	"errors"
	"math"
	"slices"

	"github.com/raymux/raymux/scene"
)

// The accumulation fixture: one triangle, two edges that describe no wedge, and 4 x 4 cells in the plane of the
// triangle. It exercises arithmetic and load. Every target is seen only because the segment rule cuts the end of a
// segment that grazes the triangle, so that a run that loses samples is wrong.
const (
	fixtureWavelength = 1.0
	fixtureSeed       = 17
)

func fixtureMesh() scene.Mesh {
	return scene.Mesh{Vertices: []float32{-1, -1, 0, 1, -1, 0, -1, 1, 0}, Faces: []int32{0, 1, 2}}
}

func fixtureStates() scene.DfrStates {
	return scene.DfrStates{
		EdgeIndex: []int32{0, 1}, EdgePos: []float32{0, 0, 0, .25, 0, 0}, EdgeDir: slices.Repeat([]float32{1, 0, 0}, 2),
		TMin: []float32{-1, -1}, TMax: []float32{1, 1}, N0: slices.Repeat([]float32{0, 0, 1}, 2), N1: slices.Repeat([]float32{0, 0, -1}, 2),
		Prim0: []int32{0, 0}, Prim1: []int32{0, 0}, ExteriorAngle: []float32{math.Pi, math.Pi},
		Src: slices.Repeat([]float32{0, -1, .25}, 2), SrcPower: []float32{1, 1}, Count: 2,
	}
}

func fixtureMaterials() scene.Materials {
	return scene.Materials{EtaR: []float32{1}, Sigma: []float32{0}, MuR: []float32{1}, Gain: []float32{1}, Valid: []bool{true}}
}

func fixtureGrid() scene.Grid {
	return scene.Grid{Axis: scene.AxisZ, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 4, Res1: 4}
}

func fixtureOptions(samples int64) scene.DfrDirectOptions {
	return scene.DfrDirectOptions{
		Wavelength: fixtureWavelength, DirectSamples: samples, Seed: fixtureSeed,
		AllowPartialCoverage: samples < 32, // pairs of a state and a cell
	}
}

// fixture is the accumulation fixture on a scene or a set.
type fixture struct{ *stage }

// openFixture builds the fixture on an empty scene, which it closes with it.
func openFixture(t radio) (*fixture, error) {
	s, err := openStage(t, fixtureMesh(), fixtureMaterials())
	if err != nil {
		return nil, err
	}
	if err := s.use(fixtureStates()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return &fixture{s}, nil
}

// accumulate is the call of the rows.
func (f *fixture) accumulate(samples int64, words bool) (*scene.DfrAccum, error) {
	o := fixtureOptions(samples)
	o.Materials, o.KeepWords = f.materials, words
	return f.AccumDfrDirect(background, f.states, fixtureGrid(), o)
}

// timed is the call as a variant to time.
func (f *fixture) timed(samples int64) variant {
	return variant{run: func() (func() error, error) {
		r, err := f.accumulate(samples, false)
		if err != nil {
			return nil, err
		}
		return r.Close, nil
	}}
}

// expectedPower is the power of every cell for infinitely many samples, and the variance of the mean of one sample for
// each pair of a state and a cell, by quadrature in float64. No segment of the fixture is blocked.
func expectedPower() (power, variance []float64) {
	const steps = 2000
	g, states := fixtureGrid(), fixtureStates()
	area := g.CellArea()
	scale := fixtureWavelength / (4 * math.Pi) * fixtureWavelength / (4 * math.Pi) * area * .5 // half of all directions are free
	power, variance = make([]float64, g.Cells()), make([]float64, g.Cells())
	for c := range power {
		x := -1 + (float64(c%4)+.5)*.5
		y := -1 + (float64(c/4)+.5)*.5
		for s := range states.Count {
			var sum, squares float64
			for i := range steps {
				t := -1 + 2*(float64(i)+.5)/steps + float64(states.EdgePos[3*s])
				a2 := t*t + 1 + .0625
				b2 := (x-t)*(x-t) + y*y
				f := scale * 2 / (a2 * b2) // 2: length of the edge
				sum += f / steps
				squares += f * f / steps
			}
			power[c] += sum
			variance[c] += squares - sum*sum
		}
	}
	return power, variance
}
