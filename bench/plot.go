package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/raymux/raymux/bench/record"
)

// plotCommand draws the study scaling of a record.
func plotCommand(args []string, stdout io.Writer) error {
	if len(args) != 1 {
		return usage("plot takes one argument, a record that has the study %s", studyScaling)
	}
	text, err := record.ReadFile(args[0])
	if err != nil {
		return err
	}
	r, err := record.Decode(text)
	if err != nil {
		return &statusError{exitRecord, fmt.Errorf("%s: %w", args[0], err)}
	}
	lines, err := curves(r)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	title := fmt.Sprintf("Speed-up of %d devices over one", r.Machine.DeviceCount)
	if r.Parameters.Emulated != nil && *r.Parameters.Emulated {
		title += " (emulated: not a performance measurement)"
	} else {
		title += ", " + r.Machine.Devices[0].Name
	}
	_, err = io.WriteString(stdout, drawCurves(title, lines))
	return err
}

// curve is the speed-up of one operation on one configuration by batch size.
type curve struct {
	name                  string
	rows, measured, model []float64
}

// curves are those of the record's study, in its order.
func curves(r *record.Record) ([]curve, error) {
	at := slices.IndexFunc(r.Studies, func(s record.Study) bool { return s.ID == studyScaling })
	if at < 0 {
		return nil, fmt.Errorf("the record has no study %s: make one by --study %s on several devices", studyScaling, studyScaling)
	}
	s := r.Studies[at]
	cell := func(row []any, name string) any {
		i := slices.IndexFunc(s.Columns, func(c record.StudyColumn) bool { return c.Name == name })
		if i < 0 {
			return nil
		}
		return row[i]
	}
	var list []curve
	for _, row := range s.Rows {
		name := fmt.Sprintf("%v %v", cell(row, "config"), cell(row, "operation"))
		if len(list) == 0 || list[len(list)-1].name != name {
			list = append(list, curve{name: name})
		}
		c := &list[len(list)-1]
		for _, v := range []struct {
			to   *[]float64
			from string
		}{{&c.rows, "rows"}, {&c.measured, "speedup"}, {&c.model, "model"}} {
			x, ok := cell(row, v.from).(float64)
			if !ok || x <= 0 {
				return nil, errors.New("the study has a row without a positive " + v.from)
			}
			*v.to = append(*v.to, x)
		}
	}
	return list, nil
}

// palette distinguishes curves, also to readers who do not see all colours alike.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// Size of the drawing and of what is left around the curves.
const (
	plotWidth, plotHeight = 760, 420
	plotLeft, plotTop     = 60, 40
	plotInnerWidth        = plotWidth - plotLeft - 20
	plotInnerHeight       = plotHeight - plotTop - 110
)
