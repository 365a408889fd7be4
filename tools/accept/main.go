package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	a := &acceptance{out: os.Stdout, survey: survey, execute: execute, build: build}
	os.Exit(a.run(os.Args[1:]))
}

// acceptance is one run; its fields let tests replace the host.
type acceptance struct {
	out     io.Writer
	survey  func() ([]string, error)
	execute func(dir, program string, args, env []string) (output string, err error)
	build   func(dir string, packages []string) error

	devices                       deviceSet
	groups                        []group
	allowPartial, keepGoing, list bool
	short                         bool
	binaries, buildOnly           string
}

type usageError string

func (e usageError) Error() string { return string(e) }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// run executes a command line and returns the exit status.
func (a *acceptance) run(args []string) int {
	err := a.parse(args)
	var status int
	if err == nil {
		status, err = a.accept()
	}
	var usage usageError
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitVerified
	case errors.As(err, &usage):
		fmt.Fprintln(a.out, "accept:", err)
		return exitUsage
	case err != nil:
		fmt.Fprintln(a.out, "FAILED:", err)
		return exitFailed
	}
	return status
}

func (a *acceptance) parse(args []string) error {
	fs := flag.NewFlagSet("accept", flag.ContinueOnError)
	fs.SetOutput(a.out)
	devices := fs.String("devices", "all", "`LIST`: all GPUs, some such as 0,1, or emu:N")
	names := fs.String("groups", "", "`LIST` of groups to run (default all)")
	fs.BoolVar(&a.allowPartial, "allow-partial", false, "exit with 0 where nothing was verified, on emulated devices say")
	fs.BoolVar(&a.keepGoing, "keep-going", false, "run the other groups when one has failed")
	fs.BoolVar(&a.list, "list", false, "print devices and groups, and run nothing")
	fs.BoolVar(&a.short, "short", false, "leave out what takes long, as go test -short does")
	fs.StringVar(&a.binaries, "binaries", "", "`DIR` with test binaries, instead of building them")
	fs.StringVar(&a.buildOnly, "build", "", "build the test binaries into `DIR` and run nothing")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError(err.Error())
	}
	if fs.NArg() > 0 {
		return usagef("unexpected argument %q", fs.Arg(0))
	}
	if a.buildOnly != "" && a.binaries != "" {
		return usagef("-build makes what -binaries uses: give one of them")
	}
	var err error
	if a.groups, err = choose(*names); err == nil {
		a.devices, err = parseDevices(*devices)
	}
	return err
}

// accept does what the flags say.
func (a *acceptance) accept() (int, error) {
	if a.buildOnly != "" {
		return exitVerified, a.build(a.buildOnly, packages(a.groups))
	}
	found, err := a.find()
	if err != nil {
		return 0, err
	}
	if a.list {
		for _, g := range a.groups {
			fmt.Fprintf(a.out, "group %-10s  %-18s in %s: %s\n", g.name, g.pattern(), strings.Join(g.packages, ", "), g.content)
		}
	}
	if a.devices.count() < 2 {
		fmt.Fprintf(a.out, "NOTHING VERIFIED: this host has %d CUDA device(s), %d selected, the multi-device set needs 2\n", found, a.devices.count())
		if a.allowPartial {
			return exitVerified, nil
		}
		return exitNothing, nil
	}
	if a.list {
		return exitVerified, nil
	}
	dir := a.binaries
	if dir == "" {
		if dir, err = os.MkdirTemp("", "accept"); err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		if err := a.build(dir, packages(a.groups)); err != nil {
			return 0, err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return 0, err
	}
	return a.runGroups(dir), nil
}

// find prints the devices and resolves "all"; it returns how many CUDA devices the host has.
func (a *acceptance) find() (found int, err error) {
	if a.devices.emulated > 0 {
		fmt.Fprintf(a.out, "devices: %d emulated\n", a.devices.emulated)
		return 0, nil
	}
	lines, err := a.survey()
	if err != nil {
		// The library's advice is for programs.
		fmt.Fprintf(a.out, "no CUDA device: %s; -devices emu:2 -allow-partial checks emulated ones\n",
			strings.ReplaceAll(err.Error(), "; without a GPU use cuda.OpenEmulator", ""))
	}
	for i, line := range lines {
		fmt.Fprintln(a.out, line)
		if a.devices.all {
			a.devices.ordinals = append(a.devices.ordinals, i)
		}
	}
	for _, o := range a.devices.ordinals {
		if o >= len(lines) {
			return 0, usagef("-devices: there is no device %d, the host has %d", o, len(lines))
		}
	}
	return len(lines), nil
}

// runGroups runs each group and prints the verdict.
func (a *acceptance) runGroups(dir string) int {
	var sum total
	for _, g := range a.groups {
		begin := time.Now()
		r := a.runGroup(dir, g)
		fmt.Fprintf(a.out, "group %-10s  %s  [%.1f s]\n", g.name, &r, time.Since(begin).Seconds())
		sum.add(g, r)
		if len(sum.broken) > 0 && !a.keepGoing {
			break
		}
	}
	line, status := sum.verdict(a.devices, a.allowPartial)
	fmt.Fprintln(a.out, line)
	return status
}

// runGroup runs the tests of a group, in one process per package.
func (a *acceptance) runGroup(dir string, g group) (r result) {
	for _, pkg := range g.packages {
		a.process(&r, dir, pkg, g.pattern())
	}
	if len(r.failed) == 1 && r.failed[0] == g.gate {
		var again result
		a.process(&again, dir, g.packages[0], "^"+g.gate+"$")
		if again.passed == 1 && len(again.failed) == 0 {
			r.without(g.gate)
			r.notes = append(r.notes, g.gate+" failed beside the others and passed when it was repeated alone")
		}
	}
	return r
}

// process runs the matching tests of one package and prints what it wrote if it failed.
func (a *acceptance) process(r *result, dir, pkg, pattern string) {
	args := []string{"-test.v", "-test.count=1", "-test.timeout=20m", "-test.run=" + pattern}
	if a.short {
		args = append(args, "-test.short")
	}
	before := len(r.failed)
	output, err := a.execute(pkg, filepath.Join(dir, binary(pkg)), args, a.devices.environment())
	r.add(output)
	if err == nil && len(r.failed) == before {
		return
	}
	fmt.Fprint(a.out, output)
	if len(r.failed) == before { // it ended in another way: a panic, a missing file
		r.failed = append(r.failed, fmt.Sprintf("%s: %v", binary(pkg), err))
	}
}

// execute runs a test binary in the folder of its package, where its files are.
func execute(dir, program string, args, env []string) (string, error) {
	cmd := exec.Command(program, args...)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		cmd.Dir = dir
	}
	cmd.Env = append(os.Environ(), env...)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// build compiles the tests of packages into a folder.
func build(dir string, packages []string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	args := []string{"test", "-c", "-o", dir + string(filepath.Separator)}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	if output, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("building the tests: %w\n%s", err, output)
	}
	return nil
}
