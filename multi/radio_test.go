package multi

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// bytesOf are the arrays of a result by the names of their fields, those of inner structs
// after a dot.
func bytesOf(t testing.TB, st *cuda.Stream, result any) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			switch c := v.Field(i).Interface().(type) {
			case cuda.Slice[float32]:
				out[prefix+f.Name] = download8(t, st, c)
			case cuda.Slice[int32]:
				out[prefix+f.Name] = download8(t, st, c)
			case cuda.Slice[uint32]:
				out[prefix+f.Name] = download8(t, st, c)
			case cuda.Slice[int64]:
				out[prefix+f.Name] = download8(t, st, c)
			case cuda.Slice[uint8]:
				out[prefix+f.Name] = download8(t, st, c)
			case scene.WedgeEvents:
				walk(f.Name+".", v.Field(i))
			}
		}
	}
	walk("", reflect.ValueOf(result).Elem())
	return out
}

func download8[T cuda.Scalar](t testing.TB, st *cuda.Stream, c cuda.Slice[T]) []byte {
	t.Helper()
	if c.Len() == 0 {
		return nil
	}
	b, err := cuda.Reinterpret[uint8](c)
	require.NoError(t, err)
	host, err := cuda.Download(bg, st, b)
	require.NoError(t, err)
	return host
}

// radioTables are what accumulations and paths read whole, on all devices of a set.
type radioTables struct {
	states    *scene.StateTable
	materials *scene.MaterialTable
}

func (r radioTables) close(t testing.TB) {
	t.Helper()
	require.NoError(t, r.states.Close())
	require.NoError(t, r.materials.Close())
}

// wedgeStates are n edges within the room, with a source for each.
func wedgeStates(rng *rand.Rand, n, faces int) (d scene.DfrStates) {
	d.Count = n
	point := func(r float32) []float32 { // beside the soup
		return []float32{1.8 + (rng.Float32()-.5)*r, 1.8 + (rng.Float32()-.5)*r, (rng.Float32() - .5) * r}
	}
	for i := range n {
		d.EdgeIndex = append(d.EdgeIndex, int32(i))
		d.EdgePos, d.Src = append(d.EdgePos, point(.5)...), append(d.Src, point(1.2)...)
		d.EdgeDir = append(d.EdgeDir, 0, 0, 1)
		d.N0, d.N1 = append(d.N0, 1, 0, 0), append(d.N1, 0, 1, 0)
		d.TMin, d.TMax = append(d.TMin, -rng.Float32()), append(d.TMax, rng.Float32())
		d.Prim0, d.Prim1 = append(d.Prim0, int32(rng.IntN(faces))), append(d.Prim1, int32(rng.IntN(faces+1)-1))
		d.ExteriorAngle, d.SrcPower = append(d.ExteriorAngle, 3*3.14159265/2), append(d.SrcPower, rng.Float32())
	}
	return d
}

func glass(faces int) scene.Materials {
	return scene.Materials{
		EtaR: []float32{4, 6}, Sigma: []float32{0, .1}, MuR: []float32{1, 1}, Gain: []float32{1, .5}, Valid: []bool{true, true},
		Index: slices.Repeat([]int32{0, 1}, faces)[:faces],
	}
}

func newTables(t testing.TB, s *Scene, states scene.DfrStates, faces int) (r radioTables) {
	t.Helper()
	var err error
	r.states, err = s.UploadStates(bg, states)
	require.NoError(t, err)
	r.materials, err = s.UploadMaterials(bg, glass(faces))
	require.NoError(t, err)
	return r
}

// accumulation is a call of one of the operations on grids, about inputs on device 0.
type accumulation struct {
	name  string
	lanes int64
	ask   func(ctx context.Context, s *Scene, r radioTables, w *scene.Window, opts ...scene.CallOption) (scene.Reusable, error)
}

