package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/raymux/raymux/bench/record"
)

// manifestCommand writes the manifest of the repository that holds the working directory, and the tables of its
// documentation that show records.
func manifestCommand(args []string, stdout io.Writer) error {
	if len(args) > 0 {
		return usage("manifest takes no arguments")
	}
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	m, err := record.WriteManifest(root)
	if err != nil {
		return &statusError{exitRecord, err}
	}
	if err := record.WriteTables(root); err != nil {
		return &statusError{exitRecord, err}
	}
	fmt.Fprintf(stdout, "%s: %d records\n", record.ManifestPath, len(m.Records))
	return nil
}

// repositoryRoot returns the nearest folder, from the working directory upwards, that holds the evidence.
func repositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(record.EvidencePath))); err == nil && info.IsDir() {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no folder " + record.EvidencePath + " in " + start + " or above it: run this inside the repository")
		}
	}
}
