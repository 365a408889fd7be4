package scene_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// pathRows is DfrPaths on the host.
type pathRows struct {
	status           []uint8
	tx, rx, edge     []int32
	delay, field, p0 []float32
	count            int64
}

// bits makes rows comparable exactly.
func (p pathRows) bits() [8]any {
	return [8]any{p.status, p.tx, p.rx, p.edge, bits(p.delay), bits(p.field), bits(p.p0), p.count}
}

// row appends row i of other.
func (p *pathRows) add(other pathRows, i int) {
	p.status = append(p.status, other.status[i])
	p.tx, p.rx, p.edge = append(p.tx, other.tx[i]), append(p.rx, other.rx[i]), append(p.edge, other.edge[i])
	p.delay, p.field, p.p0 = append(p.delay, other.delay[i]), append(p.field, other.field[6*i:6*i+6]...), append(p.p0, other.p0[3*i:3*i+3]...)
}

func (r *rig) downloadPaths(p *scene.DfrPaths) pathRows {
	r.Helper()
	n, err := p.ReadCount(background)
	require.NoError(r, err)
	return pathRows{
		status: toHost(r, p.Status), tx: toHost(r, p.TxID), rx: toHost(r, p.RxID), edge: toHost(r, p.EdgeID),
		delay: toHost(r, p.Delay), field: toHost(r, p.Field), p0: toHost(r, p.P0), count: n,
	}
}

// pathBatch is the arguments of TraceDfrPaths on the host.
type pathBatch struct {
	tx, rx       []vec
	active       []uint8
	power        []float32
	polarization []vec
	limit        int
	layout       scene.DfrPathLayout
	mode         scene.EdgeMode
}

func (d *dfrScene) options(b pathBatch) scene.DfrPathOptions {
	o := scene.DfrPathOptions{
		Wavelength: d.lambda, Materials: d.materials, StateLimit: b.limit, Layout: b.layout, EdgeMode: b.mode,
		Active: absent(d.rig, b.active), TxPower: absent(d.rig, b.power),
	}
	if b.polarization != nil {
		o.TxPolarization = toDevice(d.rig, flat(b.polarization))
	}
	return o
}

func (r *rig) poisonPaths(p *scene.DfrPaths) {
	r.Helper()
	poisoned(r, p.Status)
	poisoned(r, p.Delay, p.Field, p.P0)
	poisoned(r, p.TxID, p.RxID, p.EdgeID)
	poisoned(r, p.Count)
}

// paths answers a batch, into memory full of other values.
func (d *dfrScene) paths(b pathBatch) pathRows {
	d.Helper()
	tx, rx, o := absent(d.rig, flat(b.tx)), absent(d.rig, flat(b.rx)), d.options(b)
	p, err := d.TraceDfrPaths(background, tx, rx, d.states, o)
	require.NoError(d, err)
	d.poisonPaths(p)
	p, err = d.TraceDfrPaths(background, tx, rx, d.states, o, scene.Into(p))
	require.NoError(d, err)
	defer func() { require.NoError(d, p.Close()) }()
	require.Equal(d, len(b.tx)*len(b.rx)*p.States, p.Rows())
	require.Equal(d, [2]int{len(b.tx), len(b.rx)}, [2]int{p.Transmitters, p.Receivers})
	return d.downloadPaths(p)
}

func all(n int) (mask []uint8) {
	for range n {
		mask = append(mask, 1)
	}
	return mask
}

func randomPathBatch(rng *rand.Rand, d *dfrScene, t, r int) pathBatch {
	b := pathBatch{}
	for range t {
		b.tx = append(b.tx, randomVec(rng, 4))
		b.power = append(b.power, rng.Float32()*4-.5)
		b.polarization = append(b.polarization, randomVec(rng, 1))
	}
	for range r {
		b.rx = append(b.rx, randomVec(rng, 4))
	}
	for range d.states.Count() {
		b.active = append(b.active, uint8(rng.IntN(8)))
	}
	return b
}

