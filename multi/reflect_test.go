package multi

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// chainWords are the columns of a result as raw words.
type chainWords struct {
	valid []uint8
	words [6][]uint32
}

func reflected(t testing.TB, s *Scene, b batch, bounces int, fields scene.ChainFields) (w chainWords) {
	t.Helper()
	rays, free := b.rays(t, s.Stream())
	defer free()
	c, err := s.TraceReflections(bg, rays, bounces, fields)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	if c.Rows() > 0 {
		w.valid, err = cuda.Download(bg, s.Stream(), c.Valid)
		require.NoError(t, err)
	}
	for i, v := range []cuda.Slice[float32]{c.T, c.ImageSources, c.HitPoints, c.Normals, c.Barycentric} {
		w.words[i] = raw(t, s.Stream(), v)
	}
	w.words[5] = raw(t, s.Stream(), c.PrimIDs)
	return w
}

// room is walls around a soup, so that chains go on.
func room(rng *rand.Rand) scene.Mesh {
	m := soup(rng, 30)
	n := int32(len(m.Vertices) / 3)
	for i := range 8 {
		m.Vertices = append(m.Vertices, float32(i&1)*6-3, float32(i>>1&1)*6-3, float32(i>>2&1)*6-3)
	}
	for _, q := range [6][4]int32{{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}} {
		m.Faces = append(m.Faces, n+q[0], n+q[1], n+q[2], n+q[0], n+q[2], n+q[3])
	}
	return m
}

// One device and many give the same bits, wherever the batch is cut.
func TestMultiReflectionSameBits(t *testing.T) {
	counts, rig := sizes(t)
	rng := rand.New(rand.NewPCG(51, 52))
	m := room(rng)
	one := newScene(t, rig.Driver, ordinals(rig, 1), Options{})
	build(t, one, m)
	var sets []*Scene
	for _, n := range counts {
		sets = append(sets, newScene(t, rig.Driver, ordinals(rig, n), anyFloor()))
		build(t, sets[len(sets)-1], m)
	}
	long, divided := 0, 0
	for i := range 40 {
		n := []int{0, 1, 2, 7, rng.IntN(40), rng.IntN(400)}[rng.IntN(6)]
		b := randomBatch(rng, n)
		bounces, fields := []int{1, 2, 3, 5, 64}[rng.IntN(5)], scene.ChainFields(rng.IntN(16))
		want := reflected(t, one, b, bounces, fields)
		for k, v := range want.valid {
			if v == 1 && k%bounces == bounces-1 {
				long++
			}
		}
		for k, s := range sets {
			s.opts.Weights = randomWeights(rng, counts[k])
			s.transport = []chunked.Transport{chunked.Direct, chunked.Copy}[rng.IntN(2)]
			got := reflected(t, s, b, bounces, fields)
			require.Equal(t, want, got, "batch %d: %d rows, %d bounces, %d devices, weights %v, %v, %v", i, n, bounces, counts[k], s.opts.Weights, s.transport, fields)
			if p, err := s.Plan(ReflectionsOp(bounces, fields, 24), int64(n)); err == nil && !p.Kind.Whole() {
				divided++
			}
		}
	}
	require.Greater(t, long, 200, "next to no chain is complete")
	require.Greater(t, divided, 20, "next to no batch was divided")
}

// Two devices of the OptiX backend give the rows of one.
func TestMultiReflectionOptix(t *testing.T) {
	drv, devices, _ := optixDriver(t, fakeoptix.Config{})
	rng := rand.New(rand.NewPCG(53, 1))
	m, more := room(rng), soup(rng, 10)
	opts := anyFloor(2, 1)
	opts.Backend = scene.OptiX
	two := newScene(t, drv, devices, opts)
	one := newScene(t, drv, devices[:1], Options{Backend: scene.OptiX})
	own := newScene(t, drv, devices[:1], Options{Backend: scene.CUDA})
	for _, s := range []*Scene{one, two, own} {
		build(t, s, m, more)
	}
	b := randomBatch(rng, 60)
	want := reflected(t, one, b, 4, scene.ChainAll)
	require.Equal(t, want, reflected(t, two, b, 4, scene.ChainAll))
	if !gputest.Native() { // the stand-in breaks ties as we do
		require.Equal(t, want, reflected(t, own, b, 4, scene.ChainAll))
	}
}

