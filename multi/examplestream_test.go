package multi_test

import (
	"context"
	"fmt"
	"log"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// streamed gives f a scene over two virtual devices that cuts batches into chunks of two
// rows, and seven rays.
func streamed(f func(ctx context.Context, s *multi.Scene, rays scene.Rays) error) error {
	driver, err := cuda.OpenEmulator(2) // cuda.Open for GPUs
	if err != nil {
		return err
	}
	defer driver.Close()
	s, err := multi.New(driver, []int{0, 1}, multi.Options{Options: chunked.Options{ChunkRays: 2}})
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
	var o, d []float32
	for i := range 7 {
		o, d = append(o, float32(i)/4, .5, 3), append(d, 0, 0, -1)
	}
	rays := scene.Rays{}
	if rays.O, err = cuda.Upload(ctx, s.Stream(), o); err != nil {
		return err
	}
	defer cuda.Free(rays.O)
	if rays.D, err = cuda.Upload(ctx, s.Stream(), d); err != nil {
		return err
	}
	defer cuda.Free(rays.D)
	return f(ctx, s, rays)
}

// A loop over the chunks of a result. Devices alternate, so the start row says which rows
// a chunk holds.
func ExampleScene_IntersectSeq() {
	err := streamed(func(ctx context.Context, s *multi.Scene, rays scene.Rays) error {
		for chunk, err := range s.IntersectSeq(ctx, rays, scene.None) {
			if err != nil {
				return err
			}
			t, err := cuda.Download(ctx, s.Stream(), chunk.Result.T)
			if err != nil {
				return err
			}
			fmt.Printf("rows %d to %d: t %v\n", chunk.Start, chunk.Start+chunk.Rows-1, t)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// rows 0 to 1: t [3 2.75]
	// rows 3 to 4: t [2.25 2]
	// rows 2 to 2: t [2.5]
	// rows 5 to 6: t [2.25 2.5]
}

// A function that consumes chunks; it stops the call at the third one.
func ExampleOffload() {
	err := streamed(func(ctx context.Context, s *multi.Scene, rays scene.Rays) error {
		n := 0
		_, err := s.Intersect(ctx, rays, scene.All, multi.Offload(func(_ context.Context, start int64, chunk offload.Chunk[*scene.Hits]) error {
			if n++; n == 3 {
				return fmt.Errorf("that is enough")
			}
			fmt.Println(start, chunk.Rows)
			return nil
		}))
		fmt.Println(err)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0 2
	// 3 2
	// offload: intersect_full ended at row 2 with 4 rows in 2 chunks delivered: that is enough
}

// The whole result in host memory, whatever fits on the devices.
func ExampleHostSink() {
	err := streamed(func(ctx context.Context, s *multi.Scene, rays scene.Rays) error {
		sink, err := multi.NewHostSink[*scene.Hits](s, 7)
		if err != nil {
			return err
		}
		defer sink.Close()
		if _, err := s.Intersect(ctx, rays, scene.All, sink.Offload()); err != nil {
			return err
		}
		if err := sink.Finish(ctx); err != nil {
			return err
		}
		fmt.Println(sink.Floats("T"), sink.Ints("PrimID"))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [3 2.75 2.5 2.25 2 2.25 2.5] [0 0 0 1 1 2 2]
}
