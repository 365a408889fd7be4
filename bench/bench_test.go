package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

// quick keeps runs on emulated devices short.
var quick = []string{"--rays", "96", "--warmup", "0", "--repeat", "1", "--calibration-rows", "16", "--calibration-repeats", "1"}

// benchmark runs a command line and returns its record, which is nil when none was written.
func benchmark(t *testing.T, status int, args ...string) (out, warnings string, r *record.Record) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new", "record.json")
	var stdout, stderr bytes.Buffer
	require.Equal(t, status, command(append(append(args, quick...), "--json", path), &stdout, &stderr), "%s\n%s", &stdout, &stderr)
	text, err := os.ReadFile(path)
	if err == nil {
		r, err = record.Decode(text)
		require.NoError(t, err)
		for _, c := range r.Configs {
			for _, row := range c.Rows {
				require.Equal(t, 1, row.Rounds, "calls of emulated devices are not repeated: %s %s", row.Operation, row.Mode)
			}
		}
	}
	return stdout.String(), stderr.String(), r
}

func TestTwoEmulatedDevices(t *testing.T) {
	out, _, r := benchmark(t, exitDone, "--devices", "emu:2")
	first, _, _ := strings.Cut(out, "\n")
	require.Contains(t, first, "2 emulated devices")
	require.Contains(t, first, "not a performance measurement")
	require.Contains(t, out, "agreement, mini intersect forced: 1.0 (0 of 1824 values differ)")        // 96 rows of 19 words
	require.Contains(t, out, "agreement, mini trace_reflections forced: 1.0 (0 of 576 values differ)") // two slots of three
	require.Contains(t, out, "all checks passed")

	require.True(t, r.Checks.Passed)
	require.True(t, *r.Parameters.Emulated)
	require.Equal(t, 2, r.Machine.DeviceCount)
	require.Empty(t, r.Machine.Links)
	rows := r.Configs["mini"].Rows
	require.Len(t, rows, 9)
	forced, policy := rows[0], rows[1]
	require.Equal(t, record.Forced, forced.Mode)
	require.Equal(t, "cuda", forced.Backend)
	require.Equal(t, "direct", forced.Dispatch)
	require.Equal(t, []record.DevicePlan{{Device: 0, Rows: 48, Chunks: 1, ChunkRows: 48}, {Device: 1, Rows: 48, Chunks: 1, ChunkRows: 48}}, forced.Plan.PerDevice)
	require.Equal(t, 1.0, *forced.Agreement.Fraction)
	require.Equal(t, int64(96*19), *forced.Agreement.Elements)
	require.Len(t, forced.Columns, 10)
	require.Positive(t, *forced.Hits)
	require.Equal(t, record.Policy, policy.Mode)
	require.Equal(t, "master", policy.Dispatch, "96 rows are below the floor")
	require.Equal(t, forced.Columns, policy.Columns)

	chains := rows[2]
	require.Equal(t, record.OperationReflections, chains.Operation)
	require.Equal(t, record.Forced, chains.Mode)
	require.Equal(t, "direct", chains.Dispatch)
	require.Equal(t, forced.Hits, chains.Hits, "the first bounces are the closest hits")
	require.Equal(t, [3]int{24, 8, 18}, [3]int{*chains.RowBytes.WireIn, *chains.RowBytes.WireOut, chains.RowBytes.DeclaredOut})
	require.Len(t, chains.Columns, 3)
	require.Equal(t, "master", rows[3].Dispatch)
}

func TestCopyTransportAndSeveralDevices(t *testing.T) {
	_, _, direct := benchmark(t, exitDone, "--devices", "emu:2")
	_, _, copied := benchmark(t, exitDone, "--devices", "emu:3", "--transport", "copy")
	forced := copied.Configs["mini"].Rows[0]
	require.Equal(t, "pipelined", forced.Dispatch)
	require.Equal(t, "copy", forced.Transport)
	require.Equal(t, 9, forced.Plan.ChunkCount, "the master's, and four of either remote")
	require.Equal(t, direct.Configs["mini"].Rows[0].Columns, forced.Columns, "neither the transport nor the number of devices changes a bit")
}