// result hides that the pointer in r may be nil.
func result[R scene.Reusable](r R, err error) (scene.Reusable, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

var floorPlan = scene.Grid{Axis: scene.AxisZ, Position: -2, Min0: -2.5, Max0: 2.5, Min1: -2.5, Max1: 2.5, Res0: 5, Res1: 3}

// radioInputs are arrays on device 0.
type radioInputs struct {
	rays   scene.Rays
	tx     cuda.Slice[float32]
	active cuda.Slice[uint8]
	states int
}

func newRadioInputs(t testing.TB, rng *rand.Rand, st *cuda.Stream, rows, states int) (in radioInputs, free func()) {
	t.Helper()
	var frees []func() error
	up := uploads{t, st, &frees}
	b := batch{o: make([]float32, 3*rows), d: make([]float32, 3*rows)}
	for i := range b.o {
		b.o[i], b.d[i] = 1.7+.1*float32(i%3), rng.Float32()*2-1 // beside the soup
	}
	mask := make([]uint8, states)
	for i := range mask {
		mask[i] = uint8(i % 3) // not the first
	}
	in = radioInputs{
		rays: scene.Rays{O: column(up, b.o), D: column(up, b.d)}, tx: column(up, []float32{1.7, 1.8, 1.9}),
		active: column(up, mask), states: states,
	}
	require.NoError(t, st.Synchronize(bg))
	return in, func() {
		for _, f := range frees {
			require.NoError(t, f())
		}
	}
}

// accumulations are a call of each operation. Reflections have rows and no windows.
func accumulations(in radioInputs, rows, lanes int64) []accumulation {
	direct := func(o scene.DfrDirectOptions) func(context.Context, *Scene, radioTables, *scene.Window, ...scene.CallOption) (scene.Reusable, error) {
		o.Wavelength, o.Seed, o.AllowPartialCoverage, o.KeepWords = .1, 17, true, true
		return func(ctx context.Context, s *Scene, r radioTables, w *scene.Window, opts ...scene.CallOption) (scene.Reusable, error) {
			o := o
			o.Window, o.Materials = w, r.materials
			return result(s.AccumDfrDirect(ctx, r.states, floorPlan, o, opts...))
		}
	}
	coherent := func(words bool) func(context.Context, *Scene, radioTables, *scene.Window, ...scene.CallOption) (scene.Reusable, error) {
		return func(ctx context.Context, s *Scene, r radioTables, w *scene.Window, opts ...scene.CallOption) (scene.Reusable, error) {
			return result(s.AccumDfrCoherentDirect(ctx, r.states, floorPlan, scene.DfrCoherentOptions{
				Wavelength: .1, Materials: r.materials, Active: in.active, TxPolarization: [3]float32{0, 0, 1}, Window: w, KeepWords: words,
			}, opts...))
		}
	}
	return []accumulation{
		{"direct", lanes, direct(scene.DfrDirectOptions{DirectSamples: lanes, Active: in.active})},
		{"all states", lanes, direct(scene.DfrDirectOptions{DirectSamples: lanes})}, // without inputs on the master
		{"keller", lanes, direct(scene.DfrDirectOptions{KellerSamples: lanes})},
		{"coherent words", int64(in.states) * floorPlan.Cells(), coherent(true)},
		{"coherent", int64(in.states) * floorPlan.Cells(), coherent(false)},
		{"reflections", rows, func(ctx context.Context, s *Scene, r radioTables, _ *scene.Window, opts ...scene.CallOption) (scene.Reusable, error) {
			return result(s.AccumulateReflections(ctx, in.rays, floorPlan, scene.ReflGridOptions{
				Wavelength: .1, SolidAnglePerRay: .01, MaxBounces: 3, Materials: r.materials, TxPosition: in.tx, IncludeLOS: true,
				CollectWedges: true, CollectWedgePrefixes: true, WedgeCapacity: int(rows), WedgeSampleStride: 3, RowBase: 7,
				CellCount: true, KeepWords: true,
			}, opts...))
		}},
	}
}

func (a accumulation) answer(t testing.TB, s *Scene, r radioTables, w *scene.Window, opts ...scene.CallOption) map[string][]byte {
	t.Helper()
	got, err := a.ask(bg, s, r, w, opts...)
	require.NoError(t, err)
	out := bytesOf(t, s.Stream(), got)
	require.NoError(t, got.Close())
	return out
}

// radioSets are sets over 1, 2, 3 and 8 devices with the tables of one room.
func radioSets(t testing.TB, rng *rand.Rand, states int) (rig *gputest.Rig, sets []*Scene, tables []radioTables) {
	t.Helper()
	rig, sets, faces := fleet(t, rng)
	d := wedgeStates(rng, states, faces)
	for _, s := range sets {
		s.opts.MinLanesPerDevice = 1
		r := newTables(t, s, d, faces)
		t.Cleanup(func() { r.close(t) })
		tables = append(tables, r)
	}
	return rig, sets, tables
}

// Accumulations are tried on one fleet, which takes a second to make.
func TestMultiGrids(t *testing.T) {
	rng := rngOf(91)
	const states, rows = 3, 24
	_, sets, tables := radioSets(t, rng, states)
	in, free := newRadioInputs(t, rng, sets[0].Stream(), rows, states)
	defer free()
	f := &gridFleet{rng, sets, tables, accumulations(in, rows, 200)}
	for _, sub := range []struct {
		name string
		run  func(*gridFleet, *testing.T)
	}{
		{"same bits", (*gridFleet).sameBits}, {"windows", (*gridFleet).windowsAddUp}, {"on the master", (*gridFleet).onTheMaster}, {"budget", (*gridFleet).keepTheirBudget},
		{"not streamed", (*gridFleet).areNotStreamed}, {"cancelled", (*gridFleet).cancelledAnywhere},
	} {
		if len(sets) == 1 && sub.name != "same bits" { // on one GPU, what is left is its chunks
			continue
		}
		t.Run(sub.name, func(t *testing.T) {
			for _, s := range sets {
				s.opts.Options, s.transport = chunked.Options{MinRaysPerDevice: 1, MinLanesPerDevice: 1}, chunked.Direct
			}
			sub.run(f, t)
		})
	}
}

// gridFleet is sets of one room over several numbers of devices, the first over one.
type gridFleet struct {
	rng    *rand.Rand
	sets   []*Scene
	tables []radioTables
	all    []accumulation
}

// Disjoint windows of a caller add up to the whole, wherever they are cut.
func (f *gridFleet) windowsAddUp(t *testing.T) {
	s, r := f.sets[len(f.sets)-1], f.tables[len(f.sets)-1]
	for _, a := range f.all[:3] {
		want := a.answer(t, f.sets[0], f.tables[0], nil)
		for range 4 {
			cut := f.rng.Int64N(a.lanes + 1)
			first, err := a.ask(bg, s, r, &scene.Window{Offset: 0, Count: cut})
			require.NoError(t, err)
			second, err := a.ask(bg, s, r, &scene.Window{Offset: cut, Count: -1})
			require.NoError(t, err)
			switch first := first.(type) {
			case *scene.DfrAccum:
				require.NoError(t, first.Merge(second.(*scene.DfrAccum)))
				require.NoError(t, first.Read())
			case *scene.DfrCoherentAccum:
				require.NoError(t, first.Merge(second.(*scene.DfrCoherentAccum)))
				require.NoError(t, first.Read())
			}
			require.Equal(t, want, bytesOf(t, s.Stream(), first), "%s, cut at %d of %d", a.name, cut, a.lanes)
			require.NoError(t, first.Close())
			require.NoError(t, second.Close())
		}
	}
}

// Whatever the division, words, grids, counters and wedge events are those of one launch:
// weights, windows cut anywhere, chunks that are no multiple of anything, every transport.
func (f *gridFleet) sameBits(t *testing.T) {
	rng, sets, tables := f.rng, f.sets, f.tables
	kinds := map[string]int{}
	for _, a := range f.all {
		windows := []*scene.Window{nil, {Offset: 0, Count: 0}, {Offset: 7, Count: -1}}
		if a.name == "reflections" {
			windows = windows[:1]
		}
		for _, w := range windows {
			want := a.answer(t, sets[0], tables[0], w)
			if w == nil {
				require.NotEmpty(t, bytes.Trim(append(want["Power"], want["FieldZRe"]...), "\x00"), "%s: nothing was accumulated", a.name)
			}
			for k, s := range sets {
				for _, weights := range [][]float64{nil, {3, 1}, {1, 0}, {0, 1}, randomWeights(rng, len(s.devices))} {
					if weights != nil && len(weights) != len(s.devices) {
						continue
					}
					s.opts.Weights, s.opts.ChunkRays = weights, []int64{0, 0, 13, 101}[rng.IntN(4)]
					s.transport = []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host}[rng.IntN(3)]
					var info CallInfo
					got := a.answer(t, s, tables[k], w, Info(&info))
					require.Equal(t, want, got, "%s, %+v, %d devices, weights %v, chunks of %d, %v", a.name, w, len(s.devices), weights, s.opts.ChunkRays, s.transport)
					kinds[fmt.Sprint(info.Plan.Kind, " ", s.transport)]++
				}
			}
		}
	}
	for _, tr := range []string{"direct", "copy", "host"} {
		require.Positive(t, kinds["lane-sharded "+tr]+kinds["lane-chunked "+tr], "%v", kinds)
	}
	require.Positive(t, kinds["lane-sharded direct"]+kinds["lane-sharded copy"]+kinds["lane-sharded host"], "%v", kinds)
}

