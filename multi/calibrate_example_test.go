package multi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

// Measure once on a quiet machine, keep the record, and restore it at the next start. What
// emulated devices give is of no use, so only what does not depend on the clock is printed.
func ExampleScene_CalibrateDevices() {
	ctx := context.Background()
	drv, err := cuda.OpenEmulator(2)
	if err != nil {
		log.Fatal(err)
	}
	defer drv.Close()
	s, err := multi.New(drv, []int{0, 1}, multi.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if _, err := s.AddMesh(scene.Mesh{Vertices: []float32{-1, -1, 0, 1, -1, 0, 0, 1, 0}, Faces: []int32{0, 1, 2}}); err != nil {
		log.Fatal(err)
	}
	if err := s.Build(ctx); err != nil {
		log.Fatal(err)
	}
	record, err := s.CalibrateDevices(ctx, multi.Probe{Rays: 100, MaxBounces: 2})
	if err != nil {
		log.Fatal(err)
	}
	text, err := json.Marshal(record) // Describe prints it for people
	if err != nil {
		log.Fatal(err)
	}
	again, err := multi.ImportCalibration(text)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.RestoreCalibration(again); err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.Operation, again.Rows, "rows,", len(again.Devices), "devices")
	// Output: trace_reflections:2 100 rows, 2 devices
}
