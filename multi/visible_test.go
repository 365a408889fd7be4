package multi

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// sights are a batch of each of the visibility operations on the host.
type sights struct {
	points             [4][]float32
	tMin, tMax         []float32
	line               []float32
	length             []int32
	segments           int
	ignore, lineIgnore []int32
	active             []uint8
	fractions          []float32
}

func randomSights(rng *rand.Rand, n, faces int) *sights {
	b := &sights{segments: 1 + rng.IntN(5)}
	for i := range b.points {
		b.points[i] = randomBatch(rng, n).o
	}
	b.line = randomBatch(rng, n*(b.segments+1)).o
	ids := func(n int) []int32 {
		out := make([]int32, n*rng.IntN(4))
		for i := range out {
			out[i] = int32(rng.IntN(faces+2) - 1)
		}
		return out
	}
	b.ignore, b.lineIgnore = ids(n), ids(n*b.segments)
	for range n {
		b.tMin, b.tMax = append(b.tMin, rng.Float32()), append(b.tMax, rng.Float32())
		b.length = append(b.length, int32(rng.IntN(b.segments+3)-1))
	}
	if rng.IntN(2) == 0 {
		for range n {
			b.active = append(b.active, uint8(rng.IntN(3)))
		}
	}
	if rng.IntN(2) == 0 {
		b.fractions = []float32{0, rng.Float32(), 1}
	}
	return b
}

// seen is the columns of all results.
type seen struct {
	flags [5][]uint8
	ids   [2][]uint32
}

type observer interface {
	Stream() *cuda.Stream
	Visible(context.Context, scene.Segments, ...scene.CallOption) (*scene.Visibility, error)
	VisiblePair(context.Context, scene.SegmentPairs, ...scene.CallOption) (*scene.PairVisibility, error)
	VisibleEdge(context.Context, scene.EdgeSamples, ...scene.CallOption) (*scene.EdgeVisibility, error)
	VisibleChain(context.Context, scene.Polylines, ...scene.CallOption) (*scene.ChainVisibility, error)
}

// answers asks all four operations.
func (b *sights) answers(t testing.TB, s observer) (out seen) {
	t.Helper()
	st := s.Stream()
	var frees []func() error
	defer func() {
		for _, free := range frees {
			require.NoError(t, free())
		}
	}()
	in := uploads{t, st, &frees}
	var points [4]cuda.Slice[float32]
	for i, p := range b.points {
		points[i] = column(in, p)
	}
	ignore, active := column(in, b.ignore), column(in, b.active)
	flags := func(v cuda.Slice[uint8]) []uint8 {
		if v.Len() == 0 {
			return nil
		}
		host, err := cuda.Download(bg, st, v)
		require.NoError(t, err)
		return host
	}

	one, err := s.Visible(bg, scene.Segments{Start: points[0], End: points[1], Ignore: ignore, Active: active})
	require.NoError(t, err)
	frees = append(frees, one.Close)
	pair, err := s.VisiblePair(bg, scene.SegmentPairs{Start: points[0], EndA: points[1], EndB: points[2], Ignore: ignore, Active: active})
	require.NoError(t, err)
	frees = append(frees, pair.Close)
	edge, err := s.VisibleEdge(bg, scene.EdgeSamples{
		Source: points[0], Position: points[1], Direction: points[3], TMin: column(in, b.tMin), TMax: column(in, b.tMax),
		Active: active, Fractions: b.fractions,
	})
	require.NoError(t, err)
	frees = append(frees, edge.Close)
	chain, err := s.VisibleChain(bg, scene.Polylines{
		Points: column(in, b.line), Length: column(in, b.length), Segments: b.segments, Ignore: column(in, b.lineIgnore), Active: active,
	})
	require.NoError(t, err)
	frees = append(frees, chain.Close)
	out.flags = [5][]uint8{flags(one.Visible), flags(pair.VisibleA), flags(pair.VisibleB), flags(edge.AnyVisible), flags(chain.AllVisible)}
	out.ids = [2][]uint32{raw(t, st, chain.FirstBlockedSegment), raw(t, st, chain.FirstBlockedPrim)}
	return out
}

// uploads remembers what is to be freed.
type uploads struct {
	testing.TB
	st    *cuda.Stream
	frees *[]func() error
}

