package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
)

// emptyKernel does nothing: a launch of it costs what every launch costs.
var emptyKernel = ptx.Entry[struct{}]{Module: "link", Name: "empty"}

// One block of one warp, as in the program in C.
var launchGrid, launchBlock = cuapi.D1(1), cuapi.D1(32)

const launchUsage = `usage: bench launch [options]

Times the issue of kernel launches: batches of launches of an empty kernel are timed on the host, the stream drains
between batches. Prints JSON.

  --device N|emu     CUDA ordinal, or an emulated device (default 0)
  --batch N          launches per batch, below the depth of the driver's queue (default 256)
  --batches N        measured batches (default 400)
  --c PATH           also run this build of bench/launch_c/launch.c, before and after, and give the ratios to it
`

// launchOptions of the launch benchmark.
type launchOptions struct {
	device   int
	emulated bool
	batch    int
	batches  int
	c        string
}

// launchCost is the time of one launch over batches.
type launchCost struct {
	MinNS    float64 `json:"min_ns"`
	MedianNS float64 `json:"median_ns"`
	Allocs   *int64  `json:"allocs_per_launch,omitempty"` // heap allocations, absent for C
}

// launchResult is what the benchmark prints.
type launchResult struct {
	Device   string      `json:"device"`
	Emulated bool        `json:"emulated"`
	Driver   int         `json:"cuda_driver_version"`
	Batch    int         `json:"batch"`
	Batches  int         `json:"batches"`
	Scope    launchCost  `json:"scope_launch"`    // inside cuda.Context.Enter, the fast path
	Function launchCost  `json:"function_launch"` // makes the context current for each launch
	C        *launchCost `json:"c,omitempty"`
	// Ratios of the minima to those of the program in C.
	ScopeToC    *float64 `json:"scope_to_c,omitempty"`
	FunctionToC *float64 `json:"function_to_c,omitempty"`
}

func parseLaunchOptions(args []string) (launchOptions, error) {
	o := launchOptions{batch: 256, batches: 400}
	fs := flag.NewFlagSet("launch", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Func("device", "", func(s string) (err error) {
		if o.emulated = s == "emu"; o.emulated {
			return nil
		}
		if o.device, err = strconv.Atoi(s); err != nil || o.device < 0 {
			return errors.New("give an ordinal or emu")
		}
		return nil
	})
	atLeast(fs, "batch", 1, &o.batch)
	atLeast(fs, "batches", 1, &o.batches)
	fs.StringVar(&o.c, "c", "", "")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, usage("%w", err)
	}
	if fs.NArg() > 0 {
		return o, usage("launch: unexpected argument %q", fs.Arg(0))
	}
	if o.emulated && o.c != "" {
		return o, usage("launch: --c needs a GPU")
	}
	return o, nil
}

// launchCommand is `bench launch`.
func launchCommand(args []string, stdout, stderr io.Writer) error {
	o, err := parseLaunchOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, launchUsage)
		return nil
	}
	if err != nil {
		return err
	}
	result, err := o.measure(stderr)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, string(text))
	return err
}

func (o launchOptions) open() (*cuda.Driver, error) {
	if o.emulated {
		return cuda.OpenEmulator(1)
	}
	driver, err := cuda.Open()
	if err != nil {
		return nil, fmt.Errorf("launch: %w; use --device emu for an emulated device", err)
	}
	return driver, nil
}

func (o launchOptions) measure(stderr io.Writer) (result launchResult, err error) {
	driver, err := o.open()
	if err != nil {
		return result, err
	}
	var undo []func() error
	defer func() {
		for _, f := range slices.Backward(undo) {
			err = errors.Join(err, f())
		}
	}()
	undo = append(undo, driver.Close)
	device, err := driver.Device(o.device)
	if err != nil {
		return result, err
	}
	result = launchResult{Device: device.Name(), Emulated: driver.Emulated(), Driver: driver.Version(), Batch: o.batch, Batches: o.batches}
	fmt.Fprintf(stderr, "launches on device %d, %s\n", o.device, device.Name())
	c, err := device.Retain()
	if err != nil {
		return result, err
	}
	undo = append(undo, c.Close)
	loop := launchLoop{batch: o.batch}
	if loop.stream, err = c.NewStream(cuda.StreamOptions{}); err != nil {
		return result, err
	}
	undo = append(undo, loop.stream.Close)
	text, err := ptx.Module(emptyKernel.Module)
	if err != nil {
		return result, err
	}
	module, err := c.LoadModule(text, cuda.JITOptions{})
	if err != nil {
		return result, err
	}
	undo = append(undo, module.Close)
	if loop.kernel, err = module.Function(emptyKernel.Name); err != nil {
		return result, err
	}
	return result, o.compare(&result, text, c, loop)
}