// Below the floor, with the weights of one device, and on one device without a knob, a call
// is the plain one: the executor is not entered. A size engages it on the master alone.
func (f *gridFleet) onTheMaster(t *testing.T) {
	sets, tables := f.sets, f.tables
	for _, a := range f.all {
		before := sets[0].executions.Load()
		want := a.answer(t, sets[0], tables[0], nil)
		require.Equal(t, before, sets[0].executions.Load(), "one device")
		s, r := sets[1], tables[1]
		for _, c := range []struct {
			floor   int64
			weights []float64
			kind    chunked.Kind
			runs    int64
			chunk   int64
		}{
			{0, nil, chunked.KindMaster, 0, 0},
			{1, []float64{1, 0}, chunked.KindMaster, 0, 0},
			{0, nil, chunked.KindLaneChunked, 1, 3},
			{1, []float64{0, 1}, chunked.KindLaneSharded, 1, 0},
		} {
			s.opts.MinLanesPerDevice, s.opts.Weights, s.opts.ChunkRays = c.floor, c.weights, c.chunk
			before := s.executions.Load()
			var info CallInfo
			require.Equal(t, want, a.answer(t, s, r, nil, Info(&info)), "%s %+v", a.name, c)
			require.Equal(t, c.kind, info.Plan.Kind, "%s %+v", a.name, c)
			require.Equal(t, c.runs, s.executions.Load()-before, "%s %+v", a.name, c)
			if c.kind == chunked.KindLaneChunked {
				require.Zero(t, info.Plan.Shards[1].Len(), "a size does not lift the floor")
				require.Len(t, info.Plan.Chunks, int((a.lanes+2)/3))
			}
		}
	}
}

