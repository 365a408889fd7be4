package main

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

// gains are path gains on the cells of the map, row by row from the south.
type gains struct {
	columns, rows int
	rays          []float32 // what rays bring
	edges         []float32 // what edges scatter
	states        int       // edges that scatter
}

// upright is the direction of the electric field of the transmitter.
var upright = [3]float32{0, 0, 1}

// coverage computes the map. Reflected and diffracted powers are added as if their phases were random.
func coverage(ctx context.Context, sc *multi.Scene, s settings) (*gains, error) {
	faces := 0
	for _, m := range []scene.Mesh{ground(), blocks()} {
		if _, err := sc.AddMesh(m); err != nil {
			return nil, err
		}
		faces += len(m.Faces) / 3
	}
	if err := sc.Build(ctx); err != nil {
		return nil, err
	}
	media, err := sc.UploadMaterials(ctx, materials(faces))
	if err != nil {
		return nil, err
	}
	defer media.Close()
	g := &gains{columns: s.columns, rows: s.columns * north / east}
	grid := scene.Grid{
		Position: receiverHeight, Max0: east, Max1: north, // z = receiverHeight
		Res0: int32(g.columns), Res1: int32(g.rows),
	}
	if g.rays, err = reflected(ctx, sc, grid, media, s); err != nil {
		return nil, err
	}
	if g.edges, err = g.diffracted(ctx, sc, grid, media); err != nil {
		return nil, err
	}
	return g, nil
}

// reflected is what rays bring to each cell, directly and over walls and ground.
func reflected(ctx context.Context, sc *multi.Scene, grid scene.Grid, media *scene.MaterialTable, s settings) ([]float32, error) {
	directions, solidAngle := fan(s.rays)
	origins := make([]float32, 0, len(directions))
	for range s.rays {
		origins = append(origins, transmitter[:]...)
	}
	var rays scene.Rays
	opts := scene.ReflGridOptions{
		Wavelength: wavelength, SolidAnglePerRay: solidAngle, MaxBounces: s.bounces, Materials: media, IncludeLOS: true,
	}
	for _, up := range []struct {
		to   *cuda.Slice[float32]
		from []float32
	}{{&rays.O, origins}, {&rays.D, directions}, {&opts.TxPosition, transmitter[:]}, {&opts.TxPolarization, upright[:]}} {
		var err error
		if *up.to, err = cuda.Upload(ctx, sc.Stream(), up.from); err != nil {
			return nil, err
		}
		defer cuda.Free(*up.to)
	}
	r, err := sc.AccumulateReflections(ctx, rays, grid, opts)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return cuda.Download(ctx, sc.Stream(), r.Power)
}

// diffracted is what edges of buildings scatter to the centre of each cell. The powers of the edges are added: the field of all
// of them has fringes of centimetres, of which the centres of cells would show some and not others.
func (g *gains) diffracted(ctx context.Context, sc *multi.Scene, grid scene.Grid, media *scene.MaterialTable) ([]float32, error) {
	records, err := sc.EdgeRecords(ctx)
	if err != nil {
		return nil, err
	}
	wedges, _, err := sc.DfrStates(ctx, scene.DfrStateOptions{Src: transmitter, SrcPower: 1, EdgeMask: diffracting(records)})
	if err != nil {
		return nil, err
	}
	g.states = wedges.Count
	states, err := sc.UploadStates(ctx, *wedges)
	if err != nil {
		return nil, err
	}
	defer states.Close()
	opts := scene.DfrPathOptions{Wavelength: wavelength, Materials: media}
	if opts.Active, err = cuda.Upload(ctx, sc.Stream(), bytes.Repeat([]byte{1}, wedges.Count)); err != nil {
		return nil, err
	}
	defer cuda.Free(opts.Active)
	var tx, rx cuda.Slice[float32]
	for _, up := range []struct {
		to   *cuda.Slice[float32]
		from []float32
	}{{&tx, transmitter[:]}, {&rx, centres(grid)}, {&opts.TxPolarization, upright[:]}} {
		if *up.to, err = cuda.Upload(ctx, sc.Stream(), up.from); err != nil {
			return nil, err
		}
		defer cuda.Free(*up.to)
	}
	power := make([]float32, grid.Cells())
	for chunk, err := range sc.TraceDfrPathsSeq(ctx, tx, rx, states, opts) {
		if err != nil {
			return nil, err
		}
		field, err := cuda.Download(ctx, sc.Stream(), chunk.Result.Field)
		if err != nil {
			return nil, err
		}
		for i, v := range field {
			power[(chunk.Start+int64(i/6))/int64(wedges.Count)] += v * v
		}
	}
	return power, nil
}

// centres are the centres of the cells of a horizontal grid whose first corner is the origin.
func centres(grid scene.Grid) (points []float32) {
	for j := range grid.Res1 {
		for i := range grid.Res0 {
			x, y := (float32(i)+.5)/float32(grid.Res0), (float32(j)+.5)/float32(grid.Res1)
			points = append(points, x*grid.Max0, y*grid.Max1, grid.Position)
		}
	}
	return points
}

// total is the map in dB, without the cells in buildings.
func (g *gains) total() decibels { return g.decibels(1) }

// decibels is the map with so much of the diffraction.
func (g *gains) decibels(edges float64) decibels {
	d := decibels{columns: g.columns, rows: g.rows}
	for c := range g.rays {
		v := 10 * math.Log10(float64(g.rays[c])+edges*float64(g.edges[c]))
		if inside(d.X(c%g.columns), d.Y(c/g.columns)) {
			v = math.NaN()
		}
		d.values = append(d.values, v)
	}
	return d
}

// report prints how much of the streets is covered, with and without diffraction.
func (g *gains) report() {
	fmt.Printf("%d buildings, %d edges that diffract, %d cells\n", len(buildings), g.states, g.columns*g.rows)
	for _, least := range []float64{-90, -105, -120} {
		fmt.Printf("above %.0f dB: %.0f %% of the streets, without diffraction %.0f %%\n", least,
			g.decibels(1).above(least), g.decibels(0).above(least))
	}
}

// above is the share of the shown cells above so many dB, in per cent.
func (d decibels) above(least float64) float64 {
	shown, above := 0, 0
	for _, v := range d.values {
		if !math.IsNaN(v) {
			shown++
			if v > least {
				above++
			}
		}
	}
	return 100 * float64(above) / float64(shown)
}
