// Package optixtest opens emulated devices with an OptiX library that answers
// launches by brute force on the host, so that scenes of the OptiX backend can be
// built, asked and dropped without a GPU.
package optixtest

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

// Rig is emulated devices with an OptiX library whose launches are answered by
// brute force on the host.
type Rig struct {
	testing.TB
	*fakeoptix.Fake
	// Driver sees the devices through Ledger and Fault, API is below them.
	Driver *cuda.Driver
	API    cuapi.API
	Ledger *wrap.Ledger
	Fault  *wrap.Fault
	// OnBuild sees every build that was accepted; nil: nobody does.
	OnBuild func(fakeoptix.Build)

	mu         sync.Mutex
	structures []structure
}

// structure is what a build has made. Its number stands in the structure's memory,
// so that it is found again where that memory is copied to.
type structure struct {
	triangles []optixabi.TriangleArray
	children  []optixabi.Traversable
}

// Open makes a rig; everything has to be closed, and every rule of the library
// kept, when the test ends.
func Open(t testing.TB, devices int, cfg fakeoptix.Config, opts ...emu.Option) *Rig {
	t.Helper()
	r := &Rig{TB: t}
	if cfg.OnBuild, cfg.OnLaunch = r.build, r.launch; cfg.WriteDevice == nil {
		// No structure can be made smaller, so that handles stay what they were.
		cfg.WriteDevice = func(addr uint64, data []byte) { r.Write(addr, []byte{7: 1}) }
	}
	r.Fake = NewFake(t, cfg)
	api, err := emu.New(devices, opts...)
	require.NoError(t, err)
	r.API = api
	r.Driver, err = cuda.OpenAPI(api, cuda.WithAPI(func(api cuapi.API) cuapi.API {
		r.Ledger = wrap.NewLedger(api)
		r.Fault = wrap.NewFault(r.Ledger)
		return r.Fault
	}))
	require.NoError(t, err)
	require.NoError(t, scene.UseOptiX(r.Driver, r.Library()))
	t.Cleanup(func() {
		require.NoError(t, r.Driver.Close())
		require.Equal(t, fakeoptix.Live{}, r.Live(), "OptiX objects are left")
		require.Empty(t, r.Violations())
		require.NoError(t, r.Ledger.Check())
		r.Fake.Close()
	})
	return r
}

// NewFake makes a library alone. It skips the test in builds that cannot call C.
func NewFake(t testing.TB, cfg fakeoptix.Config) *fakeoptix.Fake {
	t.Helper()
	f, err := fakeoptix.New(cfg)
	if errors.Is(err, optixabi.ErrUnsupportedPlatform) {
		t.Skip("this build calls no C functions")
	}
	require.NoError(t, err)
	return f
}

// Write stores bytes in device memory.
func (r *Rig) Write(addr uint64, data []byte) {
	if code := r.API.MemcpyHtoD(cuapi.DevicePtr(addr), data); code != cuapi.Success {
		r.Errorf("writing %#x: %v", addr, code)
	}
}

func (r *Rig) read(addr uint64, bytes int) []byte {
	data := make([]byte, bytes)
	if code := r.API.MemcpyDtoH(data, cuapi.DevicePtr(addr)); code != cuapi.Success {
		r.Errorf("reading %d bytes at %#x: %v", bytes, addr, code)
	}
	return data
}

func (r *Rig) words(addr uint64, n int) []uint32 {
	data := r.read(addr, 4*n)
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return out
}

func (r *Rig) floats(addr uint64, n int) []float32 {
	out := make([]float32, n)
	for i, w := range r.words(addr, n) {
		out[i] = math.Float32frombits(w)
	}
	return out
}

// build remembers what a structure was made from.
func (r *Rig) build(b fakeoptix.Build) {
	r.API.StreamSynchronize(cuapi.Stream(b.Stream))
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
	r.Write(b.Out.Addr, binary.LittleEndian.AppendUint64(nil, uint64(id)))
	if r.OnBuild != nil {
		r.OnBuild(b)
	}
}

