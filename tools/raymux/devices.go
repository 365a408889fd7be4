package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
)

// emulatorHint ends the message of a machine without a usable GPU.
const emulatorHint = "use -devices emu:2 to run on two emulated devices"

// deviceList is the value of -devices.
type deviceList struct {
	all      bool
	emulated int   // number of emulated devices; 0: the installed driver
	ordinals []int // when neither
}

func parseDevices(s string) (deviceList, error) {
	if s == "all" {
		return deviceList{all: true}, nil
	}
	if count, ok := strings.CutPrefix(s, "emu:"); ok {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > emu.MaxDevices {
			return deviceList{}, fmt.Errorf("use emu:N with N from 1 to %d", emu.MaxDevices)
		}
		return deviceList{emulated: n}, nil
	}
	var list deviceList
	for part := range strings.SplitSeq(s, ",") {
		d, err := strconv.Atoi(part)
		if err != nil || d < 0 {
			return deviceList{}, errors.New("use all, emu:N, or device numbers such as 0 or 0,1")
		}
		if slices.Contains(list.ordinals, d) {
			return deviceList{}, fmt.Errorf("device %d is given twice", d)
		}
		list.ordinals = append(list.ordinals, d)
	}
	return list, nil
}

// openDriver opens the driver that the list asks for and resolves the list to ordinals. A machine that lacks the devices
// is a *devicesError; there is no silent fallback to the emulator.
func (p *program) openDriver(list deviceList) (*cuda.Driver, []int, error) {
	if list.emulated > 0 {
		drv, err := p.emulate(list.emulated)
		if err != nil {
			return nil, nil, err
		}
		return drv, upTo(list.emulated), nil
	}
	drv, err := p.open()
	if err != nil {
		// The library's advice is for programs.
		text := fmt.Sprintf("-devices: %s; %s", strings.ReplaceAll(err.Error(), "; without a GPU use cuda.OpenEmulator", ""), emulatorHint)
		for _, absent := range []error{cuda.ErrDriverMissing, cuda.ErrNoDevice, cuda.ErrStubLibrary, cuda.ErrUnsupportedPlatform} {
			if errors.Is(err, absent) {
				return nil, nil, &devicesError{text, err}
			}
		}
		return nil, nil, fmt.Errorf("-devices: %w; %s", err, emulatorHint)
	}
	n := drv.DeviceCount()
	if list.all {
		return drv, upTo(n), nil
	}
	for _, d := range list.ordinals {
		if d >= n {
			text := fmt.Sprintf("-devices: found %d %s, numbered from 0; expected one with number %d", n, plural(n, "device"), d)
			return nil, nil, errors.Join(&devicesError{text: text}, drv.Close())
		}
	}
	return drv, list.ordinals, nil
}

// plural is the form of a noun beside a number.
func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
