package scene_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// exactCase is a fan with hot and cold cells: most rays cross a few cells near the
// transmitter.
type exactCase struct {
	batch
	mesh  scene.Mesh
	media scene.Materials
	tx    []float32
	grid  scene.Grid
	opt   scene.ReflGridOptions
}

func newExactCase(rng *rand.Rand, n int) exactCase {
	c := exactCase{
		mesh: join(moved(scaled(unitCube(), 2), vec{-.5, -.5, -.5}), randomSoup(rng, 30, .4)),
		grid: square(scene.AxisZ, .4, -.4, 1.4, 9),
		opt: scene.ReflGridOptions{
			Wavelength: .3, SolidAnglePerRay: 4 * math.Pi / float64(n), MaxBounces: 3, IncludeLOS: true,
			CollectWedges: true, CollectWedgePrefixes: true, WedgeCapacity: n, WedgeSampleStride: 3,
		},
	}
	c.media = randomMedia(rng, len(c.mesh.Faces)/3)
	for i := range n {
		d := randomDirection(rng)
		if i%2 == 0 { // straight down, nearly
			d = vec{.05 * d[0], .05 * d[1], -1}
		}
		o := vec{.5 + .01*rng.Float32(), .5 + .01*rng.Float32(), .6}
		c.add(o, d)
		c.tx = append(c.tx, o[:]...)
		c.active = append(c.active, uint8(min(1, rng.IntN(20))))
	}
	return c
}

// randomMedia are several media for random faces, absorbers and conductors among them.
func randomMedia(rng *rand.Rand, faces int) scene.Materials {
	m := scene.Materials{
		EtaR: []float32{2.5, 4, 6.5, 1, 3, .5}, Sigma: []float32{0, .01, .5, inf, 0, 0}, MuR: []float32{1, 1, 1.5, 1, 1, 1},
		Gain: []float32{1, .9, 1, .95, 1, 1}, Valid: []bool{true, true, true, true, false, true},
	}
	for range faces {
		m.Index = append(m.Index, int32(rng.IntN(len(m.EtaR))))
	}
	return m
}

// rows is the case with these rows.
func (c exactCase) with(rows []int) exactCase {
	p := c
	p.batch, p.tx = batch{}, nil
	for _, i := range rows {
		o, d, _ := c.ray(i)
		p.add(o, d)
		p.active = append(p.active, c.active[i])
		p.tx = append(p.tx, c.tx[3*i:3*i+3]...)
	}
	return p
}

func (c exactCase) open(t testing.TB) *rig { return build(t, c.mesh) }

func (c exactCase) run(r *rig, table *scene.MaterialTable) grids {
	r.Helper()
	c.opt.Materials, c.opt.TxPosition = table, toDevice(r, c.tx)
	return r.accumulateTubes(c.batch, c.grid, c.opt)
}

func exactRows(emulated int) int {
	if gputest.Native() {
		return 1000000
	}
	return emulated
}

