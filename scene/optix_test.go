package scene_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/optixtest"
)

// oddBatch is rays of every kind, a part of which must never be traced.
func oddBatch(rng *rand.Rand, n int) batch {
	b := batch{tmax: []float32{}, active: []uint8{}}
	for i := range n {
		o, d := vec{rng.Float32(), rng.Float32(), rng.Float32()}, randomDirection(rng)
		tmax, active := inf, uint8(1)
		switch i % 8 {
		case 1:
			tmax = rng.Float32()
		case 2:
			d = vec{}
		case 3:
			o[i%3] = nan
		case 4:
			d[i%3] = inf
		case 5:
			tmax = []float32{nan, 0, -1, 1e-7}[i/8%4]
		case 6:
			active = 0
		}
		b.add(o, d)
		b.tmax, b.active = append(b.tmax, tmax), append(b.active, active)
	}
	return b
}

// Both backends give the same rows, through builds, refits, rebuilds and instances.
func TestOptixAnswersLikeCUDA(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 1))
	for name, meshes := range map[string][]scene.Mesh{
		"one mesh":         {randomSoup(rng, 60, .4)},
		"one dynamic mesh": {dynamic(randomSoup(rng, 60, .4))},
		"several": {
			randomSoup(rng, 30, .4), dynamic(randomSoup(rng, 20, .4)),
			randomSoup(rng, 10, .4), dynamic(randomSoup(rng, 20, .4)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := optixtest.Open(t, 1, fakeoptix.Config{})
			own, opt := sceneOn(t, r.Driver.Devices()[0], scene.CUDA), sceneOn(t, r.Driver.Devices()[0], scene.OptiX)
			both := []*rig{own, opt}
			for _, s := range both {
				s.add(meshes...)
				require.NoError(t, s.Build(background))
			}
			assert.Equal(t, scene.OptiX, opt.Backend())
			assert.Equal(t, "requested", opt.BackendReason())
			assert.Equal(t, "built", opt.Origin())
			compare := func() {
				t.Helper()
				b := oddBatch(rng, 200)
				require.Equal(t, own.intersect(b, scene.All).exact(), opt.intersect(b, scene.All).exact())
				lo, hi := own.Bounds()
				l, h := opt.Bounds()
				require.Equal(t, [2]vec{lo, hi}, [2]vec{l, h})
			}
			compare()
			for _, by := range []vec{{.1, 0, 0}, {0, -.2, 0}} {
				for _, s := range both {
					for id, m := range meshes {
						if m.Dynamic {
							require.NoError(t, s.UpdateMeshVertices(id, moved(m, by).Vertices))
						}
					}
					require.NoError(t, s.Sync(background))
				}
				compare()
			}
			require.NoError(t, opt.Build(background))
			compare()
		})
	}
}

// A refit suffices while the boxes of the triangles stay what they were, not when
// they have spread.
func TestOptixRefitsAndRebuilds(t *testing.T) {
	var mu sync.Mutex
	var did []optixabi.BuildOperation
	r := optixtest.Open(t, 1, fakeoptix.Config{})
	s := sceneOn(t, r.Driver.Devices()[0], scene.OptiX)
	m := dynamic(randomSoup(rand.New(rand.NewPCG(21, 1)), 40, .2))
	s.add(m)
	require.NoError(t, s.Build(background))
	r.OnBuild = func(b fakeoptix.Build) {
		mu.Lock()
		did = append(did, b.Options.Operation)
		mu.Unlock()
	}
	for _, c := range []struct {
		by   float32
		want optixabi.BuildOperation
	}{{1, optixabi.OperationUpdate}, {1.2, optixabi.OperationUpdate}, {2, optixabi.OperationBuild}, {2.2, optixabi.OperationUpdate}} {
		did = nil
		require.NoError(t, s.UpdateMeshVertices(0, scaled(m, c.by).Vertices))
		require.NoError(t, s.Sync(background))
		assert.Equal(t, []optixabi.BuildOperation{c.want}, did, "scaled by %v", c.by)
	}
}

