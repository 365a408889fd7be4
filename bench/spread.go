package main

import (
	"fmt"

	"github.com/raymux/raymux/bench/record"
)

// repeatable is a set of rows whose times can be taken again.
type repeatable interface {
	remeasure() ([]record.Row, error)
}

// spreadLimit is the smallest speed-up that a row may have in any run where the library itself decides how it runs: below
// it, the set loses time and the caller was not told.
const spreadLimit = 0.97

// speedups are those of one row in every run.
type speedups struct {
	operation string
	mode      record.Mode
	values    []float64
	onMaster  int // runs in which the master answered alone
}

// spread repeats the rows of the set and reports how much their speed-ups vary.
func (s *trial) spread() error {
	if s.runs < 2 || len(s.host.devices) == 1 {
		return nil
	}
	list := make([]speedups, len(s.described.Rows))
	for i, row := range s.described.Rows {
		list[i] = speedups{operation: row.Operation, mode: row.Mode}
		list[i].add(row)
	}
	for n := 1; n < s.runs; n++ {
		at := 0
		for _, r := range s.repeated {
			rows, err := r.remeasure()
			if err != nil {
				return fmt.Errorf("run %d of %d: %w", n+1, s.runs, err)
			}
			for _, row := range rows {
				list[at].add(row)
				at++
			}
		}
	}
	s.reportSpread(list)
	return nil
}

func (l *speedups) add(row record.Row) {
	l.values = append(l.values, *row.Speedup)
	if row.Dispatch == "master" {
		l.onMaster++
	}
}

// reportSpread prints and records the spread, and fails rows that lose.
func (s *trial) reportSpread(list []speedups) {
	table := record.Study{
		ID: "spread", SourceSection: "bench --runs",
		Description: "speed-ups of the rows in consecutive runs of one process, each of interleaved rounds, with a new calibration in every run; on_master counts the runs in which the master answered alone",
		Columns:     columns("config", "-", "operation", "-", "mode", "-", "runs", "-", "on_master", "-", "min", "-", "median", "-", "max", "-"),
	}
	judged := !s.host.driver.Emulated()
	for _, l := range list {
		low, median, high := record.SummaryOf(l.values)
		table.Rows = append(table.Rows, []any{s.config.Name, l.operation, string(l.mode), float64(len(l.values)), float64(l.onMaster), low, median, high})
		fmt.Fprintf(s.out, "spread, %s %s %s: %.3f / %.3f / %.3f over %d runs, %d of them on the master\n",
			s.config.Name, l.operation, l.mode, low, median, high, len(l.values), l.onMaster)
		if judged && l.loses() {
			s.fail(s.config.Name+" "+l.operation, "mode %s: speed-up %.3f in one of %d runs, at least %.2f is expected in each", l.mode, low, len(l.values), spreadLimit)
		}
	}
	if !judged {
		fmt.Fprintf(s.out, "spread, %s: speed-ups of emulated devices are not judged\n", s.config.Name)
	}
	s.record.AddStudy(table)
}

// loses reports whether a row that the library decided about was slower than one device in some run.
func (l *speedups) loses() bool {
	low, _, _ := record.SummaryOf(l.values)
	return low < spreadLimit && (l.mode == record.Policy || l.mode == record.Calibrated)
}
