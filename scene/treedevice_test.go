package scene

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/gputest"
)

// grow is treeOf for a tree that comes from the device, however few its triangles.
func grow(t *testing.T, c *cuda.Context, vertices []float32, faces []int32, tree int64, change ...func(*Scene)) (*Scene, *treeSearch) {
	t.Helper()
	return treeOf(t, c, vertices, faces, append([]func(*Scene){func(s *Scene) {
		s.device.least, s.device.tree = 1, tree
	}}, change...)...)
}

// hostForm reads the shape of a tree back.
func hostForm(t *testing.T, s *Scene, x *treeSearch) *hostTree {
	t.Helper()
	return &hostTree{
		shapes: download(t, s, x.shapes), levels: x.plan.levels,
		slots: download(t, s, x.slots), size: x.pool.Len() / slotWords,
	}
}

// requireSound requires a tree that holds every triangle once, in boxes that hold
// what is below them.
func requireSound(t *testing.T, s *Scene, x *treeSearch, triangles int) {
	t.Helper()
	checkTree(t, hostForm(t, s, x), triangles)
	p := newPoolTree(t, download(t, s, x.pool))
	box := p.node(rootSlot)
	lo, hi := s.Bounds()
	require.Equal(t, bounds{lo, hi}, box)
	require.Equal(t, triangles, p.leaves)
}

var deviceTrees = map[string]int64{"bits": treeByBits, "nearness": treeByNearness, "cheaper": treeCheaper}

func TestDeviceTreesHoldEveryTriangleOnce(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	for name, tree := range deviceTrees {
		for _, n := range []int{1, 2, 3, 8, 9, 16, 17, 33, 100, 5003} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				v, f := soup(uint64(n), n, 0.05)
				s, x := grow(t, c, v, f, tree)
				requireSound(t, s, x, n)
			})
		}
	}
}

// Inputs in which keys, boxes or areas coincide, overflow or vanish.
func TestDeviceTreesOfDegenerateGeometry(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	const n = 150
	base, faces := soup(60, n, 0.1)
	for name, shape := range map[string]func(i int, v float32) float32{
		"all triangles equal":   func(i int, _ float32) float32 { return base[i%9] },
		"all centres equal":     func(i int, _ float32) float32 { return []float32{-1, 0, 1}[i/3%3] * float32(1+i/9) },
		"all points equal":      func(int, float32) float32 { return -3 },
		"zeros of both signs":   func(i int, _ float32) float32 { return float32(math.Copysign(0, float64(i%2)-0.5)) },
		"huge":                  func(_ int, v float32) float32 { return (v - 0.5) * 3e38 },
		"subnormal":             func(_ int, v float32) float32 { return v * 1e-42 },
		"smallest":              func(i int, _ float32) float32 { return float32(i%2) * math.SmallestNonzeroFloat32 },
		"flat":                  func(i int, v float32) float32 { return v * float32(i%3&1) },
		"a line":                func(i int, v float32) float32 { return v * float32((i%3+1)/3) },
		"faces without area":    func(i int, _ float32) float32 { return base[i/9*9+i%3] },
		"far away":              func(_ int, v float32) float32 { return v + 1e6 },
		"one triangle far away": func(i int, v float32) float32 { return v + float32(i/(9*n-9))*1e30 },
		"many scales":           func(i int, v float32) float32 { return v * float32(math.Exp2(float64(i/9)-200)) },
	} {
		v := make([]float32, len(base))
		for i := range v {
			v[i] = shape(i, base[i])
		}
		for tree, kind := range deviceTrees {
			t.Run(name+", "+tree, func(t *testing.T) {
				s, x := grow(t, c, v, faces, kind)
				if name == "huge" { // where searches look into every box
					checkTree(t, hostForm(t, s, x), n)
					return
				}
				requireSound(t, s, x, n)
			})
		}
	}
}

// The tree does not depend on how launches are cut or which block comes first: only
// the numbers of its nodes do.
func TestDeviceTreesAreTheSameEveryTime(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	v, f := soup(61, 3000, 0.05)
	for name, tree := range deviceTrees {
		var cost float64
		for round, rows := range []int64{maxLaunchRows, 1000, 448, maxLaunchRows} {
			s, x := grow(t, c, v, f, tree, func(s *Scene) { s.rowsPerLaunch = rows })
			requireSound(t, s, x, 3000)
			if round == 0 {
				cost = x.plan.cost
			}
			// The parts of the sum are cut by node numbers.
			assert.InEpsilon(t, cost, x.plan.cost, 1e-12, "%s, round %d", name, round)
		}
	}
}

