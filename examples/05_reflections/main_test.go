package main

import "log"

func Example() {
	if err := run(true); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 512 rays took 75 ways by triangle, 30 by wall
	// walls 8, 0: found by 41 rays, image source [-1 1.5 -1.25], 5.06 m to the receiver
	// walls 8, 4: found by 35 rays, image source [-1 -1.5 1.25], 5.71 m to the receiver
	// walls 8, 2: found by 43 rays, image source [-1 1.5 4.75], 5.88 m to the receiver
}
