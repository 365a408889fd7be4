package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// flagSet is a flag.FlagSet whose flags may be given once, unless they are declared repeatable, and that prints nothing of
// its own on an error.
type flagSet struct {
	*flag.FlagSet
	seen map[string]bool
}

func newFlagSet(name string) *flagSet {
	fs := &flagSet{flag.NewFlagSet(name, flag.ContinueOnError), map[string]bool{}}
	fs.SetOutput(io.Discard)
	return fs
}

// once declares a flag with a value.
func (fs *flagSet) once(name, usage string, set func(string) error) {
	fs.Func(name, usage, func(s string) error {
		if fs.seen[name] {
			return errors.New("given twice")
		}
		fs.seen[name] = true
		return set(s)
	})
}

// file declares a flag whose value is a path.
func (fs *flagSet) file(name, usage string, target *string) {
	fs.once(name, usage, func(s string) error {
		if s == "" {
			return errors.New("the name is empty")
		}
		*target = s
		return nil
	})
}

// errHelpShown ends a command that only had to print its flags.
var errHelpShown = errors.New("help shown")

// parse reads the arguments of a command.
func (fs *flagSet) parse(p *program, args []string) error {
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(p.stdout, "usage: raymux %s [flags]\n", fs.Name())
		fs.SetOutput(p.stdout)
		fs.PrintDefaults()
		return errHelpShown
	case err != nil:
		text := strings.Replace(err.Error(), "flag provided but not defined:", "unknown flag", 1)
		return usagef("%s; raymux %s -h lists the flags", text, fs.Name())
	case fs.NArg() > 0:
		return usagef("unexpected argument %q; every input has a flag, raymux %s -h lists them", fs.Arg(0), fs.Name())
	}
	return nil
}

// common holds the flags of every command that makes a result from meshes.
type common struct {
	meshes     []string
	devices    deviceList
	backend    scene.Backend
	out        string
	fields     []string // as written; nil: all
	plan, info bool
	// calibrations are records of calibrations, of commands that divide their rows.
	calibrations []string
}

func (fs *flagSet) common(c *common) {
	fs.meshes(&c.meshes)
	fs.machine(&c.devices, &c.backend)
	fs.file("out", "`FILE` for the result: .npz, or .npy for a single column (required, not with -plan)", &c.out)
	fs.once("fields", "`LIST`: all, or a comma-separated list of the columns to compute and write (default all)", func(s string) error {
		if s != "all" {
			c.fields = strings.Split(s, ",")
		}
		return nil
	})
	fs.BoolVar(&c.plan, "plan", false, "print how the rows would be split, and why, and run nothing")
	fs.BoolVar(&c.info, "info", false, "print the plan, timings and bytes moved to standard error")
}

// meshes declares the flag that names meshes.
func (fs *flagSet) meshes(list *[]string) {
	fs.Func("mesh", "`FILE` of a mesh: .obj, .ply or .stl; repeat it for several, in order (required)", func(s string) error {
		*list = append(*list, s)
		return nil
	})
}

// split declares the flags that divide a batch among the devices.
func (fs *flagSet) split(options *chunked.Options) {
	fs.once("weights", "`a,b,...`: shares of the devices, one each (default: equal)", func(s string) (err error) {
		options.Weights, err = parseWeights(s)
		return err
	})
	fs.count("min-rows", fmt.Sprintf("fewest rows `N` of another device that are worth sending; 1 splits even tiny batches (default %d)",
		chunked.DefaultMinRows), &options.MinRaysPerDevice)
	fs.count("min-lanes", "fewest lanes `N` of an accumulation of another device that are worth sending; 1 splits even small ones (default: what is measured of each operation, 262144 to 2097152)", &options.MinLanesPerDevice)
	fs.count("chunk-rows", "trace at most `N` rows at a time on a device, and take the results of each chunk off the device before the next (default: all)",
		&options.ChunkRays)
	fs.count("memory-budget", "the most memory in `BYTES` that a call may add on a device; chunks are as large as fits (default: no limit)",
		&options.MemoryBudget)
	fs.once("transport", "`auto|direct|copy|host`: how rows reach the other devices (default auto)", func(s string) error {
		if options.Transport.UnmarshalText([]byte(s)) != nil {
			return errors.New("use auto, direct, copy or host")
		}
		return nil
	})
}

// count declares a flag whose value is a number of things.
func (fs *flagSet) count(name, usage string, target *int64) {
	fs.once(name, usage, func(s string) (err error) {
		if *target, err = strconv.ParseInt(s, 10, 64); err != nil || *target < 1 {
			return errors.New("use a whole number from 1")
		}
		return nil
	})
}

// machine declares the flags that choose devices and tracer.
func (fs *flagSet) machine(devices *deviceList, backend *scene.Backend) {
	devices.all = true
	fs.once("devices", "`LIST`: 0 or 0,1 or all or emu:N (N emulated devices); the first is the master (default all)",
		func(s string) (err error) {
			*devices, err = parseDevices(s)
			return err
		})
	fs.once("backend", "`auto|cuda|optix`: triangle tracer (default auto)", func(s string) (err error) {
		*backend, err = parseBackend(s)
		return err
	})
}

// check validates what can be told from the flags alone.
func (c *common) check(p *program, columns []string) error {
	if len(c.meshes) == 0 {
		return usagef("-mesh is missing: give a .obj, .ply or .stl file")
	}
	if err := c.checkFields(columns); err != nil {
		return err
	}
	if c.plan {
		return nil
	}
	if c.out == "" {
		return usagef("-out is missing: give a .npz file, or .npy for a single column")
	}
	return p.checkOut(c.out, len(c.fields))
}

// checkFields resolves "all" and puts the columns into the order of the operation.
func (c *common) checkFields(columns []string) error {
	asked := map[string]bool{}
	for _, f := range c.fields {
		if asked[f] {
			return usagef("-fields: found %q twice; expected each column once", f)
		}
		asked[f] = true
	}
	var chosen []string
	for _, name := range columns {
		if c.fields == nil || asked[name] {
			chosen = append(chosen, name)
			delete(asked, name)
		}
	}
	for _, f := range c.fields {
		if asked[f] {
			return usagef("-fields: found %q; expected all or some of %s", f, strings.Join(columns, ","))
		}
	}
	c.fields = chosen
	return nil
}

func parseWeights(s string) ([]float64, error) {
	var w []float64
	for part := range strings.SplitSeq(s, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || v < 0 {
			return nil, fmt.Errorf("%q is no weight: use finite numbers >= 0", part)
		}
		w = append(w, v)
	}
	return w, nil
}

// isArchive tells .npz from .npy by a file's name.
func isArchive(name string) bool { return strings.EqualFold(filepath.Ext(name), ".npz") }
