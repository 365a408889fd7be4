package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeC makes the test binary stand in for the program in C: it prints the value of the variable, in which %d becomes
// the number of its arguments.
const fakeC = "BENCH_TEST_FAKE_C"

func TestMain(m *testing.M) {
	if answer, ok := os.LookupEnv(fakeC); ok {
		fmt.Println(strings.ReplaceAll(answer, "%d", strconv.Itoa(len(os.Args)-1)))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLaunchOnEmulatedDevice(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitDone, command([]string{"launch", "--device", "emu", "--batch", "8", "--batches", "5"}, &stdout, &stderr), &stderr)
	var r launchResult
	d := json.NewDecoder(&stdout)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r))
	require.True(t, r.Emulated)
	require.Equal(t, [2]int{8, 5}, [2]int{r.Batch, r.Batches})
	for _, cost := range []launchCost{r.Scope, r.Function} {
		require.Positive(t, cost.MinNS)
		require.LessOrEqual(t, cost.MinNS, cost.MedianNS)
		require.NotNil(t, cost.Allocs)
	}
	require.Nil(t, r.C)
}

func TestLaunchWithoutGPU(t *testing.T) {
	noDriver(t)
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitFailed, command([]string{"launch"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "no NVIDIA driver found")
	require.Contains(t, stderr.String(), "use --device emu")
	require.Empty(t, stdout.String())
}

func TestRunC(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	o := launchOptions{c: self, device: 1, batch: 7, batches: 9}
	t.Setenv(fakeC, `{"min_ns": %d, "median_ns": 1900.5}`)
	cost, err := o.runC([]byte("text"))
	require.NoError(t, err)
	require.Equal(t, launchCost{MinNS: 5, MedianNS: 1900.5}, cost, "it gets file, kernel, device, batch, batches")

	for _, answer := range []string{`{"min_ns": 0, "median_ns": 1}`, `[`, ``} {
		t.Setenv(fakeC, answer)
		_, err = o.runC(nil)
		require.ErrorContains(t, err, "answered", answer)
	}
	o.c = self + ".missing"
	_, err = o.runC(nil)
	require.ErrorContains(t, err, "--c")
}