// pathBatchSide is how many transmitters or receivers a batch against the oracle has.
func pathBatchSide(n int) int {
	if gputest.Native() {
		return 12 * n
	}
	return n
}

// Published cases of the box's edge.
func TestDfrPathsOfTheWedge(t *testing.T) {
	d := wedgeBox(t)
	v1 := [3]complex128{0, 0, 8.095962e-05 + 2.792063e-04i}
	v6 := [3]complex128{0, 0, -3.294721e-04 - 9.345844e-05i}
	for _, c := range []struct {
		tx, rx vec
		status scene.DfrPathStatus
		delay  float64
		field  [3]complex128
	}{
		{vec{-1.2, .8, -.1}, vec{1, 1.1, -.1}, scene.DfrValid, 9.769516566e-09, v1},
		{vec{.9, .7, -.1}, vec{-1, -1.5, -.1}, scene.DfrValid, 9.816628085e-09, v6},
		{vec{-1.2, .8, -.1}, vec{1, -1, 0}, scene.DfrTargetOccluded, 0, [3]complex128{}},
		{vec{1, -1, 0}, vec{-1, 1, 0}, scene.DfrInside, 0, [3]complex128{}},
		{vec{-1.2, .8, 5}, vec{1, 1.1, 5}, scene.DfrOffEdge, 0, [3]complex128{}},
		{vec{0, 0, 1}, vec{1, 1.1, 0}, scene.DfrDegenerate, 0, [3]complex128{}},
		{vec{inf, 0, 1}, vec{1, 1.1, 0}, scene.DfrNotFinite, 0, [3]complex128{}},
		{vec{-1.2, .8, 1}, vec{1, nan, 0}, scene.DfrNotFinite, 0, [3]complex128{}},
	} {
		about := fmt.Sprint(c.tx, c.rx)
		rows := d.paths(pathBatch{tx: []vec{c.tx}, rx: []vec{c.rx}, active: all(1), polarization: []vec{{0, 0, 1}}})
		require.Equal(t, []uint8{uint8(c.status)}, rows.status, about)
		if c.status != scene.DfrValid {
			requireInert(t, rows, 0)
			require.Zero(t, rows.count)
			continue
		}
		require.EqualValues(t, 1, rows.count)
		require.Equal(t, [3]int32{0, 0, 11}, [3]int32{rows.tx[0], rows.rx[0], rows.edge[0]})
		require.InEpsilon(t, c.delay, rows.delay[0], 1e-6)
		require.True(t, near(wide(rows.p0, 0), vec64{0, 0, -.1}, 1e-6), "%s: %v", about, rows.p0)
		requireField(t, c.field, rows.field, 5e-6, about)
		four := d.paths(pathBatch{
			tx: []vec{c.tx}, rx: []vec{c.rx}, active: all(1), polarization: []vec{{0, 0, 1}}, power: []float32{4},
		})
		for k, x := range rows.field {
			require.Equal(t, 2*x, four.field[k], "four times the power, %s", about)
		}
	}
}

// Without materials and with the ends of the edge: published values.
func TestDfrPathsEdgeModeAndMaterials(t *testing.T) {
	d := wedgeBox(t)
	v6 := pathBatch{tx: []vec{{.9, .7, -.1}}, rx: []vec{{-1, -1.5, -.1}}, active: all(1), polarization: []vec{{0, 0, 1}}, mode: scene.EdgeFresnel}
	requireField(t, [3]complex128{0, 0, -3.236811e-04 - 9.806885e-05i}, d.paths(v6).field, 5e-6)
	d.materials = nil
	v1 := pathBatch{tx: []vec{{-1.2, .8, -.1}}, rx: []vec{{1, 1.1, -.1}}, active: all(1), polarization: []vec{{0, 0, 1}}}
	requireField(t, [3]complex128{0, 0, 3.259360e-05 + 7.334269e-05i}, d.paths(v1).field, 5e-6)
}

