// Command loads creates every committed PTX module of kernels on every device,
// looks up each of its kernels, and prints the claim level "loads" with what it was
// seen on. It needs a GPU and its driver.
//
//	go run ./tools/ptxaudit/loads
//
// Exit status: 0 every module loaded on every device, 1 anything else.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "loads:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) (err error) {
	drv, err := cuda.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drv.Close()) }()
	return loadAll(drv, out)
}

// loadAll prints one line per device and stops at the first failure.
func loadAll(drv *cuda.Driver, out io.Writer) error {
	if drv.DeviceCount() == 0 {
		return errors.New("the driver shows no device, so nothing was loaded")
	}
	claim := "claim level: loads"
	if drv.Emulated() {
		claim = "emulated, no claim about hardware"
	}
	for _, d := range drv.Devices() {
		modules, kernels, err := loadOn(d)
		if err != nil {
			return fmt.Errorf("device %d (%s): %w", d.Ordinal(), d.Name(), err)
		}
		major, minor := d.Capability()
		if _, err := fmt.Fprintf(out, "%s (%d modules, %d kernels, manifest %.12s; device %d, compute capability %d.%d, driver %d.%d)\n",
			claim, modules, kernels, ptx.ManifestDigest(), d.Ordinal(), major, minor,
			drv.Version()/1000, drv.Version()%1000/10); err != nil {
			return err
		}
	}
	return nil
}

// loadOn returns how many modules it loaded on a device and how many kernels they
// export. Device programs of OptiX are not its business.
func loadOn(d *cuda.Device) (modules, kernels int, err error) {
	c, err := d.Retain()
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, name := range ptx.Names() {
		if ptx.OptiX(name) {
			continue // compiled by OptiX, see raymux info -v
		}
		n, err := loadModule(c, name)
		if err != nil {
			return 0, 0, fmt.Errorf("module %s: %w", name, err)
		}
		modules++
		kernels += n
	}
	return modules, kernels, nil
}

func loadModule(c *cuda.Context, name string) (kernels int, err error) {
	text, err := ptx.Module(name)
	if err != nil {
		return 0, err
	}
	m, err := c.LoadModule(text, cuda.JITOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	for _, e := range ptx.Entries(name) {
		if _, err := m.Function(e); err != nil {
			return 0, err
		}
		kernels++
	}
	return kernels, nil
}