func TestBackendChoice(t *testing.T) {
	h200 := emu.WithCapability(func(int) (int, int) { return 9, 0 })
	ada := emu.WithCapability(func(int) (int, int) { return 8, 9 })
	old := map[optixabi.ABI]fakeoptix.Answer{}
	for name, c := range map[string]struct {
		cfg     fakeoptix.Config
		chip    emu.Option
		disable string
		auto    scene.Backend
		reason  string // of Auto
		err     error  // of OptiX; nil: it works
		fails   bool   // Auto fails too
	}{
		"cores":              {cfg: fakeoptix.Config{RTCores: 30}, chip: ada, auto: scene.OptiX, reason: "every device has ray-tracing cores"},
		"no cores":           {chip: ada, auto: scene.CUDA, reason: "device 0 (Raymux Emulator) has no ray-tracing cores"},
		"chip without cores": {cfg: fakeoptix.Config{RTCores: 30}, chip: h200, auto: scene.CUDA, reason: "compute capability 9.0"},
		"switched off":       {cfg: fakeoptix.Config{RTCores: 30}, chip: ada, disable: "1", auto: scene.CUDA, reason: "RAYMUX_NO_OPTIX", err: scene.ErrBackendUnavailable},
		"switched off, word": {cfg: fakeoptix.Config{RTCores: 30}, chip: ada, disable: "TRUE", auto: scene.CUDA, reason: "RAYMUX_NO_OPTIX", err: scene.ErrBackendUnavailable},
		"L17, 0":             {cfg: fakeoptix.Config{RTCores: 30}, chip: ada, disable: "0", auto: scene.OptiX},
		"L17, false":         {cfg: fakeoptix.Config{RTCores: 30}, chip: ada, disable: "false", auto: scene.OptiX},
		"old driver":         {cfg: fakeoptix.Config{RTCores: 30, ABIs: old}, chip: ada, auto: scene.CUDA, reason: "too old", err: optixabi.ErrDriverTooOld},
		"device not fit":     {cfg: fakeoptix.Config{Create: optixabi.ErrorNotCompatible}, chip: ada, auto: scene.CUDA, reason: "NOT_COMPATIBLE", err: optixabi.ErrorNotCompatible},
		// A failure is no lack of OptiX, so it is not passed over in silence.
		"failure": {cfg: fakeoptix.Config{Create: optixabi.ErrorHostOutOfMemory}, chip: ada, err: optixabi.ErrorHostOutOfMemory, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("RAYMUX_NO_OPTIX", c.disable)
			r := optixtest.Open(t, 1, c.cfg, c.chip)
			auto, optix, own := sceneOn(t, r.Driver.Devices()[0], scene.Auto), sceneOn(t, r.Driver.Devices()[0], scene.OptiX), sceneOn(t, r.Driver.Devices()[0], scene.CUDA)
			for _, s := range []*rig{auto, optix, own} {
				s.add(meshQ())
			}
			require.NoError(t, own.Build(background))
			calls := r.Calls("")
			err := auto.Build(background)
			if c.fails {
				require.ErrorIs(t, err, c.err)
				require.NotErrorIs(t, err, scene.ErrBackendUnavailable)
			} else {
				require.NoError(t, err)
				assert.Equal(t, c.auto, auto.Backend())
				assert.Contains(t, auto.BackendReason(), c.reason)
			}
			assert.Zero(t, calls, "the CUDA backend calls OptiX")
			err = optix.Build(background)
			if c.err == nil {
				require.NoError(t, err)
				assert.Equal(t, scene.OptiX, optix.Backend())
				return
			}
			require.ErrorIs(t, err, c.err)
			require.Equal(t, !c.fails, errors.Is(err, scene.ErrBackendUnavailable))
			require.False(t, optix.IsReady())
		})
	}
}

// The variable counts at every Build, also after a scene has used OptiX.
func TestL16NoOptixIsReadAtEveryBuild(t *testing.T) {
	r := optixtest.Open(t, 1, fakeoptix.Config{RTCores: 30})
	s, auto := sceneOn(t, r.Driver.Devices()[0], scene.OptiX), sceneOn(t, r.Driver.Devices()[0], scene.Auto)
	s.add(meshQ())
	auto.add(meshQ())
	require.NoError(t, s.Build(background))
	require.NoError(t, auto.Build(background))
	require.Equal(t, scene.OptiX, auto.Backend())
	t.Setenv("RAYMUX_NO_OPTIX", "1")
	require.ErrorIs(t, s.Build(background), scene.ErrBackendUnavailable)
	require.NoError(t, auto.Build(background))
	require.Equal(t, scene.CUDA, auto.Backend())
	t.Setenv("RAYMUX_NO_OPTIX", "") // L17
	require.NoError(t, s.Build(background))
	require.NoError(t, auto.Build(background))
	require.Equal(t, scene.OptiX, auto.Backend())
}