// Without a polarization it is along x, for paths and for sums of them: published values.
func TestDfrDefaultPolarization(t *testing.T) {
	d := wedgeBox(t)
	v5 := [3]complex128{-1.141998e-04 - 1.193997e-04i, -4.721144e-05 - 2.874413e-05i, -1.055821e-04 - 9.597657e-05i}
	tx := vec{-1.2, .8, 3}
	b := pathBatch{tx: []vec{tx}, rx: []vec{{1, 1.1, -.1}}, active: all(1), limit: 9} // of one state
	requireField(t, v5, d.paths(b).field, 5e-6)
	b.polarization = []vec{{1, 0, 0}}
	requireField(t, v5, d.paths(b).field, 5e-6)

	copy(d.host.Src, tx[:])
	d = d.rig.dfrScene(d.host, d.media, d.lambda)
	grid := scene.Grid{Position: -.1, Min0: .5, Max0: 1.5, Min1: .6, Max1: 1.6, Res0: 1, Res1: 1}
	var field []float32
	for _, f := range d.coherent(grid, scene.DfrCoherentOptions{Wavelength: d.lambda, Materials: d.materials}).field {
		field = append(field, f[0])
	}
	requireField(t, v5, field, 5e-6)
}

func requireInert(t testing.TB, rows pathRows, i int) {
	t.Helper()
	require.NotZero(t, rows.status[i])
	require.Equal(t, [3]int32{-1, -1, -1}, [3]int32{rows.tx[i], rows.rx[i], rows.edge[i]}, "row %d", i)
	require.Equal(t, inf, rows.delay[i], "row %d", i)
	require.Equal(t, make([]uint32, 9), bits(append(slices.Clone(rows.field[6*i:6*i+6]), rows.p0[3*i:3*i+3]...)), "row %d", i)
}

// Every row of random scenes against the oracle, in both layouts.
func TestDfrPathsOfRandomScenes(t *testing.T) {
	met := map[scene.DfrPathStatus]int{}
	ambiguous := 0
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 61))
		d := randomBoxes(t, rng, 4)
		if seed == 3 {
			d.materials = nil
		}
		b := randomPathBatch(rng, d, pathBatchSide(3), pathBatchSide(4))
		b.mode = scene.EdgeMode(seed & 1)
		rows := d.paths(b)
		valid := int64(0)
		for tx, source := range b.tx {
			for rx, target := range b.rx {
				for s, active := range b.active {
					i := (tx*len(b.rx)+rx)*len(b.active) + s
					about := fmt.Sprint("seed ", seed, ", row ", i)
					status := scene.DfrPathStatus(rows.status[i])
					met[status]++
					if status == scene.DfrValid {
						valid++
					} else {
						requireInert(t, rows, i)
					}
					if active == 0 {
						require.Equal(t, scene.DfrInactive, status, about)
						continue
					}
					want := d.lane(s, source, target, b.polarization[tx], b.power[tx], b.mode, false)
					if want.ambiguous {
						ambiguous++
						continue
					}
					require.Equal(t, want.status, status, about)
					if status != scene.DfrValid {
						continue
					}
					require.Equal(t, [3]int32{int32(tx), int32(rx), d.host.EdgeIndex[s]}, [3]int32{rows.tx[i], rows.rx[i], rows.edge[i]})
					require.InEpsilon(t, want.delay, rows.delay[i], 1e-6, about)
					require.True(t, near(want.q, wide(rows.p0, i), 1e-6*(1+length(want.q))), about)
					require.LessOrEqual(t, off(want.field, rows.field[6*i:6*i+6]), want.margin, about)
				}
			}
		}
		require.Equal(t, valid, rows.count)

		b.layout = scene.Compact
		compact := d.paths(b)
		require.Equal(t, compacted(rows).bits(), compact.bits())
	}
	for status := scene.DfrValid; status <= scene.DfrNoField; status++ {
		if status != scene.DfrNotFinite && status != scene.DfrDegenerate {
			assert.Greater(t, met[status], 10, "status %d", status)
		}
	}
	// Legs that pass through the solid leave it close to the edge, some by a margin.
	assert.Less(t, ambiguous, (met[scene.DfrValid]+met[scene.DfrSourceOccluded]+met[scene.DfrTargetOccluded])/10)
}