// A tree that does not fit the search comes from the host.
func TestTreesTooDeepForTheDeviceComeFromTheHost(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	v, f := soup(62, 2000, 0.05)
	host, err := buildTree(context.Background(), v, f)
	require.NoError(t, err)
	for levels, fits := range map[int]bool{1: false, 3: false, 12: true} {
		s, x := grow(t, c, v, f, treeCheaper, func(s *Scene) { s.device.levels = levels })
		requireSound(t, s, x, 2000)
		assert.Equal(t, fits, x.plan.by != byHostName, "%d levels allowed", levels)
		if !fits {
			assert.Equal(t, host.shapes, hostForm(t, s, x).shapes)
		}
	}
}

// Triangles that halve in size and distance make a tree of a node per few of them,
// so that more levels than expected are asked for.
func TestDeepDeviceTree(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	const n = 120
	var v []float32
	var f []int32
	for i := range n {
		x := float32(math.Exp2(-float64(i) / 2))
		v = append(v, x, x, x, 1.2*x, x, x, x, 1.2*x, x)
		f = append(f, int32(3*i), int32(3*i+1), int32(3*i+2))
	}
	for name, tree := range deviceTrees {
		s, x := grow(t, c, v, f, tree)
		requireSound(t, s, x, n)
		t.Logf("%s: %d levels", name, len(x.plan.levels)-1)
	}
}

// buildings are boxes with windows, on flat ground.
func buildings(t *testing.T, lots int) (vertices []float32, faces []int32) {
	t.Helper()
	m := workload.City(workload.SceneSeed, lots)
	return m.Vertices, m.Faces
}

// The cheaper tree is chosen by its cost, and costs little more than the tree of the
// host: up to a tenth where triangles lie anywhere, hardly anything in a city.
func TestCostOfDeviceTrees(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	for name, scene := range map[string]struct {
		mesh   func() ([]float32, []int32)
		factor float64
		best   string // of the two trees, where the scene makes it plain
	}{
		"soup": {func() ([]float32, []int32) { return soup(63, 6000, 0.02) }, 1.1, "bits"},
		"city": {func() ([]float32, []int32) { return buildings(t, 3) }, 1.05, "nearness"},
	} {
		v, f := scene.mesh()
		_, x := treeOf(t, c, v, f, func(s *Scene) { s.builder = BuilderSAH })
		require.Equal(t, byHostName, x.plan.by)
		cost, by := map[string]float64{"host": x.plan.cost}, map[string]string{}
		for kind, tree := range deviceTrees {
			_, x := grow(t, c, v, f, tree)
			cost[kind], by[kind] = x.plan.cost, x.plan.by
		}
		t.Logf("%s, %d triangles: %v", name, len(f)/3, cost)
		assert.InEpsilon(t, min(cost["bits"], cost["nearness"]), cost["cheaper"], 1e-12, name)
		assert.Equal(t, by[scene.best], by["cheaper"], name)
		assert.Less(t, cost["cheaper"], scene.factor*cost["host"], name)
	}
}

// aimed makes rays from anywhere near the triangles: every other one towards a
// vertex or the middle of an edge.
func aimed(seed uint64, rows int, v []float32, f []int32, lo, hi [3]float32) (o, d []float32) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range rows {
		face := rng.IntN(len(f) / 3)
		a, b := f[3*face+rng.IntN(3)], f[3*face+rng.IntN(3)]
		for k := range 3 {
			from := lo[k] + (hi[k]-lo[k])*(1.4*rng.Float32()-0.2)
			to := lo[k] + (hi[k]-lo[k])*rng.Float32()
			if i%2 == 0 {
				to = 0.5*v[3*int(a)+k] + 0.5*v[3*int(b)+k]
			}
			o, d = append(o, from), append(d, to-from)
		}
	}
	return o, d
}

// lattice is a surface over a grid of integer points.
func lattice(cells int) (vertices []float32, faces []int32) {
	at := func(x, y int) int32 { return int32(y*(cells+1) + x) }
	for y := range cells + 1 {
		for x := range cells + 1 {
			vertices = append(vertices, float32(x), float32(y), float32((x*7+y*13)%5))
			if x < cells && y < cells {
				faces = append(faces, at(x, y), at(x+1, y), at(x, y+1), at(x+1, y), at(x+1, y+1), at(x, y+1))
			}
		}
	}
	return vertices, faces
}

