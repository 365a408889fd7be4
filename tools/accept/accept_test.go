package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// host is what the runner sees instead of a machine.
type host struct {
	devices int
	broken  error
	answer  func(binary, pattern string, attempt int) (string, error)
	calls   [][]string // program, arguments, environment
}

func (h *host) run(args ...string) (out string, status int) {
	var buf bytes.Buffer
	a := &acceptance{
		out: &buf,
		survey: func() (lines []string, err error) {
			for i := range h.devices {
				lines = append(lines, fmt.Sprint("device ", i))
			}
			return lines, h.broken
		},
		build: func(dir string, packages []string) error {
			h.calls = append(h.calls, append([]string{"build"}, packages...))
			return nil
		},
		execute: func(dir, program string, args, env []string) (string, error) {
			h.calls = append(h.calls, slices.Concat([]string{filepath.Base(program), "in " + dir}, args, env))
			pattern := ""
			for _, x := range args {
				if p, ok := strings.CutPrefix(x, "-test.run="); ok {
					pattern = p
				}
			}
			return h.answer(filepath.Base(program), pattern, len(h.calls))
		},
	}
	status = a.run(args)
	return buf.String(), status
}

func passes(string, string, int) (string, error) {
	return "=== RUN   TestA\n--- PASS: TestA (0.01s)\n    --- PASS: TestA/sub (0.00s)\n--- SKIP: TestB (0.00s)\n", nil
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestVerified(t *testing.T) {
	h := &host{devices: 3, answer: passes}
	out, status := h.run()
	require.Equal(t, 0, status, out)
	require.Equal(t, "VERIFIED on 3 devices: 8 passed, 0 failed, 8 skipped", lastLine(out), "smoke runs in two packages")
	require.Equal(t, []string{"build", "scene", "multi", "chunked"}, h.calls[0])
	require.Equal(t, []string{"scene.test", "in scene", "-test.v", "-test.count=1", "-test.timeout=20m", "-test.run=^TestMultiSmoke",
		"REQUIRE_DEVICES=3", "RAYMUX_TEST_DEVICES=0,1,2", "RAYMUX_TEST_EMULATED="}, h.calls[1])
	require.Len(t, h.calls, 1+len(groups)+1, "a process for each group and package")

	h = &host{devices: 3, answer: passes}
	out, status = h.run("-devices", "2,0", "-groups", "scene", "-binaries", "/somewhere", "-short")
	require.Equal(t, 0, status, out)
	require.Equal(t, "VERIFIED on 2 devices: 1 passed, 0 failed, 1 skipped", lastLine(out))
	require.Len(t, h.calls, 1, "nothing is built")
	require.Contains(t, h.calls[0], "RAYMUX_TEST_DEVICES=2,0")
	require.Contains(t, h.calls[0], "-test.short")
}

func TestNothingVerified(t *testing.T) {
	for _, c := range []struct {
		host host
		args []string
		line string
	}{
		{host{devices: 1}, nil, "NOTHING VERIFIED: this host has 1 CUDA device(s), 1 selected, the multi-device set needs 2"},
		{host{broken: errors.New("no driver")}, nil, "NOTHING VERIFIED: this host has 0 CUDA device(s), 0 selected, the multi-device set needs 2"},
		{host{devices: 2}, []string{"-devices", "1"}, "NOTHING VERIFIED: this host has 2 CUDA device(s), 1 selected, the multi-device set needs 2"},
		{host{devices: 1}, []string{"-list"}, "NOTHING VERIFIED: this host has 1 CUDA device(s), 1 selected, the multi-device set needs 2"},
		{host{}, []string{"-devices", "emu:1"}, "NOTHING VERIFIED: this host has 0 CUDA device(s), 1 selected, the multi-device set needs 2"},
		{host{devices: 2, answer: func(binary, pattern string, _ int) (string, error) {
			if pattern == "^TestMultiStress" {
				return "--- SKIP: TestA (0.00s)\n", nil
			}
			return "--- PASS: TestA (0.00s)\n", nil
		}}, nil, "NOTHING VERIFIED: every test of stress was skipped (7 passed, 0 failed, 1 skipped)"},
		{host{answer: passes}, []string{"-devices", "emu:2"}, "EMULATED: on 2 emulated devices 8 passed, 0 failed, 8 skipped; no GPU was used"},
	} {
		out, status := c.host.run(c.args...)
		require.Equal(t, 3, status, out)
		require.Equal(t, c.line, lastLine(out))
		out, status = c.host.run(append(c.args, "-allow-partial")...)
		require.Equal(t, 0, status, out)
		require.Equal(t, c.line, lastLine(out), "the line stays")
	}
	h := host{broken: errors.New("no driver (hint: install it; without a GPU use cuda.OpenEmulator)")}
	out, _ := h.run()
	require.Contains(t, out, "no CUDA device: no driver (hint: install it); -devices emu:2 -allow-partial checks emulated ones\n")
	h = host{answer: passes}
	_, _ = h.run("-devices", "emu:3")
	require.Contains(t, h.calls[1], "RAYMUX_TEST_EMULATED=3")
	require.Contains(t, h.calls[1], "RAYMUX_TEST_DEVICES=")
}

func TestFailures(t *testing.T) {
	failing := errors.New("exit status 1")
	only := func(group, output string, err error) func(string, string, int) (string, error) {
		return func(_, pattern string, _ int) (string, error) {
			if pattern == group {
				return output, err
			}
			return "--- PASS: TestA (0.00s)\n", nil
		}
	}
	for name, c := range map[string]struct {
		answer func(string, string, int) (string, error)
		says   []string
	}{
		"a test":           {only("^TestMultiScene", "--- FAIL: TestMultiSceneX (0.00s)\nwhy\n", failing), []string{"why", "FAILED: scene: ", "1 failed", "(TestMultiSceneX)"}},
		"a process":        {only("^TestMultiScene", "panic: ouch\n", failing), []string{"ouch", "FAILED: scene: ", "multi.test: exit status 1"}},
		"no test":          {only("^TestMultiScene", "testing: warning: no tests to run\nPASS\n", nil), []string{"FAILED: scene (no test ran)"}},
		"a missing binary": {only("^TestMultiScene", "", errors.New("no such file")), []string{"multi.test: no such file"}},
	} {
		for _, partial := range []bool{false, true} {
			h := &host{devices: 2, answer: c.answer}
			args := []string{}
			if partial {
				args = append(args, "-allow-partial")
			}
			out, status := h.run(args...)
			require.Equal(t, 1, status, "%s: %s", name, out)
			for _, text := range c.says {
				require.Contains(t, out, text, name)
			}
			require.Len(t, h.calls, 1+2+1+1, "the first failing group is the last one")
			_, status = h.run("-keep-going")
			require.Equal(t, 1, status)
			require.Len(t, h.calls, 1+2+1+1+1+len(groups)+1, name)
		}
	}
	a := &acceptance{out: &bytes.Buffer{}, survey: func() ([]string, error) { return []string{"a", "b"}, nil },
		build: func(string, []string) error { return errors.New("does not compile") }}
	require.Equal(t, 1, a.run(nil))
}

// The test that compares times is repeated alone, and both results are reported.
func TestTimingGate(t *testing.T) {
	for _, second := range []string{"PASS", "FAIL"} {
		h := &host{devices: 2, answer: func(_, pattern string, _ int) (string, error) {
			switch pattern {
			case "^TestMultiStress":
				return "--- PASS: TestMultiStressX (0.00s)\n--- FAIL: TestMultiStressOverlap (0.00s)\n", errors.New("exit status 1")
			case "^TestMultiStressOverlap$":
				return "--- " + second + ": TestMultiStressOverlap (0.00s)\n", nil
			}
			return "--- PASS: TestA (0.00s)\n", nil
		}}
		out, status := h.run("-groups", "stress")
		require.Equal(t, second == "FAIL", status == 1, out)
		require.Equal(t, second == "PASS", strings.Contains(out, "passed when it was repeated alone"), out)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-devices", "emu:0"}, {"-devices", "x"}, {"-devices", "0,0"}, {"-devices", "0,5"}, {"-groups", "none"},
		{"-nonsense"}, {"extra"}, {"-build", "a", "-binaries", "b"}} {
		h := &host{devices: 2, answer: passes}
		out, status := h.run(args...)
		require.Equal(t, 2, status, "%v: %s", args, out)
		require.Empty(t, h.calls)
	}
	h := &host{devices: 2, answer: passes}
	out, status := h.run("-list")
	require.Equal(t, 0, status)
	for _, g := range groups {
		require.Contains(t, out, g.pattern())
	}
	require.Empty(t, h.calls)
	_, status = h.run("-build", "dir")
	require.Equal(t, 0, status)
	require.Len(t, h.calls, 1)
}