// compare times the loops in Go between two runs of the one in C.
func (o launchOptions) compare(result *launchResult, text []byte, c *cuda.Context, loop launchLoop) error {
	var before launchCost
	var err error
	if o.c != "" {
		if before, err = o.runC(text); err != nil {
			return err
		}
	}
	if result.Scope, result.Function, err = loop.measure(c, o.batches); err != nil {
		return err
	}
	if o.c == "" {
		return nil
	}
	after, err := o.runC(text)
	if err != nil {
		return err
	}
	best := launchCost{MinNS: min(before.MinNS, after.MinNS), MedianNS: min(before.MedianNS, after.MedianNS)}
	scope, function := result.Scope.MinNS/best.MinNS, result.Function.MinNS/best.MinNS
	result.C, result.ScopeToC, result.FunctionToC = &best, &scope, &function
	return nil
}

// runC runs the program in C on the same PTX, device and batches.
func (o launchOptions) runC(text []byte) (cost launchCost, err error) {
	dir, err := os.MkdirTemp("", "bench-launch-")
	if err != nil {
		return cost, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, emptyKernel.Module+".ptx")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return cost, err
	}
	cmd := exec.Command(o.c, path, emptyKernel.Name, strconv.Itoa(o.device), strconv.Itoa(o.batch), strconv.Itoa(o.batches))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return cost, fmt.Errorf("--c %s: %w", o.c, err)
	}
	if err := json.Unmarshal(out, &cost); err != nil {
		return cost, fmt.Errorf("--c %s answered %q: %w", o.c, out, err)
	}
	if cost.MinNS <= 0 {
		return cost, fmt.Errorf("--c %s answered %q: no time", o.c, out)
	}
	return cost, nil
}

// launchLoop issues batches of launches of one kernel.
type launchLoop struct {
	kernel *cuda.Function
	stream *cuda.Stream
	batch  int
}

// measure interleaves batches of both ways to launch, after one warm-up batch of each.
func (l launchLoop) measure(c *cuda.Context, batches int) (scope, function launchCost, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	ns := [2][]float64{make([]float64, 0, batches), make([]float64, 0, batches)}
	var allocs [2]uint64
	for i := -1; i < batches; i++ {
		for way, batch := range [2]func(*cuda.Context) (time.Duration, error){l.throughScope, l.throughFunction} {
			before := mallocs()
			took, err := batch(c)
			if err != nil {
				return scope, function, err
			}
			made := mallocs() - before
			if err := l.stream.Synchronize(context.Background()); err != nil {
				return scope, function, err
			}
			if i >= 0 {
				ns[way] = append(ns[way], float64(took.Nanoseconds())/float64(l.batch))
				allocs[way] += made
			}
		}
	}
	cost := func(way int) launchCost {
		slices.Sort(ns[way])
		perLaunch := int64(allocs[way] / uint64(l.batch*batches)) // whole ones, so that the runtime's own do not count
		return launchCost{MinNS: ns[way][0], MedianNS: ns[way][batches/2], Allocs: &perLaunch}
	}
	return cost(0), cost(1), nil
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

func (l launchLoop) throughScope(c *cuda.Context) (took time.Duration, err error) {
	sc, err := c.Enter()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sc.Exit()) }()
	start := time.Now()
	for range l.batch {
		if err := sc.Launch(l.kernel, l.stream, launchGrid, launchBlock, 0, nil); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

func (l launchLoop) throughFunction(*cuda.Context) (time.Duration, error) {
	start := time.Now()
	for range l.batch {
		if err := l.kernel.Launch(l.stream, launchGrid, launchBlock, 0, nil); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}