func TestOptixOnEmulatedDevices(t *testing.T) {
	drv, err := cuda.OpenEmulator(1)
	require.NoError(t, err)
	defer func() { require.NoError(t, drv.Close()) }()
	c, err := drv.Devices()[0].Retain()
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	s, err := scene.New(c, scene.Options{Backend: scene.OptiX})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.AddMesh(meshQ())
	require.NoError(t, err)
	err = s.Build(background)
	require.ErrorIs(t, err, scene.ErrBackendUnavailable)
	require.ErrorContains(t, err, "emulated")
	_, err = scene.InspectOptiX(drv.Devices()[0], nil)
	require.ErrorIs(t, err, scene.ErrBackendUnavailable)
}

func TestInspectOptiX(t *testing.T) {
	r := optixtest.Open(t, 1, fakeoptix.Config{RTCores: 30})
	i, err := scene.InspectOptiX(r.Driver.Devices()[0], nil)
	require.NoError(t, err)
	assert.Equal(t, optixabi.ABI105, i.ABI)
	assert.EqualValues(t, 30, i.RTCores)
	assert.Equal(t, "/fake/libnvoptix.so.1", i.Library)
	assert.Positive(t, i.First.Context)
	assert.Positive(t, i.First.Module)
	assert.Positive(t, i.First.Pipeline)
	again, err := scene.InspectOptiX(r.Driver.Devices()[0], nil)
	require.NoError(t, err)
	assert.Equal(t, i, again)
	assert.Equal(t, 1, r.Calls("optixModuleCreate"))
}

// A cache that fails is switched off, and then not reported as the place of
// compiled programs.
func TestInspectOptiXWithoutCache(t *testing.T) {
	r := optixtest.Open(t, 1, fakeoptix.Config{Cache: optixabi.ErrorDiskCachePermissionError})
	i, err := scene.InspectOptiX(r.Driver.Devices()[0], nil)
	require.NoError(t, err)
	assert.Empty(t, i.CachePath)
	assert.Equal(t, 2, r.Calls("optixModuleCreate"), "with the cache, and without")
	works := optixtest.Open(t, 1, fakeoptix.Config{})
	i, err = scene.InspectOptiX(works.Driver.Devices()[0], nil)
	require.NoError(t, err)
	assert.NotEmpty(t, i.CachePath)
}

