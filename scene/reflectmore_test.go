package scene_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// latticeBox is a box whose walls are n by n quads each, so that rays through vertices and
// edges have several faces at the same t.
func latticeBox(n int) scene.Mesh {
	var all scene.Mesh
	for axis := range 3 {
		for side := range 2 {
			var m scene.Mesh
			for i := range n + 1 {
				for j := range n + 1 {
					var v vec
					v[axis], v[(axis+1)%3], v[(axis+2)%3] = float32(side), float32(i)/float32(n), float32(j)/float32(n)
					m.Vertices = append(m.Vertices, v[:]...)
				}
			}
			for i := range int32(n) {
				for j := range int32(n) {
					k := i*int32(n+1) + j
					m.Faces = append(m.Faces, k, k+1, k+int32(n)+2, k, k+int32(n)+2, k+int32(n)+1)
				}
			}
			all = join(all, m)
		}
	}
	return all
}

// Rays aimed at vertices and edges of a closed box: ties are decided by the id at every
// bounce, and no chain leaves the box.
func TestReflectTies(t *testing.T) {
	const n, rows = 4, 600
	rng := rand.New(rand.NewPCG(71, 1))
	m := latticeBox(n)
	b := batch{}
	for i := range rows {
		o := vec{(.5 + float32(rng.IntN(n))) / n, (.5 + float32(rng.IntN(n))) / n, (.5 + float32(rng.IntN(n))) / n}
		to := vec{float32(rng.IntN(n+1)) / n, float32(rng.IntN(n+1)) / n, float32(rng.IntN(n+1)) / n}
		to[i%3] = float32(i / 3 % 2)
		b.add(o, vec{to[0] - o[0], to[1] - o[1], to[2] - o[2]})
	}
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		if gputest.Native() && t.Name() == "TestReflectTies/optix" {
			t.Skip("OptiX has no rule for ties")
		}
		got := open(m).reflect(b, 5, scene.ChainAll)
		requireModel(t, got, m, b)
	})
}

// Chains follow the vertices, through refits of both kinds of structures, and the
// instances of a mesh.
func TestReflectFollowsChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(72, 1))
	soup := randomSoup(rng, 40, .5)
	room := moved(scaled(unitCube(), 1.5), vec{-.25, -.25, -.25})
	b := oddBatch(rng, 200)
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(dynamic(soup), room)
		instance := vec{.4, .1, -.2}
		_, err := r.AddInstance(1, shiftBy(instance), false)
		require.NoError(t, err)
		require.NoError(t, r.Build(background))
		whole := func(m scene.Mesh) scene.Mesh { return join(join(m, room), moved(room, instance)) }
		requireModel(t, r.reflect(b, 4, scene.ChainAll), whole(soup), b)
		for _, by := range []vec{{.1, -.05, .02}, {-.3, .2, .1}} {
			turned := moved(soup, by)
			for i := range turned.Vertices { // also normals change
				turned.Vertices[i] += .1 * rng.Float32()
			}
			r.update(0, turned)
			r.sync()
			requireModel(t, r.reflect(b, 4, scene.ChainAll), whole(turned), b)
		}
	})
}

// However a batch is divided, rows are the same.
func TestReflectPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 1))
	m := join(randomSoup(rng, 60, .5), moved(scaled(unitCube(), 1.5), vec{-.25, -.25, -.25}))
	b := oddBatch(rng, 300)
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(m)
		want := r.reflect(b, 3, scene.ChainAll)
		chains, call, err := r.PrepareReflections(background, r.upload(b), 3, scene.ChainAll)
		require.NoError(t, err)
		poison(r, chains.PrimIDs)
		in, out := call.Columns()
		for _, cut := range [][2]int64{{250, 50}, {0, 1}, {1, 96}, {97, 153}} {
			require.NoError(t, call.Search(r.Scene, call.Stream, in, out, cut[0], cut[1]))
			require.NoError(t, call.Finalize(cut[0], cut[1]))
		}
		require.Equal(t, want.exact(), r.readChains(chains).exact())
	})
}

// finalizeChains finalizes winners that another tracer may have found.
func (r *rig) finalizeChains(b batch, bounces int, winners []int32) chains {
	r.Helper()
	c, call, err := r.PrepareReflections(background, r.upload(b), bounces, scene.ChainAll)
	require.NoError(r, err)
	require.NoError(r, cuda.CopyAsync(r.Stream(), c.PrimIDs, toDevice(r, winners)))
	require.NoError(r, call.Finalize(0, call.Rows))
	return r.readChains(c)
}

// A winner beyond the interval of the first leg, or one that a leg does not see, ends
// the chain with all that follows. A winner behind a later leg is at zero.
func TestFinalizeChainsOfAnotherTracer(t *testing.T) {
	b := batch{}
	for range 3 {
		b.add(vec{.3, -.2, .5}, vec{.25, 0, -1})
	}
	b.tmax = []float32{.6, .4, .6}
	got := build(t, meshTwo()).finalizeChains(b, 3, []int32{0, 2, 0, 0, 2, 0, -1, 2, 0})
	require.Equal(t, []uint8{1, 1, 1, 0, 0, 0, 0, 0, 0}, got.valid)
	for row := 1; row <= 2; row++ {
		for k := range 3 {
			require.Equal(t, emptySlot, got.slot(row, k))
		}
	}

	// In the corner: past the floor and the wall y = 0, then the floor again, which is
	// behind; and the wall that the ray is parallel to.
	b = batch{}
	b.add(vec{3, 2, 1.5}, vec{-1, -1, -1})
	b.add(vec{3, 2, 1.5}, vec{-1, 0, -1})
	got = build(t, meshCorner()).finalizeChains(b, 3, []int32{0, 2, 0, 0, 2, 4})
	require.Equal(t, []uint8{1, 1, 1, 1, 0, 0}, got.valid)
	require.Zero(t, got.slot(0, 2).t)
	require.Equal(t, vec{0, 0, -1}, got.slot(0, 2).n, "towards the leg, also from behind")
	require.Equal(t, emptySlot, got.slot(1, 1))
	require.Equal(t, emptySlot, got.slot(1, 2))
}

// A failing call of the driver fails the query, leaves nothing behind, and the next one
// is right.
func TestReflectFailures(t *testing.T) {
	corner := ray(vec{3, 2, 1.5}, vec{-1, -1, -1})
	for name, ask := range map[string]func(r *rig, rays scene.Rays, opt scene.CallOption) (scene.Reusable, error){
		"TraceReflections": func(r *rig, rays scene.Rays, opt scene.CallOption) (scene.Reusable, error) {
			return r.TraceReflections(background, rays, 4, scene.ChainAll, opt)
		},
		"DedupReflections": func(r *rig, rays scene.Rays, opt scene.CallOption) (scene.Reusable, error) {
			c, err := r.TraceReflections(background, rays, 4, scene.ChainCore, opt)
			if err != nil {
				return nil, err
			}
			u, err := r.DedupReflections(background, scene.Paths{PrimIDs: c.PrimIDs, Bounces: 4, RayO: rays.O}, opt)
			if err != nil {
				return nil, errors.Join(err, c.Close())
			}
			if u.Count != 1 {
				err = errors.New("there is one path")
			}
			if err = errors.Join(err, u.Close()); err != nil {
				return nil, errors.Join(err, c.Close())
			}
			return c, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			requireFailingCallsToBeNoticed(t, meshCorner(), func(r *rig) func(scene.CallOption) (scene.Reusable, error) {
				rays := r.upload(corner)
				return func(opt scene.CallOption) (scene.Reusable, error) { return ask(r, rays, opt) }
			})
		})
	}
}
