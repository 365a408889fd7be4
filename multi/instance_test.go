package multi

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// turned is a transform that is not near a singular one.
func turned(rng *rand.Rand) [16]float32 {
	m := [16]float32{15: 1}
	for i := range 12 {
		m[i] = .4 * (rng.Float32() - .5)
	}
	m[0], m[5], m[10] = m[0]+1, m[5]-1, m[10]+1
	return m
}

// world is a mesh that stands still, one that moves, and instances of the first.
type world struct {
	still, moving scene.Mesh
	instances     [][16]float32 // ids 2, 3, ...
}

func newWorld(rng *rand.Rand) world {
	w := world{still: soup(rng, 30), moving: soup(rng, 20)}
	w.still.Dynamic = false
	for range 3 {
		w.instances = append(w.instances, turned(rng))
	}
	return w
}

// in builds w in s.
func (w world) in(t testing.TB, s *Scene) {
	t.Helper()
	for id, m := range []scene.Mesh{w.still, w.moving} {
		have, err := s.AddMesh(m)
		require.NoError(t, err)
		require.Equal(t, id, have)
	}
	for i, by := range w.instances {
		id, err := s.AddInstance(0, by, true)
		require.NoError(t, err)
		require.Equal(t, 2+i, id)
	}
	require.NoError(t, s.Build(bg))
	require.Equal(t, []int{5, 2}, []int{s.NumShapes(), s.NumMeshes()})
}

// move stages other places for the mesh and all instances but the last.
func (w world) move(t testing.TB, rng *rand.Rand, s *Scene) world {
	t.Helper()
	to := world{still: w.still, moving: w.moving, instances: append([][16]float32{}, w.instances...)}
	to.moving.Vertices = append([]float32{}, w.moving.Vertices...)
	for i := range to.moving.Vertices {
		to.moving.Vertices[i] += rng.Float32()*.2 - .1
	}
	require.NoError(t, s.UpdateMeshVertices(1, to.moving.Vertices))
	for i := range to.instances[1:] {
		to.instances[i] = turned(rng)
		require.NoError(t, s.SetInstanceTransform(2+i, turned(rng))) // the next one counts
		require.NoError(t, s.SetInstanceTransform(2+i, to.instances[i]))
	}
	return to
}

// Instances on two and three devices are bit for bit those of one device, after
// Build, Sync and a later Build, also on every replica by itself.
func TestMultiSceneInstances(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rig := gputest.Open(t, n, nil)
			rng := rand.New(rand.NewPCG(uint64(n), 11))
			s := newScene(t, rig.Driver, ordinals(rig, n), anyFloor())
			w := newWorld(rng)
			w.in(t, s)
			same := func() {
				t.Helper()
				one := newScene(t, rig.Driver, ordinals(rig, 1), Options{})
				w.in(t, one)
				b := randomBatch(rng, 300)
				want := answer(t, one, b, scene.All)
				require.Contains(t, want[6], uint32(4), "no ray meets the last instance")
				for _, tr := range []chunked.Transport{chunked.Direct, chunked.Copy} {
					s.transport = tr
					require.Equal(t, want, answer(t, s, b, scene.All), tr.String())
				}
				geometry, err := one.GlobalGeometry(bg)
				require.NoError(t, err)
				edges, err := one.EdgeRecords(bg)
				require.NoError(t, err)
				for p, r := range s.replicas {
					have, err := r.scene.GlobalGeometry(bg)
					require.NoError(t, err)
					require.Equal(t, geometry, have, "position %d", p)
					e, err := r.scene.EdgeRecords(bg)
					require.NoError(t, err)
					require.Equal(t, edges, e, "position %d", p)
				}
			}
			same()
			for range 2 {
				w = w.move(t, rng, s)
				require.True(t, s.HasPendingUpdates())
				require.NoError(t, s.Sync(bg))
				same()
			}
			require.Equal(t, int64(3), s.Version())
			w = w.move(t, rng, s)
			require.NoError(t, s.Build(bg))
			same()
		})
	}
}

// Refused transforms, also one that Sync refuses, leave all devices as they were.
func TestRefusedInstances(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	rng := rand.New(rand.NewPCG(3, 11))
	s := newScene(t, rig.Driver, ordinals(rig, 2), anyFloor())
	require.ErrorIs(t, s.SetInstanceTransform(0, turned(rng)), scene.ErrNotReady)
	w := newWorld(rng)
	w.still.Vertices[0] = 2
	w.in(t, s)
	b := randomBatch(rng, 100)
	want := answer(t, s, b, scene.All)
	var arg *scene.ArgumentError
	for _, owner := range []int{1, 2} { // a dynamic mesh, an instance
		_, err := s.AddInstance(owner, turned(rng), true)
		require.ErrorAs(t, err, &arg)
	}
	require.ErrorAs(t, s.SetInstanceTransform(0, turned(rng)), &arg)
	require.ErrorAs(t, s.SetInstanceTransform(2, [16]float32{}), &arg)
	require.False(t, s.HasPendingUpdates())

	huge := [16]float32{0: 3e38, 5: 3e38, 10: 3e38, 15: 1}
	require.NoError(t, s.SetInstanceTransform(3, huge))
	require.ErrorAs(t, s.Sync(bg), &arg)
	require.NotErrorIs(t, s.Sync(bg), ErrDiverged)
	require.True(t, s.IsReady() && s.HasPendingUpdates())
	require.Equal(t, want, answer(t, s, b, scene.All))
	require.NoError(t, s.SetInstanceTransform(3, w.instances[1]))
	require.NoError(t, s.Sync(bg))
	require.Equal(t, want, answer(t, s, b, scene.All))
	require.NoError(t, s.Close())
	_, err := s.AddInstance(0, turned(rng), true)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.SetInstanceTransform(2, turned(rng)), ErrClosed)
}

// A mesh and its instance are two shapes for the programs of OptiX.
func TestOptixInstances(t *testing.T) {
	if gputest.Native() {
		t.Skip("counts the compilations of the stand-in")
	}
	drv, devices, fake := optixDriver(t, fakeoptix.Config{})
	opts := anyFloor(1, 1)
	opts.Backend = scene.OptiX
	set := newScene(t, drv, devices, opts)
	rng := rand.New(rand.NewPCG(4, 11))
	w := newWorld(rng)
	_, err := set.AddMesh(w.still)
	require.NoError(t, err)
	for _, by := range w.instances {
		_, err := set.AddInstance(0, by, true)
		require.NoError(t, err)
	}
	require.NoError(t, set.Build(bg))
	require.Equal(t, []string{"built", "rebuilt"}, set.Origins())
	require.Equal(t, 2, fake.Calls("optixModuleCreate"), "one set of programs per device")
	one, err := scene.New(set.Context(), scene.Options{Backend: scene.CUDA})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, one.Close()) })
	_, err = one.AddMesh(w.still)
	require.NoError(t, err)
	for _, by := range w.instances {
		_, err := one.AddInstance(0, by, true)
		require.NoError(t, err)
	}
	require.NoError(t, one.Build(bg))
	for range 3 {
		b := randomBatch(rng, 100)
		require.Equal(t, answer(t, one, b, scene.All), answer(t, set, b, scene.All))
		by := turned(rng)
		for _, s := range []interface {
			SetInstanceTransform(int, [16]float32) error
		}{one, set} {
			require.NoError(t, s.SetInstanceTransform(2, by))
		}
		require.NoError(t, one.Sync(bg))
		require.NoError(t, set.Sync(bg))
	}
}
