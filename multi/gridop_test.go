package multi

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// gridRoom is a built set of two devices that divides every accumulation, and tables for it.
func gridRoom(t *testing.T) (*Scene, radioTables) {
	t.Helper()
	drv, _, _ := emulator(t, 2)
	s := quickScene(t, drv, 2, Options{Options: chunked.Options{MinLanesPerDevice: 1}})
	m := room(rngOf(120))
	faces := len(m.Faces) / 3
	build(t, s, m)
	r := newTables(t, s, cornerStates(faces), faces)
	t.Cleanup(func() { r.close(t) })
	return s, r
}

// Calls run the plan that Plan says, private copies of the sums included, and it says what
// crosses the link: one copy of the sums, whatever their number.
func TestMultiGridCallsRunTheirPlan(t *testing.T) {
	s, r := gridRoom(t)
	const rays, keller = 1 << 17, 8192
	o, err := cuda.Upload(bg, s.Stream(), make([]float32, 3*rays))
	require.NoError(t, err)
	defer func() { require.NoError(t, cuda.Free(o)) }()
	nothing := scene.ReflGridOptions{Wavelength: .1, SolidAnglePerRay: .01, Materials: r.materials, TxPosition: o}
	azimuths := scene.DfrDirectOptions{Wavelength: .1, KellerSamples: keller, Materials: r.materials}
	joined := scene.DfrDirectOptions{Wavelength: .1, DirectSamples: keller, Materials: r.materials}
	for _, c := range []struct {
		op     chunked.Op
		rows   int64
		copies int64 // beside the sums
		extra  int64 // bytes that the link moves beside those of the description
		ask    func(info *CallInfo) (scene.Reusable, error)
	}{
		{AccumulateReflectionsOp(floorPlan, 24+12, r.materials.Bytes(), nothing), rays, 8, 4, func(info *CallInfo) (scene.Reusable, error) {
			return result(s.AccumulateReflections(bg, scene.Rays{O: o, D: o}, floorPlan, nothing, Info(info)))
		}},
		{AccumDfrDirectOp(floorPlan, pathStates, tableBytes(r.states, r.materials), azimuths), keller, 8, -8, func(info *CallInfo) (scene.Reusable, error) {
			return result(s.AccumDfrDirect(bg, r.states, floorPlan, azimuths, Info(info)))
		}},
		{AccumDfrDirectOp(floorPlan, pathStates, tableBytes(r.states, r.materials), joined), keller, 0, -8, func(info *CallInfo) (scene.Reusable, error) {
			return result(s.AccumDfrDirect(bg, r.states, floorPlan, joined, Info(info)))
		}},
		{AccumDfrCoherentDirectOp(floorPlan, pathStates, tableBytes(r.states, r.materials), scene.DfrCoherentOptions{}), pathStates * floorPlan.Cells(), 0, 0, func(info *CallInfo) (scene.Reusable, error) {
			return result(s.AccumDfrCoherentDirect(bg, r.states, floorPlan, scene.DfrCoherentOptions{Wavelength: .1, Materials: r.materials}, Info(info)))
		}},
	} {
		want, err := s.Plan(c.op, c.rows)
		require.NoError(t, err)
		var info CallInfo
		got, err := c.ask(&info)
		require.NoError(t, err)
		require.NoError(t, got.Close())
		ran := info.Plan
		require.Equal(t, want, ran, c.op.Key)
		require.Equal(t, c.copies+min(c.copies, 1), ran.Op.Grid.Copies, c.op.Key)
		if c.op.Key != keyDfrCoherent { // whose cells are seldom cut
			require.Equal(t, info.Plan.Op.Grid.Accumulator+c.extra, info.ToMaster, c.op.Key)
		}
	}
}

// plannedGrid is a call, and the operation and the lanes that describe it.
type plannedGrid struct {
	name        string
	op          chunked.Op
	begin, rows int64
	ask         func(opts ...scene.CallOption) (scene.Reusable, error)
}

// gridCalls are random calls about tables of several numbers of states, whose lanes do nothing:
// what a call holds does not depend on what it finds.
type gridCalls struct {
	*Scene
	rng    *rand.Rand
	tables map[int]*scene.StateTable
	off    cuda.Slice[uint8]
	rays   cuda.Slice[float32]
	rows   int64
	glass  *scene.MaterialTable
}

func (x *gridCalls) window(lanes int64) (w *scene.Window, begin, rows int64) {
	if x.rng.IntN(2) == 0 {
		return nil, 0, lanes
	}
	begin = x.rng.Int64N(lanes)
	rows = x.rng.Int64N(lanes - begin + 1)
	return &scene.Window{Offset: begin, Count: rows}, begin, rows
}

