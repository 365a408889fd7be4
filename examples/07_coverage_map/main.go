// Command 07_coverage_map draws how well a transmitter in a street is received:
// what reaches each cell of a map directly and over mirror reflections, plus
// what bends around the edges of the buildings. It runs on all GPUs, or on two
// emulated devices with -emu; the map is the same on all of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"

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
	emu := flag.Bool("emu", false, "run on two emulated devices")
	out := flag.String("out", "coverage.png", "picture to write")
	var s settings
	flag.IntVar(&s.columns, "columns", 80, "cells of the map from west to east, a multiple of 4")
	flag.IntVar(&s.rays, "rays", 200_000, "rays from the transmitter; the finer the map, the more it needs")
	flag.IntVar(&s.bounces, "bounces", 4, "most reflections of a ray")
	flag.Parse()
	if err := run(*emu, s, *out); err != nil {
		log.Fatal(err)
	}
}

func run(emu bool, s settings, out string) error {
	if s.columns < 4 || s.columns%4 != 0 || s.rays < 1 {
		return errors.New("-columns is a multiple of 4, -rays at least 1")
	}
	drv, err := open(emu)
	if err != nil {
		return err
	}
	defer drv.Close()
	var devices []int
	for i := range drv.DeviceCount() {
		devices = append(devices, i)
	}
	sc, err := multi.New(drv, devices, multi.Options{})
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

func open(emu bool) (*cuda.Driver, error) {
	if emu {
		return cuda.OpenEmulator(2)
	}
	drv, err := cuda.Open()
	if err != nil {
		return nil, fmt.Errorf("%w; -emu runs on two emulated devices", err)
	}
	return drv, nil
}