// The margin of a field that is a hundredth of its terms shows that one of them is off by a
// millionth.
func TestDfrPathsWhereTermsCancel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 61))
	d := randomBoxes(t, rng, 4)
	b := randomPathBatch(rng, d, 36, 48)
	const rx, s = 34, 16
	b.mode, b.tx, b.rx, b.power, b.polarization = scene.EdgeFresnel, b.tx[:1], b.rx[rx:rx+1], b.power[:1], b.polarization[:1]
	exact := d.lane(s, b.tx[0], b.rx[0], b.polarization[0], b.power[0], b.mode, false)
	require.Less(t, largest(exact.field), exact.terms/50)
	difference := func() float64 {
		rows := d.paths(b)
		require.Zero(t, rows.status[s])
		return off(exact.field, rows.field[6*s:6*s+6])
	}
	require.LessOrEqual(t, difference(), exact.margin)

	// One face reflects, by a millionth too much.
	require.Nil(t, d.medium(d.host.Prim1[s]))
	faulty := d.media
	faulty.Gain = slices.Clone(faulty.Gain)
	for i := range faulty.Gain {
		faulty.Gain[i] *= 1 + 1e-6
	}
	table, err := d.UploadMaterials(background, faulty)
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	d.materials = table
	require.Greater(t, difference(), 2*exact.margin)
}

// compacted is the rows with a path, then the others.
func compacted(rows pathRows) pathRows {
	out := pathRows{count: rows.count}
	for _, valid := range []bool{true, false} {
		for i, s := range rows.status {
			if (s == 0) == valid {
				out.add(rows, i)
			}
		}
	}
	return out
}

// Compact moves rows in tiles of 2048, of which some have paths in nearly all rows and some in few.
func TestDfrPathsCompactInManyTiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(75, 76))
	d := wedgeBox(t)
	const n = 5000
	b := pathBatch{tx: []vec{{-1.2, .8, -.1}}, active: all(1), polarization: []vec{{0, 0, 1}}}
	for i := range n {
		rx := vec{1 + rng.Float32(), 1.1 + rng.Float32(), rng.Float32() - .5}
		switch {
		case i < 2048 && i%97 != 0, i >= 4096 && i%3 != 0:
			rx[rng.IntN(3)] = nan
		case i%7 == 0:
			rx[1] = -1
		}
		b.rx = append(b.rx, rx)
	}
	for _, first := range []int{0, 2048, 2100} { // the tile that is full of paths in the middle, and in front
		part := b
		part.rx = append(slices.Clone(b.rx[first:]), b.rx[:first]...)
		rows := d.paths(part)
		require.Greater(t, rows.count, int64(1500))
		require.Less(t, rows.count, int64(3000))
		part.layout = scene.Compact
		require.Equal(t, compacted(rows).bits(), d.paths(part).bits(), "from receiver %d on", first)
	}
}

