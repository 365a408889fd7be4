package main

import (
	"fmt"
	"strings"

	"github.com/raymux/raymux/bench/record"
)

// tableFormat has one column per value; times are in ms.
const tableFormat = "%-13s %-17s %-10s %9s %12s %12s %8s  %-8s %6s  %s\n"

const absent = "--"

func (r *run) printHeader() {
	one, many := "1 GPU ms", "%d GPUs ms"
	if r.host.driver.Emulated() {
		one, many = "1 emu. ms", "%d emu. ms"
	}
	several := absent
	if n := len(r.host.devices); n > 1 {
		several = fmt.Sprintf(many, n)
	}
	fmt.Fprintf(r.out, tableFormat, "Configuration", "Operation", "Mode", "Batch", one, several, "speedup", "dispatch", "chunks", "weights")
}

// report prints the rows of an operation, the agreement of the set with one device, and the digests of the columns.
func (s *task) report(rows []record.Row, c checked) {
	for _, row := range rows {
		fmt.Fprint(s.out, tableLine(s.config.Name, row))
	}
	for _, row := range rows {
		if a := row.Agreement; a != nil {
			fmt.Fprintf(s.out, "agreement, %s %s %s: %s (%d of %d values differ)\n",
				s.config.Name, row.Operation, row.Mode, agreementText(*a.Fraction), *a.Mismatches, *a.Elements)
		}
	}
	for _, row := range rows {
		if row.Overlap != nil {
			fmt.Fprint(s.out, overlapLine(s.config.Name, row))
		}
	}
	for _, row := range rows {
		if row.Calibration != nil {
			fmt.Fprint(s.out, calibrationLine(s.config.Name, row))
		}
	}
	if s.again {
		return
	}
	if c.bounces != nil {
		fmt.Fprintf(s.out, "bounces, %s: %s of %d rows have a first, second and so on\n", s.where, strings.Trim(fmt.Sprint(c.bounces), "[]"), s.rowCount())
	}
	s.printDigests(s.rowCount(), c.digests.all)
	if c.digests.prefix != nil {
		s.printDigests(prefixRows[s.config.Name], c.digests.prefix)
	}
}

// agreementText never rounds a disagreement up to 1.
func agreementText(fraction float64) string {
	if fraction == 1 {
		return "1.0"
	}
	return fmt.Sprintf("%.17g", fraction)
}

func tableLine(config string, row record.Row) string {
	several, speedup, chunks, weights := absent, absent, absent, absent
	if row.Multi != nil {
		several = milliseconds(row.Multi.MinNS)
		speedup = fmt.Sprintf("%.2fx", *row.Speedup)
	}
	if row.Plan != nil {
		chunks = fmt.Sprint(row.Plan.ChunkCount)
	}
	if row.Weights != nil {
		var list []string
		for _, w := range row.Weights {
			list = append(list, fmt.Sprintf("%.3f", w))
		}
		weights = strings.Join(list, ", ")
	}
	return fmt.Sprintf(tableFormat, config, row.Operation, row.Mode, fmt.Sprint(row.Batch.Count),
		milliseconds(row.Single.MinNS), several, speedup, row.Dispatch, chunks, weights)
}

func milliseconds(ns int64) string { return fmt.Sprintf("%.2f", float64(ns)/1e6) }

// printDigests prints the SHA-256 of every column and whether it is pinned.
func (s *task) printDigests(rows int64, columns []record.Column) {
	fmt.Fprintf(s.out, "SHA-256, %s, first %d rows, ", s.where, rows)
	s.printColumns(pin{Config: s.config.Name, Operation: s.op.name, Rows: rows}, columns, s.canonical())
}

// printColumns ends a line with whether columns are pinned, and prints them.
func (r *run) printColumns(of pin, columns []record.Column, canonical bool) {
	state := "not pinned"
	if p, ok := r.pins.find(of); ok && canonical {
		state = "as pinned"
		if len(p.differ(columns)) > 0 {
			state = "NOT as pinned"
		}
	}
	fmt.Fprintf(r.out, "%s:\n", state)
	for _, c := range columns {
		fmt.Fprintf(r.out, "  %-15s %s\n", c.Name, c.SHA256)
	}
}

// printLinks prints the copy rates between devices; GB/s means 1e9 bytes per second.
func (r *run) printLinks() {
	for _, l := range r.record.Machine.Links {
		arrow, note := "->", ""
		if l.Direction == record.BothWays {
			arrow = "<->"
		}
		if l.PeerAccess != nil && !*l.PeerAccess {
			note = " (no peer access, staged by the driver)"
		}
		fmt.Fprintf(r.out, "link %d %s %d: %s GB/s%s\n", l.Source, arrow, l.Destination, gigabytes(l.BytesPerSecond), note)
	}
}

func gigabytes(bytesPerSecond float64) string { return fmt.Sprintf("%.1f", bytesPerSecond/1e9) }