// Whatever builder made the tree, also after vertices have moved, winners are those
// of a search of all triangles.
func TestWinnersOfEveryBuilder(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	ctx := context.Background()
	const rows = 1000
	for name, mesh := range map[string]func() ([]float32, []int32){
		"soup":    func() ([]float32, []int32) { return soup(64, 1500, 0.1) },
		"city":    func() ([]float32, []int32) { return buildings(t, 1) },
		"lattice": func() ([]float32, []int32) { return lattice(24) },
	} {
		v, f := mesh()
		kinds := map[string]func(*Scene){"host": func(s *Scene) { s.builder = BuilderSAH }}
		for kind, tree := range deviceTrees {
			kinds[kind] = func(s *Scene) { s.device.least, s.device.tree = 1, tree }
		}
		for kind, change := range kinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				s, x := treeOf(t, c, v, f, change)
				lo, hi := s.Bounds()
				o, d := aimed(65, rows, v, f, lo, hi)
				requireBrute(ctx, t, s, v, f, o, d)
				plan := x.plan
				moved := slices.Clone(v)
				for i := range moved {
					moved[i] += 0.002 * (hi[i%3] - lo[i%3]) * float32(math.Sin(float64(i/9)))
				}
				require.NoError(t, s.UpdateMeshVertices(0, moved))
				require.NoError(t, s.Sync(ctx))
				x = s.tables.search.(*treeSearch)
				require.Same(t, plan, x.plan, "the tree was built anew")
				o, d = aimed(66, rows, moved, f, lo, hi)
				requireBrute(ctx, t, s, moved, f, o, d)
			})
		}
	}
}

// A tree that has become a third worse is built anew.
func TestTreesAreBuiltAnewWhenTheyGetWorse(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	ctx := context.Background()
	v, f := soup(67, 1000, 0.05)
	s, x := grow(t, c, v, f, treeCheaper)
	plan := x.plan
	rng := rand.New(rand.NewPCG(68, 1))
	move := func(by float32) []float32 {
		out := slices.Clone(v)
		for i := 0; i < len(out); i += 9 {
			for k := range 3 {
				d := by * (rng.Float32() - 0.5)
				for corner := range 3 {
					out[i+3*corner+k] += d
				}
			}
		}
		return out
	}
	moved := move(0.02)
	require.NoError(t, s.UpdateMeshVertices(0, moved))
	require.NoError(t, s.Sync(ctx))
	require.Same(t, plan, s.tables.search.(*treeSearch).plan, "a tree was built for nothing")
	moved = move(2)
	require.NoError(t, s.UpdateMeshVertices(0, moved))
	require.NoError(t, s.Sync(ctx))
	x = s.tables.search.(*treeSearch)
	require.NotSame(t, plan, x.plan, "the tree got worse and stayed")
	requireSound(t, s, x, 1000)
	lo, hi := s.Bounds()
	o, d := aimed(69, 500, moved, f, lo, hi)
	requireBrute(ctx, t, s, moved, f, o, d)
}

// Scenes choose their builder; few triangles are left to the host.
func TestBuilderOption(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	for _, this := range []struct {
		builder   Builder
		triangles int
		host      bool
	}{
		{BuilderAuto, deviceBuildLeast, false}, {BuilderAuto, deviceBuildLeast - 1, true},
		{BuilderSAH, deviceBuildLeast, true},
	} {
		s, err := New(c, Options{Backend: CUDA, Builder: this.builder})
		require.NoError(t, err)
		v, f := soup(72, this.triangles, 0.1)
		_, err = s.AddMesh(Mesh{Vertices: v, Faces: f, NoEdges: true})
		require.NoError(t, err)
		require.NoError(t, s.Build(context.Background()))
		by := s.tables.search.(*treeSearch).plan.by
		assert.Equal(t, this.host, by == byHostName, "%d triangles, builder %s: %s", this.triangles, this.builder, by)
		require.NoError(t, s.Close())
	}
	_, err := New(c, Options{Builder: 7})
	var bad *ArgumentError
	require.ErrorAs(t, err, &bad)
	assert.Equal(t, "Options.Builder", bad.Arg)
	assert.Equal(t, "auto sah Builder(7)", fmt.Sprint(BuilderAuto, BuilderSAH, Builder(7)))
}