func column[T cuda.Scalar](u uploads, v []T) cuda.Slice[T] {
	u.Helper()
	s := upload(u.TB, u.st, v)
	if !s.IsNil() {
		*u.frees = append(*u.frees, func() error { return cuda.Free(s) })
	}
	return s
}

// One device and many give the same bits, wherever the batch is cut.
func TestMultiSceneVisibleSameBits(t *testing.T) {
	counts, rig := sizes(t)
	rng := rand.New(rand.NewPCG(61, 62))
	const faces = 40
	m := soup(rng, faces)
	one := newScene(t, rig.Driver, ordinals(rig, 1), Options{})
	build(t, one, m)
	var sets []*Scene
	for _, n := range counts {
		sets = append(sets, newScene(t, rig.Driver, ordinals(rig, n), anyFloor()))
		build(t, sets[len(sets)-1], m)
	}
	divided := 0
	kinds := map[uint8]int{}
	blockers := 0
	for i := range 30 {
		n := []int{0, 1, 2, 7, rng.IntN(40), rng.IntN(400)}[rng.IntN(6)]
		b := randomSights(rng, n, faces)
		want := b.answers(t, one)
		for _, f := range want.flags {
			for _, v := range f {
				kinds[v]++
			}
		}
		for _, id := range want.ids[1] {
			if int32(id) >= 0 {
				blockers++
			}
		}
		for k, s := range sets {
			s.opts.Weights = randomWeights(rng, counts[k])
			s.transport = []chunked.Transport{chunked.Direct, chunked.Copy}[rng.IntN(2)]
			require.Equal(t, want, b.answers(t, s), "batch %d: %d rows, %d devices, weights %v, %v", i, n, counts[k], s.opts.Weights, s.transport)
			if p, err := s.Plan(VisibleOp(0, false), int64(n)); err == nil && !p.Kind.Whole() {
				divided++
			}
		}
	}
	require.Len(t, kinds, 2, "flags are 0 and 1")
	require.Greater(t, min(kinds[0], kinds[1]), 500)
	require.Greater(t, blockers, 100)
	require.Greater(t, divided, 15, "next to no batch was divided")
}

// Two devices of the OptiX backend give the rows of one.
func TestVisibleWithOptix(t *testing.T) {
	drv, devices, _ := optixDriver(t, fakeoptix.Config{})
	rng := rand.New(rand.NewPCG(63, 1))
	opts := anyFloor(2, 1)
	opts.Backend = scene.OptiX
	two := newScene(t, drv, devices, opts)
	one := newScene(t, drv, devices[:1], Options{Backend: scene.OptiX})
	own := newScene(t, drv, devices[:1], Options{Backend: scene.CUDA})
	m, more := soup(rng, 30), soup(rng, 10)
	for _, s := range []*Scene{one, two, own} {
		build(t, s, m, more)
	}
	b := randomSights(rng, 50, 40)
	want := b.answers(t, one)
	for _, tr := range []chunked.Transport{chunked.Direct, chunked.Copy} {
		two.transport = tr
		require.Equal(t, want, b.answers(t, two))
	}
	if !gputest.Native() { // the stand-in breaks ties as we do
		require.Equal(t, want, b.answers(t, own))
	}
}

// The planner is told what prepared calls have.
func TestVisibleOpsDescribeCalls(t *testing.T) {
	rig := gputest.Open(t, 1, nil)
	s := newScene(t, rig.Driver, ordinals(rig, 1), Options{})
	build(t, s, soup(rand.New(rand.NewPCG(1, 1)), 4))
	var frees []func() error
	in := uploads{t, s.Stream(), &frees}
	points, ids, active := column(in, make([]float32, 6)), column(in, make([]int32, 6)), column(in, make([]uint8, 2))
	values := column(in, make([]float32, 2))
	m := s.master().scene
	check := func(want chunked.Op, o operation, call *scene.Call, err error) {
		t.Helper()
		require.NoError(t, err)
		assert.Equal(t, want, o.of(call))
		require.NoError(t, call.Abandon())
	}
	_, call, err := m.PrepareVisible(bg, scene.Segments{Start: points, End: points, Ignore: ids, Active: active})
	check(VisibleOp(3, true), visibleOperation, call, err)
	_, call, err = m.PrepareVisiblePair(bg, scene.SegmentPairs{Start: points, EndA: points, EndB: points, Ignore: ids})
	check(VisiblePairOp(3, false), visiblePairOperation, call, err)
	_, call, err = m.PrepareVisibleEdge(bg, scene.EdgeSamples{Source: points, Position: points, Direction: points, TMin: values, TMax: values, Active: active})
	check(VisibleEdgeOp(true), visibleEdgeOperation, call, err)
	_, call, err = m.PrepareVisibleChain(bg, scene.Polylines{
		Points: column(in, make([]float32, 2*3*4)), Length: column(in, make([]int32, 2)), Segments: 3, Ignore: ids,
	})
	check(VisibleChainOp(3, 1, false), visibleChainOperation, call, err)
	for _, free := range frees {
		require.NoError(t, free())
	}
	assert.Equal(t, chunked.Op{Key: "visible", Family: "visible", In: 24, Wire: 1, Record: 1}, VisibleOp(0, false))
}

