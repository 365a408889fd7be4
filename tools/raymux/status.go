package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/fileio"
)

// Exit statuses.
const (
	exitDone        = 0
	exitFailed      = 1   // a device, a driver call, a read or a write failed
	exitUsage       = 2   // the command line or an input is wrong
	exitDevices     = 3   // fewer devices than asked for
	exitInterrupted = 130 // as shells report a program that SIGINT ended
)

// usageError is a command line that cannot be carried out.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// devicesError is a machine with fewer devices than the command line asks for.
type devicesError struct {
	text  string
	cause error
}

func (e *devicesError) Error() string { return e.text }
func (e *devicesError) Unwrap() error { return e.cause }

// fileError names the flag and the file that an error is about.
type fileError struct {
	flag, file string
	err        error
}

func (e *fileError) Error() string { return fmt.Sprintf("%s %s: %v", e.flag, e.file, e.err) }
func (e *fileError) Unwrap() error { return e.err }

// forFile attaches the flag and the file to an error; nil stays nil.
func forFile(flag, file string, err error) error {
	if err == nil {
		return nil
	}
	return &fileError{flag, file, err}
}

// flagNames are the flags of the options that plans, and errors about them, name.
var flagNames = strings.NewReplacer(
	"leave ChunkRays at 0", "leave -chunk-rows out",
	"ChunkRays", "-chunk-rows",
	"MemoryBudget", "-memory-budget",
	"MinRaysPerDevice", "-min-rows",
	"MinLanesPerDevice", "-min-lanes",
)

// describe turns an error into the exit status and one line of text.
func describe(ctx context.Context, err error) (status int, text string) {
	text = strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	text = strings.ReplaceAll(text, "multi: Probe.Rays", "-rows")
	text = strings.ReplaceAll(text, ", or set NoEdges", "") // as all commands do that need none
	var (
		usage   *usageError
		fault   *fileio.Fault
		devices *devicesError
		option  *chunked.OptionError
		budget  *chunked.BudgetError
		chunk   *chunked.ChunkError
		arg     *scene.ArgumentError
		limit   *scene.LimitError
		probe   *multi.ProbeError
	)
	if errors.As(err, &option) || errors.As(err, &budget) || errors.As(err, &chunk) {
		text = flagNames.Replace(text)
	}
	if budget != nil { // results are streamed wherever they can be
		advice := "choose fewer -fields, or leave -dedup out, which needs the whole result at once"
		if budget.Operation == multi.OpDfrPaths {
			advice = "or use -layout source-lane: the compact one needs the whole result at once"
		}
		text = strings.ReplaceAll(text, "or stream the result (Offload)", advice)
	}
	switch {
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
		return exitInterrupted, "interrupted; no output was written"
	case errors.As(err, &devices):
		return exitDevices, text
	case errors.As(err, &usage), errors.As(err, &fault), option != nil, budget != nil, chunk != nil, errors.As(err, &arg), errors.As(err, &limit), errors.As(err, &probe),
		errors.Is(err, multi.ErrCalibration):
		return exitUsage, text
	}
	return exitFailed, text
}