func TestOneEmulatedDevice(t *testing.T) {
	out, _, r := benchmark(t, exitDone, "--devices", "emu:1")
	require.Contains(t, out, "1 emulated device of")
	require.Contains(t, out, "1 emu. ms", "times have a unit")
	rows := r.Configs["mini"].Rows
	require.Len(t, rows, 3)
	require.Nil(t, rows[1].Multi)
	require.Nil(t, rows[0].Multi)
	require.Equal(t, []string{record.FlagSingleDeviceOnly}, rows[0].Flags)
	require.Equal(t, "single", rows[0].Dispatch)
}

// Without options and without a GPU the run is emulated, and its first line says what was tried.
func TestFallback(t *testing.T) {
	noDriver(t)
	out, warnings, r := benchmark(t, exitDone)
	first, _, _ := strings.Cut(out, "\n")
	library := os.Getenv("RAYMUX_LIBCUDA")
	require.Regexp(t, `^No GPU found \(cuda: no NVIDIA driver found: `+regexp.QuoteMeta(library)+`: .*\), so running on 2 emulated devices .* not a performance measurement`, first)
	require.Contains(t, warnings, "hint: ", "what to do is on standard error")
	require.NotContains(t, warnings, library, "the reason is given once")
	require.True(t, *r.Parameters.Emulated)
}

// A row of another configuration on emulated devices: light is cheap to build.
func TestLightPrefixOnEmulatedDevices(t *testing.T) {
	_, _, r := benchmark(t, exitDone, "--devices", "emu:2", "--config", "light")
	require.Equal(t, int64(72962), r.Configs["light"].Geometry.Triangles)
}

func setPins(t *testing.T, f pinFile) {
	t.Helper()
	old := committedPins
	t.Cleanup(func() { committedPins = old })
	text, err := json.Marshal(f)
	require.NoError(t, err)
	committedPins = text
}

func TestPins(t *testing.T) {
	setPins(t, pinFile{Pins: []pin{}})
	path := filepath.Join(t.TempDir(), "pins.json")
	out, _, first := benchmark(t, exitDone, "--devices", "emu:1", "--pin", path)
	require.Contains(t, out, "first 96 rows, not pinned")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := readPins(text)
	require.NoError(t, err)
	rows := first.Configs["mini"].Rows
	sums := slices.IndexFunc(rows, func(r record.Row) bool { return r.Operation == "accum_dfr_direct" })
	require.Positive(t, sums)
	require.Equal(t, []pin{
		{"mini", "accum_dfr_direct", 1024, rows[sums].Columns},
		{"mini", "intersect", 96, rows[0].Columns}, {"mini", "trace_reflections", 96, rows[1].Columns},
	}, f.Pins)

	setPins(t, f)
	out, _, _ = benchmark(t, exitDone, "--devices", "emu:2")
	require.Contains(t, out, "first 96 rows, as pinned")

	// One wrong digest: the run fails, says where, records it, and writes no pins.
	f.Pins[1].Columns[3].SHA256 = strings.Repeat("0", 64)
	setPins(t, f)
	unwritten := filepath.Join(t.TempDir(), "pins.json")
	out, _, r := benchmark(t, exitFailed, "--devices", "emu:2", "--pin", unwritten)
	require.Contains(t, out, "first 96 rows, NOT as pinned")
	require.Contains(t, out, "FAILED: mini intersect: column geo_n of the first 96 rows has SHA-256")
	require.False(t, r.Checks.Passed)
	require.Len(t, r.Checks.Failures, 1)
	require.NoFileExists(t, unwritten)
}

func TestBackendRefused(t *testing.T) {
	out, warnings, r := benchmark(t, exitFailed, "--devices", "emu:1", "--backend", "optix")
	require.Contains(t, warnings, "OptiX")
	require.Contains(t, out, "FAILED")
	require.Nil(t, r, "no row was measured, so there is no record")
}

func TestRecordOnStandardOutput(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitDone, command(append([]string{"--devices", "emu:1", "--json", "-"}, quick...), &stdout, &stderr))
	_, err := record.Decode(stdout.Bytes())
	require.NoError(t, err)
	require.Contains(t, stderr.String(), "all checks passed")
}