// What a scene without a logger has to tell goes to the logger of its driver.
func TestLoggerOfTheDriver(t *testing.T) {
	api, err := emu.New(1)
	require.NoError(t, err)
	var text, own bytes.Buffer
	logger := func(to *bytes.Buffer) *slog.Logger {
		return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	drv, err := cuda.OpenAPI(api, cuda.WithLogger(logger(&text)))
	require.NoError(t, err)
	defer func() { require.NoError(t, drv.Close()) }()
	c, err := drv.Devices()[0].Retain()
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	for _, o := range []scene.Options{{}, {Logger: logger(&own)}} {
		s, err := scene.New(c, o)
		require.NoError(t, err)
		_, err = s.AddMesh(meshQ())
		require.NoError(t, err)
		require.NoError(t, s.Build(background))
		require.NoError(t, s.Close())
	}
	assert.Equal(t, 1, strings.Count(text.String(), "built scene"))
	assert.Equal(t, 1, strings.Count(own.String(), "built scene"))
}

func TestUseOptiX(t *testing.T) {
	r := optixtest.Open(t, 1, fakeoptix.Config{})
	other := optixtest.NewFake(t, fakeoptix.Config{})
	defer other.Close()
	var arg *scene.ArgumentError
	require.ErrorAs(t, scene.UseOptiX(r.Driver, other.Library()), &arg)
	require.NoError(t, r.Driver.Close())
	require.ErrorIs(t, scene.UseOptiX(r.Driver, other.Library()), cuda.ErrClosed)
}

func TestParseBackend(t *testing.T) {
	for _, b := range []scene.Backend{scene.Auto, scene.OptiX, scene.CUDA} {
		got, err := scene.ParseBackend(b.String())
		require.NoError(t, err)
		assert.Equal(t, b, got)
	}
	_, err := scene.ParseBackend("gl")
	require.ErrorContains(t, err, "auto, optix or cuda")
}

// optixLife builds, edits and asks a scene, with faults that arm has armed. The rig
// looks for what is left behind. It returns the first failure, after which the scene
// must answer again with at most one Build.
func optixLife(t *testing.T, arm func(*optixtest.Rig)) (*optixtest.Rig, error) {
	t.Helper()
	rng := rand.New(rand.NewPCG(22, 1))
	meshes := []scene.Mesh{randomSoup(rng, 20, .4), dynamic(randomSoup(rng, 20, .4))}
	end, turned := moved(meshes[1], vec{.1, 0, 0}), randomTransform(rng)
	b := oddBatch(rng, 40)
	r := optixtest.Open(t, 1, fakeoptix.Config{})
	want := sceneOn(t, r.Driver.Devices()[0], scene.CUDA)
	want.add(meshes[0], end, transformed(meshes[0], turned))
	require.NoError(t, want.Build(background))
	table := want.intersect(b, scene.All)
	s := sceneOn(t, r.Driver.Devices()[0], scene.OptiX)
	s.add(meshes...)
	s.instance(0, shiftBy(vec{2, 0, 0}), true)
	rays := s.upload(b)
	arm(r)
	err := s.Build(background)
	if err == nil {
		require.NoError(t, s.UpdateMeshVertices(1, end.Vertices))
		require.NoError(t, s.SetInstanceTransform(2, turned))
		err = s.Sync(background)
	}
	var h *scene.Hits
	if err == nil {
		h, err = s.Intersect(background, rays, scene.All)
	}
	r.ClearFaults()
	r.Fault.Reset()
	if err == nil {
		require.Equal(t, table.exact(), s.download(h).exact())
		require.NoError(t, h.Close())
		return r, nil
	}
	if !s.IsReady() {
		require.NoError(t, s.Build(background))
	}
	require.NoError(t, s.UpdateMeshVertices(1, end.Vertices))
	require.NoError(t, s.SetInstanceTransform(2, turned))
	require.NoError(t, s.Sync(background))
	require.Equal(t, table.exact(), s.intersect(b, scene.All).exact())
	return r, err
}

// Whatever call of the library fails, nothing is left behind.
func TestEveryFailingOptixCallLeavesNothingBehind(t *testing.T) {
	r, err := optixLife(t, func(*optixtest.Rig) {})
	require.NoError(t, err)
	calls := r.Calls("")
	require.Greater(t, calls, 20)
	failed := 0
	for k := 1; k <= calls; k++ {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			_, err := optixLife(t, func(r *optixtest.Rig) { r.FailAt(k, optixabi.ErrorInternalError) })
			if err != nil {
				require.ErrorIs(t, err, optixabi.ErrorInternalError)
				failed++
			}
		})
	}
	// The calls about the disk cache may fail without harm.
	assert.Greater(t, failed, calls/2)
}

// Full memory is tried again once, with the pool emptied, and leaves a scene that was
// built as it was.
func TestOptixOutOfMemory(t *testing.T) {
	var s *rig
	var cached []bool // whether the pool kept memory, at each compilation
	r := optixtest.Open(t, 1, fakeoptix.Config{OnCall: func(function string) {
		if function == "optixModuleCreate" {
			cached = append(cached, s.Context().Pool().Stats().BytesCached > 0)
		}
	}})
	s = sceneOn(t, r.Driver.Devices()[0], scene.OptiX)
	s.add(meshQ())
	unused, err := cuda.Alloc[float32](s.Context(), 1<<20)
	require.NoError(t, err)
	require.NoError(t, cuda.PoolFree(s.Context().Pool(), s.Stream(), unused))
	r.FailCall("optixModuleCreate", 1, optixabi.ErrorDeviceOutOfMemory)
	require.NoError(t, s.Build(background))
	assert.Equal(t, []bool{true, false}, cached)

	probe := ray(vec{.25, .1, 1}, vec{0, 0, -1})
	want := s.intersect(probe, scene.All)
	for _, code := range []optixabi.Result{optixabi.ErrorDeviceOutOfMemory, optixabi.ErrorHostOutOfMemory} {
		r.FailCall("optixAccelBuild", 1, code)
		require.ErrorIs(t, s.Build(background), code)
		require.True(t, s.IsReady())
		require.Equal(t, want.exact(), s.intersect(probe, scene.All).exact())
	}
}

