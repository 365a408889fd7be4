package multi

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// On emulated devices an explicit OptiX is refused by Build, which names the
// reason, and leaves the set usable for another try.
func TestOptixRefusedOnEmulator(t *testing.T) {
	if gputest.Native() {
		t.Skip("the devices are GPUs")
	}
	r := gputest.Open(t, 2, nil)
	s := newScene(t, r.Driver, ordinals(r, 2), Options{Backend: scene.OptiX})
	_, err := s.AddMesh(soup(rand.New(rand.NewPCG(1, 2)), 5))
	require.NoError(t, err)
	err = s.Build(bg)
	require.ErrorIs(t, err, scene.ErrBackendUnavailable)
	require.ErrorContains(t, err, "emulated")
	assert.False(t, s.IsReady())
}

// Two GPUs give the rows of one, through a Sync and with static and dynamic
// meshes; the structures of the static ones are moved or built.
func TestOptixOnSeveralDevices(t *testing.T) {
	if !gputest.Native() {
		t.Skip("OptiX needs GPUs: set " + gputest.DevicesVariable)
	}
	r := gputest.Open(t, 2, nil)
	rng := rand.New(rand.NewPCG(40, 1))
	moving := soup(rng, 300)
	still := soup(rng, 300)
	still.Dynamic = false
	for name, meshes := range map[string][]scene.Mesh{"static": {still}, "dynamic": {moving}, "both": {still, moving}} {
		t.Run(name, func(t *testing.T) {
			opts := anyFloor(1, 1)
			opts.Backend = scene.OptiX
			set := newScene(t, r.Driver, ordinals(r, 2), opts)
			build(t, set, meshes...)
			t.Log("structures:", set.Origins())
			require.Equal(t, "built", set.Origins()[0])
			one, err := scene.New(set.Context(), scene.Options{Backend: scene.OptiX})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, one.Close()) })
			build(t, one, meshes...)
			b := randomBatch(rng, 100_000)
			same := func() {
				t.Helper()
				want, have := answer(t, one, b, scene.All), answer(t, set, b, scene.All)
				differ := 0
				for row := range want[9] {
					if want[9][row] != have[9][row] {
						differ++
					}
				}
				// Structures that were built apart may answer rows that meet an edge
				// otherwise (never seen); the same winner has the same columns.
				t.Logf("%d of %d winners differ", differ, len(want[9]))
				require.LessOrEqual(t, differ, len(want[9])/100)
				if differ == 0 {
					require.Equal(t, want, have)
				}
			}
			same()
			for id, m := range meshes {
				if !m.Dynamic {
					continue
				}
				v := make([]float32, len(m.Vertices))
				for i := range v {
					v[i] = 1.1 * m.Vertices[i]
				}
				require.NoError(t, set.UpdateMeshVertices(id, v))
				require.NoError(t, one.UpdateMeshVertices(id, v))
			}
			require.NoError(t, set.Sync(bg))
			require.NoError(t, one.Sync(bg))
			same()
		})
	}
}