// X1, X2, X4: runs, orders of the rows, copies and launches of any number leave no trace.
func TestReflGridX1X2X4Order(t *testing.T) {
	rng := rand.New(rand.NewPCG(62, 1))
	n := exactRows(400)
	c := newExactCase(rng, n)
	r := c.open(t)
	table := r.materials(c.media)
	want := c.run(r, table)
	require.Greater(t, want.wedges.count, int64(n/4))
	hot, cold := slices.Max(want.cellCount), slices.Min(want.cellCount)
	require.Greater(t, int(hot), n/8, "no cell is hot")
	require.Less(t, int(cold), n/20, "no cell is cold")
	runs := 3
	if gputest.Native() {
		runs = 20
	}
	for range runs {
		requireSameGrids(t, want, c.run(r, table), "")
	}
	for _, copies := range []int64{1, 2, 4, 8} {
		r.ForceCopies(copies)
		requireSameGrids(t, want, c.run(r, table), "%d copies", copies)
	}
	r.ForceCopies(0)
	own := r.TubeLanes()
	for _, lanes := range [][2]uint32{{22, 6}, {8, 24}} {
		r.ForceTubeLanes(lanes[0], lanes[1])
		requireSameGrids(t, want, c.run(r, table), "%v busy and idle lanes", lanes)
	}
	r.ForceTubeLanes(own[0], own[1])
	r.ForceRowsPerLaunch(int64(n/3 + 1))
	requireSameGrids(t, want, c.run(r, table), "several launches")
	r.ForceRowsPerLaunch(1 << 30)

	order := rng.Perm(n)
	mixed := c.with(order).run(r, table)
	got, all := mixed, want
	got.wedges, all.wedges = wedges{}, wedges{}
	requireSameGrids(t, all, got, "")
	if n > 10000 {
		return // events are compared one by one
	}
	// The stride depends on the numbers of rows, so that all events are compared.
	c.opt.WedgeSampleStride, c.opt.WedgeCapacity = 1, 3*n
	require.Equal(t, c.run(r, table).wedges.byRay(nil), c.with(order).run(r, table).wedges.byRay(order))
}

// byRay are the events of each ray; names, if there are any, are the names of the rays.
func (w wedges) byRay(names []int) map[int][]any {
	out := map[int][]any{}
	for i := range w.ray[:w.count] {
		ray := int(w.ray[i])
		if names != nil {
			ray = names[ray]
		}
		one := w.part(i, i+1)
		one.ray = nil
		out[ray] = append(out[ray], one.exact())
	}
	return out
}

// X3: parts of the rows, merged, are the whole, and so are parts that a scheduler adds.
func TestReflGridX3Parts(t *testing.T) {
	rng := rand.New(rand.NewPCG(63, 1))
	n := exactRows(400)
	c := newExactCase(rng, n)
	c.opt.CollectWedges = false
	r := c.open(t)
	table := r.materials(c.media)
	want := c.run(r, table)
	for _, parts := range []int{1, 2, 3, 7} {
		cuts := []int{0, n}
		for range parts - 1 {
			cuts = append(cuts, 1+rng.IntN(n-1))
		}
		slices.Sort(cuts)
		var sum *scene.ReflGrids
		opt := c.opt
		opt.Materials, opt.CellCount, opt.KeepWords = table, true, true
		for i := range parts {
			tx := c.tx[3*cuts[i] : 3*cuts[i+1]]
			opt.TxPosition = absent(r, tx)
			g, err := r.AccumulateReflections(background, r.upload(c.part(cuts[i], cuts[i+1])), c.grid, opt)
			require.NoError(t, err)
			if sum == nil {
				sum = g
				continue
			}
			require.NoError(t, sum.Merge(g))
			require.NoError(t, g.Close())
		}
		poison(r, sum.Power)
		poison(r, sum.Count)
		require.NoError(t, sum.Read())
		require.EqualValues(t, n, sum.RayCount)
		requireSameGrids(t, want, r.readGrids(sum), "cuts %v", cuts)
		require.NoError(t, sum.Close())
	}
}