// The same for the calls of the CUDA driver between them.
func TestEveryFailingCallOfAnOptixSceneLeavesNothingBehind(t *testing.T) {
	optixtest.NewFake(t, fakeoptix.Config{}).Close() // or skip here
	for _, method := range []string{
		"DevicePrimaryCtxRetain", "ModuleLoadDataEx", "ModuleGetFunction", "MemAlloc", "StreamCreateWithPriority",
		"EventCreate", "EventRecord", "LaunchKernel", "MemcpyHtoDAsync", "MemcpyDtoHAsync",
	} {
		for k := 1; k < 64; k++ {
			fired := false
			t.Run(fmt.Sprint(method, " ", k), func(t *testing.T) {
				_, err := optixLife(t, func(r *optixtest.Rig) {
					require.NoError(t, r.Fault.FailCall(method, k, cuapi.ErrorInvalidValue))
				})
				if fired = err != nil; fired {
					require.ErrorIs(t, err, cuapi.ErrorInvalidValue)
				}
			})
			if !fired {
				require.Greater(t, k, 1, "%s is never called", method)
				break
			}
		}
	}
}

// Two goroutines build, query and drop scenes at once, from a cold start each time.
func TestOptixScenesAtOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 1))
	m := randomSoup(rng, 20, .4)
	b := oddBatch(rng, 32)
	want := build(t, m).intersect(b, scene.All)
	watchdog := time.AfterFunc(120*time.Second, func() {
		panic("scenes that are built and dropped at once wait for each other")
	})
	defer watchdog.Stop()
	for trial := range 42 {
		t.Run(fmt.Sprint(trial), func(t *testing.T) {
			devices, fake := optixDevices(t, 1)
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					c, err := devices[0].Retain()
					if !assert.NoError(t, err) {
						return
					}
					defer func() { assert.NoError(t, c.Close()) }()
					for range 2 {
						assert.NoError(t, dropScene(c, m, b, want))
					}
				})
			}
			wg.Wait()
			if fake != nil {
				assert.Equal(t, 1, fake.Calls("optixDeviceContextCreate"))
				assert.Equal(t, 1, fake.Calls("optixModuleCreate"))
			}
		})
	}
}

// dropScene builds a scene, asks it once and closes it.
func dropScene(c *cuda.Context, m scene.Mesh, b batch, want table) (err error) {
	s, err := scene.New(c, scene.Options{Backend: scene.OptiX})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := s.AddMesh(m); err != nil {
		return err
	}
	if err := s.Build(background); err != nil {
		return err
	}
	var rays scene.Rays
	if rays.O, err = cuda.Upload(background, s.Stream(), b.o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cuda.Free(rays.O)) }()
	if rays.D, err = cuda.Upload(background, s.Stream(), b.d); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cuda.Free(rays.D)) }()
	if rays.TMax, err = cuda.Upload(background, s.Stream(), b.tmax); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cuda.Free(rays.TMax)) }()
	if rays.Active, err = cuda.Upload(background, s.Stream(), b.active); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cuda.Free(rays.Active)) }()
	h, err := s.Intersect(background, rays, scene.Geometric)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	got, err := cuda.Download(background, s.Stream(), h.GlobalPrimID)
	if err != nil {
		return err
	}
	if fmt.Sprint(got) != fmt.Sprint(want.global) {
		return fmt.Errorf("winners %v, want %v", got, want.global)
	}
	return nil
}

