package scene_test

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/oracle"
)

// optixRig is emulated devices with an OptiX library whose launches are answered by
// brute force on the host.
type optixRig struct {
	testing.TB
	*fakeoptix.Fake
	driver *cuda.Driver
	api    cuapi.API
	ledger *wrap.Ledger
	fault  *wrap.Fault

	onBuild func(fakeoptix.Build) // nil: nothing more

	mu         sync.Mutex
	structures []structure
}

// structure is what a build has made. Its number stands in the structure's memory,
// so that it is found again where that memory is copied to.
type structure struct {
	triangles []optixabi.TriangleArray
	children  []optixabi.Traversable
}

// openOptix makes a rig; everything has to be closed, and every rule of the library
// kept, when the test ends.
func openOptix(t testing.TB, devices int, cfg fakeoptix.Config, opts ...emu.Option) *optixRig {
	t.Helper()
	r := &optixRig{TB: t}
	if cfg.OnBuild, cfg.OnLaunch = r.build, r.launch; cfg.WriteDevice == nil {
		// No structure can be made smaller, so that handles stay what they were.
		cfg.WriteDevice = func(addr uint64, data []byte) { r.write(addr, []byte{7: 1}) }
	}
	r.Fake = newFake(t, cfg)
	api, err := emu.New(devices, opts...)
	require.NoError(t, err)
	r.api = api
	r.driver, err = cuda.OpenAPI(api, cuda.WithAPI(func(api cuapi.API) cuapi.API {
		r.ledger = wrap.NewLedger(api)
		r.fault = wrap.NewFault(r.ledger)
		return r.fault
	}))
	require.NoError(t, err)
	require.NoError(t, scene.UseOptiX(r.driver, r.Library(), nil))
	t.Cleanup(func() {
		require.NoError(t, r.driver.Close())
		require.Equal(t, fakeoptix.Live{}, r.Live(), "OptiX objects are left")
		require.Empty(t, r.Violations())
		require.NoError(t, r.ledger.Check())
		r.Fake.Close()
	})
	return r
}

func newFake(t testing.TB, cfg fakeoptix.Config) *fakeoptix.Fake {
	t.Helper()
	f, err := fakeoptix.New(cfg)
	if errors.Is(err, optixabi.ErrUnsupportedPlatform) {
		t.Skip("this build calls no C functions")
	}
	require.NoError(t, err)
	return f
}

// scene makes an empty scene on a device until the test ends.
func (r *optixRig) scene(device int, backend scene.Backend) *rig {
	r.Helper()
	d, err := r.driver.Device(device)
	require.NoError(r, err)
	c, err := d.Retain()
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, c.Close()) })
	s, err := scene.New(c, scene.Options{Backend: backend})
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, s.Close()) })
	return &rig{r.TB, s}
}

func (r *optixRig) write(addr uint64, data []byte) {
	if code := r.api.MemcpyHtoD(cuapi.DevicePtr(addr), data); code != cuapi.Success {
		r.Errorf("writing %#x: %v", addr, code)
	}
}

func (r *optixRig) read(addr uint64, bytes int) []byte {
	data := make([]byte, bytes)
	if code := r.api.MemcpyDtoH(data, cuapi.DevicePtr(addr)); code != cuapi.Success {
		r.Errorf("reading %d bytes at %#x: %v", bytes, addr, code)
	}
	return data
}

func (r *optixRig) words(addr uint64, n int) []uint32 {
	data := r.read(addr, 4*n)
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return out
}

func (r *optixRig) floats(addr uint64, n int) []float32 {
	out := make([]float32, n)
	for i, w := range r.words(addr, n) {
		out[i] = math.Float32frombits(w)
	}
	return out
}

// build remembers what a structure was made from.
func (r *optixRig) build(b fakeoptix.Build) {
	r.api.StreamSynchronize(cuapi.Stream(b.Stream))
	s := structure{triangles: b.Triangles}
	for _, in := range b.Instances {
		const size = 80
		data := r.read(in.Instances, size*int(in.Count))
		for k := range int(in.Count) {
			id := binary.LittleEndian.Uint32(data[size*k+48:])
			if int(id) != k {
				r.Errorf("instance %d has id %d", k, id)
			}
			s.children = append(s.children, optixabi.Traversable(binary.LittleEndian.Uint64(data[size*k+64:])))
		}
	}
	r.mu.Lock()
	id := len(r.structures)
	r.structures = append(r.structures, s)
	r.mu.Unlock()
	r.write(b.Out.Addr, binary.LittleEndian.AppendUint64(nil, uint64(id)))
	if r.onBuild != nil {
		r.onBuild(b)
	}
}

// meshes are the triangles below a handle.
func (r *optixRig) meshes(h optixabi.Traversable) (all []optixabi.TriangleArray) {
	id := binary.LittleEndian.Uint64(r.read(uint64(h)&^1, 8))
	r.mu.Lock()
	s := r.structures[id]
	r.mu.Unlock()
	for _, child := range s.children {
		all = append(all, r.meshes(child)...)
	}
	return append(all, s.triangles...)
}

// closestLaunch is the launch parameters of the closest-hit programs.
type closestLaunch struct {
	O, D, TMax, Active, Winners, FaceOffsets, Handle uint64
	RowBegin                                         int64
}

// launch answers a launch on the host.
func (r *optixRig) launch(l fakeoptix.Launch) optixabi.Result {
	r.api.StreamSynchronize(cuapi.Stream(l.Stream))
	var p closestLaunch
	if l.Params.Size != 64 {
		return optixabi.ErrorInvalidValue
	}
	if _, err := binary.Decode(r.read(l.Params.Addr, 64), binary.LittleEndian, &p); err != nil {
		return optixabi.ErrorInvalidValue
	}
	meshes := r.meshes(optixabi.Traversable(p.Handle))
	if (p.FaceOffsets != 0) != (len(meshes) > 1) {
		r.Errorf("%d meshes, face offsets at %#x", len(meshes), p.FaceOffsets)
	}
	r.answer(p, int(l.Width), meshes)
	return optixabi.Success
}

func (r *optixRig) answer(p closestLaunch, rows int, meshes []optixabi.TriangleArray) {
	brute := make([]*oracle.Canonical, len(meshes))
	for i, m := range meshes {
		faces := r.words(m.Indices, 3*int(m.NumTriangles))
		ids := make([]int32, len(faces))
		for k, v := range faces {
			ids[k] = int32(v)
		}
		brute[i] = oracle.NewCanonical(r.floats(m.Vertices, 3*int(m.NumVertices)), ids)
	}
	begin := uint64(p.RowBegin)
	o, d := r.floats(p.O+12*begin, 3*rows), r.floats(p.D+12*begin, 3*rows)
	out := make([]byte, 4*rows)
	for i := range rows {
		tmax := inf
		if p.TMax != 0 {
			tmax = r.floats(p.TMax+4*(begin+uint64(i)), 1)[0]
		}
		best, winner := inf, int32(-1)
		if p.Active == 0 || r.read(p.Active+begin+uint64(i), 1)[0] != 0 {
			for k, m := range brute {
				prim, t := m.Winner(vec(o[3*i:]), vec(d[3*i:]), tmax)
				if prim >= 0 && t < best {
					best, winner = t, int32(prim)
					if p.FaceOffsets != 0 {
						winner += int32(r.words(p.FaceOffsets+4*uint64(k), 1)[0])
					}
				}
			}
		}
		binary.LittleEndian.PutUint32(out[4*i:], uint32(winner))
	}
	r.write(p.Winners+4*begin, out)
}