func TestReflGridX3PartsOfAScheduler(t *testing.T) {
	rng := rand.New(rand.NewPCG(64, 1))
	n := exactRows(400)
	c := newExactCase(rng, n)
	r := c.open(t)
	table := r.materials(c.media)
	want := c.run(r, table)
	c.opt.Materials, c.opt.TxPosition, c.opt.CellCount, c.opt.KeepWords = table, toDevice(r, c.tx), true, true
	g, call, err := r.PrepareAccumulateReflections(background, r.upload(c.batch), c.grid, c.opt)
	require.NoError(t, err)
	in, out := call.Columns()
	require.Len(t, in, 6)
	require.Len(t, out, 1)
	for _, v := range out {
		poison(r, v.Data)
	}
	sc := r.inside()
	defer func() { require.NoError(t, sc.Exit()) }()
	partial := toDevice(r, make([]uint8, call.AccumulatorBytes()))
	require.NoError(t, call.Zero(r.Scene, call.Stream, call.Accumulator()))
	for i, cut := range [][2]int{{0, n / 3}, {n / 3, 1}, {n/3 + 1, n - n/3 - 1}} {
		acc := call.Accumulator()
		if i == 1 {
			acc = partial
			require.NoError(t, call.Zero(r.Scene, call.Stream, acc))
		}
		require.NoError(t, call.Accumulate(sc, r.Scene, call.Stream, rowsOf(t, in, cut), rowsOf(t, out, cut), acc, int64(cut[0]), int64(cut[1])))
	}
	require.NoError(t, call.Add(sc, call.Stream, call.Accumulator(), partial))
	require.NoError(t, call.Collect(sc, []cuda.Slice[uint8]{call.Accumulator()}))
	requireSameGrids(t, want, r.readGrids(g), "")
	require.NoError(t, g.Close())
}

// rowsOf are rows [at, at+count) of columns.
func rowsOf(t testing.TB, columns []scene.RowColumn, cut [2]int) []scene.RowColumn {
	t.Helper()
	out := slices.Clone(columns)
	for i, c := range out {
		if c.Data.IsNil() || c.Whole() {
			continue
		}
		var err error
		out[i].Data, err = c.Data.Sub(cut[0]*c.Width, (cut[0]+cut[1])*c.Width)
		require.NoError(t, err)
	}
	return out
}

// X5: no lane of a warp that is not full is lost.
func TestReflGridX5EveryNumberOfRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(65, 1))
	const most = 64
	c := newExactCase(rng, most)
	c.opt.CollectWedges = false
	for i := range c.active {
		c.active[i] = 1
	}
	c.grid = square(scene.AxisZ, .4, -.4, 1.4, 2)
	r := c.open(t)
	table := r.materials(c.media)
	var single [most]grids
	for i := range most {
		single[i] = c.with([]int{i}).run(r, table)
	}
	for n := 1; n <= most; n++ {
		if whole := n%32 < 2 || n%32 == 31; !whole && n%3 != 0 && !gputest.Native() {
			continue // next to whole warps all numbers are tried
		}
		for _, every := range []int{1, 2} {
			p := exactCase{}
			p = c
			p.batch, p.tx = c.part(0, n), c.tx[:3*n]
			p.active = make([]uint8, n)
			var words [4 * 8]int64
			for i := 0; i < n; i += every {
				p.active[i] = 1
				for k, w := range single[i].words {
					words[k] += w
				}
			}
			got := p.run(r, table)
			require.Equal(t, words[:], got.words, "%d rows, every %d", n, every)
		}
	}
}

