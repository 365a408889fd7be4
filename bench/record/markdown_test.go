package record

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The records in the committed documentation are those of the committed files.
func TestCommittedTables(t *testing.T) { require.NoError(t, CheckTables(root)) }

func TestMarkdownOfImport(t *testing.T) {
	r, err := Decode(historical(t))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(Markdown(r)), "\n")
	require.Equal(t, "Published on 2026-07-27, transcribed; not a measurement of this software (reference system, Torch backend).", lines[0])
	require.Equal(t, "Devices: NVIDIA RTX A6000, NVIDIA RTX A6000.", lines[1])
	require.Len(t, lines, 3+2+12)
	require.Equal(t, "| light | intersect | policy | 4194304 rays | 1.27 | 4.63 | 0.27 | pipelined | -- |", lines[5])
	require.Equal(t, "| compute | intersect | calibrated | 4194304 rays | 19.08 | 11.83 | 1.61 | pipelined | 1.002, 0.998 |", lines[13])
}

func TestMarkdownOfLiveRecord(t *testing.T) {
	r := liveRecord()
	require.Contains(t, Markdown(r), "Measured on 2026-11-29T12:00:00Z, revision abc.\nDevices: A, A.\n")
	require.NotContains(t, Markdown(r), "transcribed")
}

func TestMarkdownOfTracers(t *testing.T) {
	r := liveRecord()
	for name, c := range r.Configs {
		c.Tracers = []Tracer{{Name: "cuda", Single: Timing{MinNS: 2_000_000}}, {Name: TracerBare, Single: Timing{MinNS: 9_000_000}}}
		r.Configs[name] = c
		require.Contains(t, Markdown(r), "| "+name+" | cuda, 76-byte records | 2.00 | 4.50 |\n")
		require.Contains(t, Markdown(r), "| "+name+" | OptiX alone: t, primitive, barycentrics | 9.00 | 1.00 |\n")
	}
}

func TestMarkdownOfBackends(t *testing.T) {
	r := liveRecord()
	for name, c := range r.Configs {
		c.Tracers = []Tracer{
			{Operation: OperationReflections, Name: "cuda", Single: Timing{MinNS: 2_000_000}},
			{Operation: OperationReflections, Name: "optix", Single: Timing{MinNS: 9_000_000}},
		}
		r.Configs[name] = c
		require.Contains(t, Markdown(r), "|--:|\n| "+name+" | trace_reflections | cuda | 2.00 |\n| "+name+" | trace_reflections | optix | 9.00 |\n")
		require.NotContains(t, Markdown(r), "OptiX alone")
	}
}

func TestMarkdownOfStudies(t *testing.T) {
	r := liveRecord()
	r.Studies = []Study{{
		ID: "a", SourceSection: "s", Description: "what it is",
		Columns: []StudyColumn{{"scene", "-"}, {"time", "ms"}, {"x_sha256", "-"}},
		Rows:    [][]any{{"city", 0.123456, "ff"}, {"grid", nil, "ee"}, {"count", 1158500.0, ""}},
	}}
	require.Contains(t, Markdown(r), "\na: what it is.\n\n| scene | time, ms |\n|---|---|\n| city | 0.1235 |\n| grid | -- |\n| count | 1158500 |\n")
}

// A column without a value is not shown: times of several devices, say, of a record of one.
func TestMarkdownLeavesOutEmptyColumns(t *testing.T) {
	r := liveRecord()
	r.Studies = []Study{{
		ID: "a", Description: "it", Columns: []StudyColumn{{"one", "ms"}, {"two", "ms"}, {"some", "-"}},
		Rows: [][]any{{1.0, nil, nil}, {2.0, nil, 3.0}},
	}}
	require.Contains(t, Markdown(r), "\na: it.\n\n| one, ms | some |\n|---|---|\n| 1 | -- |\n| 2 | 3 |\n")
}

