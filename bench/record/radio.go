package record

import (
	"fmt"
	"slices"
	"strings"
)

// radioStudy is the study of which a page may show the rows that planners of radio networks ask for first.
const radioStudy = "grids"

// radioRows are these rows, in the order of the page: their operation and configuration, and what the page calls the scene and
// the batch.
var radioRows = []struct{ operation, config, scene, unit string }{
	{"accumulate_reflections", "city, 4 bounces", "city, 4 bounces", "rays"},
	{"accum_dfr_coherent_direct", "boxes", "boxes", "wedges x cells"},
	{"accum_dfr_coherent_direct", "town", "town", "wedges x cells"},
	{"trace_dfr_paths", "boxes, source_lane", "boxes", "wedges x pairs"},
	{"trace_dfr_paths", "town, source_lane", "town", "wedges x pairs"},
	{"trace_refl_epc_field", "city, 3 bounces", "city, 3 bounces", "paths"},
}

// writeRadio adds some rows and columns of the study of grids and paths.
func writeRadio(b *strings.Builder, r *Record) error {
	s, err := r.study(radioStudy)
	if err != nil {
		return err
	}
	column := func(name string) int {
		return slices.IndexFunc(s.Columns, func(c StudyColumn) bool { return c.Name == name })
	}
	var shown []int
	for _, name := range []string{"lanes", "one_device", "divided", "speedup"} {
		shown = append(shown, column(name))
	}
	operation, config := column("operation"), column("config")
	if min(operation, config, slices.Min(shown)) < 0 {
		return fmt.Errorf("%w: the study %q misses a column that a page shows", ErrEvidence, radioStudy)
	}
	fmt.Fprintf(b, "\n| Operation | Scene | Batch | 1 device, ms | %s, ms | Speedup |\n|---|---|--:|--:|--:|--:|\n", r.set())
	for _, want := range radioRows {
		i := slices.IndexFunc(s.Rows, func(row []any) bool { return row[operation] == want.operation && row[config] == want.config })
		if i < 0 {
			return fmt.Errorf("%w: the study %q misses %s of %q, which a page shows", ErrEvidence, radioStudy, want.operation, want.config)
		}
		var cells []string
		for k, c := range shown {
			v, ok := s.Rows[i][c].(float64)
			switch {
			case !ok:
				cells = append(cells, "--")
			case k == 0:
				cells = append(cells, fmt.Sprintf("%.0f %s", v, want.unit))
			default:
				cells = append(cells, fmt.Sprintf("%.2f", v))
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", want.operation, want.scene, strings.Join(cells, " | "))
	}
	return nil
}
