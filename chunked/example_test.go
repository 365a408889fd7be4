package chunked_test

import (
	"errors"
	"fmt"

	"github.com/raymux/raymux/chunked"
)

// Rows are divided in proportion to the weights; truncation favours the later
// device.
func ExampleSplit() {
	for _, weights := range [][]float64{{1, 1}, {3, 1}, {1, 0, 1}} {
		fmt.Println(chunked.Split(0, 33, weights))
	}
	// Output:
	// [[0,16) [16,33)]
	// [[0,24) [24,33)]
	// [[0,16) [16,16) [16,33)]
}

// A plan says before anything runs who computes which rows, and why. A batch
// that is not worth dividing stays on the first device.
func ExampleBuildPlan() {
	in := chunked.Input{
		Op:        chunked.Op{Key: "intersect_full", Family: "intersect", In: 24, Wire: 4, Record: 76},
		Devices:   []int{0, 1},
		Options:   chunked.Options{Weights: []float64{3, 1}},
		Transport: chunked.Direct,
	}
	for _, in.Rows = range []int64{1 << 22, 1000} {
		plan, err := chunked.BuildPlan(in)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(plan)
	}
	// Output:
	// intersect_full  rows=4194304  kind=direct  transport=direct  weights=[3 1] (base)
	//   floor 1048576 rows (width 28 B): remote shard 1 has 1048576, ok
	//   dev0  [0,3145728)        1 launch, in place
	//   dev1  [3145728,4194304)  1 launch, 24 B in, 4 B out per row; record 76 B
	// intersect_full  rows=1000  kind=master  transport=direct  weights=[3 1] (base)
	//   remote shard 1 has 250 rows < floor 1048576 (MinRaysPerDevice)
	//   dev0  [0,1000)  1 launch, in place
	//   dev1  no rows
}

// An option that no plan can use is refused with its name.
func ExampleCheckWeights() {
	fmt.Println(chunked.CheckWeights("Weights", []float64{1, 1, 1}, 2))
	// Output: chunked: Weights: 3 values for 2 devices: give one weight per device, in device order
}

// A budget that is too small for a result says how much it needs; streamed to a
// hook, the same result takes little memory.
func ExampleBudgetError() {
	in := chunked.Input{
		Op:        chunked.Op{Key: "intersect_full", Family: "intersect", In: 24, Wire: 4, Record: 76},
		Rows:      1 << 22,
		Devices:   []int{0, 1},
		Options:   chunked.Options{MemoryBudget: 64 << 20},
		Transport: chunked.Direct,
	}
	_, err := chunked.BuildPlan(in)
	var short *chunked.BudgetError
	if errors.As(err, &short) {
		fmt.Println("minimum", short.Minimum, "on device", short.Device)
	}
	in.Hook = true
	plan, err := chunked.BuildPlan(in)
	fmt.Println(len(plan.Chunks), "chunks of", plan.ChunkRows[0], "rows, at most", plan.PerDevice[0].Peak, "B", err)
	// Output:
	// minimum 318767104 on device 0
	// 16 chunks of 294337 rows, at most 67108836 B <nil>
}

// A hook gets the chunks of the devices in turn, which is not the order in
// which they are submitted.
func ExamplePlan_Retirement() {
	plan, err := chunked.BuildPlan(chunked.Input{
		Op:        chunked.Op{Key: "visible", Family: "visible", In: 24, Wire: 1, Record: 1},
		Rows:      33,
		Devices:   []int{0, 1},
		Options:   chunked.Options{ChunkRays: 7},
		Hook:      true,
		Transport: chunked.Copy,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range plan.Retirement() {
		fmt.Print("dev", c.Position, " ", c.Range(), "  ")
	}
	fmt.Println()
	// Output: dev0 [0,7)  dev1 [16,23)  dev0 [7,14)  dev1 [23,30)  dev0 [14,16)  dev1 [30,33)
}
