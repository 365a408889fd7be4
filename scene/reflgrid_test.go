package scene_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// grids is a result of AccumulateReflections on the host.
type grids struct {
	base       float64
	power      []float32
	field      [6][]float32 // x re, x im, y re, ...
	cellCount  []uint32
	count      int64
	status     scene.ReflGridStatus
	words      []int64
	wordCounts []uint32
	wordMaxima []uint32
	wedges     wedges
}

// wedges are events on the host.
type wedges struct {
	count                                 int64
	ray                                   []int64
	point, normal, direction, source, dir []float32
	power                                 []float32
	prim, depth                           []int32
}

// exact are all values, floats as bits.
func (g grids) exact() []any {
	out := []any{bits(g.power), g.cellCount, g.count, g.status, g.words, g.wordCounts, g.wordMaxima}
	for _, f := range g.field {
		out = append(out, bits(f))
	}
	return append(out, g.wedges.exact()...)
}

// requireSameGrids compares every bit. Of large results it names the columns that differ.
func requireSameGrids(t testing.TB, want, got grids, what string, args ...any) {
	t.Helper()
	a, b := want.exact(), got.exact()
	var differ []int
	for i := range a {
		if !reflect.DeepEqual(a[i], b[i]) {
			differ = append(differ, i)
		}
	}
	if len(want.power)+len(want.wedges.ray) < 100 && len(differ) > 0 {
		require.Equal(t, a, b, what)
	}
	require.Empty(t, differ, "columns of exact() differ: "+fmt.Sprintf(what, args...))
}

func (w wedges) exact() []any {
	return []any{w.count, w.ray, bits(w.point), bits(w.normal), bits(w.direction), bits(w.source), bits(w.dir), bits(w.power), w.prim, w.depth}
}

// cell is the field and power of a cell.
func (g grids) cell(i int) (field [3]complex128, power float64) {
	for k := range field {
		field[k] = complex(float64(g.field[2*k][i]), float64(g.field[2*k+1][i]))
	}
	return field, float64(g.power[i])
}

// readGrids waits for a result and copies it.
func (r *rig) readGrids(g *scene.ReflGrids) grids {
	r.Helper()
	c, err := g.ReadCounters(background)
	require.NoError(r, err)
	out := grids{
		power: toHost(r, g.Power), cellCount: toHost(r, g.CellCount), count: c.Count, status: c.Status,
		words: toHost(r, g.Words), wordCounts: toHost(r, g.WordCounts), wordMaxima: toHost(r, g.WordMaxima),
	}
	for i, f := range [6]cuda.Slice[float32]{g.FieldXRe, g.FieldXIm, g.FieldYRe, g.FieldYIm, g.FieldZRe, g.FieldZIm} {
		out.field[i] = toHost(r, f)
	}
	w := g.Wedges
	out.wedges = wedges{
		count: c.Wedges, ray: toHost(r, w.RayIndex), point: toHost(r, w.HitPoints), normal: toHost(r, w.Normals),
		direction: toHost(r, w.Directions), source: toHost(r, w.SourcePoints), dir: toHost(r, w.InitialDirections),
		power: toHost(r, w.SrcPower), prim: toHost(r, w.PrimID), depth: toHost(r, w.BounceDepth),
	}
	require.Equal(r, []int64{c.Count}, toHost(r, g.Count))
	require.Equal(r, []uint32{uint32(c.Status)}, toHost(r, g.Status))
	require.Equal(r, []int64{c.Wedges}, toHost(r, w.Count))
	return out
}

// oneMedium is a medium of all faces of a mesh.
func oneMedium(m scene.Mesh, eta float32, valid bool) scene.Materials {
	return scene.Materials{
		EtaR: []float32{eta}, Sigma: []float32{0}, MuR: []float32{1}, Gain: []float32{1}, Valid: []bool{valid},
		Index: make([]int32, len(m.Faces)/3),
	}
}

// accumulateTubes answers a batch on the scene's stream, in memory full of other values.
func (r *rig) accumulateTubes(b batch, g scene.Grid, opt scene.ReflGridOptions) grids {
	r.Helper()
	rays := r.upload(b)
	opt.CellCount, opt.KeepWords = true, true
	dirty, call, err := r.PrepareAccumulateReflections(background, rays, g, opt)
	require.NoError(r, err)
	poison(r, dirty.Power)
	for _, f := range []cuda.Slice[float32]{dirty.FieldXRe, dirty.FieldXIm, dirty.FieldYRe, dirty.FieldYIm, dirty.FieldZRe, dirty.FieldZIm,
		dirty.Wedges.HitPoints, dirty.Wedges.Normals, dirty.Wedges.Directions, dirty.Wedges.SourcePoints, dirty.Wedges.InitialDirections, dirty.Wedges.SrcPower} {
		poison(r, f)
	}
	for _, f := range []cuda.Slice[int32]{dirty.Wedges.PrimID, dirty.Wedges.BounceDepth} {
		poison(r, f)
	}
	for _, f := range []cuda.Slice[int64]{dirty.Wedges.RayIndex, dirty.Wedges.Count, dirty.Count, dirty.Words} {
		poison(r, f)
	}
	for _, f := range []cuda.Slice[uint32]{dirty.Status, dirty.WordCounts, dirty.WordMaxima} {
		poison(r, f)
	}
	_, out := call.Columns()
	for _, c := range out {
		poison(r, c.Data)
	}
	require.NoError(r, call.Run())
	require.Equal(r, [4]any{b.rows(), int64(b.rows()), g.Cells(), opt.MaxBounces}, [4]any{dirty.Rows(), dirty.RayCount, dirty.CellsTotal, dirty.MaxBounces})
	got := r.readGrids(dirty)
	got.base = opt.Wavelength / (4 * math.Pi) * math.Sqrt(opt.SolidAnglePerRay/g.CellArea())
	require.NoError(r, dirty.Close())
	return got
}

