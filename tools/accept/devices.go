package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
)

// deviceSet is what the tests run on.
type deviceSet struct {
	emulated int // number of emulated devices; 0: GPUs
	all      bool
	ordinals []int
}

func parseDevices(s string) (deviceSet, error) {
	if s == "all" {
		return deviceSet{all: true}, nil
	}
	if count, ok := strings.CutPrefix(s, "emu:"); ok {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > emu.MaxDevices {
			return deviceSet{}, usagef("-devices %s: use emu:N with N from 1 to %d", s, emu.MaxDevices)
		}
		return deviceSet{emulated: n}, nil
	}
	var d deviceSet
	for part := range strings.SplitSeq(s, ",") {
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 || slices.Contains(d.ordinals, i) {
			return deviceSet{}, usagef("-devices %s: use all, emu:N, or device numbers such as 0,1, each once", s)
		}
		d.ordinals = append(d.ordinals, i)
	}
	return d, nil
}

// count is the number of devices.
func (d deviceSet) count() int {
	if d.emulated > 0 {
		return d.emulated
	}
	return len(d.ordinals)
}

// environment tells the tests which devices to use, and that these must be there.
func (d deviceSet) environment() []string {
	env := []string{fmt.Sprintf("REQUIRE_DEVICES=%d", d.count())}
	if d.emulated > 0 {
		return append(env, "RAYMUX_TEST_DEVICES=", fmt.Sprintf("RAYMUX_TEST_EMULATED=%d", d.emulated))
	}
	list := make([]string, len(d.ordinals))
	for i, o := range d.ordinals {
		list[i] = strconv.Itoa(o)
	}
	return append(env, "RAYMUX_TEST_DEVICES="+strings.Join(list, ","), "RAYMUX_TEST_EMULATED=")
}

// survey asks the driver for its devices and describes each. A host without a driver has none.
func survey() (lines []string, err error) {
	drv, err := cuda.Open()
	if err != nil {
		return nil, err
	}
	for _, d := range drv.Devices() {
		major, minor := d.Capability()
		lines = append(lines, fmt.Sprintf("device %d: %s, compute capability %d.%d, %d MiB, %s", d.Ordinal(), d.Name(), major, minor,
			d.TotalMem()>>20, d.PCIBusID()))
	}
	return lines, drv.Close()
}
