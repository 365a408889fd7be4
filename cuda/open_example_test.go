package cuda_test

import (
	"errors"
	"fmt"

	"github.com/raymux/raymux/cuda"
)

// Open says what is missing and never changes to the emulator by itself.
func ExampleOpen() {
	_, err := cuda.Open(cuda.WithLibraryPath("/nowhere/libcuda.so.1"))
	fmt.Println(errors.Is(err, cuda.ErrDriverMissing) || errors.Is(err, cuda.ErrUnsupportedPlatform))
	// Output: true
}

// Probe describes the machine, with or without a driver.
func ExampleProbe() {
	report := cuda.Probe(cuda.WithLibraryPath("/nowhere/libcuda.so.1"))
	fmt.Println(report.OK(), len(report.Devices))
	// Output: false 0
}

// An error of the driver carries its code and what to do.
func ExampleError() {
	var err error = &cuda.Error{Op: "cuMemAlloc", Code: 2, Device: 0, Detail: "1024 bytes"}
	fmt.Println(errors.Is(err, cuda.ErrOutOfMemory))
	fmt.Println(err)
	// Output:
	// true
	// cuda: cuMemAlloc on device 0: CUDA_ERROR_OUT_OF_MEMORY (2): 1024 bytes
}
