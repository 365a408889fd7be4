package scene_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
)

// Searches with counters of the scheduler's take them in turn and clear nothing; when there are none
// left, a search clears its own.
func TestSearchTakesCounters(t *testing.T) {
	const rows = 1500 // more than threads run at the same time
	e, err := emu.New(2, emu.WithSMs(1))
	require.NoError(t, err)
	trace := wrap.NewTrace(e)
	driver, err := cuda.OpenAPI(trace)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, driver.Close()) })
	contexts := make([]*cuda.Context, 2)
	for i := range contexts {
		d, err := driver.Device(i)
		require.NoError(t, err)
		contexts[i], err = d.Retain()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, contexts[i].Close()) })
	}
	r := openOn(t, contexts[0])
	rng := rand.New(rand.NewPCG(120, 1))
	r.add(randomSoup(rng, 50, .3))
	require.NoError(t, r.Build(background))
	rays := randomBatch(rng, rows)
	want := r.intersect(rays, scene.All)
	hits, call, err := r.PrepareIntersect(background, r.upload(rays), scene.All)
	require.NoError(t, err)
	in, out := call.Columns()
	call.Counters = toDevice(r, make([]uint32, 2*scene.SearchCounters))
	for _, left := range []int{scene.SearchCounters, 0, 0} {
		clears := trace.Count("MemsetD32Async")
		taken := call.Counters.Len() > 0
		require.NoError(t, call.Search(r.Scene, call.Stream, in, out, 0, rows))
		require.Equal(t, left, call.Counters.Len())
		require.Equal(t, taken, trace.Count("MemsetD32Async") == clears)
		require.NoError(t, call.Finalize(0, rows))
		require.Equal(t, want.exact(), r.download(hits).exact())
	}
	call.Counters, err = cuda.Alloc[uint32](contexts[1], scene.SearchCounters)
	require.NoError(t, err)
	var wrong *cuda.WrongDeviceError
	require.ErrorAs(t, call.Search(r.Scene, call.Stream, in, out, 0, rows), &wrong)
	require.NoError(t, cuda.Free(call.Counters))
	require.NoError(t, call.Abandon())
}

// A part of a call lies in memory of the caller's device.
func TestPartOfTheWrongDevice(t *testing.T) {
	a, b := pair(t)
	a.add(meshT())
	require.NoError(t, a.Build(background))
	_, call, err := a.PrepareIntersect(background, a.upload(i1.until(10)), scene.All)
	require.NoError(t, err)
	_, err = call.Part(toDevice(b, make([]uint8, call.PartBytes(1))), 0, 1)
	var wrong *cuda.WrongDeviceError
	require.ErrorAs(t, err, &wrong)
	require.NoError(t, call.Abandon())
}