// Paths of a set are those that rows of one device have, and a remote part is merged.
func TestPathsOfASet(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	s := newScene(t, rig.Driver, ordinals(rig, 2), anyFloor())
	_, err := s.DedupReflections(bg, scene.Paths{Bounces: 1})
	require.ErrorIs(t, err, scene.ErrNotReady)
	build(t, s, room(rand.New(rand.NewPCG(54, 1))))
	surfaces, err := s.PlanarSurfaces(bg)
	require.NoError(t, err)
	walls := surfaces[len(surfaces)-12:]
	for i := range 6 {
		require.Equal(t, walls[2*i], walls[2*i+1], "the halves of a wall")
	}
	b := randomBatch(rand.New(rand.NewPCG(55, 1)), 60)
	b.tmax, b.active = nil, nil
	rays, free := b.rays(t, s.Stream())
	defer free()
	c, err := s.TraceReflections(bg, rays, 1, scene.ChainCore)
	require.NoError(t, err)
	ids, err := cuda.Download(bg, s.Stream(), c.PrimIDs)
	require.NoError(t, err)
	key := upload(t, s.Stream(), make([]int32, c.Rows()))
	canonical := upload(t, s.Stream(), surfaces)
	u, err := s.DedupReflections(bg, scene.Paths{PrimIDs: c.PrimIDs, Bounces: 1, SourceKey: key, Canonical: canonical})
	require.NoError(t, err)
	merged, err := s.MergeUnique(bg, canonical, u)
	require.NoError(t, err)
	want := map[int32]int64{} // rows by surface
	for _, id := range ids {
		if id >= 0 {
			want[surfaces[id]]++
		}
	}
	require.Greater(t, len(want), 5)
	for _, v := range []*scene.UniqueChains{u, merged} {
		got := map[int32]int64{}
		first, err := cuda.Download(bg, s.Stream(), v.PrimIDs)
		require.NoError(t, err)
		count, err := cuda.Download(bg, s.Stream(), v.DiscoveryCount)
		require.NoError(t, err)
		for g := range first {
			got[surfaces[first[g]]] += count[g]
		}
		require.Equal(t, want, got)
		require.EqualValues(t, len(want), v.Count)
		require.NoError(t, v.Close())
	}
	require.NoError(t, c.Close())
	require.NoError(t, cuda.Free(key))
	require.NoError(t, cuda.Free(canonical))
}

func TestMultiReflectionOp(t *testing.T) {
	rig := gputest.Open(t, 1, nil)
	s := newScene(t, rig.Driver, ordinals(rig, 1), Options{})
	build(t, s, soup(rand.New(rand.NewPCG(1, 1)), 4))
	b := batch{o: make([]float32, 6), d: make([]float32, 6), tmax: make([]float32, 2), active: make([]uint8, 2)}
	rays, free := b.rays(t, s.Stream())
	defer free()
	_, call, err := s.master().scene.PrepareReflections(bg, rays, 4, scene.ChainImages)
	require.NoError(t, err)
	require.Equal(t, ReflectionsOp(4, scene.ChainImages, 29), reflectOperation(4, scene.ChainImages).of(call))
	require.NoError(t, call.Abandon())
	assert.Equal(t, chunked.Op{Key: "trace_reflections:8", Family: "trace_reflections", In: 24, Wire: 32, Record: 72}, ReflectionsOp(8, scene.ChainCore, 24))
}

// The floor rises with the bytes of a row on the link.
func TestMultiReflectionFloors(t *testing.T) {
	for bounces, floor := range map[int]int64{1: 262144, 4: 374492, 8: 524288} {
		for _, c := range []struct {
			remote int64
			kind   chunked.Kind
		}{{floor - 1, chunked.KindMaster}, {floor, chunked.KindDirect}} {
			p, err := chunked.BuildPlan(chunked.Input{
				Op: ReflectionsOp(bounces, scene.ChainCore, 24), Rows: 2 * c.remote, Devices: []int{0, 1}, Transport: chunked.Direct,
				Options: chunked.Options{MinRaysPerDevice: 262144},
			})
			require.NoError(t, err)
			assert.Equal(t, c.kind, p.Kind, "%d bounces, %d rows", bounces, c.remote)
		}
	}
}
