package scene_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/optixtest"
	"github.com/raymux/raymux/tests/oracle"
)

// optixDevices opens devices with OptiX: GPUs with the library of the driver, or
// emulated ones with the stand-in, which is nil on GPUs. Every call is a cold
// start.
func optixDevices(t testing.TB, n int) ([]*cuda.Device, *optixtest.Rig) {
	t.Helper()
	if gputest.Native() {
		return gputest.Open(t, n, nil).Devices, nil
	}
	r := optixtest.Open(t, n, fakeoptix.Config{})
	return r.Driver.Devices(), r
}

func sceneOn(t testing.TB, d *cuda.Device, backend scene.Backend) *rig {
	t.Helper()
	c, err := d.Retain()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	s, err := scene.New(c, scene.Options{Backend: backend})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &rig{t, s}
}

// joined is one mesh of all, with the faces in the order of the scene.
func joined(meshes []scene.Mesh) scene.Mesh {
	var m scene.Mesh
	for _, x := range meshes {
		first := int32(len(m.Vertices) / 3)
		m.Vertices = append(m.Vertices, x.Vertices...)
		for _, v := range x.Faces {
			m.Faces = append(m.Faces, first+v)
		}
	}
	return m
}

// aimed is rays at vertices, at points of edges and, from above, straight down at
// both.
func aimed(rng *rand.Rand, m scene.Mesh, n int) batch {
	b := batch{}
	for i := range n {
		f := rng.IntN(len(m.Faces)/3) * 3
		v0, v1 := vec(m.Vertices[3*m.Faces[f]:]), vec(m.Vertices[3*m.Faces[f+1]:])
		target := v0
		if i%3 == 1 {
			u := rng.Float32()
			target = vec{v0[0] + u*(v1[0]-v0[0]), v0[1] + u*(v1[1]-v0[1]), v0[2] + u*(v1[2]-v0[2])}
		}
		o := vec{rng.Float32(), rng.Float32(), 1 + rng.Float32()}
		if i%2 == 0 {
			o = vec{target[0], target[1], 1}
		}
		b.add(o, vec{target[0] - o[0], target[1] - o[1], target[2] - o[2]})
	}
	return b
}

// around is random rays from inside the box of m, some bounded.
func around(rng *rand.Rand, m scene.Mesh, n int) batch {
	b := batch{}
	for range n {
		at := vec(m.Vertices[3*rng.IntN(len(m.Vertices)/3):])
		to := vec(m.Vertices[3*rng.IntN(len(m.Vertices)/3):])
		u := rng.Float32()
		b.add(vec{at[0] + u*(to[0]-at[0]), at[1] + u*(to[1]-at[1]), at[2] + u*(to[2]-at[2])}, randomDirection(rng))
		tmax := inf
		if rng.IntN(4) == 0 {
			tmax = rng.Float32()
		}
		b.tmax = append(b.tmax, tmax)
	}
	return b
}

// requireAgreement compares the backends row by row. Rows may differ where the
// float64 brute force calls the ray ambiguous; they are counted, and the first ones
// listed.
func requireAgreement(t *testing.T, m scene.Mesh, b batch, own, opt table) {
	t.Helper()
	var differ []int
	hits := 0
	for i := range b.rows() {
		if own.global[i] >= 0 {
			hits++
		}
		if _, _, tmax := b.ray(i); opt.global[i] >= 0 {
			require.True(t, opt.t[i] >= 1e-6 && opt.t[i] <= tmax, "row %d: optix %+v with tmax %v", i, opt.row(i), tmax)
		}
		if slices.Equal(own.rowBits(i), opt.rowBits(i)) {
			continue
		}
		require.NotEqual(t, own.global[i], opt.global[i], "row %d: the same winner, other bits: %+v, %+v", i, own.row(i), opt.row(i))
		differ = append(differ, i)
	}
	exact := oracle.New(m.Vertices, m.Faces).IntersectAll(len(differ), func(k int) (o, d vec, tmax float32) {
		return b.ray(differ[k])
	})
	for k, i := range differ {
		x, y, h := own.row(i), opt.row(i), exact[k]
		require.True(t, h.Ambiguous, "row %d: cuda %+v, optix %+v, float64 %+v", i, x, y, h)
		require.NoError(t, h.Check(oracle.Answer{
			Prim: int(y.global), T: y.t, B1: y.uv[0], B2: y.uv[1], N: y.n,
		}), "row %d", i)
		if k < 10 {
			o, d, tmax := b.ray(i)
			t.Logf("row %d may differ (%s): o %v d %v tmax %v: cuda %d at %v, optix %d at %v", i, h.Why, o, d, tmax,
				x.global, x.t, y.global, y.t)
		}
	}
	t.Logf("%d rows, %d hits, %d permitted differences", b.rows(), hits, len(differ))
	require.Greater(t, hits, b.rows()/20, "too few hits to mean anything")
	if !gputest.Native() {
		require.Empty(t, differ, "the stand-in knows the canonical winner")
	}
}

