package cuda_test

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/tests/gputest"
)

// childVariable tells a process that it is the child of a test: what spoils the
// driver for the rest of a process runs in one of its own.
const childVariable = "RAYMUX_TEST_CHILD"

// inChild runs the test of the given name in a process of its own, without the
// current context that RAYMUX_TEST_CURRENT makes, and with more variables.
func inChild(t *testing.T, env ...string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(bg, 2*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	child.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, gputest.CurrentVariable+"=") })
	child.Env = append(child.Env, append(env, childVariable+"=1")...)
	out, err := child.CombinedOutput()
	require.NoError(t, err, "the child says:\n%s", out)
	assert.Contains(t, string(out), "--- PASS: "+t.Name())
}

func isChild() bool { return os.Getenv(childVariable) != "" }

// TestHardwareFaultLosesOneDevice writes to an address that belongs to nobody.
// The device is lost to the process, with the driver's code and without further
// driver calls; the other device works on, unless the driver takes it along, and
// everything can be closed.
func TestHardwareFaultLosesOneDevice(t *testing.T) {
	if !isChild() {
		inChild(t, faultyVariable+"=0")
		inChild(t, faultyVariable+"=1")
		return
	}
	rig := gputest.Open(t, 2, nil)
	faulty := 0
	if os.Getenv(faultyVariable) == "1" {
		faulty = 1
	}
	bad := newUnit(t, rig.Devices[faulty], rig.Context(t, faulty))
	good := newUnit(t, rig.Devices[1-faulty], rig.Context(t, 1-faulty))
	x := newSlice[uint32](bad, 100)
	y := newSlice[uint32](good, 100)
	pinned, err := cuda.AllocPinned[uint32](bad.c, 10)
	require.NoError(t, err)
	event, err := bad.c.NewEvent(cuda.EventOptions{})
	require.NoError(t, err)

	p := peerFillParams{Dst: 0x10, Count: 1000, Seed: 1}
	require.NoError(t, bad.fill.Launch(bad.s, cuapi.D1(1), cuapi.D1(32), 0, cuda.ParamBytes(&p)), "a fault shows later")
	first := bad.s.Synchronize(bg)
	require.ErrorIs(t, first, cuda.ErrDeviceLost)
	require.ErrorIs(t, first, cuapi.ErrorIllegalAddress)
	var lost *cuda.LostError
	require.ErrorAs(t, first, &lost)
	assert.Equal(t, bad.dev.Ordinal(), lost.Device)
	assert.Equal(t, bad.c.Lost(), first)

	for name, err := range map[string]error{
		"Launch":      bad.fillWords(bad.s, x, 1, 1, 32),
		"Synchronize": bad.s.Synchronize(bg),
		"Alloc":       second(cuda.Alloc[uint32](bad.c, 1<<20)),
		"Download":    second(cuda.Download(bg, bad.s, x)),
		"CopyAsync":   cuda.CopyAsync(good.s, y, x),
		"NewStream":   second(bad.c.NewStream(cuda.StreamOptions{})),
		"Record":      bad.s.Record(event),
		"Retain":      second(bad.dev.Retain()),
		"Do":          bad.c.Do(func() error { t.Error("nothing runs on a lost device"); return nil }),
	} {
		assert.ErrorIs(t, err, cuda.ErrDeviceLost, name)
		assert.ErrorIs(t, err, cuapi.ErrorIllegalAddress, name)
	}
	assert.NoError(t, good.c.Lost())
	if err := good.fillWords(good.s, y, 3, 1, 64); gputest.Native() && err != nil {
		// Some drivers (580.159 on two H200s) end every context of the process
		// with the one that faulted. Then the other device says so, too.
		assert.ErrorIs(t, err, cuda.ErrDeviceLost)
		assert.ErrorIs(t, err, cuapi.ErrorIllegalAddress)
		assert.Error(t, good.c.Lost())
	} else {
		require.NoError(t, err)
		assert.Equal(t, patterns(100, 3), download(good, y), "the other device works on")
	}
	assert.NoError(t, pinned.Close())
	assert.NoError(t, event.Close())
}

// faultyVariable is the index of the device that the child loses.
const faultyVariable = "RAYMUX_TEST_FAULTY"

// TestHardwareInterrupt sees that the driver leaves the handling of signals to
// Go: a program still receives the interrupt that it asked for.
func TestHardwareInterrupt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("an interrupt cannot be sent to oneself here")
	}
	if !isChild() {
		inChild(t)
		return
	}
	_, us := units(t, 1)
	u := us[0]
	x := newSlice[uint32](u, slowWords())
	got := make(chan os.Signal, 1)
	signal.Notify(got, os.Interrupt)
	defer signal.Stop(got)
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	for round := range 5 {
		u.slow(u.s, x, uint32(round))
		require.NoError(t, self.Signal(os.Interrupt))
		select {
		case s := <-got:
			assert.Equal(t, os.Interrupt, s)
		case <-time.After(30 * time.Second):
			t.Fatal("the interrupt did not arrive")
		}
		u.wait()
		assert.Zero(t, u.wrongWords(x, uint32(round)), "the device's work is not disturbed")
	}
}
