package main

import "log"

func Example() {
	if err := run(true); err != nil {
		log.Fatal(err)
	}
	// Output:
	// intersect_full  rows=10000  kind=single  transport=direct  weights=[1] (base)
	//   one device
	//   dev0  [0,10000)  1 launch, in place
	// intersect_full  rows=10000  kind=direct  transport=direct  weights=[1 1] (base)
	//   floor 1 rows (width 28 B): remote shard 1 has 5000, ok
	//   dev0  [0,5000)      1 launch, in place
	//   dev1  [5000,10000)  1 launch, 24 B in, 4 B out per row; record 56 B
	// one and two devices name the same triangle for every ray
}
