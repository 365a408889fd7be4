package record

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Text returns a study as it is shown: the titles of its columns with their units, and the cells of its rows, numbers to
// four digits. Columns of digests are left out, they are for comparisons between records, and so are those in which no row has
// a value, as of several devices where there is one.
func (s Study) Text() (titles []string, rows [][]string) {
	rows = make([][]string, len(s.Rows))
	for i, c := range s.Columns {
		empty := len(s.Rows) > 0 && !slices.ContainsFunc(s.Rows, func(row []any) bool { return row[i] != nil })
		if empty || strings.HasSuffix(c.Name, "_sha256") {
			continue
		}
		title := c.Name
		if c.Unit != "-" {
			title += ", " + c.Unit
		}
		titles = append(titles, title)
		for k, row := range s.Rows {
			rows[k] = append(rows[k], cellText(row[i]))
		}
	}
	return titles, rows
}

func cellText(cell any) string {
	switch v := cell.(type) {
	case nil:
		return "--"
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return fmt.Sprintf("%.0f", v)
		}
		return fmt.Sprintf("%.4g", v)
	}
	return fmt.Sprint(cell)
}

// AddStudy adds a table, or the rows of a table that the record has begun.
func (r *Record) AddStudy(s Study) {
	for i := range r.Studies {
		if r.Studies[i].ID == s.ID {
			r.Studies[i].Rows = append(r.Studies[i].Rows, s.Rows...)
			return
		}
	}
	r.Studies = append(r.Studies, s)
}
