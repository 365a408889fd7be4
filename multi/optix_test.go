package multi

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/optixtest"
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

// optixDriver opens two devices with OptiX: GPUs, or emulated ones with a stand-in,
// which is nil on GPUs.
func optixDriver(t *testing.T, cfg fakeoptix.Config) (*cuda.Driver, []int, *optixtest.Rig) {
	t.Helper()
	if gputest.Native() {
		r := gputest.Open(t, 2, nil)
		return r.Driver, ordinals(r, 2), nil
	}
	r := optixtest.Open(t, 2, cfg)
	return r.Driver, []int{0, 1}, r
}

// Two devices give the rows of one, through a Sync and with static and dynamic
// meshes; the structures of the static ones are moved or built.
func TestOptixOnSeveralDevices(t *testing.T) {
	rows, faces := 100, 40
	if gputest.Native() {
		rows, faces = 100_000, 300
	}
	rng := rand.New(rand.NewPCG(40, 1))
	moving, still := soup(rng, faces), soup(rng, faces)
	still.Dynamic = false
	for name, c := range map[string]struct {
		meshes []scene.Mesh
		origin string // of the replica, where devices are equal
	}{
		"static":  {[]scene.Mesh{still}, "relocated"},
		"dynamic": {[]scene.Mesh{moving}, "rebuilt"},
		"both":    {[]scene.Mesh{still, moving}, "rebuilt"},
	} {
		t.Run(name, func(t *testing.T) {
			drv, devices, _ := optixDriver(t, fakeoptix.Config{})
			opts := anyFloor(1, 1)
			opts.Backend = scene.OptiX
			set := newScene(t, drv, devices, opts)
			build(t, set, c.meshes...)
			require.Equal(t, []string{"built", c.origin}, set.Origins())
			require.Equal(t, scene.OptiX, set.Backend())
			one, err := scene.New(set.Context(), scene.Options{Backend: scene.OptiX})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, one.Close()) })
			build(t, one, c.meshes...)
			b := randomBatch(rng, rows)
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
				// otherwise; the same winner has the same columns.
				t.Logf("%d of %d winners differ", differ, rows)
				if !gputest.Native() || differ == 0 {
					require.Equal(t, want, have)
				}
				require.LessOrEqual(t, differ, rows/100)
			}
			same()
			for id, m := range c.meshes {
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

// The first Build, or WarmUp, starts and compiles on all devices at the same time,
// and a second one nothing more.
func TestOptixWarmUpIsConcurrent(t *testing.T) {
	if gputest.Native() {
		t.Skip("needs the stand-in, which can stop inside a call")
	}
	rng := rand.New(rand.NewPCG(41, 1))
	// use builds a set of so many meshes twice.
	use := func(t *testing.T, drv *cuda.Driver, meshes int) {
		s, err := create(drv, []int{0, 1}, Options{}, 64)
		require.NoError(t, err)
		all := make([]scene.Mesh, meshes)
		for i := range all {
			all[i] = soup(rng, 10)
		}
		build(t, s, all...)
		require.Equal(t, scene.OptiX, s.Backend(), s.BackendReason())
		require.NoError(t, s.Build(bg))
		require.NoError(t, s.Close())
	}
	for name, c := range map[string]struct {
		warm     func(t *testing.T, drv *cuda.Driver)
		programs int // sets of them, on each device
	}{
		"WarmUp": {func(t *testing.T, drv *cuda.Driver) {
			_, err := WarmUp(bg, drv, []int{0, 1})
			require.NoError(t, err)
			use(t, drv, 1)
			use(t, drv, 3)
		}, 2 * 3}, // closest hits, reflections, visibility
		"Build of one mesh":       {func(t *testing.T, drv *cuda.Driver) { use(t, drv, 1) }, 1},
		"Build of several meshes": {func(t *testing.T, drv *cuda.Driver) { use(t, drv, 3) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			// The two devices meet in every start and compilation.
			meet := map[string]chan struct{}{
				"optixDeviceContextCreate": make(chan struct{}), "optixModuleCreate": make(chan struct{}),
			}
			r := optixtest.Open(t, 2, fakeoptix.Config{RTCores: 30, OnCall: func(function string) {
				if meet[function] == nil {
					return
				}
				select {
				case meet[function] <- struct{}{}:
				case <-meet[function]:
				case <-time.After(20 * time.Second):
					t.Error("one device waits for the other")
				}
			}})
			c.warm(t, r.Driver)
			assert.Equal(t, 2*c.programs, r.Calls("optixModuleCreate"))
			assert.Equal(t, 2, r.Calls("optixDeviceContextCreate"))
		})
	}
}

// Without a warm-up the copy to the replica makes what is missing.
func TestOptixNoWarmUp(t *testing.T) {
	drv, devices, _ := optixDriver(t, fakeoptix.Config{})
	for _, noWarmUp := range []bool{true, false} {
		s, err := New(drv, devices, Options{Backend: scene.OptiX, NoWarmUp: noWarmUp})
		require.NoError(t, err)
		build(t, s, soup(rand.New(rand.NewPCG(42, 1)), 10))
		require.NoError(t, s.Close())
	}
}

// Sums on grids are traced by our own tree with either backend: a set with OptiX has the bits of one device without, also
// after a Sync, which its trees have to follow.
func TestOptixSetsSumGrids(t *testing.T) {
	const states, rows = 3, 24
	drv, devices, _ := optixDriver(t, fakeoptix.Config{})
	m := room(rngOf(116))
	m.Dynamic = true
	faces := len(m.Faces) / 3
	var want []map[string][]byte
	for _, c := range []struct {
		backend scene.Backend
		devices []int
		weights []float64
	}{{scene.CUDA, devices[:1], []float64{1}}, {scene.OptiX, devices, []float64{1, 1}}} {
		opts := anyFloor(c.weights...)
		opts.Backend, opts.MinLanesPerDevice = c.backend, 1
		s := newScene(t, drv, c.devices, opts)
		build(t, s, m)
		require.Equal(t, c.backend, s.Backend(), s.BackendReason())
		tables := newTables(t, s, wedgeStates(rngOf(117), states, faces), faces)
		t.Cleanup(func() { tables.close(t) })
		in, free := newRadioInputs(t, rngOf(118), s.Stream(), rows, states)
		t.Cleanup(free)
		var have []map[string][]byte
		for _, by := range []float32{1, .8} {
			moved := make([]float32, len(m.Vertices))
			for i, x := range m.Vertices {
				moved[i] = by * x
			}
			require.NoError(t, s.UpdateMeshVertices(0, moved))
			require.NoError(t, s.Sync(bg))
			for _, a := range accumulations(in, rows, 200) {
				var info CallInfo
				have = append(have, a.answer(t, s, tables, nil, Info(&info)))
				require.Equal(t, len(c.devices) > 1, info.Plan.Shards[len(c.devices)-1].Begin > 0, a.name)
			}
		}
		if want == nil {
			want = have
			require.NotEqual(t, want[0], want[len(want)/2], "the walls have moved")
		}
		require.Equal(t, want, have)
	}
}
