package cuda_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
	"github.com/raymux/raymux/tests/gputest"
)

// The tests of the hardware_*_test.go files run on real GPUs when
// RAYMUX_TEST_DEVICES names them, else on emulated devices (see package
// gputest). They use nothing but the binary, so that they can be built on one
// machine and run on another. Where the driver leaves a choice they accept each
// answer that its documentation allows.

// Kernels of module link, with their parameters.
type (
	peerFillParams struct {
		Dst, Count     uint64
		Seed, Reserved uint32
	}
	peerCheckParams struct {
		Src, Count, Mismatches uint64
		Seed, Reserved         uint32
	}
)

var (
	fillKernel  = ptx.Entry[peerFillParams]{Module: "link", Name: "peer_fill"}
	checkKernel = ptx.Entry[peerCheckParams]{Module: "link", Name: "peer_check"}
	emptyKernel = ptx.Entry[struct{}]{Module: "link", Name: "empty"}
)

// pattern is the word that peer_fill writes at index i, computed with Go's own
// arithmetic from the description beside the kernel.
func pattern(i uint64, seed uint32) uint32 {
	x := i ^ (uint64(seed)<<32 | uint64(seed))
	for _, m := range []uint64{0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53} {
		x = (x ^ x>>33) * m
	}
	x ^= x >> 33
	return uint32(x) ^ uint32(x>>32)
}

func patterns(n int, seed uint32) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = pattern(uint64(i), seed)
	}
	return words
}

// unit is a device under test with one of each thing that tests need.
type unit struct {
	t                  testing.TB
	dev                *cuda.Device
	c                  *cuda.Context
	s                  *cuda.Stream
	m                  *cuda.Module
	fill, check, empty *cuda.Function
}

// units opens n devices and equips each.
func units(t testing.TB, n int) (cuapi.API, []*unit) {
	t.Helper()
	rig := gputest.Open(t, n, nil)
	us := make([]*unit, n)
	for i := range us {
		us[i] = newUnit(t, rig.Devices[i], rig.Context(t, i))
	}
	return rig.Driver.API(), us
}

func newUnit(t testing.TB, dev *cuda.Device, c *cuda.Context) *unit {
	t.Helper()
	u := &unit{t: t, dev: dev, c: c}
	var err error
	u.s, err = c.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, u.s.Close()) })
	image, err := ptx.Module(fillKernel.Module)
	require.NoError(t, err)
	u.m, err = c.LoadModule(image, cuda.JITOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, u.m.Close()) })
	u.fill, err = u.m.Function(fillKernel.Name)
	require.NoError(t, err)
	u.check, err = u.m.Function(checkKernel.Name)
	require.NoError(t, err)
	u.empty, err = u.m.Function(emptyKernel.Name)
	require.NoError(t, err)
	return u
}

// in runs f with the unit's context current.
func (u *unit) in(f func()) {
	u.t.Helper()
	require.NoError(u.t, u.c.Do(func() error { f(); return nil }))
}

func (u *unit) wait() {
	u.t.Helper()
	require.NoError(u.t, u.s.Synchronize(bg))
}

// fillWords enqueues peer_fill on the unit, over memory of whichever device.
func (u *unit) fillWords(s *cuda.Stream, dst cuda.Slice[uint32], seed uint32, grid, block uint32) error {
	p := peerFillParams{Dst: dst.Addr(), Count: uint64(dst.Len()), Seed: seed}
	return u.fill.Launch(s, cuapi.D1(grid), cuapi.D1(block), 0, cuda.ParamBytes(&p))
}

// wrongWords runs peer_check on the unit, over memory of whichever device.
func (u *unit) wrongWords(src cuda.Slice[uint32], seed uint32) uint64 {
	u.t.Helper()
	n := newSlice[uint64](u, 1)
	require.NoError(u.t, cuda.Fill8(u.s, n, 0))
	p := peerCheckParams{Src: src.Addr(), Count: uint64(src.Len()), Mismatches: n.Addr(), Seed: seed}
	require.NoError(u.t, u.check.Launch(u.s, cuapi.D1(7), cuapi.D1(96), 0, cuda.ParamBytes(&p)))
	got, err := cuda.Download(bg, u.s, n)
	require.NoError(u.t, err)
	return got[0]
}

// newSlice allocates memory that lives as long as the test.
func newSlice[T cuda.Scalar](u *unit, n int) cuda.Slice[T] {
	u.t.Helper()
	s, err := cuda.Alloc[T](u.c, n)
	require.NoError(u.t, err)
	u.t.Cleanup(func() { require.NoError(u.t, cuda.Free(s)) })
	return s
}

// upload is newSlice with contents.
func upload[T cuda.Scalar](u *unit, v []T) cuda.Slice[T] {
	u.t.Helper()
	s := newSlice[T](u, len(v))
	require.NoError(u.t, cuda.CopyIn(bg, u.s, s, v))
	return s
}

func download[T cuda.Scalar](u *unit, s cuda.Slice[T]) []T {
	u.t.Helper()
	v, err := cuda.Download(bg, u.s, s)
	require.NoError(u.t, err)
	return v
}

func randomBytes(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b) // never fails
	return b
}

// slow is a launch that keeps a stream busy for some milliseconds: one thread
// writes everything.
func (u *unit) slow(s *cuda.Stream, dst cuda.Slice[uint32], seed uint32) {
	u.t.Helper()
	require.NoError(u.t, u.fillWords(s, dst, seed, 1, 1))
}

// slowWords is the number of words of a slow launch.
func slowWords() int {
	if gputest.Native() {
		return 1 << 21
	}
	return 1 << 14
}