// The floor rises with the bytes of a row on the link.
func TestMultiPolicyVisibleFloors(t *testing.T) {
	for _, c := range []struct {
		op    chunked.Op
		floor int64
	}{
		{VisibleOp(0, false), 262144}, {VisiblePairOp(0, false), 355767}, {VisibleEdgeOp(false), 421303}, {VisibleChainOp(8, 0, false), 1132837},
	} {
		for remote, kind := range map[int64]chunked.Kind{c.floor - 1: chunked.KindMaster, c.floor: chunked.KindDirect} {
			p, err := chunked.BuildPlan(chunked.Input{Op: c.op, Rows: 2 * remote, Devices: []int{0, 1}, Transport: chunked.Direct, Options: chunked.Options{MinRaysPerDevice: 262144}})
			require.NoError(t, err)
			assert.Equal(t, kind, p.Kind, "%s, %d rows", c.op.Key, remote)
		}
	}
}

// Whatever call of the driver fails on any device, a query fails or is right, leaves
// nothing behind, and the next one is right.
func TestMultiResilienceVisible(t *testing.T) {
	var ledger *wrap.Ledger
	var fault *wrap.Fault
	var trace *wrap.Trace
	rig := gputest.Open(t, 2, func(api cuapi.API) cuapi.API {
		ledger = wrap.NewLedger(api)
		fault = wrap.NewFault(ledger)
		trace = wrap.NewTrace(fault)
		return trace
	})
	rng := rand.New(rand.NewPCG(64, 1))
	s, err := create(rig.Driver, ordinals(rig, 2), anyFloor(1, 1), 64)
	require.NoError(t, err)
	build(t, s, soup(rng, 20))
	b := randomSights(rng, 40, 20)
	var frees []func() error
	in := uploads{t, s.Stream(), &frees}
	line := scene.Polylines{Points: column(in, b.line), Length: column(in, b.length), Segments: b.segments, Ignore: column(in, b.lineIgnore)}
	once := func() ([]int32, error) {
		v, err := s.VisibleChain(bg, line)
		if err != nil {
			return nil, err
		}
		prims, err := cuda.Download(bg, s.Stream(), v.FirstBlockedPrim)
		return prims, errors.Join(err, v.Close())
	}
	want, err := once()
	require.NoError(t, err)
	failed := 0
	for _, tr := range []chunked.Transport{chunked.Direct, chunked.Copy} {
		s.transport = tr
		right := func(about ...any) {
			t.Helper()
			got, err := once()
			require.NoError(t, err, about...)
			require.Equal(t, want, got, about...)
		}
		right()
		trace.Reset()
		right()
		for method, n := range trace.Counts() {
			if method == "StreamQuery" || method == "EventQuery" || strings.HasPrefix(method, "Ctx") {
				n = min(n, 10) // polls, as many as the clock allows, and the contexts that they switch
			}
			for k := 1; k <= int(n); k++ {
				fault.Reset()
				require.NoError(t, fault.FailCall(method, k, cuapi.ErrorInvalidValue))
				got, err := once()
				fault.Reset()
				if err != nil {
					failed++
					require.ErrorIs(t, err, cuapi.ErrorInvalidValue, "call %d of %s", k, method)
				} else { // what only gives memory back has another way to do so
					require.Equal(t, want, got, "call %d of %s", k, method)
				}
				right("after call %d of %s", k, method)
			}
		}
	}
	for _, free := range frees {
		require.NoError(t, free())
	}
	require.Greater(t, failed, 20)
	require.NoError(t, s.Close())
	require.NoError(t, ledger.Check())
}