// Rows about radio are found by what they are, not by where they stand, and with fewer columns.
func TestMarkdownOfRadio(t *testing.T) {
	r := liveRecord()
	study := Study{ID: radioStudy, Description: "it", Columns: []StudyColumn{{"speedup", "-"}, {"operation", "-"}, {"other", "-"},
		{"config", "-"}, {"lanes", "-"}, {"divided", "ms"}, {"one_device", "ms"}}}
	for _, row := range radioRows {
		study.Rows = append(study.Rows, []any{1.5, row.operation, "x", row.config, 67891200.0, 2.004, 3.006})
	}
	study.Rows[2][0], study.Rows[2][5] = nil, nil // measured on one device
	study.Rows = append(study.Rows, []any{9.0, "accum_dfr_direct", "x", "town", 1.0, 9.0, 9.0})
	slices.Reverse(study.Rows)
	r.Studies = []Study{study}
	text, err := markdownOf(r, []string{radioPart})
	require.NoError(t, err)
	_, table, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	require.Len(t, lines, 2+len(radioRows))
	require.Equal(t, "| Operation | Scene | Batch | 1 device, ms | 2 devices, ms | Speedup |", lines[0])
	require.Equal(t, "| accumulate_reflections | city, 4 bounces | 67891200 rays | 3.01 | 2.00 | 1.50 |", lines[2])
	require.Equal(t, "| accum_dfr_coherent_direct | town | 67891200 wedges x cells | 3.01 | -- | -- |", lines[4])

	r.Studies[0].Rows = study.Rows[1:]
	_, err = markdownOf(r, []string{radioPart})
	require.NoError(t, err, "a row that is not shown may go")
	r.Studies[0].Rows = study.Rows[2:]
	_, err = markdownOf(r, []string{radioPart})
	require.ErrorIs(t, err, ErrEvidence)
	require.ErrorContains(t, err, radioRows[len(radioRows)-1].operation)
	r.Studies[0].Columns[0].Name = "gone"
	_, err = markdownOf(r, []string{radioPart})
	require.ErrorContains(t, err, "misses a column")
	r.Studies = nil
	_, err = markdownOf(r, []string{radioPart})
	require.ErrorContains(t, err, `"grids"`)
}

// A page may show some parts of a record, which has to have them.
func TestMarkdownOfParts(t *testing.T) {
	r := liveRecord()
	for _, id := range []string{"a", "b", "c"} {
		r.Studies = append(r.Studies, Study{ID: id, Description: "it", Columns: []StudyColumn{{"x", "-"}}, Rows: [][]any{{id + " has it"}}})
	}
	text, err := markdownOf(r, []string{"c", "a"})
	require.NoError(t, err)
	head, _, _ := strings.Cut(Markdown(r), "\n| Configuration")
	require.Equal(t, head+"\nc: it.\n\n| x |\n|---|\n| c has it |\n\na: it.\n\n| x |\n|---|\n| a has it |\n", text)
	text, err = markdownOf(r, []string{"rows", "a", "b", "c"})
	require.NoError(t, err)
	require.Equal(t, Markdown(r), text)
	_, err = markdownOf(r, []string{"rows", "d"})
	require.ErrorIs(t, err, ErrEvidence)
	require.ErrorContains(t, err, `"d"`)

	dir := repository(t)
	page := filepath.Join(dir, DocsPath, "page.md")
	const part = tableBegin + EvidencePath + "/historical_20260727.json: rows -->\n"
	require.NoError(t, WriteAtomic(page, []byte(part+tableEnd+"\n")))
	require.NoError(t, WriteTables(dir))
	require.NoError(t, CheckTables(dir))
	written, err := os.ReadFile(page)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(written), part+"Published on"))
}

func TestTables(t *testing.T) {
	dir := repository(t)
	page := filepath.Join(dir, DocsPath, "page.md")
	const name = EvidencePath + "/historical_20260727.json"
	write := func(text string) { require.NoError(t, WriteAtomic(page, []byte(text))) }

	write("# Page\n\n" + tableBegin + name + " -->\n" + tableEnd + "\n\nEnd.\n")
	require.ErrorIs(t, CheckTables(dir), ErrEvidence)
	require.ErrorContains(t, CheckTables(dir), "page.md")
	require.NoError(t, WriteTables(dir))
	require.NoError(t, CheckTables(dir))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "# Page\n\n"+tableBegin+name+" -->\nPublished on"))
	require.True(t, strings.HasSuffix(string(text), "|\n"+tableEnd+"\n\nEnd.\n"))

	write(strings.Replace(string(text), "| 4.63 |", "| 4.36 |", 1))
	require.ErrorIs(t, CheckTables(dir), ErrEvidence, "an edited number is found")

	write(strings.ReplaceAll(string(text), "\n", "\r\n"))
	require.NoError(t, CheckTables(dir), "line ends do not matter")

	write(strings.Replace(string(text), tableEnd, "", 1))
	require.ErrorContains(t, CheckTables(dir), "does not end")

	require.NoError(t, os.Remove(page))
	page = filepath.Join(dir, "README.md")
	write(tableBegin + name + " -->\n" + tableEnd + "\n")
	require.ErrorContains(t, CheckTables(dir), "README.md")
	require.NoError(t, WriteTables(dir))
	require.NoError(t, CheckTables(dir))

	write(tableBegin + EvidencePath + "/missing.json -->\n" + tableEnd + "\n")
	require.ErrorIs(t, CheckTables(dir), os.ErrNotExist)
}
