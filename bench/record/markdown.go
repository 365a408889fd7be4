package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DocsPath is the folder whose pages may show records, relative to the root of the repository.
const DocsPath = "docs"

// A page shows a record between these two lines; the first names its file, relative to the root, and after a colon, if it does
// not show all of it, what it shows: the rows, what is about radio, or studies by their names.
const (
	tableBegin = "<!-- record "
	tableEnd   = "<!-- end of record -->"
	rowsPart   = "rows"
	radioPart  = "radio"
)

// Markdown returns the rows of a record and its studies as tables, times of rows in ms. A historical import is called what it is
// in the line above the tables.
func Markdown(r *Record) string {
	var b strings.Builder
	writeHead(&b, r)
	writeRows(&b, r)
	for _, s := range r.shown() {
		writeStudy(&b, s)
	}
	return b.String()
}

// markdownOf is Markdown of some parts alone, in the order of the parts.
func markdownOf(r *Record, parts []string) (string, error) {
	var b strings.Builder
	writeHead(&b, r)
	for _, part := range parts {
		switch part {
		case rowsPart:
			writeRows(&b, r)
		case radioPart:
			if err := writeRadio(&b, r); err != nil {
				return "", err
			}
		default:
			s, err := r.study(part)
			if err != nil {
				return "", err
			}
			writeStudy(&b, s)
		}
	}
	return b.String(), nil
}

// study is the study of that name, if pages may show it.
func (r *Record) study(name string) (Study, error) {
	i := slices.IndexFunc(r.shown(), func(s Study) bool { return s.ID == name })
	if i < 0 {
		return Study{}, fmt.Errorf("%w: a page shows %q, which the record does not have", ErrEvidence, name)
	}
	return r.shown()[i], nil
}

// shown are the studies that pages may show.
func (r *Record) shown() []Study {
	if r.Provenance.Kind != Live {
		return nil
	}
	return r.Studies
}

// writeHead says what was measured when, and on what.
func writeHead(b *strings.Builder, r *Record) {
	if r.Provenance.Kind == Import {
		fmt.Fprintf(b, "Published on %s, transcribed; not a measurement of this software (%s).\n", r.Provenance.MeasuredAt, r.Software.Program)
	} else {
		fmt.Fprintf(b, "Measured on %s, revision %s.\n", r.Provenance.GeneratedAt, r.Software.Revision)
	}
	var names []string
	for _, d := range r.Machine.Devices {
		names = append(names, d.Name)
	}
	fmt.Fprintf(b, "Devices: %s.\n", strings.Join(names, ", "))
}

// set says how many devices work together.
func (r *Record) set() string {
	if n := len(r.Machine.Devices); n > 1 {
		return fmt.Sprintf("%d devices", n)
	}
	return "Several devices"
}

// writeRows adds the rows, and what was measured beside them on one device.
func writeRows(b *strings.Builder, r *Record) {
	fmt.Fprintf(b, "\n| Configuration | Operation | Mode | Batch | 1 device, ms | %s, ms | Speedup | Dispatch | Weights |\n", r.set())
	b.WriteString("|---|---|---|--:|--:|--:|--:|---|---|\n")
	for _, name := range r.ConfigNames() {
		for _, row := range r.Configs[name].Rows {
			several, speedup, weights := "--", "--", "--"
			if row.Multi != nil {
				several, speedup = milliseconds(row.Multi.MinNS), fmt.Sprintf("%.2f", *row.Speedup)
			}
			if row.Weights != nil {
				var list []string
				for _, w := range row.Weights {
					list = append(list, fmt.Sprintf("%.3f", w))
				}
				weights = strings.Join(list, ", ")
			}
			fmt.Fprintf(b, "| %s | %s | %s | %d %s | %s | %s | %s | %s | %s |\n", name, row.Operation, row.Mode,
				row.Batch.Count, row.Batch.Unit, milliseconds(row.Single.MinNS), several, speedup, row.Dispatch, weights)
		}
	}
	writeTracers(b, r)
	writeBackends(b, r)
}

