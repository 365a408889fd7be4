package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/scene"
)

// options of a benchmark run, as given; unset numbers are -1.
type options struct {
	config             string // empty: all on GPUs, mini on emulated devices
	devices            deviceList
	requireDevices     int // -1: not given
	rays               int64
	accumSamples       int64 // 0: those of the configuration
	accumOnly          bool
	accumSweep         bool
	warmup, repeat     int
	transport          chunked.Transport
	backend            scene.Backend
	calibrationRows    int64 // 0: those of the batch; -1: not given
	calibrationRepeats int
	probe              string
	runs               int
	studies            studyList
	mesh               string
	json               string
	pin                string
}

const usageText = `usage: bench [options]           measure and check
       bench launch [options]    time the issue of a kernel launch
       bench plot RECORD         draw the study scaling of a record as SVG on standard output
       bench manifest            write bench/manifest.json and the tables in docs from the records in bench/evidence

options:
  --config light|compute|mini|all   workload; all is light and compute (default: all on GPUs, mini on emulated devices)
  --devices i,j,...|emu:N           CUDA ordinals, the first is the master, or N emulated devices (default: every GPU;
                                    without a GPU two emulated devices)
  --require-devices K               exit 3 if the set has fewer devices; never falls back to emulated ones
  --rays N                          rows of the batch, 1 to 268435456 (default: that of the configuration)
  --accum-samples N                 samples of the accumulation, at least 1 (default: those of the configuration)
  --accum-only                      the rows of the accumulation alone
  --accum-sweep                     then accumulate 65536 to 67108864 samples, on one device and divided equally
  --warmup W, --repeat R            rounds before measuring, and the fewest while measuring: on GPUs short calls are repeated
                                    until they add up to 150 ms, or 500 times, but not with --repeat 1 (default: 2 and 7, on
                                    emulated devices 0 and 2)
  --transport auto|direct|copy|host how remote rows travel (default: auto)
  --calibration-rows N, --calibration-repeats R
                                    rows of a calibration's probe, 0 for those of the batch, and rounds in which it times
                                    devices alone (default: 0 and 9, on emulated devices 64 and 2)
  --probe workload|default          what calibrations time: the calls of the rows, or random rays in the box of the scene
                                    (default: workload)
  --runs N                          then repeat the rows of the set N-1 times, with a new calibration each time, and report
                                    the spread of their speed-ups; on GPUs the run fails where a row in policy or calibrated
                                    mode is below 0.97 in any of them (default: 1)
  --backend auto|cuda|optix         how rays find triangles (default: auto)
  --study LIST|all                  then make tables, on the master: geometry (tracers on several scenes), batches (cost per
                                    launch and per ray) and builds (of search structures, and refits); on the set, and on
                                    one device not at all: dispatch (what dividing a call costs) and scaling (speed-up by
                                    batch size, which bench plot draws); on the master and on the set: grids (sums on
                                    grids, and paths)
  --mesh FILE                       a scanned mesh for the studies geometry and builds, .obj, .ply or .stl
  --json PATH                       write the record, - is standard output
  --pin PATH                        write the column digests of this run, merged into the committed ones; only after
                                    every check passed

exit status: 0 done and all checks passed, 1 a check or a device failed, 2 usage, 3 too few devices, 4 record invalid
or not writable
`

// parseOptions reads the command line of a benchmark run.
func parseOptions(args []string) (options, error) {
	o := options{requireDevices: -1, rays: -1, warmup: -1, repeat: -1, calibrationRows: -1, calibrationRepeats: -1, runs: 1}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.config, "config", "", "")
	fs.Var(&o.devices, "devices", "")
	atLeast(fs, "require-devices", 1, &o.requireDevices)
	atLeast(fs, "warmup", 0, &o.warmup)
	atLeast(fs, "repeat", 1, &o.repeat)
	var rays, accumSamples int
	calibrationRows := -1
	atLeast(fs, "rays", 1, &rays)
	atLeast(fs, "accum-samples", 1, &accumSamples)
	fs.BoolVar(&o.accumOnly, "accum-only", false, "")
	fs.BoolVar(&o.accumSweep, "accum-sweep", false, "")
	atLeast(fs, "calibration-rows", 0, &calibrationRows)
	atLeast(fs, "calibration-repeats", 1, &o.calibrationRepeats)
	fs.StringVar(&o.probe, "probe", probeWorkload, "")
	atLeast(fs, "runs", 1, &o.runs)
	fs.TextVar(&o.transport, "transport", chunked.Auto, "")
	fs.Func("backend", "", func(s string) (err error) { o.backend, err = parseBackend(s); return err })
	fs.Var(&o.studies, "study", "")
	fs.StringVar(&o.mesh, "mesh", "", "")
	fs.StringVar(&o.json, "json", "", "")
	fs.StringVar(&o.pin, "pin", "", "")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, usage("%w", err)
	}
	if fs.NArg() > 0 {
		return o, usage("unexpected argument %q; the commands are launch, plot and manifest and come first", fs.Arg(0))
	}
	if rays > workload.MaxRays {
		return o, usage("--rays %d: use at most %d", rays, workload.MaxRays)
	}
	if rays > 0 {
		o.rays = int64(rays)
	}
	if o.accumSamples = int64(accumSamples); o.accumSamples >= 1<<31 {
		return o, usage("--accum-samples %d: use less than 2^31", o.accumSamples)
	}
	o.calibrationRows = int64(calibrationRows)
	if o.probe != probeWorkload && o.probe != probeDefault {
		return o, usage("--probe %q: use workload or default", o.probe)
	}
	if o.config != "" && o.config != "all" {
		if _, err := workload.Find(o.config); err != nil {
			return o, usage("--config %q: use light, compute, mini or all", o.config)
		}
	}
	if o.mesh != "" && !slices.Contains(o.studies, studyGeometry) && !slices.Contains(o.studies, studyBuilds) {
		return o, usage("--mesh %q: only the studies geometry and builds use a mesh, add --study geometry", o.mesh)
	}
	return o, nil
}

// atLeast declares an integer option with a smallest value.
func atLeast(fs *flag.FlagSet, name string, low int, target *int) {
	fs.Func(name, "", func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < low {
			return fmt.Errorf("give an integer of at least %d", low)
		}
		*target = n
		return nil
	})
}

// deviceList is the value of --devices: ordinals, or a number of emulated devices.
type deviceList struct {
	ordinals []int
	emulated int
}

func (d *deviceList) given() bool { return d.ordinals != nil || d.emulated > 0 }

// String is part of flag.Value.
func (d *deviceList) String() string {
	if d.emulated > 0 {
		return fmt.Sprintf("emu:%d", d.emulated)
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(d.ordinals), "[]"), " ", ",")
}

// Set is part of flag.Value.
func (d *deviceList) Set(s string) error {
	*d = deviceList{}
	if count, ok := strings.CutPrefix(s, "emu:"); ok {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > emu.MaxDevices {
			return fmt.Errorf("the number of emulated devices is 1 to %d", emu.MaxDevices)
		}
		d.emulated = n
		return nil
	}
	for field := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a device: give ordinals like 0,1 or emu:2", field)
		}
		if slices.Contains(d.ordinals, n) {
			return fmt.Errorf("device %d occurs twice", n)
		}
		d.ordinals = append(d.ordinals, n)
	}
	return nil
}

func parseBackend(s string) (scene.Backend, error) {
	b, err := scene.ParseBackend(s)
	if err != nil {
		return 0, errors.New("use auto, cuda or optix")
	}
	return b, nil
}
