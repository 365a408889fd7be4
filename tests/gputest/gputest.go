// Package gputest opens the devices that a test runs on: virtual ones by default,
// the GPUs of RAYMUX_TEST_DEVICES ("0,1") when it is set. RAYMUX_TEST_EMULATED=N
// allows N virtual devices; without it a test gets as many as it asks for.
//
// A test that needs more devices than there are is skipped as NOT VERIFIED, unless
// REQUIRE_DEVICES says that as many must be there: then it fails.
//
// RAYMUX_TEST_CURRENT=k makes the context of device k current on the test's thread
// first, and requires it to be current still when the test ends: no call of the
// library may depend on the current context or change it.
package gputest

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
)

// Environment variables that select devices.
const (
	DevicesVariable  = "RAYMUX_TEST_DEVICES"
	EmulatedVariable = "RAYMUX_TEST_EMULATED"
	CurrentVariable  = "RAYMUX_TEST_CURRENT"
	RequireVariable  = "REQUIRE_DEVICES"
)

// Native reports whether tests run on GPUs.
func Native() bool { return os.Getenv(DevicesVariable) != "" }

// Count is how many devices tests may open: those of RAYMUX_TEST_DEVICES, or
// RAYMUX_TEST_EMULATED virtual ones, without which it is as many as tests of several
// devices take, two.
func Count() int {
	switch {
	case Native():
		return 1 + strings.Count(os.Getenv(DevicesVariable), ",")
	case number(EmulatedVariable) > 0:
		return number(EmulatedVariable)
	}
	return 2
}

// UpTo is n, or the number of devices where there are fewer. Without any variable there
// are as many virtual ones as a test wants.
func UpTo(n int) int {
	if !Native() && number(EmulatedVariable) == 0 {
		return n
	}
	return min(n, Count())
}

// Need ends a test that needs more devices than there are.
func Need(t testing.TB, n int) {
	t.Helper()
	if n <= UpTo(n) {
		return
	}
	found := Count()
	if number(RequireVariable) >= n {
		t.Fatalf("NOT VERIFIED: needs %d CUDA devices, found %d", n, found)
	}
	t.Skipf("NOT VERIFIED: needs %d CUDA devices, found %d", n, found)
}

// number is the value of a variable, 0 where it is not set or no number.
func number(variable string) int {
	n, _ := strconv.Atoi(os.Getenv(variable))
	return n
}

// Rig is an open driver and the devices that a test may use.
type Rig struct {
	Driver  *cuda.Driver
	Devices []*cuda.Device

	// bare is the same driver without the test's wrapper, which must not see
	// the context that RAYMUX_TEST_CURRENT makes current.
	bare *cuda.Driver
}

// Open opens n devices, as far as Need allows. wrap, if not nil, wraps the driver interface. The driver
// is closed when the test ends, which fails the test when handles are still open.
func Open(t testing.TB, n int, wrap func(cuapi.API) cuapi.API) *Rig {
	t.Helper()
	Need(t, n)
	var opts []cuda.Option
	if wrap != nil {
		opts = append(opts, cuda.WithAPI(wrap))
	}
	r := &Rig{}
	current := parse(t, CurrentVariable)
	if Native() {
		r.native(t, n, opts)
	} else {
		// RAYMUX_TEST_CURRENT may name a device that the test itself does not use.
		r.emulated(t, n, max(n, slices.Max(append(current, 0))+1), opts)
	}
	t.Cleanup(func() {
		require.NoError(t, r.bare.Close())
		require.NoError(t, r.Driver.Close(), "the test leaves handles open")
	})
	if len(current) > 0 {
		r.makeCurrent(t, current[0])
	}
	return r
}

func (r *Rig) native(t testing.TB, n int, opts []cuda.Option) {
	t.Helper()
	ids := parse(t, DevicesVariable)
	var err error
	r.Driver, err = cuda.Open(opts...)
	require.NoError(t, err)
	r.bare, err = cuda.Open()
	require.NoError(t, err)
	for _, id := range ids[:n] {
		d, err := r.Driver.Device(id)
		require.NoError(t, err, "%s names device %d", DevicesVariable, id)
		require.NoError(t, hold(id))
		r.Devices = append(r.Devices, d)
	}
}

// held are contexts that keep the primary contexts of GPUs for the life of the
// process: making one takes tenths of a second, and tests make hundreds.
var held struct {
	sync.Mutex
	driver   *cuda.Driver
	contexts map[int]*cuda.Context
}

func hold(id int) (err error) {
	held.Lock()
	defer held.Unlock()
	if held.driver == nil {
		if held.driver, err = cuda.Open(); err != nil {
			return err
		}
		held.contexts = map[int]*cuda.Context{}
	}
	if held.contexts[id] != nil {
		return nil
	}
	d, err := held.driver.Device(id)
	if err != nil {
		return err
	}
	held.contexts[id], err = d.Retain()
	return err
}

func (r *Rig) emulated(t testing.TB, n, open int, opts []cuda.Option) {
	t.Helper()
	api, err := emu.New(open)
	require.NoError(t, err)
	r.Driver, err = cuda.OpenAPI(api, opts...)
	require.NoError(t, err)
	r.bare, err = cuda.OpenAPI(api)
	require.NoError(t, err)
	r.Devices = r.Driver.Devices()[:n]
}

// makeCurrent pins the test to its thread with device k's context current,
// until the test ends. Rigs of one test nest.
func (r *Rig) makeCurrent(t testing.TB, k int) {
	t.Helper()
	d, err := r.bare.Device(k)
	require.NoError(t, err, "%s names device %d", CurrentVariable, k)
	c, err := d.Retain()
	require.NoError(t, err)
	api := r.bare.API()
	runtime.LockOSThread()
	before, code := api.CtxGetCurrent()
	require.Equal(t, cuapi.Success, code)
	require.Equal(t, cuapi.Success, api.CtxSetCurrent(c.Handle()))
	t.Cleanup(func() {
		now, code := api.CtxGetCurrent()
		api.CtxSetCurrent(before)
		runtime.UnlockOSThread()
		require.NoError(t, c.Close())
		require.Equal(t, cuapi.Success, code)
		require.Equal(t, c.Handle(), now, "the current context of the thread has changed")
	})
}

// Context retains the context of device i of the rig until the test ends.
func (r *Rig) Context(t testing.TB, i int) *cuda.Context {
	t.Helper()
	c, err := r.Devices[i].Retain()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(), "the test leaves handles of device %d open", i) })
	return c
}

func parse(t testing.TB, name string) []int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return nil
	}
	var ids []int
	for part := range strings.SplitSeq(text, ",") {
		id, err := strconv.Atoi(strings.TrimSpace(part))
		require.NoError(t, err, "%s=%q is no list of device numbers", name, text)
		ids = append(ids, id)
	}
	return ids
}
