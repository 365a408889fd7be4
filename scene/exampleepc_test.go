package scene_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// A path over a glass floor, between a source 1 m and a receiver 2 m above it.
func ExampleScene_TraceReflEPCField() {
	if err := floorGain(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 4.243 m, -41.4 dB
}

func floorGain() error {
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
	floor := scene.Mesh{Vertices: []float32{-9, -9, 0, 9, -9, 0, 0, 9, 0}, Faces: []int32{0, 1, 2}}
	if _, err := s.AddMesh(floor); err != nil {
		return err
	}
	ctx := context.Background()
	if err := s.Build(ctx); err != nil {
		return err
	}
	glass, err := s.UploadMaterials(ctx, scene.Materials{
		EtaR: []float32{4}, Sigma: []float32{0}, MuR: []float32{1}, Gain: []float32{1},
	})
	if err != nil {
		return err
	}
	defer glass.Close()

	rows := scene.EPCRows{Bounces: 1}
	if rows.Source, err = cuda.Upload(ctx, s.Stream(), []float32{0, 0, 1}); err != nil {
		return err
	}
	defer cuda.Free(rows.Source)
	if rows.Receiver, err = cuda.Upload(ctx, s.Stream(), []float32{3, 0, 2}); err != nil {
		return err
	}
	defer cuda.Free(rows.Receiver)
	if rows.Seq, err = cuda.Upload(ctx, s.Stream(), []int32{0}); err != nil {
		return err
	}
	defer cuda.Free(rows.Seq)
	y, err := cuda.Upload(ctx, s.Stream(), []float32{0, 1, 0})
	if err != nil {
		return err
	}
	defer cuda.Free(y)
	f, err := s.TraceReflEPCField(ctx, rows, scene.EPCFieldOptions{Materials: glass, Wavelength: 1, Polarization: y})
	if err != nil {
		return err
	}
	defer f.Close()
	length, err := cuda.Download(ctx, s.Stream(), f.PathLength)
	if err != nil {
		return err
	}
	field, err := cuda.Download(ctx, s.Stream(), f.Field)
	if err != nil {
		return err
	}
	gain := 0.0
	for _, v := range field {
		gain += float64(v) * float64(v)
	}
	fmt.Printf("%.3f m, %.1f dB\n", length[0], 10*math.Log10(gain))
	return nil
}
