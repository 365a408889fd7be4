package multi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/tests/gputest"
)

func TestMeasureLinks(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	s := newScene(t, rig.Driver, ordinals(rig, 2), Options{})
	links, err := s.MeasureLinks(bg, 1<<20)
	require.NoError(t, err)
	require.Len(t, links, 2)
	a, b := s.Devices()[0], s.Devices()[1]
	for i, want := range [][2]int{{a, b}, {b, a}} {
		require.Equal(t, want, [2]int{links[i].From, links[i].To})
		require.EqualValues(t, 1<<20, links[i].Bytes)
		require.Positive(t, links[i].Duration)
		require.InEpsilon(t, float64(1<<20)/links[i].Duration.Seconds(), links[i].BytesPerSecond(), 1e-12)
	}
	_, err = s.MeasureLinks(bg, 0)
	require.ErrorContains(t, err, "0 bytes given")

	one := newScene(t, rig.Driver, ordinals(rig, 1), Options{})
	links, err = one.MeasureLinks(bg, 1<<20)
	require.NoError(t, err)
	require.Empty(t, links)
}

// Every call that fails is reported and leaves nothing behind.
func TestMeasureLinksFailsCleanly(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	ledger := wrap.NewLedger(e)
	fault := wrap.NewFault(ledger)
	drv, err := cuda.OpenAPI(fault)
	require.NoError(t, err)
	s, err := create(drv, []int{0, 1}, Options{}, 1024)
	require.NoError(t, err)
	failed := 0
	for _, name := range []string{"StreamCreateWithPriority", "MemAlloc", "MemcpyPeerAsync"} {
		require.NoError(t, fault.FailCall(name, 1, cuapi.ErrorInvalidValue))
		_, err := s.MeasureLinks(bg, 1<<16)
		if fault.Fired() > 0 {
			failed++
			require.ErrorIs(t, err, cuapi.ErrorInvalidValue, name)
		}
		fault.Reset()
	}
	require.GreaterOrEqual(t, failed, 2)
	require.NoError(t, s.Close())
	_, err = s.MeasureLinks(bg, 1)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, drv.Close())
	require.NoError(t, ledger.Check())
}