// writeTracers adds what the run measured side by side on one device, as ratios to OptiX alone.
func writeTracers(b *strings.Builder, r *Record) {
	header := "\n| Configuration | On 1 device | ms | Times faster than OptiX alone |\n|---|---|--:|--:|\n"
	for _, name := range r.ConfigNames() {
		var bare int64
		for _, t := range r.Configs[name].Tracers {
			if t.Name == TracerBare {
				bare = t.Single.MinNS
			}
		}
		if bare == 0 {
			continue
		}
		b.WriteString(header)
		header = ""
		for _, t := range r.Configs[name].Tracers {
			if t.Operation != "" {
				continue // the next table
			}
			title := t.Name + ", 76-byte records"
			if t.Name == TracerBare {
				title = "OptiX alone: t, primitive, barycentrics"
			}
			fmt.Fprintf(b, "| %s | %s | %s | %.2f |\n", name, title, milliseconds(t.Single.MinNS), float64(bare)/float64(t.Single.MinNS))
		}
	}
}

// writeBackends adds the backends side by side on one device, for operations that OptiX alone does not answer.
func writeBackends(b *strings.Builder, r *Record) {
	header := "\n| Configuration | Operation | Backend on 1 device | ms |\n|---|---|---|--:|\n"
	for _, name := range r.ConfigNames() {
		for _, t := range r.Configs[name].Tracers {
			if t.Operation == "" {
				continue
			}
			fmt.Fprintf(b, "%s| %s | %s | %s | %s |\n", header, name, t.Operation, t.Name, milliseconds(t.Single.MinNS))
			header = ""
		}
	}
}

// writeStudy adds a study as a table.
func writeStudy(b *strings.Builder, s Study) {
	titles, rows := s.Text()
	fmt.Fprintf(b, "\n%s: %s.\n\n| %s |\n|%s\n", s.ID, s.Description, strings.Join(titles, " | "), strings.Repeat("---|", len(titles)))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

func milliseconds(ns int64) string { return fmt.Sprintf("%.2f", float64(ns)/1e6) }

// WriteTables regenerates the records shown in the documentation of the repository at root.
func WriteTables(root string) error {
	return eachPage(root, func(path, old, new string) error {
		if old == new {
			return nil
		}
		return WriteAtomic(path, []byte(new))
	})
}

// CheckTables compares the records shown in the documentation with the files that they name.
func CheckTables(root string) error {
	return eachPage(root, func(path, old, new string) error {
		if old == new {
			return nil
		}
		return fmt.Errorf("%w: %s shows a record that differs from its file; `go run ./bench manifest` writes it", ErrEvidence, filepath.Base(path))
	})
}

// eachPage calls f with every page that shows a record: its text, and what the text should be.
func eachPage(root string, f func(path, old, new string) error) error {
	pages, err := filepath.Glob(filepath.Join(root, DocsPath, "*.md"))
	if err != nil {
		return err
	}
	if readme := filepath.Join(root, "README.md"); exists(readme) {
		pages = append(pages, readme)
	}
	var all []error
	for _, path := range slices.Sorted(slices.Values(pages)) {
		text, err := ReadFile(path)
		if err != nil {
			return err
		}
		old := strings.ReplaceAll(string(text), "\r\n", "\n")
		if !strings.Contains(old, tableBegin) {
			continue
		}
		fresh, err := renderTables(root, old)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		all = append(all, f(path, old, fresh))
	}
	return errors.Join(all...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// renderTables returns a page with every shown record regenerated.
func renderTables(root, page string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(page, tableBegin)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		what, rest, ok := strings.Cut(rest, " -->\n")
		_, after, closed := strings.Cut(rest, tableEnd)
		if !ok || !closed {
			return "", fmt.Errorf("%w: a record begins and does not end with %q", ErrEvidence, tableEnd)
		}
		name, parts, some := strings.Cut(what, ": ")
		text, err := ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		r, err := Decode(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		tables := Markdown(r)
		if some {
			if tables, err = markdownOf(r, strings.Fields(parts)); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
		}
		b.WriteString(tableBegin + what + " -->\n" + tables + tableEnd)
		page = after
	}
}
