//go:build !nocuda && (linux || windows)

package optixabi_test

import (
	"errors"
	"fmt"

	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
)

// The newest ABI that both sides know is used. Here a stand-in plays a driver
// of branch 560; a program calls optixabi.Open and makes a CUDA context
// current first.
func ExampleLibrary_Negotiate() {
	driver, err := fakeoptix.New(fakeoptix.Config{ABIs: map[optixabi.ABI]fakeoptix.Answer{optixabi.ABI87: {}, optixabi.ABI93: {}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer driver.Close()

	table, err := driver.Library().Negotiate(optixabi.NegotiateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("ABI %v, OptiX %s\n", table.ABI(), table.ABI().OptiX())
	// Output: ABI 93, OptiX 8.1.0
}

// A driver that is too old is told apart from one that is broken.
func ExampleUnavailable() {
	driver, err := fakeoptix.New(fakeoptix.Config{ABIs: map[optixabi.ABI]fakeoptix.Answer{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer driver.Close()

	_, err = driver.Library().Negotiate(optixabi.NegotiateOptions{})
	var failed *optixabi.OpenError
	if errors.As(err, &failed) && optixabi.Unavailable(err) {
		fmt.Println(failed.Reason)
		fmt.Println(failed.Hint)
	}
	// Output:
	// the driver is too old for OptiX
	// update the NVIDIA driver to branch 535 or newer, or use the CUDA backend
}
