package main

import "log"

func Example() {
	if err := run(true); err != nil {
		log.Fatal(err)
	}
	// Output:
	// chunked: intersect_full: MemoryBudget is 131072 B, but the returned result does not fit on device 0 (position 0): minimum 311296 B. Raise it, or stream the result (Offload)
	// intersect_full  rows=4096  kind=chunked  transport=direct  weights=[1 1] (base)
	//   chunks of 574 rows: the largest within 131072 B
	//   dev0  [0,2048)     4 launches of 574 rows (last 326), into 3 slots; record 76 B; peak 130872 of 131072 B
	//   dev1  [2048,4096)  4 launches of 574 rows (last 326), 24 B in, 4 B out per row; record 76 B; peak 48216 of 131072 B
	// loop: 1806 of 4096 rays hit, in 8 chunks
	// sink: 1806 of 4096 rays hit; the one in the middle met triangle 2
}
