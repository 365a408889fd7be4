package main

import (
	"errors"
	"slices"

	"github.com/raymux/raymux/cuda"
)

// opened is what has to be released, in reverse order.
type opened struct {
	undo []func() error
}

// later registers the release of something.
func (o *opened) later(f func() error) { o.undo = append(o.undo, f) }

// release releases everything, once, and gives cached memory of the devices back to the driver.
func (o *opened) release(devices ...*cuda.Context) error {
	var errs []error
	for _, f := range slices.Backward(o.undo) {
		errs = append(errs, f())
	}
	o.undo = nil
	for _, c := range devices {
		errs = append(errs, c.Pool().Trim())
	}
	return errors.Join(errs...)
}