// gridCase is one setup of the tables of cases.
type gridCase struct {
	mesh    scene.Mesh
	ray     batch
	tx, pol vec
	grid    scene.Grid
	opt     scene.ReflGridOptions
	eta     float32
	absorbs bool
}

func (c gridCase) run(t testing.TB) grids {
	t.Helper()
	r := build(t, c.mesh)
	c.opt.TxPosition, c.opt.TxPolarization = toDevice(r, c.tx[:]), toDevice(r, c.pol[:])
	c.opt.Materials = r.materials(oneMedium(c.mesh, c.eta, !c.absorbs))
	return r.accumulateTubes(c.ray, c.grid, c.opt)
}

func square(axis scene.Axis, position, lo, hi float32, res int32) scene.Grid {
	return scene.Grid{Axis: axis, Position: position, Min0: lo, Max0: hi, Min1: lo, Max1: hi, Res0: res, Res1: res}
}

// contribution is what is expected of a cell.
type contribution struct {
	cell  int
	field [3]complex128
	power float64
	count uint32
}

// requireCells compares the cells that are named within 1e-5, relative and in units of what
// all contributions have in common, and all others with zero.
func requireCells(t testing.TB, got grids, want ...contribution) {
	t.Helper()
	rest := map[int]bool{}
	for i := range got.power {
		rest[i] = true
	}
	total := uint32(0)
	for _, w := range want {
		delete(rest, w.cell)
		field, power := got.cell(w.cell)
		for k := range field {
			for i, pair := range [2][2]float64{{real(w.field[k]), real(field[k])}, {imag(w.field[k]), imag(field[k])}} {
				require.InDelta(t, pair[0], pair[1], 1e-5*(math.Abs(pair[0])+got.base), "cell %d, component %d, part %d", w.cell, k, i)
			}
		}
		require.InEpsilon(t, w.power, power, 1e-5, "cell %d", w.cell)
		require.Equal(t, w.count, got.cellCount[w.cell], "cell %d", w.cell)
		total += w.count
	}
	for i := range rest {
		field, power := got.cell(i)
		require.Zero(t, field, "cell %d", i)
		require.Zero(t, power, "cell %d", i)
		require.Zero(t, got.cellCount[i], "cell %d", i)
	}
	require.Equal(t, int64(total), got.count)
	require.Zero(t, got.status)
	require.Equal(t, got.cellCount, got.wordCounts)
}

func caseA1() gridCase {
	return gridCase{
		mesh: meshFloor(), ray: ray(vec{-.25, -.25, 1}, vec{0, 0, -1}), tx: vec{-.25, -.25, 1}, pol: vec{1, 0, 0}, eta: 4,
		grid: square(scene.AxisZ, 2, -2, 2, 2),
		opt:  scene.ReflGridOptions{Wavelength: 4 * math.Pi, SolidAnglePerRay: 1, MaxBounces: 1},
	}
}

func caseA3() gridCase {
	return gridCase{
		mesh: meshFloor(), ray: ray(vec{0, 0, 2}, vec{1, 0, -1}), tx: vec{0, 0, 2}, pol: vec{0, 0, 1}, eta: 4,
		grid: scene.Grid{Position: 1, Min0: .5, Max0: 4.5, Min1: -2.5, Max1: 1.5, Res0: 4, Res1: 4},
		opt:  scene.ReflGridOptions{Wavelength: .1, SolidAnglePerRay: 1e-4, MaxBounces: 1, IncludeLOS: true},
	}
}

func caseA7() gridCase {
	return gridCase{
		mesh: meshTwo(), ray: ray(vec{.3, -.2, .5}, vec{.25, 0, -1}), tx: vec{.3, -.2, .5}, pol: vec{1, 0, 0}, eta: 4,
		grid: square(scene.AxisZ, 1, -8, 8, 16),
		opt:  scene.ReflGridOptions{Wavelength: 1, SolidAnglePerRay: .01, MaxBounces: 3},
	}
}