// What cannot be written is refused before anything is measured, and files that can be stay as they are until then.
func TestNotWritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
	for _, option := range []string{"--json", "--pin"} {
		for _, path := range []string{filepath.Join(file, "record.json"), dir} {
			var stdout, stderr bytes.Buffer
			args := append([]string{"--devices", "emu:1", "--json", file, option, path}, quick...)
			require.Equal(t, exitRecord, command(args, &stdout, &stderr))
			require.Contains(t, stderr.String(), option)
			require.Empty(t, stdout.String())
		}
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
}

// What a device set could get wrong, one at a time.
func TestJudge(t *testing.T) {
	split := chunked.Plan{Rows: 4, Shards: []chunked.Range{{Begin: 0, End: 2}, {Begin: 2, End: 4}}}
	alone := chunked.Plan{Rows: 4, Shards: []chunked.Range{{Begin: 0, End: 4}, {}}, Reason: "floor"}
	config, err := workload.Find(workload.Mini)
	require.NoError(t, err)
	known := answers{t: []float32{1, 1, 1, 1}}
	for _, c := range []struct {
		name  string
		sides []side
		found checked
		want  []string
	}{
		{"all well", []side{{mode: record.Forced, plan: split}, {mode: record.Policy, plan: alone}},
			checked{rowBytes: 76, wireBytes: 4, elements: 76, differ: []int64{0, 0, 0}}, nil},
		{"the second set differs", []side{{mode: record.Forced, plan: split}, {mode: record.Policy, plan: split}},
			checked{rowBytes: 76, wireBytes: 4, elements: 76, differ: []int64{0, 0, 3}},
			[]string{"mini intersect: mode policy: 3 of 76 values differ from the one-device result"}},
		{"a reused side has no result of its own", []side{{mode: record.Forced, plan: split}, {mode: record.Policy, plan: split, reused: true}},
			checked{rowBytes: 76, wireBytes: 4, elements: 76, differ: []int64{0, 1}},
			[]string{"mini intersect: mode forced: 1 of 76 values differ from the one-device result"}},
		{"forced on the master", []side{{mode: record.Forced, plan: alone}}, checked{rowBytes: 76, wireBytes: 4, differ: []int64{0, 0}},
			[]string{"mini intersect: the forced call did not use every device: floor"}},
		{"wire size", nil, checked{rowBytes: 76, wireBytes: 76, differ: []int64{0}}, []string{"mini intersect: a remote row sends 76 bytes back, declared are 4"}},
		{"row size", nil, checked{rowBytes: 75, wireBytes: 4, differ: []int64{0}}, []string{"mini intersect: a row has 75 record bytes, declared are 76"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &task{trial: &trial{run: &run{}, config: config}, op: intersect(), where: "mini intersect", sides: c.sides}
			s.judge(c.found, known)
			require.Equal(t, c.want, s.failures)
		})
	}
}

func TestWorkloadMismatchFails(t *testing.T) {
	config, err := workload.Find(workload.Mini)
	require.NoError(t, err)
	s := &trial{run: &run{}, config: config}
	s.generate()
	require.Empty(t, s.failures)
	s.config.Digests.Faces = strings.Repeat("0", 64)
	s.generate()
	require.Len(t, s.failures, 1)
	require.Contains(t, s.failures[0], "the workload is not the pinned one")

	s = &trial{run: &run{options: options{rays: 100}}, config: config}
	s.generate()
	require.Empty(t, s.failures, "another batch size has other ray digests")
	require.Equal(t, int64(100), s.rowCount())
}

func TestUsesEveryDevice(t *testing.T) {
	for _, c := range []struct {
		rows   int64
		shards []chunked.Range
		want   bool
	}{
		{4, []chunked.Range{{Begin: 0, End: 2}, {Begin: 2, End: 4}}, true},
		{4, []chunked.Range{{Begin: 0, End: 4}, {}}, false},
		{1, []chunked.Range{{}, {Begin: 0, End: 1}}, true}, // one row cannot be on two devices
	} {
		require.Equal(t, c.want, usesEveryDevice(chunked.Plan{Rows: c.rows, Shards: c.shards}), fmt.Sprint(c))
	}
}
