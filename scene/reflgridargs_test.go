package scene_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// Whatever is wrong with a call is said before any driver call.
func TestReflGridRefusals(t *testing.T) {
	c := caseA3()
	r, calls := traced(t, c.mesh)
	rays := r.upload(c.ray)
	c.opt.TxPosition, c.opt.Materials = toDevice(r, c.tx[:]), r.materials(oneMedium(c.mesh, 4, true))
	closed := r.materials(oneMedium(c.mesh, 4, true))
	require.NoError(t, closed.Close())
	other, err := r.Intersect(background, rays, scene.None)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	two := toDevice(r, []float32{1, 2})
	type call struct {
		rays scene.Rays
		grid scene.Grid
		opt  scene.ReflGridOptions
		into []scene.CallOption
	}
	for name, bad := range map[string]struct {
		change func(*call)
		arg    string
	}{
		"directions":           {func(c *call) { c.rays.D = two }, "D"},
		"bounds":               {func(c *call) { c.rays.TMax = two }, "TMax"},
		"mask":                 {func(c *call) { c.rays.Active = toDevice(r, []uint8{1, 1}) }, "Active"},
		"axis":                 {func(c *call) { c.grid.Axis = 3 }, "Grid.Axis"},
		"resolution":           {func(c *call) { c.grid.Res1 = 0 }, "Grid.Res0, Res1"},
		"cells":                {func(c *call) { c.grid.Res0, c.grid.Res1 = 1<<16, 1<<15 }, "Grid.Res0, Res1"},
		"extent":               {func(c *call) { c.grid.Max0 = c.grid.Min0 }, "Grid.Min0, Max0"},
		"extent not finite":    {func(c *call) { c.grid.Max1 = inf }, "Grid.Min1, Max1"},
		"position":             {func(c *call) { c.grid.Position = nan }, "Grid.Position"},
		"wavelength":           {func(c *call) { c.opt.Wavelength = 0 }, "Wavelength"},
		"wavelength NaN":       {func(c *call) { c.opt.Wavelength = math.NaN() }, "Wavelength"},
		"endless wavelength":   {func(c *call) { c.opt.Wavelength = 1e200 }, "Wavelength"},
		"solid angle":          {func(c *call) { c.opt.SolidAnglePerRay = -1 }, "SolidAnglePerRay"},
		"more than a sphere":   {func(c *call) { c.opt.SolidAnglePerRay = 12.57 }, "SolidAnglePerRay"},
		"solid angle infinite": {func(c *call) { c.opt.SolidAnglePerRay = math.Inf(1) }, "SolidAnglePerRay"},
		"negative bounces":     {func(c *call) { c.opt.MaxBounces = -1 }, "MaxBounces"},
		"bounces":              {func(c *call) { c.opt.MaxBounces = 65 }, "MaxBounces"},
		"weight":               {func(c *call) { c.opt.FieldWeight = 2 }, "FieldWeight"},
		"row base":             {func(c *call) { c.opt.RowBase = -1 }, "RowBase"},
		"large row base":       {func(c *call) { c.opt.RowBase = math.MaxInt64 / 64 }, "RowBase"},
		"capacity":             {func(c *call) { c.opt.WedgeCapacity = -1 }, "WedgeCapacity"},
		"endless capacity":     {func(c *call) { c.opt.WedgeCapacity = 1 << 31 }, "WedgeCapacity"},
		"capacity that wraps":  {func(c *call) { c.opt.CollectWedges, c.opt.WedgeCapacity = true, 1<<62 }, "WedgeCapacity"},
		"stride":               {func(c *call) { c.opt.WedgeSampleStride = -1 }, "WedgeSampleStride"},
		"no transmitter":       {func(c *call) { c.opt.TxPosition = cuda.Slice[float32]{} }, "TxPosition"},
		"transmitter":          {func(c *call) { c.opt.TxPosition = two }, "TxPosition"},
		"polarization":         {func(c *call) { c.opt.TxPolarization = two }, "TxPolarization"},
		"no materials":         {func(c *call) { c.opt.Materials = nil }, "Materials"},
		"closed materials":     {func(c *call) { c.opt.Materials = closed }, "Materials"},
		"another result":       {func(c *call) { c.into = []scene.CallOption{scene.Into(other)} }, "Into"},
		"option of another":    {func(c *call) { c.into = []scene.CallOption{scene.Carry(1)} }, "opts"},
		"no memory":            {func(c *call) { c.into = []scene.CallOption{scene.Unallocated()} }, "opts"},
	} {
		b := call{rays, c.grid, c.opt, nil}
		bad.change(&b)
		calls.Reset()
		_, err := r.AccumulateReflections(background, b.rays, b.grid, b.opt, b.into...)
		requireArgument(t, err, "AccumulateReflections", bad.arg)
		assert.Empty(t, calls.Counts(), name)
	}
	_, err = open(t).AccumulateReflections(background, rays, c.grid, c.opt)
	require.ErrorIs(t, err, scene.ErrNotReady)
}

