package main

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/scene"
)

// fallbackDevices is the number of emulated devices that a machine without a GPU runs on.
const fallbackDevices = 2

// host is the opened driver and the device set of the run, the master first.
type host struct {
	driver   *cuda.Driver
	devices  []int
	contexts []*cuda.Context // one per device, for waiting and for the master's buffers
	allocs   *atomic.Uint64  // driver allocations of the process, on every device
	banner   string          // one line that says what the run is on
	hint     string          // how to get a GPU where none was found, or empty
}

// allocCounter counts driver allocations below everything, also those that no pool sees.
type allocCounter struct {
	cuapi.API
	n *atomic.Uint64
}

// MemAlloc is part of cuapi.API.
func (c allocCounter) MemAlloc(n uint64) (cuapi.DevicePtr, cuapi.Result) {
	c.n.Add(1)
	return c.API.MemAlloc(n)
}

// MemAllocAsync is part of cuapi.API.
func (c allocCounter) MemAllocAsync(n uint64, s cuapi.Stream) (cuapi.DevicePtr, cuapi.Result) {
	c.n.Add(1)
	return c.API.MemAllocAsync(n, s)
}

// MemHostAlloc is part of cuapi.API.
func (c allocCounter) MemHostAlloc(n uint64, flags cuapi.MemHostAllocFlags) ([]byte, cuapi.Result) {
	c.n.Add(1)
	return c.API.MemHostAlloc(n, flags)
}

// openHost opens the devices that the options ask for. Without options and without a usable GPU it takes emulated
// devices, and the banner says so and why; a run that asks for GPUs in any way never does.
func openHost(o options) (h *host, err error) {
	h = &host{allocs: new(atomic.Uint64)}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if err := h.open(o); err != nil {
		return h, err
	}
	if len(h.devices) < o.requireDevices {
		return h, &statusError{exitDevices, fmt.Errorf("NOTHING MEASURED: %d devices are required, the set has %d", o.requireDevices, len(h.devices))}
	}
	return h, h.retain()
}

// builder makes the search trees of the rows, which any builder's tree answers alike. An emulated device takes minutes
// for a tree of two million triangles that this computer itself builds in seconds.
func (h *host) builder() scene.Builder {
	if h.driver.Emulated() {
		return scene.BuilderSAH
	}
	return scene.BuilderAuto
}

// retain takes a context of every device.
func (h *host) retain() error {
	for _, ordinal := range h.devices {
		d, err := h.driver.Device(ordinal)
		if err != nil {
			return err
		}
		c, err := d.Retain()
		if err != nil {
			return err
		}
		h.contexts = append(h.contexts, c)
	}
	return nil
}

// counted makes a driver count its allocations.
func (h *host) counted() cuda.Option {
	return cuda.WithAPI(func(api cuapi.API) cuapi.API { return allocCounter{api, h.allocs} })
}

func (h *host) open(o options) error {
	if n := o.devices.emulated; n > 0 {
		return h.emulate(n, "Running")
	}
	driver, err := cuda.Open(h.counted())
	switch {
	case err == nil:
		h.driver = driver
		return h.choose(o.devices.ordinals)
	case o.devices.given():
		return fmt.Errorf("--devices %s needs a GPU, use emu:2 for emulated devices: %w", o.devices.String(), err)
	case o.requireDevices > 0:
		return &statusError{exitDevices, fmt.Errorf("NOTHING MEASURED: %d devices are required and no GPU is usable: %w", o.requireDevices, err)}
	}
	why, hint := whyNoGPU(err)
	h.hint = hint
	return h.emulate(fallbackDevices, fmt.Sprintf("No GPU found (%s), so running", why))
}

// emulate opens n emulated devices; the banner begins with why.
func (h *host) emulate(n int, why string) error {
	emulator, err := emu.New(n)
	if err != nil {
		return err
	}
	if h.driver, err = cuda.OpenAPI(emulator, h.counted()); err != nil {
		return err
	}
	for i := range n {
		h.devices = append(h.devices, i)
	}
	h.banner = fmt.Sprintf("%s on %d emulated %s of this computer's processor: this checks results, it is not a performance measurement.",
		why, n, plural(n, "device", "devices"))
	return nil
}

// choose takes the given ordinals, or every device.
func (h *host) choose(ordinals []int) error {
	n := h.driver.DeviceCount()
	for _, d := range ordinals {
		if d >= n {
			return usage("--devices: there is no device %d, the driver has %d", d, n)
		}
	}
	h.devices = ordinals
	if ordinals == nil {
		for i := range n {
			h.devices = append(h.devices, i)
		}
	}
	var names []string
	for _, i := range h.devices {
		d, err := h.driver.Device(i)
		if err != nil {
			return err
		}
		names = append(names, fmt.Sprintf("%d %s", i, d.Name()))
	}
	h.banner = fmt.Sprintf("Running on %d %s: %s; the master is device %d.", len(names), plural(len(names), "GPU", "GPUs"), strings.Join(names, ", "), h.devices[0])
	switch {
	case len(h.devices) > 1:
	case n > 1:
		h.banner += fmt.Sprintf(" One device selected of %d: there is no multi-device column.", n)
	default:
		h.banner += " Only one device is visible: there is no multi-device column."
	}
	return nil
}

// close releases contexts and driver; it accepts a host that was opened in part.
func (h *host) close() error {
	var errs []error
	for _, c := range h.contexts {
		errs = append(errs, c.Close())
	}
	if h.driver != nil {
		errs = append(errs, h.driver.Close())
	}
	return errors.Join(errs...)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// whyNoGPU is why no GPU is used, and what to do about it.
func whyNoGPU(err error) (why, hint string) {
	var open *cuda.OpenError
	if !errors.As(err, &open) {
		return oneLine(err), ""
	}
	short := *open
	short.Hint = ""
	return oneLine(&short), open.Hint
}

// oneLine joins the lines of an error message: the banner is one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
