package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/fileio"
)

// calibrateFlags is the command line of `raymux calibrate`.
type calibrateFlags struct {
	meshes  []string
	devices deviceList
	backend scene.Backend
	options chunked.Options
	op      string
	rows    int64
	bounces int64
	json    string
}

// calibrate measures an operation on the devices and prints what it found.
func (p *program) calibrate(ctx context.Context, args []string) (err error) {
	var f calibrateFlags
	fs := newFlagSet("calibrate")
	fs.meshes(&f.meshes)
	fs.machine(&f.devices, &f.backend)
	fs.split(&f.options)
	fs.once("op", "`KEY` of the operation: intersect_full, trace_reflections with -bounces, or visible (default intersect_full)", func(s string) error {
		f.op = s
		return nil
	})
	fs.count("rows", "rays or segments `N` of the probe; use the size of your batches (default 1048576)", &f.rows)
	fs.count("bounces", "reflections `B` of trace_reflections, 1 to 64", &f.bounces)
	fs.file("json", "`FILE` for the record, for -calibration of other commands and multi.ImportCalibration", &f.json)
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	probe, err := f.probe()
	if err != nil {
		return err
	}
	if len(f.meshes) == 0 {
		return usagef("-mesh is missing: give a .obj, .ply or .stl file")
	}
	if f.json != "" {
		if err := forFile("-json", f.json, fileio.CheckOutput(p.fs, f.json)); err != nil {
			return err
		}
	}
	meshes, err := p.readMeshes(ctx, f.meshes)
	if err != nil {
		return err
	}
	e, err := p.openEngine(ctx, f.devices, f.backend, f.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	if len(e.ordinals) < 2 {
		return &devicesError{text: "-devices: found 1 device; a calibration compares several"}
	}
	p.progress("building")
	if err := e.load(ctx, meshes, withoutEdges); err != nil {
		return err
	}
	if probe.Operation == multi.OpVisible {
		segments, failed := newSegmentProbe(e, f.rows)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, segments.close(ctx)) }()
		probe.Run = segments.run
	}
	p.progress("measuring")
	record, err := e.scene.CalibrateDevices(ctx, probe)
	if err != nil {
		return err
	}
	p.progress("")
	if f.json != "" {
		text, err := json.MarshalIndent(record, "", "  ")
		if err != nil {
			return err
		}
		err = forFile("-json", f.json, fileio.WriteAtomic(ctx, p.fs, f.json, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s\n", text)
			return err
		}))
		if err != nil {
			return err
		}
	}
	_, err = fmt.Fprint(p.stdout, record.Describe())
	return err
}

// probe is what the flags ask to be measured.
func (f *calibrateFlags) probe() (multi.Probe, error) {
	const reflections = "trace_reflections"
	name, bounces, _ := strings.Cut(f.op, ":")
	if bounces != "" {
		n, err := strconv.ParseInt(bounces, 10, 64)
		if err != nil || f.bounces != 0 && f.bounces != n {
			return multi.Probe{}, usagef("-op %s: found %q after the colon; expected the number of -bounces", f.op, bounces)
		}
		f.bounces = n
	}
	switch {
	case f.op != "" && f.op != "intersect_full" && f.op != multi.OpVisible && name != reflections:
		return multi.Probe{}, usagef("-op: found %q; expected intersect_full, %s or %s", f.op, reflections, multi.OpVisible)
	case name == reflections && (f.bounces < 1 || f.bounces > scene.MaxBounces):
		return multi.Probe{}, usagef("-bounces: found %d; %s needs 1 to %d", f.bounces, reflections, scene.MaxBounces)
	case name != reflections && f.bounces > 0:
		return multi.Probe{}, usagef("-bounces is for -op %s", reflections)
	}
	probe := multi.Probe{Rays: f.rows, MaxBounces: int(f.bounces)}
	if f.op == multi.OpVisible {
		probe.Operation = f.op
	}
	return probe, nil
}
