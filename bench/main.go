package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command runs one command line and returns the exit status.
func command(args []string, stdout, stderr io.Writer) int {
	err := dispatch(args, stdout, stderr)
	if err == nil {
		return exitDone
	}
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usageText)
		return exitDone
	}
	fmt.Fprintln(stderr, "bench:", err)
	var s *statusError
	if errors.As(err, &s) {
		return s.status
	}
	return exitFailed
}

func dispatch(args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "manifest":
			return manifestCommand(args[1:], stdout)
		case "launch":
			return launchCommand(args[1:], stdout, stderr)
		case "plot":
			return plotCommand(args[1:], stdout)
		}
	}
	return benchCommand(args, stdout, stderr)
}
