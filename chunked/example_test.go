package chunked_test

import (
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
	//   floor 262144 rows (width 28 B): remote shard 1 has 1048576, ok
	//   dev0  [0,3145728)        1 launch, in place
	//   dev1  [3145728,4194304)  1 launch, 24 B in, 4 B out per row; record 76 B
	// intersect_full  rows=1000  kind=master  transport=direct  weights=[3 1] (base)
	//   remote shard 1 has 250 rows < floor 262144
	//   dev0  [0,1000)  1 launch, in place
	//   dev1  no rows
}

// An option that no plan can use is refused with its name.
func ExampleCheckWeights() {
	fmt.Println(chunked.CheckWeights("Weights", []float64{1, 1, 1}, 2))
	// Output: chunked: Weights: 3 values for 2 devices: give one weight per device, in device order
}