func (x *gridCalls) call() (c plannedGrid) {
	states := []int{1, 3, 40, 2048, 2049, 4095, 4096}[x.rng.IntN(7)]
	table, grid := x.tables[states], cellsOf(1)
	grid.Res0, grid.Res1 = 1+x.rng.Int32N(4), 1+x.rng.Int32N(4)
	replicated := table.Bytes() + int64(x.off.Len())
	switch x.rng.IntN(4) {
	case 0:
		o := scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 1 + x.rng.Int64N(20000), Active: x.off, AllowPartialCoverage: true}
		o.Window, c.begin, c.rows = x.window(o.DirectSamples)
		c.name, c.op = "direct", AccumDfrDirectOp(grid, int64(states), replicated, o)
		c.ask = func(opts ...scene.CallOption) (scene.Reusable, error) {
			return result(x.AccumDfrDirect(bg, table, grid, o, opts...))
		}
	case 1:
		o := scene.DfrDirectOptions{Wavelength: 1, KellerSamples: 1 + x.rng.Int64N(20000), Active: x.off}
		o.Window, c.begin, c.rows = x.window(o.KellerSamples)
		c.name, c.op = "keller", AccumDfrDirectOp(grid, int64(states), replicated, o)
		c.ask = func(opts ...scene.CallOption) (scene.Reusable, error) {
			return result(x.AccumDfrDirect(bg, table, grid, o, opts...))
		}
	case 2:
		o := scene.DfrCoherentOptions{Wavelength: 1, Active: x.off, KeepWords: x.rng.IntN(3) == 0}
		o.Window, c.begin, c.rows = x.window(int64(states) * grid.Cells())
		c.name, c.op = "coherent", AccumDfrCoherentDirectOp(grid, int64(states), replicated, o)
		c.ask = func(opts ...scene.CallOption) (scene.Reusable, error) {
			return result(x.AccumDfrCoherentDirect(bg, table, grid, o, opts...))
		}
	default:
		o := scene.ReflGridOptions{
			Wavelength: 1, SolidAnglePerRay: .01, MaxBounces: x.rng.IntN(2), Materials: x.glass, TxPosition: x.rays,
			CollectWedges: x.rng.IntN(2) == 0, WedgeCapacity: x.rng.IntN(100),
		}
		c.name, c.rows, c.op = "reflections", x.rows, AccumulateReflectionsOp(grid, 24+12, x.glass.Bytes(), o)
		c.ask = func(opts ...scene.CallOption) (scene.Reusable, error) {
			return result(x.AccumulateReflections(bg, scene.Rays{O: x.rays, D: x.rays}, grid, o, opts...))
		}
	}
	return c
}

// shifted is a plan of later lanes. Devices without lanes have them nowhere.
func shifted(p chunked.Plan, by int64) chunked.Plan {
	p = p.Clone()
	p.Begin += by
	for k, s := range p.Shards {
		p.Shards[k] = chunked.Range{}
		if s.Len() > 0 {
			p.Shards[k] = chunked.Range{Begin: s.Begin + by, End: s.End + by}
		}
	}
	for k := range p.Chunks {
		p.Chunks[k].Begin += by
		p.Chunks[k].End += by
	}
	return p
}

