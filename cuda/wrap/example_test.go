package wrap

import "fmt"

// A ledger names what was not given back.
func ExampleLedger() {
	api := NewLedger(&fakeAPI{})
	p, _ := api.MemAlloc(256)
	fmt.Println(api.Check())
	api.MemFree(p)
	fmt.Println(api.Check())
	// Output:
	// wrap: not given back on device 0: 256 device bytes
	// <nil>
}

// A fault makes one chosen call fail.
func ExampleFault() {
	api := NewFault(&fakeAPI{})
	if err := api.FailCall("MemAlloc", 2, 2); err != nil {
		panic(err)
	}
	for range 3 {
		_, r := api.MemAlloc(256)
		fmt.Println(r.Name())
	}
	// Output:
	// CUDA_SUCCESS
	// CUDA_ERROR_OUT_OF_MEMORY
	// CUDA_SUCCESS
}

// A trace counts calls by name.
func ExampleTrace() {
	api := NewTrace(&fakeAPI{})
	api.EventRecord(1, 2)
	api.EventRecord(1, 2)
	fmt.Println(api.Counts())
	// Output: map[EventRecord:2]
}