// X6: sums that may have overflown are an error.
func TestReflGridX6Guard(t *testing.T) {
	c := caseA3()
	r := build(t, c.mesh)
	c.opt.Materials, c.opt.TxPosition = r.materials(oneMedium(c.mesh, c.eta, true)), toDevice(r, c.tx[:])
	c.opt.KeepWords = true
	for _, weight := range []scene.FieldWeight{scene.WeightSqrtArea, scene.WeightArea} {
		c.opt.FieldWeight = weight
		g, err := r.AccumulateReflections(background, r.upload(c.ray), c.grid, c.opt)
		require.NoError(t, err)
		before, err := g.ReadCounters(background)
		require.NoError(t, err)
		require.Zero(t, before.Status)
		words, counts := toHost(r, g.Words), toHost(r, g.WordCounts)
		const cell = 5
		for _, s := range []struct {
			name  string
			n     uint32
			power float64
			most  float32 // component
			fails bool
		}{
			{"as many as there may be", 1<<27 - 1, 1, 1, false},
			{"too many", 1 << 27, 1, 1, true},
			{"as much as there may be", 1 << 20, 1<<37 - 1, 1, false},
			{"too much", 1 << 20, 1 << 37, 1, true},
			{"large components", 1 << 20, 1, 363, weight == scene.WeightArea},
			{"not so large components", 1 << 20, 1, 362, false},
		} {
			w, n := slices.Clone(words), slices.Clone(counts)
			w[8*cell+6], n[cell] = int64(s.power*65536), s.n
			require.NoError(t, cuda.CopyIn(background, r.Stream(), g.Words, w))
			require.NoError(t, cuda.CopyIn(background, r.Stream(), g.WordCounts, n))
			require.NoError(t, cuda.CopyIn(background, r.Stream(), g.WordMaxima, []uint32{0, 0, math.Float32bits(s.most)}))
			require.NoError(t, g.Read())
			got, err := g.ReadCounters(background)
			require.Equal(t, before.Count+int64(s.n), got.Count, s.name)
			if !s.fails {
				require.NoError(t, err, s.name)
				require.Zero(t, got.Status, s.name)
				continue
			}
			var guard *scene.GuardError
			require.ErrorAs(t, err, &guard, s.name)
			require.Equal(t, "AccumulateReflections", guard.Op)
			require.Equal(t, scene.StatusGuard, got.Status, s.name)
		}
		require.NoError(t, g.Close())
	}
}

// A gain that is too large for the sums is told, and what it makes does not count.
func TestReflGridTooLarge(t *testing.T) {
	c := caseA7()
	r := build(t, c.mesh)
	m := oneMedium(c.mesh, c.eta, true)
	m.Gain[0] = 5000
	c.opt.Materials, c.opt.TxPosition = r.materials(m), toDevice(r, c.tx[:])
	got := r.accumulateTubes(c.ray, c.grid, c.opt)
	require.Equal(t, scene.StatusTooLarge, got.status)
	require.EqualValues(t, 0, got.count)
	m.Gain[0] = 1000
	c.opt.Materials = r.materials(m)
	got = r.accumulateTubes(c.ray, c.grid, c.opt)
	require.Equal(t, scene.StatusTooLarge, got.status)
	require.EqualValues(t, 1, got.count, "the first reflection is in range")
}

// Rays take the paths of TraceReflections, bit for bit, once their directions have unit
// length.
func TestReflGridChainsAreThoseOfTraceReflections(t *testing.T) {
	rng := rand.New(rand.NewPCG(69, 1))
	n := min(exactRows(150), 20000) // rows are compared one by one
	c := newExactCase(rng, n)
	for i := range c.active {
		c.active[i] = 1
	}
	const bounces = 3
	c.media = oneMedium(c.mesh, 1, true)
	c.media.Sigma[0] = inf // reflects always
	c.opt.WedgeSampleStride, c.opt.WedgeCapacity, c.opt.MaxBounces = 1, bounces*n, bounces
	r := c.open(t)
	w := c.run(r, r.materials(c.media)).wedges
	b := batch{o: c.o}
	var events [][]int
	for i, ray := range w.ray {
		if ray < 0 {
			break
		}
		if w.depth[i] == 0 {
			require.Len(t, events, int(ray), "a ray in the box hits nothing")
			b.d = append(b.d, w.dir[3*i:3*i+3]...)
			events = append(events, nil)
		}
		events[ray] = append(events[ray], i)
	}
	require.Len(t, events, n)
	chains := r.reflect(b, bounces, scene.ChainAll)
	for row, at := range events {
		require.Len(t, at, chains.length(row))
		for k, i := range at {
			s := chains.slot(row, k)
			require.Equal(t, s.prim, w.prim[i])
			require.Equal(t, bits(s.p[:]), bits(w.point[3*i:3*i+3]))
			require.Equal(t, bits(s.n[:]), bits(w.normal[3*i:3*i+3]))
			if k+1 < len(at) {
				require.Equal(t, bits(s.image[:]), bits(w.source[3*at[k+1]:3*at[k+1]+3]))
			}
		}
	}
}
