package main

import "log"

func Example() {
	if err := run(true); err != nil {
		log.Fatal(err)
	}
	// Output:
	// points: behind, behind but for the screen, on it, beside it: [0 1 1 1]
	// pair: to the source [1] to the receiver [0]
	// edges: top of the screen, behind it: [1 0]
	// chains: visible [1 0] first blocked segment [-1 1] by triangle [-1 0]
}
