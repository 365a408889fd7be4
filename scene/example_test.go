package scene_test

import (
	"context"
	"fmt"
	"log"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/scene"
)

// One triangle, one ray that hits it and one that does not.
func Example() {
	if err := closestHits(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// t [1 +Inf]
	// face [0 -1]
}

func closestHits() error {
	virtual, err := emu.New(1)
	if err != nil {
		return err
	}
	driver, err := cuda.OpenAPI(virtual) // cuda.Open for a GPU
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

	ctx := context.Background()
	_, err = s.AddMesh(scene.Mesh{
		Vertices: []float32{0, 0, 0, 1, 0, 0, 0, 1, 0},
		Faces:    []int32{0, 1, 2},
	})
	if err != nil {
		return err
	}
	if err := s.Build(ctx); err != nil {
		return err
	}

	var rays scene.Rays
	if rays.O, err = cuda.Upload(ctx, s.Stream(), []float32{.25, .25, -1, 2, 2, -1}); err != nil {
		return err
	}
	defer cuda.Free(rays.O)
	if rays.D, err = cuda.Upload(ctx, s.Stream(), []float32{0, 0, 1, 0, 0, 1}); err != nil {
		return err
	}
	defer cuda.Free(rays.D)
	hits, err := s.Intersect(ctx, rays, scene.All)
	if err != nil {
		return err
	}
	defer hits.Close()
	t, err := cuda.Download(ctx, s.Stream(), hits.T)
	if err != nil {
		return err
	}
	ids, err := cuda.Download(ctx, s.Stream(), hits.GlobalPrimID)
	if err != nil {
		return err
	}
	fmt.Println("t", t)
	fmt.Println("face", ids)
	return nil
}

// A triangle, and a copy of it beside it that moves up.
// A ray between two mirrors, four reflections.
func ExampleScene_TraceReflections() {
	if err := betweenMirrors(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// t [0.5 2 2 2]
	// faces [0 2 0 2]
	// height of the image [-0.5 4.5 -4.5 8.5]
}

func betweenMirrors() error {
	virtual, err := emu.New(1)
	if err != nil {
		return err
	}
	driver, err := cuda.OpenAPI(virtual) // cuda.Open for a GPU
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

	ctx := context.Background()
	for _, z := range []float32{0, 2} {
		_, err := s.AddMesh(scene.Mesh{
			Vertices: []float32{-10, -10, z, 10, -10, z, 10, 10, z, -10, 10, z},
			Faces:    []int32{0, 1, 2, 0, 2, 3},
		})
		if err != nil {
			return err
		}
	}
	if err := s.Build(ctx); err != nil {
		return err
	}

	var rays scene.Rays
	if rays.O, err = cuda.Upload(ctx, s.Stream(), []float32{.25, -.25, .5}); err != nil {
		return err
	}
	defer cuda.Free(rays.O)
	if rays.D, err = cuda.Upload(ctx, s.Stream(), []float32{.25, 0, -1}); err != nil {
		return err
	}
	defer cuda.Free(rays.D)
	chains, err := s.TraceReflections(ctx, rays, 4, scene.ChainImages)
	if err != nil {
		return err
	}
	defer chains.Close()
	t, err := cuda.Download(ctx, s.Stream(), chains.T)
	if err != nil {
		return err
	}
	faces, err := cuda.Download(ctx, s.Stream(), chains.PrimIDs)
	if err != nil {
		return err
	}
	images, err := cuda.Download(ctx, s.Stream(), chains.ImageSources)
	if err != nil {
		return err
	}
	fmt.Println("t", t)
	fmt.Println("faces", faces)
	fmt.Println("height of the image", []float32{images[2], images[5], images[8], images[11]})
	return nil
}

func ExampleScene_AddInstance() {
	if err := instances(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// [0 0 0 1 0 0 0 1 0 3 0 0 4 0 0 3 1 0]
	// [0 0 0 1 0 0 0 1 0 3 0 5 4 0 5 3 1 5]
}

func instances() error {
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

	ctx := context.Background()
	mesh, err := s.AddMesh(scene.Mesh{
		Vertices: []float32{0, 0, 0, 1, 0, 0, 0, 1, 0},
		Faces:    []int32{0, 1, 2},
	})
	if err != nil {
		return err
	}
	at := [16]float32{
		1, 0, 0, 3,
		0, 1, 0, 0,
		0, 0, 1, 0,
		0, 0, 0, 1,
	}
	copied, err := s.AddInstance(mesh, at, true)
	if err != nil {
		return err
	}
	if err := s.Build(ctx); err != nil {
		return err
	}
	if err := printVertices(ctx, s); err != nil {
		return err
	}
	at[11] = 5 // the third row moves z
	if err := s.SetInstanceTransform(copied, at); err != nil {
		return err
	}
	if err := s.Sync(ctx); err != nil {
		return err
	}
	return printVertices(ctx, s)
}

func printVertices(ctx context.Context, s *scene.Scene) error {
	g, err := s.GlobalGeometry(ctx)
	if err != nil {
		return err
	}
	fmt.Println(g.Vertices)
	return nil
}
