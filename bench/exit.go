package main

import "fmt"

// Exit statuses.
const (
	exitDone    = 0 // finished, record valid, all checks passed
	exitFailed  = 1 // a check failed, or setup or a device failed; the record is still written
	exitUsage   = 2
	exitDevices = 3 // fewer devices than required; nothing was measured
	exitRecord  = 4 // the record violates its own schema or could not be written
)

// statusError is an error that decides the exit status.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// usage reports a command line that cannot be run.
func usage(format string, args ...any) error {
	return &statusError{exitUsage, fmt.Errorf(format, args...)}
}
