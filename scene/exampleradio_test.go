package scene_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// A wall of 4 m by 3 m between a source and the place that it shadows: what goes over its
// upper edge.
func ExampleScene_AccumDfrDirect() {
	if err := overTheWall(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 4 edges, 1 of them diffracts
	// 256 samples reach the cell, 0 are hidden
	// -68.3 dB
}

func overTheWall() error {
	driver, err := cuda.OpenEmulator(1) // cuda.Open for a GPU
	if err != nil {
		return err
	}
	defer driver.Close()
	device, err := driver.Device(0)
	if err != nil {
		return err
	}
	c, err := device.Retain()
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := scene.New(c, scene.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	wall := scene.Mesh{
		Vertices: []float32{-2, 0, 0, 2, 0, 0, 2, 0, 3, -2, 0, 3},
		Faces:    []int32{0, 1, 2, 0, 2, 3},
	}
	if _, err := s.AddMesh(wall); err != nil {
		return err
	}
	ctx := context.Background()
	if err := s.Build(ctx); err != nil {
		return err
	}

	// The wall stands on the ground, and its sides are those of houses: the upper edge is
	// the only one that diffracts.
	records, err := s.EdgeRecords(ctx)
	if err != nil {
		return err
	}
	upper := make([]bool, len(records.V0))
	sides := 0
	for i := range upper {
		upper[i] = records.A[3*i+2] == 3 && records.B[3*i+2] == 3
		if records.Face1[i] < 0 {
			sides++
		}
	}
	states, report, err := s.DfrStates(ctx, scene.DfrStateOptions{Src: [3]float32{0, -10, 1.5}, SrcPower: 1, EdgeMask: upper})
	if err != nil {
		return err
	}
	fmt.Printf("%d edges, %d of them diffracts\n", sides, report.States)
	table, err := s.UploadStates(ctx, *states)
	if err != nil {
		return err
	}
	defer table.Close()

	cell := scene.Grid{Axis: scene.AxisZ, Position: 1.5, Min0: -1, Max0: 1, Min1: 9, Max1: 11, Res0: 1, Res1: 1}
	r, err := s.AccumDfrDirect(ctx, table, cell, scene.DfrDirectOptions{Wavelength: 0.125, DirectSamples: 256})
	if err != nil {
		return err
	}
	defer r.Close()
	counts, err := r.ReadCounters(ctx)
	if err != nil {
		return err
	}
	power, err := cuda.Download(ctx, s.Stream(), r.Power)
	if err != nil {
		return err
	}
	fmt.Printf("%d samples reach the cell, %d are hidden\n", counts.Direct, counts.VisRejects)
	fmt.Printf("%.1f dB\n", 10*math.Log10(float64(power[0])))
	return nil
}
