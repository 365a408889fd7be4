package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

// TestHardwarePeerAccess has the kernels of each device write and read the
// memory of the other one.
func TestHardwarePeerAccess(t *testing.T) {
	api, us := units(t, 2)
	const n = 1<<16 + 5
	for i, a := range us {
		b := us[1-i]
		ok, err := a.dev.CanAccessPeer(b.dev)
		require.NoError(t, err)
		if !ok {
			assert.ErrorIs(t, a.c.EnablePeer(b.c), cuapi.ErrorPeerAccessUnsupported)
			t.Logf("no peer access from device %d to device %d", a.dev.Ordinal(), b.dev.Ordinal())
			continue
		}
		require.NoError(t, a.c.EnablePeer(b.c))
		require.NoError(t, a.c.EnablePeer(b.c), "enabled already")
		a.in(func() {
			assert.Equal(t, cuapi.ErrorPeerAccessAlreadyEnabled, api.CtxEnablePeerAccess(b.c.Handle(), 0))
		})
		seed := uint32(100 + i)
		theirs := newSlice[uint32](b, n)
		require.NoError(t, cuda.Fill8(b.s, theirs, 0))
		b.wait()
		require.NoError(t, a.fillWords(a.s, theirs, seed, 16, 256))
		a.wait()
		assert.Zero(t, b.wrongWords(theirs, seed), "written by device %d", a.dev.Ordinal())
		assert.Equal(t, patterns(n, seed), download(b, theirs))
		assert.Zero(t, a.wrongWords(theirs, seed), "read by device %d", a.dev.Ordinal())

		// A chain without the host: b writes, a waits, reads and answers.
		e, err := b.c.NewEvent(cuda.EventOptions{})
		require.NoError(t, err)
		mine := newSlice[uint32](a, n)
		require.NoError(t, b.fillWords(b.s, theirs, seed+50, 3, 64))
		require.NoError(t, b.s.Record(e))
		require.NoError(t, a.s.Wait(e))
		require.NoError(t, cuda.CopyAsync(a.s, mine, theirs))
		assert.Zero(t, a.wrongWords(mine, seed+50), "copied over the link")
		require.NoError(t, e.Close())
	}
	for i, a := range us {
		b := us[1-i]
		ok, err := a.dev.CanAccessPeer(b.dev)
		require.NoError(t, err)
		if ok {
			a.in(func() {
				assert.Equal(t, cuapi.Success, api.CtxDisablePeerAccess(b.c.Handle()))
				assert.Equal(t, cuapi.ErrorPeerAccessNotEnabled, api.CtxDisablePeerAccess(b.c.Handle()))
			})
		}
	}
	var bad *cuda.ArgumentError
	assert.ErrorAs(t, us[0].c.EnablePeer(us[0].c), &bad)
	assert.ErrorAs(t, us[0].c.EnablePeer(nil), &bad)
}