// A pipeline serves one stream at a time; many streams share a bounded number.
func TestOptixOnManyStreams(t *testing.T) {
	rng := rand.New(rand.NewPCG(24, 1))
	r := optixtest.Open(t, 1, fakeoptix.Config{})
	s := sceneOn(t, r.Driver.Devices()[0], scene.OptiX)
	s.add(randomSoup(rng, 20, .4))
	require.NoError(t, s.Build(background))
	b := oddBatch(rng, 16)
	rays := s.upload(b)
	want := s.intersect(b, scene.All)
	var hits []*scene.Hits
	for range 40 {
		st, err := s.Context().NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		h, err := s.Intersect(background, rays, scene.All, scene.OnStream(st))
		require.NoError(t, err)
		require.NoError(t, st.Synchronize(background))
		require.NoError(t, st.Close())
		hits = append(hits, h)
	}
	for _, h := range hits {
		require.Equal(t, want.exact(), s.download(h).exact())
		require.NoError(t, h.Close())
	}
	assert.LessOrEqual(t, r.Calls("optixPipelineCreate"), 16)

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 8 {
				h, err := s.Intersect(background, rays, scene.None)
				if assert.NoError(t, err) {
					assert.NoError(t, h.Close())
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, want.exact(), s.intersect(b, scene.All).exact())
}

// Structures are moved to a replica where its device takes them, and else built
// there. Later edits are followed.
func TestOptixReplicas(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 1))
	for name, c := range map[string]struct {
		meshes       []scene.Mesh
		instances    int // of the first mesh; the second one is dynamic
		incompatible bool
		want         string
	}{
		"relocated":           {[]scene.Mesh{randomSoup(rng, 20, .4)}, 0, false, "relocated"},
		"relocated, several":  {[]scene.Mesh{randomSoup(rng, 20, .4), randomSoup(rng, 20, .4)}, 0, false, "relocated"},
		"rebuilt":             {[]scene.Mesh{randomSoup(rng, 20, .4)}, 0, true, "rebuilt"},
		"dynamic, so rebuilt": {[]scene.Mesh{randomSoup(rng, 20, .4), dynamic(randomSoup(rng, 20, .4))}, 0, false, "rebuilt"},
		"static instance":     {[]scene.Mesh{randomSoup(rng, 20, .4)}, 1, false, "relocated"},
		"dynamic instance":    {[]scene.Mesh{randomSoup(rng, 20, .4)}, 3, false, "rebuilt"},
	} {
		t.Run(name, func(t *testing.T) {
			r := optixtest.Open(t, 2, fakeoptix.Config{Incompatible: c.incompatible})
			master, replica := sceneOn(t, r.Driver.Devices()[0], scene.OptiX), sceneOn(t, r.Driver.Devices()[1], scene.Auto)
			master.add(c.meshes...)
			for i := range c.instances {
				master.instance(0, randomTransform(rng), i == 1)
			}
			require.NoError(t, master.Build(background))
			require.NoError(t, replica.Replicate(background, master.Scene))
			require.NoError(t, replica.Stream().Synchronize(background))
			assert.Equal(t, c.want, replica.Origin())
			assert.Equal(t, scene.OptiX, replica.Backend())
			b := oddBatch(rng, 64)
			require.Equal(t, master.intersect(b, scene.All).exact(), replica.intersect(b, scene.All).exact())
			if id := len(c.meshes) + 1; c.instances > 1 {
				for _, by := range []transform{randomTransform(rng), stretch(3, 3, 3)} {
					require.NoError(t, master.SetInstanceTransform(id, by))
					require.NoError(t, master.Sync(background))
					require.NoError(t, replica.Replicate(background, master.Scene))
					require.Equal(t, master.geometry(), replica.geometry())
					require.Equal(t, master.intersect(b, scene.All).exact(), replica.intersect(b, scene.All).exact())
				}
			}
			for id, m := range c.meshes {
				if !m.Dynamic {
					continue
				}
				for _, by := range []float32{1.1, 3} { // a refit and a rebuild
					require.NoError(t, master.UpdateMeshVertices(id, scaled(m, by).Vertices))
					require.NoError(t, master.Sync(background))
					require.NoError(t, replica.Replicate(background, master.Scene))
					require.Equal(t, master.intersect(b, scene.All).exact(), replica.intersect(b, scene.All).exact())
				}
			}
		})
	}
}

// Structures that can be made smaller are, unless they may change.
func TestOptixCompaction(t *testing.T) {
	var r *optixtest.Rig
	cfg := fakeoptix.Config{WriteDevice: func(addr uint64, data []byte) { r.Write(addr, data) }}
	r = optixtest.Open(t, 1, cfg)
	s := sceneOn(t, r.Driver.Devices()[0], scene.OptiX)
	s.add(meshQ(), dynamic(meshT()), meshS())
	require.NoError(t, s.Build(background))
	assert.Equal(t, 2, r.Calls("optixAccelCompact"))
}

func TestDriverClosedBeforeScenes(t *testing.T) {
	f := optixtest.NewFake(t, fakeoptix.Config{})
	defer f.Close()
	drv, err := cuda.OpenEmulator(1)
	require.NoError(t, err)
	require.NoError(t, scene.UseOptiX(drv, f.Library()))
	c, err := drv.Devices()[0].Retain()
	require.NoError(t, err)
	s, err := scene.New(c, scene.Options{Backend: scene.OptiX})
	require.NoError(t, err)
	_, err = s.AddMesh(dynamic(meshQ()))
	require.NoError(t, err)
	require.NoError(t, s.Build(background))
	var leak *cuda.LeakError
	err = drv.Close()
	require.ErrorAs(t, err, &leak)
	require.ErrorContains(t, err, "before 1 scene that uses OptiX")
	require.NoError(t, s.Close())
	require.NoError(t, c.Close())
}
