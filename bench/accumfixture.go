package main

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// radio is a scene, on one device or on several, that answers the operations on grids and paths.
type radio interface {
	AddMesh(scene.Mesh) (int, error)
	Build(context.Context) error
	Stream() *cuda.Stream
	Close() error
	UploadStates(context.Context, scene.DfrStates) (*scene.StateTable, error)
	UploadMaterials(context.Context, scene.Materials) (*scene.MaterialTable, error)
	AccumDfrDirect(context.Context, *scene.StateTable, scene.Grid, scene.DfrDirectOptions, ...scene.CallOption) (*scene.DfrAccum, error)
	AccumDfrCoherentDirect(context.Context, *scene.StateTable, scene.Grid, scene.DfrCoherentOptions, ...scene.CallOption) (*scene.DfrCoherentAccum, error)
	AccumulateReflections(context.Context, scene.Rays, scene.Grid, scene.ReflGridOptions, ...scene.CallOption) (*scene.ReflGrids, error)
	TraceDfrPaths(ctx context.Context, tx, rx cuda.Slice[float32], states *scene.StateTable, o scene.DfrPathOptions, opts ...scene.CallOption) (*scene.DfrPaths, error)
}

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
type fixture struct {
	radio
	states    *scene.StateTable
	materials *scene.MaterialTable
}

// openFixture builds the fixture on an empty scene, which it closes with it.
func openFixture(t radio) (f *fixture, err error) {
	f = &fixture{radio: t}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
			f = nil
		}
	}()
	if _, err = t.AddMesh(fixtureMesh()); err != nil {
		return f, err
	}
	if err = t.Build(background); err != nil {
		return f, err
	}
	if f.states, err = t.UploadStates(background, fixtureStates()); err != nil {
		return f, err
	}
	f.materials, err = t.UploadMaterials(background, fixtureMaterials())
	return f, err
}

func (f *fixture) close() error {
	var errs []error
	if f.states != nil {
		errs = append(errs, f.states.Close())
	}
	if f.materials != nil {
		errs = append(errs, f.materials.Close())
	}
	return errors.Join(append(errs, f.radio.Close())...)
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
