// Command 02_two_devices sends one batch of rays to two devices and shows
// that nothing changes but the plan: the same call, the same bits. It runs on
// the first two GPUs, or on two emulated devices with -emu.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

const rays = 10_000

func main() {
	emu := flag.Bool("emu", false, "run on two emulated devices")
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
	one, err := closest(drv, []int{0})
	if err != nil {
		return err
	}
	two, err := closest(drv, []int{0, 1})
	if err != nil {
		return err
	}
	if !slices.Equal(one, two) {
		return errors.New("the devices disagree")
	}
	fmt.Println("one and two devices name the same triangle for every ray")
	return nil
}

// closest returns the winner of every ray, found on the given devices.
func closest(drv *cuda.Driver, devices []int) ([]int32, error) {
	// The floor is lifted: a batch this small would not be divided by itself.
	opts := multi.Options{Options: chunked.Options{MinRaysPerDevice: 1}}
	sc, err := multi.New(drv, devices, opts)
	if err != nil {
		return nil, err
	}
	defer sc.Close()
	if _, err := sc.AddMesh(cloud(500)); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := sc.Build(ctx); err != nil {
		return nil, err
	}
	o, err := cuda.Upload(ctx, sc.Stream(), random(3*rays, -1, 1))
	if err != nil {
		return nil, err
	}
	defer cuda.Free(o)
	d, err := cuda.Upload(ctx, sc.Stream(), random(3*rays, -1, 1))
	if err != nil {
		return nil, err
	}
	defer cuda.Free(d)
	plan, err := sc.Plan(multi.IntersectOp(scene.Geometric, 24), rays)
	if err != nil {
		return nil, err
	}
	fmt.Print(plan)
	hits, err := sc.Intersect(ctx, scene.Rays{O: o, D: d}, scene.Geometric)
	if err != nil {
		return nil, err
	}
	defer hits.Close()
	return cuda.Download(ctx, sc.Stream(), hits.GlobalPrimID)
}

// cloud is n small triangles at random places.
func cloud(n int) scene.Mesh {
	rng := rand.New(rand.NewPCG(7, 7))
	m := scene.Mesh{}
	for i := range n {
		var c [3]float32
		for k := range c {
			c[k] = rng.Float32()*2 - 1
		}
		for range 3 {
			for k := range c {
				m.Vertices = append(m.Vertices, c[k]+(rng.Float32()-.5)*.2)
			}
		}
		m.Faces = append(m.Faces, int32(3*i), int32(3*i+1), int32(3*i+2))
	}
	return m
}

func random(n int, lo, hi float32) []float32 {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	v := make([]float32, n)
	for i := range v {
		v[i] = lo + (hi-lo)*rng.Float32()
	}
	return v
}

func open(emu bool) (*cuda.Driver, error) {
	if emu {
		return cuda.OpenEmulator(2)
	}
	drv, err := cuda.Open()
	if err != nil {
		return nil, fmt.Errorf("%w; -emu runs on two emulated devices", err)
	}
	return drv, nil
}