// The result of several transmitters is those of each, and an inactive state may hold
// anything.
func TestDfrPathsOfOneTransmitterAtATime(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	d := randomBoxes(t, rng, 2)
	b := randomPathBatch(rng, d, 2, 3)
	garbage := d.host
	for i, active := range b.active {
		if active != 0 {
			continue
		}
		for _, column := range []*[]float32{&garbage.EdgePos, &garbage.EdgeDir, &garbage.N0, &garbage.N1} {
			*column = slices.Clone(*column)
			(*column)[3*i+rng.IntN(3)] = nan
		}
	}
	whole := d.paths(b)
	g := d.rig.dfrScene(garbage, d.media, d.lambda)
	assert.Equal(t, whole.bits(), g.paths(b).bits())

	var parts pathRows
	for tx := range b.tx {
		one := b
		one.tx, one.power, one.polarization = b.tx[tx:tx+1], b.power[tx:tx+1], b.polarization[tx:tx+1]
		rows := d.paths(one)
		for i := range rows.status {
			if rows.tx[i] == 0 {
				rows.tx[i] = int32(tx)
			}
			parts.add(rows, i)
		}
		parts.count += rows.count
	}
	assert.Equal(t, whole.bits(), parts.bits())

	// The first states alone.
	b.limit = 5
	b.active = b.active[:5]
	limited := d.paths(b)
	var want pathRows
	for i := range whole.status {
		if i%d.states.Count() < 5 {
			want.add(whole, i)
		}
	}
	for _, s := range want.status {
		if s == 0 {
			want.count++
		}
	}
	assert.Equal(t, want.bits(), limited.bits())
}

// Rows are searched in any pieces, in columns of their own or in place, and streamed in
// parts: the bits are the same.
func TestDfrPathsInPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 74))
	d := randomBoxes(t, rng, 2)
	b := randomPathBatch(rng, d, 2, 3)
	want := d.paths(b)
	tx, rx := toDevice(d.rig, flat(b.tx)), toDevice(d.rig, flat(b.rx))
	for _, layout := range []scene.DfrPathLayout{scene.SourceLane, scene.Compact} {
		b.layout = layout
		p, c, err := d.PrepareDfrPaths(background, tx, rx, d.states, d.options(b))
		require.NoError(t, err)
		d.poisonPaths(p)
		in, out := c.Columns()
		for _, part := range cuts(rng, c.Rows, 5) {
			begin, count := part[0], part[1]
			if rng.IntN(2) == 0 {
				require.NoError(t, c.Search(d.Scene, c.Stream, in, out, begin, count))
				continue
			}
			var own []scene.RowColumn
			for _, column := range out {
				own = append(own, scene.RowColumn{Data: toDevice(d.rig, make([]uint8, max(1, count)*int64(column.Width))), Width: column.Width})
			}
			require.NoError(t, c.SearchPart(d.Scene, c.Stream, in, own, begin, count))
			for i, column := range out {
				w := int64(column.Width)
				if count > 0 {
					home, err := column.Data.Sub(int(begin*w), int((begin+count)*w))
					require.NoError(t, err)
					require.NoError(t, cuda.CopyAsync(c.Stream, home, own[i].Data))
				}
			}
		}
		for _, part := range cuts(rng, c.Rows, 4) {
			require.NoError(t, c.Finalize(part[0], part[1]))
		}
		require.NoError(t, c.Finish())
		have := d.downloadPaths(p)
		require.NoError(t, p.Close())
		if layout == scene.Compact {
			require.Equal(t, compacted(want).bits(), have.bits())
			continue
		}
		require.Equal(t, want.bits(), have.bits())

		var joined pathRows
		p, c, err = d.PrepareDfrPaths(background, tx, rx, d.states, d.options(b), scene.Unallocated())
		require.NoError(t, err)
		require.NoError(t, p.Close())
		memory := toDevice(d.rig, make([]uint8, c.PartBytes(c.Rows)))
		for _, span := range cuts(rng, c.Rows, 4) {
			if span[1] == 0 {
				continue
			}
			part, err := c.Part(memory, span[0], span[1])
			require.NoError(t, err)
			require.NoError(t, part.Run())
			kept, err := part.Detach()
			require.NoError(t, err)
			rows := d.downloadPaths(kept.(*scene.DfrPaths))
			require.NoError(t, kept.Close())
			for i := range rows.status {
				joined.add(rows, i)
			}
			joined.count += rows.count
		}
		require.Equal(t, want.bits(), joined.bits())
	}
}

