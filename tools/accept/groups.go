package main

import (
	"path"
	"slices"
	"strings"
)

// group is one part of the acceptance set: the tests of some packages whose names begin with "Test" and the prefix.
type group struct {
	name, prefix string
	packages     []string // folders below the module's root
	content      string
	// gate is a test that compares times, which a busy host may fail. It is repeated once, alone.
	gate string
}

var groups = []group{
	{"smoke", "MultiSmoke", []string{"scene", "multi"}, "results do not depend on the current device; inputs of other devices are refused", ""},
	{"stress", "MultiStress", []string{"multi"}, "two threads on two devices, cold start of a device, overlap in time", "TestMultiStressOverlap"},
	{"scene", "MultiScene", []string{"multi"}, "sharding, mutation, streams, calibration: the bits of one device", ""},
	{"policy", "MultiPolicy", []string{"multi"}, "links, transports, floors, weights", ""},
	{"resilience", "MultiResilience", []string{"multi"}, "failing calls, lost devices, diverged sets", ""},
	{"reflection", "MultiReflection", []string{"multi"}, "chains of reflections", ""},
	{"chunked", "Chunked", []string{"chunked"}, "plans: sizes, budgets, chunks", ""},
}

// pattern selects the tests of the group.
func (g group) pattern() string { return "^Test" + g.prefix }

// binary is the file name of a package's compiled tests.
func binary(pkg string) string { return path.Base(pkg) + ".test" }

// packages are those of all groups, each once.
func packages(list []group) []string {
	var out []string
	for _, g := range list {
		for _, p := range g.packages {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// choose resolves the names of -groups; without any it is every group.
func choose(names string) ([]group, error) {
	if names == "" {
		return groups, nil
	}
	var out []group
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
		if i < 0 {
			return nil, usagef("-groups: there is no group %q; -list shows them", name)
		}
		out = append(out, groups[i])
	}
	return out, nil
}