// rowBits is row i with floats as bits.
func (a table) rowBits(i int) []uint32 {
	all := bits([]float32{a.t[i]})
	all = append(all, bits(a.p[3*i:3*i+3])...)
	all = append(all, bits(a.n[3*i:3*i+3])...)
	all = append(all, bits(a.geoN[3*i:3*i+3])...)
	all = append(all, bits(a.uv[2*i:2*i+2])...)
	all = append(all, bits(a.bary[3*i:3*i+3])...)
	return append(all, uint32(a.shape[i]), uint32(a.prim[i]), uint32(a.local[i]), uint32(a.global[i]))
}

func TestBackendsAgree(t *testing.T) {
	rays, cells := 200, 6
	if gputest.Native() {
		rays, cells = 50_000, 32
	}
	rng := rand.New(rand.NewPCG(30, 1))
	size := cells * cells
	soup := func(s float32) scene.Mesh { return randomSoup(rng, size, s) }
	fan := scene.Mesh{Vertices: []float32{0, 0, 0}}
	for i := range size + 1 {
		fan.Vertices = append(fan.Vertices, 1000, 1000*float32(i)/float32(size), 3*rng.Float32())
		if i > 0 {
			fan.Faces = append(fan.Faces, 0, int32(i), int32(i+1))
		}
	}
	type rule func(*rand.Rand, scene.Mesh, int) batch
	for _, c := range []struct {
		name   string
		meshes []scene.Mesh
		rays   rule
		edit   float32 // scale of the dynamic meshes for a Sync, 0: none
	}{
		{"small triangles", []scene.Mesh{soup(.25)}, around, 0},
		{"large triangles", []scene.Mesh{soup(.8)}, around, 0},
		{"flat lattice, aimed at", []scene.Mesh{lattice(rng, cells, 0)}, aimed, 0},
		{"rough lattice, aimed at", []scene.Mesh{lattice(rng, cells, .05)}, aimed, 0},
		{"fan of long triangles", []scene.Mesh{fan}, around, 0},
		{"far from the origin", []scene.Mesh{moved(soup(.5), vec{1000.1, -2000.3, 500.7})}, around, 0},
		{"very small", []scene.Mesh{scaled(soup(.5), 1e-3)}, around, 0},
		{"several meshes, one in the other", []scene.Mesh{soup(.3), lattice(rng, cells, .05), soup(.3)}, around, 0},
		{"refitted lattice, aimed at", []scene.Mesh{dynamic(lattice(rng, cells, .05))}, aimed, 1.25},
		{"rebuilt among several, aimed at", []scene.Mesh{soup(.3), dynamic(lattice(rng, cells, .05))}, aimed, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			devices, _ := optixDevices(t, 1)
			own, opt := sceneOn(t, devices[0], scene.CUDA), sceneOn(t, devices[0], scene.OptiX)
			final := append([]scene.Mesh(nil), c.meshes...)
			for _, s := range []*rig{own, opt} {
				s.add(c.meshes...)
				require.NoError(t, s.Build(background))
				if c.edit == 0 {
					continue
				}
				for id, m := range c.meshes {
					if m.Dynamic {
						final[id] = scaled(m, c.edit)
						require.NoError(t, s.UpdateMeshVertices(id, final[id].Vertices))
					}
				}
				require.NoError(t, s.Sync(background))
			}
			m := joined(final)
			b := c.rays(rng, m, rays)
			requireAgreement(t, m, b, own.intersect(b, scene.All), opt.intersect(b, scene.All))
			odd := oddBatch(rng, 64)
			requireRowsMiss(t, odd, opt.intersect(odd, scene.All))
		})
	}
}