// A call holds what its plan says on every device, and gives it back.
func (f *gridFleet) keepTheirBudget(t *testing.T) {
	if gputest.Native() {
		t.Skip("sizes of a GPU's allocator are rounded; the emulator's are exact")
	}
	last := len(f.sets) - 1
	s, r := f.sets[last], f.tables[last]
	for _, a := range f.all {
		for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
			before := poolUse(s)
			var info CallInfo
			got, err := a.ask(bg, s, r, nil, Info(&info))
			require.NoError(t, err)
			require.NoError(t, got.Close())
			for k, replica := range s.replicas {
				stats := replica.ctx.Pool().Stats()
				used, what := int64(stats.HighWater-before[k]), fmt.Sprintf("%s, %v, device %d", a.name, s.transport, k)
				const columns, align = 24, 256 // of a result with words and events
				require.LessOrEqual(t, used, info.Plan.PerDevice[k].Peak+columns*align, what)
				if s.transport == chunked.Direct { // what the device keeps was in use before
					used += int64(replica.exchange.sums.Len())
				}
				require.LessOrEqual(t, info.HighWater[k], used, what)
				require.LessOrEqual(t, info.HighWater[k], info.Plan.PerDevice[k].Peak+columns*align, what)
				require.Equal(t, before[k], stats.BytesInUse, what)
			}
			require.Positive(t, info.ToMaster)
		}
	}
}

