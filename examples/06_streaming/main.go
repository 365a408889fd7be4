// Command 06_streaming computes a result that does not fit into the memory that
// it allows itself: a call that returns it whole is refused, a loop gets it in
// chunks, and a sink collects it in host memory. It runs on all GPUs, or on two
// emulated devices with -emu.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

const (
	side   = 64
	rows   = side * side
	budget = 128 << 10 // bytes per device; the result has 76 bytes for each of 4,096 rows
)

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
	var devices []int
	for i := range drv.DeviceCount() {
		devices = append(devices, i)
	}
	sc, err := multi.New(drv, devices, multi.Options{Options: chunked.Options{MemoryBudget: budget}})
	if err != nil {
		return err
	}
	defer sc.Close()
	if _, err := sc.AddMesh(pyramid()); err != nil {
		return err
	}
	ctx := context.Background()
	if err := sc.Build(ctx); err != nil {
		return err
	}
	origins, directions := rain()
	var rays scene.Rays
	if rays.O, err = cuda.Upload(ctx, sc.Stream(), origins); err != nil {
		return err
	}
	defer cuda.Free(rays.O)
	if rays.D, err = cuda.Upload(ctx, sc.Stream(), directions); err != nil {
		return err
	}
	defer cuda.Free(rays.D)

	_, err = sc.Intersect(ctx, rays, scene.All)
	if tooSmall := (*chunked.BudgetError)(nil); !errors.As(err, &tooSmall) {
		return fmt.Errorf("a result larger than the budget was not refused: %v", err)
	}
	fmt.Println(err)

	// The same call streamed. PlanStream says beforehand in which chunks.
	plan, err := sc.PlanStream(multi.IntersectOp(scene.All, rays.BytesPerRow()), rows)
	if err != nil {
		return err
	}
	fmt.Print(plan)
	hits, chunks := 0, 0
	for chunk, err := range sc.IntersectSeq(ctx, rays, scene.All) {
		if err != nil {
			return err
		}
		// Rows chunk.Start to chunk.Start+chunk.Rows-1, until the loop goes on.
		t, err := cuda.Download(ctx, sc.Stream(), chunk.Result.T)
		if err != nil {
			return err
		}
		hits += count(t)
		chunks++
	}
	fmt.Printf("loop: %d of %d rays hit, in %d chunks\n", hits, rows, chunks)

	// All columns in host memory, while the devices hold a few chunks at a time.
	sink, err := multi.NewHostSink[*scene.Hits](sc, rows)
	if err != nil {
		return err
	}
	defer sink.Close()
	if _, err := sc.Intersect(ctx, rays, scene.All, sink.Offload()); err != nil {
		return err
	}
	if err := sink.Finish(ctx); err != nil {
		return err
	}
	const middle = (side + 1) * side / 2
	fmt.Printf("sink: %d of %d rays hit; the one in the middle met triangle %d\n", count(sink.Floats("T")), rows, sink.Ints("GlobalPrimID")[middle])
	return nil
}

// pyramid has a base of 2 m by 2 m in the plane z = 0, which is left open, and is 1 m high.
func pyramid() scene.Mesh {
	return scene.Mesh{
		Vertices: []float32{-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0, 0, 0, 1},
		Faces:    []int32{0, 1, 4, 1, 2, 4, 2, 3, 4, 3, 0, 4},
	}
}

// rain is rays straight down, over the pyramid and half a metre around it.
func rain() (origins, directions []float32) {
	const step = 3.0 / side
	for i := range side {
		for j := range side {
			origins = append(origins, -1.5+step*(float32(i)+.25), -1.5+step*(float32(j)+.5), 2)
			directions = append(directions, 0, 0, -1)
		}
	}
	return origins, directions
}

// count is the number of rays that hit.
func count(t []float32) (n int) {
	for _, v := range t {
		if v < math.MaxFloat32 { // +Inf: no hit
			n++
		}
	}
	return n
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
