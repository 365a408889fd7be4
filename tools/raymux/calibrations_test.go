package main

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/multi"
)

// calibrated writes the record of a calibration on two emulated devices as if dividing had taken half of the time.
func calibrated(t *testing.T, b *bench, name string) *multi.Calibration {
	t.Helper()
	b.succeed(t, append(calibrateCall().args(b), "-json="+b.path(name))...)
	text, err := os.ReadFile(b.path(name))
	require.NoError(t, err)
	r, err := multi.ImportCalibration(text)
	require.NoError(t, err)
	r.Pairs = nil
	for range 9 {
		r.Pairs = append(r.Pairs, multi.Pair{Sharded: time.Millisecond, Master: 2 * time.Millisecond})
	}
	r.Interval = multi.Interval{Low: math.Ln2, High: math.Ln2, Order: 1, Coverage: 1 - 2./512}
	r.Verdict, r.Weights = multi.VerdictShard, []float64{3, 1}
	r.Ladder[r.Candidate].Weights = r.Weights
	writeRecord(t, b, name, r)
	return r
}

func writeRecord(t *testing.T, b *bench, name string, r *multi.Calibration) {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	b.file(t, name, string(text))
}

// The weights of a record are those of its operation, and results are as without.
func TestCalibrationDividesItsOperation(t *testing.T) {
	b := newBench(t)
	record := calibrated(t, b, "record.json")
	run := intersectCall().with("-min-rows", "1")
	b.succeed(t, run.args(b)...)
	want, err := os.ReadFile(b.path("out.npz"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(b.path("out.npz")))

	run = run.with("-calibration", "record.json")
	r := b.succeed(t, append(run.args(b), "-plan")...)
	assert.Contains(t, r.out, "weights=[3 1] (calibration)")
	assert.Empty(t, r.err)
	b.succeed(t, run.args(b)...)
	have, err := os.ReadFile(b.path("out.npz"))
	require.NoError(t, err)
	assert.Equal(t, want, have)

	other := *record
	other.Operation = "visible"
	writeRecord(t, b, "visible.json", &other)
	r = b.succeed(t, append(run.with("-calibration", "visible.json").with("-weights", "1,7").args(b), "-plan")...)
	assert.Contains(t, r.out, "weights=[1 7]")
	assert.Equal(t, "raymux: note: -calibration: not used: no record is of intersect_full, found visible\n", r.err)
	r = b.succeed(t, append(run.with("-calibration", "visible.json", "record.json").args(b), "-plan")...)
	assert.Contains(t, r.out, "weights=[3 1] (calibration)")
	assert.Empty(t, r.err)
}

func TestCalibrationRefusals(t *testing.T) {
	b := newBench(t)
	record := calibrated(t, b, "record.json")
	record.Devices[1].Name = "NVIDIA H200"
	writeRecord(t, b, "others.json", record)
	b.file(t, "text.json", "weights 1,1")
	b.file(t, "large.json", strings.Repeat(" ", calibrationBytes+1))
	record.Verdict = multi.VerdictMaster
	writeRecord(t, b, "wrong.json", record)
	run := intersectCall().with("-calibration", "record.json")
	for _, c := range []malformed{
		{call: run.with("-calibration", "none.json"), status: exitUsage, want: []string{"-calibration", "none.json", "no such file"}},
		{call: run.with("-calibration", ""), status: exitUsage, want: []string{"-calibration", "the name is empty"}},
		{call: run.with("-calibration", "text.json"), status: exitUsage, want: []string{"-calibration", "text.json", "unusable calibration: it is no JSON of a record"}},
		{call: run.with("-calibration", "large.json"), status: exitUsage, want: []string{"large.json", "found a file of 1048577 bytes"}},
		{call: run.with("-calibration", "wrong.json"), status: exitUsage, want: []string{"wrong.json", `verdict "master", the pairs give "shard"`}},
		{call: run.with("-calibration", "others.json"), status: exitUsage, want: []string{"others.json", "position 1 was a NVIDIA H200"}},
		{call: run.with("-weights", "1,3"), status: exitUsage, want: []string{"-weights", "-calibration", "record.json", "both of intersect_full", "expected one"}},
		{call: run.with("-devices", "emu:3"), status: exitUsage, want: []string{"record.json", "it is of 2 devices, the set has 3"}},
		{call: run.with("-devices", "emu:1"), status: exitUsage, want: []string{"record.json", "the set has 1"}},
		{call: run.with("-calibration", "record.json", "record.json"), status: exitUsage, want: []string{"-calibration", "both of intersect_full"}},
		{call: edgeCall().with("-calibration", "record.json"), status: exitUsage, want: []string{"unknown flag -calibration"}},
	} {
		b.refuse(t, c)
	}
}