func TestReflGridOtherDevice(t *testing.T) {
	gputest.Need(t, 2)
	g := gputest.Open(t, 2, nil)
	c := caseA3()
	var rigs [2]*rig
	for i := range rigs {
		rigs[i] = openOn(t, g.Context(t, i))
		rigs[i].add(c.mesh)
		require.NoError(t, rigs[i].Build(background))
	}
	a, b := rigs[0], rigs[1]
	rays := a.upload(c.ray)
	table := a.materials(oneMedium(c.mesh, 4, true))
	c.opt.TxPosition, c.opt.Materials = toDevice(b, c.tx[:]), table
	var wrong *cuda.WrongDeviceError
	_, err := a.AccumulateReflections(background, rays, c.grid, c.opt)
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "TxPosition", wrong.Arg)
	c.opt.TxPosition = toDevice(a, c.tx[:])
	c.opt.Materials = b.materials(oneMedium(c.mesh, 4, true))
	_, err = a.AccumulateReflections(background, rays, c.grid, c.opt)
	var refused *scene.ArgumentError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "Materials", refused.Arg)
}

// Only results of parts of one call may be added.
func TestReflGridMergeRefusals(t *testing.T) {
	c := caseA3()
	r := build(t, c.mesh)
	rays := r.upload(c.ray)
	c.opt.TxPosition, c.opt.Materials = toDevice(r, c.tx[:]), r.materials(oneMedium(c.mesh, 4, true))
	run := func(change func(*scene.Grid, *scene.ReflGridOptions)) *scene.ReflGrids {
		grid, opt := c.grid, c.opt
		opt.KeepWords = true
		change(&grid, &opt)
		g, err := r.AccumulateReflections(background, rays, grid, opt)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, g.Close()) })
		return g
	}
	whole := run(func(*scene.Grid, *scene.ReflGridOptions) {})
	wordless := run(func(_ *scene.Grid, o *scene.ReflGridOptions) { o.KeepWords = false })
	require.Nil(t, toHost(r, wordless.Words))
	require.Nil(t, toHost(r, wordless.CellCount))
	refused := func(err error, arg string) {
		t.Helper()
		var bad *scene.ArgumentError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, arg, bad.Arg)
	}
	refused(wordless.Read(), "ReflGrids")
	refused(wordless.Merge(whole), "ReflGrids")
	refused(whole.Merge(wordless), "other")
	refused(whole.Merge(nil), "other")
	refused(whole.Merge(whole), "other")
	for _, change := range []func(*scene.Grid, *scene.ReflGridOptions){
		func(g *scene.Grid, _ *scene.ReflGridOptions) { g.Position = 1.5 },
		func(_ *scene.Grid, o *scene.ReflGridOptions) { o.Wavelength = .2 },
		func(_ *scene.Grid, o *scene.ReflGridOptions) { o.SolidAnglePerRay = 1 },
		func(_ *scene.Grid, o *scene.ReflGridOptions) { o.MaxBounces = 2 },
		func(_ *scene.Grid, o *scene.ReflGridOptions) { o.IncludeLOS = false },
		func(_ *scene.Grid, o *scene.ReflGridOptions) { o.FieldWeight = scene.WeightArea },
		func(_ *scene.Grid, o *scene.ReflGridOptions) { o.Materials = r.materials(oneMedium(c.mesh, 4, true)) },
	} {
		refused(whole.Merge(run(change)), "other")
	}
}

// A result may be filled again, also by a call of another size.
func TestReflGridInto(t *testing.T) {
	c := caseA3()
	r := build(t, c.mesh)
	rays := r.upload(c.ray)
	c.opt.TxPosition, c.opt.Materials = toDevice(r, c.tx[:]), r.materials(oneMedium(c.mesh, 4, true))
	c.opt.KeepWords, c.opt.CellCount = true, true
	want := r.accumulateTubes(c.ray, c.grid, c.opt)
	large := c.opt
	large.CollectWedges, large.WedgeCapacity = true, 100
	g, err := r.AccumulateReflections(background, rays, c.grid, large)
	require.NoError(t, err)
	at := g.Power.Addr()
	again, err := r.AccumulateReflections(background, rays, c.grid, c.opt, scene.Into(g))
	require.NoError(t, err)
	require.Same(t, g, again)
	require.Equal(t, at, again.Power.Addr())
	requireSameGrids(t, want, r.readGrids(again), "")
	_, err = r.AccumulateReflections(background, scene.Rays{O: mustSub(t, again.Power, 0, 3), D: rays.D}, c.grid, c.opt, scene.Into(again))
	require.Error(t, err, "an input lies in the result")
	require.NoError(t, again.Close())
	require.NoError(t, again.Close())
}

func mustSub[T cuda.Scalar](t testing.TB, s cuda.Slice[T], i, j int) cuda.Slice[T] {
	t.Helper()
	part, err := s.Sub(i, j)
	require.NoError(t, err)
	return part
}

func TestReflGridNames(t *testing.T) {
	assert.Equal(t, "OK", scene.ReflGridStatus(0).String())
	assert.Equal(t, "NotFinite|Guard|0x8", (scene.StatusNotFinite | scene.StatusGuard | 8).String())
	assert.Equal(t, "WeightSqrtArea", scene.WeightSqrtArea.String())
	assert.Equal(t, "WeightArea", scene.WeightArea.String())
	assert.Equal(t, "FieldWeight(7)", scene.FieldWeight(7).String())
	assert.Contains(t, (&scene.GuardError{Op: "X"}).Error(), "X")
}