// cuts is [0,n) in so many pieces: begin and count of each, shuffled only by the caller.
func cuts(rng *rand.Rand, n int64, pieces int) (parts [][2]int64) {
	at := []int64{0, n}
	for range pieces - 1 {
		at = append(at, rng.Int64N(n+1))
	}
	slices.Sort(at)
	for i := range pieces {
		parts = append(parts, [2]int64{at[i], at[i+1] - at[i]})
	}
	return parts
}

func TestDfrPathsWithoutRows(t *testing.T) {
	d := wedgeBox(t)
	for _, b := range []pathBatch{
		{rx: []vec{{1, 2, 3}}, active: all(1)},
		{tx: []vec{{1, 2, 3}}, active: all(1)},
		{tx: []vec{{1, 2, 3}}, rx: []vec{{1, 2, 3}}, active: all(1), layout: scene.Compact},
	} {
		if b.layout == scene.Compact {
			d = d.rig.dfrScene(scene.DfrStates{}, d.media, d.lambda)
			b.active = nil
		}
		rows := d.paths(b)
		assert.Empty(t, rows.status)
		assert.Zero(t, rows.count)
	}
}

// What is refused, before any driver call.
func TestDfrPathsRefuse(t *testing.T) {
	r, calls := traced(t, wedgeBoxMesh())
	d := r.wedgeBox()
	good := func() (tx, rx cuda.Slice[float32], o scene.DfrPathOptions) {
		return toDevice(d.rig, []float32{-1, 1, 0}), toDevice(d.rig, []float32{1, 1, 0}), d.options(pathBatch{active: all(1)})
	}
	for arg, spoil := range map[string]func(tx, rx *cuda.Slice[float32], o *scene.DfrPathOptions){
		"Wavelength": func(_, _ *cuda.Slice[float32], o *scene.DfrPathOptions) { o.Wavelength = math.NaN() },
		"StateLimit": func(_, _ *cuda.Slice[float32], o *scene.DfrPathOptions) { o.StateLimit = -1 },
		"Layout":     func(_, _ *cuda.Slice[float32], o *scene.DfrPathOptions) { o.Layout = 2 },
		"EdgeMode":   func(_, _ *cuda.Slice[float32], o *scene.DfrPathOptions) { o.EdgeMode = 2 },
		"Active":     func(_, _ *cuda.Slice[float32], o *scene.DfrPathOptions) { o.Active = cuda.Slice[uint8]{} },
		"TxPower": func(_, _ *cuda.Slice[float32], o *scene.DfrPathOptions) {
			o.TxPower = toDevice(d.rig, make([]float32, 2))
		},
		"TxPolarization": func(_, _ *cuda.Slice[float32], o *scene.DfrPathOptions) {
			o.TxPolarization = toDevice(d.rig, make([]float32, 6))
		},
		"tx": func(tx, _ *cuda.Slice[float32], _ *scene.DfrPathOptions) { *tx = toDevice(d.rig, make([]float32, 4)) },
		"rx": func(_, rx *cuda.Slice[float32], _ *scene.DfrPathOptions) { *rx = toDevice(d.rig, make([]float32, 5)) },
	} {
		tx, rx, o := good()
		spoil(&tx, &rx, &o)
		calls.Reset()
		_, err := d.TraceDfrPaths(background, tx, rx, d.states, o)
		requireArgument(t, err, "TraceDfrPaths", arg)
		require.Empty(t, calls.Counts(), arg)
	}
	tx, rx, o := good()
	_, err := d.TraceDfrPaths(background, tx, rx, nil, o)
	require.ErrorContains(t, err, "UploadStates")
	o.Active = toDevice(d.rig, make([]uint8, 2))
	_, err = d.TraceDfrPaths(background, tx, rx, d.states, o)
	require.ErrorContains(t, err, "Active: has 2 values, want one for each of the 1 states in use: upload as many ones to use them all")

	// 50,000 transmitters and receivers each.
	many := toDevice(d.rig, make([]float32, 150000))
	_, _, o = good()
	_, err = d.TraceDfrPaths(background, many, many, d.states, o)
	require.ErrorContains(t, err, "too many rows")
}
