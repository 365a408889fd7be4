package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/raymux/raymux/bench/record"
)

// committedPins are the digests that this build expects. A pin is a regression test: it is committed only after its
// columns passed the checks that need no tracer, and it says nothing by itself about their correctness.
//
//go:embed pins.json
var committedPins []byte

// pinFile is the content of pins.json.
type pinFile struct {
	Pins []pin `json:"pins"`
}

// pin holds the SHA-256 of every column of the first Rows rows of an operation on a configuration.
type pin struct {
	Config    string          `json:"config"`
	Operation string          `json:"operation"`
	Rows      int64           `json:"rows"`
	Columns   []record.Column `json:"columns"`
}

// names reports whether two pins are of the same result.
func (p pin) names(other pin) bool {
	return p.Config == other.Config && p.Operation == other.Operation && p.Rows == other.Rows
}

func readPins(text []byte) (pinFile, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var f pinFile
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("pins.json: %w", err)
	}
	return f, nil
}

// find returns the pin of the same result as another.
func (f pinFile) find(of pin) (pin, bool) {
	i := slices.IndexFunc(f.Pins, of.names)
	if i < 0 {
		return pin{}, false
	}
	return f.Pins[i], true
}

// set replaces or adds a pin and keeps the file sorted.
func (f *pinFile) set(p pin) {
	f.Pins = slices.DeleteFunc(f.Pins, p.names)
	f.Pins = append(f.Pins, p)
	slices.SortFunc(f.Pins, func(a, b pin) int {
		return cmp.Or(cmp.Compare(a.Config, b.Config), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Rows, b.Rows))
	})
}

func (f pinFile) write(path string) error {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return record.WriteAtomic(path, append(text, '\n'))
}

// differ compares digests with a pin, column by column, and returns one line per difference.
func (p pin) differ(got []record.Column) []string {
	var bad []string
	for _, want := range p.Columns {
		i := slices.IndexFunc(got, func(c record.Column) bool { return c.Name == want.Name })
		switch {
		case i < 0:
			bad = append(bad, fmt.Sprintf("column %s of the first %d rows is missing, it is pinned", want.Name, p.Rows))
		case got[i].SHA256 != want.SHA256:
			bad = append(bad, fmt.Sprintf("column %s of the first %d rows has SHA-256 %s, pinned is %s", want.Name, p.Rows, got[i].SHA256, want.SHA256))
		}
	}
	for _, c := range got {
		if !slices.ContainsFunc(p.Columns, func(want record.Column) bool { return want.Name == c.Name }) {
			bad = append(bad, fmt.Sprintf("column %s of the first %d rows is not pinned", c.Name, p.Rows))
		}
	}
	return bad
}
