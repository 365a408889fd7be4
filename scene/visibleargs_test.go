package scene_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// asks are calls of the four operations with two good rows, of which a test spoils one
// column.
type asks struct {
	segment scene.Segments
	pair    scene.SegmentPairs
	edge    scene.EdgeSamples
	chain   scene.Polylines
}

func newAsks(r *rig) *asks {
	points, ids, values := toDevice(r, make([]float32, 6)), toDevice(r, make([]int32, 6)), toDevice(r, make([]float32, 2))
	return &asks{
		segment: scene.Segments{Start: points, End: points, Ignore: ids},
		pair:    scene.SegmentPairs{Start: points, EndA: points, EndB: points, Ignore: ids},
		edge:    scene.EdgeSamples{Source: points, Position: points, Direction: points, TMin: values, TMax: values},
		chain: scene.Polylines{
			Points: toDevice(r, make([]float32, 2*3*4)), Length: toDevice(r, make([]int32, 2)), Segments: 3, Ignore: ids,
		},
	}
}

func (a *asks) visible(r *rig, opts ...scene.CallOption) (scene.Reusable, error) {
	v, err := r.Visible(background, a.segment, opts...)
	return v, err
}

func (a *asks) visiblePair(r *rig, opts ...scene.CallOption) (scene.Reusable, error) {
	v, err := r.VisiblePair(background, a.pair, opts...)
	return v, err
}

func (a *asks) visibleEdge(r *rig, opts ...scene.CallOption) (scene.Reusable, error) {
	v, err := r.VisibleEdge(background, a.edge, opts...)
	return v, err
}

func (a *asks) visibleChain(r *rig, opts ...scene.CallOption) (scene.Reusable, error) {
	v, err := r.VisibleChain(background, a.chain, opts...)
	return v, err
}

type askFunc func(*asks, *rig, ...scene.CallOption) (scene.Reusable, error)

var allAsks = []askFunc{(*asks).visible, (*asks).visiblePair, (*asks).visibleEdge, (*asks).visibleChain}

// What is refused, and which argument the error names. V15 is among it.
func TestVisibleArguments(t *testing.T) {
	r, calls := traced(t, meshT())
	floats := func(n int) cuda.Slice[float32] { return toDevice(r, make([]float32, n)) }
	ints := func(n int) cuda.Slice[int32] { return toDevice(r, make([]int32, n)) }
	bytes := func(n int) cuda.Slice[uint8] { return toDevice(r, make([]uint8, n)) }
	freed, err := cuda.Upload(background, r.Stream(), make([]float32, 6))
	require.NoError(t, err)
	require.NoError(t, cuda.Free(freed))
	for _, c := range []struct {
		arg   string
		ask   askFunc
		spoil func(a *asks)
	}{
		{"Start", (*asks).visible, func(a *asks) { a.segment.Start = floats(7) }},
		{"Start", (*asks).visible, func(a *asks) { a.segment.Start = freed }},
		{"End", (*asks).visible, func(a *asks) { a.segment.End = floats(9) }},
		{"End", (*asks).visible, func(a *asks) { a.segment.End = cuda.Slice[float32]{} }},
		{"Ignore", (*asks).visible, func(a *asks) { a.segment.Ignore = ints(3) }},
		{"Ignore", (*asks).visible, func(a *asks) {
			a.segment = scene.Segments{Ignore: ints(1)} // for no rows
		}},
		{"Active", (*asks).visible, func(a *asks) { a.segment.Active = bytes(1) }},
		{"Active", (*asks).visible, func(a *asks) { a.segment.Active = bytes(0) }},

		{"Start", (*asks).visiblePair, func(a *asks) { a.pair.Start = floats(4) }},
		{"EndA", (*asks).visiblePair, func(a *asks) { a.pair.EndA = floats(3) }},
		{"EndB", (*asks).visiblePair, func(a *asks) { a.pair.EndB = floats(3) }},
		{"Ignore", (*asks).visiblePair, func(a *asks) { a.pair.Ignore = ints(5) }},
		{"Active", (*asks).visiblePair, func(a *asks) { a.pair.Active = bytes(3) }},

		{"Source", (*asks).visibleEdge, func(a *asks) { a.edge.Source = floats(5) }},
		{"Position", (*asks).visibleEdge, func(a *asks) { a.edge.Position = floats(3) }},
		{"Direction", (*asks).visibleEdge, func(a *asks) { a.edge.Direction = floats(9) }},
		{"TMin", (*asks).visibleEdge, func(a *asks) { a.edge.TMin = floats(6) }},
		{"TMax", (*asks).visibleEdge, func(a *asks) { a.edge.TMax = floats(1) }},
		{"Active", (*asks).visibleEdge, func(a *asks) { a.edge.Active = bytes(6) }},
		{"Fractions", (*asks).visibleEdge, func(a *asks) { a.edge.Fractions = []float32{} }},
		{"Fractions", (*asks).visibleEdge, func(a *asks) { a.edge.Fractions = make([]float32, 17) }},
		{"Fractions[1]", (*asks).visibleEdge, func(a *asks) { a.edge.Fractions = []float32{0, nan} }},
		{"Fractions[0]", (*asks).visibleEdge, func(a *asks) { a.edge.Fractions = []float32{-inf, 0} }},

		{"Segments", (*asks).visibleChain, func(a *asks) { a.chain.Segments = 0 }},
		{"Segments", (*asks).visibleChain, func(a *asks) { a.chain.Segments = -1 }},
		{"Segments", (*asks).visibleChain, func(a *asks) { a.chain.Segments = 1<<31 - 1 }},
		{"Points", (*asks).visibleChain, func(a *asks) { a.chain.Points = floats(2 * 3 * 3) }},
		{"Points", (*asks).visibleChain, func(a *asks) { a.chain.Length = ints(3) }},
		{"Ignore", (*asks).visibleChain, func(a *asks) { a.chain.Ignore = ints(8) }},
		{"Active", (*asks).visibleChain, func(a *asks) { a.chain.Active = bytes(4) }},

		{"Into", (*asks).visible, nil},
	} {
		a := newAsks(r)
		var opts []scene.CallOption
		if c.spoil != nil {
			c.spoil(a)
		} else {
			hits, err := r.Intersect(background, r.upload(i1), scene.None)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, hits.Close()) })
			opts = append(opts, scene.Into(hits))
		}
		calls.Reset()
		_, err := c.ask(a, r, opts...)
		var bad *scene.ArgumentError
		require.ErrorAs(t, err, &bad, c.arg)
		assert.Equal(t, c.arg, bad.Arg, "%v", err)
		assert.Empty(t, calls.Counts(), "%v: the driver was called", err)
	}
	for _, ask := range allAsks {
		v, err := ask(newAsks(r), r)
		require.NoError(t, err, "without a fault")
		require.NoError(t, v.Close())
		require.NoError(t, v.Close(), "twice")
	}
}

