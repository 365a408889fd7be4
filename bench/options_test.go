package main

import (
	"bytes"
	"errors"
	"flag"
	"path/filepath"
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
	"github.com/stretchr/testify/require"
)

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--repeat", "0"}, "repeat"},
		{[]string{"--warmup", "-1"}, "warmup"},
		{[]string{"--rays", "0"}, "rays"},
		{[]string{"--rays", "many"}, "rays"},
		{[]string{"--rays", "268435457"}, "--rays 268435457: use at most 268435456"},
		{[]string{"--devices", "0,0"}, "device 0 occurs twice"},
		{[]string{"--devices", "-1"}, "not a device"},
		{[]string{"--devices", "0,,1"}, "not a device"},
		{[]string{"--devices", "emu:0"}, "1 to 64"},
		{[]string{"--devices", "emu:65"}, "1 to 64"},
		{[]string{"--devices", "emu:x"}, "1 to 64"},
		{[]string{"--require-devices", "0"}, "require-devices"},
		{[]string{"--config", "heavy"}, "light, compute, mini or all"},
		{[]string{"--backend", "vulkan"}, "auto, cuda or optix"},
		{[]string{"--transport", "pigeon"}, "transport"},
		{[]string{"--accum-samples", "0"}, "accum-samples"},
		{[]string{"--accum-samples", "2147483648"}, "less than 2^31"},
		{[]string{"--study", "everything"}, "not a study"},
		{[]string{"--study", "builds,all"}, "not a study"},
		{[]string{"--study", "builds,builds"}, "builds occurs twice"},
		{[]string{"--study", "batches", "--mesh", "a.ply"}, "add --study geometry"},
		{[]string{"--mesh", "a.ply"}, "add --study geometry"},
		{[]string{"light"}, "unexpected argument"},
		{[]string{"launch", "--batch", "0"}, "batch"},
		{[]string{"launch", "--device", "first"}, "ordinal or emu"},
		{[]string{"launch", "--device", "emu", "--c", "x"}, "needs a GPU"},
		{[]string{"launch", "now"}, "unexpected argument"},
		{[]string{"manifest", "now"}, "no arguments"},
	} {
		var out, err bytes.Buffer
		require.Equal(t, exitUsage, command(c.args, &out, &err), "%v: %s", c.args, &err)
		require.Contains(t, err.String(), c.says, "%v", c.args)
		require.Empty(t, out.String(), "%v", c.args)
	}
}

func TestHelp(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{{[]string{"-h"}, "exit status"}, {[]string{"launch", "-h"}, "--batches"}} {
		var out, err bytes.Buffer
		require.Equal(t, exitDone, command(c.args, &out, &err))
		require.Contains(t, out.String(), c.says)
	}
	_, err := parseOptions([]string{"--help"})
	require.ErrorIs(t, err, flag.ErrHelp)
}

func TestParseOptions(t *testing.T) {
	o, err := parseOptions([]string{"--config", "compute", "--devices", "3,1", "--require-devices", "2", "--rays", "77", "--warmup", "0",
		"--repeat", "9", "--transport", "copy", "--backend", "cuda", "--study", "builds,geometry", "--mesh", "m.ply",
		"--calibration-rows", "5", "--calibration-repeats", "6", "--probe", "default", "--runs", "20", "--json", "a.json", "--pin", "b.json"})
	require.NoError(t, err)
	require.Equal(t, options{config: "compute", devices: deviceList{ordinals: []int{3, 1}}, requireDevices: 2, rays: 77,
		repeat: 9, transport: chunked.Copy, backend: scene.CUDA, studies: studyList{"builds", "geometry"}, mesh: "m.ply",
		calibrationRows: 5, calibrationRepeats: 6, probe: probeDefault, runs: 20, json: "a.json", pin: "b.json"}, o)
	o, err = parseOptions([]string{"--study", "all"})
	require.NoError(t, err)
	require.Equal(t, studyList(allStudies), o.studies)
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		args           []string
		emulated       bool
		configs        []string
		warmup, repeat int
	}{
		{nil, false, []string{"light", "compute"}, 2, 7},
		{nil, true, []string{"mini"}, 0, 2},
		{[]string{"--config", "all"}, true, []string{"light", "compute"}, 0, 2},
		{[]string{"--config", "light", "--warmup", "0", "--repeat", "1"}, false, []string{"light"}, 0, 1},
		{[]string{"--config", "mini"}, false, []string{"mini"}, 2, 7},
	} {
		o, err := parseOptions(c.args)
		require.NoError(t, err)
		o.resolve(c.emulated)
		var names []string
		for _, config := range o.selected() {
			names = append(names, config.Name)
		}
		require.Equal(t, c.configs, names, "%v", c.args)
		require.Equal(t, [2]int{c.warmup, c.repeat}, [2]int{o.warmup, o.repeat}, "%v", c.args)
	}
}

// noDriver makes the driver unusable, whatever the machine has.
func noDriver(t *testing.T) {
	t.Helper()
	t.Setenv("RAYMUX_LIBCUDA", filepath.Join(t.TempDir(), "libcuda.so.1"))
}

// A run that asks for devices never continues on emulated ones, and writes nothing.
func TestTooFewDevices(t *testing.T) {
	noDriver(t)
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"--require-devices", "2"}, exitDevices},
		{[]string{"--require-devices", "3", "--devices", "emu:2"}, exitDevices},
		{[]string{"--devices", "0"}, exitFailed},
	} {
		path := filepath.Join(t.TempDir(), "record.json")
		var out, err bytes.Buffer
		require.Equal(t, c.status, command(append(c.args, "--json", path), &out, &err), "%v: %s", c.args, &err)
		if c.status == exitDevices {
			require.Contains(t, err.String(), "NOTHING MEASURED")
		}
		require.Empty(t, out.String())
		require.NoFileExists(t, path)
	}
}

func TestStatusErrorUnwraps(t *testing.T) {
	cause := errors.New("cause")
	require.ErrorIs(t, usage("x: %w", cause), cause)
}