// meshes are the triangles below a handle.
func (r *Rig) meshes(h optixabi.Traversable) (all []optixabi.TriangleArray) {
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

// bareLaunch is the launch parameters of the programs that answer alone.
type bareLaunch struct {
	O, D, TMax, Active, Hits, Handle uint64
	RowBegin                         int64
}

// answers are how launches are answered on the host, by their ray generation program.
var answers = map[string]func(*Rig, fakeoptix.Launch) optixabi.Result{
	"__raygen__closest": with((*Rig).answer),
	"__raygen__bare":    with((*Rig).answerBare),
	"__raygen__reflect": with((*Rig).answerReflect),
	"__raygen__visible": with((*Rig).answerVisible),
}

// with reads the parameters of a launch.
func with[P any](answer func(r *Rig, p P, rows int)) func(*Rig, fakeoptix.Launch) optixabi.Result {
	return func(r *Rig, l fakeoptix.Launch) optixabi.Result {
		data := r.read(l.Params.Addr, int(l.Params.Size))
		var p P
		if _, err := binary.Decode(data, binary.LittleEndian, &p); err != nil || len(data) != binary.Size(p) {
			return optixabi.ErrorInvalidValue
		}
		answer(r, p, int(l.Width))
		return optixabi.Success
	}
}

func (r *Rig) launch(l fakeoptix.Launch) optixabi.Result {
	r.API.StreamSynchronize(cuapi.Stream(l.Stream))
	for _, name := range l.Programs {
		if answer := answers[name]; answer != nil {
			return answer(r, l)
		}
	}
	return optixabi.ErrorInvalidValue
}

// brute is a brute-force searcher per mesh.
func (r *Rig) brute(meshes []optixabi.TriangleArray) []*oracle.Canonical {
	out := make([]*oracle.Canonical, len(meshes))
	for i, m := range meshes {
		words := r.words(m.Indices, 3*int(m.NumTriangles))
		faces := make([]int32, len(words))
		for k, v := range words {
			faces[k] = int32(v)
		}
		out[i] = oracle.NewCanonical(r.floats(m.Vertices, 3*int(m.NumVertices)), faces)
	}
	return out
}

func (r *Rig) answer(p closestLaunch, rows int) {
	brute := r.brute(r.meshes(optixabi.Traversable(p.Handle)))
	if (p.FaceOffsets != 0) != (len(brute) > 1) {
		r.Errorf("%d meshes, face offsets at %#x", len(brute), p.FaceOffsets)
	}
	begin := uint64(p.RowBegin)
	out := make([]byte, 4*rows)
	r.each(p.O, p.D, p.TMax, begin, rows, func(i int, o, d [3]float32, tmax float32) {
		best, winner := float32(math.Inf(1)), int32(-1)
		if p.Active == 0 || r.read(p.Active+begin+uint64(i), 1)[0] != 0 {
			for k, m := range brute {
				prim, t := m.Winner(o, d, tmax)
				if prim >= 0 && t < best {
					best, winner = t, int32(prim)
					if p.FaceOffsets != 0 {
						winner += int32(r.words(p.FaceOffsets+4*uint64(k), 1)[0])
					}
				}
			}
		}
		binary.LittleEndian.PutUint32(out[4*i:], uint32(winner))
	})
	r.Write(p.Winners+4*begin, out)
}

// answerBare gives t and face, and weights of zero.
func (r *Rig) answerBare(p bareLaunch, rows int) {
	brute := r.brute(r.meshes(optixabi.Traversable(p.Handle)))
	begin := uint64(p.RowBegin)
	out := make([]byte, 16*rows)
	r.each(p.O, p.D, p.TMax, begin, rows, func(i int, o, d [3]float32, tmax float32) {
		best, winner := float32(math.Inf(1)), int32(-1)
		for _, m := range brute {
			if prim, t := m.Winner(o, d, tmax); prim >= 0 && t < best {
				best, winner = t, int32(prim)
			}
		}
		binary.LittleEndian.PutUint32(out[16*i:], math.Float32bits(best))
		binary.LittleEndian.PutUint32(out[16*i+4:], uint32(winner))
	})
	r.Write(p.Hits+16*begin, out)
}

// each calls f for every ray of a launch.
func (r *Rig) each(origins, directions, bounds, begin uint64, rows int, f func(i int, o, d [3]float32, tmax float32)) {
	o, d := r.floats(origins+12*begin, 3*rows), r.floats(directions+12*begin, 3*rows)
	var tmax []float32
	if bounds != 0 {
		tmax = r.floats(bounds+4*begin, rows)
	}
	for i := range rows {
		bound := float32(math.Inf(1))
		if tmax != nil {
			bound = tmax[i]
		}
		f(i, [3]float32(o[3*i:]), [3]float32(d[3*i:]), bound)
	}
}
