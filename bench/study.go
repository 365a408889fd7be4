package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/scene"
)

// Names of the studies, in the order in which they run.
const (
	studyBatches  = "batches"
	studyGeometry = "geometry"
	studyBuilds   = "builds"
	studyDispatch = "dispatch"
	studyScaling  = "scaling"
	studyGrids    = "grids"
)

var allStudies = []string{studyBatches, studyGeometry, studyBuilds, studyDispatch, studyScaling, studyGrids}

// studyList is the value of --study.
type studyList []string

// String is part of flag.Value.
func (l *studyList) String() string { return strings.Join(*l, ",") }

// Set is part of flag.Value.
func (l *studyList) Set(s string) error {
	*l = nil
	if s == "all" {
		*l = slices.Clone(allStudies)
		return nil
	}
	for name := range strings.SplitSeq(s, ",") {
		if !slices.Contains(allStudies, name) {
			return fmt.Errorf("%q is not a study: give some of %s, or all", name, strings.Join(allStudies, ", "))
		}
		if slices.Contains(*l, name) {
			return fmt.Errorf("study %s occurs twice", name)
		}
		*l = append(*l, name)
	}
	return nil
}

// extent is the size of the studies' scenes and batches.
type extent struct {
	lots, cloud int
	halfEdge    float32 // of the cloud's triangles
	cells       int
	camera      int // side of the picture
	batches     []int
	configs     []string // whose batches are cut
}

// extentOn is what fits the devices: an emulated one is a thousand times slower.
func extentOn(emulated bool) extent {
	if emulated {
		return extent{
			lots: 2, cloud: 2048, halfEdge: 0.16, cells: 16, camera: 32,
			batches: []int{64, 128, 256}, configs: []string{workload.Mini},
		}
	}
	e := extent{
		lots: workload.CityLots, cloud: 1 << 21, halfEdge: 0.005, cells: 191, camera: 1 << 11,
		configs: []string{workload.Light, workload.Compute},
	}
	for n := 1 << 14; n <= 1<<24; n *= 2 {
		e.batches = append(e.batches, n)
	}
	return e
}

// study runs one study and adds its tables to the record.
func (r *run) study(name string) error {
	start := time.Now()
	var tables []record.Study
	var err error
	switch name {
	case studyGeometry:
		tables, err = r.geometryStudy()
	case studyBatches:
		tables, err = r.batchStudy()
	case studyBuilds:
		tables, err = r.buildStudy()
	case studyDispatch:
		tables, err = r.dispatchStudy()
	case studyScaling:
		tables, err = r.scalingStudy()
	case studyGrids:
		tables, err = r.gridStudy()
	}
	if err != nil {
		return fmt.Errorf("study %s: %w", name, err)
	}
	for _, t := range tables {
		if err := printStudy(r.out, t); err != nil {
			return err
		}
	}
	r.record.Studies = append(r.record.Studies, tables...)
	fmt.Fprintf(r.warnings, "study %s: finished in %.1f s\n", name, time.Since(start).Seconds())
	return nil
}

// printStudy prints a table in columns.
func printStudy(out io.Writer, s record.Study) error {
	fmt.Fprintf(out, "study %s: %s\n", s.ID, s.Description)
	titles, rows := s.Text()
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, line := range append([][]string{titles}, rows...) {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}

// ifDivided is text about divided calls, without them nothing.
func (r *run) ifDivided(format string, args ...any) string {
	if len(r.host.devices) < 2 {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// columns makes the columns of a study of "name unit" pairs.
func columns(pairs ...string) []record.StudyColumn {
	var list []record.StudyColumn
	for pair := range slices.Chunk(pairs, 2) {
		list = append(list, record.StudyColumn{Name: pair[0], Unit: pair[1]})
	}
	return list
}

// unavailable reports whether an error says that there is no OptiX here.
func unavailable(err error) bool { return errors.Is(err, scene.ErrBackendUnavailable) }