// A grid is one result: it cannot be streamed, and the refusal comes before any launch.
func (f *gridFleet) areNotStreamed(t *testing.T) {
	sets, tables := f.sets, f.tables
	for _, a := range f.all {
		for k, s := range sets {
			before := poolUse(s)
			_, err := a.ask(bg, s, tables[k], nil, Offload(func(context.Context, int64, offload.Chunk[*scene.Hits]) error { return nil }))
			var refused *chunked.UnsupportedError
			require.ErrorAs(t, err, &refused, a.name)
			require.Equal(t, before, poolUse(s), a.name)
		}
	}
}

// A context that ends at any point of a call leaves a set that works on.
func (f *gridFleet) cancelledAnywhere(t *testing.T) {
	sets, tables := f.sets, f.tables
	s, r := sets[1], tables[1]
	s.opts.ChunkRays = 5
	for _, a := range f.all {
		want := a.answer(t, sets[0], tables[0], nil)
		for _, s.transport = range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
			failed := 0
			for k := 1; ; k += 2 {
				before := poolUse(s)
				ctx := newEndsAt(k)
				got, err := a.ask(ctx, s, r, nil)
				if err == nil {
					require.NoError(t, got.Close())
				} else {
					require.ErrorIs(t, err, context.Canceled)
					failed++
				}
				require.Equal(t, before, poolUse(s), "%s, %v, %d", a.name, s.transport, k)
				if ctx.left > 0 {
					break
				}
			}
			require.Positive(t, failed, a.name)
			require.Equal(t, want, a.answer(t, s, r, nil), a.name)
		}
	}
}

// Arrays on another device than the master are refused by every operation on grids and paths,
// whatever the dispatch, and the set stays usable.
func TestMultiRadioForeignInputs(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	rng := rngOf(103)
	s := newScene(t, rig.Driver, ordinals(rig, 2), Options{Options: chunked.Options{MinRaysPerDevice: 1, MinLanesPerDevice: 1}})
	m := room(rng)
	build(t, s, m)
	const states, rows = 3, 24
	faces := len(m.Faces) / 3
	r := newTables(t, s, wedgeStates(rng, states, faces), faces)
	defer r.close(t)
	st, err := rig.Context(t, 1).NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	home, freeHome := newRadioInputs(t, rng, s.Stream(), rows, states)
	defer freeHome()
	away, freeAway := newRadioInputs(t, rng, st, rows, states)
	defer freeAway()
	far := pathQuestion(pathInputs{tx: away.tx, rx: away.tx, active: home.active}, r, scene.SourceLane)
	for _, s.opts.Weights = range [][]float64{{1, 1}, {1, 0}} {
		for k, a := range accumulations(away, rows, 200) {
			if a.name == "all states" || a.name == "keller" {
				continue // they have no arrays
			}
			_, err := a.ask(bg, s, r, nil)
			var wrong *cuda.WrongDeviceError
			require.ErrorAs(t, err, &wrong, a.name)
			require.Equal(t, [2]int{0, 1}, [2]int{wrong.Want, wrong.Have}, a.name)
			require.NotEmpty(t, accumulations(home, rows, 200)[k].answer(t, s, r, nil), a.name)
		}
		_, err := far.whole(s)
		require.ErrorIs(t, err, cuda.ErrWrongDevice)
	}
}
