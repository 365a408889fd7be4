package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tools/raymux/fileio"
)

func main() { os.Exit(process(isTerminal(os.Stderr))) }

// process runs the command line of the process and returns its exit status.
func process(terminal bool) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first interrupt the next one ends the process at once, should a device not answer.
	context.AfterFunc(ctx, stop)
	p := &program{
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		fs:       fileio.OS{},
		terminal: terminal,
		open:     func() (*cuda.Driver, error) { return cuda.Open() },
		emulate:  func(n int) (*cuda.Driver, error) { return cuda.OpenEmulator(n) },
	}
	return p.run(ctx, os.Args[1:])
}

// program is what a run depends on, so that a test can replace it.
type program struct {
	stdout, stderr io.Writer
	fs             fileio.FS
	terminal       bool // stderr is a terminal: show progress
	open           func() (*cuda.Driver, error)
	emulate        func(n int) (*cuda.Driver, error)
}

// command is one subcommand.
type command struct {
	name, summary string
	run           func(p *program, ctx context.Context, args []string) error
}

// commands in the order of the help text.
func commands() []command {
	return []command{
		{"info", "what the machine offers: devices, driver, backends, links, kernels", (*program).info},
		{"intersect", "the closest hit of every ray", (*program).intersect},
		{"visible", "whether the segments between pairs of points are free", (*program).visible},
		{"reflect", "the chains of mirror reflections of every ray", (*program).reflect},
		{"accumulate", "what rays bring to the cells of a grid over mirror reflections: power and field", (*program).accumulate},
		{"dfr-direct", "the power that wedges scatter into the cells of a grid, estimated by samples", (*program).dfrDirect},
		{"dfr-coherent", "the field that wedges scatter to the cells of a grid", (*program).dfrCoherent},
		{"dfr-paths", "the paths from transmitters over wedges to receivers", (*program).dfrPaths},
		{"dfr-states", "the wedges of the meshes as states of a source, for dfr-direct, dfr-coherent and dfr-paths", (*program).dfrStates},
		{"calibrate", "measure whether dividing an operation among the devices pays, and how", (*program).calibrate},
		{"edge-records", "the edges of the meshes and the faces beside them", (*program).edgeRecords},
		{"version", "what the program was built from", (*program).version},
	}
}

// run executes one command line and returns the exit status. On failure it prints exactly one message.
func (p *program) run(ctx context.Context, args []string) int {
	name, err := p.dispatch(ctx, args)
	p.progress("")
	if err == nil {
		return exitDone
	}
	prefix := "raymux"
	if name != "" {
		prefix += " " + name
	}
	status, text := describe(ctx, err)
	fmt.Fprintf(p.stderr, "%s: %s\n", prefix, text)
	return status
}

func (p *program) dispatch(ctx context.Context, args []string) (string, error) {
	if len(args) == 0 {
		return "", usagef("no command; use one of %s, or -h", commandNames())
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		p.help()
		return "", nil
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.name, c.run(p, ctx, args[1:])
		}
	}
	return "", usagef("unknown command %q; use one of %s", args[0], commandNames())
}

func commandNames() string {
	text := ""
	for i, c := range commands() {
		if i > 0 {
			text += ", "
		}
		text += c.name
	}
	return text
}

func (p *program) help() {
	fmt.Fprintf(p.stdout, "usage: raymux COMMAND [flags]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(p.stdout, "  %-14s %s\n", c.name, c.summary)
	}
	fmt.Fprintf(p.stdout, "\nraymux COMMAND -h lists the flags of a command. Without a GPU, use -devices emu:2.\n"+
		"Exit status: 0 done, 1 failed, 2 usage or bad input, 3 not enough devices, 130 interrupted.\n")
}

// isTerminal reports whether f is a character device, as terminals are and files and pipes are not.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
