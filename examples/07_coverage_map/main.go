// Command 07_coverage_map draws how well a transmitter in a street is received:
// what reaches each cell of a map directly and over mirror reflections, plus
// what bends around the edges of the buildings. It runs on the GPUs found, or on
// emulated devices with -devices emu:2; the map is the same on all of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"strconv"
	"strings"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
)

// settings are how fine the map is.
type settings struct {
	columns int // cells from west to east; from south to north there are three quarters as many
	rays    int
	bounces int
}

func main() {
	devices := flag.String("devices", "all", "all, numbers such as 0,1, or emu:N for N emulated devices")
	out := flag.String("out", "coverage.png", "picture to write")
	var s settings
	flag.IntVar(&s.columns, "columns", 80, "cells of the map from west to east, a multiple of 4")
	flag.IntVar(&s.rays, "rays", 200_000, "rays from the transmitter; the finer the map, the more it needs")
	flag.IntVar(&s.bounces, "bounces", 4, "most reflections of a ray")
	flag.Parse()
	if err := run(*devices, s, *out); err != nil {
		log.Fatal(err)
	}
}

func run(devices string, s settings, out string) error {
	if s.columns < 4 || s.columns%4 != 0 || s.rays < 1 {
		return errors.New("-columns is a multiple of 4, -rays at least 1")
	}
	drv, ordinals, err := open(devices)
	if err != nil {
		return err
	}
	defer drv.Close()
	sc, err := multi.New(drv, ordinals, multi.Options{})
	if err != nil {
		return err
	}
	defer sc.Close()
	gains, err := coverage(context.Background(), sc, s)
	if err != nil {
		return err
	}
	gains.report()
	return write(out, gains.total())
}

// open returns the driver and which of its devices to use.
func open(list string) (drv *cuda.Driver, ordinals []int, err error) {
	if n, ok := strings.CutPrefix(list, "emu:"); ok {
		devices, err := strconv.Atoi(n)
		if err != nil {
			return nil, nil, fmt.Errorf("-devices %s: %w", list, err)
		}
		drv, err = cuda.OpenEmulator(devices)
		if err != nil {
			return nil, nil, err
		}
		list = "all"
	} else if drv, err = cuda.Open(); err != nil {
		return nil, nil, fmt.Errorf("%w; -devices emu:2 runs on two emulated devices", err)
	}
	if list == "all" {
		for d := range drv.DeviceCount() {
			ordinals = append(ordinals, d)
		}
		return drv, ordinals, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		d, err := strconv.Atoi(part)
		if err != nil {
			drv.Close()
			return nil, nil, fmt.Errorf("-devices %s: %w", list, err)
		}
		ordinals = append(ordinals, d)
	}
	return drv, ordinals, nil
}
