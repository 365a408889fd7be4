package scene_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

func (r *rig) stream() *cuda.Stream {
	r.Helper()
	st, err := r.Context().NewStream(cuda.StreamOptions{})
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, st.Close()) })
	return st
}

// A query that is still running keeps the geometry it was issued for, and one that
// is issued later on another stream sees the change.
func TestChangesAndQueriesOnOtherStreams(t *testing.T) {
	r := build(t, dynamic(meshT()))
	const n = 2000
	b := batch{}
	for range n {
		b.add(vec{.25, .25, -1}, vec{0, 0, 1})
	}
	rays := r.upload(b)
	require.NoError(t, r.Stream().Synchronize(background))
	st := r.stream()
	var results []*scene.Hits
	for i := range 6 {
		h, err := r.Intersect(background, rays, scene.None, scene.OnStream(st))
		require.NoError(t, err)
		results = append(results, h)
		r.update(0, up(meshT(), float32(i+1)))
		r.sync()
		if i == 3 {
			require.NoError(t, r.Build(background))
		}
	}
	require.NoError(t, st.Synchronize(background))
	for i, h := range results {
		for _, x := range r.download(h).t {
			require.Equal(t, float32(i+1), x, "query %d", i)
		}
		require.NoError(t, h.Close())
	}
}

// Streams that queries used may be closed before the scene changes.
func TestClosedStreamsAreForgotten(t *testing.T) {
	r := build(t, dynamic(meshT()))
	rays := r.upload(i1)
	require.NoError(t, r.Stream().Synchronize(background))
	for i := range 5 {
		st, err := r.Context().NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		h, err := r.Intersect(background, rays, scene.None, scene.OnStream(st))
		require.NoError(t, err)
		require.NoError(t, st.Synchronize(background))
		require.NoError(t, st.Close())
		r.update(0, up(meshT(), float32(i)))
		r.sync()
		require.NoError(t, h.Close())
	}
	assert.Equal(t, float32(5), r.t1())
}

func TestConcurrentQueriesAndChanges(t *testing.T) {
	r := build(t, dynamic(meshT()), up(meshQ(), 50))
	rays := r.upload(i1)
	require.NoError(t, r.Stream().Synchronize(background))
	var wg sync.WaitGroup
	for range 4 {
		st := r.stream()
		wg.Go(func() {
			for range 30 {
				h, err := r.Intersect(background, rays, scene.All, scene.OnStream(st))
				if !assert.NoError(t, err) {
					return
				}
				got, err := cuda.Download(background, st, h.T)
				if !assert.NoError(t, err) {
					return
				}
				// Any of the committed heights, never a mixture.
				assert.Contains(t, []float32{1, 2, 3, 4, 5}, got[0])
				assert.NoError(t, h.Close())
			}
		})
	}
	wg.Go(func() {
		for i := range 20 {
			assert.NoError(t, r.UpdateMeshVertices(0, up(meshT(), float32(i%5)).Vertices))
			assert.NoError(t, r.Sync(background))
		}
	})
	wg.Wait()
	r.requireVersions(21, 21, 1)
}

// Queries and closing a scene race: every query is answered or refused.
func TestCloseDuringQueries(t *testing.T) {
	r := build(t, meshT())
	rays := r.upload(i1)
	require.NoError(t, r.Stream().Synchronize(background))
	var wg sync.WaitGroup
	for range 4 {
		st := r.stream()
		wg.Go(func() {
			for {
				h, err := r.Intersect(background, rays, scene.None, scene.OnStream(st))
				if err != nil {
					assert.ErrorIs(t, err, cuda.ErrClosed)
					return
				}
				assert.NoError(t, h.Close())
			}
		})
	}
	for range 3 {
		wg.Go(func() { assert.NoError(t, r.Scene.Close()) })
	}
	wg.Wait()
}