// What the exported operations plan is what calls run, and calls hold what the plan says: of many
// states and few cells, in windows and chunks, with every transport.
func TestMultiGridPlansSayWhatCallsHold(t *testing.T) {
	if gputest.Native() {
		t.Skip("sizes of a GPU's allocator are rounded; the emulator's are exact")
	}
	drv, _, _ := emulator(t, 3)
	s := quick(t, drv, []int{0, 1, 2}, Options{Options: chunked.Options{MinLanesPerDevice: 1}})
	m := room(rngOf(150))
	build(t, s, m)
	faces := len(m.Faces) / 3
	const rows = 70000 // which add to private copies
	x := &gridCalls{Scene: s, rng: rngOf(151), tables: map[int]*scene.StateTable{}, rows: rows}
	for _, n := range []int{1, 3, 40, 2048, 2049, 4095, 4096} {
		table, err := s.UploadStates(bg, wedgeStates(x.rng, n, faces))
		require.NoError(t, err)
		defer func() { require.NoError(t, table.Close()) }()
		x.tables[n] = table
	}
	var err error
	x.glass, err = s.UploadMaterials(bg, glass(faces))
	require.NoError(t, err)
	x.off, x.rays = upload(t, s.Stream(), []uint8{0}), upload(t, s.Stream(), make([]float32, 3*rows))
	defer func() {
		require.NoError(t, x.glass.Close())
		require.NoError(t, cuda.Free(x.off))
		require.NoError(t, cuda.Free(x.rays))
	}()
	r, err := s.AccumDfrDirect(bg, x.tables[1], cellsOf(1), scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 3})
	require.NoError(t, err)
	require.NoError(t, r.Close()) // what devices keep was in use before
	seen := map[string]int{}
	for range 200 {
		c := x.call()
		s.opts.ChunkRays = []int64{0, 0, 0, 1 + c.rows/(2+x.rng.Int64N(20))}[x.rng.IntN(4)]
		s.opts.MemoryBudget = []int64{0, 1 << 30}[x.rng.IntN(2)]
		s.opts.Weights = [][]float64{nil, {1, 0, 0}, {0, 1, 1}, {3, 1, 2}}[x.rng.IntN(4)]
		s.transport = []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host}[x.rng.IntN(3)]
		what := fmt.Sprintf("%s of %d from %d on, %+v, %v, %+v", c.name, c.rows, c.begin, s.opts.Options, s.transport, c.op.Grid)
		want, err := s.Plan(c.op, c.rows)
		require.NoError(t, err, what)
		before := poolUse(s)
		var info CallInfo
		got, err := c.ask(Info(&info))
		require.NoError(t, err, what)
		require.NoError(t, got.Close())
		require.NoError(t, s.Stream().Synchronize(bg))
		ran := info.Plan
		require.Equal(t, c.begin, ran.Begin, what)
		require.Equal(t, shifted(want, c.begin), shifted(ran, 0), what)
		columns := map[string]int64{"direct": 6, "keller": 6, "coherent": 4, "reflections": 24}[c.name]
		for k, r := range s.replicas {
			held := int64(r.ctx.Pool().Stats().HighWater - before[k])
			require.LessOrEqual(t, held, ran.PerDevice[k].Peak+256*columns, "%s, device %d", what, k)
			require.LessOrEqual(t, info.HighWater[k], ran.PerDevice[k].Peak+256*columns, "%s, device %d", what, k)
		}
		if ran.Kind.Whole() {
			seen[c.name]++
		} else {
			seen[fmt.Sprint(c.name, " ", s.transport)]++
		}
	}
	require.Len(t, seen, 4*(1+3), "%v", seen)
}

// A budget that the master alone needs is enough, for calls whose accumulators have most of it
// beside the cells, and one byte less is not.
func TestMultiGridBudgetsBind(t *testing.T) {
	drv, _, _ := emulator(t, 2)
	s := quick(t, drv, []int{0, 1}, Options{Options: chunked.Options{MinLanesPerDevice: 1, Weights: []float64{1, 0}}})
	m := room(rngOf(152))
	build(t, s, m)
	off := upload(t, s.Stream(), []uint8{0})
	defer func() { require.NoError(t, cuda.Free(off)) }()
	for _, c := range []struct {
		states int
		cells  int32
		direct scene.DfrDirectOptions // or a coherent call
		least  int64
	}{
		{2048, 1, scene.DfrDirectOptions{DirectSamples: 2048}, 48 + 48 + 4*2048 + 4},
		{2049, 1, scene.DfrDirectOptions{DirectSamples: 2049}, 48 + 48 + 4},
		{2048, 1, scene.DfrDirectOptions{KellerSamples: 2048}, 48 + 48 + 4*2048 + 4 + 2*48}, // of two copies
		{2048, 1, scene.DfrDirectOptions{KellerSamples: 2048, Window: &scene.Window{Offset: 9, Count: 2039}}, 48 + 48 + 4*2048 + 4},
		{4096, 12, scene.DfrDirectOptions{}, 36*144 + 292*144},
		{4095, 12, scene.DfrDirectOptions{}, 36*144 + 600},
	} {
		table, err := s.UploadStates(bg, wedgeStates(rngOf(153), c.states, len(m.Faces)/3))
		require.NoError(t, err)
		for _, s.opts.MemoryBudget = range []int64{c.least, c.least - 1} {
			var op chunked.Op
			rows := int64(c.states) * int64(c.cells) * int64(c.cells)
			ask := func() error {
				r, err := s.AccumDfrCoherentDirect(bg, table, cellsOf(c.cells), scene.DfrCoherentOptions{Wavelength: 1, Active: off})
				return attach(err, r.Close())
			}
			if o := c.direct; o.DirectSamples+o.KellerSamples == 0 {
				op = AccumDfrCoherentDirectOp(cellsOf(c.cells), int64(c.states), 0, scene.DfrCoherentOptions{})
			} else {
				o.Wavelength, o.Active = 1, off
				op = AccumDfrDirectOp(cellsOf(c.cells), int64(c.states), 0, o)
				ask = func() error {
					r, err := s.AccumDfrDirect(bg, table, cellsOf(c.cells), o)
					return attach(err, r.Close())
				}
			}
			_, planErr := s.Plan(op, rows)
			err := ask()
			require.Equal(t, planErr, err)
			if s.opts.MemoryBudget == c.least {
				require.NoError(t, err, "%+v", c)
				continue
			}
			var short *chunked.BudgetError
			require.ErrorAs(t, err, &short, "%+v", c)
			require.Equal(t, c.least, short.Minimum)
		}
		require.NoError(t, table.Close())
	}
}
