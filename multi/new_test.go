package multi

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
)

// emulator opens n virtual devices with options; it must end without leaks.
func emulator(t testing.TB, n int, opts ...emu.Option) (*cuda.Driver, *emu.Emulator, *wrap.Ledger) {
	t.Helper()
	e, err := emu.New(n, opts...)
	require.NoError(t, err)
	ledger := wrap.NewLedger(e)
	drv, err := cuda.OpenAPI(ledger)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drv.Close()); require.NoError(t, ledger.Check()) })
	return drv, e, ledger
}

func TestMultiPolicyNewRefusals(t *testing.T) {
	drv, _, ledger := emulator(t, 3)
	inf := math.Inf(1)
	for _, c := range []struct {
		name    string
		devices []int
		opts    Options
		is      error
		says    []string
	}{
		{"empty", nil, Options{}, ErrDeviceList, []string{"at least one"}},
		{"duplicate", []int{1, 0, 1}, Options{}, ErrDeviceList, []string{"device 1", "positions 0 and 2"}},
		{"duplicate before range", []int{9, 9}, Options{}, ErrDeviceList, []string{"one replica per device"}},
		{"negative", []int{0, -1}, Options{}, ErrDeviceList, []string{"-1", "has 3"}},
		{"range", []int{0, 3}, Options{}, ErrDeviceList, []string{"device 3", "has 3"}},
		{"weights", []int{0, 1}, Options{Options: chunked.Options{Weights: []float64{1}}}, nil, []string{"Weights", "1 values for 2"}},
		{"weight value", []int{0, 1}, Options{Options: chunked.Options{Weights: []float64{1, inf}}}, nil, []string{"Weights", "+Inf"}},
		{"operation weights", []int{0, 1}, Options{Options: chunked.Options{OperationWeights: map[string][]float64{"x": {1, 1}}}}, nil, []string{"OperationWeights", "no such operation"}},
		{"floor", []int{0, 1}, Options{Options: chunked.Options{MinRaysPerDevice: -1}}, nil, []string{"MinRaysPerDevice", "-1"}},
		{"transport", []int{0, 1}, Options{Options: chunked.Options{Transport: 7}}, nil, []string{"Transport"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := New(drv, c.devices, c.opts)
			require.Nil(t, s)
			require.Error(t, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			for _, text := range c.says {
				require.Contains(t, err.Error(), text)
			}
			require.NoError(t, ledger.Check(), "a refused New left something behind")
		})
	}
	_, err := New(nil, []int{0}, Options{})
	require.ErrorIs(t, err, ErrDeviceList)
}

func TestMultiPolicyMixedDevices(t *testing.T) {
	drv, _, _ := emulator(t, 2, emu.WithName(func(i int) string { return fmt.Sprint("GPU ", i) }))
	_, err := New(drv, []int{0, 1}, Options{})
	require.ErrorIs(t, err, ErrMixed)
	require.Contains(t, err.Error(), "device 1 is GPU 1")
	newScene(t, drv, []int{0, 1}, Options{AllowMixedDevices: true})
	newScene(t, drv, []int{1}, Options{})
}

func TestMultiPolicyNoPeerAccess(t *testing.T) {
	// One direction only is not enough.
	drv, _, _ := emulator(t, 3, emu.WithPeerAccess(func(a, b int) bool { return a != 2 }))
	_, err := New(drv, []int{0, 1, 2}, Options{})
	var pe *PeerError
	require.ErrorAs(t, err, &pe)
	require.ErrorIs(t, err, ErrNoPeer)
	require.Len(t, pe.Links, 1)
	require.Equal(t, [2]int{2, 0}, [2]int{pe.Links[0].From, pe.Links[0].To})
	require.Contains(t, err.Error(), "AllowNoPeerAccess")

	s := newScene(t, drv, []int{0, 1, 2}, Options{AllowNoPeerAccess: true})
	require.Equal(t, chunked.Host, s.Transport(), "the set uses the weakest answer of its pairs")
	_, err = New(drv, []int{0, 2}, Options{AllowNoPeerAccess: true, Options: chunked.Options{Transport: chunked.Direct}})
	require.ErrorIs(t, err, ErrNoPeer)
	require.Equal(t, chunked.Direct, newScene(t, drv, []int{0, 1}, Options{}).Transport())
	require.Equal(t, chunked.Copy, newScene(t, drv, []int{0, 1}, Options{Options: chunked.Options{Transport: chunked.Copy}}).Transport())
}

// A link that the driver calls accessible but that drops, swaps, delays or
// truncates bytes must be found, in either direction.
func TestMultiPolicyCorruptLinks(t *testing.T) {
	if testing.Short() {
		t.Skip("a quarter million words per pair")
	}
	type corruption func(data []byte)
	var late atomic.Uint32
	for name, corrupt := range map[string]corruption{
		"drops": func(d []byte) { clear(d) },
		"swaps": func(d []byte) {
			if len(d) >= 4 {
				d[0], d[3] = d[3], d[0]
			}
		},
		"spoils what kernels access": func(d []byte) {
			if len(d) <= 16 { // copies are larger
				d[0] ^= 1
			}
		},
		"spoils what is copied": func(d []byte) {
			if len(d) > 16 {
				d[len(d)/2] ^= 1
			}
		},
		"spoils what kernels add": func(d []byte) {
			if len(d) == 8 { // other accesses of kernels are narrower
				d[6] ^= 1
			}
		},
		"truncates": func(d []byte) { d[len(d)-1] = 0 },
		"delays": func(d []byte) {
			if len(d) >= 4 { // delivers the previous transfer's first byte
				now := uint32(d[0])
				d[0] = byte(late.Swap(now) + 1)
			}
		},
	} {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " back=", back), func(t *testing.T) {
				drv, _, ledger := emulator(t, 2, emu.WithPeerCorruption(func(src, dst int, data []byte) {
					if (src > dst) == back {
						corrupt(data)
					}
				}))
				_, err := New(drv, []int{0, 1}, Options{})
				require.ErrorIs(t, err, ErrNoPeer)
				require.Contains(t, err.Error(), "CORRUPT")
				require.NoError(t, ledger.Check())
			})
		}
	}
}

