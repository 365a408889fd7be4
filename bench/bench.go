package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
)

// run is one benchmark run.
type run struct {
	options
	host     *host
	out      io.Writer // table and lines
	warnings io.Writer
	pins     pinFile
	fresh    []pin // digests of this run
	failures []string
	record   *record.Record
}

// benchCommand measures, checks, prints and records.
func benchCommand(args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	pins, err := readPins(committedPins)
	if err != nil {
		return err
	}
	if err := o.writable(); err != nil { // not after all has been measured
		return err
	}
	h, err := openHost(o)
	if err != nil {
		return err
	}
	defer func() {
		if closing := h.close(); err == nil {
			err = closing
		}
	}()
	o.resolve(h.driver.Emulated())
	r := &run{options: o, host: h, out: stdout, warnings: stderr, pins: pins}
	if o.json == "-" {
		r.out = stderr // standard output is the record alone
	}
	fmt.Fprintln(r.out, h.banner)
	if h.hint != "" {
		fmt.Fprintln(stderr, "hint:", h.hint)
	}
	measured := r.measure()
	if measured != nil {
		r.failures = append(r.failures, oneLine(measured))
	}
	if err := r.finish(stdout); err != nil {
		return err
	}
	if measured != nil {
		return measured
	}
	if len(r.failures) > 0 {
		return fmt.Errorf("%d checks failed", len(r.failures))
	}
	return nil
}

// writable refuses the files that the run could not write at its end.
func (o *options) writable() error {
	for _, f := range []struct{ option, path string }{{"--json", o.json}, {"--pin", o.pin}} {
		if f.path == "" || f.option == "--json" && f.path == "-" {
			continue
		}
		if err := record.Writable(f.path); err != nil {
			return &statusError{exitRecord, fmt.Errorf("%s: %w", f.option, err)}
		}
	}
	return nil
}

// resolve fills in the defaults that depend on the devices: an emulated device is a thousand times slower.
func (o *options) resolve(emulated bool) {
	config, warmup, repeat := "all", 2, 7
	rows, repeats := int64(0), 9
	if emulated {
		config, warmup, repeat = workload.Mini, 0, 2
		rows, repeats = 64, 2
	}
	if o.config == "" {
		o.config = config
	}
	if o.warmup < 0 {
		o.warmup = warmup
	}
	if o.repeat < 0 {
		o.repeat = repeat
	}
	if o.calibrationRows < 0 {
		o.calibrationRows = rows
	}
	if o.calibrationRepeats < 0 {
		o.calibrationRepeats = repeats
	}
}

// selected returns the configurations to run.
func (o *options) selected() []workload.Config {
	var selected []workload.Config
	for _, c := range workload.Configs() {
		if c.Name == o.config || o.config == "all" && c.Name != workload.Mini {
			selected = append(selected, c)
		}
	}
	return selected
}

// measure runs everything. An error is a failure of a device or of the setup; what was finished before it is recorded.
func (r *run) measure() error {
	var err error
	if r.record, err = r.newRecord(); err != nil {
		return err
	}
	if !r.host.driver.Emulated() {
		if r.record.Machine.Links, err = probeLinks(r.host.contexts, probeBytes); err != nil {
			return fmt.Errorf("link probe: %w", err)
		}
		r.printLinks()
	}
	r.printHeader()
	for _, c := range r.selected() {
		start := time.Now()
		if err := r.configuration(c); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		fmt.Fprintf(r.warnings, "%s: finished in %.1f s\n", c.Name, time.Since(start).Seconds())
	}
	if r.accumSweep {
		if err := r.sweep(); err != nil {
			return fmt.Errorf("accumulation sweep: %w", err)
		}
	}
	for _, name := range r.studies {
		if err := r.study(name); err != nil {
			return err
		}
	}
	r.record.Machine.Contention = r.contention(r.record.Machine.Contention)
	return nil
}

// finish prints the outcome and writes what was asked for: the record always when a row was measured, pins only from a
// run whose checks passed.
func (r *run) finish(stdout io.Writer) error {
	for _, f := range r.failures {
		fmt.Fprintln(r.out, "FAILED:", f)
	}
	if len(r.failures) == 0 {
		fmt.Fprintln(r.out, "all checks passed")
	}
	if r.pin != "" && len(r.failures) == 0 {
		for _, p := range r.fresh {
			r.pins.set(p)
		}
		if err := r.pins.write(r.pin); err != nil {
			return &statusError{exitRecord, err}
		}
		fmt.Fprintf(r.warnings, "%d pins written to %s\n", len(r.fresh), r.pin)
	}
	if r.json == "" {
		return nil
	}
	if r.record == nil || len(r.record.Configs) == 0 {
		fmt.Fprintln(r.warnings, "no record is written: no row was measured")
		return nil
	}
	r.record.Checks = &record.Checks{Passed: len(r.failures) == 0, Failures: append([]string{}, r.failures...)}
	var err error
	if r.json == "-" {
		err = r.record.Write(stdout)
	} else {
		err = r.record.WriteFile(r.json)
	}
	if err != nil {
		return &statusError{exitRecord, errors.Join(errors.New("the record was not written"), err)}
	}
	return nil
}

// fail records a failed check.
func (r *run) fail(where, format string, args ...any) {
	r.failures = append(r.failures, where+": "+fmt.Sprintf(format, args...))
}
