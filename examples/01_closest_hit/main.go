// Command 01_closest_hit asks one question of one triangle: where does a ray
// hit it? It runs on the first GPU, or on the emulator with -emu.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

func main() {
	emu := flag.Bool("emu", false, "run on an emulated device")
	flag.Parse()
	if err := run(*emu); err != nil {
		log.Fatal(err)
	}
}

func run(emu bool) error {
	drv, err := open(emu)
	if err != nil {
		return err
	}
	defer drv.Close()
	dev, err := drv.Device(0)
	if err != nil {
		return err
	}
	gpu, err := dev.Retain()
	if err != nil {
		return err
	}
	defer gpu.Close()

	sc, err := scene.New(gpu, scene.Options{})
	if err != nil {
		return err
	}
	defer sc.Close()
	mesh := scene.Mesh{Vertices: []float32{0, 0, 0, 1, 0, 0, 0, 1, 0}, Faces: []int32{0, 1, 2}}
	if _, err := sc.AddMesh(mesh); err != nil {
		return err
	}
	ctx := context.Background()
	if err := sc.Build(ctx); err != nil {
		return err
	}

	o, err := cuda.Upload(ctx, sc.Stream(), []float32{.25, .25, -1})
	if err != nil {
		return err
	}
	defer cuda.Free(o)
	d, err := cuda.Upload(ctx, sc.Stream(), []float32{0, 0, 1})
	if err != nil {
		return err
	}
	defer cuda.Free(d)
	hits, err := sc.Intersect(ctx, scene.Rays{O: o, D: d}, scene.All)
	if err != nil {
		return err
	}
	defer hits.Close()

	t, err := cuda.Download(ctx, sc.Stream(), hits.T)
	if err != nil {
		return err
	}
	p, err := cuda.Download(ctx, sc.Stream(), hits.P)
	if err != nil {
		return err
	}
	prim, err := cuda.Download(ctx, sc.Stream(), hits.PrimID)
	if err != nil {
		return err
	}
	fmt.Printf("%s: triangle %d at t = %g, point %v\n", dev.Name(), prim[0], t[0], p)
	return nil
}

func open(emu bool) (*cuda.Driver, error) {
	if emu {
		return cuda.OpenEmulator(1)
	}
	drv, err := cuda.Open()
	if err != nil {
		return nil, fmt.Errorf("%w; -emu runs on an emulated device", err)
	}
	return drv, nil
}