// Every driver call of New that fails leaves nothing behind. Polls are left
// out: their number depends on the clock.
func TestMultiResilienceNewFailsCleanly(t *testing.T) {
	attempt := func(prepare func(*wrap.Fault), leaks bool) (calls map[string]int64, fired bool, err error) {
		e, err := emu.New(2)
		require.NoError(t, err)
		ledger := wrap.NewLedger(e)
		fault := wrap.NewFault(ledger)
		trace := wrap.NewTrace(fault)
		drv, err := cuda.OpenAPI(trace)
		require.NoError(t, err)
		before := trace.Counts()
		prepare(fault)
		s, err := create(drv, []int{0, 1}, Options{}, 1024)
		fired = fault.Fired() > 0
		calls = trace.Counts()
		for name, n := range before {
			calls[name] -= n
		}
		fault.Reset()
		if err == nil {
			require.NoError(t, s.Close())
		}
		if !leaks {
			require.NoError(t, drv.Close())
			require.NoError(t, ledger.Check())
		}
		return calls, fired, err
	}
	calls, _, err := attempt(func(*wrap.Fault) {}, false)
	require.NoError(t, err)
	failed := 0
	// What a failed destroy leaves is the driver's; the failure itself must
	// show.
	destroys := []string{"StreamDestroy", "EventDestroy", "ModuleUnload", "MemFree", "MemFreeHost", "DevicePrimaryCtxRelease"}
	for name, n := range calls {
		if name == "StreamQuery" || name == "EventQuery" {
			continue
		}
		if strings.HasPrefix(name, "CtxSet") || strings.HasPrefix(name, "CtxGet") {
			n = min(n, 20) // polls switch contexts too
		}
		for k := 1; k <= int(n); k++ {
			_, fired, err := attempt(func(f *wrap.Fault) { require.NoError(t, f.FailCall(name, k, cuapi.ErrorInvalidValue)) },
				slices.Contains(destroys, name))
			require.True(t, fired, "%s %d", name, k)
			require.ErrorIs(t, err, cuapi.ErrorInvalidValue, "%s %d", name, k)
			failed++
		}
	}
	require.Greater(t, failed, 30, "next to no failure was noticed")
}

// One device is the plain scene: no private stream, no event, no self-test,
// the same driver calls as scene.New.
func TestMultiSceneOneDeviceMakesNothing(t *testing.T) {
	rig, trace := traced(t, 1)
	s := newScene(t, rig.Driver, ordinals(rig, 1), Options{})
	require.Empty(t, s.Links())
	require.Nil(t, s.replicas[0].stream)
	require.Zero(t, trace.counts().launches)
	require.Zero(t, trace.Count("EventRecord"))
}