// directA3 is the leg of case A3 before the reflection.
func directA3() contribution {
	c := complex(4.19584475e-5, -5.21276767e-5)
	return contribution{8, [3]complex128{c, 0, c}, 8.955612e-9, 1}
}

func TestReflGridA1OneReflection(t *testing.T) {
	requireCells(t, caseA1().run(t), contribution{0, [3]complex128{complex(-.0117895336, .166249164)}, 1. / 36, 1})
}

func TestReflGridA2IdenticalRows(t *testing.T) {
	one := caseA1().run(t)
	c := caseA1()
	c.ray = batch{}
	for range 1000 {
		c.ray.add(vec{-.25, -.25, 1}, vec{0, 0, -1})
	}
	got := c.run(t)
	requireCells(t, got, contribution{0, [3]complex128{complex(-11.7895336, 166.249164)}, 27.7777778, 1000})
	for i, w := range one.words {
		require.Equal(t, 1000*w, got.words[i], "word %d", i)
	}
}

func TestReflGridA3DirectAndReflected(t *testing.T) {
	c := complex(1.22040118e-5, 6.08297429e-6)
	requireCells(t, caseA3().run(t), directA3(), contribution{10, [3]complex128{c, 0, -c}, 3.71880962e-10, 1})
}

func TestReflGridA4PolarizedAcross(t *testing.T) {
	c := caseA3()
	c.pol = vec{0, 1, 0}
	requireCells(t, c.run(t),
		contribution{8, [3]complex128{1: complex(5.93382055e-5, -7.37196674e-5)}, 8.955612e-9, 1},
		contribution{10, [3]complex128{1: complex(3.82331824e-5, 1.90569682e-5)}, 1.82494428e-9, 1})
}

func TestReflGridA5BoundOfTheFirstLeg(t *testing.T) {
	c := caseA3()
	c.ray = c.ray.until(1)
	requireCells(t, c.run(t))
	c.ray = c.ray.until(2)
	requireCells(t, c.run(t), directA3())
	// Like absent, with no bound.
	c.ray = c.ray.until(inf)
	bounded := c.run(t)
	requireSameGrids(t, caseA3().run(t), bounded, "")
	for _, tmax := range []float32{nan, -1, 0} {
		c.ray = c.ray.until(tmax)
		requireCells(t, c.run(t))
	}
}

func TestReflGridA6Absorbers(t *testing.T) {
	c := caseA3()
	c.opt.CollectWedges, c.opt.WedgeCapacity = true, 2
	c.absorbs = true
	got := c.run(t)
	requireCells(t, got, directA3())
	require.Equal(t, unusedWedges(2), got.wedges.exact())
	c.absorbs, c.eta = false, 1
	got = c.run(t)
	requireCells(t, got, directA3())
	require.Equal(t, unusedWedges(2), got.wedges.exact())
}

func TestReflGridA7ParallelMirrors(t *testing.T) {
	requireCells(t, caseA7().run(t),
		contribution{120, [3]complex128{complex(2.42679463e-3, -7.2434723e-4), 0, complex(-6.06698657e-4, 1.81086807e-4)}, 6.81488676e-6, 1},
		contribution{121, [3]complex128{complex(-5.09498422e-4, 2.81400726e-4), 0, complex(-1.9159552e-4, 1.85909287e-4)}, 7.85778626e-7, 2})
	// The second and third reflection one by one.
	c := caseA7()
	c.opt.MaxBounces = 2
	_, two := c.run(t).cell(121)
	require.InEpsilon(t, 7.11496137e-7, two, 1e-5)
	require.InEpsilon(t, 7.42824892e-8, 7.85778626e-7-two, 1e-4)
}

func TestReflGridA8AcrossX(t *testing.T) {
	c := gridCase{
		mesh: meshFloor(), ray: ray(vec{0, .25, .75}, vec{1, 0, 0}), tx: vec{0, .25, .75}, pol: vec{0, 1, 0}, eta: 4,
		grid: scene.Grid{Axis: scene.AxisX, Position: 2, Max0: 1, Max1: 1, Res0: 2, Res1: 4},
		opt:  scene.ReflGridOptions{Wavelength: 4 * math.Pi, SolidAnglePerRay: 1. / 8, IncludeLOS: true},
	}
	want := contribution{6, [3]complex128{1: complex(.540302306, -.841470985)}, 1, 1}
	requireCells(t, c.run(t), want)
	// The length of d does not matter.
	c.ray.d = []float32{1e-3, 0, 0}
	requireCells(t, c.run(t), want)
	// Nothing is asked for.
	c.opt.IncludeLOS = false
	requireCells(t, c.run(t))
	// A plane across y: the same turned by a quarter.
	c.ray, c.tx, c.pol = ray(vec{.25, 0, .75}, vec{0, 3, 0}), vec{.25, 0, .75}, vec{1, 0, 0}
	c.grid.Axis, c.opt.IncludeLOS = scene.AxisY, true
	requireCells(t, c.run(t), contribution{6, [3]complex128{0: want.field[1]}, 1, 1})
}
