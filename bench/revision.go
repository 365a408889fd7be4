package main

import (
	"os/exec"
	"runtime/debug"
	"strings"
)

// sourceRevision returns the commit that this program was built from and whether the tree had uncommitted changes. A
// built program carries both; `go run` leaves them out, so the repository around the working directory is asked. Where
// neither answers the revision is unknown, which counts as modified: such a record is not evidence.
func sourceRevision() (revision string, modified bool) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value
			case "vcs.modified":
				modified = s.Value == "true"
			}
		}
	}
	if revision != "" {
		return revision, modified
	}
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "unknown", true
	}
	changes, err := exec.Command("git", "status", "--porcelain").Output()
	return strings.TrimSpace(string(head)), err != nil || len(changes) > 0
}
