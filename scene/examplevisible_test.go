package scene_test

import (
	"context"
	"fmt"
	"log"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// A polyline from below a triangle to just under it, and then through it.
func ExampleScene_VisibleChain() {
	if err := firstBlocker(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// segment [1] is blocked by triangle [0]
}

func firstBlocker() error {
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
	if _, err := s.AddMesh(scene.Mesh{Vertices: []float32{0, 0, 0, 1, 0, 0, 0, 1, 0}, Faces: []int32{0, 1, 2}}); err != nil {
		return err
	}
	ctx := context.Background()
	if err := s.Build(ctx); err != nil {
		return err
	}

	lines := scene.Polylines{Segments: 2}
	if lines.Points, err = cuda.Upload(ctx, s.Stream(), []float32{.2, .2, -2, .2, .2, -1, .2, .2, 1}); err != nil {
		return err
	}
	defer cuda.Free(lines.Points)
	if lines.Length, err = cuda.Upload(ctx, s.Stream(), []int32{2}); err != nil {
		return err
	}
	defer cuda.Free(lines.Length)
	v, err := s.VisibleChain(ctx, lines)
	if err != nil {
		return err
	}
	defer v.Close()
	segment, err := cuda.Download(ctx, s.Stream(), v.FirstBlockedSegment)
	if err != nil {
		return err
	}
	triangle, err := cuda.Download(ctx, s.Stream(), v.FirstBlockedPrim)
	if err != nil {
		return err
	}
	fmt.Printf("segment %v is blocked by triangle %v\n", segment, triangle)
	return nil
}
