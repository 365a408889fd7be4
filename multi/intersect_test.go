package multi

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// sizes of the sets that are compared with one device. On GPUs only as many
// as there are devices; the smallest set is always required.
func sizes(t *testing.T) (counts []int, rig *gputest.Rig) {
	gputest.Need(t, 2)
	most := gputest.UpTo(8)
	return slices.DeleteFunc([]int{2, 3, 8}, func(n int) bool { return n > most }), gputest.Open(t, most, nil)
}

// One device and many give the same bits: for random scenes, batches, sizes
// (0 and 1 among them), weights, masks, bounds, columns and transports.
func TestMultiSceneSameBits(t *testing.T) {
	counts, rig := sizes(t)
	rng := rand.New(rand.NewPCG(41, 42))
	batches, perScene := 300, 30
	if testing.Short() {
		batches, perScene = 40, 20
	}
	one := make([]*Scene, 0, batches/perScene)
	sets := map[int]*Scene{}
	for _, n := range counts {
		sets[n] = newScene(t, rig.Driver, ordinals(rig, n), anyFloor())
	}
	hits, divided := 0, 0
	for i := range batches {
		if i%perScene == 0 {
			m := soup(rng, 1+rng.IntN(80))
			plain := newScene(t, rig.Driver, ordinals(rig, 1), Options{})
			build(t, plain, m)
			one = append(one, plain)
			for _, n := range counts {
				// A set cannot forget meshes: make a fresh one for each scene but
				// keep its links, which the self-test has already shown to work.
				sets[n] = renew(t, sets[n])
				build(t, sets[n], m)
			}
		}
		n := []int{0, 1, 2, 7, rng.IntN(40), rng.IntN(400)}[rng.IntN(6)]
		b := randomBatch(rng, n)
		flags := scene.Flags(rng.IntN(8))
		want := answer(t, one[len(one)-1], b, flags)
		for _, v := range want[0] {
			if v != 0x7f800000 {
				hits++
			}
		}
		for _, k := range counts {
			s := sets[k]
			s.opts.Weights = randomWeights(rng, k)
			s.transport = []chunked.Transport{chunked.Direct, chunked.Copy}[rng.IntN(2)]
			got := answer(t, s, b, flags)
			require.Equal(t, want, got, "batch %d: %d rows, %d devices, weights %v, %v, flags %v", i, n, k, s.opts.Weights, s.transport, flags)
			if p, err := s.Plan(IntersectOp(flags, 24), int64(n)); err == nil && !p.Kind.Whole() {
				divided++
			}
		}
	}
	require.Greater(t, hits, batches, "the batches hit next to nothing")
	require.Greater(t, divided, batches/2, "next to no batch was divided")
}

// renew makes an empty set over the same devices without testing the links
// again.
func renew(t *testing.T, old *Scene) *Scene {
	t.Helper()
	s := &Scene{drv: old.drv, devices: old.devices, opts: old.opts, links: old.links, transport: chunked.Direct}
	for _, c := range old.ctxs {
		again, err := c.Device().Retain()
		require.NoError(t, err)
		s.ctxs = append(s.ctxs, again)
	}
	require.NoError(t, s.open())
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func randomWeights(rng *rand.Rand, n int) []float64 {
	w := make([]float64, n)
	for {
		for p := range w {
			w[p] = float64(rng.IntN(4))
		}
		if chunked.CheckWeights("", w, n) == nil {
			return w
		}
	}
}

// A call on a stream of the caller's sees inputs written there before, and
// its result may be read there, while another stream runs unrelated work.
func TestMultiSceneCallerStream(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	rng := rand.New(rand.NewPCG(1, 1))
	s := newScene(t, rig.Driver, ordinals(rig, 2), anyFloor())
	build(t, s, soup(rng, 40))
	for _, tr := range []chunked.Transport{chunked.Direct, chunked.Copy} {
		s.transport = tr
		b := randomBatch(rng, 300)
		want := answer(t, s.Master(), b, scene.All)
		st, err := s.Context().NewStream(cudaStream())
		require.NoError(t, err)
		rays, free := b.rays(t, st)
		h, err := s.Intersect(bg, rays, scene.All, scene.OnStream(st))
		require.NoError(t, err)
		require.Equal(t, want, download(t, st, h))
		require.NoError(t, h.Close())
		free()
		require.NoError(t, st.Close())
	}
}

// The plan is what runs: launches and copies of a call, counted.
func TestMultiScenePlanIsExecuted(t *testing.T) {
	n := gputest.UpTo(3)
	rig, trace := traced(t, n)
	rng := rand.New(rand.NewPCG(2, 2))
	s := newScene(t, rig.Driver, ordinals(rig, n), anyFloor())
	build(t, s, soup(rng, 30))
	b := batch{o: make([]float32, 90), d: make([]float32, 90)}
	rays, free := b.rays(t, s.Stream())
	defer free()
	for _, c := range []struct {
		transport        chunked.Transport
		weights          []float64
		pieces           int // of a remote's share; 1: NoPipeline
		launches, copies int
	}{
		{chunked.Direct, []float64{1, 0}, 1, 2, 0},
		{chunked.Direct, []float64{1, 1}, 1, 4, 0},
		{chunked.Direct, []float64{0, 1}, 1, 2, 0},
		{chunked.Copy, []float64{1, 1}, 1, 4, 3},
		{chunked.Copy, []float64{1, 1}, 3, 8, 9},
		{chunked.Host, []float64{1, 1}, 3, 8, 18},
		{chunked.Direct, []float64{1, 0, 0}, 1, 2, 0},
		{chunked.Direct, []float64{1, 1, 1}, 1, 6, 0},
		{chunked.Direct, []float64{0, 1, 0}, 1, 2, 0},
		{chunked.Copy, []float64{1, 1, 1}, 1, 6, 6},
		{chunked.Copy, []float64{1, 0, 2}, 1, 4, 3},
	} {
		if len(c.weights) > n {
			continue // a case for more devices than there are
		}
		t.Run(fmt.Sprint(c.transport, c.weights, c.pieces), func(t *testing.T) {
			for len(c.weights) < n {
				c.weights = append(c.weights, 0)
			}
			s.opts.Weights, s.transport = c.weights, c.transport
			s.opts.NoPipeline, s.opts.PipelineChunks = c.pieces == 1, max(c.pieces, 2)
			before := trace.counts()
			h, err := s.Intersect(bg, rays, scene.All)
			require.NoError(t, err)
			after := trace.counts()
			require.NoError(t, h.Close())
			require.Equal(t, c.launches, after.launches-before.launches, "launches")
			require.Equal(t, c.copies, after.copies-before.copies, "copies")
			require.Zero(t, after.waits-before.waits, "host waits")
		})
	}
	// Once the pools are warm a call allocates nothing on the device.
	s.opts.Weights = nil
	before := trace.counts()
	for range 10 {
		h, err := s.Intersect(bg, rays, scene.All)
		require.NoError(t, err)
		require.NoError(t, h.Close())
	}
	require.Equal(t, before.allocs, trace.counts().allocs)
}