func TestSteadyLoopAllocatesNothingFromTheDriver(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 1))
	r := build(t, randomSoup(rng, 50, .3))
	rays := r.upload(randomBatch(rng, 200))
	pool := r.Context().Pool()
	loop := func(flags scene.Flags, opts ...scene.CallOption) {
		h, err := r.Intersect(background, rays, flags, opts...)
		require.NoError(t, err)
		require.NoError(t, h.Close())
	}
	loop(scene.All)
	before := pool.Stats().DriverAllocs
	for range 20 {
		loop(scene.All)
	}
	assert.Equal(t, before, pool.Stats().DriverAllocs)

	// Into keeps the memory between calls, also for fewer rows and columns.
	h, err := r.Intersect(background, rays, scene.All)
	require.NoError(t, err)
	want := r.download(h)
	addr := h.T.Addr()
	small := r.upload(ray(vec{}, vec{0, 0, 1}))
	before = pool.Stats().DriverAllocs
	same, err := r.Intersect(background, small, scene.None, scene.Into(h))
	require.NoError(t, err)
	assert.Equal(t, before, pool.Stats().DriverAllocs)
	assert.Same(t, h, same)
	assert.Equal(t, 1, h.Rows())
	assert.Zero(t, h.P.Len())
	assert.Equal(t, addr, h.T.Addr())
	_, err = r.Intersect(background, rays, scene.All, scene.Into(h))
	require.NoError(t, err)
	assert.Equal(t, want.exact(), r.download(h).exact())
	require.NoError(t, h.Close())
	_, err = r.Intersect(background, rays, scene.All, scene.Into(h)) // closed: allocated anew
	require.NoError(t, err)
	assert.Equal(t, want.exact(), r.download(h).exact())
	require.NoError(t, h.Close())
}

// A server may make a stream per request and never change its scene: what the
// scene remembers of streams does not grow.
func TestManyStreamsOnASceneThatNeverChanges(t *testing.T) {
	var ledger *wrap.Ledger
	g := gputest.Open(t, 1, func(api cuapi.API) cuapi.API {
		ledger = wrap.NewLedger(api)
		return ledger
	})
	r := openOn(t, g.Context(t, 0))
	r.add(dynamic(meshT()))
	require.NoError(t, r.Build(background))
	rays := r.upload(i1)
	require.NoError(t, r.Stream().Synchronize(background))
	held := r.stream()
	request := func() {
		st, err := r.Context().NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		h, err := r.Intersect(background, rays, scene.None, scene.OnStream(st))
		require.NoError(t, err)
		got, err := cuda.Download(background, st, h.T)
		require.NoError(t, err)
		require.Equal(t, []float32{1}, got)
		require.NoError(t, h.Close())
		require.NoError(t, st.Close())
	}
	hits, err := r.Intersect(background, rays, scene.None, scene.OnStream(held))
	require.NoError(t, err)
	for range 500 {
		request()
	}
	assert.Less(t, ledger.Total().Events, 250)

	// Streams that were forgotten are ordered like new ones.
	hits, err = r.Intersect(background, rays, scene.None, scene.OnStream(held), scene.Into(hits))
	require.NoError(t, err)
	r.update(0, up(meshT(), 2))
	r.sync()
	got, err := cuda.Download(background, held, hits.T)
	require.NoError(t, err)
	assert.Equal(t, []float32{1}, got)
	hits, err = r.Intersect(background, rays, scene.None, scene.OnStream(held), scene.Into(hits))
	require.NoError(t, err)
	got, err = cuda.Download(background, held, hits.T)
	require.NoError(t, err)
	assert.Equal(t, []float32{3}, got)
	require.NoError(t, hits.Close())
}

// The same from many goroutines, some of which keep a stream.
func TestManyStreamsFromManyGoroutines(t *testing.T) {
	r := build(t, dynamic(meshT()))
	rays := r.upload(i1)
	require.NoError(t, r.Stream().Synchronize(background))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var st *cuda.Stream
			var err error
			for k := range 60 {
				if st == nil {
					if st, err = r.Context().NewStream(cuda.StreamOptions{}); !assert.NoError(t, err) {
						return
					}
				}
				h, err := r.Intersect(background, rays, scene.None, scene.OnStream(st))
				if !assert.NoError(t, err) {
					return
				}
				got, err := cuda.Download(background, st, h.T)
				assert.NoError(t, err)
				assert.Equal(t, []float32{1}, got)
				assert.NoError(t, h.Close())
				if i%2 == 0 || k == 59 {
					assert.NoError(t, st.Close())
					st = nil
				}
			}
		})
	}
	wg.Wait()
}
