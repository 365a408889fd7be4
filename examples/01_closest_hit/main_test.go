package main

import "log"

func Example() {
	if err := run(true); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Raymux Emulator: triangle 0 at t = 1, point [0.25 0.25 0]
}
