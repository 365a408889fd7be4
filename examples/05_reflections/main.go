// Command 05_reflections finds the ways that a signal takes from a source over
// the walls of a room: it traces rays over two mirror reflections, groups those
// that met the same walls, and reads off how long each way to a receiver is.
// It runs on the first GPU, or on an emulated device with -emu.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

const bounces = 2

var (
	source   = [3]float32{1, 1.5, 1.25}
	receiver = [3]float32{3.5, 2, 1}
)

// A room of 5 m by 4 m by 3 m. Each wall is two triangles.
var room = scene.Mesh{
	Vertices: []float32{0, 0, 0, 5, 0, 0, 5, 4, 0, 0, 4, 0, 0, 0, 3, 5, 0, 3, 5, 4, 3, 0, 4, 3},
	Faces: []int32{
		0, 1, 2, 0, 2, 3, // floor: triangles 0 and 1
		4, 6, 5, 4, 7, 6, // ceiling: 2 and 3
		0, 5, 1, 0, 4, 5, // y = 0: 4 and 5
		2, 7, 3, 2, 6, 7, // y = 4: 6 and 7
		0, 3, 7, 0, 7, 4, // x = 0: 8 and 9
		1, 6, 2, 1, 5, 6, // x = 5: 10 and 11
	},
}

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
	sc, err := multi.New(drv, []int{0}, multi.Options{})
	if err != nil {
		return err
	}
	defer sc.Close()
	if _, err := sc.AddMesh(room); err != nil {
		return err
	}
	ctx := context.Background()
	if err := sc.Build(ctx); err != nil {
		return err
	}

	origins, directions := fan()
	o, err := cuda.Upload(ctx, sc.Stream(), origins)
	if err != nil {
		return err
	}
	defer cuda.Free(o)
	d, err := cuda.Upload(ctx, sc.Stream(), directions)
	if err != nil {
		return err
	}
	defer cuda.Free(d)
	chains, err := sc.TraceReflections(ctx, scene.Rays{O: o, D: d}, bounces, scene.ChainImages)
	if err != nil {
		return err
	}
	defer chains.Close()

	// The two triangles of a wall are one mirror: PlanarSurfaces says so, and with its
	// table rays are grouped by the walls that they met.
	surfaces, err := sc.PlanarSurfaces(ctx)
	if err != nil {
		return err
	}
	canonical, err := cuda.Upload(ctx, sc.Stream(), surfaces)
	if err != nil {
		return err
	}
	defer cuda.Free(canonical)
	paths := scene.Paths{PrimIDs: chains.PrimIDs, Bounces: bounces, RayO: o}
	byTriangle, err := sc.DedupReflections(ctx, paths)
	if err != nil {
		return err
	}
	defer byTriangle.Close()
	paths.Canonical = canonical
	byWall, err := sc.DedupReflections(ctx, paths)
	if err != nil {
		return err
	}
	defer byWall.Close()
	fmt.Printf("%d rays took %d ways by triangle, %d by wall\n", chains.Rows(), byTriangle.Count, byWall.Count)

	rows, err := cuda.Download(ctx, sc.Stream(), byWall.Representative)
	if err != nil {
		return err
	}
	found, err := cuda.Download(ctx, sc.Stream(), byWall.DiscoveryCount)
	if err != nil {
		return err
	}
	prims, err := cuda.Download(ctx, sc.Stream(), byWall.PrimIDs)
	if err != nil {
		return err
	}
	images, err := cuda.Download(ctx, sc.Stream(), chains.ImageSources)
	if err != nil {
		return err
	}
	for i, row := range rows[:3] {
		// The source mirrored by all walls of the way; from there the way to the receiver
		// is a straight line. Whether the line meets the walls is for the caller to see.
		slot := int(row)*bounces + bounces - 1
		image := images[3*slot : 3*slot+3]
		first, second := surfaces[prims[bounces*i]], surfaces[prims[bounces*i+1]]
		fmt.Printf("walls %d, %d: found by %d rays, image source %v, %.2f m to the receiver\n", first, second, found[i], image, distance(image))
	}
	return nil
}

// fan is rays from the source in directions on a lattice: exact in float32, so that every
// machine traces the same rays.
func fan() (origins, directions []float32) {
	for x := float32(-7); x <= 7; x += 2 {
		for y := float32(-7); y <= 7; y += 2 {
			for z := float32(-7); z <= 7; z += 2 {
				origins = append(origins, source[:]...)
				directions = append(directions, x, y, z)
			}
		}
	}
	return origins, directions
}

func distance(p []float32) float64 {
	sum := 0.0
	for k := range receiver {
		d := float64(p[k]) - float64(receiver[k])
		sum += d * d
	}
	return math.Sqrt(sum)
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
