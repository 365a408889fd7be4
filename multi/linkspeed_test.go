package multi

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/tests/gputest"
)

// Links and their speeds are told in one line each.
func TestMultiPolicyLinksInWords(t *testing.T) {
	require.Equal(t, "device 0 -> 1: works, transport direct, atomics, rows by a kernel in 1.5000 ms, by copies in 2.0000 ms",
		Link{To: 1, Access: true, Atomics: true, Transport: chunked.Direct, DirectTime: 1500 * time.Microsecond, CopyTime: 2 * time.Millisecond}.String())
	require.Equal(t, "device 1 -> 0: the driver offers no peer access, transport host", Link{From: 1, Transport: chunked.Host}.String())
	require.Equal(t, "device 0 -> 1: 50.0 GB/s", LinkSpeed{To: 1, Peer: true, Bytes: 5e9, Duration: time.Second / 10}.String())
	require.Equal(t, "device 0 -> 1: 100.0 GB/s with the way back, through the host",
		LinkSpeed{To: 1, Both: true, Bytes: 10e9, Duration: time.Second / 10}.String())
}

// Emulated links have no speed worth a number, but the copies, their list and the
// clean-up are the same.
func TestMultiPolicyMeasureLinks(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	var contexts []*cuda.Context
	for i := range rig.Devices {
		contexts = append(contexts, rig.Context(t, i))
	}
	const bytes = 1 << 16
	links, err := MeasureLinks(bg, contexts, bytes)
	require.NoError(t, err)
	a, b := rig.Devices[0].Ordinal(), rig.Devices[1].Ordinal()
	require.Len(t, links, 3)
	for i, want := range []LinkSpeed{{From: a, To: b, Bytes: bytes}, {From: a, To: b, Both: true, Bytes: 2 * bytes}, {From: b, To: a, Bytes: bytes}} {
		l := links[i]
		require.Positive(t, l.Duration)
		require.InEpsilon(t, float64(want.Bytes)/l.Duration.Seconds(), l.BytesPerSecond(), 1e-12)
		want.Duration, want.Peer = l.Duration, l.Peer
		require.Equal(t, want, l)
	}
	for _, c := range contexts {
		require.Zero(t, c.Pool().Stats().BytesInUse)
	}
	_, err = MeasureLinks(bg, contexts, 0)
	require.ErrorContains(t, err, "bytes: is 0")
	links, err = MeasureLinks(bg, contexts[:1], bytes)
	require.NoError(t, err)
	require.Empty(t, links)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err = MeasureLinks(ctx, contexts, bytes)
	require.ErrorIs(t, err, context.Canceled)
}

// Without access in one direction a pair has none.
func TestMultiPolicyMeasureLinksWithoutPeers(t *testing.T) {
	drv, _, _ := emulator(t, 3, emu.WithPeerAccess(func(a, b int) bool { return a != 2 }))
	s, err := create(drv, []int{0, 1, 2}, Options{AllowNoPeerAccess: true}, 256)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	links, err := s.MeasureLinks(bg, 1<<12)
	require.NoError(t, err)
	require.Len(t, links, 9)
	for _, l := range links {
		require.Equal(t, l.From != 2 && l.To != 2, l.Peer, l)
	}
	out, in, err := s.linkRates(bg)
	require.NoError(t, err)
	require.Positive(t, out)
	require.Positive(t, in)
}

// Every call that fails is reported and leaves nothing behind.
func TestMultiResilienceMeasureLinksFailsCleanly(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	ledger := wrap.NewLedger(e)
	fault := wrap.NewFault(ledger)
	drv, err := cuda.OpenAPI(fault)
	require.NoError(t, err)
	s, err := create(drv, []int{0, 1}, Options{}, 1024)
	require.NoError(t, err)
	for _, name := range []string{"StreamCreateWithPriority", "MemAlloc", "DeviceCanAccessPeer", "MemcpyPeerAsync", "CtxSynchronize"} {
		for k := 1; k <= 2; k++ { // one on each device
			require.NoError(t, s.ctxs[0].Pool().Trim())
			require.NoError(t, s.ctxs[1].Pool().Trim())
			require.NoError(t, fault.FailCall(name, k, cuapi.ErrorInvalidValue))
			_, err := s.MeasureLinks(bg, 1<<16)
			require.Positive(t, fault.Fired(), "%s is not called %d times", name, k)
			require.ErrorIs(t, err, cuapi.ErrorInvalidValue, "%s %d", name, k)
			fault.Reset()
			_, err = s.MeasureLinks(bg, 1<<8)
			require.NoError(t, err)
		}
	}
	require.NoError(t, s.Close())
	_, err = s.MeasureLinks(bg, 1)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, drv.Close())
	require.NoError(t, ledger.Check())
}
