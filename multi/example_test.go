package multi_test

import (
	"context"
	"fmt"
	"log"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

// More rays than fit at once are traced batch by batch: device memory and host
// memory are allocated once and used again, and no batch waits for anything but
// its own result.
func Example_batches() {
	if err := batches(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// rays 0 to 3: t [2 1.75 1.5 1.25]
	// rays 4 to 7: t [1 1.25 1.5 1.75]
	// rays 8 to 10: t [2 +Inf +Inf]
}

func batches() error {
	driver, err := cuda.OpenEmulator(2) // cuda.Open for GPUs
	if err != nil {
		return err
	}
	defer driver.Close()
	s, err := multi.New(driver, []int{0, 1}, multi.Options{
		// Batches of a real size need no options: this divides even tiny ones.
		Options: chunked.Options{MinRaysPerDevice: 1},
	})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	if _, err := s.AddMesh(roof()); err != nil {
		return err
	}
	if err := s.Build(ctx); err != nil {
		return err
	}

	const total, size = 11, 4
	var rays scene.Rays
	if rays.O, err = cuda.Alloc[float32](s.Context(), 3*size); err != nil {
		return err
	}
	defer cuda.Free(rays.O)
	if rays.D, err = cuda.Alloc[float32](s.Context(), 3*size); err != nil {
		return err
	}
	defer cuda.Free(rays.D)
	o, d, t := make([]float32, 3*size), make([]float32, 3*size), make([]float32, size)
	var hits *scene.Hits // nil: the first call makes it
	defer func() { hits.Close() }()
	for begin := 0; begin < total; begin += size {
		n := min(size, total-begin)
		for i := range n { // from above, a quarter further each
			copy(o[3*i:], []float32{float32(begin+i) / 4, 0.5, 2})
			copy(d[3*i:], []float32{0, 0, -1})
		}
		var batch scene.Rays // the last one is shorter
		if batch.O, err = rays.O.Sub(0, 3*n); err != nil {
			return err
		}
		if batch.D, err = rays.D.Sub(0, 3*n); err != nil {
			return err
		}
		if err := cuda.CopyIn(ctx, s.Stream(), batch.O, o[:3*n]); err != nil {
			return err
		}
		if err := cuda.CopyIn(ctx, s.Stream(), batch.D, d[:3*n]); err != nil {
			return err
		}
		filled, err := s.Intersect(ctx, batch, scene.None, scene.Into(hits))
		if err != nil {
			return err
		}
		hits = filled
		if err := cuda.CopyOut(ctx, s.Stream(), t[:n], hits.T); err != nil {
			return err
		}
		fmt.Printf("rays %d to %d: t %v\n", begin, begin+n-1, t[:n])
	}
	return nil
}

// roof is two slopes that meet at height 1 above x = 1 and end at height 0.
func roof() scene.Mesh {
	return scene.Mesh{
		Vertices: []float32{0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 2, 0, 0, 2, 1, 0},
		Faces:    []int32{0, 2, 1, 2, 3, 1, 2, 4, 3, 4, 5, 3},
	}
}
