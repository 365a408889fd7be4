package main

import (
	"fmt"
	"slices"
	"strings"
)

// result counts the tests of a group; tests inside tests count with theirs.
type result struct {
	passed, skipped int
	failed          []string
	notes           []string
}

// add reads the output of a verbose run.
func (r *result) add(output string) {
	for line := range strings.Lines(output) {
		state, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		name, _, _ := strings.Cut(rest, " ")
		if !ok {
			continue
		}
		switch state {
		case "--- PASS":
			r.passed++
		case "--- SKIP":
			r.skipped++
		case "--- FAIL":
			r.failed = append(r.failed, name)
		}
	}
}

func (r *result) ran() int { return r.passed + r.skipped + len(r.failed) }

func (r *result) String() string {
	s := fmt.Sprintf("%d passed, %d failed, %d skipped", r.passed, len(r.failed), r.skipped)
	if len(r.failed) > 0 {
		s += " (" + strings.Join(r.failed, ", ") + ")"
	}
	if len(r.notes) > 0 {
		s += "; " + strings.Join(r.notes, "; ")
	}
	return s
}

// Exit statuses.
const (
	exitVerified = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNothing  = 3
)

// total is what all groups gave.
type total struct {
	passed, failed, skipped int
	broken                  []string // names of groups that failed, with the reason where it is not a test
	idle                    []string // names of groups of which every test was skipped
}

func (t *total) add(g group, r result) {
	t.passed, t.failed, t.skipped = t.passed+r.passed, t.failed+len(r.failed), t.skipped+r.skipped
	switch {
	case len(r.failed) > 0:
		t.broken = append(t.broken, g.name)
	case r.ran() == 0:
		t.broken = append(t.broken, g.name+" (no test ran)")
	case r.passed == 0:
		t.idle = append(t.idle, g.name)
	}
}

// verdict is the last line and the exit status.
func (t *total) verdict(d deviceSet, allowPartial bool) (line string, status int) {
	counts := fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
	status = exitNothing
	if allowPartial {
		status = exitVerified
	}
	switch {
	case len(t.broken) > 0:
		return fmt.Sprintf("FAILED: %s: %s", strings.Join(t.broken, ", "), counts), exitFailed
	case len(t.idle) > 0:
		return fmt.Sprintf("NOTHING VERIFIED: every test of %s was skipped (%s)", strings.Join(t.idle, ", "), counts), status
	case d.emulated > 0:
		return fmt.Sprintf("EMULATED: on %d emulated devices %s; no GPU was used", d.emulated, counts), status
	}
	return fmt.Sprintf("VERIFIED on %d devices: %s", d.count(), counts), exitVerified
}

// without removes a test from those that failed and counts it as passed.
func (r *result) without(test string) {
	r.failed = slices.DeleteFunc(r.failed, func(name string) bool { return name == test })
	r.passed++
}