// requireRowsMiss requires misses where oddBatch made a row that cannot hit.
func requireRowsMiss(t *testing.T, b batch, got table) {
	t.Helper()
	for i := range b.rows() {
		if k := i % 8; k >= 2 && k <= 6 {
			require.Equal(t, miss, got.row(i), "row %d", i)
		}
	}
}

// OptiX alone finds the same triangles at the same distance, within its rounding.
func TestTraverseBare(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	devices, _ := optixDevices(t, 1)
	own, opt := sceneOn(t, devices[0], scene.CUDA), sceneOn(t, devices[0], scene.OptiX)
	m := randomSoup(rng, 100, .4)
	for _, s := range []*rig{own, opt} {
		s.add(m)
		require.NoError(t, s.Build(background))
	}
	b := around(rng, m, 300)
	rays := opt.upload(b)
	hits, err := cuda.Alloc[float32](opt.Context(), 4*b.rows())
	require.NoError(t, err)
	defer func() { require.NoError(t, cuda.Free(hits)) }()
	// Two launches, so that the first row of the second counts.
	require.NoError(t, opt.TraverseBare(opt.Stream(), rays, hits, 0, 100))
	require.NoError(t, opt.TraverseBare(opt.Stream(), rays, hits, 100, int64(b.rows()-100)))
	got := toHost(opt, hits)
	want := opt.intersect(b, scene.All)
	for i := range b.rows() {
		require.EqualValues(t, uint32(want.global[i]), math.Float32bits(got[4*i+1]), "row %d", i)
		if want.global[i] < 0 {
			require.Equal(t, inf, got[4*i])
			continue
		}
		require.InDelta(t, want.t[i], got[4*i], 1e-4*math.Max(1, float64(want.t[i])), "row %d", i)
		if gputest.Native() {
			require.InDelta(t, want.uv[2*i], got[4*i+2], 1e-3, "row %d", i)
			require.InDelta(t, want.uv[2*i+1], got[4*i+3], 1e-3, "row %d", i)
		}
	}
	require.ErrorIs(t, own.TraverseBare(own.Stream(), rays, hits, 0, 1), scene.ErrBackendUnavailable)
	var arg *scene.ArgumentError
	require.ErrorAs(t, opt.TraverseBare(opt.Stream(), rays, hits, 1, int64(b.rows())), &arg)
}

// The first hit on two devices, started at once and one after the other.
func TestOptixColdFirstHit(t *testing.T) {
	first := func(t *testing.T, d *cuda.Device) {
		s := sceneOn(t, d, scene.OptiX)
		s.add(meshQ())
		require.NoError(t, s.Build(background))
		require.Equal(t, float32(1), s.intersect(ray(vec{.25, .1, 1}, vec{0, 0, -1}), scene.All).t[0])
	}
	var took [2]time.Duration
	for i, atOnce := range []bool{false, true} {
		t.Run(fmt.Sprint("at once: ", atOnce), func(t *testing.T) {
			devices, _ := optixDevices(t, 2)
			start := time.Now()
			var wg sync.WaitGroup
			for _, d := range devices {
				wg.Go(func() { first(t, d) })
				if !atOnce {
					wg.Wait()
				}
			}
			wg.Wait()
			took[i] = time.Since(start)
		})
	}
	t.Logf("first hit on two devices: one after the other %v, at once %v", took[0], took[1])
}