// Scenes without geometry and columns of another device are refused.
func TestVisibleNeedsAReadyScene(t *testing.T) {
	r := open(t)
	r.add(meshT())
	for _, ask := range allAsks {
		_, err := ask(newAsks(r), r)
		require.ErrorIs(t, err, scene.ErrNotReady)
	}
	if gputest.Native() {
		return // one device is enough for what follows nowhere else
	}
	g := gputest.Open(t, 2, nil)
	here, there := openOn(t, g.Context(t, 0)), openOn(t, g.Context(t, 1))
	here.add(meshT())
	require.NoError(t, here.Build(background))
	for _, ask := range allAsks {
		var wrong *cuda.WrongDeviceError
		_, err := ask(newAsks(there), here)
		require.ErrorAs(t, err, &wrong)
	}
}

// Without rows nothing is launched, and a result without rows can be filled again.
func TestVisibleWithoutRows(t *testing.T) {
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(meshT())
		empty := &asks{chain: scene.Polylines{Segments: 2}}
		for _, ask := range allAsks {
			v, err := ask(empty, r)
			require.NoError(t, err)
			assert.Zero(t, v.Rows())
			v, err = ask(newAsks(r), r, scene.Into(v))
			require.NoError(t, err)
			assert.Equal(t, 2, v.Rows())
			require.NoError(t, v.Close())
		}
	})
}

// A list of no ids ignores nothing.
func TestVisibleEmptyIgnoreList(t *testing.T) {
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(meshT())
		got := r.visible(segments{s: []vec{above(-1)}, e: []vec{above(1)}, ignore: []int32{}})
		assert.Equal(t, []uint8{0}, got)
	})
}

// A failing call of the driver fails the query, leaves nothing behind, and the next
// query is right.
func TestVisibleFailures(t *testing.T) {
	for name, ask := range map[string]askFunc{
		"Visible": (*asks).visible, "VisiblePair": (*asks).visiblePair,
		"VisibleEdge": (*asks).visibleEdge, "VisibleChain": (*asks).visibleChain,
	} {
		t.Run(name, func(t *testing.T) {
			requireFailingCallsToBeNoticed(t, meshT(), func(r *rig) func(scene.CallOption) (scene.Reusable, error) {
				a := newAsks(r)
				return func(opt scene.CallOption) (scene.Reusable, error) { return ask(a, r, opt) }
			})
		})
	}
}
